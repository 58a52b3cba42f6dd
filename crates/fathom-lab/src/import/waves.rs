//! Waves of a fio report's jobs: those that ran at once, and those that followed (`stonewall`).
//!
//! A report has the groups of jobs, which `new_group` separates as well, and leaves `stonewall` out
//! where it is written without a value. The begins of the jobs tell which groups followed; without
//! them, the time of the run does: all runtimes fit into it one after another, or they do not.

use fathom_record::JobRecord;
use serde_json::Value;

use super::fio::{jobs, number};

/// Gives the jobs of a report their waves. Returns a note if these are concluded from times.
pub(super) fn set_waves(jobs: &mut [JobRecord], report: &Value) -> Option<&'static str> {
    let groups = groups(jobs.iter().map(|job| {
        Span {
            group: job.group_id.into(),
            start_ms: job.start_ms,
            runtime_ms: job
                .directions
                .each()
                .iter()
                .map(|one| one.runtime_ms)
                .max()
                .unwrap_or(0),
        }
    }));
    let waves = waves(&groups, elapsed_ms(report));
    let of_group = |job: &JobRecord| {
        let mut all = groups.iter().zip(&waves);
        all.find(|(group, _)| group.group == u64::from(job.group_id))
            .map(|(_, wave)| *wave)
    };
    for job in &mut *jobs {
        job.wave = of_group(job);
    }
    (groups.len() > 1).then(|| match waves.last() {
        Some(0) => "its groups of jobs ran at once, as their times tell: the report does not",
        _ => "its groups of jobs ran one after another, as their times tell: the report does not",
    })
}

/// Returns the time in which the jobs of a report ran, ms.
pub(super) fn ran_ms(report: &Value) -> u64 {
    let directions = |job: &Value| {
        let each = ["read", "write", "trim"].map(|direction| number(&job[direction]["runtime"]));
        each.into_iter().max().unwrap_or(0)
    };
    let groups = groups(jobs(report).map(|job| Span {
        group: number(&job["groupid"]),
        start_ms: number(&job["job_start"]),
        runtime_ms: directions(job),
    }));
    let waves = waves(&groups, elapsed_ms(report));
    let of_wave = |wave| {
        let all = groups.iter().zip(&waves).filter(|(_, of)| **of == wave);
        all.map(|(group, _)| group.runtime_ms).max().unwrap_or(0)
    };
    let last = waves.last().copied().unwrap_or(0);
    (0..=last).map(of_wave).fold(0, u64::saturating_add)
}

/// Begin and longest runtime of a job, or of the jobs of a group.
struct Span {
    group: u64,
    /// 0 if it is not known.
    start_ms: u64,
    runtime_ms: u64,
}

/// Joins neighbours of the same group.
fn groups(jobs: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut groups: Vec<Span> = Vec::new();
    for job in jobs {
        match groups.last_mut().filter(|last| last.group == job.group) {
            Some(last) => {
                last.start_ms = last.start_ms.min(job.start_ms);
                last.runtime_ms = last.runtime_ms.max(job.runtime_ms);
            }
            None => groups.push(job),
        }
    }
    groups
}

/// Returns the wave of each group.
fn waves(groups: &[Span], elapsed_ms: u64) -> Vec<u32> {
    let has_starts = groups.iter().all(|group| group.start_ms > 0);
    let in_turn = groups
        .iter()
        .map(|group| group.runtime_ms)
        .fold(0, u64::saturating_add);
    let fits = in_turn <= elapsed_ms;
    let (mut wave, mut end_ms) = (0, 0);
    let of_group = |group: &Span| {
        let follows = match has_starts {
            true => group.start_ms.saturating_add(ROUNDING_MS) >= end_ms,
            false => fits,
        };
        if end_ms > 0 && follows {
            wave += 1;
        }
        end_ms = end_ms
            .max(group.start_ms.saturating_add(group.runtime_ms))
            .max(1);
        wave
    };
    groups.iter().map(of_group).collect()
}

/// Returns the time since the start of the run, which fio has in seconds, rounded up.
fn elapsed_ms(report: &Value) -> u64 {
    let seconds = jobs(report).map(|job| number(&job["elapsed"]));
    seconds.max().unwrap_or(0).saturating_mul(1000)
}

/// Begins and runtimes are whole milliseconds.
const ROUNDING_MS: u64 = 1;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Jobs by group, begin and runtime.
    #[track_caller]
    fn check(jobs: &[(u64, u64, u64)], elapsed_s: u64, want: u64) {
        let job = |(group, start_ms, runtime_ms): &(u64, u64, u64)| {
            json!({"groupid": group, "job_start": start_ms, "elapsed": elapsed_s,
                   "read": {"runtime": runtime_ms}})
        };
        let jobs: Vec<Value> = jobs.iter().map(job).collect();
        assert_eq!(ran_ms(&json!({"jobs": jobs})), want);
    }

    #[test]
    fn groups_follow_one_another_as_their_times_tell() {
        check(&[(0, 5_000, 1_000), (1, 6_000, 1_000)], 3, 2_000);
        check(
            &[(0, 5_000, 1_000), (0, 5_001, 1_500), (1, 5_002, 900)],
            3,
            1_500,
        );
        // Without begins.
        check(&[(0, 0, 3_000), (1, 0, 3_000)], 7, 6_000);
        check(&[(0, 0, 3_000), (1, 0, 3_000)], 4, 3_000);
    }
}
