use fathom_core::PerDirection;
use fathom_setup::{JobSnapshot, LatenciesSoFar};

use super::*;

/// Returns the state of two groups: one asynchronous job, two clones of a synchronous one.
fn state() -> LiveState {
    let job = |name: &str, group_id, number, asynchronous| JobRecord {
        name: name.to_owned(),
        group_id,
        number,
        asynchronous,
        iodepth: if asynchronous { 32 } else { 1 },
        ..JobRecord::default()
    };
    let mut state = LiveState::new(&Plan::default());
    state.planned(&[
        job("a\u{1b}[2J", 0, 1, true),
        job("b", 1, 2, false),
        job("b", 1, 3, false),
    ]);
    state
}

/// Returns a snapshot in which each job has done `ios` reads of 512 bytes and 1 µs.
fn snapshot(ms: u64, ios: [u64; 3], in_flight: u32) -> Snapshot {
    let jobs = ios.map(|ios| JobSnapshot {
        state: JobState::Working(Phase::Running),
        ios: PerDirection::new(ios, 0, 0),
        bytes: PerDirection::new(ios * 512, 0, 0),
        in_flight,
        elapsed: Nanos::from_millis(ms),
    });
    let latencies = ios.iter().enumerate().map(|(job, ios)| {
        let mut read = Histogram::new();
        read.record_n(1000, *ios);
        LatenciesSoFar {
            jobs: job..job + 1,
            kinds: PerDirection::default(),
            histograms: PerDirection::new(Some(read), None, None),
        }
    });
    Snapshot {
        elapsed: Nanos::from_millis(ms),
        latencies: latencies.collect(),
        jobs: jobs.to_vec(),
        ..Snapshot::default()
    }
}

#[test]
fn rates_are_those_of_the_last_second() {
    let mut state = state();
    state.sample(&snapshot(500, [50, 10, 0], 4));
    let figures = state.figures();
    assert_eq!(figures.total.directions[0].iops, 120);
    for (ms, ios) in [(1000, 100), (1500, 300), (2000, 600)] {
        state.sample(&snapshot(ms, [ios, 10, 0], 4));
    }
    let figures = state.figures();
    assert_eq!((figures.interval_ms, figures.elapsed_ms), (1000, 2000));
    let read = &figures.jobs[0].directions[0];
    assert_eq!((read.iops, read.bytes_per_s, read.ios), (500, 256_000, 600));
    assert_eq!(figures.jobs[1].directions[0].iops, 0);
    assert!(figures.jobs[2].directions.is_empty());
    // Clones are distinguished, and a name does not act on the terminal.
    let names: Vec<&str> = figures.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a\u{fffd}[2J", "b #2", "b #3"]);
}

#[test]
fn percentiles_need_ops_beyond_them() {
    let mut state = state();
    state.sample(&snapshot(1000, [2000, 0, 0], 0));
    state.sample(&snapshot(2000, [2150, 0, 0], 0));
    let figures = state.figures();
    let read = &figures.total.directions[0];
    let shown = |row: &Option<LatencyRow>| {
        let row = row.clone().unwrap();
        (row.ops, row.percentiles_ns.map(|value| value.is_some()))
    };
    assert_eq!(shown(&read.last), (150, [true, true, false, false]));
    assert_eq!(shown(&read.run), (2150, [true, true, true, false]));
    let p50 = read.run.clone().unwrap().percentiles_ns[0].unwrap();
    assert!(p50.abs_diff(1000) <= 1000 / 128, "{p50}");
}

#[test]
fn groups_have_rows_and_courses_of_their_own() {
    let mut state = state();
    state.sample(&snapshot(500, [50, 10, 5], 3));
    let figures = state.figures();
    let ios: Vec<u64> = figures
        .groups
        .iter()
        .map(|row| row.directions[0].ios)
        .collect();
    assert_eq!(ios, [50, 15]);
    let run = figures.groups[1].directions[0].run.as_ref().unwrap();
    assert_eq!(run.ops, 15);
    let tracks: Vec<(&str, u64)> = (figures.tracks.iter())
        .map(|track| (track.name.as_str(), track.columns[0].ios[0]))
        .collect();
    assert_eq!(tracks, [("all", 65), ("group 0", 50), ("group 1", 15)]);
}

#[test]
fn latencies_of_a_shared_count_are_of_no_single_job() {
    let mut state = state();
    let mut both = snapshot(500, [50, 10, 5], 3);
    both.latencies.truncate(2);
    both.latencies[1].jobs = 1..3;
    state.sample(&both);
    let figures = state.figures();
    assert!(figures.jobs[0].directions[0].run.is_some());
    assert_eq!(figures.jobs[1].directions[0].run, None);
    assert!(figures.groups[1].directions[0].run.is_some());
}

#[test]
fn depth_is_of_jobs_that_run_and_in_flight_of_asynchronous_ones() {
    let mut state = state();
    state.sample(&snapshot(500, [1, 1, 1], 3));
    let mut last = snapshot(1000, [1, 1, 1], 4);
    last.jobs[2].state = JobState::Ended;
    state.sample(&last);
    state.sample(&Snapshot {
        elapsed: Nanos::from_millis(1500),
        ..last
    });
    let figures = state.figures();
    assert_eq!(figures.jobs[0].in_flight, Some(4.0));
    assert_eq!(figures.jobs[1].in_flight, None);
    assert_eq!(
        (figures.total.depth, figures.total.state.as_str()),
        (33, "2 of 3 run")
    );
    assert_eq!(figures.jobs[2].state, "ended");
}

#[test]
fn disks_are_averaged_over_the_laps() {
    let mut state = state();
    for (ms, util) in [(500, 90.0), (1000, 20.0), (1500, 40.0)] {
        let disk = DiskRecord {
            name: "vda".to_owned(),
            read_ios: 100,
            read_sectors: 800,
            in_queue_ms: 1000,
            util_percent: util,
            ..DiskRecord::default()
        };
        state.sample(&Snapshot {
            disks: vec![disk],
            ..snapshot(ms, [1, 1, 1], 0)
        });
    }
    let want = DiskRow {
        name: "vda".to_owned(),
        util_percent: 30.0,
        queue: 2.0,
        iops: 200,
        bytes_per_s: 2 * 800 * 512,
    };
    assert_eq!(state.figures().disks, [want]);
}

#[test]
fn warnings_are_kept_up_to_a_number() {
    let mut state = state();
    let warning = Warning {
        code: "x".into(),
        job: "j".to_owned(),
        message: "lost\nlines".to_owned(),
        hint: "wait".to_owned(),
    };
    for _ in 0..WARNINGS_MAX + 3 {
        state.warn(&warning);
    }
    let figures = state.figures();
    assert_eq!(figures.warnings[0], "j: lost\u{fffd}lines (hint: wait)");
    assert_eq!((figures.warnings.len(), figures.more_warnings), (50, 3));
}

#[test]
fn a_run_without_a_snapshot_has_figures() {
    let figures = LiveState::new(&Plan::default()).figures();
    assert_eq!(figures.phase, RunPhase::Preparing);
    assert!(figures.total.directions.is_empty() && figures.jobs.is_empty());
}
