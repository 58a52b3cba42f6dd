//! Messages between the conductor and the ranks.
//!
//! Both directions tell states, not changes: a report says how far its rank has come, an order
//! all that its rank has to know now. A message that is lost is healed by the next, within a
//! second, and one that comes twice, or after a later one, changes nothing.

use fathom_core::{Nanos, PerDirection, Tick};

use crate::{FileKey, Text, Wave};

/// Message between two ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the conductor.
    Report(Report),
    /// From the conductor.
    Order(Order),
    /// Question for the time, to be answered at once.
    Ping {
        /// Number that the answer repeats.
        token: u32,
        /// Another ping follows the answer at once, so it pays to listen for it.
        more: bool,
    },
    /// Answer to a ping.
    Pong {
        /// Number of the ping.
        token: u32,
        /// Clock of the rank that answers.
        at: Tick,
    },
    /// From rank 0: result of comparing the receiver's clock with its own.
    Clock(CommonTime),
}

/// Reading of the common clock at a moment of another rank's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonTime {
    /// Clock of the rank.
    pub at: Tick,
    /// Common clock at that moment: wall clock of rank 0, ns since 1970.
    pub common_ns: u64,
    /// Largest error of that reading.
    pub bound: Nanos,
    /// Rate of the rank's clock against the common one, in billionths; `None` until it is known.
    pub drift_ppb: Option<i64>,
}

/// State of a rank, sent when it changes and each second.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// Stage that the rank has reached.
    pub stage: Stage,
    /// Reason for which the rank wants all to stop.
    pub wants_stop: Option<StopReason>,
    /// Last wave that the rank wants all to end, such as for `exitall`.
    pub wants_end: Option<Wave>,
    /// Progress of its jobs.
    pub progress: Progress,
}

/// Stage of a rank; each is reached after those before it, some of which it may skip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It checks the plan.
    Checking,
    /// It has checked the plan, and lays out the files that are its to lay out once all have.
    Checked(Checks),
    /// Its files are laid out.
    LaidOut,
    /// The jobs of this wave wait at the gate.
    Ready(Wave),
    /// The jobs of this wave run, or wait for the agreed time.
    Running(Wave),
    /// The jobs of this wave have ended; the rank prepares its next one, if any.
    Ended(Wave),
    /// All its jobs have ended and its record is written.
    Through {
        /// Exit code of its own run.
        code: u8,
    },
    /// Its run has failed, for this reason.
    Failed(Text),
    /// It has been told to leave, and is leaving.
    Left,
}

/// Result of checking the plan on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Checks {
    refusals: Vec<Text>,
    left_out: u32,
    files: Vec<FileKey>,
}

impl Checks {
    /// Creates the result: the reasons against the plan, none if it is sound, and the files that
    /// the plan lays out. Reasons beyond [`REFUSALS_MAX`] are only counted.
    ///
    /// # Errors
    /// More files than [`FILES_MAX`]: the caller groups them, such as by job, and tries again.
    pub fn new(refusals: &[String], files: Vec<FileKey>) -> Result<Self, TooManyFiles> {
        let kept = refusals.len().min(REFUSALS_MAX);
        let left_out = u32::try_from(refusals.len() - kept).unwrap_or(u32::MAX);
        let refusals = refusals[..kept].iter().map(|reason| Text::new(reason));
        Self::of_parts(refusals.collect(), left_out, files)
    }

    pub(crate) fn of_parts(
        refusals: Vec<Text>,
        left_out: u32,
        files: Vec<FileKey>,
    ) -> Result<Self, TooManyFiles> {
        if files.len() > FILES_MAX {
            return Err(TooManyFiles { count: files.len() });
        }
        Ok(Self {
            refusals,
            left_out,
            files,
        })
    }

    /// Returns the reasons against the plan.
    #[must_use]
    pub fn refusals(&self) -> &[Text] {
        &self.refusals
    }

