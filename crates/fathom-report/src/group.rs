//! Blocks of a report: single jobs, or neighbouring jobs of a group merged into one.

use std::borrow::Cow;

use fathom_record::{
    DirectionRecord, JobRecord, LogRecord, Record, SyncRecord, Tolerated, VerifyRecord,
};
use fathom_stats::Latency;

use crate::priorities;
use crate::stalls;
use crate::unified;

/// Job as a report shows it: a single job, or several of a group merged.
pub(crate) struct ReportedJob<'a> {
    /// The job, or the sum of the merged jobs.
    pub(crate) job: Cow<'a, JobRecord>,
    /// Number of merged jobs.
    pub(crate) members: u32,
    /// All directions merged, if they are shown beside each one.
    pub(crate) mixed: Option<Box<DirectionRecord>>,
}

/// Merges the jobs of a record into those that a report shows; hidden jobs are left out.
pub(crate) fn reported_jobs(record: &Record) -> Vec<ReportedJob<'_>> {
    let mut entries: Vec<ReportedJob<'_>> = Vec::new();
    for job in record.jobs.iter().filter(|job| !job.display.hidden) {
        match entries.last_mut() {
            Some(last) if job.group_reporting && last.job.group_id == job.group_id => {
                merge(last.job.to_mut(), job);
                last.members += 1;
            }
            _ => entries.push(ReportedJob {
                job: Cow::Borrowed(job),
                members: 1,
                mixed: None,
            }),
        }
    }
    entries.iter_mut().for_each(unified::unify);
    entries
}

/// Adds `job` to its group, as fio does: counts are summed, a direction's runtime is the longest,
/// the error is the first one; name, pid and units are those of the first job, options of the last,
/// depth and latency target of the last job that ran.
fn merge(group: &mut JobRecord, job: &JobRecord) {
    group.options.clone_from(&job.options);
    if job.depth_level.iter().any(|&ops| ops > 0) {
        group.iodepth = job.iodepth;
        group.latency_target = job.latency_target;
    }
    if group.description.is_none() {
        group.description.clone_from(&job.description);
    }
    if group.error == 0 {
        group.error = job.error;
        group.error_text.clone_from(&job.error_text);
    }
    merge_tolerated(&mut group.tolerated, job.tolerated);
    merge_logs(&mut group.log, job.log);
    merge_verify(&mut group.verify, job.verify.as_ref());
    match (&mut group.scheduling, &job.scheduling) {
        (Some(group), Some(job)) => group.merge(job),
        (group @ None, Some(job)) => *group = Some(*job),
        (_, None) => {}
    }
    match (&mut group.block_lives, &job.block_lives) {
        (Some(group), Some(job)) => group.merge(job),
        (None, Some(job)) => group.block_lives = Some(job.clone()),
        (_, None) => {}
    }
    group.own_cost = group.own_cost.or(job.own_cost);
    stalls::merge(&mut group.stalls, &job.stalls);
    group.asynchronous |= job.asynchronous;
    let (left, right) = (&mut group.directions, &job.directions);
    for (left, right) in [
        (&mut left.read, &right.read),
        (&mut left.write, &right.write),
        (&mut left.trim, &right.trim),
    ] {
        let lat = group.display.lat_percentiles;
        priorities::merge((left, group.priority), (right, job.priority), lat);
        merge_direction(left, right);
    }
    merge_sync(&mut group.sync, &job.sync);
    group.runtime_ms = group.runtime_ms.saturating_add(job.runtime_ms);
    add_all(
        [
            &mut group.cpu.user_us,
            &mut group.cpu.system_us,
            &mut group.cpu.wall_us,
            &mut group.cpu.context_switches,
            &mut group.cpu.major_faults,
            &mut group.cpu.minor_faults,
        ],
        [
            job.cpu.user_us,
            job.cpu.system_us,
            job.cpu.wall_us,
            job.cpu.context_switches,
            job.cpu.major_faults,
            job.cpu.minor_faults,
        ],
    );
    add_all(group.depth_level.each_mut(), job.depth_level);
    add_all(group.depth_submit.each_mut(), job.depth_submit);
    add_all(group.depth_complete.each_mut(), job.depth_complete);
    group.submissions = group.submissions.saturating_add(job.submissions);
    group.reapings = group.reapings.saturating_add(job.reapings);
}

pub(crate) fn merge_direction(group: &mut DirectionRecord, job: &DirectionRecord) {
    add_all(
        [
            &mut group.bytes,
            &mut group.ios,
            &mut group.short_ios,
            &mut group.dropped_ios,
        ],
        [job.bytes, job.ios, job.short_ios, job.dropped_ios],
    );
    group.runtime_ms = group.runtime_ms.max(job.runtime_ms);
    merge_latency(&mut group.slat, job.slat.as_ref());
    merge_latency(&mut group.clat, job.clat.as_ref());
    merge_latency(&mut group.lat, job.lat.as_ref());
    merge_latency(&mut group.lag, job.lag.as_ref());
    merge_latency(&mut group.resp, job.resp.as_ref());
    merge_latency(&mut group.queued, job.queued.as_ref());
    group.bandwidth.add_group(&job.bandwidth);
    group.iops.add_group(&job.iops);
}

