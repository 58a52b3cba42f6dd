//! Compressible and repeated contents.
//!
//! A buffer is generated from a seed, so the same seed repeats a buffer, and no written data need
//! be kept:
//!
//! ```text
//! chunk          chunk          chunk
//! │random ░░░░░░│random ░░░░░░│random ░░░│     ░ zeros or the pattern: `percent` of each chunk
//! ```

use fathom_core::{SplitMix64, Xoshiro256, stream_seed};

use crate::buffers::repeat;
use crate::config::{BufferConfig, BufferFill, Compressible, Dedupe, Repeated};

/// Generator of buffers from seeds.
#[derive(Debug)]
pub(crate) struct Content {
    compress: Option<Compressible>,
    dedupe: Option<Sharing>,
    /// Seeds of new buffers.
    seeds: SplitMix64,
}

impl Content {
    /// `None` for plain content.
    pub(crate) fn new(config: &BufferConfig, seed: u64) -> Option<Self> {
        if config.compress.is_none() && config.dedupe.is_none() {
            return None;
        }
        Some(Self {
            compress: config.compress,
            dedupe: config.dedupe.map(|rule| Sharing::new(rule, seed)),
            seeds: SplitMix64::new(stream_seed(seed, SEEDS)),
        })
    }

    /// Fills the buffer of the next write.
    pub(crate) fn fill(&mut self, fixed: &BufferFill, buffer: &mut [u8]) {
        let seeds = &mut self.seeds;
        let seed = match &mut self.dedupe {
            Some(sharing) => sharing.next(seeds),
            None => seeds.next_u64(),
        };
        let mut random = Xoshiro256::new(seed);
        let Some(Compressible { percent, chunk }) = self.compress else {
            return match fixed {
                BufferFill::Random => random.fill(buffer),
                same => fill_fixed(same, buffer),
            };
        };
        let chunk = match chunk {
            0 => buffer.len().max(1),
            bytes => bytes as usize,
        };
        for piece in buffer.chunks_mut(chunk) {
            let easy = piece.len() * usize::from(percent.min(100)) / 100;
            let (hard, easy) = piece.split_at_mut(piece.len() - easy);
            random.fill(hard);
            fill_fixed(fixed, easy);
        }
    }
}

/// Fills the compressible part: with the pattern, or zeros.
fn fill_fixed(fixed: &BufferFill, buffer: &mut [u8]) {
    match fixed {
        BufferFill::Pattern(pattern) => repeat(pattern, buffer),
        BufferFill::Random | BufferFill::Zero => buffer.fill(0),
    }
}

/// Choice of buffers that repeat an earlier one: the requested number of each hundred, at random
/// positions.
#[derive(Debug)]
struct Sharing {
    rule: Dedupe,
    random: Xoshiro256,
    /// Buffers left of the current hundred.
    left: u64,
    /// Repeats left among them.
    repeats: u64,
    /// Seed of the last new buffer.
    last: Option<u64>,
    /// Members of the set already written.
    members: u64,
}

impl Sharing {
    fn new(rule: Dedupe, seed: u64) -> Self {
        Self {
            rule,
            random: Xoshiro256::new(stream_seed(seed, CHOICE)),
            left: 0,
            repeats: 0,
            last: None,
            members: 0,
        }
    }

    /// Returns the seed of the next buffer.
    fn next(&mut self, seeds: &mut SplitMix64) -> u64 {
        if self.left == 0 {
            self.left = HUNDRED;
            self.repeats = u64::from(self.rule.percent).min(HUNDRED);
        }
        let repeats = self.random.below(self.left) < self.repeats;
        let known = match self.rule.of {
            Repeated::Last => self.last,
            Repeated::Set { seed, count } => {
                Some(stream_seed(seed, self.random.below(count.max(1))))
            }
        };
        self.left -= 1;
        if let (true, Some(known)) = (repeats, known) {
            self.repeats -= 1;
            return known;
        }
        // The first buffer has nothing to repeat: a later one makes up for it.
        self.repeats = self.repeats.min(self.left);
        let new = self.member().unwrap_or_else(|| seeds.next_u64());
        self.last = Some(new);
        new
    }

