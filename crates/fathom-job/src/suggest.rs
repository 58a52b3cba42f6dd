//! "Did you mean": the known word closest to a misspelt one.

/// Returns the closest candidate within an edit distance of half the word's length, as fio does.
#[must_use]
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    if length == 0 || length > LENGTH_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        // The difference in length is a lower bound of the distance.
        .filter(|candidate| candidate.len().abs_diff(length) <= length / 2)
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= length / 2)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// No option name is longer.
const LENGTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins_and_distant_words_are_not_offered() {
        let words = ["iodepth", "ioengine", "direct"];
        assert_eq!(closest("ioengne", words), Some("ioengine"));
        assert_eq!(closest("IODEPHT", words), Some("iodepth"));
        assert_eq!(closest("zzzz", words), None);
        assert_eq!(closest("", words), None);
    }
}
