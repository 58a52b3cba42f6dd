//! Reading of messages: each field is checked, and named where it is wrong.

use fathom_core::{Nanos, PerDirection, Tick};

use crate::encoding::{CLOCK, MESSAGE_BYTES_MAX, ORDER, PING, PONG, REPORT, VERSION};
use crate::error::{MessageError, MessageErrorKind};
use crate::messages::{
    Checks, CommonTime, FILES_MAX, Message, Order, Progress, REFUSALS_MAX, Report, Stage, Start,
    StopReason,
};
use crate::text::TEXT_BYTES_MAX;
use crate::{FileKey, Text, Wave};

impl Message {
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
                more: input.flag("more")?,
            },
            PONG => Self::Pong {
                token: input.u32("token")?,
                at: Tick::new(input.u64("time")?),
            },
            CLOCK => Self::Clock(input.common_time()?),
            other => return Err(input.refuse("kind", MessageErrorKind::Unknown(other))),
        };
        match input.next == bytes.len() {
            true => Ok(message),
            false => Err(input.refuse("end", MessageErrorKind::TooLong)),
        }
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
        let wants_end = match self.flag("wave to end")? {
            true => Some(self.wave()?),
            false => None,
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
            wants_end,
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
                origin: Tick::new(self.u64("origin")?),
            }),
            5 => Order::EndWave(self.wave()?),
            6 => {
                let code = self.byte("reason")?;
                Order::Stop(self.reason(code)?)
            }
            7 => Order::Leave {
                code: self.byte("exit code")?,
            },
            8 => Order::AllEnded(self.wave()?),
            other => return Err(self.refuse("order", MessageErrorKind::Unknown(other))),
        })
    }

    fn common_time(&mut self) -> Result<CommonTime, MessageError> {
        Ok(CommonTime {
            at: Tick::new(self.u64("time")?),
            common_ns: self.u64("common time")?,
            bound: Nanos::new(self.u64("bound")?),
            drift_ppb: match self.flag("drift")? {
                true => Some(i64::from_le_bytes(self.take("drift")?)),
                false => None,
            },
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

    fn flag(&mut self, field: &'static str) -> Result<bool, MessageError> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.refuse(field, MessageErrorKind::Unknown(other))),
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
