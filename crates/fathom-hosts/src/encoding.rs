//! Bytes of messages: a version, a kind and its fields, little-endian; before a field that may be
//! missing a byte says whether it is there.
//!
//! One message has one encoding, so that a decoder which accepts bytes gives them back unchanged.

use crate::messages::{FILES_MAX, Message, Order, REFUSALS_MAX, Report, Stage, StopReason};
use crate::text::TEXT_BYTES_MAX;
use crate::{Text, Wave};

impl Message {
    /// Appends the encoding, of at most [`MESSAGE_BYTES_MAX`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        match self {
            Self::Report(report) => {
                out.push(REPORT);
                put_report(out, report);
            }
            Self::Order(order) => {
                out.push(ORDER);
                put_order(out, order);
            }
            Self::Ping { token, more } => {
                out.push(PING);
                put_u32(out, *token);
                out.push(u8::from(*more));
            }
            Self::Pong { token, at } => {
                out.push(PONG);
                put_u32(out, *token);
                put_u64(out, at.get());
            }
            Self::Clock(time) => {
                out.push(CLOCK);
                put_u64(out, time.at.get());
                put_u64(out, time.common_ns);
                put_u64(out, time.bound.get());
                out.push(u8::from(time.drift_ppb.is_some()));
                if let Some(drift_ppb) = time.drift_ppb {
                    out.extend(drift_ppb.to_le_bytes());
                }
            }
        }
    }
}

fn put_report(out: &mut Vec<u8>, report: &Report) {
    out.push(report.wants_stop.map_or(0, reason_code));
    out.push(u8::from(report.wants_end.is_some()));
    if let Some(wave) = report.wants_end {
        put_u32(out, wave.get());
    }
    let progress = &report.progress;
    put_u64(out, progress.elapsed.get());
    put_u32(out, progress.jobs_running);
    put_u32(out, progress.jobs_ended);
    for (_, &count) in progress.ios.iter().chain(progress.bytes.iter()) {
        put_u64(out, count);
    }
    put_stage(out, &report.stage);
}

fn put_stage(out: &mut Vec<u8>, stage: &Stage) {
    match stage {
        Stage::Checking => out.push(0),
        Stage::Checked(checks) => {
            out.push(1);
            put_count(out, checks.refusals().len());
            for reason in checks.refusals() {
                put_text(out, reason);
            }
            put_u32(out, checks.left_out());
            put_count(out, checks.files().len());
            for file in checks.files() {
                put_u64(out, file.get());
            }
        }
        Stage::LaidOut => out.push(2),
        Stage::Ready(wave) => put_wave(out, 3, *wave),
        Stage::Running(wave) => put_wave(out, 4, *wave),
        Stage::Ended(wave) => put_wave(out, 5, *wave),
        Stage::Through { code } => out.extend([6, *code]),
        Stage::Failed(reason) => {
            out.push(7);
            put_text(out, reason);
        }
        Stage::Left => out.push(8),
    }
}

fn put_order(out: &mut Vec<u8>, order: &Order) {
    match order {
        Order::Heard => out.push(0),
        Order::Refused => out.push(1),
        Order::LayOut { others } => {
            out.push(2);
            put_count(out, others.len());
            for index in others {
                out.extend(index.to_le_bytes());
            }
        }
        Order::FilesReady => out.push(3),
        Order::Start(start) => {
            put_wave(out, 4, start.wave);
            put_u64(out, start.at.get());
            put_u64(out, start.bound.get());
            put_u64(out, start.origin.get());
        }
        Order::EndWave(wave) => put_wave(out, 5, *wave),
        Order::Stop(reason) => out.extend([6, reason_code(*reason)]),
        Order::Leave { code } => out.extend([7, *code]),
        Order::AllEnded(wave) => put_wave(out, 8, *wave),
    }
}

fn put_wave(out: &mut Vec<u8>, kind: u8, wave: Wave) {
    out.push(kind);
    put_u32(out, wave.get());
}

fn put_text(out: &mut Vec<u8>, text: &Text) {
    put_count(out, text.as_str().len());
    out.extend(text.as_str().as_bytes());
}

