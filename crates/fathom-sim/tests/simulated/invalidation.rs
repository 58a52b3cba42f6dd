//! A job drops the page cache of its files whenever it starts over.

use crate::common;
use fathom_core::Nanos;
use fathom_workload::{Distribution, MapMode, RandomGenerator, WorkerConfig};

/// Runs a job on 1 MiB (256 ops, 25.6 ms a pass); for 100 ms if it is `time_based`.
#[track_caller]
fn check(what: &str, change: impl Fn(&mut WorkerConfig), want: u32) {
    let mut config = common::job();
    config.invalidate = true;
    config.runtime = Some(Nanos::from_millis(100));
    change(&mut config);
    let files = vec![common::file_of(&[0; 1 << 20])];
    let (_, engine, _) = common::run_on(config, common::device(), files);
    assert_eq!(engine.invalidations, want, "{what}");
}

/// As in fio 3.33, random jobs without a map never finish a pass.
#[test]
fn jobs_that_never_finish_a_file_keep_its_page_cache() {
    let going_on = |config: &mut WorkerConfig| {
        config.time_based = true;
        config.pattern.random = true;
    };
    check("one pass", |_| {}, 0);
    check("two passes", |c| c.loops = 2, 1);
    check("in order, for a time", |c| c.time_based = true, 3);
    check("random with a map", going_on, 3);
    check(
        "lfsr",
        |c| {
            going_on(c);
            c.pattern.map = MapMode::Off;
            c.pattern.generator = RandomGenerator::Lfsr;
        },
        3,
    );
    check(
        "without a map",
        |c| {
            going_on(c);
            c.pattern.map = MapMode::Off;
        },
        0,
    );
    check(
        "unevenly spread",
        |c| {
            going_on(c);
            c.pattern.distribution = Distribution::Zipf {
                theta: 1.2,
                center: None,
            };
        },
        0,
    );
    check(
        "without a map, two passes",
        |c| {
            c.pattern.random = true;
            c.pattern.map = MapMode::Off;
            c.loops = 2;
        },
        1,
    );
}
