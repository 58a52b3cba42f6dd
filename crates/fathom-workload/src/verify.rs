//! Writing what can be recognised, and recognising it.
//!
//! An op is stamped in blocks of one interval, each with a header, the checksum of its payload, and
//! the payload. All numbers are little-endian; the layout is that of fio 3.42, so that each program
//! reads what the other wrote:
//!
//! ```text
//!  0  magic 0xacca            2  version 0x81         3  method (crc32c 5, md5 2)
//!  4  length of the block     8  seed of the payload 16  offset in the file
//! 24  seconds, 28 nanoseconds of the write           32  the write's number in its job
//! 40  number of the job      42  zero                44  crc32c of bytes 0..44
//! 48  checksum: crc32c 4 bytes, md5 16               then the payload
//! ```
//!
//! fio leaves out the final inversion of CRC-32C; so do we. `Pattern` has no header: every byte of
//! a block is the pattern's, which begins anew with each block.

mod error;
mod written;

use fathom_core::{Xoshiro256, stream_seed};
use md5::{Digest, Md5};

use crate::buffers::repeat;
use crate::config::{SizeChoice, VerifyConfig, VerifyMethod};

pub use error::{Checksum, IntervalTooSmall, Mismatch, VerifyError};
pub(crate) use written::{Written, WrittenLog};

/// Stamps what is written and checks what is read.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    method: VerifyMethod,
    /// Empty where the payload is random.
    pattern: Box<[u8]>,
    /// Bytes from one header to the next; room for a header and a checksum.
    interval: u32,
    thread: u16,
    seed: u64,
}

/// What the headers of one op say beside the obvious.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// First byte in the file.
    pub(crate) offset: u64,
    /// The write's number in its job.
    pub(crate) sequence: u64,
    /// When.
    pub(crate) time_ns: u64,
}

impl Verifier {
    /// A verifier for a job that writes blocks of these sizes.
    ///
    /// # Errors
    /// The blocks are too small for a header.
    pub(crate) fn new(
        config: &VerifyConfig,
        writes: &SizeChoice,
        seed: u64,
    ) -> Result<Self, IntervalTooSmall> {
        let needed = match config.method {
            VerifyMethod::Pattern => 1,
            VerifyMethod::Crc32c | VerifyMethod::Md5 => payload_start(config.method) + 1,
        };
        let interval = interval_of(writes);
        if (interval as usize) < needed {
            return Err(IntervalTooSmall { interval, needed });
        }
        let pattern = match (&config.pattern, config.method) {
            (Some(pattern), _) => pattern.clone(),
            (None, VerifyMethod::Pattern) => vec![0],
            (None, _) => Vec::new(),
        };
        Ok(Self {
            method: config.method,
            pattern: pattern.into_boxed_slice(),
            interval,
            thread: config.thread,
            seed,
        })
    }

    /// No op that this verifier was made for is shorter.
    pub(crate) const fn smallest(&self) -> u32 {
        self.interval
    }

    /// Fills the buffer of a write.
    pub(crate) fn stamp(&self, buffer: &mut [u8], stamp: &Stamp) {
        let seed = stream_seed(self.seed, stamp.sequence);
        for (index, block) in buffer.chunks_mut(self.interval as usize).enumerate() {
            let seed = seed.wrapping_add(index as u64);
            if self.pattern.is_empty() {
                Xoshiro256::new(seed).fill(block);
            } else {
                repeat(&self.pattern, block);
            }
            if self.method != VerifyMethod::Pattern {
                let offset = stamp.offset + index as u64 * u64::from(self.interval);
                self.put_header(block, seed, &Stamp { offset, ..*stamp });
            }
        }
    }

