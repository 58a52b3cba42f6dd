//! Statistics of a job's offload workers (`io_submit_mode=offload`).

use std::sync::PoisonError;

use fathom_core::{Errno, PerDirection};
use fathom_engine::{OffloadStats, SharedStats};
use fathom_record::Warning;
use fathom_setup::outcome::JobOutcome;
use fathom_stats::Latency;
use fathom_sys::thread;
use fathom_workload::{Phase, Worker, WorkerConfig};

use crate::drive::helpers_us;
use crate::interim::InterimResults;
use crate::thread_watch::add_usage;

/// Resets the offload statistics at the end of a job's ramp, as the job does with its own.
pub(crate) struct Ramp<'a> {
    /// Statistics to reset; `None` once the ramp is over.
    stats: Option<&'a SharedStats>,
}

impl<'a> Ramp<'a> {
    pub(crate) fn new(config: &WorkerConfig, stats: Option<&'a SharedStats>) -> Self {
        Self {
            stats: stats.filter(|_| !config.ramp.is_zero()),
        }
    }

    /// Checks for the end of the ramp and resets the statistics at that point.
    pub(crate) fn check(&mut self, worker: &Worker) {
        if let Some(stats) = self.stats
            && !matches!(worker.progress().phase, Phase::Delayed | Phase::Ramp)
        {
            stats.borrow_mut().queued = PerDirection::from_fn(|_| Latency::new(true));
            self.stats = None;
        }
    }
}

/// Returns the thread numbers of a job's running offload workers.
pub(crate) fn at_work(stats: Option<&SharedStats>) -> Vec<u32> {
    stats.map_or_else(Vec::new, |stats| {
        let figures = stats.borrow();
        let at_work = figures.live_threads.lock();
        at_work.unwrap_or_else(PoisonError::into_inner).clone()
    })
}

/// Completes an interim answer with what the workers have published; `own` excludes them.
pub(crate) fn so_far(
    mut own: JobOutcome,
    stats: Option<&SharedStats>,
    kernel_threads: bool,
) -> InterimResults {
    let workers = at_work(stats);
    if let Some(stats) = stats {
        let figures = stats.borrow();
        add_usage(&mut own.cpu, figures.usage);
        own.queued = Some(figures.queued.clone());
    }
    InterimResults {
        outcome: own,
        workers,
        kernel_threads,
    }
}

/// Adds the CPU time of running offload workers and of the kernel's helper threads. Reads a file in
/// /proc per thread, so the watcher calls it, never the job.
pub(crate) fn ask_others(answer: InterimResults) -> JobOutcome {
    let InterimResults {
        mut outcome,
        workers,
        kernel_threads,
    } = answer;
    for &worker in &workers {
        add_usage(&mut outcome.cpu, thread::usage_of_task(worker));
    }
    if kernel_threads {
        outcome.cpu.system_us += helpers_us(outcome.thread_id, workers);
    }
    outcome
}

/// Adds the final statistics of the offload workers to a job's outcome.
pub(crate) fn add_final_stats(figures: &OffloadStats, job: &str, outcome: &mut JobOutcome) {
    add_usage(&mut outcome.cpu, figures.usage);
    outcome.queued = Some(figures.queued.clone());
    outcome
        .features
        .push(format!("offload: up to {} workers", figures.workers));
    if let Some(errno) = figures.refused {
        outcome.warnings.push(refused(figures.workers, errno, job));
    }
}

fn refused(workers: u32, errno: Errno, job: &str) -> Warning {
    let why = std::io::Error::from(errno);
    let noun = if workers == 1 { "worker" } else { "workers" };
    Warning {
        code: "offload_workers_refused".into(),
        job: job.into(),
        message: format!("io_submit_mode=offload: only {workers} {noun} could be started: {why}"),
        hint: match errno {
            Errno::ENFILE | Errno::EMFILE => "raise `ulimit -n`, or reduce `iodepth` or `nrfiles`",
            Errno::ENOENT => "do not move or remove the job's files while it runs",
            _ => {
                "raise `ulimit -u`, pids.max of the control group, or fs.aio-max-nr; or reduce \
                 `iodepth`"
            }
        }
        .into(),
    }
}
