//! Merging of traces: the records of each with new times, in one byte order.
//!
//! The first record of a trace is at time 0 of the merge. A trace that is repeated begins again at
//! the time of its last record.

use fathom_core::Nanos;

use crate::blktrace::{ByteOrder, RECORD_BYTES, TraceRecord};
use crate::error::{IologError, IologErrorKind, Place};
use crate::text::TIME_MAX;

/// One trace of a merge.
#[derive(Clone, Debug)]
pub struct MergeInput {
    log: String,
    scale: TimeScale,
    order: Option<ByteOrder>,
    /// Byte of the next record.
    at: u64,
    /// Time on the trace's clock of its first record.
    first: Option<Nanos>,
    /// Time of the last record since the first; never goes back.
    since: u64,
    /// Length of all earlier repetitions.
    before: u64,
    times_back: u64,
}

/// Factor of a trace's times: millionths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeScale(u64);

impl TimeScale {
    /// Times as recorded.
    pub const ONE: Self = Self(100_000_000);

    /// Creates a factor of `percent`; `None` unless it is from 0.000001 to 1,000,000.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked before"
    )]
    pub fn percent(percent: f64) -> Option<Self> {
        let valid = (0.000_001..=1e6).contains(&percent);
        valid.then(|| Self((percent * 1e6).round() as u64))
    }

    /// Scales a time; `None` beyond the latest.
    fn apply(self, time: u64) -> Option<Nanos> {
        let scaled = u128::from(time) * u128::from(self.0) / u128::from(Self::ONE.0);
        let scaled = u64::try_from(scaled).ok();
        scaled.filter(|&time| time <= TIME_MAX).map(Nanos::new)
    }
}

/// Record as the merge has it.
#[derive(Clone, Copy, Debug)]
pub struct MergedRecord {
    /// Time since the start of the merge.
    pub time: Nanos,
    /// Bytes that belong to the record and follow its fixed part.
    pub pdu_bytes: u16,
    fixed: [u8; RECORD_BYTES],
}

impl MergedRecord {
    /// Bytes of the fixed part.
    pub const BYTES: usize = RECORD_BYTES;

    /// Returns the fixed part, little-endian, of the record with this number.
    #[must_use]
    pub fn numbered(&self, sequence: u32) -> [u8; RECORD_BYTES] {
        let mut fixed = self.fixed;
        fixed[4..8].copy_from_slice(&sequence.to_le_bytes());
        fixed
    }
}

impl MergeInput {
    /// Creates a trace whose first record comes next; `log` is the name that its errors show.
    #[must_use]
    pub fn new(log: &str, scale: TimeScale) -> Self {
        Self {
            log: log.to_owned(),
            scale,
            order: None,
            at: 0,
            first: None,
            since: 0,
            before: 0,
            times_back: 0,
        }
    }

    /// Takes the fixed part of the next record. The caller passes over the bytes that follow.
    ///
    /// # Errors
    /// These bytes are not a trace, or the time is beyond any clock.
    pub fn record(&mut self, bytes: &[u8; RECORD_BYTES]) -> Result<MergedRecord, IologError> {
        let record = self.decode(bytes);
        let record = record.map_err(|kind| self.error(kind))?;
        self.at += RECORD_BYTES as u64 + u64::from(record.pdu_bytes);
        Ok(record)
    }

    fn decode(&mut self, bytes: &[u8; RECORD_BYTES]) -> Result<MergedRecord, IologErrorKind> {
        let order = self.order.or_else(|| ByteOrder::of(bytes));
        let order = order.ok_or(IologErrorKind::NotATrace)?;
        self.order = Some(order);
        let record = TraceRecord::decode(bytes, order)?;
        let first = *self.first.get_or_insert(record.time);
        let since = record.time.get().checked_sub(first.get());
        match since.filter(|&since| since >= self.since) {
            Some(since) => self.since = since,
            None => self.times_back += 1,
        }
        // Both are at most TIME_MAX, an eighth of what a u64 holds, as `before` is checked here.
        let time = self.scale.apply(self.before + self.since);
        let time = time.ok_or(IologErrorKind::TooLarge("time", TIME_MAX))?;
        Ok(MergedRecord {
            time,
            pdu_bytes: record.pdu_bytes,
            fixed: order.little_endian(bytes, time),
        })
    }