fn merge_latency(group: &mut Option<Latency>, job: Option<&Latency>) {
    match (group, job) {
        (Some(group), Some(job)) => group.merge(job),
        (group @ None, Some(job)) => *group = Some(job.clone()),
        (_, None) => {}
    }
}

fn merge_sync(group: &mut SyncRecord, job: &SyncRecord) {
    group.ios = group.ios.saturating_add(job.ios);
    group.lat.merge(&job.lat);
}

fn merge_verify(group: &mut Option<VerifyRecord>, job: Option<&VerifyRecord>) {
    let Some(job) = job else {
        return;
    };
    let group = group.get_or_insert_default();
    group.mismatches += job.mismatches;
    group.first.extend_from_slice(&job.first);
}

fn merge_tolerated(group: &mut Option<Tolerated>, job: Option<Tolerated>) {
    match (group, job) {
        (Some(group), Some(job)) => {
            group.total = group.total.saturating_add(job.total);
            if group.first == 0 {
                group.first = job.first;
            }
        }
        (group @ None, job) => *group = job,
        (_, None) => {}
    }
}

fn merge_logs(group: &mut Option<LogRecord>, job: Option<LogRecord>) {
    if let (Some(group), Some(job)) = (group.as_mut(), job) {
        add_all(
            [&mut group.lines_kept, &mut group.lines_dropped],
            [job.lines_kept, job.lines_dropped],
        );
    } else {
        *group = group.or(job);
    }
}

fn add_all<const N: usize>(own: [&mut u64; N], add: [u64; N]) {
    for (own, add) in own.into_iter().zip(add) {
        *own = own.saturating_add(add);
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::LatencyTargetRecord;

    use super::*;

    fn job(name: &str, group_id: u32, group_reporting: bool) -> JobRecord {
        let mut job = JobRecord {
            name: name.to_owned(),
            group_id,
            group_reporting,
            ..JobRecord::default()
        };
        job.directions.read.bytes = 1000;
        job.directions.read.runtime_ms = 10;
        job.runtime_ms = 10;
        job
    }

    #[track_caller]
    fn check(jobs: Vec<JobRecord>, want: &[(&str, u32)]) {
        let record = Record {
            jobs,
            ..Record::default()
        };
        let entries = reported_jobs(&record);
        let got: Vec<_> = entries
            .iter()
            .map(|e| (e.job.name.as_str(), e.members))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn neighbours_of_one_group_are_merged() {
        check(vec![], &[]);
        check(
            vec![job("a", 0, false), job("b", 0, false)],
            &[("a", 1), ("b", 1)],
        );
        check(vec![job("a", 0, true), job("b", 0, true)], &[("a", 2)]);
        check(
            vec![job("a", 0, true), job("b", 1, true)],
            &[("a", 1), ("b", 1)],
        );
        check(
            vec![job("a", 0, true), job("b", 0, false)],
            &[("a", 1), ("b", 1)],
        );
        let mut hidden = job("h", 0, true);
        hidden.display.hidden = true;
        check(
            vec![job("a", 0, true), hidden, job("b", 0, true)],
            &[("a", 2)],
        );
    }

    #[test]
    fn the_rules_of_merging() {
        let mut first = job("a", 0, true);
        first.pid = 1;
        let mut second = job("b", 0, true);
        second.pid = 2;
        second.error = 5;
        second.description = Some("later".to_owned());
        second.options = vec![("rw".to_owned(), "read".to_owned())];
        second.directions.read.runtime_ms = 30;
        second.runtime_ms = 30;
        second.directions.read.bandwidth.record(7);
        second.tolerated = Some(Tolerated { total: 3, first: 5 });
        let mut clat = Latency::new(true);
        clat.record(9);
        second.directions.read.clat = Some(clat);
        second.depth_level[6] = 4;
        second.iodepth = 8;
        second.latency_target = Some(LatencyTargetRecord::default());
        merge(&mut first, &second);
        assert_eq!(
            (first.iodepth, first.latency_target),
            (8, second.latency_target)
        );
        assert_eq!((first.name.as_str(), first.pid, first.error), ("a", 1, 5));
        assert_eq!(first.options, second.options);
        assert_eq!(first.description, second.description);
        let read = &first.directions.read;
        assert_eq!(
            (read.bytes, read.runtime_ms, first.runtime_ms),
            (2000, 30, 40)
        );
        assert_eq!(read.clat.as_ref().map(|clat| clat.summary.count()), Some(1));
        assert_eq!((read.bandwidth.min(), first.depth_level[6]), (7, 4));
        assert_eq!(first.tolerated.map(|tolerated| tolerated.total), Some(3));
        merge(&mut first, &job("not run", 0, true));
        assert_eq!(first.iodepth, 8, "that of the last one that ran");
    }
}
