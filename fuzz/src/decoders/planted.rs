//! A planted bug, which shows that the fuzzer is guided by coverage.

use std::hint::black_box;

use crate::target::Verdict;

/// Panics on inputs whose first two words pass two nested comparisons.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Some((outer, inner)) = words(input) else {
        return Ok(Verdict::Refused("too short".to_owned()));
    };
    if outer == OUTER {
        // Without a call between them the optimizer merges the comparisons, and the first one is no
        // longer a step that coverage shows.
        black_box(inner);
        assert!(inner != INNER, "the planted bug");
    }
    Ok(Verdict::Accepted)
}

fn words(input: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_le_bytes(input.get(at..at + 4)?.try_into().ok()?));
    Some((word(0)?, word(4)?))
}

const OUTER: u32 = 0x7ac3_19e6;
const INNER: u32 = 0x5bd1_e995;

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_core::Xoshiro256;

    #[test]
    fn blind_mutation_does_not_find_the_planted_bug() {
        let mut random = Xoshiro256::new(1);
        let mut input = [0_u8; 8];
        for _ in 0..RUNS {
            for _ in 0..=random.below(8) {
                let bits = random.next_u64().to_le_bytes();
                input[usize::from(bits[0] % 8)] = bits[1];
            }
            let (outer, _) = words(&input).expect("eight bytes");
            assert_ne!(outer, OUTER, "not even the first comparison holds");
        }
    }

    #[test]
    #[should_panic(expected = "the planted bug")]
    fn the_planted_bug_can_be_found() {
        let _ = decode(&[OUTER.to_le_bytes(), INNER.to_le_bytes()].concat());
    }

    /// Inputs that `cargo xtask fuzz --self-test` allows libFuzzer.
    const RUNS: u32 = 2_000_000;
}
