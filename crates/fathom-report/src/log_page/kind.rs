//! Quantities of logs, and how the name of a log gives its quantity.

/// Quantity in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogKind {
    /// Latency from due time to completion.
    Resp,
    /// Latency from submission to completion.
    Lat,
    /// Latency from the end of submission to completion.
    Clat,
    /// Latency of submission.
    Slat,
    /// Bandwidth.
    Bandwidth,
    /// Ops per second.
    Iops,
}

/// Source of the knowledge of a log's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSource {
    /// The name of the file.
    Name,
    /// The name of a column.
    Column,
    /// The user.
    Option,
    /// Nothing: it was taken for a latency.
    Guess,
}

impl LogKind {
    /// All kinds, in the order of a page.
    pub const ALL: [Self; 6] = [
        Self::Resp,
        Self::Lat,
        Self::Clat,
        Self::Slat,
        Self::Bandwidth,
        Self::Iops,
    ];

    /// Returns the word in the names of logs: `clat`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Lat => "lat",
            Self::Clat => "clat",
            Self::Slat => "slat",
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
        }
    }

    /// Returns the kind of a word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Returns the kind of a log from its file name: of `randread_clat.1.log` it is clat.
    #[must_use]
    pub fn of_file(name: &str) -> Option<Self> {
        // The last one: a job may have any name.
        let places = name.rmatch_indices('_').map(|(at, _)| &name[at + 1..]);
        let mut words = places.filter_map(|rest| rest.split(['.', '_']).next());
        words.find_map(Self::of_word)
    }

    /// Returns the kind of a column: of `clat_ns` it is clat.
    #[must_use]
    pub fn of_column(name: &str) -> Option<Self> {
        Self::of_word(name.split('_').next()?)
    }

    /// Returns the kind and its source, from what is known of a log.
    #[must_use]
    pub fn found(given: Option<Self>, file: &str, column: Option<&str>) -> (Self, KindSource) {
        let name = || Self::of_file(file).map(|kind| (kind, KindSource::Name));
        let column = || Some((Self::of_column(column?)?, KindSource::Column));
        let given = given.map(|kind| (kind, KindSource::Option));
        let found = given.or_else(name).or_else(column);
        found.unwrap_or((Self::Lat, KindSource::Guess))
    }

    /// Returns whether the values are times.
    #[must_use]
    pub const fn is_latency(self) -> bool {
        !matches!(self, Self::Bandwidth | Self::Iops)
    }

    /// Returns the quantity for headings.
    pub(super) const fn quantity(self) -> &'static str {
        match self {
            Self::Resp => "Response time (resp)",
            Self::Lat => "Latency (lat)",
            Self::Clat => "Completion latency (clat)",
            Self::Slat => "Submission latency (slat)",
            Self::Bandwidth => "Bandwidth (bw)",
            Self::Iops => "IOPS (iops)",
        }
    }

    /// Returns the unit in which values are shown, and their number in it.
    pub(super) const fn unit(self, is_averaged: bool) -> (&'static str, f64) {
        match self {
            Self::Bandwidth if is_averaged => ("KiB/s", 1.0),
            Self::Bandwidth => ("kB/s", 1.0),
            Self::Iops => ("IOPS", 1.0),
            Self::Resp | Self::Lat | Self::Clat | Self::Slat => ("µs", 1e3),
        }
    }
}

impl KindSource {
    /// Returns how the kind became known.
    pub(super) const fn sentence(self) -> &'static str {
        match self {
            Self::Name => "from the file's name",
            Self::Column => "from the name of a column",
            Self::Option => "as stated by --kind",
            Self::Guess => "guessed: nothing states the kind",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, want: Option<LogKind>) {
        assert_eq!(LogKind::of_file(file), want, "{file}");
    }

    #[test]
    fn names_tell_the_kind() {
        check("randread_clat.1.log", Some(LogKind::Clat));
        check("a_lat.log.fz", Some(LogKind::Lat));
        check("v1.2_bw_test_iops.12.parquet", Some(LogKind::Iops));
        check("agg-read_bw.log", Some(LogKind::Bandwidth));
        check("a_clat_copy.log", Some(LogKind::Clat));
        check("x.log", None);
        check("clat", None);
        check("x_clatter.log", None);
        check("x_clat_hist.1.log", Some(LogKind::Clat));
    }

    #[test]
    fn what_the_user_says_comes_first() {
        let found = |given, file, column| LogKind::found(given, file, column);
        let (bw, lat, clat) = (LogKind::Bandwidth, LogKind::Lat, LogKind::Clat);
        assert_eq!(found(Some(bw), "x_lat.log", None), (bw, KindSource::Option));
        assert_eq!(
            found(None, "x_lat.log", Some("clat_ns")),
            (lat, KindSource::Name)
        );
        assert_eq!(
            found(None, "x.csv", Some("clat_ns")),
            (clat, KindSource::Column)
        );
        assert_eq!(
            found(None, "x.csv", Some("value")),
            (lat, KindSource::Guess)
        );
    }
}
