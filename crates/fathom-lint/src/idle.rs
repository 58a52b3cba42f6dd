//! Rules about options without effect in this job.

use fathom_job::ReadWrite;
use fathom_setup::translate::pattern::rw_name;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "mix-of-one",
        "a read/write mix for a job with one direction",
        mix_of_one,
    ),
    Rule::new(
        "sync-without-writes",
        "syncs in a job without writes",
        sync_without_writes,
    ),
    Rule::new(
        "random-option-unused",
        "options of random offsets in a sequential job",
        random_option_unused,
    ),
    Rule::new(
        "priority-unused",
        "I/O priorities that the scheduler ignores",
        priority_unused,
    ),
];

fn mix_of_one(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = ["rwmixread", "rwmixwrite"];
    if view.options.rw == ReadWrite::Mixed || !options.iter().any(|name| view.wrote(name)) {
        return None;
    }
    let rw = rw_name(view.options);
    let mixed = if view.options.random { "randrw" } else { "rw" };
    RuleMatch::new(
        &["rwmixread", "rwmixwrite"],
        format!("`rw={rw}` has one direction: the read/write mix has no effect"),
        format!("use `rw={mixed}` for both, or remove the mix"),
    )
}

fn sync_without_writes(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let asked = options.fsync > 0 || options.fdatasync > 0 || options.sync != 0;
    if !asked || options.rw != ReadWrite::Read {
        return None;
    }
    let rw = rw_name(options);
    RuleMatch::new(
        &["fsync", "fdatasync", "sync"],
        format!("`rw={rw}` writes nothing to sync: this has no effect"),
        "remove it, or choose an `rw` that writes",
    )
}

fn random_option_unused(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let sometimes = options.percentage_random.iter().any(|(_, share)| {
        // In a sequential job it is the share of random ops, so it has an effect.
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
    RuleMatch::new(
        names,
        format!("`rw={rw}` is sequential: options of random offsets have no effect"),
        format!("use `rw=rand{rw}`, or remove them"),
    )
}

fn priority_unused(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let names: &'static [&'static str] =
        &["cmdprio_percentage", "cmdprio_bssplit", "prioclass", "prio"];
    let scheduler = &view.storage_facts.storage.scheduler;
    // `ioscheduler` is set before the job starts, so the present scheduler does not matter.
    let in_force = options.ioscheduler.as_ref().unwrap_or(scheduler);
    let blind = matches!(in_force.as_str(), "none" | "kyber") && view.has_storage();
    if !blind || !names.iter().any(|name| view.wrote(name)) {
        return None;
    }
    RuleMatch::new(
        names,
        format!(
            "the I/O scheduler of {} is {in_force}, which ignores priorities: they matter only if \
             the device supports them itself",
            view.storage_facts.storage.device
        ),
        "set `ioscheduler=mq-deadline` or `bfq` for priorities in the kernel",
    )
}