/// Appends a count, all of which have limits below 2¹⁶.
fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).expect("limited by the constructors");
    out.extend(count.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

const fn reason_code(reason: StopReason) -> u8 {
    match reason {
        StopReason::Requested => 1,
        StopReason::ExitAll => 2,
        StopReason::ExitAllOnError => 3,
        StopReason::RankLost => 4,
        StopReason::ConductorLost => 5,
    }
}

/// Version of the encoding; another one is refused by name.
pub(crate) const VERSION: u8 = 1;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

pub(crate) const REPORT: u8 = b'R';
pub(crate) const ORDER: u8 = b'O';
pub(crate) const PING: u8 = b'?';
pub(crate) const PONG: u8 = b'!';
pub(crate) const CLOCK: u8 = b'C';

/// Head, progress and the counts of a report, in bytes; rounded up.
const HEAD_BYTES_MAX: usize = 128;
const _: () = assert!(
    HEAD_BYTES_MAX + REFUSALS_MAX * (2 + TEXT_BYTES_MAX) + FILES_MAX * 8 <= MESSAGE_BYTES_MAX
);

#[cfg(test)]
mod tests {
    use fathom_core::{Nanos, PerDirection, Tick};

    use super::*;
    use crate::{Checks, CommonTime, FileKey, MessageErrorKind, Progress, Start};

    #[track_caller]
    fn check(message: &Message, bytes: &[u8]) {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        assert_eq!(encoded, bytes);
        assert_eq!(Message::decode(bytes).as_ref(), Ok(message));
        for end in 0..bytes.len() {
            let error = Message::decode(&bytes[..end]).unwrap_err();
            assert_eq!(error.kind, MessageErrorKind::CutShort, "{end}: {error}");
        }
        encoded.push(0);
        let error = Message::decode(&encoded).unwrap_err();
        assert_eq!(error.kind, MessageErrorKind::TooLong, "{error}");
    }

    fn report(stage: Stage) -> Message {
        Message::Report(Report {
            stage,
            wants_stop: None,
            wants_end: None,
            progress: Progress::default(),
        })
    }

    #[test]
    fn orders_are_these_bytes() {
        let start = Start {
            wave: Wave::new(3),
            at: Tick::new(0x0102),
            bound: Nanos::new(5),
            origin: Tick::new(6),
        };
        let bytes = b"\x01O\x04\x03\0\0\0\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\
            \x06\0\0\0\0\0\0\0";
        check(&Message::Order(Order::Start(start)), bytes);
        check(&Message::Order(Order::Heard), b"\x01O\0");
        check(&Message::Order(Order::Refused), b"\x01O\x01");
        let others = vec![0, 4095];
        check(
            &Message::Order(Order::LayOut { others }),
            b"\x01O\x02\x02\0\0\0\xff\x0f",
        );
        check(&Message::Order(Order::FilesReady), b"\x01O\x03");
        let end = Order::EndWave(Wave::new(1));
        check(&Message::Order(end), b"\x01O\x05\x01\0\0\0");
        let ended = Order::AllEnded(Wave::new(1));
        check(&Message::Order(ended), b"\x01O\x08\x01\0\0\0");
        let stop = Order::Stop(StopReason::ExitAll);
        check(&Message::Order(stop), b"\x01O\x06\x02");
        check(&Message::Order(Order::Leave { code: 2 }), b"\x01O\x07\x02");
    }

    #[test]
    fn comparisons_of_clocks_are_these_bytes() {
        for (more, bytes) in [
            (false, b"\x01?\x01\0\0\0\0"),
            (true, b"\x01?\x01\0\0\0\x01"),
        ] {
            check(&Message::Ping { token: 1, more }, bytes);
        }
        let at = Tick::new(2);
        check(
            &Message::Pong { token: 1, at },
            b"\x01!\x01\0\0\0\x02\0\0\0\0\0\0\0",
        );
        let mut time = CommonTime {
            at: Tick::new(3),
            common_ns: 4,
            bound: Nanos::new(5),
            drift_ppb: None,
        };
        let mut bytes = vec![VERSION, b'C'];
        bytes.extend([3u64, 4, 5].iter().flat_map(|number| number.to_le_bytes()));
        bytes.push(0);
        check(&Message::Clock(time), &bytes);
        time.drift_ppb = Some(-2);
        bytes.pop();
        bytes.push(1);
        bytes.extend((-2i64).to_le_bytes());
        check(&Message::Clock(time), &bytes);
    }

    #[test]
    fn reports_come_back_whole() {
        let refusals = vec!["a\nhint: b".to_owned(); 70];
        let files = (0..FILES_MAX as u64).map(FileKey::new).collect();
        let checks = Checks::new(&refusals, files).unwrap();
        assert_eq!((checks.refusals().len(), checks.left_out()), (62, 8));
        for stage in [
            Stage::Checking,
            Stage::Checked(checks),
            Stage::LaidOut,
            Stage::Ready(Wave::new(0)),
            Stage::Running(Wave::new(u32::MAX)),
            Stage::Ended(Wave::new(7)),
            Stage::Through { code: 1 },
            Stage::Failed(Text::new("no space")),
            Stage::Left,
        ] {
            let mut bytes = Vec::new();
            report(stage.clone()).encode(&mut bytes);
            assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            assert_eq!(Message::decode(&bytes), Ok(report(stage)));
        }
    }

    #[test]
    fn progress_has_a_place_for_each_number() {
        let message = Message::Report(Report {
            stage: Stage::LaidOut,
            wants_stop: Some(StopReason::ConductorLost),
            wants_end: Some(Wave::new(10)),
            progress: Progress {
                elapsed: Nanos::new(1),
                jobs_running: 2,
                jobs_ended: 3,
                ios: PerDirection::new(4, 5, 6),
                bytes: PerDirection::new(7, 8, 9),
            },
        });
        let mut bytes = vec![VERSION, b'R', 5, 1];
        bytes.extend(10u32.to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
        bytes.extend([2u32, 3].iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend((4..10u64).flat_map(u64::to_le_bytes));
        bytes.push(2);
        check(&message, &bytes);
    }

    #[track_caller]
    fn refused(bytes: &[u8], want: &str) {
        assert_eq!(Message::decode(bytes).unwrap_err().to_string(), want);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let place = "message of a rank: byte";
        let version = "this program speaks 1; use one version on all hosts";
        refused(
            b"\x02",
            &format!("{place} 1: version: version 2, {version}"),
        );
        refused(
            b"\x01x",
            &format!("{place} 2: kind: value 120 is not known"),
        );
        refused(
            b"\x01O\x09",
            &format!("{place} 3: order: value 9 is not known"),
        );
        let text = "not a short, printable text";
        let failed = |text: &[u8]| {
            let mut bytes = Vec::new();
            report(Stage::Failed(Text::new(""))).encode(&mut bytes);
            let length = bytes.len();
            bytes[length - 2] = u8::try_from(text.len()).unwrap();
            bytes.extend(text);
            bytes
        };
        refused(&failed(b"\xff"), &format!("{place} 72: text: {text}"));
        refused(&failed(b"\x07"), &format!("{place} 72: text: {text}"));
        refused(
            b"\x01?\0\0\0\0\x02",
            &format!("{place} 7: more: value 2 is not known"),
        );
        refused(
            b"\x01O\x02\x02\0\x05\0\x05\0",
            &format!("{place} 9: files: indexes do not rise"),
        );
        refused(
            b"\x01O\x02\x01\0\0\x10",
            &format!("{place} 7: files: over 4095"),
        );
        refused(&vec![1; 65_537], &format!("{place} 0: length: over 65536"));
    }

    #[test]
    fn too_many_files_are_the_callers_to_group() {
        let files = vec![FileKey::new(0); FILES_MAX + 1];
        let error = Checks::new(&[], files).unwrap_err();
        assert_eq!(error.to_string(), "4097 files in a message: 4096 at most");
    }
}