    /// Checks the buffer of a read at `offset`; `sequence`: the number of the write whose data
    /// must be there, where that is known.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub(crate) fn check(
        &self,
        buffer: &[u8],
        offset: u64,
        sequence: Option<u64>,
    ) -> Result<(), VerifyError> {
        for (index, block) in buffer.chunks(self.interval as usize).enumerate() {
            let at = offset + index as u64 * u64::from(self.interval);
            let checked = match self.method {
                VerifyMethod::Pattern => self.check_pattern(block),
                VerifyMethod::Crc32c | VerifyMethod::Md5 => self
                    .check_header(block, at, sequence)
                    .and_then(|()| self.check_payload(block)),
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

    fn put_header(&self, block: &mut [u8], seed: u64, stamp: &Stamp) {
        let start = payload_start(self.method);
        // A rest too small for a header stays bare; ops are whole intervals, so there is none.
        if block.len() <= start {
            return;
        }
        let length = block.len() as u64;
        put(block, 0, &MAGIC.to_le_bytes());
        put(block, 2, &[VERSION, number_of(self.method)]);
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
        let own = crc(&block[..44]);
        put(block, 44, &own.to_le_bytes());
        let checksum = Checksum::of(self.method, &block[start..]);
        put(block, HEADER, checksum.bytes());
    }

    fn check_header(
        &self,
        block: &[u8],
        offset: u64,
        sequence: Option<u64>,
    ) -> Result<(), Mismatch> {
        if block.len() <= payload_start(self.method) {
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
        let (got, want) = (number(block, 44, 4), u64::from(crc(&block[..44])));
        if got != want {
            return Err(Mismatch::HeaderChecksum { got, want });
        }
        same(
            "verify type",
            number(block, 3, 1),
            u64::from(number_of(self.method)),
        )
    }

    fn check_payload(&self, block: &[u8]) -> Result<(), Mismatch> {
        let start = payload_start(self.method);
        if block.len() <= start {
            return Ok(());
        }
        let got = Checksum::of(self.method, &block[start..]);
        let want = Checksum::read(self.method, &block[HEADER..start]);
        if got == want {
            Ok(())
        } else {
            Err(Mismatch::Payload { got, want })
        }
    }

    fn check_pattern(&self, block: &[u8]) -> Result<(), Mismatch> {
        let pattern = &self.pattern[..];
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
}

impl Checksum {
    /// The checksum of a payload.
    fn of(method: VerifyMethod, payload: &[u8]) -> Self {
        match method {
            VerifyMethod::Md5 => Self::Md5(Md5::digest(payload).into()),
            VerifyMethod::Crc32c | VerifyMethod::Pattern => {
                Self::Crc32c(crc(payload).to_le_bytes())
            }
        }
    }

    /// The checksum that a block holds.
    fn read(method: VerifyMethod, bytes: &[u8]) -> Self {
        let mut md5 = [0; 16];
        let mut crc = [0; 4];
        match method {
            VerifyMethod::Md5 => {
                md5.copy_from_slice(bytes);
                Self::Md5(md5)
            }
            VerifyMethod::Crc32c | VerifyMethod::Pattern => {
                crc.copy_from_slice(bytes);
                Self::Crc32c(crc)
            }
        }
    }
}

/// The longest distance that every block's length is a multiple of.
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
        // Rounded down to multiples of the smallest.
        SizeChoice::Split(sizes) => sizes
            .iter()
            .filter(|&&(_, share)| share > 0)
            .map(|&(size, _)| size)
            .min()
            .unwrap_or(0),
    }
}

/// Where the payload begins.
const fn payload_start(method: VerifyMethod) -> usize {
    match method {
        VerifyMethod::Crc32c => HEADER + 4,
        VerifyMethod::Md5 => HEADER + 16,
        VerifyMethod::Pattern => 0,
    }
}

/// The method's number in the header.
const fn number_of(method: VerifyMethod) -> u8 {
    match method {
        VerifyMethod::Md5 => 2,
        VerifyMethod::Crc32c => 5,
        VerifyMethod::Pattern => 18,
    }
}

/// CRC-32C without its final inversion.
fn crc(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

fn put(block: &mut [u8], at: usize, bytes: &[u8]) {
    block[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The little-endian number of `count` bytes, at most 8.
fn number(block: &[u8], at: usize, count: usize) -> u64 {
    block[at..at + count]
        .iter()
        .rev()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

/// Length of the header, without the checksum.
const HEADER: usize = 48;
const MAGIC: u16 = 0xacca;
const VERSION: u8 = 0x81;

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: SizeChoice = SizeChoice::Fixed(4096);

    fn verifier(method: VerifyMethod, pattern: Option<&[u8]>) -> Verifier {
        let pattern = pattern.map(<[u8]>::to_vec);
        let config = VerifyConfig {
            method,
            pattern,
            read_back: true,
            thread: 3,
        };
        Verifier::new(&config, &SIZES, 0x89).unwrap()
    }

    /// Two blocks, written by the job's write number 7 at 12 KiB.
    fn written(verifier: &Verifier) -> Vec<u8> {
        let mut buffer = vec![0xff; 8192];
        let stamp = Stamp {
            offset: 12_288,
            sequence: 7,
            time_ns: 5_000_000_009,
        };
        verifier.stamp(&mut buffer, &stamp);
        buffer
    }

    #[test]
    fn what_was_stamped_is_recognised() {
        for pattern in [None, Some(&b"abc"[..])] {
            for method in [
                VerifyMethod::Crc32c,
                VerifyMethod::Md5,
                VerifyMethod::Pattern,
            ] {
                let verifier = verifier(method, pattern);
                let buffer = written(&verifier);
                assert_eq!(verifier.check(&buffer, 12_288, Some(7)), Ok(()));
                assert_eq!(verifier.check(&buffer[4096..], 16_384, None), Ok(()));
            }
        }
    }

    #[test]
    fn the_header_is_laid_out_as_in_fio() {
        let buffer = written(&verifier(VerifyMethod::Crc32c, Some(&[0xde, 0xad])));
        let second = &buffer[4096..];
        assert_eq!(second[..8], [0xca, 0xac, 0x81, 5, 0, 16, 0, 0]);
        assert_eq!(second[16..24], 16_384u64.to_le_bytes());
        assert_eq!(second[24..32], [5, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(second[32..44], [7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(second[44..48], crc(&second[..44]).to_le_bytes());
        assert_eq!(second[48..52], crc(&second[52..]).to_le_bytes());
        assert!(
            second[52..]
                .iter()
                .zip([0xde, 0xad].iter().cycle())
                .all(|(a, b)| a == b)
        );
    }

    /// The header and the first payload bytes of an op that fio 3.33 wrote have these checksums:
    /// CRC-32C with the inversion of the initial value but not of the result.
    #[test]
    fn the_checksum_is_not_inverted_at_the_end() {
        // The check value of CRC-32C is 0xe3069283 for the digits 1 to 9.
        assert_eq!(crc(b"123456789"), !0xe306_9283);
    }

    #[test]
    fn every_damaged_byte_is_found() {
        for method in [
            VerifyMethod::Crc32c,
            VerifyMethod::Md5,
            VerifyMethod::Pattern,
        ] {
            let verifier = verifier(method, Some(b"xyz"));
            let good = written(&verifier);
            for at in (0..80).chain([4095, 4096, 4140, 8191]) {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                let error = verifier.check(&bad, 12_288, Some(7)).unwrap_err();
                assert_eq!(error.offset, 12_288 + (at as u64 & !4095), "byte {at}");
                assert_eq!((error.request_offset, error.request_length), (12_288, 8192));
            }
        }
    }

    #[track_caller]
    fn check_message(method: VerifyMethod, at: usize, byte: u8, sequence: u64, want: &str) {
        let verifier = verifier(method, Some(&[0xde, 0xad, 0xbe, 0xef]));
        let mut buffer = written(&verifier);
        buffer[at] = byte;
        let error = verifier.check(&buffer, 12_288, Some(sequence)).unwrap_err();
        let place =
            "at file V offset 12288, length 4096 (requested block: offset=12288, length=8192)";
        assert_eq!(error.describe("V"), format!("{want} {place}"));
        assert!(!error.to_string().contains("file"));
    }

    #[test]
    fn the_messages_are_those_of_fio() {
        let crc = VerifyMethod::Crc32c;
        check_message(crc, 0, 0, 7, "verify: bad magic header ac00, wanted acca");
        check_message(crc, 2, 1, 7, "verify: bad header version 1, wanted 129");
        check_message(crc, 6, 1, 7, "verify: bad header length 69632, wanted 4096");
        check_message(
            crc,
            18,
            1,
            7,
            "verify: bad header offset 77824, wanted 12288",
        );
        check_message(crc, 63, 0xef, 8, "verify: bad header numberio 7, wanted 8");
        let pattern =
            "pattern: verify failed (got '7a', wanted 'de', bad bits 3, block offset 904)";
        check_message(VerifyMethod::Pattern, 904, b'z', 7, pattern);
    }

    #[test]
    fn another_methods_block_is_refused() {
        let buffer = written(&verifier(VerifyMethod::Md5, None));
        let error = verifier(VerifyMethod::Crc32c, None)
            .check(&buffer, 12_288, None)
            .unwrap_err();
        let want = Mismatch::Header {
            what: "verify type",
            got: 2,
            want: 5,
        };
        assert_eq!(error.mismatch, want);
    }

    #[test]
    fn the_interval_divides_every_size() {
        let range = |min, max| interval_of(&SizeChoice::Range { min, max });
        assert_eq!(range(4096, 16_384), 4096);
        assert_eq!(range(3072, 8192), 1024);
        assert_eq!(
            interval_of(&SizeChoice::Split(vec![(9, 0), (8192, 40), (4096, 60)])),
            4096
        );
    }

    #[test]
    fn blocks_too_small_for_a_header_are_refused() {
        let with = |method, size| {
            let config = VerifyConfig {
                method,
                pattern: None,
                read_back: true,
                thread: 1,
            };
            Verifier::new(&config, &SizeChoice::Fixed(size), 0).is_ok()
        };
        assert!(!with(VerifyMethod::Crc32c, 52) && with(VerifyMethod::Crc32c, 53));
        assert!(!with(VerifyMethod::Md5, 64) && with(VerifyMethod::Md5, 65));
        assert!(with(VerifyMethod::Pattern, 1));
    }
}
