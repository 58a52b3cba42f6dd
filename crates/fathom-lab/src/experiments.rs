//! List of the experiments.

use crate::table::Experiment;
use crate::{
    aio_submit, hdd_seeks, hdd_single, hdd_tags, io_pacing, log_entries, micro, uring_irq,
};

/// Returns all experiments that `fathom table` offers, in the order of its list.
#[must_use]
pub const fn experiments() -> &'static [Experiment] {
    &EXPERIMENTS
}

const EXPERIMENTS: [Experiment; 8] = [
    uring_irq::EXPERIMENT,
    log_entries::EXPERIMENT,
    aio_submit::EXPERIMENT,
    io_pacing::EXPERIMENT,
    micro::TASK_LIST,
    hdd_single::EXPERIMENT,
    hdd_tags::EXPERIMENT,
    hdd_seeks::EXPERIMENT,
];
