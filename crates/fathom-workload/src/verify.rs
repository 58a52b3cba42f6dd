//! Stamping of written blocks, and their verification.
//!
//! An op is stamped in intervals, each with a header, the checksum of its payload, and the payload;
//! `header.rs` has the layouts, which are those of fio, so that each program reads what the other
//! wrote. With `verify_offset`, header and checksum change places with the bytes there, after the
//! checksum is computed and before it is checked:
//!
//! ```text
//! computed   [header│sum│payload ─────────────────────────]
//! written    [ bytes X  │payload ──│header│sum│── payload ]   X: the payload that was there
//! ```
//!
//! A pattern starts over with each block (the smallest unit of the job's ops), not with each
//! header, as in fio. `Pattern` has no header: every byte of a block is the pattern's.

mod check;
mod contended;
mod dry_run_map;
mod entries;
mod error;
mod expected;
mod generation;
mod generation_map;
mod header;
mod layout;
mod map_layout;
#[cfg(test)]
mod map_tests;
mod mismatches;
mod state;
mod synced;
#[cfg(test)]
mod tests;
mod written;

use std::borrow::Cow;

use fathom_checksum::{CHECKSUM_BYTES_MAX, Checksum, HeaderLayout, PATTERN_HEADER};
use fathom_core::{Xoshiro256, stream_seed};

use crate::buffers::repeat;
use crate::config::{SizeChoice, VerifyConfig, VerifyMethod};
use layout::Layout;

pub use check::{Check, Checker};
pub(crate) use check::{Checks, ChecksLost};
pub(crate) use dry_run_map::{DryRunChange, DryRunMap};
pub use entries::EntryMemory;
pub use error::{Mismatch, VerifyError};
pub use expected::Expected;
pub use generation::Generation;
pub use generation_map::{Change, Content, GenerationMap, KeptMemory};
pub use header::Header;
pub use layout::HeaderUnfit;
pub use map_layout::{MapLayout, map_layout};
pub use mismatches::{CheckedBlocks, DumpedBlock, FoundMismatch, Mismatches};
pub use state::{FileState, StateError, VerifyState};
pub use synced::SyncNumber;
pub(crate) use written::{LoggedWrite, ReadOrder, WrittenLog};

/// Encoder and decoder of verified blocks: stamps the buffers of writes, checks those of reads.
///
/// It holds no state of a run, so one verifier serves any number of blocks. Neither direction
/// allocates, but for a pattern that contains offsets.
#[derive(Clone, Debug)]
pub struct Verifier {
    method: VerifyMethod,
    /// Checksum and header; `None`: there are no headers.
    checksum: Option<&'static Checksum>,
    /// Empty where the payload is random.
    pattern: Box<[u8]>,
    /// Positions in the pattern of the block's offset, eight bytes each.
    offsets: Box<[usize]>,
    layout: Layout,
    thread: u16,
    seed: u64,
    checks_sequence: bool,
    checks_seed: bool,
}

/// Values in the headers of one op.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// First byte in the file.
    pub offset: u64,
    /// Sequence number of the write in its job.
    pub sequence: u64,
    /// Time of the write.
    pub time_ns: u64,
}

impl Verifier {
    /// Creates the verifier of a job that writes blocks of these sizes.
    ///
    /// # Errors
    /// The blocks are too small for a header, or have no room for it at `verify_offset`.
    pub fn new(config: &VerifyConfig, writes: &SizeChoice, seed: u64) -> Result<Self, HeaderUnfit> {
        let checksum = match config.method {
            VerifyMethod::Checksum(checksum) => Some(checksum),
            VerifyMethod::PatternHeader => Some(&PATTERN_HEADER),
            VerifyMethod::Pattern | VerifyMethod::Null => None,
        };
        let compares = config.method.compares_pattern();
        let pattern = match &config.pattern {
            Some(pattern) => pattern.clone(),
            None if compares => vec![0],
            None => Vec::new(),
        };
        Ok(Self {
            method: config.method,
            checksum,
            pattern: pattern.into_boxed_slice(),
            offsets: config.pattern_offsets.clone().into_boxed_slice(),
            layout: Layout::new(config, checksum, writes)?,
            thread: config.thread,
            seed,
            checks_sequence: config.checks_sequence,
            checks_seed: config.checks_seed,
        })
    }

