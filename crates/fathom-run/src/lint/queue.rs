//! Rules on how many ops are in flight, and how they are handed over and reaped.

use fathom_setup::check::pollers::Crowd;

use super::view::View;
use super::{Fault, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "buffered-libaio",
        "libaio without direct I/O, which does one op at a time",
        buffered_libaio,
    ),
    Rule::new(
        "depth-not-given",
        "an asynchronous engine with the default depth of 1",
        depth_not_given,
    ),
    Rule::new(
        "batch-above-depth",
        "a batch that is larger than the queue",
        batch_above_depth,
    ),
    Rule::new(
        "batched-completions",
        "ops that are done wait for others",
        batched_completions,
    ),
    Rule::new(
        "polling-buffered",
        "polled completions of buffered ops",
        polling_buffered,
    ),
    Rule::new(
        "polling-processors",
        "more polling jobs than processors",
        polling_processors,
    ),
    Rule::new(
        "polled-workers",
        "workers whose rings are polled, on few processors",
        polled_workers,
    ),
];

fn buffered_libaio(view: &View<'_>) -> Option<Fault> {
    if view.options.ioengine != "libaio" || !view.is_buffered() || view.depth() == 1 {
        return None;
    }
    Fault::new(
        &["iodepth", "ioengine"],
        format!(
            "libaio does buffered ops one at a time, inside the call that submits them: of \
             iodepth={} the device sees one at most",
            view.depth()
        ),
        "add `direct=1`, or use `ioengine=io_uring`",
    )
}

fn depth_not_given(view: &View<'_>) -> Option<Fault> {
    if !view.is_asynchronous() || view.wrote("iodepth") {
        return None;
    }
    Fault::new(
        &["ioengine"],
        format!(
            "{} can have many ops in flight, but the default `iodepth` is 1: it works as a \
             synchronous engine would",
            view.options.ioengine
        ),
        "add `iodepth=32`, or `iodepth=1` if one is what is meant",
    )
}

fn batch_above_depth(view: &View<'_>) -> Option<Fault> {
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
    Fault::new(
        at,
        format!("`{name}={size}` is more than can be in flight: it means {depth}, as in fio"),
        format!("write at most {depth}, or a larger `iodepth`"),
    )
}

fn batched_completions(view: &View<'_>) -> Option<Fault> {
    let least = view.setup.worker.batching.complete_min;
    if least <= 1 || view.setup.diskless {
        return None;
    }
    Fault::new(
        &["iodepth_batch_complete_min"],
        format!(
            "ops are reaped {least} at a time: those that are done first wait for the others, and \
             their latencies contain that wait"
        ),
        "write `iodepth_batch_complete_min=1`, with `iodepth_batch_complete_max` for batches",
    )
}

fn polling_buffered(view: &View<'_>) -> Option<Fault> {
    if !view.options.hipri || !view.is_buffered() {
        return None;
    }
    Fault::new(
        &["hipri", "direct", "buffered"],
        "only direct ops can be polled for: buffered ones fail, or end by interrupts",
        "add `direct=1`, or leave `hipri` out",
    )
}

fn polling_processors(view: &View<'_>) -> Option<Fault> {
    let polls = |setup: &&fathom_setup::translate::JobSetup| {
        let options = &view.plan.jobs[setup.place.section].options;
        let polled = options.sqthread_poll && options.ioengine == "io_uring" && !options.offload;
        let spins = options.hipri || polled || setup.worker.batching.complete_min == 0;
        spins && setup.place.wave == view.setup.place.wave
    };
    let (jobs, cpus) = (view.setups.iter().filter(polls).count(), view.facts.cpus);
    let jobs_polling = u32::try_from(jobs).unwrap_or(u32::MAX);
    if !polls(&view.setup) || cpus == 0 || jobs_polling <= cpus {
        return None;
    }
    Fault::new(
        &[
            "numjobs",
            "hipri",
            "sqthread_poll",
            "iodepth_batch_complete_min",
        ],
        format!(
            "{jobs} jobs that never sleep share {cpus} processors: they take turns, and latencies \
             contain the waits for a processor"
        ),
        format!("run at most {cpus} of them at a time"),
    )
}

fn polled_workers(view: &View<'_>) -> Option<Fault> {
    let cpus = view.facts.cpus;
    let crowd = Crowd::of_wave(view.plan, view.setups, view.setup.place.wave, cpus)?;
    let options = view.options;
    if !options.offload || !options.sqthread_poll {
        return None;
    }
    Fault::new(
        &["sqthread_poll", "io_submit_mode"],
        crowd.message(cpus),
        Crowd::HINT,
    )
}
