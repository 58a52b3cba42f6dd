//! Sums of the records of ranks: they are exact, name what they refuse, and say what is missing.

use fathom_record::{
    DirectionRecord, DiskRecord, HostRecord, HostSum, HostSumError, JobRecord, ModelledMachine,
    Record, TimelineRecord, Warning,
};
use fathom_stats::{Latency, Window, Windows};

/// Returns the record of a rank with a job of these latencies.
fn rank(rank: u32, ranks: u32, latencies: &[u64]) -> Record {
    let start_ns = 1_000_000_000 + u64::from(rank) * 1_000_000;
    Record {
        hosts: vec![HostRecord {
            name: format!("n{rank}"),
            rank,
            ranks,
            start_ns,
            end_ns: start_ns + 2_000_000_000,
            ..HostRecord::default()
        }],
        jobs: vec![job("a", latencies)],
        timelines: vec![timeline(latencies)],
        disks: vec![DiskRecord {
            name: "vda".to_owned(),
            ..DiskRecord::default()
        }],
        ..Record::default()
    }
}

fn job(name: &str, latencies: &[u64]) -> JobRecord {
    let mut clat = Latency::new(true);
    clat.record_all(latencies);
    let mut job = JobRecord {
        name: name.to_owned(),
        number: 1,
        options: vec![("rw".to_owned(), "read".to_owned())],
        ..JobRecord::default()
    };
    job.depth_level[3] = latencies.len() as u64;
    job.directions.read = DirectionRecord {
        bytes: latencies.len() as u64 * 4096,
        ios: latencies.len() as u64,
        runtime_ms: 2000,
        clat: Some(clat),
        ..DirectionRecord::default()
    };
    job
}

/// Returns a timeline with a window per op.
fn timeline(latencies: &[u64]) -> TimelineRecord {
    let window = |&ns: &u64| {
        let mut histogram = fathom_stats::Histogram::new();
        histogram.record(ns);
        Window {
            ios: 1,
            bytes: 4096,
            min_ns: ns,
            max_ns: ns,
            bins: histogram.buckets().collect(),
        }
    };
    TimelineRecord {
        group_id: Some(0),
        direction: "read".to_owned(),
        latency: Some("clat".to_owned()),
        start_ns: 0,
        windows: Windows {
            width_ns: 100_000_000,
            end_ns: 2_000_000_000,
            windows: latencies.iter().map(window).collect(),
        },
    }
}

/// Returns latencies from some ns to some seconds.
fn latencies(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 32) >> (state % 29)
    };
    (0..count).map(|_| next()).collect()
}

fn sum(records: Vec<Record>) -> Record {
    let mut sum = HostSum::new();
    records
        .into_iter()
        .for_each(|record| sum.add(record).unwrap());
    sum.finish().unwrap()
}

#[test]
fn the_sum_equals_the_same_ops_recorded_as_one() {
    let parts: Vec<Vec<u64>> = (0..7_u32)
        .map(|seed| latencies(u64::from(seed), 500))
        .collect();
    let ranks = (0..7).zip(&parts).map(|(at, part)| rank(at, 7, part));
    let sum = sum(ranks.collect());
    let one = job("a", &parts.concat());
    let text = |latency: &Option<Latency>| serde_json::to_string(latency).unwrap();
    let (read, want) = (&sum.jobs[0].directions.read, &one.directions.read);
    assert_eq!((read.ios, read.bytes), (want.ios, want.bytes));
    assert_eq!(text(&read.clat), text(&want.clat));
    assert_eq!(sum.jobs[0].depth_level, one.depth_level);
    let windows = &sum.timelines[0].windows;
    let histogram = want.clat.as_ref().unwrap().histogram.as_ref().unwrap();
    assert!(windows.histogram().buckets().eq(histogram.buckets()));
    let total = windows.total();
    let summary = &want.clat.as_ref().unwrap().summary;
    assert_eq!((total.ios, total.bytes), (want.ios, want.bytes));
    assert_eq!((total.min_ns, total.max_ns), (summary.min(), summary.max()));
    assert_eq!(sum.warnings, []);
}

