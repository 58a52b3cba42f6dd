//! Where and how urgently a job's thread runs.

use fathom_core::IoPriority;
use fathom_job::{CpuPolicy, Options};
use fathom_setup::check::scheduler::SchedulerChange;
use fathom_setup::outcome::Fault;
use fathom_setup::translate::priority;
use fathom_sys::pinned::Pinned;
use fathom_sys::thread;

use crate::gtod;
use crate::process::{self, ProcessSettings};
use crate::scheduler;

/// What is set on a job's thread before it touches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadSettings {
    /// Processors it may run on; empty for the process's own.
    pub(crate) cpus: Vec<u32>,
    /// Nice value; 0 leaves it.
    pub(crate) nice: i32,
    /// I/O priority, if one was asked for.
    pub(crate) priority: Option<IoPriority>,
    /// The I/O scheduler of its devices, if one was asked for.
    pub(crate) scheduler: Option<SchedulerChange>,
    /// Who it is, and what holds it back.
    pub(crate) process: ProcessSettings,
}

impl ThreadSettings {
    /// What the options ask for, for the job with this thread number (from 1).
    pub(crate) fn new(options: &Options, number: u32) -> Self {
        let allowed = options.cpus_allowed.clone().unwrap_or_default();
        let cpus = match options.cpus_allowed_policy {
            CpuPolicy::Split if !allowed.is_empty() => {
                let turn = number.saturating_sub(1) as usize % allowed.len();
                vec![allowed[turn]]
            }
            CpuPolicy::Shared | CpuPolicy::Split => allowed,
        };
        // Where both are said, the nodes hold, as in fio.
        let cpus = process::cpus_of_nodes(options).unwrap_or(cpus);
        Self {
            cpus: gtod::without(options, cpus),
            nice: options.nice,
            priority: priority::of_thread(options),
            scheduler: None,
            process: ProcessSettings::new(options),
        }
    }
}

/// Sets what is to be set on the calling thread; what is given is to be kept while the job runs.
pub(crate) fn apply(settings: &ThreadSettings) -> Result<Option<Pinned>, Fault> {
    // Signals are the watcher's: a system call of a job is never broken off by them.
    thread_signals()?;
    if !settings.cpus.is_empty() {
        thread::set_allowed_cpus(&settings.cpus).map_err(|error| fault("cpus_allowed", &error))?;
    }
    if settings.nice != 0 {
        thread::set_nice(settings.nice).map_err(|error| fault("nice", &error))?;
    }
    if let Some(priority) = settings.priority {
        thread::set_io_priority(priority).map_err(|error| fault("prio", &error))?;
    }
    if let Some(scheduler) = &settings.scheduler {
        scheduler::apply(scheduler)?;
    }
    // A sleep that ends 50 us late would be seen in the latencies of every paced op.
    let _default_stays = thread::set_timer_slack_ns(1);
    let held = settings.process.enter()?;
    settings.process.become_user()?;
    Ok(held)
}

/// Why something could not be set.
pub(crate) fn fault(what: &str, error: &std::io::Error) -> Fault {
    Fault {
        errno: error.raw_os_error().unwrap_or(0).unsigned_abs(),
        text: format!("{what}: {error}"),
        hint: String::new(),
    }
}

fn thread_signals() -> Result<(), Fault> {
    fathom_sys::signals::block_in_this_thread().map_err(|error| fault("sigmask", &error))
}
