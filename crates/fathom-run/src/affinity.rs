//! CPU affinity, nice value and I/O priority of a job's thread.

use fathom_core::{Errno, IoPriority};
use fathom_job::{CpuPolicy, Options};
use fathom_setup::check::scheduler::SchedulerChange;
use fathom_setup::outcome::JobFailure;
use fathom_setup::translate::priority;
use fathom_sys::pinned::Pinned;
use fathom_sys::thread;

use crate::gtod;
use crate::process::{self, ProcessSettings};
use crate::scheduler;

/// Settings of a job's thread, applied before it opens a file or allocates a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadSettings {
    /// CPUs the thread may run on; `None` inherits the mask of the process. The kernel refuses an
    /// empty list.
    pub(crate) cpus: Option<Vec<u32>>,
    /// Nice value; 0 leaves the inherited one.
    pub(crate) nice: i32,
    /// I/O priority, if the job sets one.
    pub(crate) priority: Option<IoPriority>,
    /// I/O scheduler for the job's devices, if the job sets one.
    pub(crate) scheduler: Option<SchedulerChange>,
    /// Identity, control group and memory policy.
    pub(crate) process: ProcessSettings,
}

impl ThreadSettings {
    /// Derives the settings of the job with this thread number (from 1).
    pub(crate) fn new(options: &Options, number: u32) -> Self {
        Self {
            cpus: cpus(options, number),
            nice: options.nice,
            priority: priority::of_thread(options),
            scheduler: None,
            process: ProcessSettings::new(options),
        }
    }
}

/// Returns the CPUs on which the job with this thread number may run; `None` inherits the mask of
/// the process.
pub(crate) fn cpus(options: &Options, number: u32) -> Option<Vec<u32>> {
    let cpus = match (&options.cpus_allowed, options.cpus_allowed_policy) {
        (Some(allowed), CpuPolicy::Split) if !allowed.is_empty() => {
            let turn = number.saturating_sub(1) as usize % allowed.len();
            Some(vec![allowed[turn]])
        }
        (allowed, CpuPolicy::Shared | CpuPolicy::Split) => allowed.clone(),
    };
    // `numa_cpu_nodes` overrides `cpus_allowed`, as in fio.
    let cpus = process::cpus_of_nodes(options).or(cpus);
    gtod::without(options, cpus)
}

/// Applies `settings` to the calling thread. Keep the returned memory until the job ends: dropping
/// it releases `lockmem`.
pub(crate) fn apply(settings: &ThreadSettings) -> Result<Option<Pinned>, JobFailure> {
    // Only the watcher handles signals, so no system call of a job fails with EINTR.
    thread_signals()?;
    if let Some(cpus) = &settings.cpus {
        thread::set_allowed_cpus(cpus).map_err(|error| rejected("cpus_allowed", &error))?;
    }
    if settings.nice != 0 {
        thread::set_nice(settings.nice).map_err(|error| rejected("nice", &error))?;
    }
    if let Some(priority) = settings.priority {
        thread::set_io_priority(priority).map_err(|error| rejected("prio", &error))?;
    }
    if let Some(scheduler) = &settings.scheduler {
        scheduler::apply(scheduler)?;
    }
    // The default slack of 50 us would delay every paced op by as much.
    let _default_stays = thread::set_timer_slack_ns(1);
    let held = settings.process.enter()?;
    settings.process.become_user()?;
    Ok(held)
}

/// Builds the failure for a setting that the kernel rejected.
pub(crate) fn rejected(what: &str, error: &std::io::Error) -> JobFailure {
    let errno = Errno::of(error).unwrap_or(Errno::EINVAL);
    JobFailure::new(errno, format!("{what}: {error}"))
}

fn thread_signals() -> Result<(), JobFailure> {
    fathom_sys::signals::block_in_this_thread().map_err(|error| rejected("sigmask", &error))
}
