//! Kind of a file's content: composition of its blocks, and similarity between them.
//!
//! Random bytes are never the same in both programs, so contents are compared by kind: `zeros`,
//! `one value` (a pattern of at most eight bytes), or random bytes with a share of zeros or of one
//! value; and blocks that are the `same`, `scrambled` (alike but for a few bytes), all `new`, or
//! new in part (`repeating`).

use std::collections::{HashMap, HashSet};

/// Describes what a file written in blocks of `BLOCK` bytes holds.
pub(crate) fn kind(bytes: &[u8]) -> String {
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    if blocks.is_empty() {
        return "nothing".to_owned();
    }
    format!("{}, {}", substance(bytes), likeness(&blocks))
}

fn substance(bytes: &[u8]) -> String {
    let words: Vec<&[u8]> = bytes.chunks_exact(WORD).collect();
    let mut times: HashMap<&[u8], usize> = HashMap::new();
    words
        .iter()
        .for_each(|word| *times.entry(word).or_insert(0) += 1);
    let zeros = times.remove(&[0; WORD][..]).unwrap_or(0);
    let commonest = times.values().max().copied().unwrap_or(0);
    // A word of a repeated block occurs once per copy.
    let commonest = match commonest > bytes.len() / BLOCK {
        true => commonest,
        false => 0,
    };
    match [zeros, commonest].map(|count| quarters(count, words.len())) {
        [4, _] => "zeros".to_owned(),
        [_, 4] => "one value".to_owned(),
        [0, 0] => "random".to_owned(),
        [zeros, 0] => format!("{zeros}/4 zeros"),
        [_, value] => format!("{value}/4 one value"),
    }
}

fn likeness(blocks: &[&[u8]]) -> &'static str {
    let different = blocks.iter().collect::<HashSet<_>>().len();
    if different == 1 {
        return "same";
    }
    if different < blocks.len() {
        return "repeating";
    }
    let first = blocks[0].chunks_exact(WORD);
    let alike = |block: &&&[u8]| {
        let pairs = first.clone().zip(block.chunks_exact(WORD));
        pairs.filter(|(one, other)| one == other).count()
    };
    let words = (blocks.len() - 1) * first.len();
    let alike: usize = blocks[1..].iter().map(|block| alike(&block)).sum();
    match alike * 5 > words * 4 {
        true => "scrambled",
        false => "new",
    }
}

/// Returns a share in quarters, rounded.
fn quarters(count: usize, of: usize) -> usize {
    (count * 8 + of) / (of * 2).max(1)
}

/// Block size that the cases write, bytes.
const BLOCK: usize = 16 << 10;
const WORD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        let block = random(1, BLOCK);
        let mut scrambled = block.repeat(4);
        (0..4).for_each(|number: u8| scrambled[usize::from(number) * BLOCK] = number);
        let mut half = random(3, 4 * BLOCK);
        half.chunks_mut(512).for_each(|chunk| chunk[256..].fill(0));
        let repeating = [random(2, 2 * BLOCK), block.repeat(2)].concat();
        for (bytes, want) in [
            (vec![0; 4 * BLOCK], "zeros, same"),
            (vec![7; 4 * BLOCK], "one value, same"),
            (block.repeat(4), "random, same"),
            (scrambled, "random, scrambled"),
            (random(4, 4 * BLOCK), "random, new"),
            (repeating, "random, repeating"),
            (half, "2/4 zeros, new"),
            (Vec::new(), "nothing"),
        ] {
            assert_eq!(kind(&bytes), want);
        }
    }
}
