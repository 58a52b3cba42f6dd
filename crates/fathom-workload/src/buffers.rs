//! Contents of written buffers.
//!
//! Buffers are filled once before the job starts; then each write changes a few bytes (`scramble`),
//! everything (`refill`), or nothing.

use fathom_core::{Xoshiro256, stream_seed};

use crate::config::{BufferConfig, BufferFill};
use crate::content::Content;

/// Fills buffers before they are written.
#[derive(Debug)]
pub(crate) struct Filler {
    config: BufferConfig,
    random: Xoshiro256,
    content: Option<Box<Content>>,
}

impl Filler {
    /// Creates a filler with its own random stream, derived from the job's seed.
    pub(crate) fn new(config: BufferConfig, seed: u64) -> Self {
        Self {
            content: Content::new(&config, seed).map(Box::new),
            config,
            random: Xoshiro256::new(stream_seed(seed, STREAM)),
        }
    }

    /// Returns whether `refresh` changes buffers under this configuration.
    pub(crate) const fn changes(config: &BufferConfig) -> bool {
        config.refill || config.scramble
    }

    /// Fills a buffer before the job starts.
    pub(crate) fn prepare(&mut self, buffer: &mut [u8]) {
        if let Some(content) = &mut self.content {
            return content.fill(&self.config.fill, buffer);
        }
        match &self.config.fill {
            BufferFill::Random => self.random.fill(buffer),
            BufferFill::Zero => buffer.fill(0),
            BufferFill::Pattern(pattern) => repeat(pattern, buffer),
        }
    }

    /// Makes a buffer ready for its next write, at `offset`, at `now_ns`. Scrambled, each 512
    /// bytes begin with their place in the file and end with the time, so that no two sectors
    /// are alike and no device can drop a write as one it has seen.
    #[inline]
    pub(crate) fn refresh(&mut self, buffer: &mut [u8], offset: u64, now_ns: u64) {
        if self.config.refill {
            self.prepare(buffer);
        }
        if self.config.scramble {
            scramble(buffer, offset, now_ns);
        }
    }
}

fn scramble(buffer: &mut [u8], offset: u64, now_ns: u64) {
    let now = now_ns.to_le_bytes();
    for (place, sector) in (offset..)
        .step_by(SECTOR)
        .zip(buffer.chunks_exact_mut(SECTOR))
    {
        sector[..8].copy_from_slice(&place.to_le_bytes());
        sector[SECTOR - 8..].copy_from_slice(&now);
    }
}

/// Fills a buffer with a pattern over and over, from its first byte. An empty pattern is zeros.
pub(crate) fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    let first = pattern.len().min(buffer.len());
    if first == 0 {
        buffer.fill(0);
        return;
    }
    buffer[..first].copy_from_slice(&pattern[..first]);
    // The filled part is a multiple of the pattern, so that copies stay aligned to it.
    let mut filled = first;
    while filled < buffer.len() {
        let more = filled.min(buffer.len() - filled);
        buffer.copy_within(..more, filled);
        filled += more;
    }
}

/// Size of a sector, in bytes.
const SECTOR: usize = 512;

/// Random stream of buffer contents; streams from 0 on belong to the pattern.
const STREAM: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn filler(fill: BufferFill, refill: bool, scramble: bool) -> Filler {
        Filler::new(
            BufferConfig {
                fill,
                refill,
                scramble,
                compress: None,
                dedupe: None,
            },
            0x89,
        )
    }

    #[test]
    fn a_pattern_repeats_from_the_first_byte_and_is_cut_at_the_end() {
        for (pattern, length) in [("abc", 0), ("abc", 2), ("abc", 3), ("abc", 1000), ("x", 7)] {
            let mut buffer = vec![0; length];
            repeat(pattern.as_bytes(), &mut buffer);
            let want: Vec<u8> = pattern.bytes().cycle().take(length).collect();
            assert_eq!(buffer, want);
        }
        let mut buffer = [1; 3];
        repeat(&[], &mut buffer);
        assert_eq!(buffer, [0; 3]);
    }

    #[test]
    fn a_scrambled_sector_has_its_offset_and_the_time() {
        let mut buffer = vec![0; 1300];
        filler(BufferFill::Zero, false, true).refresh(&mut buffer, 1 << 40, 77);
        assert_eq!(buffer[..8], (1u64 << 40).to_le_bytes());
        assert_eq!(buffer[512..520], ((1u64 << 40) + 512).to_le_bytes());
        assert_eq!(buffer[504..512], 77u64.to_le_bytes());
        assert_eq!(buffer[1016..1024], 77u64.to_le_bytes());
        // 1040 − 16 bytes of two sectors and the rest of a third are as they were.
        assert_eq!(buffer.iter().filter(|&&byte| byte != 0).count(), 2 + 2 + 1);
    }

    #[test]
    fn a_refill_is_new_and_without_it_nothing_changes() {
        let mut once = filler(BufferFill::Random, false, false);
        let mut anew = filler(BufferFill::Random, true, false);
        assert!(!Filler::changes(&once.config) && Filler::changes(&anew.config));
        let (mut a, mut b) = (vec![0; 512], vec![0; 512]);
        once.prepare(&mut a);
        anew.prepare(&mut b);
        assert_eq!(a, b);
        once.refresh(&mut a, 0, 0);
        assert_eq!(a, b);
        anew.refresh(&mut b, 0, 0);
        assert_ne!(a, b);
    }
}
