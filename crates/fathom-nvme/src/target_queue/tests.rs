use super::*;
use crate::command::Opcode;
use crate::completion::Status;
use crate::digest::Digest;
use crate::fabrics::Connect;
use crate::wire::put;

const BOTH: Digests = Digests {
    header: true,
    data: true,
};
const NONE: Digests = Digests {
    header: false,
    data: false,
};

/// Event of a queue, with its data copied.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Initialized(Pdu),
    Command(u16, u16, u32),
    Data(u16, u32, Vec<u8>),
    Received(u16, bool),
    Terminated(TermReq),
}

impl From<Arrival<'_>> for Seen {
    fn from(arrival: Arrival<'_>) -> Self {
        match arrival {
            Arrival::Initialized(pdu) => Self::Initialized(pdu),
            Arrival::Command {
                slot,
                command,
                in_capsule,
            } => Self::Command(slot, command.cid(), in_capsule),
            Arrival::Data {
                slot,
                offset,
                bytes,
            } => Self::Data(slot, offset, bytes.to_vec()),
            Arrival::Received { slot, is_intact } => Self::Received(slot, is_intact),
            Arrival::Terminated(reason) => Self::Terminated(reason),
        }
    }
}

fn feed(queue: &mut TargetQueue, mut bytes: &[u8]) -> Result<Vec<Seen>, TermReq> {
    let mut seen = Vec::new();
    while let Some(arrival) = queue.next(&mut bytes)? {
        seen.push(arrival.into());
    }
    assert!(bytes.is_empty(), "all bytes are taken");
    Ok(seen)
}

fn framing(digests: Digests) -> Framing {
    Framing::new(digests, 0).expect("an alignment")
}

/// Bytes of a PDU from the host, with its data and their digest.
fn bytes_of(pdu: &Pdu, digests: Digests, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let mut bytes = pdu.encode(framing(digests), length).as_bytes().to_vec();
    bytes.extend_from_slice(data);
    if digests.data && !data.is_empty() {
        bytes.extend_from_slice(&Digest::of(data).to_bytes());
    }
    bytes
}

fn ic_req(digests: Digests) -> Vec<u8> {
    let request = IcReq {
        digests,
        ..IcReq::default()
    };
    bytes_of(&Pdu::IcReq(request), NONE, &[])
}

/// Queue 1 with `entries`, initialized and connected.
#[track_caller]
fn connected(digests: Digests, entries: u16) -> TargetQueue {
    let mut queue = TargetQueue::new(TargetQueueConfig::DEFAULT);
    let seen = feed(&mut queue, &ic_req(digests)).unwrap();
    assert!(matches!(seen[..], [Seen::Initialized(Pdu::IcResp(_))]));
    let connect = Command::new(Opcode::FABRICS, 0).with_data(inside(1024));
    let data = [3; Connect::DATA_BYTES];
    let seen = feed(
        &mut queue,
        &bytes_of(&Pdu::Command(connect), digests, &data),
    );
    let want = [
        Seen::Command(0, 0, 1024),
        Seen::Data(0, 0, data.to_vec()),
        Seen::Received(0, true),
    ];
    assert_eq!(seen.unwrap(), want);
    queue.connected(1, entries);
    queue.release(0);
    queue
}

const fn inside(length: u32) -> DataPointer {
    DataPointer::InCapsule { offset: 0, length }
}

fn read(cid: u16) -> Pdu {
    let data = DataPointer::Transport { length: 4096 };
    Pdu::Command(Command::new(Opcode::READ, cid).with_data(data))
}

fn write(cid: u16, data: DataPointer) -> Pdu {
    Pdu::Command(Command::new(Opcode::WRITE, cid).with_data(data))
}

/// Data for a transfer tag.
fn h2c(cid: u16, ttag: u16, offset: u32, length: u32, is_last: bool) -> Pdu {
    Pdu::H2cData(DataPdu {
        cid,
        ttag,
        offset,
        length,
        is_last,
        is_success: false,
    })
}

