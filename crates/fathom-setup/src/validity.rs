//! Validity checks whose evidence is the record alone, so that modelled runs have them, too.
//!
//! Checks of the host (processors, caches, storage, the tool's own cost) are those of the thread
//! driver.

mod latency_target;
mod length;
mod ramp;

use fathom_record::{DirectionRecord, JobRecord, Validity};
use fathom_workload::Results;

use crate::translate::JobSetup;

pub use latency_target::latency_target;
pub use length::length;
pub use ramp::ramp;

/// A job with its measurements.
#[derive(Clone, Copy, Debug)]
pub struct JobMeasured<'a> {
    /// Configuration of the job.
    pub setup: &'a JobSetup,
    /// Record of the job.
    pub record: &'a JobRecord,
    /// Mean queue depth at issue, see [`mean_depth`].
    pub mean_depth: f64,
    /// The run was in virtual time: no kernel, no cache, and nothing that interrupts.
    pub is_modelled: bool,
}

/// Judges the jobs of a run in virtual time. `mean_depths` are in the order of the jobs.
#[must_use]
pub fn judge_modelled(
    setups: &[JobSetup],
    records: &[JobRecord],
    mean_depths: &[f64],
) -> Vec<Validity> {
    let jobs = setups.iter().zip(records).zip(mean_depths);
    let jobs: Vec<_> = jobs
        .map(|((setup, record), &mean_depth)| JobMeasured {
            setup,
            record,
            mean_depth,
            is_modelled: true,
        })
        .collect();
    let clones = jobs.chunk_by(|one, next| one.setup.place.section == next.setup.place.section);
    clones
        .flat_map(|clones| judge_clones(&clones.iter().map(judge).collect::<Vec<_>>()))
        .collect()
}

/// Judges one job by every check that applies.
fn judge(seen: &JobMeasured<'_>) -> Vec<Validity> {
    let judgements = [
        queue_depth(seen),
        latency_target(seen),
        response_time(seen),
        ramp(seen),
        length(seen),
    ];
    named(judgements, seen.record)
}

/// Returns the judgements on a job under its name.
pub fn named(
    judgements: impl IntoIterator<Item = Option<Validity>>,
    record: &JobRecord,
) -> Vec<Validity> {
    let named = judgements.into_iter().flatten().map(|validity| Validity {
        job: record.name.clone(),
        ..validity
    });
    named.collect()
}

/// Merges the judgements on the clones of one job: per check the first failure, or else the first
/// judgement.
#[must_use]
pub fn judge_clones(clones: &[Vec<Validity>]) -> Vec<Validity> {
    let mut merged: Vec<Validity> = Vec::new();
    for validity in clones.iter().flatten() {
        match merged
            .iter_mut()
            .find(|known| known.check == validity.check)
        {
            Some(known) if known.ok && !validity.ok => *known = validity.clone(),
            Some(_) => {}
            None => merged.push(validity.clone()),
        }
    }
    for validity in merged.iter_mut().filter(|validity| !validity.ok) {
        let doubts = |clone: &&Vec<Validity>| {
            let mut same = clone.iter().filter(|other| other.check == validity.check);
            same.any(|other| !other.ok)
        };
        let doubtful = clones.iter().filter(doubts).count();
        if doubtful < clones.len() {
            validity.sentence += &format!(" ({doubtful} of {} clones)", clones.len());
        }
    }
    merged
}

/// Checks that the mean depth is close to `iodepth`.
#[must_use]
pub fn queue_depth(seen: &JobMeasured<'_>) -> Option<Validity> {
    let (asked, mean) = (seen.record.iodepth, seen.mean_depth);
    if asked <= 1 || ops(seen.record) == 0 {
        return None;
    }
    let (worker, options) = (&seen.setup.worker, &seen.setup.job.options);
    // Such an engine never has a queue, whatever other limits apply.
    let one_at_a_time = worker.depth < asked || !seen.record.asynchronous || options.gathers();
    // A short run consists mostly of filling and draining the queue.
    if !one_at_a_time && ops(seen.record) < u64::from(asked) * FILLS_COUNTED {
        return None;
    }
    let held_back = worker.think.is_some()
        || worker.batching.complete_min > 1
        || worker.batching.low < asked
        // `latency_target` reports the depth that it allowed.
        || worker.limits.target.is_some()
        || worker.limits.flow.is_some()
        || worker.rate.iter().any(|(_, rate)| rate.is_some());
    // The kernel performs such an op before `io_submit` returns: it waits only in our queue.
    let buffered_aio = !seen.is_modelled && options.engine.blocks_when_buffered && !options.direct;
    let is_deep = held_back || mean >= f64::from(asked) * DEPTH_SHARE;
    let ok = !one_at_a_time && !buffered_aio && is_deep;
    let why = if ok {
        ""
    } else if one_at_a_time {
        ": the engine performs one op at a time"
    } else if buffered_aio {
        ", but libaio performs buffered ops one at a time: the device saw at most one of them \
         (direct=1 makes it asynchronous)"
    } else {
        ": the device or the engine completes ops as fast as they are submitted"
    };
    let sentence = format!("on average {mean:.1} ops were in flight, of iodepth={asked}{why}");
    let figures = vec![
        figure("mean_depth", mean),
        figure("asked_depth", f64::from(asked)),
    ];
    Some(validity("queue_depth", ok, sentence, figures))
}

