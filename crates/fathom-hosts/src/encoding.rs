//! Bytes of messages: a version, a kind and its fields, little-endian, nothing optional.
//!
//! One message has one encoding, so that a decoder which accepts bytes gives them back unchanged.

use fathom_core::{Nanos, PerDirection, Tick};

use crate::error::{MessageError, MessageErrorKind};
use crate::messages::{
    Checks, FILES_MAX, Message, Order, Progress, REFUSALS_MAX, Report, Stage, Start, StopReason,
};
use crate::text::TEXT_BYTES_MAX;
use crate::{FileKey, Text, Wave};

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
            Self::Ping { token } => {
                out.push(PING);
                put_u32(out, *token);
            }
            Self::Pong { token, at } => {
                out.push(PONG);
                put_u32(out, *token);
                put_u64(out, at.get());
            }
        }
    }

    /// Decodes one message, which fills `bytes`.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut input = Input { bytes, next: 0 };
        if bytes.len() > MESSAGE_BYTES_MAX {
            let limit = MESSAGE_BYTES_MAX as u64;
            return Err(input.refuse("length", MessageErrorKind::TooLarge(limit)));
        }
        let version = input.byte("version")?;
        if version != VERSION {
            return Err(input.refuse("version", MessageErrorKind::Version(version)));
        }
        let message = match input.byte("kind")? {
            REPORT => Self::Report(input.report()?),
            ORDER => Self::Order(input.order()?),
            PING => Self::Ping {
                token: input.u32("token")?,
            },
            PONG => Self::Pong {
                token: input.u32("token")?,
                at: Tick::new(input.u64("time")?),
            },
            other => return Err(input.refuse("kind", MessageErrorKind::Unknown(other))),
        };
        match input.next == bytes.len() {
            true => Ok(message),
            false => Err(input.refuse("end", MessageErrorKind::TooLong)),
        }
    }
}

fn put_report(out: &mut Vec<u8>, report: &Report) {
    out.push(report.wants_stop.map_or(0, reason_code));
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
        }
        Order::EndWave(wave) => put_wave(out, 5, *wave),
        Order::Stop(reason) => out.extend([6, reason_code(*reason)]),
        Order::Leave { code } => out.extend([7, *code]),
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

/// Bytes being decoded.
struct Input<'a> {
    bytes: &'a [u8],
    next: usize,
}