    /// Returns a lower bound on the length of the job's ops.
    pub(crate) const fn smallest(&self) -> u32 {
        self.layout.unit
    }

    /// Returns the bytes from one header to the next.
    #[must_use]
    pub const fn interval(&self) -> u32 {
        self.layout.interval
    }

    /// Returns whether an interval does not tell what its bytes should be: its block's pattern goes
    /// on in it, from a place that only the write's offset determines.
    pub(crate) fn depends_on_start(&self) -> bool {
        let Layout {
            unit,
            restart,
            interval,
            ..
        } = self.layout;
        let continues = interval < unit && !interval.is_multiple_of(restart);
        let whole = |bytes: u32| (bytes as usize).is_multiple_of(self.pattern.len());
        let is_alike = self.offsets.is_empty() && whole(interval) && whole(restart);
        self.method.compares_pattern() && continues && !is_alike
    }

    /// Returns the bytes from the start of an op after which the expected content starts over: the
    /// interval, or all the blocks through which a pattern goes on.
    #[must_use]
    pub fn period(&self) -> u32 {
        match self.depends_on_start() {
            true => self.layout.unit,
            false => self.layout.interval,
        }
    }

    /// Returns the generation of the blocks of a write.
    #[must_use]
    pub const fn generation(&self, stamp: &Stamp) -> Generation {
        Generation::new(stamp.time_ns, stamp.sequence, self.thread)
    }

    /// Returns whether it fills the buffers of writes; otherwise they keep what they have.
    pub(crate) fn fills(&self) -> bool {
        self.method != VerifyMethod::Null || !self.pattern.is_empty()
    }

    /// Returns offset and length of each interval of a read, as [`check`](Self::check) asks for
    /// them.
    pub(crate) fn intervals(
        &self,
        offset: u64,
        length: usize,
    ) -> impl Iterator<Item = (u64, u32)> + use<> {
        let (unit, interval) = (self.layout.unit as usize, self.layout.interval as usize);
        (0..length).step_by(unit).flat_map(move |from| {
            let to = length.min(from + unit);
            let starts = (from..to).step_by(interval);
            starts.map(move |at| {
                let length = u32::try_from(interval.min(to - at)).unwrap_or(u32::MAX);
                (offset + at as u64, length)
            })
        })
    }

    /// Returns whether a read need be looked at.
    pub(crate) fn checks(&self) -> bool {
        self.method != VerifyMethod::Null
    }

    /// Fills the buffer of a write.
    pub fn stamp(&self, buffer: &mut [u8], stamp: &Stamp) {
        if !self.fills() {
            return;
        }
        let unit = self.layout.unit as usize;
        for (at, unit) in (stamp.offset..).step_by(unit).zip(buffer.chunks_mut(unit)) {
            if !self.pattern.is_empty() {
                self.fill_pattern(at, unit);
            }
            let interval = self.layout.interval as usize;
            for (offset, block) in (at..).step_by(interval).zip(unit.chunks_mut(interval)) {
                let seed = self.seed_of(offset, stamp.sequence);
                if self.pattern.is_empty() {
                    Xoshiro256::new(seed).fill(block);
                }
                if let Some(checksum) = self.checksum {
                    self.put_header(checksum, block, seed, &Stamp { offset, ..*stamp });
                }
            }
        }
    }

