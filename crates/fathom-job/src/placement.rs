//! `ranks`, `hosts` and `rank_shift`: which ranks of a run have a section, and in whose place.

use std::fmt;

use crate::problem::{Piece, Problem};

/// Ranks that have a section, and the place in which they work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacementOptions {
    /// `ranks`; `None`: all.
    pub ranks: Option<RankList>,
    /// `hosts`: patterns of host names; empty: all.
    pub hosts: Vec<String>,
    /// `rank_shift`.
    pub shift: RankShift,
}

impl PlacementOptions {
    /// Returns true if a rank on a host has the section.
    #[must_use]
    pub fn includes(&self, rank: u32, host: &str) -> bool {
        let is_listed = self.ranks.as_ref().is_none_or(|list| list.contains(rank));
        let named = |pattern: &String| matches(pattern.as_bytes(), host.as_bytes());
        is_listed && (self.hosts.is_empty() || self.hosts.iter().any(named))
    }

    /// Returns true if only one of `ranks` ranks can have the section.
    #[must_use]
    pub fn is_single(&self, ranks: u32) -> bool {
        let listed = self
            .ranks
            .as_ref()
            .map(|list| list.among(ranks).take(2).count());
        listed.is_some_and(|count| count < 2)
    }

    /// Returns the number of ranks, out of `ranks`, that have the section; `None` where that
    /// depends on their hosts.
    #[must_use]
    pub fn count(&self, ranks: u32) -> Option<u32> {
        let listed = match &self.ranks {
            Some(list) => u32::try_from(list.among(ranks).count()).ok()?,
            None => ranks,
        };
        self.hosts.is_empty().then_some(listed)
    }
}

/// `ranks`: numbers and ranges, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankList(Vec<(u32, u32)>);

impl RankList {
    /// Returns true if the rank is in the list.
    #[must_use]
    pub fn contains(&self, rank: u32) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|&(first, last)| (first..=last).contains(&rank))
    }

    /// Returns those of the `ranks` ranks that are in the list.
    fn among(&self, ranks: u32) -> impl Iterator<Item = u32> {
        (0..ranks).filter(|&rank| self.contains(rank))
    }

    /// Returns true if any of `ranks` ranks is in the list.
    #[must_use]
    pub fn names_any_of(&self, ranks: u32) -> bool {
        self.0.iter().any(|&(first, _)| first < ranks)
    }
}

/// `rank_shift`: distance to the rank in whose place a section works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankShift {
    /// Its own.
    #[default]
    None,
    /// That many ranks further, around the end.
    By(i32),
    /// The shortest distance at which every rank works in place of one on another host.
    Node,
}

impl fmt::Display for RankShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0"),
            Self::By(ranks) => write!(f, "{ranks}"),
            Self::Node => f.write_str("node"),
        }
    }
}

/// Reads `0-7,12-`.
pub(crate) fn ranks(text: &str) -> Result<RankList, Problem> {
    let pieces = Piece::new(text).split(&[',']);
    let ranges = pieces.into_iter().map(|piece| range(piece.trim()));
    ranges.collect::<Result<_, _>>().map(RankList)
}

/// Reads `3`, `0-7` or `12-`.
fn range(piece: Piece<'_>) -> Result<(u32, u32), Problem> {
    let bad = |why: String| {
        let problem = Problem::new("bad-ranks", piece.range(), why);
        problem.fix("list ranks, from 0: `0-7,12-`")
    };
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| digits)
    };
    let ends = match piece.text.split_once('-') {
        Some((first, "")) => number(first).map(|first| (first, u32::MAX)),
        Some((first, last)) => number(first).zip(number(last)),
        None => number(piece.text).map(|only| (only, only)),
    };
    let (first, last) = ends.ok_or_else(|| bad(format!("`{}` is not a rank", piece.text)))?;
    if first > last {
        return Err(bad(format!("`{}` ends before it begins", piece.text)));
    }
    Ok((first, last))
}