    /// Returns how many reasons more there are.
    #[must_use]
    pub const fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Returns the files to lay out.
    #[must_use]
    pub fn files(&self) -> &[FileKey] {
        &self.files
    }
}

/// Error of [`Checks::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFiles {
    /// Number of files.
    pub count: usize,
}

impl std::fmt::Display for TooManyFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files in a message: {FILES_MAX} at most", self.count)
    }
}

impl std::error::Error for TooManyFiles {}

/// Order to a rank: all that it has to know now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Nothing but that the conductor is there.
    Heard,
    /// The plan was refused, here or on another host: nothing is made, nothing starts.
    Refused,
    /// The plan is sound on all hosts: the rank lays out its files, except for those that another
    /// rank lays out.
    LayOut {
        /// Indexes, among the files of its checks, of the others' files, rising.
        others: Vec<u16>,
    },
    /// All files are laid out; the rank looks again at those of others.
    FilesReady,
    /// The wave starts.
    Start(Start),
    /// This wave has ended on all ranks, and no other one runs: a rank that has ended it prepares
    /// its next one, whose files are as the wave left them.
    AllEnded(Wave),
    /// The wave ends now: another rank is through with it, or asks for it.
    EndWave(Wave),
    /// Nothing more starts; whether jobs that run end now, the reason says.
    Stop(StopReason),
    /// All records are in: shared files may be removed, and the program ends with this code.
    Leave {
        /// Exit code of the whole run.
        code: u8,
    },
}

/// Agreed start of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Start {
    /// Wave that starts.
    pub wave: Wave,
    /// Time of the start, on the clock of the rank.
    pub at: Tick,
    /// Largest error of that time against the common clock.
    pub bound: Nanos,
    /// Start of the first wave of the run, on the clock of the rank, which may have lacked it.
    pub origin: Tick,
}

/// Reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopReason {
    /// The conductor has fallen silent.
    ConductorLost,
    /// A rank has fallen silent.
    RankLost,
    /// The user asked for it, such as by SIGINT to a rank.
    Requested,
    /// A job with `exitall` has ended.
    ExitAll,
    /// A job has failed, and `exitall_on_error` is set.
    ExitAllOnError,
}

impl StopReason {
    /// Returns whether jobs that run end now, or run to their end.
    #[must_use]
    pub const fn ends_running(self) -> bool {
        !matches!(self, Self::ConductorLost | Self::RankLost)
    }

    /// Returns whether this reason replaces an earlier one: the first counts, but for those that
    /// let jobs run.
    pub(crate) const fn replaces(self, earlier: Option<Self>) -> bool {
        match earlier {
            None => true,
            Some(earlier) => self.ends_running() && !earlier.ends_running(),
        }
    }
}

/// Progress of the jobs of one rank, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Time since its first job started; of all ranks the longest.
    pub elapsed: Nanos,
    /// Jobs that run.
    pub jobs_running: u32,
    /// Jobs that have ended.
    pub jobs_ended: u32,
    /// Ops completed.
    pub ios: PerDirection<u64>,
    /// Bytes moved.
    pub bytes: PerDirection<u64>,
}

impl Progress {
    /// Adds another rank's.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |ours: PerDirection<u64>, theirs: PerDirection<u64>| {
            PerDirection::from_fn(|direction| ours[direction].saturating_add(theirs[direction]))
        };
        self.elapsed = self.elapsed.max(other.elapsed);
        self.jobs_running = self.jobs_running.saturating_add(other.jobs_running);
        self.jobs_ended = self.jobs_ended.saturating_add(other.jobs_ended);
        self.ios = sum(self.ios, other.ios);
        self.bytes = sum(self.bytes, other.bytes);
    }
}

/// Most reasons in a message: with those of [`FILES_MAX`] files and the head, 62.5 KiB of 64.
pub const REFUSALS_MAX: usize = 62;
/// Most files, or groups of files, in a message.
pub const FILES_MAX: usize = 4_096;
