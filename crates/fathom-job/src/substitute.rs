//! Substitution in values of job files: `${VARIABLE}`, `$ncpus`, `$pagesize`, `$mb_memory`.

use crate::Environment;
use crate::arithmetic::calculate;

/// A value after substitution.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Substituted {
    pub(crate) text: String,
    /// Variables that are not set; they expand to nothing.
    pub(crate) unset: Vec<String>,
}

/// Substitutes variables and keywords; `None` if there are none. A number with a keyword may
/// contain arithmetic without parentheses, which fio passes to `bc`.
pub(crate) fn substitute(
    text: &str,
    numeric: bool,
    environment: &dyn Environment,
) -> Option<Substituted> {
    if !text.contains('$') {
        return None;
    }
    let mut unset = Vec::new();
    let (variables, any) = replace_variables(text, environment, &mut unset);
    let (replaced, keyword) = replace_keywords(&variables, environment);
    if !any && !keyword {
        return None;
    }
    let calculated = (keyword && numeric).then(|| calculate(&replaced)).flatten();
    Some(Substituted {
        text: calculated.map_or(replaced, |value| value.to_string()),
        unset,
    })
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

fn replace_keywords(text: &str, environment: &dyn Environment) -> (String, bool) {
    let mut replaced = text.to_owned();
    let keywords: [(&str, &dyn Fn() -> u64); 3] = [
        ("$ncpus", &|| u64::from(environment.cpus())),
        ("$pagesize", &|| environment.page_size()),
        ("$mb_memory", &|| environment.memory_mib()),
    ];
    let mut any = false;
    for (keyword, value) in keywords {
        if replaced.contains(keyword) {
            replaced = replaced.replace(keyword, &value().to_string());
            any = true;
        }
    }
    (replaced, any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    #[track_caller]
    fn check(text: &str, numeric: bool, want: Option<&str>) {
        let world = World::default().with_variable("DIR", "/mnt");
        let got = substitute(text, numeric, &world).map(|value| value.text);
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
}