#[test]
fn each_rank_keeps_its_own() {
    let mut second = rank(1, 2, &[100, 200, 300, 5000]);
    second.warnings.push(Warning::default());
    let sum = sum(vec![rank(0, 2, &[100]), second]);
    let [first, second] = sum.hosts.as_slice() else {
        panic!("{:?}", sum.hosts);
    };
    assert_eq!((first.warnings.len(), second.warnings.len()), (0, 1));
    let found = &second.results[0];
    assert_eq!((found.ios, found.max_ns, found.mean_ns), (4, 5000, 1400.0));
    assert_eq!(
        (found.latency.as_deref(), found.iops()),
        (Some("clat"), 2.0)
    );
    let disks: Vec<_> = sum
        .disks
        .iter()
        .map(|disk| (disk.host, disk.name.as_str()))
        .collect();
    assert_eq!(disks, [(Some(0), "n0/vda"), (Some(1), "n1/vda")]);
}

#[test]
fn jobs_of_different_plans_stand_side_by_side() {
    let mut sum = HostSum::new();
    sum.begin_plan();
    for rank_of_first in 0..2 {
        sum.add(rank(rank_of_first, 4, &[1, 2])).unwrap();
    }
    sum.begin_plan();
    for rank_of_second in 2..4 {
        let mut other = rank(rank_of_second, 4, &[7]);
        other.jobs[0].name = "b".to_owned();
        sum.add(other).unwrap();
    }
    let sum = sum.finish().unwrap();
    let jobs = sum.jobs.iter().map(|job| {
        let ios = job.directions.read.ios;
        (&*job.name, job.number, job.group_id, ios)
    });
    assert_eq!(jobs.collect::<Vec<_>>(), [("a", 1, 0, 4), ("b", 2, 1, 2)]);
    let groups = sum.timelines.iter().map(|timeline| timeline.group_id);
    assert_eq!(groups.collect::<Vec<_>>(), [Some(0), Some(1)]);
    let disks = sum.disks.iter().map(|disk| disk.host);
    assert_eq!(
        disks.collect::<Vec<_>>(),
        (0..4).map(Some).collect::<Vec<_>>()
    );
    assert_eq!(sum.warnings, []);
}

#[track_caller]
fn check_refused(change: impl Fn(&mut Record), want: &str) {
    let mut record = rank(1, 3, &[5]);
    change(&mut record);
    let mut sum = HostSum::new();
    sum.add(rank(0, 3, &[1])).unwrap();
    let error = sum.add(record).unwrap_err();
    assert_eq!(error.to_string(), want);
    // The sum goes on as if it had not been there.
    sum.add(rank(2, 3, &[1])).unwrap();
    assert_eq!(sum.finish().unwrap().jobs[0].directions.read.ios, 2);
}

#[test]
fn what_does_not_belong_is_refused() {
    check_refused(
        |r| r.hosts.clear(),
        "the record of a run on one host, without a rank",
    );
    check_refused(|r| r.hosts[0].rank = 0, "rank 0 appears twice");
    check_refused(|r| r.hosts[0].rank = 3, "rank 3 of 3 ranks");
    check_refused(
        |r| r.hosts[0].ranks = 4,
        "a rank of 4, but the ones before are of 3",
    );
    check_refused(
        |r| r.modelled = Some(ModelledMachine::default()),
        "modelled and measured runs have no sum",
    );
    check_refused(
        |r| r.jobs[0].options[0].1 = "write".to_owned(),
        "another plan than that of rank 0: job `a`: `rw=write` instead of `rw=read`",
    );
    check_refused(
        |r| r.global_options.push(("direct".to_owned(), String::new())),
        "another plan than that of rank 0: [global]: `direct` instead of nothing",
    );
    let second = || JobRecord {
        number: 2,
        ..job("b", &[])
    };
    check_refused(
        |r| r.jobs.push(second()),
        "another plan than that of rank 0: 2 jobs instead of 1",
    );
    check_refused(
        |r| r.jobs = vec![second()],
        "another plan than that of rank 0: job `b` is not in both",
    );
    check_refused(
        |r| {
            r.jobs = vec![second()];
            r.hosts[0].left_out = vec!["a".to_owned()];
        },
        "another plan than that of rank 0: job `b` is not in both",
    );
    check_refused(
        |r| r.hosts.push(HostRecord::default()),
        "the sum of several ranks already",
    );
}

