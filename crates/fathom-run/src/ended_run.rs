//! Record of a run, from what its jobs and the host have left.

use std::collections::BTreeMap;

use fathom_core::Tick;
use fathom_host::machine::machine;
use fathom_job::Plan;
use fathom_log::LineCounts;
use fathom_record::{JobRecord, LogRecord, OwnCostRecord, RECORD_VERSION, Record, Warning};
use fathom_setup::Preflight;
use fathom_setup::collect;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::timelines;
use fathom_setup::translate::JobSetup;
use fathom_setup::validity::mean_depth;
use fathom_sys::clock::{self, Clock, wall_ms};

use crate::evidence::Evidence;

/// Results of a run once its last job has ended.
pub(crate) struct EndedRun {
    pub(crate) planned: Vec<JobRecord>,
    pub(crate) outcomes: Vec<Option<JobOutcome>>,
    pub(crate) evidence: Evidence,
    /// Line counts of the I/O logs, by setup; empty without logs.
    pub(crate) lines: Vec<Option<LineCounts>>,
    /// The tool's own cost, by setup; empty if no job was to run.
    pub(crate) own_costs: Vec<OwnCostRecord>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) begun: Tick,
}

/// Returns the record of a run that has ended.
pub(crate) fn record(
    plan: &Plan,
    preflight: Preflight,
    mut ended: EndedRun,
    clock: &Clock,
) -> Record {
    let features = features(&ended);
    let results = ended
        .outcomes
        .iter()
        .map(|job| job.as_ref()?.results.as_ref());
    let mean_depths: Vec<f64> = results.map(mean_depth).collect();
    let outcomes = std::mem::take(&mut ended.outcomes);
    let failed_commands = outcomes.iter().flatten().map(|job| job.failed_commands);
    let failed_commands = failed_commands.sum();
    let mut jobs = jobs(&preflight.setups, outcomes, clock);
    for (job, lines) in jobs.iter_mut().zip(&ended.lines) {
        job.log = lines.map(|lines| LogRecord {
            lines_kept: lines.kept,
            lines_dropped: lines.dropped,
        });
    }
    for (job, cost) in jobs.iter_mut().zip(&ended.own_costs) {
        job.own_cost = Some(*cost);
    }
    let validity = ended.evidence.judge(&preflight.setups, &jobs, &mean_depths);
    Record {
        jobs,
        timelines: timelines::recorded(&preflight.setups),
        disks: ended.evidence.disks,
        processors: ended.evidence.processors,
        machine: Some(machine(clock, ended.evidence.storage, features)),
        validity,
        warnings: ended.warnings,
        failed_commands,
        ..blank(plan, ended.begun, clock)
    }
}

/// Returns a record of the current time without results.
pub(crate) fn blank(plan: &Plan, begun: Tick, clock: &Clock) -> Record {
    let timestamp_ms = wall_ms();
    Record {
        version: RECORD_VERSION,
        timestamp_ms,
        time: fathom_sys::calendar::ctime(timestamp_ms),
        elapsed_ms: (clock.now() - begun).as_millis(),
        global_options: plan.global_options.clone(),
        ..Record::default()
    }
}

/// Returns the records of the jobs with their outcomes.
pub(crate) fn jobs(
    setups: &[JobSetup],
    outcomes: Vec<Option<JobOutcome>>,
    clock: &Clock,
) -> Vec<JobRecord> {
    collect::completed(setups, outcomes, &|setup, tick| {
        // Cannot fail: the checks have read this clock.
        let shown = clock::read(setup.start_clock).map_or_else(|_| wall_ms(), |ns| ns / 1_000_000);
        shown.saturating_sub((clock.now() - tick).as_millis())
    })
}

/// Returns the kernel features that each engine used, as `engine: feature, feature`.
fn features(ended: &EndedRun) -> Vec<String> {
    let mut by_engine = BTreeMap::new();
    for (record, outcome) in ended.planned.iter().zip(&ended.outcomes) {
        let Some(outcome) = outcome
            .as_ref()
            .filter(|outcome| !outcome.features.is_empty())
        else {
            continue;
        };
        by_engine
            .entry(record.engine.as_str())
            .or_insert_with(|| outcome.features.join(", "));
    }
    by_engine
        .into_iter()
        .map(|(engine, features)| format!("{engine}: {features}"))
        .collect()
}
