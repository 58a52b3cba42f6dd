//! Directions in which a job was to do ops: if it ran and did none, its rates there are 0.

use crate::{JobRecord, Record};

/// Returns whether a job ran without an error and was to do ops of a direction. A job that replays
/// a log, or only creates or verifies files, has no such direction: its `rw` does not tell what it
/// does.
pub(super) fn is_asked(record: &Record, job: &JobRecord, direction: &str) -> bool {
    let option = |name: &str| option(record, job, name);
    // In virtual time there is no wall clock.
    let has_run_virtually = record.modelled.is_some() && record.elapsed_ms > 0;
    let has_run = job.runtime_ms > 0 || record.timestamp_ms > job.start_ms || has_run_virtually;
    let is_other = ["read_iolog", "create_only", "verify_only"]
        .into_iter()
        .any(|name| option(name).is_some());
    if job.error != 0 || !has_run || is_other {
        return false;
    }
    // fio's reports have `rw` among the options alone, with a suffix.
    let rw = match job.rw.as_str() {
        "" => option("rw").or_else(|| option("readwrite")),
        rw => Some(rw),
    };
    let rw = rw.and_then(|rw| rw.split(':').next()).unwrap_or_default();
    let ways: &[&str] = match rw.strip_prefix("rand").unwrap_or(rw) {
        "read" => &["read"],
        "write" => &["write"],
        "trim" => &["trim"],
        "trimwrite" => &["trim", "write"],
        "rw" | "readwrite" => match share_of_reads(option) {
            Some(0) => &["write"],
            Some(1..100) => &["read", "write"],
            Some(_) => &["read"],
            None => &[],
        },
        _ => &[],
    };
    match direction {
        "all" => !ways.is_empty(),
        direction => ways.contains(&direction),
    }
}

/// Returns the percentage of reads in a mix; `None` if it cannot be read.
fn share_of_reads<'a>(option: impl Fn(&str) -> Option<&'a str>) -> Option<u64> {
    let percent = |text: &str| text.trim().trim_end_matches('%').parse::<u64>().ok();
    match (option("rwmixread"), option("rwmixwrite")) {
        (Some(read), _) => percent(read),
        (None, Some(write)) => percent(write).map(|write| 100_u64.saturating_sub(write)),
        (None, None) => Some(50),
    }
}

/// Returns the value of an option of a job, or else of `[global]`.
fn option<'a>(record: &'a Record, job: &'a JobRecord, name: &str) -> Option<&'a str> {
    let all = job.options.iter().rev();
    let mut all = all.chain(record.global_options.iter().rev());
    let found = all.find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}
