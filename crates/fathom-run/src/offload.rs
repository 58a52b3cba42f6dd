//! What is told of a job's workers (`io_submit_mode=offload`).

use std::collections::BTreeSet;
use std::sync::PoisonError;

use fathom_core::PerDirection;
use fathom_engine::{OffloadFigures, OffloadTold};
use fathom_job::Plan;
use fathom_record::Warning;
use fathom_stats::Latency;
use fathom_sys::{system, thread};
use fathom_workload::{Phase, Worker, WorkerConfig};

use crate::drive::{add_usage, helpers_us};
use crate::interim::Answer;
use crate::outcome::Outcome;
use crate::translate::JobSetup;

/// Forgets what was counted of workers during a job's ramp when that is over, as its worker does.
pub(crate) struct Ramp<'a> {
    /// Where it is counted, until the ramp is over.
    told: Option<&'a OffloadTold>,
}

impl<'a> Ramp<'a> {
    pub(crate) fn new(config: &WorkerConfig, told: Option<&'a OffloadTold>) -> Self {
        Self {
            told: told.filter(|_| !config.ramp.is_zero()),
        }
    }

    /// Whether it is over by now.
    pub(crate) fn look(&mut self, worker: &Worker) {
        if let Some(told) = self.told
            && !matches!(worker.progress().phase, Phase::Delayed | Phase::Ramp)
        {
            told.borrow_mut().queued = PerDirection::from_fn(|_| Latency::new(true));
            self.told = None;
        }
    }
}

/// The workers of a job that are at work.
pub(crate) fn at_work(told: Option<&OffloadTold>) -> Vec<u32> {
    told.map_or_else(Vec::new, |told| {
        let figures = told.borrow();
        let at_work = figures.at_work.lock();
        at_work.unwrap_or_else(PoisonError::into_inner).clone()
    })
}

/// What is known while the workers are at work; `own` is what is without them.
pub(crate) fn so_far(mut own: Outcome, told: Option<&OffloadTold>) -> Answer {
    let workers = at_work(told);
    if let Some(told) = told {
        let figures = told.borrow();
        add_usage(&mut own.cpu, figures.usage);
        own.queued = Some(figures.queued.clone());
    }
    Answer {
        outcome: own,
        workers,
    }
}

/// Adds what the workers that are at work and the kernel's helpers have used. It takes a while
/// where they are many: not for the job's own thread.
pub(crate) fn ask_others(answer: Answer) -> Outcome {
    let Answer {
        mut outcome,
        workers,
    } = answer;
    for &worker in &workers {
        add_usage(&mut outcome.cpu, thread::usage_of_task(worker));
    }
    if let Some(engine) = outcome.engine {
        outcome.cpu.system_us += helpers_us(engine, outcome.thread_id, workers);
    }
    outcome
}

/// Adds what the workers have left behind.
pub(crate) fn settle(figures: &OffloadFigures, job: &str, outcome: &mut Outcome) {
    add_usage(&mut outcome.cpu, figures.usage);
    outcome.queued = Some(figures.queued.clone());
    outcome
        .features
        .push(format!("offload: up to {} workers", figures.workers));
    if figures.refused != 0 {
        outcome.said.push(refused(figures, job));
    }
}

/// Jobs of one wave whose workers each have a kernel thread that polls their ring: each sleeps for
/// the other, and where they are more than the processors the one that is waited for does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// The first such job's section.
    pub(crate) section: usize,
    /// Workers that there may be, and so many pollers.
    pub(crate) workers: u32,
    /// Threads of all three kinds.
    pub(crate) threads: u32,
}