    /// Checks the buffer of a read at `offset`; `expected` returns what must be in the block of
    /// this length at this offset. The buffer is unchanged afterwards.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn check(
        &self,
        buffer: &mut [u8],
        offset: u64,
        mut expected: impl FnMut(u64, u32) -> Expected,
    ) -> Result<(), VerifyError> {
        if !self.checks() {
            return Ok(());
        }
        let request = (offset, buffer.len() as u64);
        let unit = self.layout.unit as usize;
        for (at, unit) in (offset..).step_by(unit).zip(buffer.chunks_mut(unit)) {
            let interval = self.layout.interval as usize;
            for (index, block) in unit.chunks_mut(interval).enumerate() {
                let phase = index * interval;
                let offset = at + phase as u64;
                let expected = expected(offset, length_of(block));
                self.check_block(block, (at, phase), &expected)
                    .map_err(|mismatch| VerifyError {
                        found: self.layout.header_of(block),
                        mismatch,
                        offset,
                        length: block.len() as u64,
                        request_offset: request.0,
                        request_length: request.1,
                    })?;
            }
        }
        Ok(())
    }

    /// Checks one interval; `place` is the offset of its block, and its position there.
    fn check_block(
        &self,
        block: &mut [u8],
        place: (u64, usize),
        expected: &Expected,
    ) -> Result<(), Mismatch> {
        let offset = place.0 + place.1 as u64;
        match expected {
            Expected::Anything => return Ok(()),
            Expected::Zeros => return check_zeros(block),
            _ => {}
        }
        let Some(checksum) = self.checksum else {
            return self.check_pattern(block, 0, place);
        };
        if !self.layout.has_header(block.len()) {
            return Ok(());
        }
        let header = self.check_header(checksum, block, offset, expected)?;
        let start = checksum.payload_start(header.layout);
        self.layout.swap(block, start);
        let checked = match self.method {
            VerifyMethod::PatternHeader => self.check_pattern(block, start, place),
            _ => check_payload(checksum, header.layout, block),
        };
        self.layout.swap(block, start);
        checked.and_then(
            |()| match expected.allows(&header) || !self.checks_sequence {
                true => Ok(()),
                false => Err(Mismatch::Outdated {
                    time_ns: header.time_ns,
                    sequence: header.sequence,
                    thread: header.thread,
                }),
            },
        )
    }

    /// Returns the header of a block if it is the one expected.
    fn check_header(
        &self,
        checksum: &Checksum,
        block: &[u8],
        offset: u64,
        expected: &Expected,
    ) -> Result<Header, Mismatch> {
        let same = |what, got, want| match got == want {
            true => Ok(()),
            false => Err(Mismatch::Header { what, got, want }),
        };
        let bytes = &block[self.layout.offset as usize..];
        let header = Header::decode(bytes)?;
        let start = checksum.payload_start(header.layout);
        if !self.layout.has_room(start, block.len()) {
            return Err(Mismatch::unknown_version(bytes));
        }
        same("length", u64::from(header.length), block.len() as u64)?;
        same("offset", header.offset, offset)?;
        if let (Some(sequence), true) = (expected.sequence(), self.checks_sequence) {
            let want = match header.layout {
                HeaderLayout::Fio3_42 => sequence,
                HeaderLayout::Fio3_33 => sequence & 0xffff,
            };
            same("numberio", header.sequence, want)?;
        }
        if let (Some(sequence), true) = (expected.sequence(), self.checks_seed) {
            same("rand_seed", header.seed, self.seed_of(offset, sequence))?;
        }
        Header::check_crc(bytes, header.layout)?;
        let wanted = u64::from(checksum.header_id);
        same("verify type", u64::from(header.checksum), wanted)?;
        Ok(header)
    }

    fn put_header(&self, checksum: &Checksum, block: &mut [u8], seed: u64, stamp: &Stamp) {
        // A rest too small for a header stays bare; ops are whole intervals, so there is none.
        if !self.layout.has_header(block.len()) {
            return;
        }
        let header = Header {
            layout: self.layout.header,
            checksum: checksum.header_id,
            length: length_of(block),
            seed,
            offset: stamp.offset,
            time_ns: stamp.time_ns,
            sequence: stamp.sequence,
            thread: self.thread,
        };
        let start = checksum.payload_start(header.layout);
        let (head, payload) = block.split_at_mut(start);
        header.put(head);
        let place = &mut head[header.layout.bytes()..];
        checksum.digest_under(header.layout)(payload, place);
        self.layout.swap(block, start);
    }

    /// Returns the seed in the header of a block: that of its random payload, a function of the
    /// job's seed, the write and the offset.
    fn seed_of(&self, offset: u64, sequence: u64) -> u64 {
        match self.pattern.is_empty() {
            true => stream_seed(stream_seed(self.seed, sequence), offset),
            // As in fio, which has no seed for a pattern.
            false => 0,
        }
    }

    /// Fills the block at this offset, or the front of it.
    fn fill_pattern(&self, offset: u64, block: &mut [u8]) {
        let restart = self.layout.restart as usize;
        let pieces = (offset..).step_by(restart).zip(block.chunks_mut(restart));
        for (at, piece) in pieces {
            repeat(&self.pattern_at(at), piece);
        }
    }

    /// Checks an interval from the byte `start` on.
    fn check_pattern(
        &self,
        interval: &[u8],
        start: usize,
        (offset, phase): (u64, usize),
    ) -> Result<(), Mismatch> {
        let restart = self.layout.restart as usize;
        let mut from = start;
        while from < interval.len() {
            let position = (phase + from) % restart;
            let to = interval.len().min(from + restart - position);
            let begin = offset + (phase + from - position) as u64;
            check_piece(&interval[..to], from, &self.pattern_at(begin), position)?;
            from = to;
        }
        Ok(())
    }

    /// Returns the pattern that begins at this offset.
    fn pattern_at(&self, offset: u64) -> Cow<'_, [u8]> {
        let mut pattern = Cow::Borrowed(&self.pattern[..]);
        for &place in &self.offsets {
            if let Some(bytes) = pattern.to_mut().get_mut(place..place + 8) {
                bytes.copy_from_slice(&offset.to_le_bytes());
            }
        }
        pattern
    }
}

