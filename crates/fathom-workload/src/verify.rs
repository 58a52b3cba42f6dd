//! Stamping of written blocks, and their verification.
//!
//! An op is stamped in blocks of one interval, each with a header, the checksum of its payload, and
//! the payload. All numbers are little-endian; the layout is that of fio 3.42, so that each program
//! reads what the other wrote:
//!
//! ```text
//!  0  magic 0xacca            2  version 0x81         3  number of the checksum
//!  4  length of the block     8  seed of the payload 16  offset in the file
//! 24  seconds, 28 nanoseconds of the write           32  the write's number in its job
//! 40  number of the job      42  zero                44  crc32c of bytes 0..44
//! 48  checksum, as fathom-checksum has it            then the payload
//! ```
//!
//! `Pattern` has no header: every byte of a block is the pattern's, which begins anew with each
//! block.

mod error;
#[cfg(test)]
mod tests;
mod written;

use std::borrow::Cow;

use fathom_checksum::{CHECKSUM_BYTES_MAX, Checksum, HEADER_BYTES, crc32c};
use fathom_core::{Xoshiro256, stream_seed};

use crate::buffers::repeat;
use crate::config::{SizeChoice, VerifyConfig, VerifyMethod};

pub use error::{IntervalTooSmall, Mismatch, VerifyError};
pub(crate) use written::{LoggedWrite, WrittenLog};

/// Encoder and decoder of verified blocks: stamps the buffers of writes, checks those of reads.
///
/// It holds no state of a run, so one verifier serves any number of blocks. Neither direction
/// allocates, but for a pattern that contains offsets.
#[derive(Clone, Debug)]
pub struct Verifier {
    /// `None`: every byte is the pattern's.
    checksum: Option<&'static Checksum>,
    /// Empty where the payload is random.
    pattern: Box<[u8]>,
    /// Positions in the pattern of the block's offset, eight bytes each.
    offsets: Box<[usize]>,
    /// Bytes from one header to the next; room for a header and a checksum.
    interval: u32,
    thread: u16,
    seed: u64,
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
    /// The blocks are too small for a header.
    pub fn new(
        config: &VerifyConfig,
        writes: &SizeChoice,
        seed: u64,
    ) -> Result<Self, IntervalTooSmall> {
        let checksum = match config.method {
            VerifyMethod::Checksum(checksum) => Some(checksum),
            VerifyMethod::Pattern => None,
        };
        let needed = checksum.map_or(0, Checksum::payload_start) + 1;
        let interval = interval_of(writes);
        if (interval as usize) < needed {
            return Err(IntervalTooSmall { interval, needed });
        }
        let pattern = match (&config.pattern, checksum) {
            (Some(pattern), _) => pattern.clone(),
            (None, None) => vec![0],
            (None, Some(_)) => Vec::new(),
        };
        Ok(Self {
            checksum,
            pattern: pattern.into_boxed_slice(),
            offsets: config.pattern_offsets.clone().into_boxed_slice(),
            interval,
            thread: config.thread,
            seed,
        })
    }

    /// Returns a lower bound on the length of the job's ops.
    pub(crate) const fn smallest(&self) -> u32 {
        self.interval
    }

    /// Fills the buffer of a write.
    pub fn stamp(&self, buffer: &mut [u8], stamp: &Stamp) {
        let seed = stream_seed(self.seed, stamp.sequence);
        for (index, block) in buffer.chunks_mut(self.interval as usize).enumerate() {
            let seed = seed.wrapping_add(index as u64);
            let offset = stamp.offset + index as u64 * u64::from(self.interval);
            if self.pattern.is_empty() {
                Xoshiro256::new(seed).fill(block);
            } else {
                repeat(&self.pattern_at(offset), block);
            }
            if let Some(checksum) = self.checksum {
                self.put_header(checksum, block, seed, &Stamp { offset, ..*stamp });
            }
        }
    }

