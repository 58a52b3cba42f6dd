use fathom_core::{Direction, SyncKind};
use proptest::prelude::*;

use super::*;

/// Decodes a log in pieces of `piece` bytes.
fn decode(log: &[u8], piece: usize) -> Result<(Vec<Event>, Decoder), IologError> {
    let (mut decoder, mut events) = (Decoder::new("log"), Vec::new());
    for bytes in log.chunks(piece.max(1)) {
        decoder.push(bytes, &mut |event| events.push(event))?;
    }
    decoder.finish(&mut |event| events.push(event))?;
    Ok((events, decoder))
}

#[track_caller]
fn check_error(log: &[u8], want: &str) {
    let error = decode(log, 7).map(|(events, _)| events).unwrap_err();
    assert_eq!(error.to_string(), want);
    assert!(!error.kind.hint().is_empty());
}

fn event(time_us: u64, file: u32, action: Action) -> Event {
    Event {
        time: Nanos::from_micros(time_us),
        file: LogFile(file),
        action,
    }
}

fn data(direction: Direction, offset: u64, length: u32) -> Action {
    Action::Data {
        direction,
        offset,
        length,
    }
}

/// Written by fio 3.33: `--rw=write --fdatasync=2 --end_fsync=1 --size=16k --bs=4k`.
const BY_FIO: &[u8] = b"fio version 3 iolog\n24 x add\n129 x open\n132 x write 0 4096\n\
158 x write 4096 4096\n162 x datasync 4096 0\n559 x write 8192 4096\n565 x write 12288 4096\n\
568 x sync 12288 0\n835 x close\n";

#[test]
fn logs_of_fio_are_decoded_in_pieces_of_any_size() {
    let (whole, decoder) = decode(BY_FIO, BY_FIO.len()).expect("readable");
    assert_eq!(decoder.names(), [LogFileName::Path("x".into())]);
    assert_eq!(decoder.notes(), Notes::default());
    let write = |at, offset| event(at, 0, data(Direction::Write, offset, 4096));
    let want = [
        event(129, 0, Action::Open),
        write(132, 0),
        write(158, 4096),
        event(162, 0, Action::Sync(SyncKind::Data)),
        write(559, 8192),
        write(565, 12288),
        event(568, 0, Action::Sync(SyncKind::Full)),
        event(835, 0, Action::Close),
    ];
    assert_eq!(whole, want);
    for piece in 1..40 {
        assert_eq!(decode(BY_FIO, piece).expect("readable").0, whole, "{piece}");
    }
}

#[test]
fn version_2_waits_until_a_time() {
    let log = b"fio version 2 iolog\n/a add\n/a open\n/a wait 300 0\n/a read 0 512\n\
        /a wait 200 0\n/a trim 0 512";
    let (events, decoder) = decode(log, 5).expect("readable");
    let want = [
        event(0, 0, Action::Open),
        event(300_000, 0, data(Direction::Read, 0, 512)),
        event(300_000, 0, data(Direction::Trim, 0, 512)),
        event(300_000, 0, Action::Close),
    ];
    assert_eq!(events, want);
    assert_eq!(decoder.notes().times_back, 1);
    assert_eq!(decoder.notes().first_time_back, Some(Place::Line(6)));
}

#[test]
fn errors_have_their_line() {
    let with =
        |line: &str| format!("fio version 3 iolog\n0 a add\n0 a open\n{line}\n").into_bytes();
    check_error(
        &with("0 a read 0 -4096"),
        "log:4: length `-4096` is negative",
    );
    check_error(&with("0 a frob 0 1"), "log:4: unknown action `frob`");
    check_error(&with("0 b open"), "log:4: `b` was not added");
    check_error(&with("0 a open"), "log:4: `a` is already open");
    check_error(&with("0 b add\n0 b read 0 1"), "log:5: `b` is not open");
    check_error(
        &with("fio version 3 iolog"),
        "log:4: second header: the log holds several recordings",
    );
    check_error(
        &with("0 a read 0 9223372036854775808"),
        "log:4: length exceeds 4294967295",
    );
    check_error(
        &with(&"x".repeat(9000)),
        "log:4: line too long for an I/O log",
    );
    check_error(
        b"fio version 1 iolog\n",
        "log: byte 0: version `1 iolog` of I/O logs is not supported",
    );
    let unknown = "log: byte 0: neither an I/O log of fio nor a binary blktrace";
    check_error(b"0, 0, 4096\n", unknown);
    check_error(b"", unknown);
    check_error(b"fio", unknown);
    check_error(&[0; 4096], unknown);
    check_error(&[b'f'; 10_000], unknown);
}

/// Byte order of a test's trace.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    /// Appends a record as `linux/blktrace_api.h` lays it out.
    fn record(self, log: &mut Vec<u8>, time: u64, sector: u64, bytes: u32, action: u32) {
        self.u32(log, 0x6561_7407);
        self.u32(log, 1);
        self.u64(log, time);
        self.u64(log, sector);
        self.u32(log, bytes);
        self.u32(log, action);
        self.u32(log, 42);
        self.u32(log, 8 << 20 | 16);
        self.u32(log, 0);
        self.u32(log, 0);
    }

    fn u32(self, log: &mut Vec<u8>, word: u32) {
        log.extend(if self.0 {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        });
    }

    fn u64(self, log: &mut Vec<u8>, word: u64) {
        log.extend(if self.0 {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        });
    }
}

