//! Saved records: of a run, and of `fathom peak`, which reads one back for a comparison.

use std::fmt::Display;

use fathom_core::OutputFormat;
use fathom_record::{PeakRecord, Record};
use fathom_report::{peak_matrix, peak_summary, peak_table, render};

use crate::target::Verdict;

/// Decodes a record of either kind, renders it, and writes it again.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let Ok(input) = std::str::from_utf8(input) else {
        return Ok(Verdict::Refused("not UTF-8".to_owned()));
    };
    match (Record::from_json(input), PeakRecord::from_json(input)) {
        (Ok(record), _) => {
            for format in FORMATS {
                let _ = render(&record, format, 5);
            }
            survives(&record, Record::to_json, Record::from_json)
        }
        (_, Ok(record)) => {
            let _ = (
                peak_table(&record),
                peak_matrix(&record),
                peak_summary(&record, Some(&record)),
            );
            survives(&record, PeakRecord::to_json, PeakRecord::from_json)
        }
        (Err(error), Err(_)) => Ok(Verdict::Refused(error.to_string())),
    }
}

/// Keys of both records.
pub(crate) fn words() -> Vec<String> {
    let text = String::from_utf8_lossy(RUN);
    let keys = text.split('"').skip(1).step_by(2);
    let keys: std::collections::BTreeSet<_> = keys.filter(|key| is_key(key)).collect();
    keys.into_iter().map(|key| format!("\"{key}\":")).collect()
}

/// Checks that a record can be written, and reads back as what was written.
fn survives<T, E: Display>(
    record: &T,
    write: fn(&T) -> Result<String, E>,
    read: fn(&str) -> Result<T, E>,
) -> Result<Verdict, String> {
    let failed = |error: E| format!("an accepted record does not survive: {error}");
    let first = write(record).map_err(failed)?;
    let second = write(&read(&first).map_err(failed)?).map_err(failed)?;
    match first == second {
        true => Ok(Verdict::Accepted),
        false => Err("an accepted record differs when it is written and read again".to_owned()),
    }
}

fn is_key(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

const FORMATS: [OutputFormat; 3] = [
    OutputFormat::Normal,
    OutputFormat::JsonPlus,
    OutputFormat::Terse,
];

/// A record whose keys make up the dictionary.
const RUN: &[u8] = include_bytes!("../../corpus/record/run");
