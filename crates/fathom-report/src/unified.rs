//! `unified_rw_reporting`: directions merged into one.
//!
//! As in fio the merged direction takes the place of reads, under the name `mixed`; its bandwidth
//! and IOPS samples are summed as for the jobs of a group.

use fathom_core::Direction;
use fathom_record::{DirectionRecord, JobRecord, PerDirectionRecord, Unified};

use crate::group::ReportedJob;

/// Merges the directions of a job, if `unified_rw_reporting` requests it.
pub(crate) fn unify(entry: &mut ReportedJob<'_>) {
    match entry.job.display.unified {
        Unified::None => {}
        Unified::Both => entry.mixed = Some(Box::new(mixed(&entry.job))),
        Unified::Mixed => {
            let job = entry.job.to_mut();
            job.directions = PerDirectionRecord {
                read: mixed(job),
                ..PerDirectionRecord::default()
            };
        }
    }
}

fn mixed(job: &JobRecord) -> DirectionRecord {
    let mut all = job.directions.read.clone();
    for other in [&job.directions.write, &job.directions.trim] {
        all.add(job.priority, (other, job.priority), &job.display);
    }
    all
}

/// Returns the directions that are shown, with their names.
pub(crate) fn shown(job: &JobRecord) -> impl Iterator<Item = (Direction, &'static str)> {
    let is_mixed = job.display.unified == Unified::Mixed;
    let count = if is_mixed { 1 } else { Direction::ALL.len() };
    let name = move |kind: Direction| if is_mixed { MIXED } else { kind.name() };
    let all = Direction::ALL.into_iter().take(count);
    all.map(move |kind| (kind, name(kind)))
}

/// Name of the merged directions.
pub(crate) const MIXED: &str = "mixed";

#[cfg(test)]
mod tests {
    use fathom_record::{PriorityRecord, Record};
    use fathom_stats::Latency;

    use super::*;
    use crate::group::reported_jobs;
    use crate::rate::GroupRates;

    fn record(unified: Unified) -> Record {
        let mut job = JobRecord::default();
        job.display.unified = unified;
        job.directions.read.bytes = 100;
        job.directions.read.ios = 1;
        job.directions.read.runtime_ms = 10;
        job.directions.read.bandwidth.record(5);
        job.directions.write.bytes = 300;
        job.directions.write.ios = 3;
        job.directions.write.runtime_ms = 20;
        job.directions.write.bandwidth.record(7);
        Record {
            jobs: vec![job],
            ..Record::default()
        }
    }

    #[test]
    fn mixed_replaces_reads() {
        let record = record(Unified::Mixed);
        let entries = reported_jobs(&record);
        let job = &entries[0].job;
        let read = &job.directions.read;
        assert_eq!((read.bytes, read.ios, read.runtime_ms), (400, 4, 20));
        assert_eq!((read.bandwidth.min(), read.bandwidth.count()), (12, 2));
        assert_eq!(job.directions.write.ios, 0);
        assert_eq!(shown(job).collect::<Vec<_>>(), [(Direction::Read, "mixed")]);
        let json: serde_json::Value =
            serde_json::from_str(&crate::document::json(&record, false)).unwrap();
        let job = &json["jobs"][0];
        assert_eq!(job["mixed"]["total_ios"], 4);
        assert!(job["read"].is_null() && job["write"].is_null() && job["sync"].is_null());
        let text = crate::text::text(&record);
        assert!(text.contains("\n  mixed: IOPS=200,"), "{text}");
        assert!(text.contains("\n  MIXED: bw="), "{text}");
        assert!(!text.contains("READ"), "{text}");
    }

    #[test]
    fn directions_of_scattered_group_members_are_merged() {
        let mut record = record(Unified::Both);
        let job = record.jobs[0].clone();
        for (group_id, bytes) in [(7, 50), (0, 500), (7, 60)] {
            let mut job = job.clone();
            job.group_id = group_id;
            job.directions.trim.bytes = bytes;
            record.jobs.push(job);
        }
        let entries = reported_jobs(&record);
        let groups = GroupRates::of_groups(&entries);
        let of = |group_id| {
            let rates: &GroupRates<'_> = &groups[&group_id];
            let each = Direction::ALL.map(|direction| rates.each[direction].bytes);
            (rates.mixed.bytes, each)
        };
        assert_eq!(of(0), (1300, [200, 600, 500]));
        assert_eq!(of(7), (910, [200, 600, 110]));
    }

    #[test]
    fn priorities_are_merged_over_directions() {
        let mut record = record(Unified::Mixed);
        let entry = |priority| {
            let mut latency = Latency::default();
            latency.record(100);
            PriorityRecord { priority, latency }
        };
        let directions = &mut record.jobs[0].directions;
        directions.read.priorities = vec![entry(0), entry(0x2000)];
        directions.write.priorities = vec![entry(0), entry(0x2000)];
        let json: serde_json::Value =
            serde_json::from_str(&crate::document::json(&record, false)).unwrap();
        let prios = &json["jobs"][0]["mixed"]["prios"];
        let counts = [0, 1].map(|at| prios[at]["clat_ns"]["N"].as_u64());
        assert_eq!(counts, [Some(2), Some(2)], "{prios}");
    }

    #[test]
    fn both_shows_each_direction_and_mixed() {
        let record = record(Unified::Both);
        let json: serde_json::Value =
            serde_json::from_str(&crate::document::json(&record, false)).unwrap();
        let job = &json["jobs"][0];
        let ios = ["read", "write", "trim", "mixed"].map(|kind| job[kind]["total_ios"].as_u64());
        assert_eq!(ios, [Some(1), Some(3), Some(0), Some(4)]);
        let text = crate::text::text(&record);
        for line in [
            "  read: ",
            "  write: ",
            "  mixed: ",
            "   READ: ",
            "  WRITE: ",
            "  MIXED: ",
        ] {
            assert!(text.contains(&format!("\n{line}")), "{line}: {text}");
        }
        let fields = |layout| crate::terse::terse(&record, layout).split(';').count();
        assert_eq!(fields(5), 190 - 10 + 47);
    }
}