const QUEUE_READ: u32 = 1 | 1 << 16;
const QUEUE_WRITE: u32 = 1 | 1 << 17;
const QUEUE_DISCARD: u32 = 1 | 1 << 17 | 1 << 29;
const QUEUE_FLUSH: u32 = 1 | 1 << 17 | 1 << 18;
const COMPLETE_READ: u32 = 8 | 1 << 16 | 1 << 23;
const TIMESTAMP: u32 = 1 | 1 << 26;

fn trace(order: Order) -> Vec<u8> {
    let mut log = Vec::new();
    order.record(&mut log, 1_000, 0, 0, TIMESTAMP);
    // Eight bytes of payload follow the time stamp.
    let length = log.len();
    log[length - 2..].copy_from_slice(&if order.0 { [0, 8] } else { [8, 0] });
    log.extend([0xff; 8]);
    order.record(&mut log, 5_000, 0, 4096, QUEUE_READ);
    order.record(&mut log, 6_000, 8, 8192, QUEUE_WRITE | 1 << 8);
    order.record(&mut log, 7_000, 0, 4096, COMPLETE_READ);
    order.record(&mut log, 6_500, 64, 1 << 20, QUEUE_DISCARD);
    order.record(&mut log, 9_000, 0, 0, QUEUE_FLUSH);
    log
}

#[test]
fn traces_are_decoded_in_both_byte_orders() {
    for order in [Order(false), Order(true)] {
        let log = trace(order);
        let (events, decoder) = decode(&log, log.len()).expect("readable");
        let want = [
            event(0, 0, Action::Open),
            event(0, 0, data(Direction::Read, 0, 4096)),
            event(1, 0, data(Direction::Write, 4096, 8192)),
            event(1_500, 0, data(Direction::Trim, 32_768, 1 << 20)),
            event(4, 0, Action::Sync(SyncKind::Full)),
            event(4, 0, Action::Close),
        ];
        let mut want = want.to_vec();
        want[3].time = Nanos::new(1_500);
        assert_eq!(events, want);
        let device = LogFileName::Device {
            major: 8,
            minor: 16,
        };
        assert_eq!(decoder.names(), [device]);
        assert_eq!(decoder.notes().depth, 3);
        for piece in 1..60 {
            assert_eq!(decode(&log, piece).expect("readable").0, events, "{piece}");
        }
    }
}

#[test]
fn ops_of_a_trace_are_rounded_up() {
    let (order, mut log) = (Order(false), Vec::new());
    order.record(&mut log, 1_000, 9, 512, QUEUE_WRITE);
    order.record(&mut log, 2_000, 17, 4608, QUEUE_READ);
    order.record(&mut log, 3_000, 24, 4096, QUEUE_WRITE);
    order.record(&mut log, 4_000, 24, 512, QUEUE_DISCARD);
    let lengths = |align: u32, log: &[u8]| {
        let (mut decoder, mut lengths) = (Decoder::new("log").align_trace(align), Vec::new());
        let mut sink = |event: Event| {
            if let Action::Data { length, .. } = event.action {
                lengths.push(length);
            }
        };
        decoder.push(log, &mut sink).unwrap();
        lengths
    };
    assert_eq!(lengths(4096, &log), [4096, 8192, 4096, 4096]);
    assert_eq!(lengths(0, &log), [512, 4608, 4096, 512]);
    let text = b"fio version 2 iolog\na add\na open\na read 0 512\n";
    assert_eq!(lengths(4096, text), [512]);
}

#[test]
fn a_truncated_trace_is_noted_and_a_torn_one_is_an_error() {
    let log = trace(Order(false));
    let (events, decoder) = decode(&log[..log.len() - 1], 10).expect("readable");
    assert_eq!(events.len(), 5);
    let start = log.len() as u64 - 48;
    assert_eq!(decoder.notes().truncated_at, Some(start));
    let mut torn = log.clone();
    torn[56] ^= 1;
    check_error(
        &torn,
        "log: byte 56: version 6 of the trace format is not supported",
    );
    torn[57] ^= 1;
    check_error(
        &torn,
        "log: byte 56: not a trace record: 0x65617506 in place of its magic number",
    );
}

#[test]
fn sectors_and_times_beyond_every_device_are_errors() {
    let mut log = Vec::new();
    Order(false).record(&mut log, 0, 1 << 55, 4096, QUEUE_READ);
    check_error(&log, "log: byte 0: sector exceeds 36028797018963967");
    log.clear();
    Order(false).record(&mut log, 0, (1 << 54) - 1, 4096, QUEUE_READ);
    check_error(
        &log,
        "log: byte 0: end of the op exceeds 9223372036854775807",
    );
    log.clear();
    Order(false).record(&mut log, u64::MAX, 0, 4096, QUEUE_READ);
    check_error(&log, "log: byte 0: time exceeds 2305843009213693951");
}

/// Lines of which most are wrong somewhere.
const LINE: &str = "[0-9]{1,3} [ab] (add|open|close|read|write|x) ?[0-9-]{0,3} ?[0-9]{0,3}";

proptest! {
    #[test]
    fn any_bytes_are_answered(
        log in proptest::collection::vec(any::<u8>(), 0..400),
        piece in 1_usize..64,
    ) {
        let whole = decode(&log, log.len()).map(|(events, _)| events);
        prop_assert_eq!(decode(&log, piece).map(|(events, _)| events), whole);
    }

    #[test]
    fn any_lines_are_answered_alike_in_pieces(
        lines in proptest::collection::vec(LINE, 0..12),
        piece in 1_usize..64,
    ) {
        let log = format!("fio version 3 iolog\n{}\n", lines.join("\n")).into_bytes();
        let whole = decode(&log, log.len()).map(|(events, _)| events);
        prop_assert_eq!(decode(&log, piece).map(|(events, _)| events), whole);
    }
}
