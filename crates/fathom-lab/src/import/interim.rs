//! Interim reports of fio (`--status-interval`), told from reports of other runs.
//!
//! Before 3.36, a report does not tell when its jobs began. Then a report is a later one of the
//! same run if its jobs have the same names, did no less, and began at the same time, which is
//! before the earlier one was written.

use serde_json::Value;

use super::fio::{jobs, number, written_ms};
use super::waves::ran_ms;

/// Traces of a report's run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Traces {
    jobs: Vec<JobTraces>,
    written_ms: u64,
    ran_ms: u64,
    /// Is a later report of the run before.
    is_later: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct JobTraces {
    name: String,
    /// Its begin, where the report tells it.
    start_ms: Option<u64>,
    /// Ops of each direction.
    ops: [u64; 3],
}

impl Traces {
    /// Returns the traces of a report, and notes if it belongs to the run of the report before it.
    pub(super) fn of(report: &Value, before: Option<&Self>) -> Self {
        let of_job = |job: &Value| JobTraces {
            name: job["jobname"].as_str().unwrap_or_default().to_owned(),
            start_ms: Some(&job["job_start"])
                .filter(|start| start.is_number())
                .map(number),
            ops: ["read", "write", "trim"].map(|direction| number(&job[direction]["total_ios"])),
        };
        let mut traces = Self {
            jobs: jobs(report).map(of_job).collect(),
            written_ms: written_ms(report),
            ran_ms: ran_ms(report),
            is_later: false,
        };
        traces.is_later = before.is_some_and(|before| traces.is_later_than(before));
        traces
    }

    /// Returns whether the report is a later one of the run before it.
    pub(super) const fn is_later(&self) -> bool {
        self.is_later
    }

    fn is_later_than(&self, before: &Self) -> bool {
        let is_same = |one: &JobTraces, other: &JobTraces| {
            one.name == other.name && one.start_ms == other.start_ms
        };
        let mut pairs = self.jobs.iter().zip(&before.jobs);
        if self.jobs.is_empty()
            || self.jobs.len() != before.jobs.len()
            || !pairs.all(|(one, other)| is_same(one, other))
        {
            return false;
        }
        if self.jobs.iter().all(|job| job.start_ms.is_some()) {
            return true;
        }
        let mut ops = self.jobs.iter().zip(&before.jobs);
        let falls = ops.any(|(one, other)| one.ops.iter().zip(other.ops).any(|(a, b)| *a < b));
        let between_ms = self.written_ms.saturating_sub(before.written_ms);
        // The last report follows an interim one at any distance; a run of another host that ran at
        // the same time would, too.
        let has_interval = before.is_later || between_ms >= INTERVAL_MS;
        let is_begun_before = self.ran_ms > between_ms;
        let begins_apart = (self.written_ms.saturating_add(before.ran_ms))
            .abs_diff(before.written_ms.saturating_add(self.ran_ms));
        !falls && has_interval && is_begun_before && begins_apart <= SLACK_MS
    }
}

/// Least time between two interim reports: fio takes whole seconds, and is late now and then.
const INTERVAL_MS: u64 = 500;

/// Difference between the begins of one run by two of its reports: jobs pause between waves.
const SLACK_MS: u64 = 1500;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a report of a job by its runtime and ops, written at this time.
    fn report(written_ms: u64, runtime_ms: u64, ios: u64) -> Value {
        let read = json!({"runtime": runtime_ms, "total_ios": ios});
        let job = json!({"jobname": "a", "groupid": 0, "elapsed": 9, "read": read});
        json!({"fio version": "fio-3.33", "timestamp_ms": written_ms, "jobs": [job]})
    }

    #[track_caller]
    fn check(reports: &[(u64, u64, u64)], want: &[bool]) {
        let mut before: Option<Traces> = None;
        for (&(written_ms, runtime_ms, ios), want) in reports.iter().zip(want) {
            let traces = Traces::of(&report(written_ms, runtime_ms, ios), before.as_ref());
            assert_eq!(traces.is_later(), *want, "{written_ms}");
            before = Some(traces);
        }
    }

    #[test]
    fn reports_of_one_run_are_told_from_runs_in_turn_and_at_once() {
        let first = (10_000, 900, 90);
        check(
            &[first, (11_010, 1_905, 190), (11_020, 1_910, 190)],
            &[false, true, true],
        );
        // In turn: the second began after the first had ended.
        check(&[first, (11_010, 900, 90)], &[false, false]);
        check(&[first, (12_000, 2_890, 200)], &[false, true]);
        check(&[first, (13_000, 2_000, 200)], &[false, false]);
        // It did less.
        check(&[first, (11_010, 1_905, 80)], &[false, false]);
        // At the same time, on another host.
        check(&[first, (10_003, 902, 91)], &[false, false]);
    }
}
