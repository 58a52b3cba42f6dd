//! An ended run, as the history keeps it and comparisons take it.

use std::borrow::Cow;

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
    /// End: done, cut or failed.
    pub end: RunEnd,
    /// Disturbance, or another remark.
    pub note: Option<String>,
    /// Its metrics.
    pub measures: Vec<Measure>,
    /// The record as JSON, if there is one, with wider windows of time if it is large.
    pub record: Option<String>,
    /// The user's tags.
    pub tags: Vec<(String, String)>,
}

/// End of a run. Only a run that is done is a measurement of its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunEnd {
    /// It ran to its end.
    #[default]
    Done,
    /// It was interrupted.
    Cut,
    /// A job ended with an error.
    Failed,
}

impl RunEnd {
    /// Returns its word in the history.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cut => "cut",
            Self::Failed => "failed",
        }
    }

    /// Returns the end that a word names; `Done` for an unknown word.
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "cut" => Self::Cut,
            "failed" => Self::Failed,
            _ => Self::Done,
        }
    }

    /// Returns how a run ended, and what is to be said of it.
    fn of_record(record: &Record) -> (Self, Option<String>) {
        let mut failed = record.jobs.iter().filter(|job| job.error != 0);
        if let Some(job) = failed.next() {
            let why = match &job.error_text {
                Some(text) => text.clone(),
                None => format!("error {}", job.error),
            };
            return (Self::Failed, Some(format!("job {}: {why}", job.name)));
        }
        let mut warnings = record.warnings.iter();
        match warnings.find(|warning| warning.code == "interrupted") {
            Some(warning) => (Self::Cut, Some(warning.message.clone())),
            None => (Self::Done, None),
        }
    }
}

impl FinishedRun {
    /// Takes everything from a record. `program` is the name and version of the program that ran,
    /// and `model` the text of the machine file of a run in virtual time.
    #[must_use]
    pub fn of_record(record: &Record, program: &str, model: Option<&str>) -> Self {
        let (end, note) = RunEnd::of_record(record);
        Self {
            wall_ms: record.elapsed_ms,
            plan: subject::plan_text(record),
            machine: subject::machine_json(record, model),
            subject: subject::subject_json(record, program),
            end,
            note,
            measures: fathom_record::measures(record),
            record: kept(record).to_json().ok(),
            tags: Vec::new(),
        }
    }
}

/// Returns the record to keep. A timeline of many small windows takes most of its space; its
/// windows merge until all have no more than [`BINS_MAX`] bins together. Sums and histograms of the
/// run stay exact, and its metrics and their intervals were computed before.
pub(crate) fn kept(record: &Record) -> Cow<'_, Record> {
    let bins = |record: &Record| -> usize {
        let timelines = record.timelines.iter();
        let windows = timelines.flat_map(|timeline| &timeline.windows.windows);
        windows
            .map(|window| window.bins.len() + BINS_OF_A_WINDOW)
            .sum()
    };
    let is_wide = |record: &Record| {
        let mut timelines = record.timelines.iter();
        timelines.all(|timeline| timeline.windows.windows.len() <= 1)
    };
    let mut kept = Cow::Borrowed(record);
    while bins(&kept) > BINS_MAX && !is_wide(&kept) {
        let timelines = kept.to_mut().timelines.iter_mut();
        timelines.for_each(|timeline| timeline.windows.widen());
    }
    kept
}

/// Most bins of a kept timeline: 10 KiB, compressed.
const BINS_MAX: usize = 2_000;

/// Space of a window's other figures, in bins.
const BINS_OF_A_WINDOW: usize = 5;

#[cfg(test)]
mod tests {
    use fathom_record::{JobRecord, TimelineRecord, Warning};
    use fathom_stats::{Window, Windows};

    use super::*;

    #[track_caller]
    fn check_end(record: &Record, end: RunEnd, note: Option<&str>) {
        let run = FinishedRun::of_record(record, "fathom", None);
        assert_eq!((run.end, run.note.as_deref()), (end, note));
    }

    #[test]
    fn runs_that_were_interrupted_or_failed_are_no_measurements() {
        let mut record = Record::default();
        check_end(&record, RunEnd::Done, None);
        record.warnings.push(Warning {
            code: "interrupted".into(),
            job: String::new(),
            message: "stopped by a signal".into(),
            hint: String::new(),
        });
        check_end(&record, RunEnd::Cut, Some("stopped by a signal"));
        record.jobs.push(JobRecord {
            name: "j".into(),
            error: 5,
            ..JobRecord::default()
        });
        check_end(&record, RunEnd::Failed, Some("job j: error 5"));
    }

    #[test]
    fn large_timelines_are_kept_in_wider_windows() {
        let window = Window {
            ios: 100,
            bytes: 4096,
            min_ns: 1,
            max_ns: 99,
            bins: (0..100).map(|index| (index, 1)).collect(),
        };
        let mut record = Record::default();
        record.timelines.push(TimelineRecord {
            windows: Windows {
                width_ns: 100,
                end_ns: 24_000,
                windows: vec![window.clone(); 240],
            },
            ..TimelineRecord::default()
        });
        let smaller = kept(&record);
        let windows = &smaller.timelines[0].windows;
        assert_eq!((windows.width_ns, windows.windows.len()), (1600, 15));
        assert_eq!(windows.total(), record.timelines[0].windows.total());
        // A small one is kept as it is, and one of a single window ends the loop.
        record.timelines[0].windows.windows.truncate(10);
        assert!(matches!(kept(&record), Cow::Borrowed(_)));
        let bins = (0..3000).map(|index| (index, 1)).collect();
        record.timelines[0].windows.windows = vec![Window { bins, ..window }];
        assert!(matches!(kept(&record), Cow::Borrowed(_)));
    }
}