    /// Checks the buffer of a read at `offset`; `sequence`: the number of the write whose data
    /// must be there, where that is known.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn check(
        &self,
        buffer: &[u8],
        offset: u64,
        sequence: Option<u64>,
    ) -> Result<(), VerifyError> {
        for (index, block) in buffer.chunks(self.interval as usize).enumerate() {
            let at = offset + index as u64 * u64::from(self.interval);
            let checked = match self.checksum {
                None => check_pattern(block, &self.pattern_at(at)),
                Some(checksum) => check_header(checksum, block, at, sequence)
                    .and_then(|()| check_payload(checksum, block)),
            };
            checked.map_err(|mismatch| VerifyError {
                mismatch,
                offset: at,
                length: block.len() as u64,
                request_offset: offset,
                request_length: buffer.len() as u64,
            })?;
        }
        Ok(())
    }

    fn put_header(&self, checksum: &Checksum, block: &mut [u8], seed: u64, stamp: &Stamp) {
        let start = checksum.payload_start();
        // A rest too small for a header stays bare; ops are whole intervals, so there is none.
        if block.len() <= start {
            return;
        }
        let length = block.len() as u64;
        put(block, 0, &MAGIC.to_le_bytes());
        put(block, 2, &[VERSION, checksum.header_id]);
        put(block, 4, &length.to_le_bytes()[..4]);
        put(block, 8, &seed.to_le_bytes());
        put(block, 16, &stamp.offset.to_le_bytes());
        put(
            block,
            24,
            &(stamp.time_ns / 1_000_000_000).to_le_bytes()[..4],
        );
        put(
            block,
            28,
            &(stamp.time_ns % 1_000_000_000).to_le_bytes()[..4],
        );
        put(block, 32, &stamp.sequence.to_le_bytes());
        put(block, 40, &self.thread.to_le_bytes());
        put(block, 42, &[0, 0]);
        let own = crc32c(&block[..44]);
        put(block, 44, &own.to_le_bytes());
        let (head, payload) = block.split_at_mut(start);
        (checksum.digest)(payload, &mut head[HEADER_BYTES..]);
    }

    /// Returns the pattern of the block at this offset.
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

fn check_header(
    checksum: &Checksum,
    block: &[u8],
    offset: u64,
    sequence: Option<u64>,
) -> Result<(), Mismatch> {
    if block.len() <= checksum.payload_start() {
        return Ok(());
    }
    let same = |what, got, want| {
        if got == want {
            Ok(())
        } else {
            Err(Mismatch::Header { what, got, want })
        }
    };
    let magic = number(block, 0, 2);
    if magic != u64::from(MAGIC) {
        return Err(Mismatch::Magic { got: magic });
    }
    same("version", number(block, 2, 1), u64::from(VERSION))?;
    same("length", number(block, 4, 4), block.len() as u64)?;
    same("offset", number(block, 16, 8), offset)?;
    if let Some(sequence) = sequence {
        same("numberio", number(block, 32, 8), sequence)?;
    }
    let (got, want) = (number(block, 44, 4), u64::from(crc32c(&block[..44])));
    if got != want {
        return Err(Mismatch::HeaderChecksum { got, want });
    }
    let id = u64::from(checksum.header_id);
    same("verify type", number(block, 3, 1), id)
}

fn check_payload(checksum: &'static Checksum, block: &[u8]) -> Result<(), Mismatch> {
    let start = checksum.payload_start();
    if block.len() <= start {
        return Ok(());
    }
    let want = &block[HEADER_BYTES..start];
    let mut buffer = [0; CHECKSUM_BYTES_MAX];
    let got = &mut buffer[..checksum.bytes];
    (checksum.digest)(&block[start..], got);
    if got == want {
        return Ok(());
    }
    Err(Mismatch::Payload {
        checksum,
        got: Box::from(&*got),
        want: Box::from(want),
    })
}

fn check_pattern(block: &[u8], pattern: &[u8]) -> Result<(), Mismatch> {
    for (index, part) in block.chunks(pattern.len()).enumerate() {
        if part == &pattern[..part.len()] {
            continue;
        }
        let wrong = part.iter().zip(pattern).position(|(got, want)| got != want);
        let place = wrong.unwrap_or(0);
        let at = index * pattern.len() + place;
        return Err(Mismatch::Pattern {
            at,
            got: part[place],
            want: pattern[place],
        });
    }
    Ok(())
}

/// Returns the greatest common divisor of the block lengths.
fn interval_of(sizes: &SizeChoice) -> u32 {
    match sizes {
        SizeChoice::Fixed(size) => *size,
        SizeChoice::Range { min, max } => {
            // What is cut is a multiple of the smallest; the largest may be none.
            let (mut a, mut b) = (*max, *min);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        }
        SizeChoice::Unaligned { .. } => 1,
        // Rounded down to multiples of the smallest.
        SizeChoice::Split(sizes) => sizes
            .iter()
            .filter(|&&(_, share)| share > 0)
            .map(|&(size, _)| size)
            .min()
            .unwrap_or(0),
    }
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Reads a little-endian number of `count` bytes, at most 8.
fn number(block: &[u8], at: usize, count: usize) -> u64 {
    block[at..at + count]
        .iter()
        .rev()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

const MAGIC: u16 = 0xacca;
const VERSION: u8 = 0x81;
