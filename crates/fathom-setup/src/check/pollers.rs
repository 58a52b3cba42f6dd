//! Check for more polling kernel threads than CPUs (`io_submit_mode=offload` with
//! `sqthread_poll`).

use std::collections::BTreeSet;

use fathom_core::OptionEffect;
use fathom_host::probe::cpus_online;

use crate::plan_warning::{PlanWarning, PlanWarningKind};
use crate::translate::JobSetup;

/// Jobs of one wave whose offload workers each have a kernel thread polling their ring. Worker and
/// poller wait for each other, so with more threads than CPUs each op waits for a CPU as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// Name of the first such job.
    pub job: String,
    /// Maximum number of workers, and of pollers.
    pub workers: u32,
    /// Total number of threads: jobs, workers and pollers.
    pub threads: u32,
}

impl Crowd {
    /// Returns the crowd of a wave, if it has more threads than CPUs.
    pub fn of_wave(setups: &[JobSetup], wave: u32, cpus: u32) -> Option<Self> {
        let mut crowd: Option<Self> = None;
        for setup in setups.iter().filter(|setup| setup.place.wave == wave) {
            let options = &setup.job.options;
            if !options.offload || !options.has_effect(OptionEffect::PolledSubmissions) {
                continue;
            }
            let depth = setup.worker.depth;
            let crowd = crowd.get_or_insert(Self {
                job: setup.job.name.clone(),
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
    pub fn message(&self, cpus: u32) -> String {
        let Self {
            workers, threads, ..
        } = *self;
        format!(
            "too many polling threads: with sqthread_poll, each of up to {workers} offload workers \
             has a kernel thread that polls its ring; with their jobs, {threads} threads share \
             {cpus} CPUs, so each op waits until its poller is scheduled"
        )
    }

    /// Remedy.
    pub const HINT: &str =
        "remove `sqthread_poll`: offload workers already submit outside the job's thread";
}

/// Returns a warning per wave with too many polling threads.
pub fn crowded(setups: &[JobSetup]) -> Vec<PlanWarning> {
    let cpus = cpus_online();
    let waves: BTreeSet<u32> = setups.iter().map(|setup| setup.place.wave).collect();
    let crowds = waves
        .into_iter()
        .filter_map(|wave| Crowd::of_wave(setups, wave, cpus));
    let warnings = crowds.map(|crowd| PlanWarning {
        kind: PlanWarningKind::OffloadPollers,
        job: crowd.job.clone(),
        message: crowd.message(cpus),
        hint: Crowd::HINT.into(),
    });
    warnings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeFiles;
    use crate::testing::plan;
    use crate::translate::translate;

    #[test]
    fn more_polling_threads_than_cpus_are_reported() {
        let crowd = |words: &str, cpus| {
            let plan = plan(&format!("--name=t --size=1m --ioengine=io_uring {words}"));
            let setups = translate(&plan, &FakeFiles::default(), &mut || 1).setups;
            Crowd::of_wave(&setups, 0, cpus).map(|crowd| (crowd.workers, crowd.threads))
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
