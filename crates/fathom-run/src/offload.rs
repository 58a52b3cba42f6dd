//! What is told of a job's workers (`io_submit_mode=offload`).

use fathom_core::PerDirection;
use fathom_engine::{OffloadFigures, OffloadTold};
use fathom_record::Warning;
use fathom_stats::Latency;
use fathom_workload::{Phase, Worker};

use crate::drive::Outcome;

/// Whether the ramp is over; forgets what was counted during it, as the worker does.
pub(crate) fn ramp_is_over(worker: &Worker, told: &OffloadTold) -> bool {
    if matches!(worker.progress().phase, Phase::Delayed | Phase::Ramp) {
        return false;
    }
    told.borrow_mut().queued = PerDirection::from_fn(|_| Latency::new(true));
    true
}

/// Adds what the workers have left behind.
pub(crate) fn settle(figures: &OffloadFigures, job: &str, outcome: &mut Outcome) {
    outcome.usage = outcome.usage.plus(figures.usage);
    outcome.queued = Some(figures.queued.clone());
    outcome
        .features
        .push(format!("offload: up to {} workers", figures.workers));
    if figures.refused != 0 {
        outcome.said.push(refused(figures, job));
    }
}

fn refused(figures: &OffloadFigures, job: &str) -> Warning {
    let why = std::io::Error::from_raw_os_error(figures.refused.cast_signed());
    Warning {
        code: "offload_workers_refused".into(),
        job: job.into(),
        message: format!(
            "{} workers are all that could be started for io_submit_mode=offload: {why}",
            figures.workers
        ),
        hint: "raise `ulimit -u`, the pids.max of the control group, or fs.aio-max-nr; or lower \
               iodepth"
            .into(),
    }
}
