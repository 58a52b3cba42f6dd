//! A job, as seen by the rules.

use fathom_core::{Direction, Nanos, OptionEffect};
use fathom_job::{Job, Options};
use fathom_setup::translate::pattern::{bounds, sized, uses};
use fathom_setup::translate::{FileSetup, JobSetup};

use super::facts::{Facts, SectionFacts};

/// A job with its setup, its storage and the facts about the machine.
pub(super) struct JobView<'a> {
    pub(super) job: &'a Job,
    pub(super) options: &'a Options,
    /// Its first clone.
    pub(super) setup: &'a JobSetup,
    /// All clones of all jobs.
    pub(super) setups: &'a [JobSetup],
    pub(super) storage_facts: &'a SectionFacts,
    pub(super) facts: &'a Facts,
}

impl<'a> JobView<'a> {
    /// Iterates over the jobs of a plan, each by its first clone.
    pub(super) fn of_all(setups: &'a [JobSetup], facts: &'a Facts) -> impl Iterator<Item = Self> {
        let firsts = setups.iter().filter(|setup| setup.place.clone == 0);
        firsts.map(move |setup| {
            let job = &setup.job;
            Self {
                job,
                options: &job.options,
                setup,
                setups,
                storage_facts: &facts.sections[setup.place.section],
                facts,
            }
        })
    }

    pub(super) fn reads(&self) -> bool {
        uses(self.options, Direction::Read)
    }

    pub(super) fn writes(&self) -> bool {
        uses(self.options, Direction::Write)
    }

    /// Returns true if ops go through the page cache to storage other than memory.
    pub(super) fn is_buffered(&self) -> bool {
        let past = self.options.direct && self.options.engine.bypasses_cache;
        !past && !self.options.has_effect(OptionEffect::Uncached) && self.has_storage()
    }

    /// Returns true if the files are on storage other than memory.
    pub(super) fn has_storage(&self) -> bool {
        self.setup.has_local_data() && !self.storage_facts.in_memory()
    }

    /// Returns true if the option was given, in the job or in a section that it inherits.
    pub(super) fn wrote(&self, option: &str) -> bool {
        self.job.written(option).is_some()
    }

    /// Returns the bytes that one clone covers.
    pub(super) fn working_set(&self) -> u64 {
        self.setup.files.iter().map(|file| file.length).sum()
    }

    /// Returns true if the job covers its bytes more than once.
    pub(super) fn repeats(&self) -> bool {
        self.setup.worker.time_based || self.setup.worker.loops > 1
    }

    /// Returns the smallest and the largest op size, bytes.
    pub(super) fn op_bytes(&self) -> (u64, u64) {
        let all: Vec<_> = sized(self.options)
            .map(|direction| bounds(self.options, direction))
            .collect();
        let smallest = all.iter().map(|bounds| bounds.0).min();
        let largest = all.iter().map(|bounds| bounds.1).max();
        (smallest.unwrap_or(1).max(1), largest.unwrap_or(1).max(1))
    }

    pub(super) fn is_asynchronous(&self) -> bool {
        let options = self.options;
        let no_queue = options.is_synchronous(2) || options.gathers();
        !no_queue && self.options.moves_data()
    }

    pub(super) fn depth(&self) -> u32 {
        self.setup.worker.depth
    }

    /// Returns the limit of the measured time, if any.
    pub(super) fn runtime(&self) -> Option<Nanos> {
        self.setup.worker.runtime
    }

    /// Returns the ops per second that the rates request over all directions, with the smallest
    /// ops.
    pub(super) fn asked_ops_per_second(&self) -> Option<u64> {
        let (smallest, _) = self.op_bytes();
        let of = |direction| {
            let (bytes, ops) = (
                self.options.rate[direction],
                self.options.rate_iops[direction],
            );
            let used = uses(self.options, direction);
            let by_bytes = bytes.map(|bytes| bytes / smallest);
            ops.or(by_bytes).filter(|&ops| used && ops > 0)
        };
        let asked: Vec<u64> = Direction::ALL.into_iter().filter_map(of).collect();
        (!asked.is_empty()).then(|| {
            asked
                .iter()
                .fold(0, |sum: u64, ops| sum.saturating_add(*ops))
        })
    }

    /// Iterates over other clones that run concurrently and share a file with this one: the clone,
    /// its file, and this job's.
    pub(super) fn sharers(
        &self,
    ) -> impl Iterator<Item = (&'a JobSetup, &'a FileSetup, &'a FileSetup)> {
        let setup = self.setup;
        let others = self.setups.iter().filter(move |other| {
            let same_time = other.place.wave == setup.place.wave && other.job.options.moves_data();
            same_time && other.place.number != setup.place.number && setup.job.options.moves_data()
        });
        others.flat_map(move |other| {
            let pairs = other.files.iter().take(FILES_COMPARED_MAX);
            pairs.filter_map(move |theirs| {
                let mut mine = setup.files.iter().take(FILES_COMPARED_MAX);
                let ours = mine.find(|ours| ours.path == theirs.path)?;
                Some((other, theirs, ours))
            })
        })
    }
}

/// Files compared per job: jobs that share files usually share one of the first.
const FILES_COMPARED_MAX: usize = 16;