impl Crowd {
    /// The crowd that a wave of jobs makes on so many processors, if it is one.
    pub(crate) fn of_wave(plan: &Plan, setups: &[JobSetup], wave: u32, cpus: u32) -> Option<Self> {
        let mut crowd: Option<Self> = None;
        for setup in setups.iter().filter(|setup| setup.place.wave == wave) {
            let options = &plan.jobs[setup.place.section].options;
            if !options.offload || !options.sqthread_poll || options.ioengine != "io_uring" {
                continue;
            }
            let depth = setup.worker.depth;
            let crowd = crowd.get_or_insert(Self {
                section: setup.place.section,
                workers: 0,
                threads: 0,
            });
            crowd.workers = crowd.workers.saturating_add(depth);
            let threads = depth.saturating_mul(2).saturating_add(1);
            crowd.threads = crowd.threads.saturating_add(threads);
        }
        crowd.filter(|crowd| cpus > 0 && crowd.threads > cpus)
    }

    /// Returns the warning text.
    pub(crate) fn message(self, cpus: u32) -> String {
        let Self {
            workers, threads, ..
        } = self;
        format!(
            "up to {workers} workers of io_submit_mode=offload have a ring each, which a kernel \
             thread of its own polls (sqthread_poll): with their jobs {threads} threads share \
             {cpus} processors, and each op waits until its poller gets one"
        )
    }

    pub(crate) const HINT: &str =
        "leave `sqthread_poll` out: workers keep submission off the job's thread without it";
}

/// Warnings about crowds of pollers, one a wave.
pub(crate) fn crowded(plan: &Plan, setups: &[JobSetup]) -> Vec<Warning> {
    let cpus = system::cpus_online();
    let waves: BTreeSet<u32> = setups.iter().map(|setup| setup.place.wave).collect();
    let crowds = waves
        .into_iter()
        .filter_map(|wave| Crowd::of_wave(plan, setups, wave, cpus));
    let warnings = crowds.map(|crowd| Warning {
        code: "offload_pollers".into(),
        job: plan.jobs[crowd.section].name.clone(),
        message: crowd.message(cpus),
        hint: Crowd::HINT.into(),
    });
    warnings.collect()
}

fn refused(figures: &OffloadFigures, job: &str) -> Warning {
    let why = std::io::Error::from_raw_os_error(figures.refused.cast_signed());
    let workers = match figures.workers {
        1 => "1 worker is".to_owned(),
        count => format!("{count} workers are"),
    };
    Warning {
        code: "offload_workers_refused".into(),
        job: job.into(),
        message: format!("{workers} all that could be had for io_submit_mode=offload: {why}"),
        hint: match figures.refused {
            ENFILE | EMFILE => "raise `ulimit -n`, or lower iodepth or nrfiles",
            ENOENT => "leave the job's files where they are while it runs",
            _ => {
                "raise `ulimit -u`, the pids.max of the control group, or fs.aio-max-nr; or lower \
                 iodepth"
            }
        }
        .into(),
    }
}

/// A file was removed, or renamed.
const ENOENT: u32 = 2;
/// The system, or the process, has too many files open.
const ENFILE: u32 = 23;
const EMFILE: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::tests::{Table, plan};
    use crate::translate::translate;

    #[test]
    fn workers_with_pollers_are_told_where_processors_are_fewer() {
        let crowd = |words: &str, cpus| {
            let plan = plan(&format!("--name=t --size=1m --ioengine=io_uring {words}"));
            let setups = translate(&plan, &Table::default(), &mut || 1).setups;
            Crowd::of_wave(&plan, &setups, 0, cpus).map(|crowd| (crowd.workers, crowd.threads))
        };
        let both = "--io_submit_mode=offload --sqthread_poll";
        assert_eq!(crowd(both, 2), Some((1, 3)));
        assert_eq!(crowd(both, 3), None);
        let many = format!("{both} --iodepth=4 --numjobs=2");
        assert_eq!(crowd(&many, 16), Some((8, 18)));
        assert_eq!(crowd("--sqthread_poll --iodepth=4", 1), None);
        assert_eq!(crowd("--io_submit_mode=offload --iodepth=4", 1), None);
    }
}
