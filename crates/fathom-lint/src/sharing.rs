//! Rules about clones, and about jobs on the same files.

use fathom_core::Nanos;
use fathom_setup::translate::pattern::writes;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "shared-writes",
        "concurrent jobs that write to one file",
        shared_writes,
    ),
    Rule::new(
        "same-region",
        "concurrent sequential jobs over the same bytes",
        same_region,
    ),
    Rule::new(
        "clones-apart",
        "clones without group reporting",
        clones_apart,
    ),
    Rule::new(
        "rates-per-clone",
        "a rate that applies to each clone",
        rates_per_clone,
    ),
];

fn shared_writes(view: &JobView<'_>) -> Option<RuleMatch> {
    // A run that verifies warns of it by itself.
    if !writes(view.options) || view.setup.worker.verify.is_some() {
        return None;
    }
    let (other, theirs, _) = view.sharers().find(|(other, _, ours)| {
        // Devices and storage elsewhere have no inode lock.
        let is_file = view.setup.has_local_files() && ours.found.is_file_or_missing();
        writes(&other.job.options) && is_file
    })?;
    let who = match other.name == view.setup.name {
        true => "its clones write".to_owned(),
        false => format!("it and `{}` write", other.name),
    };
    RuleMatch::new(
        &["filename", "filename_format", "numjobs"],
        format!(
            "{who} to {} at the same time: they may wait for each other's inode lock, which the \
             device does not cause",
            theirs.path
        ),
        "give each its own file (remove `filename`), or add `stonewall`",
    )
}

fn same_region(view: &JobView<'_>) -> Option<RuleMatch> {
    if view.options.random || !view.options.moves_data() {
        return None;
    }
    let (other, theirs, _) = view.sharers().find(|(other, theirs, ours)| {
        let options = &other.job.options;
        !options.random && theirs.offset == ours.offset && theirs.overlaps(ours)
    })?;
    let who = match other.name == view.setup.name {
        true => format!("all {} clones go", view.options.numjobs),
        false => format!("it and `{}` go", other.name),
    };
    RuleMatch::new(
        &["numjobs", "filename", "offset"],
        format!(
            "{who} over the same bytes of {} from {} on at the same time: data that one has just \
             accessed are cached, by the host or the device, for the next",
            theirs.path, theirs.offset
        ),
        "add `offset_increment=` to give each its own part",
    )
}

fn clones_apart(view: &JobView<'_>) -> Option<RuleMatch> {
    let clones = view.options.numjobs;
    if clones <= 1 || view.options.group_reporting {
        return None;
    }
    RuleMatch::new(
        &["numjobs"],
        format!(
            "each of the {clones} clones is reported separately: there is no total, and \
             percentiles cannot be added up"
        ),
        "add `group_reporting`",
    )
}

fn rates_per_clone(view: &JobView<'_>) -> Option<RuleMatch> {
    let clones = view.options.numjobs;
    let has_rate = view.asked_ops_per_second().is_some();
    // If pauses limit the rate, a rate per clone is probably intended.
    let paced = view.setup.worker.think.as_ref();
    if clones <= 1 || !has_rate || paced.is_some_and(|think| think.time > Nanos::ZERO) {
        return None;
    }
    RuleMatch::new(
        &["rate", "rate_iops", "numjobs"],
        format!(
            "the rate applies to each of the {clones} clones: their total is {clones} times the \
             rate"
        ),
        format!("divide the rate by {clones} if it is meant as a total"),
    )
}
