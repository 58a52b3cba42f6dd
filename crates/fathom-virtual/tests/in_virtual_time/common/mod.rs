//! Command lines as a user writes them, read on a machine with nothing on it.
#![allow(dead_code, reason = "each test program uses some of it")]
#![allow(unreachable_pub, reason = "shared between test programs")]

use fathom_core::Nanos;
use fathom_engine::Registry;
use fathom_job::{Plan, Settings};
use fathom_record::Record;
use fathom_setup::{RunError, RunEvent, Session, fixture};
use fathom_sim::Constant;
use fathom_virtual::{MachineModel, simulate, simulate_on};

/// Returns the plan of WORDS, separated by spaces.
#[track_caller]
pub fn run_of(words: &str) -> (Plan, Settings) {
    fixture::run_of(words, Registry::built_in().infos())
}

/// Returns the jobs of WORDS.
#[track_caller]
pub fn plan(words: &str) -> Plan {
    run_of(words).0
}

/// Runs WORDS on a device that takes 100 µs for every op.
#[track_caller]
pub fn record(words: &str) -> Record {
    match simulate(&plan(words), &Constant::new(Nanos::from_micros(100))) {
        Ok(record) => record,
        Err(error) => panic!("{words}: {error}"),
    }
}

/// Runs WORDS on the machine that a file with this text describes.
#[track_caller]
pub fn on(machine: &str, words: &str) -> Record {
    on_watched(machine, words, &mut |_| {}, &|| 0)
}

/// Runs WORDS on a machine; passes events to `tell` and ends early when `stops` returns 1.
#[track_caller]
pub fn on_watched(
    machine: &str,
    words: &str,
    tell: &mut dyn FnMut(RunEvent<'_>),
    stops: &dyn Fn() -> u32,
) -> Record {
    let machine = match MachineModel::parse("machine", machine) {
        Ok(machine) => machine,
        Err(error) => panic!("{machine}: {error}"),
    };
    match try_on(&machine, words, tell, stops) {
        Ok(record) => record,
        Err(error) => panic!("{words}: {error}"),
    }
}

/// Runs WORDS on a machine; an error if the plan is refused.
#[track_caller]
pub fn try_on(
    machine: &MachineModel,
    words: &str,
    tell: &mut dyn FnMut(RunEvent<'_>),
    stops: &dyn Fn() -> u32,
) -> Result<Record, RunError> {
    let (plan, settings) = run_of(words);
    let mut session = Session {
        tell,
        stops,
        progress: None,
        report_every: settings.status_interval,
        reports_asked: &|| 0,
        jobs_fail_alone: false,
    };
    simulate_on(&plan, machine, &settings, &mut session).map(|(record, _logs)| record)
}
