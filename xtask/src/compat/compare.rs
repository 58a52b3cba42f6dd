//! Comparison of two runs in everything that must agree.

use super::case::{Case, Wanted};
use super::difference::Difference;
use super::trial::ProgramRun;
use super::{counts, json, logs, terse, text};

/// Returns all differences, stated or not.
pub(crate) fn compare(case: &Case, fio: &ProgramRun, ours: &ProgramRun) -> Vec<Difference> {
    match case.wanted {
        Wanted::Exit(code) => same(case, code, fio, ours),
        Wanted::Refused => refused(fio, ours),
        Wanted::Alone => [fails("fio", fio), ends(0, "ours", ours)]
            .into_iter()
            .flatten()
            .collect(),
        Wanted::Ours => ends(0, "ours", ours).into_iter().collect(),
        Wanted::Stricter => {
            let ends = [
                ends(0, "fio", fio),
                ends(1, "ours", ours),
                nothing_left(ours),
            ];
            ends.into_iter().flatten().collect()
        }
    }
}

/// Compares two refused runs; fio may have printed an empty report nevertheless.
fn refused(fio: &ProgramRun, ours: &ProgramRun) -> Vec<Difference> {
    let ends = [
        ends(1, "fio", fio),
        ends(1, "ours", ours),
        nothing_left(ours),
    ];
    ends.into_iter().flatten().collect()
}

fn nothing_left(ran: &ProgramRun) -> Option<Difference> {
    let names: Vec<&str> = ran.files.keys().map(String::as_str).collect();
    Difference::of("files", String::new(), names.join(" "))
}

fn same(case: &Case, code: i32, fio: &ProgramRun, ours: &ProgramRun) -> Vec<Difference> {
    let mut found: Vec<_> = [ends(code, "fio", fio), ends(code, "ours", ours)]
        .into_iter()
        .flatten()
        .collect();
    found.extend(Difference::of(
        "exit",
        fio.code.to_string(),
        ours.code.to_string(),
    ));
    found.extend(files(fio, ours));
    for (name, held) in &fio.content {
        let of_ours = ours.content.get(name).cloned().unwrap_or_default();
        found.extend(Difference::of(
            format!("content:{name}"),
            held.clone(),
            of_ours,
        ));
    }
    if case.output {
        found.extend(text::difference("output", &fio.stdout, &ours.stdout));
    }
    if case.plain {
        return found;
    }
    if code == 0 {
        let said = ours.stderr.trim_end().replace('\n', " / ");
        found.extend(Difference::of("stderr", String::new(), said));
    }
    let [fio_parts, our_parts] = [Parts::of(&fio.stdout), Parts::of(&ours.stdout)];
    let [fio_order, our_order] = [&fio_parts, &our_parts].map(|parts| parts.order.join(", "));
    found.extend(Difference::of("reports", fio_order, our_order));
    found.extend(text::difference("text", &fio_parts.text, &our_parts.text));
    found.extend(terse::difference(&fio_parts.terse, &our_parts.terse));
    match [&fio_parts.json, &our_parts.json].map(|part| serde_json::from_str(part)) {
        [Ok(fio), Ok(ours)] => {
            found.extend(json::difference(&fio, &ours));
            found.extend(counts::difference(case, &fio, &ours));
        }
        [fio, ours] => {
            let shown = |parsed: Result<serde_json::Value, serde_json::Error>| {
                parsed.map_or_else(|error| error.to_string(), |_| "JSON".to_owned())
            };
            found.extend(Difference::of("json", shown(fio), shown(ours)));
        }
    }
    found.extend(logs::difference(case, fio, ours));
    found
}

/// Returns a difference if a program did not exit as the case states.
fn ends(code: i32, who: &str, ran: &ProgramRun) -> Option<Difference> {
    let said = ran.stderr.lines().next().unwrap_or_default();
    let how = format!("{} {said}", ran.code);
    (ran.code != code).then(|| Difference {
        place: format!("end of {who}"),
        fio: format!("{code} is expected of {who}"),
        ours: how,
        by_chance: false,
    })
}

fn fails(who: &str, ran: &ProgramRun) -> Option<Difference> {
    (ran.code == 0).then(|| Difference {
        place: format!("end of {who}"),
        fio: "0".into(),
        ours: "a failure is wanted".into(),
        by_chance: false,
    })
}

/// Compares the files left behind, by name and size.
fn files(fio: &ProgramRun, ours: &ProgramRun) -> Vec<Difference> {
    let shown = |size: Option<&u64>| size.map_or("none".to_owned(), |size| format!("{size} bytes"));
    let names = fio.files.keys().chain(
        ours.files
            .keys()
            .filter(|name| !fio.files.contains_key(*name)),
    );
    names
        .filter_map(|name| {
            let [fio, ours] = [&fio.files, &ours.files].map(|files| shown(files.get(name)));
            Difference::of(format!("files:{name}"), fio, ours)
        })
        .collect()
}