    /// Begins the next repetition, with the first record.
    ///
    /// # Errors
    /// All repetitions together are longer than any clock counts.
    pub fn repeat(&mut self) -> Result<(), IologError> {
        let before = self.before.checked_add(self.since);
        let before = before.filter(|&before| before <= TIME_MAX);
        let too_long = IologErrorKind::TooLarge("time", TIME_MAX);
        self.before = before.ok_or_else(|| self.error(too_long))?;
        (self.since, self.at) = (0, 0);
        Ok(())
    }

    /// Returns true if there was a record.
    #[must_use]
    pub const fn has_records(&self) -> bool {
        self.first.is_some()
    }

    /// Returns the number of records whose time was before that of the record above.
    #[must_use]
    pub const fn times_back(&self) -> u64 {
        self.times_back
    }

    /// Returns the byte at which the next record begins.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Returns an error at the next record.
    #[must_use]
    pub fn error(&self, kind: IologErrorKind) -> IologError {
        IologError {
            log: self.log.clone(),
            place: Place::Byte(self.at),
            kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Record of a read in either byte order.
    fn record(time: u64, big: bool) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let mut at = 0;
        let mut put = |value: u64, width: usize| {
            let (little, large) = (value.to_le_bytes(), value.to_be_bytes());
            let word = if big {
                &large[8 - width..]
            } else {
                &little[..width]
            };
            bytes[at..at + width].copy_from_slice(word);
            at += width;
        };
        for (value, width) in [
            (0x6561_7407, 4),
            (9, 4),
            (time, 8),
            (0x1234_5678_9abc, 8),
            (4096, 4),
            (0x11_0001, 4),
            (42, 4),
            (8 << 20 | 16, 4),
            (3, 4),
            (5, 2),
            (7, 2),
        ] {
            put(value, width);
        }
        bytes
    }

    #[test]
    fn both_byte_orders_become_one() {
        let read = |big| {
            let mut input = MergeInput::new("log", TimeScale::ONE);
            let first = input.record(&record(1_000, big)).expect("a record");
            let second = input.record(&record(1_700, big)).expect("a record");
            assert_eq!((first.time.get(), second.time.get()), (0, 700));
            assert_eq!((second.pdu_bytes, input.at()), (7, 2 * 55));
            second.numbered(9)
        };
        let mut want = record(700, false);
        assert_eq!(read(false), want);
        assert_eq!(read(true), want);
        want[4] = 2;
        let mut input = MergeInput::new("log", TimeScale::ONE);
        input.record(&record(0, true)).expect("a record");
        let numbered = input.record(&record(700, true)).expect("a record");
        assert_eq!(numbered.numbered(2), want);
    }

    #[test]
    fn times_are_scaled_and_repeated() {
        let half = TimeScale::percent(50.0).expect("a scale");
        let mut input = MergeInput::new("log", half);
        let time = |input: &mut MergeInput, at| {
            let record = input.record(&record(at, false)).expect("a record");
            record.time.get()
        };
        assert_eq!(time(&mut input, 100), 0);
        assert_eq!(time(&mut input, 500), 200);
        // It goes back: with the one before.
        assert_eq!(time(&mut input, 300), 200);
        assert_eq!(time(&mut input, 50), 200);
        assert_eq!(input.times_back(), 2);
        input.repeat().expect("short");
        assert_eq!(time(&mut input, 100), 200);
        assert_eq!(time(&mut input, 500), 400);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let mut input = MergeInput::new("log", TimeScale::ONE);
        let error = input.record(b"fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 ");
        let text = error.expect_err("a text").to_string();
        assert_eq!(text, "log: byte 0: not a binary blktrace");
        input.record(&record(0, false)).expect("a record");
        let late = input.record(&record(u64::MAX, false)).expect_err("late");
        assert!(late.to_string().starts_with("log: byte 55: time exceeds"));
        let magic = input.record(&[0; RECORD_BYTES]).expect_err("zeros");
        assert!(magic.to_string().contains("not a trace record"));
        let slow = TimeScale::percent(1e6).expect("a scale");
        let mut input = MergeInput::new("log", slow);
        input.record(&record(0, false)).expect("a record");
        input.record(&record(TIME_MAX, false)).expect_err("beyond");
    }

    #[test]
    fn scales_are_of_a_range() {
        assert_eq!(TimeScale::percent(100.0), Some(TimeScale::ONE));
        for bad in [0.0, -1.0, 1e7, f64::NAN, f64::INFINITY] {
            assert_eq!(TimeScale::percent(bad), None);
        }
    }
}
