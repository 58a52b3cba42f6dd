//! Errors and short transfers.

use crate::common::{Rig, deep_job, device, job, run};
use fathom_core::Direction;
use fathom_sim::{FaultKind, InjectedFault};
use fathom_workload::{Mix, Tolerate};

fn faulty(number: u64, kind: FaultKind) -> Rig {
    let fault = InjectedFault {
        number,
        direction: Direction::Read,
        kind,
    };
    Rig {
        faults: vec![fault],
        ..device()
    }
}

#[test]
fn an_error_ends_the_job() {
    let results = run(job(), faulty(9, FaultKind::Error(5)));
    assert_eq!(results.directions.read.ios, 9);
    let error = results.error.expect("an error");
    assert_eq!(
        (error.errno.get(), error.activity.name(), error.offset),
        (5, "read", 9 * 4096)
    );
}

#[test]
fn ops_in_flight_at_an_error_are_counted() {
    let results = run(deep_job(8), faulty(3, FaultKind::Error(5)));
    assert_eq!(results.directions.read.ios, 7 + 3);
    assert!(results.error.is_some());
}

#[test]
fn continue_on_error_tolerates_eio() {
    let mut config = job();
    config.tolerate = Tolerate {
        read: true,
        write: false,
        verify: false,
        ..Tolerate::default()
    };
    let results = run(config, faulty(9, FaultKind::Error(5)));
    assert_eq!(results.error, None);
    assert_eq!(results.directions.read.ios, 255);
    assert_eq!(results.tolerated.expect("one").total, 1);
}

#[test]
fn continue_on_error_does_not_tolerate_other_errors() {
    let mut config = job();
    config.tolerate = Tolerate {
        read: true,
        write: true,
        verify: true,
        ..Tolerate::default()
    };
    assert!(run(config, faulty(9, FaultKind::Error(28))).error.is_some());
}

#[test]
fn a_list_selects_the_tolerated_errors() {
    let failed_by = |listed: [Vec<u32>; 3], errno| {
        let mut config = job();
        config.tolerate = Tolerate {
            read: true,
            listed,
            ..Tolerate::default()
        };
        let results = run(config, faulty(9, FaultKind::Error(errno)));
        results.error.is_some()
    };
    assert!(!failed_by([vec![28, 11], vec![], vec![]], 28));
    assert!(!failed_by([vec![28, 11], vec![], vec![]], 11));
    // A list stands in place of what is gone past otherwise.
    assert!(failed_by([vec![28], vec![], vec![]], 5));
    assert!(failed_by([vec![], vec![28], vec![]], 28));
}

#[test]
fn the_rest_of_a_short_transfer_is_issued_again() {
    let results = run(job(), faulty(9, FaultKind::Short(1000)));
    assert_eq!(results.error, None);
    assert_eq!(results.directions.read.ios, 256);
    assert_eq!(results.directions.read.bytes, 1 << 20);
    assert_eq!(results.directions.read.short_ios, 1);
    assert_eq!(results.directions.read.clat.summary.max(), 200_000);
}

#[test]
fn a_transfer_of_zero_bytes_is_an_error() {
    let results = run(deep_job(4), faulty(9, FaultKind::Short(0)));
    assert_eq!(results.error.expect("the end of the file").errno.get(), 5);
}

#[test]
fn lack_of_space_ends_a_filling_job_without_error() {
    for (errno, depth) in [(28, 1), (122, 1), (28, 8)] {
        let mut config = if depth == 1 { job() } else { deep_job(depth) };
        config.pattern.mix = Mix::Write;
        config.fill = true;
        let mut full = faulty(9, FaultKind::Error(errno));
        full.faults[0].direction = Direction::Write;
        let results = run(config.clone(), full.clone());
        assert_eq!(results.error, None, "{errno} {depth}");
        let ios = results.directions.write.ios;
        assert!((9..=9 + u64::from(depth)).contains(&ios), "{ios}");
        config.fill = false;
        assert!(run(config, full).error.is_some());
    }
}
