//! An ended run, as the history keeps it and comparisons take it.

use fathom_record::{Measure, Record};

use crate::subject;

/// An ended run: its numbers, and what they are comparable with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FinishedRun {
    /// Duration, ms.
    pub wall_ms: u64,
    /// Text of its jobs, without the seed. Runs of one plan on one machine are comparable.
    pub plan: String,
    /// Machine as JSON: hardware and file systems, or the model.
    pub machine: String,
    /// Subject as JSON: kernel, program, firmware.
    pub subject: String,
    /// Disturbance, or another remark.
    pub note: Option<String>,
    /// Its metrics.
    pub measures: Vec<Measure>,
    /// The whole record as JSON, if there is one.
    pub record: Option<String>,
    /// The user's tags.
    pub tags: Vec<(String, String)>,
}

impl FinishedRun {
    /// Takes everything from a record. `program` is the name and version of the program that ran,
    /// and `model` the text of the machine file of a run in virtual time.
    #[must_use]
    pub fn of_record(record: &Record, program: &str, model: Option<&str>) -> Self {
        Self {
            wall_ms: record.elapsed_ms,
            plan: subject::plan_text(record),
            machine: subject::machine_json(record, model),
            subject: subject::subject_json(record, program),
            note: None,
            measures: fathom_record::measures(record),
            record: record.to_brief_json().ok(),
            tags: Vec::new(),
        }
    }
}
