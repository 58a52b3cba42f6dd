//! "Did you mean": the known word closest to a misspelt one.

/// Returns the closest candidate within an edit distance of half the word's length, as fio does; of
/// several that are equally close the first with the same first letter, else the first.
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
    let mut closest: Option<(usize, bool, &str)> = None;
    for candidate in candidates {
        let bound = closest.map_or(length / 2, |(distance, ..)| distance);
        if letters.distance_min(&Letters::of(candidate)) > bound {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&word, candidate);
        let begins_otherwise = candidate.chars().next() != word.chars().next();
        let is_closer = closest
            .is_none_or(|(least, otherwise, _)| (distance, begins_otherwise) < (least, otherwise));
        if distance <= bound && is_closer {
            closest = Some((distance, begins_otherwise, candidate));
        }
    }
    closest.map(|(.., candidate)| candidate)
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
        assert_eq!(closest("bss", ["ss", "bs"]), Some("bs"), "it begins alike");
        assert_eq!(closest("", words), None);
    }

    proptest! {
        #[test]
        fn no_close_candidate_is_left_out(
            word in "[abcé]{1,8}",
            candidates in proptest::collection::vec("[abcdé]{0,9}", 0..12),
        ) {
            let distance = |candidate: &&str| strsim::damerau_levenshtein(&word, candidate);
            let order = |candidate: &&str| {
                (distance(candidate), candidate.chars().next() != word.chars().next())
            };
            let nearest = candidates.iter().map(String::as_str).min_by_key(order);
            let want = nearest.filter(|near| distance(near) <= word.chars().count() / 2);
            prop_assert_eq!(closest(&word, candidates.iter().map(String::as_str)), want);
        }
    }
}
