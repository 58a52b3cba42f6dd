//! Course of runs in virtual time: windows, groups, and the latency that they keep.

use crate::common::on;
use fathom_record::{DirectionRecord, Record, TimelineRecord};
use fathom_stats::Latency;

/// Device of 100 µs per op that serves one at a time, and stalls once.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
                       [device.constant]\nlatency_us = 100\n\
                       [[device.stall]]\nat_ms = 1050\nfor_ms = 300\n";

#[track_caller]
fn run(words: &str) -> Record {
    let record = on(
        MACHINE,
        &format!("--filename=/dev/m --direct=1 --bs=4k --size=1g {words}"),
    );
    assert!(record.jobs.iter().all(|job| job.error == 0), "{words}");
    adds_up(&record);
    record
}

/// Checks that the windows of each group and direction add up to those of its jobs.
#[track_caller]
fn adds_up(record: &Record) {
    for timeline in &record.timelines {
        let shown = record.jobs.iter().filter(|job| !job.display.hidden);
        let members =
            shown.filter(|job| timeline.group_id.is_none_or(|group| group == job.group_id));
        let parts = members.map(|job| match timeline.direction.as_str() {
            "read" => &job.directions.read,
            _ => &job.directions.write,
        });
        let parts: Vec<&DirectionRecord> = parts.collect();
        let mut all = Latency::new(true);
        for part in &parts {
            let latency = match timeline.latency.as_deref() {
                Some("resp") => part.resp.as_ref(),
                _ => part.clat.as_ref(),
            };
            all.merge(latency.expect("it is kept"));
        }
        let total = timeline.windows.total();
        let sum = |figure: fn(&DirectionRecord) -> u64| parts.iter().map(|part| figure(part)).sum();
        let (ios, bytes) = (sum(|part| part.ios), sum(|part| part.bytes));
        assert_eq!((total.ios, total.bytes), (ios, bytes));
        assert_eq!(Some(timeline.windows.histogram()), all.histogram);
        let bounds = (all.summary.min(), all.summary.max());
        assert_eq!((total.min_ns, total.max_ns), bounds);
    }
}

fn ios(timeline: &TimelineRecord) -> Vec<u64> {
    let windows = timeline.windows.windows.iter();
    windows.map(|window| window.ios).collect()
}

#[test]
fn a_stall_is_in_its_windows() {
    let record = run("--name=t --rw=randread --ioengine=psync --time_based --runtime=2");
    let timeline = &record.timelines[0];
    assert_eq!(timeline.latency.as_deref(), Some("clat"));
    assert_eq!(
        (timeline.windows.width_ns, timeline.windows.whole()),
        (100_000_000, 20)
    );
    let ios = ios(timeline);
    assert_eq!((ios[5], ios[11], ios[12]), (1000, 0, 0), "{ios:?}");
    assert_eq!(timeline.windows.windows[13].max_ns, 300_100_000);
    assert_eq!(timeline.windows.windows[14].max_ns, 100_000);
}

#[test]
fn long_runs_have_wider_windows() {
    let record = run(
        "--name=t --rw=randread --ioengine=psync --rate_iops=100 --time_based \
                      --runtime=3600",
    );
    let timeline = &record.timelines[0];
    // 25.6 s · 240 is more than an hour, half of it is not.
    assert_eq!(timeline.windows.width_ns, 25_600_000_000);
    assert_eq!(timeline.latency.as_deref(), Some("resp"));
    let ios = ios(timeline);
    assert_eq!(ios.len(), 141);
    assert!(
        ios[..140].iter().all(|ios| ios.abs_diff(2560) <= 1),
        "{ios:?}"
    );
    // An op was due when the stall began, at 1,050 ms.
    assert_eq!(timeline.windows.windows[0].max_ns, 300_100_000);
}

#[test]
fn each_group_begins_its_own_timeline() {
    let record = run(
        "--rw=randrw --ioengine=libaio --iodepth=4 --runtime=500ms --time_based \
                      --name=a --numjobs=2 --name=b --stonewall --startdelay=1 --name=c",
    );
    let found: Vec<_> = (record.timelines.iter())
        .map(|timeline| {
            (
                timeline.group_id,
                timeline.direction.as_str(),
                timeline.start_ns,
            )
        })
        .collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0], (Some(0), "read", 0));
    assert_eq!((found[2].0, found[2].1), (Some(1), "read"));
    // The second group waits for the first.
    assert!(
        (500_000_000..510_000_000).contains(&found[2].2),
        "{found:?}"
    );
    // Its job `c` runs for half a second, then `b`; the device stalls at 1,050 ms of the run.
    let ios = ios(&record.timelines[2]);
    assert!(ios[4] > 0 && ios[5] > 0 && ios[8] > 0, "{ios:?}");
    assert_eq!(ios[6..8], [0, 0], "{ios:?}");
}

#[test]
fn many_groups_share_a_timeline() {
    let jobs = |count: usize| {
        let job = |number| format!("--name=j{number} --new_group --size=64k ");
        let jobs: String = (0..count).map(job).collect();
        run(&format!("--rw=randread --ioengine=psync {jobs}"))
    };
    assert_eq!(jobs(16).timelines.len(), 16);
    let record = jobs(17);
    assert_eq!(record.timelines.len(), 1);
    assert_eq!(record.timelines[0].group_id, None);
    assert_eq!(record.timelines[0].windows.total().ios, 17 * 16);
}

#[test]
fn a_search_counts_from_its_end() {
    // The depth that a search has found restarts the measurement.
    let record = run(
        "--name=t --rw=randread --ioengine=libaio --iodepth=16 --latency_target=1ms \
                      --latency_window=20ms --latency_percentile=90 --latency_run=1 --runtime=2",
    );
    assert!(record.timelines[0].windows.total().ios > 0);
    // One that never ends counts as a whole.
    let record = run(
        "--name=t --rw=randread --ioengine=libaio --iodepth=16 --latency_target=1ms \
                      --latency_window=10s --latency_percentile=90 --runtime=1",
    );
    assert_eq!(
        record.timelines[0].windows.total().ios,
        record.jobs[0].directions.read.ios
    );
}

#[test]
fn hidden_jobs_and_mixed_latencies() {
    let record = run(
        "--rw=randread --ioengine=psync --runtime=200ms --time_based \
                      --name=a --name=b --stats=0 --name=c --rate_iops=100",
    );
    // Not all jobs have due times, so all tell their clat.
    let timeline = &record.timelines[0];
    assert_eq!(timeline.latency.as_deref(), Some("clat"));
    assert_eq!(record.timelines.len(), 1);
    let shown = [&record.jobs[0], &record.jobs[2]].map(|job| job.directions.read.ios);
    assert_eq!(timeline.windows.total().ios, shown.iter().sum::<u64>());
}

#[test]
fn windows_are_the_same_in_each_run() {
    let words = "--name=t --rw=randrw --ioengine=libaio --iodepth=8 --numjobs=3 --rate_iops=3000 \
                 --rate_process=poisson --time_based --runtime=3";
    assert_eq!(run(words).timelines, run(words).timelines);
}