/// Returns the length of a block; cannot be cut, for it is at most the interval.
fn length_of(block: &[u8]) -> u32 {
    u32::try_from(block.len()).unwrap_or(u32::MAX)
}

fn check_zeros(block: &[u8]) -> Result<(), Mismatch> {
    match block.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(Mismatch::NotZero { at, got: block[at] }),
    }
}

fn check_payload(
    checksum: &'static Checksum,
    layout: HeaderLayout,
    block: &[u8],
) -> Result<(), Mismatch> {
    let (head, payload) = block.split_at(checksum.payload_start(layout));
    let want = &head[layout.bytes()..];
    if checksum.matches(layout, payload, want) {
        return Ok(());
    }
    let mut buffer = [0; CHECKSUM_BYTES_MAX];
    let got = &mut buffer[..checksum.bytes];
    checksum.digest_under(layout)(payload, got);
    Err(Mismatch::Payload {
        checksum,
        got: Box::from(&*got),
        want: Box::from(want),
    })
}

/// Compares the bytes of a block from `start` on with a pattern, from its byte `position` on.
fn check_piece(
    block: &[u8],
    start: usize,
    pattern: &[u8],
    position: usize,
) -> Result<(), Mismatch> {
    let data = &block[start..];
    let want = |index: usize| pattern[(position + index) % pattern.len()];
    let period = pattern.len().min(data.len());
    let differs = |&index: &usize| data[index] != want(index);
    let wrong = (0..period).find(differs);
    // Once the first period is right, the rest is if it repeats the bytes one period earlier: one
    // comparison of memory instead of many short ones.
    let repeats = || data[period..] == data[..data.len() - period];
    let wrong = match wrong {
        None if !repeats() => (period..data.len()).find(differs),
        wrong => wrong,
    };
    match wrong {
        None => Ok(()),
        Some(index) => Err(Mismatch::Pattern {
            at: start + index,
            got: data[index],
            want: want(index),
        }),
    }
}