/// Checks, under a rate, that waits before issue are not hidden from clat.
#[must_use]
pub fn response_time(seen: &JobMeasured<'_>) -> Option<Validity> {
    let directions = seen.record.directions.each();
    let (clat, resp) = directions
        .into_iter()
        .filter_map(p99s)
        .max_by_key(|&(_, resp)| resp)?;
    let ok = resp < clat.saturating_mul(2) || resp - clat < RESP_EXCESS_NS;
    let (clat_ms, resp_ms) = (to_float(clat) / 1e6, to_float(resp) / 1e6);
    let sentence = if ok {
        format!("response times are close to clat (p99 {resp_ms:.2} ms and {clat_ms:.2} ms)")
    } else {
        format!(
            "p99 of clat is {clat_ms:.2} ms, but counted from the due times it is {resp_ms:.2} ms: \
             a stall, or a rate that could not be kept, delayed ops, and clat does not show it"
        )
    };
    let figures = vec![
        figure("clat_p99_ns", to_float(clat)),
        figure("resp_p99_ns", to_float(resp)),
    ];
    Some(validity("response_time", ok, sentence, figures))
}

/// Returns p99 of clat and resp, if both are recorded.
fn p99s(direction: &DirectionRecord) -> Option<(u64, u64)> {
    let p99 = |latency: &Option<fathom_stats::Latency>| {
        let histogram = latency.as_ref()?.histogram.as_ref()?;
        (histogram.count() > 0).then(|| histogram.percentile(99.0))
    };
    Some((p99(&direction.clat)?, p99(&direction.resp)?))
}

/// Returns the mean queue depth at issue, the issued op included.
#[must_use]
pub fn mean_depth(results: Option<&Results>) -> f64 {
    let by_depth = results.map_or(&[][..], |results| &results.depth_at_issue);
    let ops: u64 = by_depth.iter().sum();
    let weighted: u128 = (0_u128..)
        .zip(by_depth)
        .map(|(depth, &ops)| depth * u128::from(ops))
        .sum();
    if ops == 0 {
        0.0
    } else {
        weighted as f64 / ops as f64
    }
}

/// Returns the number of ops of all directions.
#[must_use]
pub fn ops(record: &JobRecord) -> u64 {
    let directions = record.directions.each().into_iter();
    directions.map(|direction| direction.ios).sum()
}

/// Returns a judgement that names no job yet.
#[must_use]
pub fn validity(check: &str, ok: bool, sentence: String, figures: Vec<(String, f64)>) -> Validity {
    Validity {
        job: String::new(),
        check: check.into(),
        ok,
        sentence,
        figures,
    }
}

/// Returns a figure of a judgement.
#[must_use]
pub fn figure(name: &str, value: f64) -> (String, f64) {
    (name.into(), value)
}

/// Returns a share in percent; `None` of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| to_float(part) * 100.0 / to_float(whole))
}

/// Converts to a float; exact below 2⁵³, which suffices for a sentence.
#[must_use]
pub fn to_float(value: u64) -> f64 {
    value as f64
}

/// Share of the requested depth that the mean must reach. A guess: half is clearly not the depth
/// that the reader expects.
const DEPTH_SHARE: f64 = 0.5;
/// Ops per queue slot needed to judge the depth: with fewer, the queue is mostly filling up. A
/// guess.
const FILLS_COUNTED: u64 = 10;
/// Difference that counts as a stall; anything shorter may be scheduling latency.
const RESP_EXCESS_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_clones_are_counted() {
        let clone = |ok| vec![validity("cpu_bound", ok, format!("it is {ok}"), Vec::new())];
        let merged = judge_clones(&[clone(true), clone(false), clone(true)]);
        assert_eq!(merged.len(), 1);
        assert_eq!(merged[0].sentence, "it is false (1 of 3 clones)");
        assert!(judge_clones(&[clone(true), clone(true)])[0].ok);
    }
}
