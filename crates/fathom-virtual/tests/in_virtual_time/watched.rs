//! Interim reports and early end of a run in virtual time; observing a run does not change it.

use std::cell::Cell;

use crate::common::{on, on_watched, try_on};
use fathom_record::Record;
use fathom_setup::RunEvent;
use fathom_virtual::MachineModel;

/// Device of 100 µs per op.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\ncapacity_gib = 1\nmodel = \"constant\"\n\
                       [device.constant]\nlatency_us = 100\n";
const JOB: &str = "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --ioengine=psync \
                   --time_based";
/// Options of a second job.
const OTHER: &str = "--name=b --filename=/dev/m --direct=1 --rw=randread --bs=4k --ioengine=psync \
                     --time_based";

/// Events of a run that is stopped after a number of checks.
#[derive(Default)]
struct Told {
    interim: Vec<Record>,
    stopping: u32,
    warnings: Vec<String>,
}

#[track_caller]
fn watched(words: &str, stop_after: u32) -> (Record, Told) {
    let (mut told, looks) = (Told::default(), Cell::new(0));
    let mut tell = |event: RunEvent<'_>| match event {
        RunEvent::Interim(record) => told.interim.push(record.clone()),
        RunEvent::Stopping => told.stopping += 1,
        RunEvent::Warning(warning) => told.warnings.push(warning.code.clone()),
        _ => {}
    };
    let stops = || {
        looks.set(looks.get() + 1);
        u32::from(looks.get() > stop_after)
    };
    let record = on_watched(MACHINE, words, &mut tell, &stops);
    (record, told)
}

fn text(record: &Record) -> String {
    record.to_json().expect("a record that can be written")
}

#[test]
fn reports_come_after_so_much_virtual_time() {
    let words = format!("{JOB} --runtime=5 --numjobs=2");
    let (last, told) = watched(&format!("{words} --status-interval=1"), u32::MAX);
    let seconds = told.interim.iter().map(|record| record.elapsed_ms);
    assert_eq!(seconds.collect::<Vec<_>>(), [1000, 2000, 3000, 4000, 5000]);
    for (number, record) in (1..).zip(&told.interim) {
        for job in &record.jobs {
            let read = &job.directions.read;
            // What is done at the very moment of the report comes after it.
            assert_eq!(read.ios, number * 10_000 - 1);
            assert_eq!(read.runtime_ms, number * 1000);
        }
        assert!(record.modelled.is_some(), "marked as modelled");
    }
    assert_eq!(told.interim[1].eta_s, Some(3));
    assert_eq!(text(&last), text(&on(MACHINE, &words)));
    // Through a pause in which nothing happens.
    let idle = format!("{JOB} --runtime=1 --startdelay=4 --status-interval=2");
    let (_, told) = watched(&idle, u32::MAX);
    let seconds = told.interim.iter().map(|record| record.elapsed_ms);
    assert_eq!(seconds.collect::<Vec<_>>(), [2000, 4000]);
}

#[test]
fn whoever_stops_it_is_told_what_ran() {
    // Three centuries, and jobs that would start after them.
    let words = format!("{JOB} --runtime=9000000000 {OTHER} --stonewall --runtime=1");
    let (record, told) = watched(&words, 3);
    assert_eq!(told.stopping, 1);
    let ios = |job: usize| record.jobs[job].directions.read.ios;
    assert!((1_000..100_000).contains(&ios(0)), "{}", ios(0));
    assert_eq!(record.elapsed_ms, record.jobs[0].runtime_ms);
    assert_eq!((ios(1), record.jobs[0].error), (0, 0));
    // A stop at the first look leaves a report too, and one after the end changes nothing.
    let (record, _) = watched(&words, 0);
    assert!(record.jobs[0].directions.read.ios < ios(0));
    let short = format!("{JOB} --runtime=1");
    assert_eq!(text(&watched(&short, 1000).0), text(&on(MACHINE, &short)));
}

#[test]
fn a_stop_reaches_jobs_that_wait_for_time_and_for_each_other() {
    for words in [
        "--startdelay=9000000000 --runtime=1",
        "--thinktime=9000000000s --runtime=9000000000",
        "--rate_iops=1 --runtime=9000000000",
        "--runtime=9000000000 --flow=1",
    ] {
        let both = format!("{JOB} --runtime=9000000000 {OTHER} {words}");
        let (record, told) = watched(&both, 5);
        assert_eq!((told.stopping, record.jobs[1].error), (1, 0), "{words}");
        assert!(
            record.elapsed_ms < 100_000,
            "{words}: {}",
            record.elapsed_ms
        );
    }
}

#[test]
fn a_trigger_goes_off_in_virtual_time() {
    let words = format!("{JOB} --runtime=100 --trigger-timeout=2");
    let (record, told) = watched(&words, u32::MAX);
    assert_eq!(record.jobs[0].runtime_ms, 2000);
    assert_eq!((told.stopping, told.warnings), (0, vec![]));
    let (_, told) = watched(&format!("{words} --trigger=reboot"), u32::MAX);
    assert_eq!(told.warnings, ["commands_not_run"]);
}

#[test]
fn what_there_is_not_is_said() {
    let warned = |words: &str| {
        watched(&format!("{JOB} --runtime=1 {words}"), u32::MAX)
            .1
            .warnings
    };
    assert_eq!(warned("--io_submit_mode=offload"), ["no_workers"]);
    assert_eq!(warned("--bandwidth-log=x"), ["no_bandwidth_log"]);
    assert_eq!(warned("--idle-prof=percpu"), ["no_idle_profile"]);
    assert_eq!(warned("--exec_prerun=true"), ["commands_not_run"]);
    assert_eq!(warned("--direct=0"), ["no_page_cache"]);
    let verify = "--rw=write --verify=crc32c";
    assert_eq!(
        warned(&format!("{verify} --verify_state_save=1")),
        ["no_verify_state"]
    );
    assert_eq!(
        warned(&format!("{verify} --verify_dump=1")),
        ["no_verify_dump"]
    );
}

#[test]
fn what_modelled_devices_cannot_do_is_refused() {
    let machine = MachineModel::parse("machine", MACHINE).expect("a machine");
    for (words, want) in [
        (
            "--verify=crc32c --verify_state_load=1",
            "no earlier run in virtual time",
        ),
        (
            "--ioengine=io_uring_cmd --rw=randtrim --num_range=2",
            "trim one range per op",
        ),
        (
            "--ioengine=io_uring_cmd --rw=write --verify=pattern --verify_pattern=1 \
             --verify_mode=compare",
            "no Compare command",
        ),
        (
            "--ioengine=io_uring_cmd --rw=write --zonemode=zbd --write_mode=zone_append",
            "no Zone Append command",
        ),
    ] {
        let words = format!("{JOB} --runtime=1 {words}");
        let refused = try_on(&machine, &words, &mut |_| {}, &|| 0);
        let error = refused.expect_err(want).to_string();
        assert!(error.contains(want), "{error}");
    }
}