/// Returns the record of a rank with the jobs of these names and numbers, of three.
fn with_jobs(at: u32, has: &[(&str, u32)], left_out: &[&str]) -> Record {
    let mut record = rank(at, 2, &[5]);
    record.jobs = has
        .iter()
        .map(|(name, number)| JobRecord {
            number: *number,
            ..job(name, &[7])
        })
        .collect();
    record.hosts[0].left_out = left_out.iter().map(|&name| name.to_owned()).collect();
    record
}

#[test]
fn ranks_may_have_different_jobs() {
    let all = [("a", 1), ("b", 2), ("c", 3)];
    let (first, second) = (
        with_jobs(0, &all[1..], &["a"]),
        with_jobs(1, &all[..2], &["c"]),
    );
    let sum = sum(vec![first, second]);
    let jobs = sum.jobs.iter();
    let jobs: Vec<_> = jobs
        .map(|job| (job.name.as_str(), job.number, job.directions.read.ios))
        .collect();
    assert_eq!(jobs, [("a", 1, 1), ("b", 2, 2), ("c", 3, 1)]);
    assert_eq!(sum.warnings, []);
    let results = sum.hosts.iter().map(|host| host.results.len());
    assert_eq!(results.collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn jobs_that_no_rank_has_are_told_of() {
    let records = [0, 1].map(|at| with_jobs(at, &[("b", 2)], &["a"]));
    let sum = sum(records.to_vec());
    let [warning] = sum.warnings.as_slice() else {
        panic!("{:?}", sum.warnings);
    };
    assert_eq!(warning.message, "no rank has these jobs: a");
}

#[test]
fn records_that_end_before_their_jobs_are_told_of() {
    let mut records: Vec<Record> = (0..6).map(|at| rank(at, 6, &[1])).collect();
    for at in [1, 3, 4] {
        records[at].hosts[0].is_cut = true;
    }
    let sum = sum(records);
    assert_eq!(sum.warnings[0].code, "ranks_cut");
    assert!(
        sum.warnings[0].message.contains("3 of 6 ranks (1, 3-4)"),
        "{:?}",
        sum.warnings
    );
    assert_eq!(sum.jobs[0].directions.read.ios, 6);
}

#[test]
fn ranks_ascend() {
    let mut sum = HostSum::new();
    sum.add(rank(2, 3, &[1])).unwrap();
    assert_eq!(sum.add(rank(1, 3, &[1])), Err(HostSumError::Order(1, 2)));
}

#[test]
fn missing_ranks_are_told_of() {
    let sum = sum(vec![rank(1, 9, &[1]), rank(5, 9, &[1])]);
    let warning = &sum.warnings[0];
    assert_eq!(warning.code, "ranks_missing");
    assert_eq!(
        warning.message,
        "7 of 9 ranks are missing (0, 2-4, 6-8): the sums cover the rest"
    );
}

#[test]
fn ranks_that_never_ran_together_are_told_of() {
    let mut late = rank(1, 2, &[1]);
    late.hosts[0].start_ns += 3_000_000_000;
    late.hosts[0].end_ns += 3_000_000_000;
    let sum = sum(vec![rank(0, 2, &[1]), late]);
    assert_eq!(sum.warnings[0].code, "ranks_not_together");
    // Windows are aligned by the clock: the second rank's op is 3 s later.
    let windows = &sum.timelines[0].windows;
    assert_eq!(
        windows.windows.iter().rposition(|window| window.ios == 1),
        Some(30)
    );
}

#[test]
fn a_rank_that_began_earlier_shifts_the_others() {
    let mut early = rank(1, 2, &[1]);
    early.hosts[0].start_ns -= 501_000_000;
    let sum = sum(vec![rank(0, 2, &[1]), early]);
    let windows = &sum.timelines[0].windows;
    let at: Vec<usize> = (0..windows.windows.len())
        .filter(|&at| windows.windows[at].ios > 0)
        .collect();
    assert_eq!(at, [0, 5]);
}
