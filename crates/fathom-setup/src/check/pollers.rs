//! Offload workers whose rings are polled by more kernel threads than there are processors.

use std::collections::BTreeSet;

use fathom_host::probe::cpus_online;
use fathom_job::Plan;
use fathom_record::Warning;

use crate::translate::JobSetup;

/// Jobs of one wave whose workers each have a kernel thread that polls their ring: each sleeps for
/// the other, and where they are more than the processors the one that is waited for does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The first such job's section.
    pub section: usize,
    /// Workers that there may be, and so many pollers.
    pub workers: u32,
    /// Threads of all three kinds.
    pub threads: u32,
}

impl Crowd {
    /// The crowd that a wave of jobs makes on so many processors, if it is one.
    pub fn of_wave(plan: &Plan, setups: &[JobSetup], wave: u32, cpus: u32) -> Option<Self> {
        let mut crowd: Option<Self> = None;
        for setup in setups.iter().filter(|setup| setup.place.wave == wave) {
            let options = &plan.jobs[setup.place.section].options;
            if !options.offload || !options.engine_values.is_on("sqthread_poll") {
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
    pub fn message(self, cpus: u32) -> String {
        let Self {
            workers, threads, ..
        } = self;
        format!(
            "up to {workers} workers of io_submit_mode=offload have a ring each, which a kernel \
             thread of its own polls (sqthread_poll): with their jobs {threads} threads share \
             {cpus} processors, and each op waits until its poller gets one"
        )
    }

    /// Remedy.
    pub const HINT: &str =
        "leave `sqthread_poll` out: workers keep submission off the job's thread without it";
}

/// Warnings about crowds of pollers, one a wave.
pub fn crowded(plan: &Plan, setups: &[JobSetup]) -> Vec<Warning> {
    let cpus = cpus_online();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Table;
    use crate::testing::plan;
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
