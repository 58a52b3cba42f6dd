use fathom_stats::Latency;

use super::*;

/// Returns a job that read and wrote in `runtime_ms`, with these latencies of its reads.
fn job(name: &str, runtime_ms: u64, reads_ns: &[u64]) -> JobRecord {
    let mut clat = Latency::new(true);
    clat.record_all(reads_ns);
    let mut job = JobRecord {
        name: name.into(),
        runtime_ms,
        ..JobRecord::default()
    };
    job.directions.read = DirectionRecord {
        bytes: 4096 * reads_ns.len() as u64,
        ios: reads_ns.len() as u64,
        runtime_ms,
        clat: Some(clat),
        ..DirectionRecord::default()
    };
    job
}

fn record(jobs: Vec<JobRecord>) -> Record {
    Record {
        jobs,
        ..Record::default()
    }
}

#[track_caller]
fn value(record: &Record, name: &str) -> Option<f64> {
    let name = MetricName::parse(name).unwrap();
    let computed = name.value(record);
    let kept = measures(record);
    assert_eq!(name.find(&kept).map(|measure| measure.value), computed);
    computed
}

#[test]
fn jobs_are_added_up_over_the_longest_runtime() {
    let record = record(vec![job("a", 1000, &[100; 50]), job("b", 2000, &[300; 50])]);
    assert_eq!(value(&record, "read.iops"), Some(50.0));
    assert_eq!(value(&record, "read.bw"), Some(50.0 * 4096.0));
    assert_eq!(value(&record, "read.clat_mean"), Some(200.0));
    assert_eq!(value(&record, "a/read.clat_max"), Some(100.0));
    assert_eq!(value(&record, "b/read.iops"), Some(25.0));
    // Nobody wrote, and `all` is what was read.
    assert_eq!(value(&record, "write.iops"), None);
    assert_eq!(value(&record, "c/read.iops"), None);
}

#[test]
fn sections_in_turn_are_over_the_time_of_all() {
    let mut slow = record(vec![
        job("a", 1000, &[100; 100]),
        job("b", 1000, &[100; 25]),
    ]);
    slow.jobs[1].wave = Some(1);
    assert_eq!(value(&slow, "read.iops"), Some(62.5));
    assert_eq!(value(&slow, "b/read.iops"), Some(25.0));
    // One that does nothing any more takes its time, too.
    slow.jobs[1].directions.read = DirectionRecord::default();
    slow.jobs[1].rw = "read".into();
    assert_eq!(value(&slow, "read.iops"), Some(50.0));
}

#[test]
fn all_is_the_only_direction_or_their_sum() {
    let mut both = job("a", 1000, &[100; 50]);
    let only = record(vec![both.clone()]);
    assert_eq!(value(&only, "all.iops"), Some(50.0));
    assert!(measures(&only).iter().all(|one| one.direction != "all"));
    both.directions.write = both.directions.read.clone();
    both.cpu.user_us = 300;
    let two = record(vec![both]);
    assert_eq!(value(&two, "all.iops"), Some(100.0));
    assert_eq!(value(&two, "all.cpu_per_op"), Some(3000.0));
}

#[test]
fn a_direction_that_was_asked_for_has_rates_of_zero() {
    let idle = |rw: &str, options: &[(&str, &str)]| {
        let options = options.iter();
        let options = options.map(|&(key, value)| (key.to_owned(), value.to_owned()));
        let job = JobRecord {
            name: "a".into(),
            rw: rw.into(),
            options: options.collect(),
            ..JobRecord::default()
        };
        let mut record = record(vec![job]);
        record.timestamp_ms = 1000;
        record
    };
    let of = |record: &Record, name: &str| value(record, name);
    let write = idle("randwrite", &[]);
    assert_eq!(of(&write, "write.iops"), Some(0.0));
    assert_eq!(of(&write, "write.bw"), Some(0.0));
    assert_eq!(of(&write, "all.iops"), Some(0.0));
    assert_eq!(of(&write, "all.cpu_per_op"), None);
    assert_eq!(of(&write, "write.clat_mean"), None);
    assert_eq!(of(&write, "read.iops"), None);
    // Both ways of a mix, unless it has none of one.
    let mixed = idle("randrw", &[("rwmixread", "70")]);
    assert_eq!(of(&mixed, "read.iops"), Some(0.0));
    assert_eq!(of(&mixed, "write.iops"), Some(0.0));
    assert_eq!(of(&mixed, "all.bw"), Some(0.0));
    let only_reads = idle("rw", &[("rwmixread", "100")]);
    assert_eq!(of(&only_reads, "read.iops"), Some(0.0));
    assert_eq!(of(&only_reads, "write.iops"), None);
    // fio's reports.
    let imported = idle("", &[("rw", "randwrite:8")]);
    assert_eq!(of(&imported, "write.iops"), Some(0.0));
    // What the log has is not known, nor why a job that failed did nothing.
    assert_eq!(of(&idle("read", &[("read_iolog", "x")]), "read.iops"), None);
    let mut failed = idle("write", &[]);
    failed.jobs[0].error = 5;
    assert_eq!(of(&failed, "write.iops"), None);
    let mut before_its_start = idle("write", &[]);
    before_its_start.timestamp_ms = 0;
    assert_eq!(of(&before_its_start, "write.iops"), None);
    let mut modelled = before_its_start;
    modelled.modelled = Some(crate::ModelledMachine::default());
    modelled.elapsed_ms = 1000;
    assert_eq!(of(&modelled, "write.iops"), Some(0.0));
    // One way of a mix alone was done.
    let mut half = idle("rw", &[]);
    half.jobs[0].directions.read = job("a", 1000, &[100; 50]).directions.read;
    assert_eq!(of(&half, "write.iops"), Some(0.0));
    assert_eq!(of(&half, "all.iops"), Some(50.0));
    assert_eq!(of(&half, "all.clat_mean"), Some(100.0));
}

