//! Conversion of the workers' measurements into the record that all reports render.

use fathom_core::{Direction, IoPriority, Nanos, PerDirection, Storage, Tick};
use fathom_job::Options;
use fathom_record::{
    BlockLivesRecord, DirectionRecord, Display, JobRecord, LatencyTargetRecord, PriorityRecord,
    StallRecord, SteadyStateRecord, SyncRecord, Tolerated, Unified, VerifyRecord,
};
use fathom_stats::{Latency, SampleStats, SteadyCriterion};
use fathom_workload::{
    BlockLifetimes, DirectionResults, Figure, JobActivity, Measure, Mismatches, PriorityLatency,
    Results, SteadyGroup, SteadySample,
};

mod errors;

use self::errors::{error_text, fio_error, path_of};
use crate::outcome::{JobFailure, JobOutcome};
use crate::translate::JobSetup;
use crate::translate::pattern::{bounds, rw_name, uses};
use crate::translate::priority;

/// Returns the records of jobs before they run: everything but results.
pub fn planned(setups: &[JobSetup]) -> Vec<JobRecord> {
    setups.iter().map(planned_job).collect()
}

/// Returns the records of jobs with their outcomes; `None` if a job was never started. `wall_of`
/// converts a time of the run into milliseconds since 1970.
pub fn completed(
    setups: &[JobSetup],
    outcomes: Vec<Option<JobOutcome>>,
    wall_of: &dyn Fn(&JobSetup, Tick) -> u64,
) -> Vec<JobRecord> {
    let each = setups.iter().zip(outcomes);
    each.map(|(setup, outcome)| {
        complete(planned_job(setup), setup, outcome, &|tick| {
            wall_of(setup, tick)
        })
    })
    .collect()
}

/// Returns the record of a job before it runs.
fn planned_job(setup: &JobSetup) -> JobRecord {
    let (job, options) = (&setup.job, &setup.job.options);
    let typed = job
        .typed
        .iter()
        .map(|typed| (typed.name.clone(), typed.value.clone()));
    JobRecord {
        name: setup.name.clone(),
        description: options.description.clone(),
        group_id: setup.place.group,
        wave: Some(setup.place.wave),
        group_reporting: options.group_reporting,
        number: setup.place.number,
        options: typed.collect(),
        rw: rw_name(options).into(),
        engine: options.engine.name.to_owned(),
        asynchronous: !options.is_synchronous(setup.worker.depth),
        priority: priority::of_thread(options).map_or(0, IoPriority::to_raw),
        iodepth: options.iodepth,
        block_sizes: PerDirection::from_fn(|direction| bounds(options, direction)).into(),
        block_sizes_by_order: options.bs_is_seq_rand,
        display: display(options),
        ..JobRecord::default()
    }
}

/// Completes the record of a job with its outcome; `None` if the job was never started.
fn complete(
    mut record: JobRecord,
    setup: &JobSetup,
    outcome: Option<JobOutcome>,
    wall_of: &dyn Fn(Tick) -> u64,
) -> JobRecord {
    let Some(outcome) = outcome else {
        return record;
    };
    record.pid = outcome.thread_id;
    if let Some(engine) = outcome.engine {
        record.asynchronous = !engine.synchronous;
    }
    record.cpu = outcome.cpu;
    record.repeated_requests = outcome.repeated_requests;
    record.scheduling = outcome.scheduling;
    record.processors = outcome.processors;
    let steady = setup.worker.limits.steady.as_ref();
    record.steady_state = steady.map(|group| steady_state(group));
    if let Some(results) = outcome.results {
        record.start_ms = wall_of(results.started);
        measured(&mut record, setup, results);
    }
    if let Some(queued) = outcome.queued {
        let directions = &mut record.directions;
        directions.read.queued = Some(queued.read);
        directions.write.queued = Some(queued.write);
        directions.trim.queued = Some(queued.trim);
    }
    if let Some(failure) = outcome.failure {
        add_failure(&mut record, &failure);
    }
    record
}

/// Adds the measurements of the worker.
fn measured(record: &mut JobRecord, setup: &JobSetup, results: Results) {
    if let Some(error) = &results.error {
        record.error = error.errno.unsigned();
        record.error_text = Some(error_text(error, setup));
        record.fio_error = Some(fio_error(error, &results, setup));
    }
    if let Some(tolerated) = results.tolerated.as_ref().filter(|_| setup.tells_errors) {
        let text = error_text(&tolerated.first, setup);
        record.error_text.get_or_insert(text);
    }
    record.latency_target = latency_target(setup, &results);
    record.stalls = stalls(setup, &results);
    record.block_lives = results.block_lives.as_ref().map(block_lives);
    record.verify = verify(setup, &results.mismatches);
    record.tolerated = counted_errors(setup, &results);
    record.depth_level = depth_buckets(&results.depth_at_issue);
    record.depth_submit = results.submit_sizes;
    record.depth_complete = results.complete_sizes;
    record.zone_resets = zone_resets(setup, &results);
    record.submissions = results.submit_sizes.iter().sum();
    record.reapings = results.complete_sizes.iter().sum();
    record.sync = SyncRecord {
        ios: results.syncs,
        lat: results.sync,
    };
    let measure = setup.worker.measure;
    record.directions = results
        .directions
        .map(|results| direction(results, measure))
        .into();
    let own = record.priority;
    let directions = &mut record.directions;
    directions.read.priorities = by_priority(results.priorities.read, own);
    directions.write.priorities = by_priority(results.priorities.write, own);
    directions.trim.priorities = by_priority(results.priorities.trim, own);
    let runtimes = record
        .directions
        .each()
        .map(|direction| direction.runtime_ms);
    record.runtime_ms = runtimes.into_iter().max().unwrap_or(0);
    if !setup.job.options.engine.performs_io() {
        let directions = &mut record.directions;
        remove_bytes(&mut directions.read);
        remove_bytes(&mut directions.write);
        remove_bytes(&mut directions.trim);
    }
}