/// Reads patterns of host names, separated by commas.
pub(crate) fn hosts(text: &str) -> Result<Vec<String>, Problem> {
    let pieces = Piece::new(text).split(&[',']);
    let patterns = pieces.into_iter().map(Piece::trim).map(|piece| {
        let bad = |why: &str| Problem::new("bad-hosts", piece.range(), why);
        if piece.text.is_empty() {
            return Err(
                bad("a pattern of host names is empty").fix("write names: `node[0-3]*,gpu1`")
            );
        }
        if opens_a_set(piece.text) {
            let problem = bad("`[` has no `]`");
            return Err(problem.fix("close the set of letters, as in `node[0-3]`"));
        }
        Ok(piece.text.to_owned())
    });
    patterns.collect()
}

/// Returns whether a set of letters is not closed.
fn opens_a_set(pattern: &str) -> bool {
    let mut rest = pattern.as_bytes();
    while let Some(start) = rest.iter().position(|&byte| byte == b'[') {
        let Some((_, behind)) = set(&rest[start + 1..], 0) else {
            return true;
        };
        rest = behind;
    }
    false
}

/// Reads a number of ranks, or `node`.
pub(crate) fn shift(text: &str) -> Result<RankShift, Problem> {
    let text = text.trim();
    if text == "node" {
        return Ok(RankShift::Node);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let shift: Option<i32> = text.parse().ok().filter(|_| number);
    match shift {
        Some(0) => Ok(RankShift::None),
        Some(ranks) => Ok(RankShift::By(ranks)),
        None => {
            let why = format!("`{text}` is not a number of ranks");
            let problem = Problem::new("bad-shift", 0..text.len(), why);
            Err(problem.fix("write a number, as `rank_shift=1`; or `node`"))
        }
    }
}

/// Returns whether a name is of a pattern: `*` is any text, `?` any letter, `[a-f]` and `[!a-f]`
/// one of a set, as in the shell. Takes time proportional to the product of the lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // Behind the last `*`: the pattern, and the name from where it was tried.
    let mut again: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some((b'*', behind)) = pattern.split_first() {
            again = Some((behind, name));
            pattern = behind;
            continue;
        }
        if let Some((&letter, rest)) = name.split_first()
            && let Some(behind) = one(pattern, letter)
        {
            (pattern, name) = (behind, rest);
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        let Some((behind, [_, rest @ ..])) = again else {
            return false;
        };
        again = Some((behind, rest));
        (pattern, name) = (behind, rest);
    }
}

/// Returns the pattern after its first letter or set, if that matches this letter.
fn one(pattern: &[u8], letter: u8) -> Option<&[u8]> {
    let (&first, behind) = pattern.split_first()?;
    match first {
        b'?' => Some(behind),
        b'[' => set(behind, letter)
            .filter(|(is_in, _)| *is_in)
            .map(|(_, behind)| behind),
        _ => (first == letter).then_some(behind),
    }
}

