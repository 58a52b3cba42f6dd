//! Handshakes with servers of several kinds.

use proptest::prelude::*;

use super::*;

const FLAGS: u16 = 0b1_0110_1101;
const BYTES: u64 = 1 << 30;

fn greeting(flags: u16) -> Vec<u8> {
    let mut bytes = b"NBDMAGICIHAVEOPT".to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes
}

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION_REPLY.to_be_bytes().to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).expect("short").to_be_bytes());
    bytes.extend(data);
    bytes
}

fn export_info() -> Vec<u8> {
    let mut data = INFO_EXPORT.to_be_bytes().to_vec();
    data.extend(BYTES.to_be_bytes());
    data.extend(FLAGS.to_be_bytes());
    reply(GO, INFO, &data)
}

fn block_info(min: u32, max: u32) -> Vec<u8> {
    let mut data = INFO_BLOCK_SIZE.to_be_bytes().to_vec();
    for number in [min, 4096, max] {
        data.extend(number.to_be_bytes());
    }
    reply(GO, INFO, &data)
}

/// Returns what a server sends that has everything.
fn modern() -> Vec<u8> {
    [
        greeting(FIXED_NEWSTYLE | NO_ZEROES),
        reply(STRUCTURED_REPLY, ACK, &[]),
        reply(GO, INFO, &[0, 2, b'x']),
        export_info(),
        block_info(512, 1 << 20),
        reply(GO, ACK, &[]),
    ]
    .concat()
}

/// Runs a handshake on what a server sends, in pieces of `piece` bytes; returns what was sent.
fn run(bytes: &[u8], piece: usize) -> (Result<Option<Export>, HandshakeError>, Vec<u8>) {
    run_with(ReplyForm::Structured, bytes, piece)
}

fn run_with(
    replies: ReplyForm,
    bytes: &[u8],
    piece: usize,
) -> (Result<Option<Export>, HandshakeError>, Vec<u8>) {
    let (mut handshake, mut sent) = (Handshake::new("disk", replies), Vec::new());
    let mut result = Ok(None);
    for mut input in bytes.chunks(piece) {
        result = handshake.receive(&mut input);
        sent.extend(handshake.unsent());
        handshake.sent(handshake.unsent().len());
        if !matches!(result, Ok(None)) {
            break;
        }
        assert_eq!(input, [0; 0], "all input is taken");
    }
    (result, sent)
}

#[track_caller]
fn check(bytes: &[u8], want: Export, sent: &[u8]) {
    for piece in [1, 7, bytes.len()] {
        let result = run(bytes, piece);
        assert_eq!(
            result,
            (Ok(Some(want)), sent.to_vec()),
            "in pieces of {piece} B"
        );
    }
}

fn options(flags: u32, options: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = flags.to_be_bytes().to_vec();
    for (option, data) in options {
        bytes.extend(b"IHAVEOPT");
        bytes.extend(option.to_be_bytes());
        bytes.extend(u32::try_from(data.len()).expect("short").to_be_bytes());
        bytes.extend(*data);
    }
    bytes
}

const GO_DISK: &[u8] = b"\0\0\0\x04disk\0\x01\0\x03";

#[test]
fn a_modern_server_tells_everything() {
    let want = Export {
        bytes: BYTES,
        features: Features::new(FLAGS),
        block: BlockSizes::new(512, 1 << 20).expect("sizes"),
        has_structured_replies: true,
    };
    let sent = options(3, &[(STRUCTURED_REPLY, &[]), (GO, GO_DISK)]);
    check(&modern(), want, &sent);
}

#[test]
fn simple_replies_are_not_negotiated() {
    let bytes = [
        greeting(FIXED_NEWSTYLE | NO_ZEROES),
        export_info(),
        reply(GO, ACK, &[]),
    ]
    .concat();
    let (result, sent) = run_with(ReplyForm::Simple, &bytes, bytes.len());
    let export = result.expect("an export").expect("the whole handshake");
    assert!(!export.has_structured_replies);
    assert_eq!(sent, options(3, &[(GO, GO_DISK)]));
}