impl Input<'_> {
    fn report(&mut self) -> Result<Report, MessageError> {
        let wants_stop = match self.byte("reason")? {
            0 => None,
            code => Some(self.reason(code)?),
        };
        let elapsed = Nanos::new(self.u64("elapsed")?);
        let (jobs_running, jobs_ended) = (self.u32("jobs")?, self.u32("jobs")?);
        let progress = Progress {
            elapsed,
            jobs_running,
            jobs_ended,
            ios: self.per_direction("ops")?,
            bytes: self.per_direction("bytes")?,
        };
        let stage = self.stage()?;
        Ok(Report {
            stage,
            wants_stop,
            progress,
        })
    }

    fn stage(&mut self) -> Result<Stage, MessageError> {
        Ok(match self.byte("stage")? {
            0 => Stage::Checking,
            1 => Stage::Checked(self.checks()?),
            2 => Stage::LaidOut,
            3 => Stage::Ready(self.wave()?),
            4 => Stage::Running(self.wave()?),
            5 => Stage::Ended(self.wave()?),
            6 => Stage::Through {
                code: self.byte("exit code")?,
            },
            7 => Stage::Failed(self.text()?),
            8 => Stage::Left,
            other => return Err(self.refuse("stage", MessageErrorKind::Unknown(other))),
        })
    }

    fn checks(&mut self) -> Result<Checks, MessageError> {
        let refusals = self.count("reasons", REFUSALS_MAX)?;
        let refusals: Result<Vec<_>, _> = (0..refusals).map(|_| self.text()).collect();
        let left_out = self.u32("reasons")?;
        let files = self.count("files", FILES_MAX)?;
        let files: Result<Vec<_>, _> = (0..files)
            .map(|_| Ok(FileKey::new(self.u64("files")?)))
            .collect();
        let limit = MessageErrorKind::TooLarge(FILES_MAX as u64);
        Checks::of_parts(refusals?, left_out, files?).map_err(|_| self.refuse("files", limit))
    }

    fn order(&mut self) -> Result<Order, MessageError> {
        Ok(match self.byte("order")? {
            0 => Order::Heard,
            1 => Order::Refused,
            2 => Order::LayOut {
                others: self.indexes()?,
            },
            3 => Order::FilesReady,
            4 => Order::Start(Start {
                wave: self.wave()?,
                at: Tick::new(self.u64("time")?),
                bound: Nanos::new(self.u64("bound")?),
            }),
            5 => Order::EndWave(self.wave()?),
            6 => {
                let code = self.byte("reason")?;
                Order::Stop(self.reason(code)?)
            }
            7 => Order::Leave {
                code: self.byte("exit code")?,
            },
            other => return Err(self.refuse("order", MessageErrorKind::Unknown(other))),
        })
    }

    fn indexes(&mut self) -> Result<Vec<u16>, MessageError> {
        let count = self.count("files", FILES_MAX)?;
        let mut indexes: Vec<u16> = Vec::new();
        for _ in 0..count {
            let index = u16::from_le_bytes(self.take("files")?);
            if usize::from(index) >= FILES_MAX {
                let limit = MessageErrorKind::TooLarge(FILES_MAX as u64 - 1);
                return Err(self.refuse("files", limit));
            }
            if indexes.last().is_some_and(|&last| last >= index) {
                return Err(self.refuse("files", MessageErrorKind::Order));
            }
            indexes.push(index);
        }
        Ok(indexes)
    }

    fn reason(&self, code: u8) -> Result<StopReason, MessageError> {
        Ok(match code {
            1 => StopReason::Requested,
            2 => StopReason::ExitAll,
            3 => StopReason::ExitAllOnError,
            4 => StopReason::RankLost,
            5 => StopReason::ConductorLost,
            other => return Err(self.refuse("reason", MessageErrorKind::Unknown(other))),
        })
    }

    fn per_direction(&mut self, field: &'static str) -> Result<PerDirection<u64>, MessageError> {
        let [read, write, trim] = [self.u64(field)?, self.u64(field)?, self.u64(field)?];
        Ok(PerDirection::new(read, write, trim))
    }

    fn text(&mut self) -> Result<Text, MessageError> {
        let length = self.count("text", TEXT_BYTES_MAX)?;
        let bytes = self.slice("text", length)?;
        let text = std::str::from_utf8(bytes).ok().and_then(Text::unchanged);
        text.ok_or(self.refuse("text", MessageErrorKind::Text))
    }

    fn wave(&mut self) -> Result<Wave, MessageError> {
        Ok(Wave::new(self.u32("wave")?))
    }

    fn count(&mut self, field: &'static str, limit: usize) -> Result<usize, MessageError> {
        let count = usize::from(u16::from_le_bytes(self.take(field)?));
        match count <= limit {
            true => Ok(count),
            false => Err(self.refuse(field, MessageErrorKind::TooLarge(limit as u64))),
        }
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, MessageError> {
        Ok(self.take::<1>(field)?[0])
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, MessageError> {
        Ok(u32::from_le_bytes(self.take(field)?))
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, MessageError> {
        Ok(u64::from_le_bytes(self.take(field)?))
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], MessageError> {
        let mut taken = [0; N];
        taken.copy_from_slice(self.slice(field, N)?);
        Ok(taken)
    }

    fn slice(&mut self, field: &'static str, length: usize) -> Result<&[u8], MessageError> {
        let end = self.next + length;
        let cut = self.refuse(field, MessageErrorKind::CutShort);
        let slice = self.bytes.get(self.next..end).ok_or(cut)?;
        self.next = end;
        Ok(slice)
    }

    const fn refuse(&self, field: &'static str, kind: MessageErrorKind) -> MessageError {
        MessageError {
            byte: self.next,
            field,
            kind,
        }
    }
}

/// Version of the encoding; another one is refused by name.
pub(crate) const VERSION: u8 = 1;
/// Longest message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;

const REPORT: u8 = b'R';
const ORDER: u8 = b'O';
const PING: u8 = b'?';
const PONG: u8 = b'!';

/// Head, progress and the counts of a report, in bytes; rounded up.
const HEAD_BYTES_MAX: usize = 128;
const _: () = assert!(
    HEAD_BYTES_MAX + REFUSALS_MAX * (2 + TEXT_BYTES_MAX) + FILES_MAX * 8 <= MESSAGE_BYTES_MAX
);

#[cfg(test)]
mod tests {
    use super::*;

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
            progress: Progress::default(),
        })
    }

    #[test]
    fn orders_are_these_bytes() {
        let start = Start {
            wave: Wave::new(3),
            at: Tick::new(0x0102),
            bound: Nanos::new(5),
        };
        let bytes = b"\x01O\x04\x03\0\0\0\x02\x01\0\0\0\0\0\0\x05\0\0\0\0\0\0\0";
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
        let stop = Order::Stop(StopReason::ExitAll);
        check(&Message::Order(stop), b"\x01O\x06\x02");
        check(&Message::Order(Order::Leave { code: 2 }), b"\x01O\x07\x02");
        check(&Message::Ping { token: 1 }, b"\x01?\x01\0\0\0");
        let at = Tick::new(2);
        check(
            &Message::Pong { token: 1, at },
            b"\x01!\x01\0\0\0\x02\0\0\0\0\0\0\0",
        );
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
            progress: Progress {
                elapsed: Nanos::new(1),
                jobs_running: 2,
                jobs_ended: 3,
                ios: PerDirection::new(4, 5, 6),
                bytes: PerDirection::new(7, 8, 9),
            },
        });
        let mut bytes = vec![VERSION, b'R', 5];
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
        refused(&failed(b"\xff"), &format!("{place} 71: text: {text}"));
        refused(&failed(b"\x07"), &format!("{place} 71: text: {text}"));
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