    /// Returns the next member of the set not written yet. Members come first: otherwise there
    /// would be fewer buffers to repeat than requested.
    fn member(&mut self) -> Option<u64> {
        let Repeated::Set { seed, count } = self.rule.of else {
            return None;
        };
        let member = self.members;
        self.members = (member + 1).min(count);
        (member < count).then(|| stream_seed(seed, member))
    }
}

const HUNDRED: u64 = 100;

/// Random streams of contents.
const SEEDS: u64 = 17;
const CHOICE: u64 = 18;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn content(compress: Option<Compressible>, dedupe: Option<Dedupe>) -> Content {
        let config = BufferConfig {
            fill: BufferFill::Random,
            refill: true,
            scramble: false,
            compress,
            dedupe,
        };
        Content::new(&config, 0x89).expect("content of its own")
    }

    #[track_caller]
    fn compresses(percent: u8, chunk: u32, length: usize, easy: &[(usize, usize)]) {
        let mut buffer = vec![1; length];
        let mut content = content(Some(Compressible { percent, chunk }), None);
        content.fill(&BufferFill::Random, &mut buffer);
        for &(from, to) in easy {
            assert!(
                buffer[from..to].iter().all(|&byte| byte == 0),
                "{from}..{to}"
            );
        }
        let zeros = buffer.iter().filter(|&&byte| byte == 0).count();
        let wanted: usize = easy.iter().map(|(from, to)| to - from).sum();
        // One random byte in 256 is zero.
        let by_chance = (length - wanted) / 256;
        assert!(
            zeros.abs_diff(wanted + by_chance) <= 8 + by_chance,
            "{zeros} {wanted}"
        );
    }

    #[test]
    fn the_end_of_each_chunk_compresses() {
        compresses(50, 512, 1024, &[(256, 512), (768, 1024)]);
        compresses(25, 0, 4096, &[(3072, 4096)]);
        compresses(70, 1000, 1500, &[(300, 1000), (1150, 1500)]);
        compresses(100, 512, 600, &[(0, 512), (512, 600)]);
        compresses(0, 512, 600, &[]);
    }

    #[test]
    fn the_pattern_replaces_zeros() {
        let mut buffer = [0; 8];
        let compress = Compressible {
            percent: 50,
            chunk: 4,
        };
        let pattern = BufferFill::Pattern(b"ab".to_vec());
        content(Some(compress), None).fill(&pattern, &mut buffer);
        assert_eq!((&buffer[2..4], &buffer[6..]), (&b"ab"[..], &b"ab"[..]));
        assert_ne!(buffer[..2], buffer[4..6]);
    }

    /// Returns how often each of `count` buffers was drawn.
    fn times(rule: Dedupe, count: usize) -> HashMap<Vec<u8>, usize> {
        let mut content = content(None, Some(rule));
        let mut times = HashMap::new();
        for _ in 0..count {
            let mut buffer = vec![0; 32];
            content.fill(&BufferFill::Random, &mut buffer);
            *times.entry(buffer).or_insert(0) += 1;
        }
        times
    }

    #[test]
    fn the_requested_share_repeats() {
        for percent in [0, 1, 30, 80, 99, 100] {
            let of = Repeated::Last;
            let times = times(Dedupe { percent, of }, 10_000);
            let repeated = 10_000 - times.len();
            let wanted = 100 * usize::from(percent);
            assert!(repeated.abs_diff(wanted) <= 1, "{percent} %: {repeated}");
        }
    }

    #[test]
    fn a_working_set_is_drawn_from_evenly() {
        let of = Repeated::Set { seed: 7, count: 10 };
        let times = times(Dedupe { percent: 40, of }, 10_000);
        let often: Vec<usize> = times.values().copied().filter(|&times| times > 1).collect();
        assert_eq!((times.len(), often.len()), (6000, 10));
        assert!(
            often.iter().all(|times| times.abs_diff(400) < 100),
            "{often:?}"
        );
        // Another job with the same set writes the same buffers.
        let other = Content::new(
            &BufferConfig {
                fill: BufferFill::Random,
                refill: true,
                scramble: false,
                compress: None,
                dedupe: Some(Dedupe { percent: 100, of }),
            },
            0x90,
        );
        let mut buffer = vec![0; 32];
        let mut other = other.expect("content of its own");
        other.fill(&BufferFill::Random, &mut buffer);
        assert!(times.contains_key(&buffer));
    }
}
