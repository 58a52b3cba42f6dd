//! What written buffers hold.

use fathom_core::Xoshiro256;

use crate::config::{BufferConfig, BufferFill};

/// Fills buffers before they are written.
#[derive(Debug)]
pub(crate) struct Filler {
    config: BufferConfig,
    random: Xoshiro256,
}

impl Filler {
    /// A filler with a random stream of its own.
    pub(crate) fn new(config: BufferConfig, seed: u64) -> Self {
        Self { config, random: Xoshiro256::new(seed) }
    }

    /// Whether `refresh` does anything.
    pub(crate) fn changes(&self) -> bool {
        self.config.refill || self.config.scramble
    }

    /// Fills a buffer before the job starts.
    pub(crate) fn prepare(&mut self, buffer: &mut [u8]) {
        match &self.config.fill {
            BufferFill::Random => self.random.fill(buffer),
            BufferFill::Zero => buffer.fill(0),
            BufferFill::Pattern(pattern) => {
                buffer.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, want)| *byte = *want);
            }
        }
    }

    /// Makes a buffer ready for its next write, at `offset`, at `now_ns`.
    pub(crate) fn refresh(&mut self, buffer: &mut [u8], offset: u64, now_ns: u64) {
        if self.config.refill {
            self.prepare(buffer);
        }
        if self.config.scramble {
            for (index, chunk) in buffer.chunks_exact_mut(512).enumerate() {
                chunk[..8].copy_from_slice(&(offset + 512 * index as u64).to_le_bytes());
                chunk[504..].copy_from_slice(&now_ns.to_le_bytes());
            }
        }
    }
}
