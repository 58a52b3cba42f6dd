//! Caveats of a report, printed below fio's part of it.

use fathom_record::Record;

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
    if out.is_empty() {
        return out;
    }
    format!("\nWhat to know about these numbers:\n{out}")
}

fn caveat(job: &str, sentence: &str, hint: &str) -> String {
    let whose = if job.is_empty() {
        String::new()
    } else {
        format!("{job}: ")
    };
    let sentence = sentence.replace('\n', "\n    ");
    let mut out = format!("  {whose}{sentence}\n");
    if !hint.is_empty() {
        out += &format!("    hint: {hint}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::{Validity, Warning};

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
}