/// Returns the number of zones that a job has reset; `None` for jobs that reset none.
fn zone_resets(setup: &JobSetup, results: &Results) -> Option<u64> {
    let options = &setup.job.options;
    let resets = [Direction::Write, Direction::Trim]
        .into_iter()
        .any(|direction| uses(options, direction));
    (setup.worker.zoned.is_some() && resets).then_some(results.zone_resets)
}

/// Returns the result of the verification.
fn verify(setup: &JobSetup, mismatches: &Mismatches) -> Option<VerifyRecord> {
    setup.worker.verify.as_ref()?;
    let kept = mismatches.kept.iter();
    let first = kept.map(|found| format!("{}: {}", path_of(setup, found.file), found.error));
    Some(VerifyRecord {
        mismatches: mismatches.total,
        compared: mismatches.checked.compared,
        unknown: mismatches.checked.unknown,
        first: first.collect(),
    })
}

/// Returns the stalls of a job.
fn stalls(setup: &JobSetup, results: &Results) -> Vec<StallRecord> {
    let number = setup.place.number;
    let has_no_device = setup.job.options.engine.storage == Storage::None;
    let each = results.stalls.iter().map(|stall| StallRecord {
        host: None,
        number,
        at_ns: (stall.due - results.started).get(),
        duration_ns: stall.length.get(),
        direction: stall.direction.name().to_owned(),
        ops: stall.ops,
        waited_ns: stall.waited.get(),
        stopped_ns: stall.stopped.get(),
        has_no_device,
    });
    each.collect()
}

/// Returns the lives of a job's blocks.
fn block_lives(lives: &BlockLifetimes) -> BlockLivesRecord {
    let [unwritten, trimmed, written, trim_failure, write_failure] = lives.states;
    BlockLivesRecord {
        unwritten,
        trimmed,
        written,
        trim_failure,
        write_failure,
        failed_after_trims: lives.failed_after_trims.clone(),
    }
}

/// Returns the tolerated errors. As in fio, the error that ended the job is included if
/// `continue_on_error` covers its kind, even though this errno is never tolerated (`ENOSPC`).
fn counted_errors(setup: &JobSetup, results: &Results) -> Option<Tolerated> {
    let tolerate = &setup.worker.tolerate;
    let last = results.error.as_ref().filter(|error| match error.activity {
        JobActivity::Read => tolerate.read,
        JobActivity::Write | JobActivity::Trim => tolerate.write,
        JobActivity::MaxLatency(Direction::Read) => tolerate.read,
        JobActivity::MaxLatency(_) => tolerate.write,
        JobActivity::Verify => tolerate.verify,
        JobActivity::Sync
        | JobActivity::RateMin
        | JobActivity::Reopen
        | JobActivity::Close
        | JobActivity::Replay
        | JobActivity::Record => false,
    });
    let tolerated = results.tolerated.as_ref();
    let first = tolerated.map(|tolerated| &tolerated.first).or(last)?;
    Some(Tolerated {
        total: tolerated.map_or(0, |tolerated| tolerated.total) + u64::from(last.is_some()),
        first: first.errno.unsigned(),
    })
}

/// Returns the result of the search for a queue depth.
fn latency_target(setup: &JobSetup, results: &Results) -> Option<LatencyTargetRecord> {
    let target = setup.worker.limits.target?;
    let found = results.depth_found;
    Some(LatencyTargetRecord {
        target_ns: target.latency.get(),
        window_us: target.window.get() / 1_000,
        share_percent: target.share as f64 / 1e6,
        depth: found.map_or(setup.worker.depth, |found| found.depth),
        depth_met: found.and_then(|found| found.met),
    })
}

/// Returns the final steady state of a group; an incomplete window is padded with zeros.
fn steady_state(group: &SteadyGroup) -> SteadyStateRecord {
    let (rule, standing) = (group.rule(), group.standing());
    let evaluation = standing.evaluation;
    let mut window = standing.window;
    window.resize(rule.intervals, SteadySample::default());
    let each = |figure: fn(&SteadySample) -> u64| window.iter().map(figure).collect();
    SteadyStateRecord {
        figure: match rule.figure {
            Figure::Iops => "iops",
            Figure::Bandwidth => "bw",
            Figure::Latency => "lat",
        }
        .into(),
        by_slope: rule.criterion == SteadyCriterion::Slope,
        limit: rule.limit,
        is_percent: rule.percent,
        window_s: rule.interval.get() * rule.intervals as u64 / 1_000_000_000,
        attained: standing.attained,
        value: evaluation.value,
        criterion: evaluation
            .criterion(rule.percent)
            .copysign(evaluation.value),
        bytes_per_s: each(|sample| sample.bytes_per_s),
        ops_per_s: each(|sample| sample.iops),
        lat_ns: each(|sample| sample.lat_ns),
    }
}

