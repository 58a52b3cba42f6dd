//! Records that no run should produce still render.

use fathom_record::{DirectionRecord, DiskRecord, JobRecord, Record, SyncRecord, Warning};
use fathom_stats::{Latency, SampleStats};

#[track_caller]
fn check(record: &Record) {
    let text = crate::text(record);
    assert!(
        text.starts_with('\n') && !text.contains("NaN") && !text.contains("=inf"),
        "{text}"
    );
    for plus in [false, true] {
        let json = crate::json(record, plus);
        let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert!(document["jobs"].is_array());
    }
}

fn of(job: JobRecord) -> Record {
    Record {
        jobs: vec![job.clone(), job],
        ..Record::default()
    }
}

#[test]
fn an_empty_run() {
    check(&Record::default());
    assert_eq!(crate::text(&Record::default()), "\n");
}

#[test]
fn an_idle_job_prints_only_its_group() {
    let record = of(JobRecord::default());
    check(&record);
    assert_eq!(crate::text(&record), "\n\nRun status group 0 (all jobs):\n");
}

#[test]
fn a_job_that_failed_at_once_is_shown() {
    let mut job = JobRecord {
        name: "x".to_owned(),
        error: 2,
        ..JobRecord::default()
    };
    let title = |job: &JobRecord| {
        crate::text(&of(job.clone()))[1..]
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        title(&job),
        "x: (groupid=0, jobs=1): err= 2 (No such file or directory): pid=0: "
    );
    job.error_text = Some("open: /nowhere: no such file".to_owned());
    assert!(title(&job).contains("err= 2 (open: /nowhere: no such file): pid=0"));
    job.error = u32::MAX;
    check(&of(job));
}

#[test]
fn counts_without_times_and_times_without_counts() {
    let mut job = JobRecord::default();
    job.directions.read.bytes = 4096;
    check(&of(job.clone()));
    job.directions.write.ios = u64::MAX;
    job.directions.trim.runtime_ms = u64::MAX;
    job.directions.read.clat = Some(Latency::new(true));
    job.directions.read.slat = Some(Latency::new(false));
    job.group_reporting = true;
    check(&of(job));
}

#[test]
fn the_largest_numbers() {
    let mut latency = Latency::new(true);
    latency.record_n(u64::MAX, u64::MAX);
    let mut samples = SampleStats::default();
    samples.record(u64::MAX);
    samples.record(0);
    let direction = DirectionRecord {
        bytes: u64::MAX,
        ios: u64::MAX,
        short_ios: u64::MAX,
        dropped_ios: u64::MAX,
        runtime_ms: u64::MAX,
        slat: Some(latency.clone()),
        clat: Some(latency.clone()),
        lat: Some(latency.clone()),
        priorities: Vec::new(),
        lag: Some(latency.clone()),
        resp: Some(latency.clone()),
        queued: Some(latency.clone()),
        bandwidth: samples,
        iops: samples,
    };
    let mut job = JobRecord {
        sync: SyncRecord {
            ios: u64::MAX,
            lat: latency,
        },
        asynchronous: true,
        runtime_ms: u64::MAX,
        depth_level: [u64::MAX; 7],
        depth_submit: [u64::MAX; 7],
        group_reporting: true,
        ..JobRecord::default()
    };
    job.directions.read = direction.clone();
    job.directions.write = direction.clone();
    job.directions.trim = direction;
    job.display.percentiles = vec![-1.0, f64::NAN, 0.0, 50.0, 1e300];
    job.display.percentile_precision = u32::MAX;
    job.display.significant_figures = 0;
    job.cpu.user_us = u64::MAX;
    let mut record = of(job);
    record.elapsed_ms = u64::MAX;
    record.disks = vec![DiskRecord {
        util_percent: f64::MAX,
        ..DiskRecord::default()
    }];
    let json = crate::json(&record, true);
    assert!(json.ends_with("}\n"));
    assert!(crate::text(&record).contains("Disk stats"));
}

#[test]
fn names_of_any_kind() {
    let mut record = of(JobRecord {
        name: "a\nb\"c\\ü\u{1}".to_owned(),
        description: Some(String::new()),
        options: vec![(String::new(), "\"".to_owned())],
        ..JobRecord::default()
    });
    record.jobs[0].directions.read.bytes = 1;
    record.warnings = vec![Warning::default()];
    check(&record);
}

#[test]
fn hidden_jobs_and_devices_are_left_out() {
    let mut job = JobRecord::default();
    job.directions.read.bytes = 1;
    job.display.hidden = true;
    let mut record = of(job);
    record.disks = vec![DiskRecord::default()];
    record.jobs[0].display.disk_util = false;
    record.jobs[1].display.disk_util = false;
    check(&record);
    assert_eq!(crate::text(&record), "\n");
    assert!(!crate::json(&record, false).contains("disk_util"));
}
