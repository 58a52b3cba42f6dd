//! Rules on options that were written and do nothing in this job.

use fathom_job::ReadWrite;
use fathom_setup::translate::pattern::rw_name;

use super::view::View;
use super::{Fault, Rule};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "mix-of-one",
        "shares of reads and writes in a job that does one of them",
        mix_of_one,
    ),
    Rule::new(
        "sync-without-writes",
        "syncs of a job that writes nothing",
        sync_without_writes,
    ),
    Rule::new(
        "random-option-unused",
        "options of random offsets in a job that goes in order",
        random_option_unused,
    ),
    Rule::new(
        "priority-unused",
        "priorities that nothing between the job and the device looks at",
        priority_unused,
    ),
];

fn mix_of_one(view: &View<'_>) -> Option<Fault> {
    let options = ["rwmixread", "rwmixwrite"];
    if view.options.rw == ReadWrite::Mixed || !options.iter().any(|name| view.wrote(name)) {
        return None;
    }
    let rw = rw_name(view.options);
    let mixed = if view.options.random { "randrw" } else { "rw" };
    Fault::new(
        &["rwmixread", "rwmixwrite"],
        format!("`rw={rw}` does one thing only: shares of reads and writes do nothing"),
        format!("write `rw={mixed}` for both, or leave the shares out"),
    )
}

fn sync_without_writes(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let asked = options.fsync > 0 || options.fdatasync > 0 || options.sync != 0;
    if !asked || options.rw != ReadWrite::Read {
        return None;
    }
    let rw = rw_name(options);
    Fault::new(
        &["fsync", "fdatasync", "sync"],
        format!("`rw={rw}` writes nothing that could be synced: this does nothing"),
        "leave it out, or write",
    )
}

fn random_option_unused(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let sometimes = options.percentage_random.iter().any(|(_, share)| {
        // Of a sequential job it is the share of random ops.
        view.wrote("percentage_random") && *share > 0
    });
    let names: &'static [&'static str] = &[
        "random_distribution",
        "norandommap",
        "random_generator",
        "softrandommap",
    ];
    if options.random || sometimes || !names.iter().any(|name| view.wrote(name)) {
        return None;
    }
    let rw = rw_name(options);
    Fault::new(
        names,
        format!("`rw={rw}` goes in order: options of random offsets do nothing"),
        format!("write `rw=rand{rw}`, or leave them out"),
    )
}

fn priority_unused(view: &View<'_>) -> Option<Fault> {
    let options = view.options;
    let names: &'static [&'static str] =
        &["cmdprio_percentage", "cmdprio_bssplit", "prioclass", "prio"];
    let scheduler = &view.under.storage.scheduler;
    // The job's own `ioscheduler` is set before it starts.
    let in_force = options.ioscheduler.as_ref().unwrap_or(scheduler);
    let blind = matches!(in_force.as_str(), "none" | "kyber") && view.has_storage();
    if !blind || !names.iter().any(|name| view.wrote(name)) {
        return None;
    }
    Fault::new(
        names,
        format!(
            "the I/O scheduler of {} is {in_force}, which does not look at priorities: only a \
             device that knows them itself tells such ops apart",
            view.under.storage.device
        ),
        "set `ioscheduler=mq-deadline` or `bfq`, if the kernel is to tell them apart",
    )
}