fn direction(results: DirectionResults, measure: Measure) -> DirectionRecord {
    let kept = |latency: Latency, kept: bool| kept.then_some(latency);
    DirectionRecord {
        bytes: results.bytes,
        ios: results.ios,
        short_ios: results.short_ios,
        dropped_ios: 0,
        runtime_ms: runtime_ms(results.runtime, results.ios),
        slat: kept(results.slat, measure.slat),
        clat: kept(results.clat, measure.clat),
        lat: kept(results.lat, measure.lat),
        priorities: Vec::new(),
        lag: results.lag,
        resp: results.resp,
        queued: None,
        bandwidth: results.bandwidth,
        iops: results.iops,
    }
}

/// Removes the bytes of ops that are not I/O. As in fio, their time does not count as I/O time
/// either.
fn remove_bytes(direction: &mut DirectionRecord) {
    direction.bytes = 0;
    direction.runtime_ms = 0;
    direction.bandwidth = SampleStats::default();
}

/// Converts latencies by priority; `own` is the thread's priority, for ops without their own.
fn by_priority(counted: Vec<PriorityLatency>, own: u16) -> Vec<PriorityRecord> {
    let records = counted.into_iter().map(|counted| PriorityRecord {
        priority: match counted.priority {
            0 => own,
            priority => priority,
        },
        latency: counted.latency,
    });
    records.collect()
}

fn add_failure(record: &mut JobRecord, failure: &JobFailure) {
    if record.error != 0 {
        return; // the first error counts
    }
    record.error = failure.errno.unsigned();
    let hint = match failure.hint.as_str() {
        "" => String::new(),
        hint => format!(" (hint: {hint})"),
    };
    record.error_text = Some(format!("{}{hint}", failure.text));
}

/// Returns the runtime in ms, rounded; at least 1 for a direction with ops, because rates divide by
/// it, and 0 for a direction without, as in fio.
fn runtime_ms(runtime: Nanos, ios: u64) -> u64 {
    match ios {
        0 => 0,
        _ => ((runtime.get() + 500_000) / 1_000_000).max(1),
    }
}

/// Groups ops by depth into fio's buckets: 1, 2–3, 4–7, 8–15, 16–31, 32–63, more.
fn depth_buckets(by_depth: &[u64]) -> [u64; 7] {
    let mut buckets = [0; 7];
    for (depth, count) in by_depth.iter().enumerate().skip(1) {
        let bucket = usize::try_from(depth.ilog2()).unwrap_or(6).min(6);
        buckets[bucket] += count;
    }
    buckets
}

fn display(options: &Options) -> Display {
    let on = |wanted: bool, disabled: bool| wanted && !disabled && !options.gtod_reduce;
    let tolerate = options.continue_on_error;
    Display {
        kb_base: options.kb_base,
        // As in fio, networks are measured in bits.
        unit_base: match (options.unit_base, options.engine.storage) {
            (0, Storage::Peer) => 1,
            (given, _) => given,
        },
        percentiles: options.percentile_list.clone(),
        percentile_precision: options.percentile_precision,
        slat_percentiles: on(options.slat_percentiles, options.disable_slat),
        clat_percentiles: on(options.clat_percentiles, options.disable_clat),
        lat_percentiles: on(options.lat_percentiles, options.disable_lat),
        significant_figures: options.significant_figures,
        tolerates_errors: tolerate.read || tolerate.write || tolerate.verify,
        hidden: !options.stats,
        disk_util: options.disk_util,
        unified: match options.lifecycle.unified {
            fathom_job::Unified::None => Unified::None,
            fathom_job::Unified::Mixed => Unified::Mixed,
            fathom_job::Unified::Both => Unified::Both,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_fall_into_fios_buckets() {
        let mut by_depth = vec![0; 129];
        for (depth, count) in [
            (1, 1),
            (2, 10),
            (3, 20),
            (4, 100),
            (63, 1000),
            (64, 2),
            (128, 3),
        ] {
            by_depth[depth] = count;
        }
        assert_eq!(depth_buckets(&by_depth), [1, 30, 100, 0, 0, 1000, 5]);
        assert_eq!(depth_buckets(&[]), [0; 7]);
    }

    #[test]
    fn a_direction_that_moved_ran_at_least_a_millisecond() {
        assert_eq!(runtime_ms(Nanos::new(10), 1), 1);
        assert_eq!(runtime_ms(Nanos::from_millis(10), 0), 0);
        assert_eq!(runtime_ms(Nanos::from_micros(1_500), 9), 2);
    }
}
