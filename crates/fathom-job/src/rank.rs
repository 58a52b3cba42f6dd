//! Place of a process among those that run the same job file together.

/// Place of a process among the ranks of a run: one process a host, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Number of this rank, from 0.
    pub number: u32,
    /// Number of ranks.
    pub count: u32,
    /// Number of this rank among those of its host, from 0.
    pub on_host: u32,
    /// Name of the host.
    pub host: String,
}

impl Rank {
    /// Returns the rank of a run alone: 0 of 1.
    #[must_use]
    pub const fn alone(host: String) -> Self {
        Self {
            number: 0,
            count: 1,
            on_host: 0,
            host,
        }
    }

    /// Returns the first keyword of ranks in a text.
    pub(crate) fn keyword_in(text: &str) -> Option<&'static str> {
        let names = ["$hostrank", "$hostname", "$ranks", "$rank"];
        names.into_iter().find(|name| text.contains(name))
    }

    /// Returns the keywords that values may contain, each with what it expands to. A keyword that
    /// begins with another precedes it.
    pub(crate) fn keywords(&self) -> [(&'static str, String); 4] {
        [
            ("$hostrank", self.on_host.to_string()),
            ("$hostname", self.host.clone()),
            ("$ranks", self.count.to_string()),
            ("$rank", self.number.to_string()),
        ]
    }
}
