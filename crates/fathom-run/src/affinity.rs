//! Where and how urgently a job's thread runs.

use fathom_job::{CpuPolicy, Options};
use fathom_sys::thread::{self, IoPriority};

use crate::drive::Fault;

/// What is set on a job's thread before it touches anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadSettings {
    /// Processors it may run on; empty for the process's own.
    pub(crate) cpus: Vec<u32>,
    /// Nice value; 0 leaves it.
    pub(crate) nice: i32,
    /// I/O priority, if one was asked for.
    pub(crate) priority: Option<IoPriority>,
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
        Self {
            cpus,
            nice: options.nice,
            priority: priority(options.prioclass, options.prio),
        }
    }
}

/// A level without a class is one of the best-effort class, as in fio.
fn priority(class: u8, level: u8) -> Option<IoPriority> {
    match (class, level) {
        (0, 0) => None,
        (0, level) => Some(IoPriority {
            class: BEST_EFFORT,
            level,
        }),
        (class, level) => Some(IoPriority { class, level }),
    }
}

/// Sets what is to be set on the calling thread.
pub(crate) fn apply(settings: &ThreadSettings) -> Result<(), Fault> {
    let fault = |what: &str, error: &std::io::Error| Fault {
        errno: error.raw_os_error().unwrap_or(0).unsigned_abs(),
        text: format!("{what}: {error}"),
        hint: String::new(),
    };
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
    // A sleep that ends 50 us late would be seen in the latencies of every paced op.
    let _default_stays = thread::set_timer_slack_ns(1);
    Ok(())
}

fn thread_signals() -> Result<(), Fault> {
    fathom_sys::signals::block_in_this_thread().map_err(|error| Fault {
        errno: error.raw_os_error().unwrap_or(0).unsigned_abs(),
        text: format!("sigmask: {error}"),
        hint: String::new(),
    })
}

/// `IOPRIO_CLASS_BE` of ioprio_set(2).
const BEST_EFFORT: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_is_best_effort() {
        assert_eq!(priority(0, 0), None);
        assert_eq!(priority(0, 3), Some(IoPriority { class: 2, level: 3 }));
        assert_eq!(priority(1, 0), Some(IoPriority { class: 1, level: 0 }));
    }
}