/// Standard output, split into formats, in the order in which fio prints them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    terse: String,
    json: String,
    text: String,
    /// Order of the formats.
    order: Vec<&'static str>,
}

impl Parts {
    fn of(stdout: &str) -> Self {
        let mut parts = Self::default();
        let mut in_json = false;
        for line in stdout.lines() {
            in_json |= line == "{";
            let terse = line
                .strip_prefix(['2', '3', '4', '5'])
                .is_some_and(|rest| rest.starts_with(';'));
            let (part, name) = match (in_json, terse) {
                (true, _) => (&mut parts.json, "json"),
                (false, true) => (&mut parts.terse, "terse"),
                (false, false) => (&mut parts.text, "text"),
            };
            if !line.is_empty() && parts.order.last() != Some(&name) {
                parts.order.push(name);
            }
            part.push_str(line);
            part.push('\n');
            in_json &= line != "}";
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STDOUT: &str = "t: (g=0): rw=read\n3;fio-3.33;t;0;0;64\n{\n  \"jobs\" : [\n    {\n      \
                          \"jobname\" : \"t\",\n      \"read\" : {\n        \
                          \"total_ios\" : 16,\n        \"iops\" : 1.5\n      }\n    }\n  ]\n}\n\n\
                          t: (groupid=0)\n";

    fn ran(stdout: &str) -> ProgramRun {
        let files = [("t.0.0".to_owned(), 4096)].into();
        let logs = [("t_lat.1.log".to_owned(), "1, 2, 0, 4096, 0\n".to_owned())].into();
        ProgramRun {
            stdout: stdout.to_owned(),
            files,
            logs,
            ..ProgramRun::default()
        }
    }

    fn places(case: &Case, ours: &ProgramRun) -> Vec<String> {
        let found = compare(case, &ran(STDOUT), ours);
        found.into_iter().map(|one| one.place).collect()
    }

    #[track_caller]
    fn check(ours: ProgramRun, wanted: &[&str]) {
        assert_eq!(places(&Case::default(), &ours), wanted);
    }

    #[test]
    fn output_is_taken_apart() {
        let parts = Parts::of(STDOUT);
        assert_eq!(parts.text, "t: (g=0): rw=read\n\nt: (groupid=0)\n");
        assert_eq!(parts.terse, "3;fio-3.33;t;0;0;64\n");
        assert!(parts.json.starts_with("{\n") && parts.json.ends_with("\n}\n"));
        assert_eq!(parts.order, ["text", "terse", "json", "text"]);
    }

    #[test]
    fn what_is_the_same_passes() {
        check(ran(STDOUT), &[]);
    }

    #[test]
    fn each_seeded_difference_is_found() {
        let with = |from: &str, to: &str| ran(&STDOUT.replace(from, to));
        check(with("16", "17"), &["count:0.read.total_ios"]);
        check(with("1.5", "1"), &["json:jobs.0.read.iops"]);
        check(
            with("\"iops\"", "\"more\""),
            &["json:jobs.0.read.iops", "json:jobs.0.read.more"],
        );
        check(with("rw=read", "rw=write"), &["text:t", "text:t"]);
        check(with("0;64", "0;6.5"), &["terse:6"]);
        check(with("0;64", "0;64;1"), &["terse:fields"]);
        check(
            ProgramRun {
                code: 1,
                ..ran(STDOUT)
            },
            &["end of ours", "exit"],
        );
        check(
            ProgramRun {
                files: [("t.0.0".to_owned(), 1)].into(),
                ..ran(STDOUT)
            },
            &["files:t.0.0"],
        );
        check(
            ProgramRun {
                stderr: "fio: a note\n".to_owned(),
                ..ran(STDOUT)
            },
            &["stderr"],
        );
        let terse = "3;fio-3.33;t;0;0;64\n";
        let last = format!("{}{terse}", STDOUT.replace(terse, ""));
        check(ran(&last), &["reports"]);
        let logs = [("t_lat.1.log".to_owned(), "1, 2, 0\n".to_owned())].into();
        check(
            ProgramRun {
                logs,
                ..ran(STDOUT)
            },
            &["log:t_lat.1.log:columns"],
        );
    }

    #[test]
    fn who_must_refuse_is_held_to_it() {
        let alone = Case {
            wanted: Wanted::Alone,
            ..Case::default()
        };
        assert_eq!(places(&alone, &ran(STDOUT)), ["end of fio"]);
        let stricter = Case {
            wanted: Wanted::Stricter,
            ..Case::default()
        };
        assert_eq!(places(&stricter, &ran(STDOUT)), ["end of ours", "files"]);
    }
}
