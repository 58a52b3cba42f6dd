//! Blocks of a report: single jobs, or neighbouring jobs of a group merged into one.

use std::borrow::Cow;

use fathom_record::{DirectionRecord, JobRecord, Record};

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
                last.job.to_mut().add(job);
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

#[cfg(test)]
mod tests {
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
}
