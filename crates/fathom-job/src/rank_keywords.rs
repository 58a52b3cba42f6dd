//! Keywords of ranks: `$rank`, `$ranks`, `$hostrank` and `$hostname` in values.

use crate::rank_place::RankPlace;

/// Keywords of the ranks of a run, with what they expand to in one place.
#[derive(Clone, Debug)]
pub(crate) struct RankKeywords {
    /// Values of [`KEYWORDS`].
    values: [String; 4],
}

impl RankKeywords {
    pub(crate) fn of(place: &RankPlace) -> Self {
        Self {
            values: [
                place.on_host.to_string(),
                place.host.clone(),
                place.rank.ranks.to_string(),
                place.rank.rank.to_string(),
            ],
        }
    }

    /// Returns the keywords with their values, in the order in which to replace them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEYWORDS
            .into_iter()
            .zip(self.values.iter().map(String::as_str))
    }

    /// Returns the first keyword of ranks in a text.
    pub(crate) fn first_in(text: &str) -> Option<&'static str> {
        KEYWORDS.into_iter().find(|name| text.contains(name))
    }

    /// Returns the first keyword in a text that depends on the host.
    pub(crate) fn first_of_host(text: &str) -> Option<&'static str> {
        KEYWORDS[..2]
            .iter()
            .copied()
            .find(|name| text.contains(name))
    }
}

/// Returns true if a value, as written, differs between the ranks of a run.
#[must_use]
pub fn depends_on_rank(text: &str) -> bool {
    // The number of ranks is the same for all, and its keyword begins as that of the rank.
    RankKeywords::first_in(&text.replace("$ranks", "")).is_some()
}

/// A keyword that begins with another precedes it; those that depend on the host come first.
const KEYWORDS: [&str; 4] = ["$hostrank", "$hostname", "$ranks", "$rank"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_between_ranks_are_known() {
        for text in ["f.$rank", "$hostname", "($ranks*$rank)", "$hostrank"] {
            assert!(depends_on_rank(text), "{text}");
        }
        for text in ["f", "100/$ranks", "$jobname"] {
            assert!(!depends_on_rank(text), "{text}");
        }
    }
}
