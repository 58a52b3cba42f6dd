//! Places of the headers in an op.

use std::fmt;

use fathom_checksum::{Checksum, HeaderLayout};

use super::Header;
use crate::config::{SizeChoice, VerifyConfig};

/// Places of the headers in an op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bytes of a block: a pattern starts over with each; a multiple of `interval`.
    pub(super) unit: u32,
    /// Bytes of a block after which a pattern starts over; at most `unit`.
    pub(super) restart: u32,
    /// Bytes from one header to the next; room for a header and a checksum.
    pub(super) interval: u32,
    /// Place of header and checksum in each interval.
    pub(super) offset: u32,
    /// Arrangement of the fields of written headers.
    pub(super) header: HeaderLayout,
    /// Bytes of a written header and its checksum; 0 without headers.
    bytes: u32,
}

impl Layout {
    /// Places headers with this checksum into blocks of these sizes.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn new(
        config: &VerifyConfig,
        checksum: Option<&Checksum>,
        writes: &SizeChoice,
    ) -> Result<Self, HeaderUnfit> {
        let block = common_divisor(writes);
        let interval = match config.interval {
            // As in fio, an interval that does not divide the blocks is not used.
            Some(interval) if interval > 0 && block.is_multiple_of(interval) => interval,
            _ => block,
        };
        let header = config.layout;
        let bytes = checksum.map_or(0, |checksum| checksum.payload_start(header));
        // Cannot be cut: at most 48 + 128.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if interval <= bytes {
            let needed = bytes + 1;
            return Err(HeaderUnfit::TooSmall { interval, needed });
        }
        let offset = match checksum {
            Some(_) => config.header_offset,
            None => 0,
        };
        let fits = offset >= bytes && offset <= interval - bytes;
        if offset > 0 && !fits {
            return Err(HeaderUnfit::Offset {
                offset,
                bytes,
                interval,
            });
        }
        Ok(Self {
            unit: block,
            restart: match config.pattern_interval {
                0 => block,
                bytes => bytes.min(block),
            },
            interval,
            offset,
            header,
            bytes,
        })
    }

    /// Returns whether a block of this length, the last of an op, has a header.
    pub(super) const fn has_header(&self, length: usize) -> bool {
        length > self.bytes as usize && length >= (self.offset + self.bytes) as usize
    }

    /// Returns whether `bytes` of header and checksum, of any layout, and a payload fit into a
    /// block of this length.
    pub(super) const fn has_room(&self, bytes: usize, length: usize) -> bool {
        let offset = self.offset as usize;
        bytes < length && (offset == 0 || bytes <= offset && offset + bytes <= length)
    }

    /// Exchanges the first `bytes` of a block with those at the place of the header.
    pub(super) fn swap(&self, block: &mut [u8], bytes: usize) {
        if self.offset > 0 {
            let (first, second) = block.split_at_mut(self.offset as usize);
            first[..bytes].swap_with_slice(&mut second[..bytes]);
        }
    }

    /// Returns the header of a block if it is intact.
    pub(super) fn header_of(&self, block: &[u8]) -> Option<Header> {
        if self.bytes == 0 || !self.has_header(block.len()) {
            return None;
        }
        let bytes = &block[self.offset as usize..];
        let header = Header::decode(bytes).ok()?;
        Header::check_crc(bytes, header.layout).ok()?;
        Some(header)
    }
}

/// Returns the greatest common divisor of the block lengths.
pub(super) fn common_divisor(sizes: &SizeChoice) -> u32 {
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

/// Error for blocks without room for a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderUnfit {
    /// They are too small.
    TooSmall {
        /// Largest divisor of all block sizes, bytes.
        interval: u32,
        /// Bytes needed for the header, its checksum and one byte of payload.
        needed: u32,
    },
    /// There is no room at the place that `verify_offset` names.
    Offset {
        /// The place.
        offset: u32,
        /// Bytes of header and checksum.
        bytes: u32,
        /// Bytes from one header to the next.
        interval: u32,
    },
}

impl fmt::Display for HeaderUnfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { interval, needed } => write!(
                f,
                "verify needs blocks of at least {needed} B, and these come in {interval} B"
            ),
            Self::Offset {
                offset,
                bytes,
                interval,
            } if interval / 2 < *bytes => write!(
                f,
                "header and checksum of {bytes} B cannot change places at {offset} within \
                 {interval} B: {} B or more are needed",
                2 * bytes
            ),
            Self::Offset {
                offset,
                bytes,
                interval,
            } => write!(
                f,
                "header and checksum of {bytes} B cannot change places at {offset} within \
                 {interval} B: the offset must be from {bytes} to {}",
                interval - bytes
            ),
        }
    }
}

impl std::error::Error for HeaderUnfit {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_divides_every_size() {
        let range = |min, max| common_divisor(&SizeChoice::Range { min, max });
        assert_eq!(range(4096, 16_384), 4096);
        assert_eq!(range(3072, 8192), 1024);
        assert_eq!(
            common_divisor(&SizeChoice::Split(vec![(9, 0), (8192, 40), (4096, 60)])),
            4096
        );
    }
}
