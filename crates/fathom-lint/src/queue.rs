//! Rules about queue depth, batches and polling.

use fathom_core::OptionEffect;
use fathom_setup::check::pollers::Crowd;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "buffered-libaio",
        "libaio without direct I/O, which is synchronous",
        buffered_libaio,
    ),
    Rule::new(
        "depth-not-given",
        "an asynchronous engine with the default depth of 1",
        depth_not_given,
    ),
    Rule::new(
        "batch-above-depth",
        "a batch larger than the queue depth",
        batch_above_depth,
    ),
    Rule::new(
        "batched-completions",
        "completed ops that wait to be reaped",
        batched_completions,
    ),
    Rule::new(
        "polling-buffered",
        "polled completions with buffered I/O",
        polling_buffered,
    ),
    Rule::new(
        "polling-processors",
        "more polling jobs than CPUs",
        polling_processors,
    ),
    Rule::new(
        "polled-workers",
        "offload workers with sqthread_poll on few CPUs",
        polled_workers,
    ),
];

fn buffered_libaio(view: &JobView<'_>) -> Option<RuleMatch> {
    if !view.options.engine.blocks_when_buffered || !view.is_buffered() || view.depth() == 1 {
        return None;
    }
    RuleMatch::new(
        &["iodepth", "ioengine"],
        format!(
            "libaio performs buffered ops one at a time within the submitting call: of iodepth={} \
             the device sees at most one",
            view.depth()
        ),
        "add `direct=1`, or use `ioengine=io_uring`",
    )
}

fn depth_not_given(view: &JobView<'_>) -> Option<RuleMatch> {
    if !view.is_asynchronous() || view.wrote("iodepth") {
        return None;
    }
    RuleMatch::new(
        &["ioengine"],
        format!(
            "{} can have many ops in flight, but the default `iodepth` is 1: it behaves like a \
             synchronous engine",
            view.options.engine.name
        ),
        "add `iodepth=32`, or `iodepth=1` if a depth of 1 is intended",
    )
}

fn batch_above_depth(view: &JobView<'_>) -> Option<RuleMatch> {
    let (options, depth) = (view.options, view.depth());
    let sizes = [
        ("iodepth_batch", options.iodepth_batch),
        (
            "iodepth_batch_complete_min",
            options.iodepth_batch_complete_min,
        ),
        (
            "iodepth_batch_complete_max",
            options.iodepth_batch_complete_max,
        ),
        ("iodepth_low", options.iodepth_low),
    ];
    let (name, size) = sizes
        .into_iter()
        .find(|(name, size)| *size > depth && view.wrote(name))?;
    let at: &'static [&'static str] = match name {
        "iodepth_batch" => &["iodepth_batch"],
        "iodepth_batch_complete_min" => &["iodepth_batch_complete_min"],
        "iodepth_batch_complete_max" => &["iodepth_batch_complete_max"],
        _ => &["iodepth_low"],
    };
    RuleMatch::new(
        at,
        format!("`{name}={size}` exceeds the queue depth: {depth} is used, as in fio"),
        format!("set it to at most {depth}, or raise `iodepth`"),
    )
}

fn batched_completions(view: &JobView<'_>) -> Option<RuleMatch> {
    let least = view.setup.worker.batching.complete_min;
    if least <= 1 || !view.options.moves_data() {
        return None;
    }
    RuleMatch::new(
        &["iodepth_batch_complete_min"],
        format!(
            "ops are reaped {least} at a time: the first to complete wait for the others, and \
             their latencies include that wait"
        ),
        "set `iodepth_batch_complete_min=1`, with `iodepth_batch_complete_max` for batches",
    )
}

fn polling_buffered(view: &JobView<'_>) -> Option<RuleMatch> {
    if !view.options.has_effect(OptionEffect::PolledCompletions) || !view.is_buffered() {
        return None;
    }
    RuleMatch::new(
        &["hipri", "direct", "buffered"],
        "only direct I/O can be polled: buffered ops fail or complete by interrupt",
        "add `direct=1`, or remove `hipri`",
    )
}

fn polling_processors(view: &JobView<'_>) -> Option<RuleMatch> {
    let polls = |setup: &&fathom_setup::translate::JobSetup| {
        let options = &setup.job.options;
        let polled = options.has_effect(OptionEffect::PolledSubmissions) && !options.offload;
        let spins = options.has_effect(OptionEffect::PolledCompletions)
            || polled
            || setup.worker.batching.complete_min == 0;
        spins && setup.place.wave == view.setup.place.wave
    };
    let (jobs, cpus) = (view.setups.iter().filter(polls).count(), view.facts.cpus);
    let jobs_polling = u32::try_from(jobs).unwrap_or(u32::MAX);
    if !polls(&view.setup) || cpus == 0 || jobs_polling <= cpus {
        return None;
    }
    RuleMatch::new(
        &[
            "numjobs",
            "hipri",
            "sqthread_poll",
            "iodepth_batch_complete_min",
        ],
        format!(
            "{jobs} polling jobs share {cpus} CPUs: they preempt one another, and latencies \
             include the time they wait for a CPU"
        ),
        format!("run at most {cpus} of them at the same time"),
    )
}

fn polled_workers(view: &JobView<'_>) -> Option<RuleMatch> {
    let cpus = view.facts.cpus;
    let crowd = Crowd::of_wave(view.setups, view.setup.place.wave, cpus)?;
    let options = view.options;
    if !options.offload || !options.has_effect(OptionEffect::PolledSubmissions) {
        return None;
    }
    RuleMatch::new(
        &["sqthread_poll", "io_submit_mode"],
        crowd.message(cpus),
        Crowd::HINT,
    )
}
