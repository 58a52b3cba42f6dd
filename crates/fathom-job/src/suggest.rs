//! "Did you mean": the known word closest to a misspelt one.

/// Returns the closest candidate within an edit distance of half the word's length, as fio does;
/// the first of several that are equally close.
///
/// A job file can be nothing but misspelt options, each compared with every name that fio knows, so
/// the distance, a table of the product of both lengths, is computed only for candidates with
/// mostly the same letters.
#[must_use]
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length == 0 || length > LENGTH_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let letters = Letters::of(&word);
    let mut closest = None;
    // One more than the distance that a candidate may have.
    let mut bound = length / 2 + 1;
    for candidate in candidates {
        if letters.distance_min(&Letters::of(candidate)) >= bound {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&word, candidate);
        if distance < bound {
            (closest, bound) = (Some(candidate), distance);
        }
    }
    closest
}

/// Number of times that each letter occurs in a word. Letters share buckets, which makes the bound
/// below weaker, not wrong.
struct Letters([u8; 32]);

impl Letters {
    fn of(word: &str) -> Self {
        let mut counts = [0_u8; 32];
        for letter in word.chars() {
            let count = &mut counts[letter as usize % counts.len()];
            // Saturation keeps the bound valid: the word itself has at most `LENGTH_MAX` letters.
            *count = count.saturating_add(1);
        }
        Self(counts)
    }

    /// Returns a lower bound of the edit distance: an edit adds a letter, removes one, exchanges
    /// one for another, or only moves some.
    fn distance_min(&self, other: &Self) -> usize {
        let surplus = |of: &Self, over: &Self| -> usize {
            let pairs = of.0.iter().zip(over.0);
            pairs.map(|(&a, b)| usize::from(a.saturating_sub(b))).sum()
        };
        surplus(self, other).max(surplus(other, self))
    }
}

/// No option name is longer.
const LENGTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_nearest_word_wins_and_distant_words_are_not_offered() {
        let words = ["iodepth", "ioengine", "direct"];
        assert_eq!(closest("ioengne", words), Some("ioengine"));
        assert_eq!(closest("IODEPHT", words), Some("iodepth"));
        assert_eq!(closest("zzzz", words), None);
        assert_eq!(closest("", words), None);
    }

    proptest! {
        #[test]
        fn no_close_candidate_is_left_out(
            word in "[abcé]{1,8}",
            candidates in proptest::collection::vec("[abcdé]{0,9}", 0..12),
        ) {
            let distance = |candidate: &&str| strsim::damerau_levenshtein(&word, candidate);
            let nearest = candidates.iter().map(String::as_str).min_by_key(distance);
            let want = nearest.filter(|near| distance(near) <= word.chars().count() / 2);
            prop_assert_eq!(closest(&word, candidates.iter().map(String::as_str)), want);
        }
    }
}