/// A queue that has requested 8 KiB of the command 0x1003 in slot 0, and the transfer tag.
fn requested(digests: Digests) -> (TargetQueue, u16) {
    let mut queue = connected(digests, 8);
    let data = DataPointer::Transport { length: 8192 };
    let seen = feed(&mut queue, &bytes_of(&write(0x1003, data), digests, &[])).unwrap();
    assert_eq!(seen, [Seen::Command(0, 0x1003, 0)]);
    let Pdu::R2t(ready) = queue.request_data(0, 8192) else {
        panic!("no R2T");
    };
    assert_eq!((ready.cid, ready.offset, ready.length), (0x1003, 0, 8192));
    (queue, ready.ttag)
}

/// From a trace of Linux 6.1: ICReq with both digests, and the answer that it requires.
#[test]
fn initialization_answers_with_the_digests_requested() {
    let mut wire = [0; 128];
    wire[..8].copy_from_slice(&[0, 0, 128, 0, 128, 0, 0, 0]);
    wire[11] = 3;
    let mut queue = TargetQueue::new(TargetQueueConfig::DEFAULT);
    let seen = feed(&mut queue, &wire).unwrap();
    let [Seen::Initialized(response)] = &seen[..] else {
        panic!("{seen:?}");
    };
    let encoded = response.encode(Framing::PLAIN, 0);
    let mut want = [0; 128];
    want[..8].copy_from_slice(&[1, 0, 128, 0, 128, 0, 0, 0]);
    want[11] = 3;
    put(&mut want, 12, 131_072_u32.to_le_bytes());
    assert_eq!(encoded.as_bytes(), want);
    assert_eq!(queue.digests(), BOTH);
    assert_eq!(
        feed(&mut queue, &wire),
        Err(refusal(FatalStatus::SEQUENCE, 0)),
        "no second request"
    );
}

#[test]
fn digests_that_are_not_permitted_are_left_out() {
    let config = TargetQueueConfig {
        digests: NONE,
        ..TargetQueueConfig::DEFAULT
    };
    let mut queue = TargetQueue::new(config);
    feed(&mut queue, &ic_req(BOTH)).unwrap();
    assert_eq!(queue.digests(), NONE);
}

