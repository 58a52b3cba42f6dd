//! Differences between the two programs, and which of them are intended.

use super::case::Case;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Place: `exit`, `json:jobs.0.read.iops`, `count:…`, `terse:7`, `text:…`, `files:…`, `log:…`.
    pub(crate) place: String,
    pub(crate) fio: String,
    pub(crate) ours: String,
    /// Depends on chance: it satisfies a stated difference, but never fails a case.
    pub(crate) by_chance: bool,
}

impl Difference {
    /// Returns a difference unless both values are equal.
    pub(crate) fn of(place: impl Into<String>, fio: String, ours: String) -> Option<Self> {
        let place = place.into();
        (fio != ours).then_some(Self {
            place,
            fio,
            ours,
            by_chance: false,
        })
    }
}

/// Returns a line for each difference that neither the case nor `EVERYWHERE` states, and for each
/// stated difference that did not occur.
pub(crate) fn unstated(case: &Case, found: Vec<Difference>) -> Vec<String> {
    let stated = |difference: &Difference| {
        let own = case.stated.iter().map(|stated| &*stated.place);
        let mut places = own.chain(EVERYWHERE.iter().map(|(place, _)| *place));
        places.any(|place| matches(place, &difference.place))
    };
    let not_seen = case.stated.iter().filter(|stated| {
        stated.always && !found.iter().any(|one| matches(&stated.place, &one.place))
    });
    let not_seen: Vec<_> = not_seen
        .map(|stated| format!("{}: stated difference did not occur", stated.place))
        .collect();
    let others = found.iter().filter(|one| !one.by_chance && !stated(one));
    let others = others.map(|one| format!("{}: fio {}, ours {}", one.place, one.fio, one.ours));
    others.chain(not_seen).collect()
}

/// Returns whether a place matches a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, place: &str) -> bool {
    let Some((head, tail)) = pattern.split_once('*') else {
        return pattern == place;
    };
    let Some(rest) = place.strip_prefix(head) else {
        return false;
    };
    let starts = rest
        .char_indices()
        .map(|(start, _)| start)
        .chain([rest.len()]);
    starts
        .into_iter()
        .any(|start| matches(tail, &rest[start..]))
}

/// Differences allowed in every case, with the reason.
const EVERYWHERE: &[(&str, &str)] = &[
    ("json:jobs.*.job_start", LATER),
    ("json:jobs.*.latency_target_ns", LATER),
    ("json:jobs.*.latency_window_us", LATER),
    ("json:jobs.*.prios.*.priohint", LATER),
    ("json:disk_util.*_sectors", LATER),
    (
        "files:*verify.state",
        "Fathom saves none: nothing reads it back yet",
    ),
    ("text:issued rwts", "its counts are compared in the JSON"),
];

const LATER: &str = "fio 3.42 has it, 3.33 has not";

#[cfg(test)]
mod tests {
    use super::super::case::Stated;
    use super::*;

    fn difference(place: &str) -> Difference {
        Difference {
            place: place.to_owned(),
            fio: "1".into(),
            ours: "2".into(),
            by_chance: false,
        }
    }

    #[track_caller]
    fn check(pattern: &str, place: &str, meant: bool) {
        assert_eq!(matches(pattern, place), meant, "{pattern} {place}");
    }

    #[test]
    fn a_star_stands_for_anything() {
        check("exit", "exit", true);
        check("exit", "exits", false);
        check("json:jobs.*.read", "json:jobs.0.read", true);
        check("json:jobs.*.read", "json:jobs.0.write", false);
        check("text:*", "text:", true);
        check("*ä*", "xäy", true);
        check("a*b*c", "abbc", true);
        check("a*b*c", "acb", false);
    }

    #[test]
    fn what_is_not_stated_fails_and_what_is_stated_must_be_seen() {
        let mut case = Case::default();
        assert_eq!(
            unstated(&case, vec![difference("json:jobs.0.job_start")]).len(),
            0
        );
        assert_eq!(unstated(&case, vec![difference("exit")]).len(), 1);
        case.stated.push(Stated {
            place: "exit".into(),
            always: true,
        });
        assert_eq!(unstated(&case, vec![difference("exit")]).len(), 0);
        assert_eq!(unstated(&case, Vec::new()).len(), 1);
        let chance = |place: &str| Difference {
            by_chance: true,
            ..difference(place)
        };
        assert_eq!(
            unstated(&case, vec![chance("exit"), chance("json")]).len(),
            0
        );
        assert_eq!(unstated(&case, vec![chance("json")]).len(), 1);
        case.stated[0].always = false;
        assert_eq!(unstated(&case, Vec::new()).len(), 0);
    }
}
