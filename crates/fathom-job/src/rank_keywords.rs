//! Keywords of ranks: `$rank`, `$ranks`, `$hostrank` and `$hostname` in values.

use crate::Environment;
use crate::problem::Problem;
use crate::rank::{self, Rank};

/// Keywords of the ranks of a run, with what they expand to on one of them.
#[derive(Clone, Debug)]
pub(crate) struct RankKeywords {
    rank: Rank,
    /// Values of [`KEYWORDS`].
    values: [String; 4],
}

impl RankKeywords {
    /// Reads the rank from the arguments, before any value is; a run alone is rank 0 of 1. What is
    /// no rank counts as none here, and is refused where it stands.
    pub(crate) fn of_command_line(args: &[String], environment: &dyn Environment) -> Self {
        let mut given = None;
        for (at, arg) in args.iter().enumerate() {
            if let Some(("--rank", value)) = arg.split_once('=') {
                given = Some(value);
            } else if arg == "--rank" {
                given = args.get(at + 1).map(String::as_str);
            }
        }
        let read = |text| rank::rank(text, environment);
        let alone = Rank { rank: 0, ranks: 1 };
        let rank = given.and_then(|text| read(text).ok()).unwrap_or(alone);
        let on_host = match given {
            Some(text) if text.starts_with("auto") => rank::on_host(environment),
            _ => 0,
        };
        Self::new(rank, on_host, environment.host_name())
    }

    pub(crate) fn new(rank: Rank, on_host: u32, host: String) -> Self {
        Self {
            rank,
            values: [
                on_host.to_string(),
                host,
                rank.ranks.to_string(),
                rank.rank.to_string(),
            ],
        }
    }

    pub(crate) const fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the keywords with their values, in the order in which to replace them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KEYWORDS
            .into_iter()
            .zip(self.values.iter().map(String::as_str))
    }

    /// Refuses a rank that was not found in advance: values may have been expanded without it.
    pub(crate) fn check(&self, rank: Rank, text: &str) -> Result<(), Problem> {
        if self.rank == rank {
            return Ok(());
        }
        let why = "the rank is given twice, or under a shortened name";
        let problem = Problem::new("bad-rank", 0..text.len(), why);
        Err(problem.fix("write it once and in full: `--rank=3/16`"))
    }

    /// Returns the first keyword of ranks in a text.
    pub(crate) fn first_in(text: &str) -> Option<&'static str> {
        KEYWORDS.into_iter().find(|name| text.contains(name))
    }
}

/// A keyword that begins with another precedes it.
const KEYWORDS: [&str; 4] = ["$hostrank", "$hostname", "$ranks", "$rank"];