/// From a trace: a read of 4 KiB answered by one PDU with the flags LAST and SUCCESS.
#[test]
fn reads_are_answered_as_on_the_wire() {
    let mut queue = connected(NONE, 128);
    assert_eq!(
        feed(&mut queue, &bytes_of(&read(0x2007), NONE, &[])),
        Ok(vec![Seen::Command(0, 0x2007, 0)])
    );
    let data = queue.data(0, 4096, true);
    let encoded = queue.encode(&data, 4096);
    let want = [
        7, 0xc, 24, 24, 0x18, 0x10, 0, 0, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(encoded.as_bytes(), want);
    // The head counts both completions of this command.
    let failed = queue.response(Completion {
        cid: queue.cid(0),
        status: Status::LBA_OUT_OF_RANGE.do_not_retry(),
        ..Completion::default()
    });
    let encoded = queue.encode(&failed, 0);
    let want = [
        5, 0, 24, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 7, 0x20, 0, 0x81,
    ];
    assert_eq!(encoded.as_bytes(), want);
}

#[test]
fn data_in_capsules_may_be_split_anywhere() {
    for digests in [NONE, BOTH] {
        let data: Vec<u8> = (0..4096_u32).map(|at| at.to_le_bytes()[0]).collect();
        let wire = bytes_of(&write(9, inside(4096)), digests, &data);
        for part in [1, 7, 72, 75, 1000, 4096, 5000] {
            let mut queue = connected(digests, 8);
            let mut seen = Vec::new();
            for bytes in wire.chunks(part) {
                seen.extend(feed(&mut queue, bytes).unwrap());
            }
            assert_eq!(seen.remove(0), Seen::Command(0, 9, 4096));
            assert_eq!(seen.pop(), Some(Seen::Received(0, true)));
            let mut joined = Vec::new();
            for one in seen {
                let Seen::Data(0, offset, bytes) = one else {
                    panic!("{one:?}");
                };
                assert_eq!(offset as usize, joined.len());
                joined.extend(bytes);
            }
            assert_eq!(joined, data);
            assert!(!queue.is_owed());
        }
    }
}

#[test]
fn requested_data_come_in_several_pdus() {
    let (mut queue, ttag) = requested(NONE);
    assert!(queue.is_owed());
    let first = bytes_of(&h2c(0x1003, ttag, 0, 4096, false), NONE, &[1; 4096]);
    let seen = feed(&mut queue, &first).unwrap();
    assert_eq!(seen, [Seen::Data(0, 0, vec![1; 4096])]);
    // The second is received in its place.
    let second = bytes_of(&h2c(0x1003, ttag, 4096, 4096, true), NONE, &[2; 4096]);
    assert_eq!(feed(&mut queue, &second[..100]).unwrap().len(), 1);
    let place = Place {
        slot: 0,
        offset: 4096 + 76,
        length: 4020,
    };
    assert_eq!(queue.place(), Some(place));
    queue.received(&second[100..200]);
    queue.received(&second[200..]);
    assert_eq!(queue.place(), None);
    assert_eq!(feed(&mut queue, &[]), Ok(vec![Seen::Received(0, true)]));
    assert!(!queue.is_owed());
}

#[test]
fn a_wrong_data_digest_concerns_its_command_only() {
    let (mut queue, ttag) = requested(BOTH);
    let mut first = bytes_of(&h2c(0x1003, ttag, 0, 4096, false), BOTH, &[1; 4096]);
    *first.last_mut().unwrap() ^= 1;
    feed(&mut queue, &first).unwrap();
    let second = bytes_of(&h2c(0x1003, ttag, 4096, 4096, true), BOTH, &[2; 4096]);
    let seen = feed(&mut queue, &second).unwrap();
    assert_eq!(seen.last(), Some(&Seen::Received(0, false)));
    let seen = feed(&mut queue, &bytes_of(&read(5), BOTH, &[])).unwrap();
    assert_eq!(seen, [Seen::Command(1, 5, 0)]);
}

#[track_caller]
fn check_refused(pdu: &Pdu, data: usize, status: FatalStatus, information: u32) {
    let (mut queue, _) = requested(NONE);
    let wire = bytes_of(pdu, NONE, &vec![0; data]);
    let want = refusal(status, information);
    assert_eq!(feed(&mut queue, &wire), Err(want), "{pdu:?}");
    let (pdu, header) = queue.terminate(want);
    assert_eq!(pdu.kind(), crate::PduType::C2H_TERM_REQ);
    assert_eq!(header, &wire[..header.len()]);
    assert!(!header.is_empty());
}

#[test]
fn data_that_were_not_requested_end_the_connection() {
    let (_, ttag) = requested(NONE);
    let invalid = FatalStatus::INVALID_HEADER;
    check_refused(&h2c(0x1003, 0, 0, 4096, false), 4096, invalid, TTAG);
    check_refused(&h2c(0x1003, ttag + 1, 0, 4096, false), 4096, invalid, TTAG);
    check_refused(&h2c(0x1003, 0x7ff, 0, 4096, false), 4096, invalid, TTAG);
    let late = ttag ^ 1 << SLOT_BITS;
    check_refused(&h2c(0x1003, late, 0, 4096, false), 4096, invalid, TTAG);
    check_refused(&h2c(0x1004, ttag, 0, 4096, false), 4096, invalid, CCCID);
    let sequence = FatalStatus::SEQUENCE;
    check_refused(
        &h2c(0x1003, ttag, 4, 4096, false),
        4096,
        sequence,
        DATA_OFFSET,
    );
    check_refused(
        &h2c(0x1003, ttag, u32::MAX, 4096, false),
        4096,
        sequence,
        DATA_OFFSET,
    );
    let range = FatalStatus::OUT_OF_RANGE;
    check_refused(&h2c(0x1003, ttag, 0, 8196, true), 8196, range, DATA_LENGTH);
    check_refused(&h2c(0x1003, ttag, 0, 4096, true), 4096, invalid, FLAGS);
}

#[test]
fn capsules_whose_data_disagree_end_the_connection() {
    let invalid = FatalStatus::INVALID_HEADER;
    check_refused(&write(1, inside(512)), 0, invalid, SGL_LENGTH);
    check_refused(&write(1, inside(512)), 1024, invalid, SGL_LENGTH);
    let outside = DataPointer::Transport { length: 512 };
    check_refused(&write(1, outside), 512, invalid, SGL_LENGTH);
    check_refused(&write(1, DataPointer::Other(0)), 512, invalid, SGL_LENGTH);
    let offset = DataPointer::InCapsule {
        offset: 8,
        length: 512,
    };
    check_refused(&write(1, offset), 512, invalid, SGL);
    // More than an I/O capsule may have, but an admin capsule may.
    check_refused(
        &write(1, inside(8192)),
        8192,
        FatalStatus::LIMIT_EXCEEDED,
        PDU_LENGTH,
    );
}

#[test]
fn tags_of_earlier_commands_are_unknown() {
    let (mut queue, old) = requested(NONE);
    let wire = bytes_of(&h2c(0x1003, old, 0, 8192, true), NONE, &[0; 8192]);
    feed(&mut queue, &wire).unwrap();
    queue.release(0);
    let data = DataPointer::Transport { length: 8192 };
    feed(&mut queue, &bytes_of(&write(0x1003, data), NONE, &[])).unwrap();
    let Pdu::R2t(ready) = queue.request_data(0, 8192) else {
        panic!("no R2T");
    };
    assert_ne!(ready.ttag, old);
    let refused = feed(&mut queue, &wire);
    assert_eq!(refused, Err(refusal(FatalStatus::INVALID_HEADER, TTAG)));
}

#[test]
fn a_queue_has_its_entries_and_no_more() {
    let mut queue = connected(NONE, 4);
    for cid in 0..4 {
        // Command identifiers may repeat: slots tell commands apart.
        let seen = feed(&mut queue, &bytes_of(&read(7), NONE, &[])).unwrap();
        assert_eq!(seen, [Seen::Command(cid, 7, 0)]);
    }
    assert_eq!(queue.in_use(), 4);
    let refused = feed(&mut queue, &bytes_of(&read(9), NONE, &[]));
    assert_eq!(refused, Err(refusal(FatalStatus::SEQUENCE, 0)));
}

#[test]
fn the_head_wraps_at_the_size_of_the_queue() {
    let mut queue = connected(NONE, 4);
    for want in [1, 2, 3, 0, 1] {
        feed(&mut queue, &bytes_of(&read(7), NONE, &[])).unwrap();
        let Pdu::Response(completion) = queue.response(Completion::default()) else {
            panic!("no response");
        };
        assert_eq!((completion.sq_head, completion.sq_id), (want, 1));
        queue.release(0);
    }
}

#[test]
fn unusable_requests_to_initialize_are_refused() {
    for (request, information) in [
        (
            IcReq {
                version: 1,
                ..IcReq::default()
            },
            VERSION,
        ),
        (
            IcReq {
                hpda: 32,
                ..IcReq::default()
            },
            HPDA,
        ),
    ] {
        let mut queue = TargetQueue::new(TargetQueueConfig::DEFAULT);
        let wire = bytes_of(&Pdu::IcReq(request), NONE, &[]);
        assert_eq!(
            feed(&mut queue, &wire),
            Err(refusal(FatalStatus::INVALID_HEADER, information))
        );
    }
}

#[test]
fn a_host_may_terminate() {
    let reason = refusal(FatalStatus::LIMIT_EXCEEDED, 4);
    let mut queue = connected(NONE, 4);
    let wire = bytes_of(&Pdu::TermReq(Side::Host, reason), NONE, &[0; 24]);
    assert_eq!(feed(&mut queue, &wire), Ok(vec![Seen::Terminated(reason)]));
}