#[test]
fn older_servers_are_asked_by_name() {
    let plain = Export {
        bytes: BYTES,
        features: Features::new(FLAGS),
        block: BlockSizes::UNSTATED,
        has_structured_replies: false,
    };
    let export = [&BYTES.to_be_bytes()[..], &FLAGS.to_be_bytes()].concat();
    let no_go = [
        greeting(FIXED_NEWSTYLE | NO_ZEROES),
        reply(STRUCTURED_REPLY, ERROR_UNSUPPORTED, b"what?"),
        reply(GO, ERROR_UNSUPPORTED, &[]),
        export.clone(),
    ];
    let by_name: (u32, &[u8]) = (EXPORT_NAME, b"disk");
    let sent = options(3, &[(STRUCTURED_REPLY, &[]), (GO, GO_DISK), by_name]);
    check(&no_go.concat(), plain, &sent);
    // Not even fixed: no option but the name may be sent; zeroes follow.
    let oldest = [greeting(0), export, vec![0; EXPORT_ZEROES]];
    check(&oldest.concat(), plain, &options(0, &[by_name]));
}

#[track_caller]
fn refuse(messages: &[Vec<u8>], want: &str) {
    let bytes = [&[greeting(FIXED_NEWSTYLE | NO_ZEROES)], messages]
        .concat()
        .concat();
    let (result, _) = run(&bytes, bytes.len());
    assert_eq!(result.expect_err(want).to_string(), want);
}

#[test]
fn refusals_are_named() {
    let plain = reply(STRUCTURED_REPLY, ERROR_UNSUPPORTED, &[]);
    let go = |kind, text: &[u8]| [plain.clone(), reply(GO, kind, text)];
    refuse(
        &go(ERROR_UNKNOWN, b"not here\n"),
        "no export `disk`: not here",
    );
    refuse(&go(ERROR_TLS_REQUIRED, &[]), "the server requires TLS");
    refuse(
        &go(ERROR | 2, b"go away"),
        "NBD_OPT_GO refused: forbidden by policy: go away",
    );
    refuse(&go(ERROR | 99, &[]), "NBD_OPT_GO refused: unknown error");
    refuse(
        &go(ACK, &[]),
        "the server accepted the export without its size and flags",
    );
    refuse(&go(2, &[]), "unexpected reply to NBD_OPT_GO (type 0x2)");
    refuse(&go(INFO, &[0]), "unexpected reply to NBD_OPT_GO (type 0x3)");
    refuse(
        &go(INFO, &[0, 0, 1]),
        "unexpected reply to NBD_OPT_GO (type 0x3)",
    );
    refuse(
        &[plain.clone(), block_info(0, 4096)],
        "impossible block sizes: minimum 0 B, maximum payload 4096 B",
    );
    refuse(
        &[reply(GO, ACK, &[])],
        "unexpected reply to NBD_OPT_STRUCTURED_REPLY (type 0x1)",
    );
    refuse(
        &[vec![7; 40]],
        "unexpected reply to NBD_OPT_STRUCTURED_REPLY (type 0x7070707)",
    );
    let mut long = reply(STRUCTURED_REPLY, ACK, &[]);
    long[16] = 1;
    refuse(&[long], "reply of 16777216 B during the handshake");
}

#[test]
fn peers_that_are_no_newstyle_servers_are_named() {
    let mut oldstyle = wire::GREETING.to_be_bytes().to_vec();
    oldstyle.extend(wire::OLDSTYLE.to_be_bytes());
    oldstyle.extend([0; 136]);
    assert_eq!(run(&oldstyle, 152).0, Err(HandshakeError::Oldstyle));
    let ssh = b"SSH-2.0-OpenSSH_9.2p1\r\n";
    assert_eq!(run(ssh, 23).0, Err(HandshakeError::NotNbd));
}

proptest! {
    /// Any change of any bytes: an export or an error, no panic, and no more than the protocol's
    /// longest reply is kept.
    #[test]
    fn a_hostile_server_is_only_refused(
        changes in proptest::collection::vec((0_usize..200, any::<u8>()), 0..8),
        piece in 1_usize..40,
    ) {
        let mut bytes = modern();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let mut handshake = Handshake::new("disk", ReplyForm::Structured);
        for mut input in bytes.chunks(piece) {
            if !matches!(handshake.receive(&mut input), Ok(None)) {
                break;
            }
            prop_assert!(handshake.received.len() <= REPLY_BYTES + REPLY_DATA_MAX as usize);
        }
    }
}