#[test]
fn percentiles_are_of_all_ops_together_or_not_given() {
    let reads: Vec<u64> = (0..2000)
        .map(|op| if op < 1900 { 100 } else { 120 })
        .collect();
    let mut slow = job("b", 1000, &[50; 2000]);
    let all = record(vec![job("a", 1000, &reads), slow.clone()]);
    assert_eq!(value(&all, "read.clat_p50"), Some(51.0));
    assert!(value(&all, "read.clat_p99").is_some_and(|p99| (120.0..=121.0).contains(&p99)));
    assert_eq!(value(&all, "read.clat_p99.9"), None);
    slow.directions.read.clat = Some(Latency::new(false));
    if let Some(clat) = &mut slow.directions.read.clat {
        clat.record(5);
    }
    let half = record(vec![job("a", 1000, &reads), slow]);
    assert_eq!(value(&half, "read.clat_p50"), None);
}

#[test]
fn many_names_are_kept_together_only() {
    let jobs: Vec<JobRecord> = (0..17)
        .map(|n| job(&n.to_string(), 1000, &[5; 5]))
        .collect();
    let kept = measures(&record(jobs));
    assert!(!kept.is_empty() && kept.iter().all(|one| one.group.is_empty()));
}

#[test]
fn syncs_are_a_direction() {
    let mut synced = job("a", 1000, &[5]);
    synced.sync.ios = 40;
    synced.sync.lat = Latency::new(true);
    synced.sync.lat.record_n(700, 40);
    let record = record(vec![synced]);
    assert_eq!(value(&record, "sync.iops"), Some(40.0));
    assert_eq!(value(&record, "sync.lat_p50"), Some(700.0));
    assert_eq!(value(&record, "sync.bw"), None);
}

#[test]
fn classes_of_priorities_are_told_apart() {
    let latency = |ns: &[u64]| {
        let mut latency = Latency::new(true);
        latency.record_all(ns);
        latency
    };
    let of = |priority: u16, ns: &[u64]| crate::PriorityRecord {
        priority,
        latency: latency(ns),
    };
    let mut both = job("a", 1000, &[100; 60]);
    both.directions.read.priorities = vec![
        of(0, &[300; 20]),
        of(1 << 13 | 4, &[100; 20]),
        of(2 << 13 | 7, &[500; 20]),
    ];
    let both = record(vec![both]);
    assert_eq!(value(&both, "read.clat_rt_mean"), Some(100.0));
    assert_eq!(value(&both, "read.clat_be_mean"), Some(400.0));
    assert_eq!(value(&both, "read.clat_be_max"), Some(500.0));
    assert_eq!(value(&both, "read.clat_rt_stddev"), Some(0.0));
    // Nothing is kept that has no name and no unit.
    for kept in measures(&both) {
        let name = MetricName::parse(&kept.name()).unwrap();
        assert_eq!(name.stored_name(), kept.name());
    }
    let median = value(&both, "read.clat_rt_p50").unwrap();
    assert!((99.0..102.0).contains(&median), "{median}");
    assert_eq!(value(&both, "read.clat_idle_mean"), None);
    let name = MetricName::parse("read.clat_rt_p50").unwrap();
    assert_eq!(name.latency(&both).unwrap().summary.count(), 20);
    // Ops are kept with their lat instead where its percentiles are asked for.
    let mut of_lat = both;
    of_lat.jobs[0].display.lat_percentiles = true;
    assert_eq!(value(&of_lat, "read.clat_rt_mean"), None);
}
