//! Substitution: `${VARIABLE}` in options, and `$ncpus`, `$pagesize` and `$mb_memory` in values, of
//! job files, as in fio; and the keywords of ranks in values of job files and of the command line.

use crate::Environment;
use crate::arithmetic::calculate;
use crate::rank_keywords::RankKeywords;

/// A value after substitution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub(crate) text: String,
    /// The text in which only the keywords of ranks are left, if there are any.
    pub(crate) of_any_rank: Option<String>,
    /// Variables that are not set; they expand to nothing.
    pub(crate) unset: Vec<String>,
}

/// Substitutes variables and keywords in a value of a job file; `None` if there are none. A number
/// with a keyword may contain arithmetic without parentheses, which fio passes to `bc`. Without a
/// rank, as in fio, its keywords are text.
pub(crate) fn substitute(
    text: &str,
    numeric: bool,
    environment: &dyn Environment,
    rank: Option<&RankKeywords>,
) -> Option<Substituted> {
    if !text.contains('$') {
        return None;
    }
    let mut unset = Vec::new();
    let (variables, any) = replace_variables(text, environment, &mut unset);
    let of_machine = replace_keywords(&variables, machine_keywords(environment));
    let (replaced, keyword) = match of_machine {
        Some(text) => (text, true),
        None => (variables, false),
    };
    let of_rank = rank.and_then(|rank| replace_keywords(&replaced, rank.pairs()));
    if !any && !keyword && of_rank.is_none() {
        return None;
    }
    let (text, of_any_rank) = match of_rank {
        Some(text) => (text, Some(replaced)),
        None => (replaced, None),
    };
    Some(Substituted {
        text: calculated(text, numeric && (keyword || of_any_rank.is_some())),
        of_any_rank,
        unset,
    })
}

/// Substitutes the keywords of a rank in a value of the command line; `None` if there are none.
pub(crate) fn substitute_rank(text: &str, numeric: bool, rank: &RankKeywords) -> Option<String> {
    if !text.contains('$') {
        return None;
    }
    let replaced = replace_keywords(text, rank.pairs());
    replaced.map(|replaced| calculated(replaced, numeric))
}

/// An option after substitution of the variables before its `=`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubstitutedName {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// Variables that are not set; they expand to nothing.
    pub(crate) unset: Vec<String>,
}

/// Substitutes variables in the name of an option of a job file; `None` if there are none. As in
/// fio, a variable may hold a name, a part of it, or an entire option with its value.
pub(crate) fn substitute_name(
    name: &str,
    value: Option<&str>,
    environment: &dyn Environment,
) -> Option<SubstitutedName> {
    let mut unset = Vec::new();
    let (text, any) = replace_variables(name, environment, &mut unset);
    let (name, value) = match (text.split_once('='), value) {
        (None, value) => (text.as_str(), value.map(str::to_owned)),
        (Some((name, front)), None) => (name, Some(front.trim().to_owned())),
        (Some((name, front)), Some(rest)) => (name, Some(format!("{}={rest}", front.trim_start()))),
    };
    any.then(|| SubstitutedName {
        name: name.trim().to_owned(),
        value,
        unset,
    })
}

fn calculated(text: String, numeric: bool) -> String {
    let value = numeric.then(|| calculate(&text)).flatten();
    value.map_or(text, |value| value.to_string())
}

fn replace_variables(
    text: &str,
    environment: &dyn Environment,
    unset: &mut Vec<String>,
) -> (String, bool) {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    let mut any = false;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let name = &rest[start + 2..start + length];
        replaced.push_str(&rest[..start]);
        match environment.variable(name) {
            Some(value) => replaced.push_str(&value),
            None => unset.push(name.to_owned()),
        }
        any = true;
        rest = &rest[start + length + 1..];
    }
    replaced.push_str(rest);
    (replaced, any)
}

fn machine_keywords(environment: &dyn Environment) -> [(&'static str, String); 3] {
    [
        ("$ncpus", environment.cpus().to_string()),
        ("$pagesize", environment.page_size().to_string()),
        ("$mb_memory", environment.memory_mib().to_string()),
    ]
}

/// Returns the text with each keyword replaced; `None` if there are none.
fn replace_keywords<V: AsRef<str>>(
    text: &str,
    keywords: impl IntoIterator<Item = (&'static str, V)>,
) -> Option<String> {
    let mut replaced: Option<String> = None;
    for (keyword, value) in keywords {
        let now = replaced.as_deref().unwrap_or(text);
        if now.contains(keyword) {
            replaced = Some(now.replace(keyword, value.as_ref()));
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use crate::{Rank, RankPlace};

    #[track_caller]
    fn check(text: &str, numeric: bool, want: Option<&str>) {
        let world = World::default().with_variable("DIR", "/mnt");
        let got = substitute(text, numeric, &world, None);
        let got = got.map(|value| value.text);
        assert_eq!(got.as_deref(), want, "{text}");
    }

    #[test]
    fn variables_and_keywords_are_replaced() {
        check("4k", true, None);
        check("$jobname.$jobnum", false, None);
        check("${DIR}/x", false, Some("/mnt/x"));
        check("a${NONE}b", false, Some("ab"));
        check("${DIR", false, None);
        check("$HOME", false, None);
        check("$ncpus", true, Some("4"));
        check("4*$pagesize", true, Some("16384"));
        check("$mb_memory/3", true, Some("2730"));
        check("0-$ncpus", false, Some("0-4"));
    }

    #[test]
    fn a_variable_may_hold_a_name_or_an_entire_option() {
        #[track_caller]
        fn check(name: &str, value: Option<&str>, want: Option<(&str, Option<&str>)>) {
            let world = World::default()
                .with_variable("OPTION", "bs = 8k")
                .with_variable("NAME", "bs");
            let got = substitute_name(name, value, &world);
            let got = got.as_ref();
            let got = got.map(|got| (got.name.as_str(), got.value.as_deref()));
            assert_eq!(got, want, "{name}");
        }

        check("bs", Some("${NAME}"), None);
        check("${OPTION}", None, Some(("bs", Some("8k"))));
        check("${OPTION}", Some("x"), Some(("bs", Some("8k=x"))));
        check("${NAME}", Some("4k"), Some(("bs", Some("4k"))));
        check("${NAME}range", None, Some(("bsrange", None)));
        check("${NONE}", None, Some(("", None)));
        check("${NAME", Some("4k"), None);
    }

    #[test]
    fn keywords_of_ranks_are_replaced_but_not_for_fio() {
        let rank = RankKeywords::of(&RankPlace {
            rank: Rank { rank: 3, ranks: 16 },
            on_host: 1,
            host: "node-7".into(),
            ..RankPlace::default()
        });
        let world = World::default().with_variable("DIR", "/mnt");
        let got = |text: &str, numeric| {
            substitute(text, numeric, &world, Some(&rank)).map(|value| value.text)
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(
            got("${DIR}/$hostname.$hostrank.$rank", false),
            is("/mnt/node-7.1.3")
        );
        assert_eq!(got("$ranks", true), is("16"));
        // Units and parentheses are left to the reader of numbers.
        assert_eq!(got("($rank*10g)", true), is("(3*10g)"));
        assert_eq!(got("100000/$ranks", true), is("6250"));
        assert_eq!(substitute("f.$rank", false, &world, None), None);
        assert_eq!(substitute_rank("f.$rank", false, &rank), is("f.3"));
        assert_eq!(substitute_rank("f.$ncpus", false, &rank), None);
    }
}
