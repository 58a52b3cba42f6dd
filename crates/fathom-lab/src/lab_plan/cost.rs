//! Time that a run takes and bytes that it writes, as far as its job file says.

use std::collections::BTreeMap;

use fathom_core::{Direction, Nanos};
use fathom_job::{BlockSize, Job, Plan, ReadWrite, Size, file_names};

/// Time and bytes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunCost {
    /// Time of jobs with a runtime; at most, if they also have a size.
    pub(crate) time: Nanos,
    /// Some job has no runtime: it ends with its size.
    pub(crate) open_end: bool,
    /// Bytes written to each device or file, of which jobs share a line.
    pub(crate) writes: BTreeMap<String, Written>,
}

/// Upper bound of what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Bytes.
    AtMost(u64),
    /// As much as the device takes in the time.
    AnyAmount,
}

impl RunCost {
    /// Returns the cost of a run of these jobs.
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut cost = Self::default();
        // Jobs run at once, unless one waits for those before.
        let mut longest = 0;
        for job in &plan.jobs {
            if job.options.stonewall {
                cost.time = Nanos::new(cost.time.get().saturating_add(longest));
                longest = 0;
            }
            match duration(job) {
                Some(ns) => longest = longest.max(ns),
                None => cost.open_end = true,
            }
            cost.add_writes(job);
        }
        cost.time = Nanos::new(cost.time.get().saturating_add(longest));
        cost
    }

    fn add_writes(&mut self, job: &Job) {
        let (written, names) = if job.options.replay.replays() {
            (Written::AnyAmount, replayed_names(job))
        } else if writes(job) && job.options.moves_data() {
            let names = file_names(job, 0);
            let own = names.is_empty().then(|| job.name.clone());
            (written(job), names.into_iter().chain(own).collect())
        } else {
            return;
        };
        // All of a job's bytes may go to one of its files.
        for name in names {
            let known = self.writes.entry(name).or_insert(Written::AtMost(0));
            *known = known.plus(written);
        }
    }
}

impl Written {
    /// Returns the bound of both.
    pub(crate) const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(a), Self::AtMost(b)) => Self::AtMost(a.saturating_add(b)),
            _ => Self::AnyAmount,
        }
    }

    /// Returns the bound of `runs` runs.
    pub(crate) const fn times(self, runs: u64) -> Self {
        match self {
            Self::AtMost(bytes) => Self::AtMost(bytes.saturating_mul(runs)),
            Self::AnyAmount => Self::AnyAmount,
        }
    }
}

/// Returns whether the pattern of a job writes or trims. A replay has none.
pub(crate) fn writes(job: &Job) -> bool {
    job.options.rw != ReadWrite::Read
}

/// Returns whether a job changes the files of its pattern: by its ops, or as its engine does
/// whatever they are.
pub(crate) fn changes_files(job: &Job) -> bool {
    let options = &job.options;
    options.engine.always_writes || writes(job) && options.moves_data()
}

/// Returns whether a job replays logs, and changes files if these write or trim.
pub(crate) fn may_replay_changes(job: &Job) -> bool {
    let options = &job.options;
    let skipped = options.replay.skip;
    options.replay.replays() && options.moves_data() && !(skipped.write && skipped.trim)
}

/// Returns what the replays of a job may write, in words where the log has the names.
fn replayed_names(job: &Job) -> Vec<String> {
    let replay = &job.options.replay;
    match &replay.redirect {
        _ if !may_replay_changes(job) => Vec::new(),
        Some(file) => vec![file.clone()],
        None => replay
            .logs
            .iter()
            .map(|log| format!("files that {log} writes"))
            .collect(),
    }
}

/// Returns the time of a job in nanoseconds; `None` if only its size ends it.
fn duration(job: &Job) -> Option<u64> {
    let options = &job.options;
    let runtime = options.runtime?.get();
    let before = options
        .ramp_time
        .get()
        .saturating_add(options.startdelay.1.get());
    Some(runtime.saturating_add(before))
}

/// Returns the bound of what all clones of a job write.
fn written(job: &Job) -> Written {
    let options = &job.options;
    let clones = u64::from(options.numjobs);
    if let Some(bound) = by_rate(job) {
        return bound.times(clones);
    }
    let size = options.io_size.or(options.size);
    match size {
        Some(Size::Bytes(bytes)) if !options.time_based => Written::AtMost(bytes)
            .times(clones)
            .times(options.loops.max(1).into()),
        _ => Written::AnyAmount,
    }
}

/// Returns what a rate allows in the time of one clone.
fn by_rate(job: &Job) -> Option<Written> {
    let options = &job.options;
    let seconds = duration(job)?.div_ceil(1_000_000_000);
    let bytes_per_second = options.rate[Direction::Write].or_else(|| {
        let sizes = match &options.block_sizes[Direction::Write] {
            BlockSize::Fixed(bytes) => *bytes,
            BlockSize::Range { max, .. } => *max,
            BlockSize::Split(shares) => shares.iter().map(|(bytes, _)| *bytes).max()?,
        };
        options.rate_iops[Direction::Write]?.checked_mul(sizes)
    })?;
    // A second more: a rate is kept on average.
    Some(Written::AtMost(
        bytes_per_second.saturating_mul(seconds + 1),
    ))
}
