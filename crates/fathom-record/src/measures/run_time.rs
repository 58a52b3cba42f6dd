//! Time in which jobs ran, of which their rates together are made.

use std::collections::BTreeMap;

use crate::{JobRecord, Record};

/// Returns the time, ms, in which jobs ran that have these runtimes, `None` for those that are not
/// meant. Jobs of a wave run at once, and the longest counts; waves (`stonewall`) follow one
/// another, and so does a job the one that it waits for (`wait_for`): these times add up.
///
/// The begins of jobs are not used: hosts differ in their clocks, reports of fio before 3.36 have
/// none, and jobs that start together do so within a few milliseconds.
pub(super) fn ran_ms(record: &Record, runtime_of: &dyn Fn(&JobRecord) -> Option<u64>) -> u64 {
    let mut waves: BTreeMap<u32, Vec<(&JobRecord, u64)>> = BTreeMap::new();
    for (job, wave) in record.jobs.iter().zip(waves_of(record)) {
        let runtime_ms = runtime_of(job).unwrap_or_default();
        waves.entry(wave).or_default().push((job, runtime_ms));
    }
    let longest = waves.values().map(|jobs| of_wave(jobs));
    longest.fold(0, u64::saturating_add)
}

impl Record {
    /// Returns the time in which its jobs ran, ms, without pauses between them.
    #[must_use]
    pub fn ran_ms(&self) -> u64 {
        ran_ms(self, &|job| Some(job.runtime_ms))
    }
}

/// Returns the time from the first begin to the last end of a wave's jobs.
fn of_wave(jobs: &[(&JobRecord, u64)]) -> u64 {
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for (job, runtime_ms) in jobs {
        // It stands before the job that waits for it.
        let begin = option(job, WAIT_FOR).and_then(|other| ends.get(other));
        let end = begin.copied().unwrap_or(0).saturating_add(*runtime_ms);
        let last = ends.entry(&job.name).or_insert(0);
        *last = end.max(*last);
    }
    ends.into_values().max().unwrap_or(0)
}

/// Returns the wave of each job. Of a record that does not tell it, a wave begins with the group of
/// a job whose options have `stonewall`.
fn waves_of<'a>(record: &'a Record) -> Vec<u32> {
    let mut wave = 0;
    let mut before: Option<&'a JobRecord> = None;
    let of_job = |job: &'a JobRecord| {
        let is_same = before.is_none_or(|before| before.group_id == job.group_id);
        if !is_same && is_walled(record, job) {
            wave += 1;
        }
        before = Some(job);
        job.wave.unwrap_or(wave)
    };
    record.jobs.iter().map(of_job).collect()
}

fn is_walled(record: &Record, job: &JobRecord) -> bool {
    WALLS.into_iter().any(|name| {
        let mut global = record.global_options.iter().rev();
        let of_all = || {
            let found = global.find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str())
        };
        option(job, name)
            .or_else(of_all)
            .is_some_and(|value| value != "0")
    })
}

fn option<'a>(job: &'a JobRecord, name: &str) -> Option<&'a str> {
    let found = job.options.iter().rev().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// Names of the option that begins a wave.
const WALLS: [&str; 2] = ["stonewall", "wait_for_previous"];

const WAIT_FOR: &str = "wait_for";

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs by name, group, options and runtime.
    type Jobs<'a> = &'a [(&'a str, u32, &'a [(&'a str, &'a str)], u64)];

    fn record(jobs: Jobs<'_>) -> Record {
        let job = |(name, group_id, options, runtime_ms): &(&str, u32, &[(&str, &str)], u64)| {
            let options = options.iter();
            JobRecord {
                name: (*name).into(),
                group_id: *group_id,
                options: options
                    .map(|(key, value)| ((*key).into(), (*value).into()))
                    .collect(),
                runtime_ms: *runtime_ms,
                ..JobRecord::default()
            }
        };
        Record {
            jobs: jobs.iter().map(job).collect(),
            ..Record::default()
        }
    }

    #[track_caller]
    fn check(jobs: Jobs<'_>, want: u64) {
        assert_eq!(ran_ms(&record(jobs), &|job| Some(job.runtime_ms)), want);
    }

    #[test]
    fn waves_follow_one_another_and_jobs_of_one_run_at_once() {
        let wall = &[("stonewall", "")][..];
        check(&[("a", 0, &[], 10), ("b", 0, &[], 12)], 12);
        check(&[("a", 0, &[], 10), ("b", 1, wall, 12)], 22);
        // Clones of a section have its options, and its group.
        check(
            &[("a", 0, wall, 9), ("b", 1, wall, 7), ("b", 1, wall, 8)],
            17,
        );
        check(&[("a", 0, &[], 9), ("b", 1, &[("new_group", "")], 8)], 9);
        check(&[("a", 0, &[], 9), ("b", 1, &[("stonewall", "0")], 8)], 9);
        let wait = &[("wait_for", "a")][..];
        check(&[("a", 0, &[], 9), ("b", 0, wait, 8), ("c", 0, &[], 5)], 17);
    }

    #[test]
    fn jobs_that_are_not_meant_take_no_time_and_part_waves_all_the_same() {
        let wall = &[("stonewall", "1")][..];
        let record = record(&[("a", 0, &[], 10), ("b", 1, wall, 50), ("a", 1, &[], 10)]);
        let of_a = |job: &JobRecord| (job.name == "a").then_some(job.runtime_ms);
        assert_eq!(ran_ms(&record, &of_a), 20);
    }

    #[test]
    fn what_a_record_tells_of_its_waves_comes_first() {
        let mut record = record(&[("a", 0, &[], 10), ("b", 0, &[], 5)]);
        for (wave, job) in (0..).zip(&mut record.jobs) {
            job.wave = Some(wave);
        }
        record.global_options = vec![("stonewall".into(), "1".into())];
        assert_eq!(ran_ms(&record, &|job| Some(job.runtime_ms)), 15);
    }
}
