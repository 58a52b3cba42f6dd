//! Caveats of a report, printed below fio's part of it.

use std::collections::BTreeMap;

use fathom_record::{Record, Warning};

use crate::characters::{printable, printable_lines};

/// Formats failed validity checks and warnings as a block of sentences; empty if there are none.
#[must_use]
pub fn caveats(record: &Record) -> String {
    let failed = record.validity.iter().filter(|validity| !validity.ok);
    let mut out = String::new();
    for validity in failed {
        out += &caveat(&validity.job, &validity.sentence, "");
    }
    for warning in &record.warnings {
        out += &caveat(&warning.job, &warning.message, &warning.hint);
    }
    out += &of_hosts(record);
    if out.is_empty() {
        return out;
    }
    format!("\nWhat to know about these numbers:\n{out}")
}

/// Formats failed validity checks and warnings as fio prints its notes, a line each; without the
/// warnings whose messages were `told` before.
pub(crate) fn notes(record: &Record, told: &[String]) -> String {
    let failed = record.validity.iter().filter(|validity| !validity.ok);
    let failed = failed.map(|found| note(&found.job, &found.sentence, ""));
    let warnings = record.warnings.iter();
    let warnings = warnings.filter(|warning| !told.contains(&warning.message));
    let of_hosts = of_hosts(record);
    let of_hosts = of_hosts.lines().map(|line| note("", line.trim_start(), ""));
    let own = failed.chain(warnings.map(note_as_fio));
    own.chain(of_hosts).collect()
}

/// Formats a warning as fio prints its notes, on a line.
#[must_use]
pub fn note_as_fio(warning: &Warning) -> String {
    note(&warning.job, &warning.message, &warning.hint)
}

fn note(job: &str, sentence: &str, hint: &str) -> String {
    let whose = whose(job);
    let hint = match hint {
        "" => String::new(),
        hint => format!(" ({hint})"),
    };
    let line = format!("{whose}{sentence}{hint}").replace('\n', " ");
    format!("note: {}\n", printable(&line))
}

/// Formats what single hosts of a sum have to tell; the same sentence once, with the hosts.
fn of_hosts(record: &Record) -> String {
    let mut told: BTreeMap<(&str, &str, &str), (usize, Vec<&str>)> = BTreeMap::new();
    for host in &record.hosts {
        let failed = host.validity.iter().filter(|validity| !validity.ok);
        let failed = failed.map(|found| (found.job.as_str(), found.sentence.as_str(), ""));
        let warnings = host.warnings.iter();
        let warnings =
            warnings.map(|one| (one.job.as_str(), one.message.as_str(), one.hint.as_str()));
        for what in failed.chain(warnings) {
            let place = told.len();
            let (_, hosts) = told.entry(what).or_insert((place, Vec::new()));
            hosts.push(&host.name);
        }
    }
    let mut told: Vec<_> = told.into_iter().collect();
    told.sort_by_key(|(_, (place, _))| *place);
    let total = told.len();
    told.truncate(OF_HOSTS_MAX);
    let lines = told.iter().map(|((job, sentence, hint), (_, hosts))| {
        let on = match hosts.as_slice() {
            [host] => (*host).to_owned(),
            hosts if hosts.len() == record.hosts.len() => "all hosts".to_owned(),
            [host, other] => format!("{host} and {other}"),
            [host, others @ ..] => format!("{host} and {} more hosts", others.len()),
            [] => String::new(),
        };
        caveat(job, &format!("{on}: {sentence}"), hint)
    });
    let mut out: String = lines.collect();
    if total > OF_HOSTS_MAX {
        out += &format!("  {} more in JSON, by host\n", total - OF_HOSTS_MAX);
    }
    out
}

/// Sentences of single hosts in a report.
const OF_HOSTS_MAX: usize = 20;

/// Returns the beginning of a sentence about a job; empty for none.
fn whose(job: &str) -> String {
    match job {
        "" => String::new(),
        job => format!("{}: ", printable(job)),
    }
}

fn caveat(job: &str, sentence: &str, hint: &str) -> String {
    let whose = whose(job);
    let sentence = printable_lines(sentence).replace('\n', "\n    ");
    let mut out = format!("  {whose}{sentence}\n");
    if !hint.is_empty() {
        out += &format!("    hint: {}\n", printable_lines(hint));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::{HostRecord, Validity, Warning};

    #[test]
    fn only_failed_checks_and_warnings_are_printed() {
        let mut record = Record::default();
        assert_eq!(caveats(&record), "");
        let validity = |ok, sentence: &str| Validity {
            job: "a".to_owned(),
            ok,
            sentence: sentence.to_owned(),
            ..Validity::default()
        };
        record.validity = vec![
            validity(true, "All is well."),
            validity(false, "It is not."),
        ];
        record.warnings = vec![Warning {
            message: "the whole run".to_owned(),
            hint: "do less".to_owned(),
            ..Warning::default()
        }];
        assert_eq!(
            caveats(&record),
            "\nWhat to know about these numbers:\n  a: It is not.\n  the whole run\n    \
             hint: do less\n"
        );
    }

    #[test]
    fn hosts_with_the_same_warning_are_named_or_counted() {
        let told = |warned: usize| {
            let host = |(number, name): (usize, &&str)| HostRecord {
                name: (*name).to_owned(),
                warnings: Vec::from_iter((number < warned).then(|| Warning {
                    message: "it is late".to_owned(),
                    ..Warning::default()
                })),
                ..HostRecord::default()
            };
            let hosts = ["a", "b", "c", "d"].iter().enumerate().map(host).collect();
            of_hosts(&Record {
                hosts,
                ..Record::default()
            })
        };
        assert_eq!(told(1), "  a: it is late\n");
        assert_eq!(told(2), "  a and b: it is late\n");
        assert_eq!(told(3), "  a and 2 more hosts: it is late\n");
        assert_eq!(told(4), "  all hosts: it is late\n");
    }

    #[test]
    fn control_characters_are_written_out() {
        let mut record = Record::default();
        record.warnings.push(Warning {
            job: "a\u{1b}[2Jb".into(),
            message: "first \u{7}\nsecond".into(),
            hint: "try \u{9b}".into(),
            ..Warning::default()
        });
        let want = "\nWhat to know about these numbers:\n  a\\u{1b}[2Jb: first \\u{7}\n\
                    \x20   second\n    hint: try \\u{9b}\n";
        assert_eq!(caveats(&record), want);
    }
}