/// Reads a set after its `[`: returns whether the letter is in it, and the rest after `]`; `None`
/// if it is not closed.
fn set(pattern: &[u8], letter: u8) -> Option<(bool, &[u8])> {
    let (negated, mut rest) = match pattern.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, pattern),
    };
    let mut is_in = false;
    let mut is_first = true;
    loop {
        rest = match rest {
            // A `]` in front is a letter of the set.
            [b']', behind @ ..] if !is_first => return Some((is_in != negated, behind)),
            [low, b'-', high, behind @ ..] if *high != b']' => {
                is_in |= (*low..=*high).contains(&letter);
                behind
            }
            [only, behind @ ..] => {
                is_in |= *only == letter;
                behind
            }
            [] => return None,
        };
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_ranks(text: &str, want: Result<&[u32], &str>) {
        let list = ranks(text).map_err(|problem| problem.why);
        let among_16 = |list: RankList| (0..16).filter(|&rank| list.contains(rank)).collect();
        let got: Result<Vec<u32>, String> = list.map(among_16);
        assert_eq!(
            got,
            want.map(<[u32]>::to_vec).map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn ranks_are_numbers_and_ranges() {
        check_ranks("3", Ok(&[3]));
        check_ranks("0-2, 14-", Ok(&[0, 1, 2, 14, 15]));
        check_ranks("99", Ok(&[]));
        for text in ["", "-3", "a", "1-2-3", "+1", "1,,2", "4294967296"] {
            let part = text.split(',').find(|part| ranks(part).is_err());
            check_ranks(
                text,
                Err(&format!("`{}` is not a rank", part.unwrap_or(text))),
            );
        }
        check_ranks("2-1", Err("`2-1` ends before it begins"));
    }

    #[test]
    fn a_list_is_known_to_name_nobody() {
        let names = |text: &str, of| ranks(text).is_ok_and(|list| list.names_any_of(of));
        assert!(names("0", 1) && names("3-", 4) && names("9,1", 2));
        assert!(!names("1", 1) && !names("4-", 4));
    }

    #[test]
    fn ranks_of_a_section_are_counted() {
        let of = |text: &str| PlacementOptions {
            ranks: ranks(text).ok(),
            ..PlacementOptions::default()
        };
        assert_eq!(
            (of("1,3-").count(8), of("1,3-").is_single(8)),
            (Some(6), false)
        );
        assert_eq!(
            (of("1,9").count(8), of("1,9").is_single(8)),
            (Some(1), true)
        );
        let mut some = PlacementOptions::default();
        assert_eq!((some.count(8), some.is_single(8)), (Some(8), false));
        some.hosts.push("a*".to_owned());
        assert_eq!((some.count(8), some.is_single(8)), (None, false));
    }

    #[track_caller]
    fn check_host(patterns: &str, host: &str, want: bool) {
        let options = PlacementOptions {
            hosts: hosts(patterns).unwrap_or_default(),
            ..PlacementOptions::default()
        };
        assert_eq!(options.includes(0, host), want, "{patterns} {host}");
    }

    #[test]
    fn hosts_are_patterns_of_the_shell() {
        check_host("node7", "node7", true);
        check_host("node7", "node77", false);
        check_host("node*", "node", true);
        check_host("*a*b", "xaabab", true);
        check_host("*a*b", "xaaba", false);
        check_host("n?de", "node", true);
        check_host("n?de", "nde", false);
        check_host("node[0-3]", "node2", true);
        check_host("node[0-3]", "node4", false);
        check_host("node[!0-3]", "node4", true);
        check_host("node[]x]", "node]", true);
        check_host("gpu*, node[13]", "node3", true);
        check_host("gpu*,node[13]", "node2", false);
        check_host("**********a", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false);
    }

    #[test]
    fn patterns_that_cannot_be_meant_are_refused() {
        let why = |text: &str| hosts(text).map_err(|problem| (problem.why, problem.at));
        let empty = "a pattern of host names is empty".to_owned();
        assert_eq!(why("a,,b"), Err((empty.clone(), 2..2)));
        assert_eq!(why(""), Err((empty, 0..0)));
        assert_eq!(why("a,n[0"), Err(("`[` has no `]`".to_owned(), 2..5)));
    }

    #[test]
    fn shifts_are_numbers_or_node() {
        let read = |text: &str| shift(text).map_err(|problem| problem.why);
        assert_eq!(read("1"), Ok(RankShift::By(1)));
        assert_eq!(read("-2"), Ok(RankShift::By(-2)));
        assert_eq!(read("0"), Ok(RankShift::None));
        assert_eq!(read("node"), Ok(RankShift::Node));
        for text in ["", "+1", "1.5", "nodes", "99999999999"] {
            assert_eq!(
                read(text),
                Err(format!("`{text}` is not a number of ranks"))
            );
        }
    }
}
