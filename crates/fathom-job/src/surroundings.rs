//! What parsing needs from outside, and what it gives back.

use std::io;

use crate::diagnostics::Diagnostics;
use crate::plan::{Plan, Settings};

/// What the parser may ask of the world.
pub trait Surroundings {
    /// The content of a file; of one longer than [`crate::JOB_FILE_BYTES_MAX`], more than that.
    ///
    /// # Errors
    /// As reading a file fails.
    fn read_file(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns whether two names lead to one file; only the names are looked at where there are no
    /// files.
    fn is_same_file(&self, a: &str, b: &str) -> bool {
        a.trim_start_matches("./") == b.trim_start_matches("./")
    }

    /// All of standard input; of what is longer than a job file, more than that.
    ///
    /// # Errors
    /// As reading fails.
    fn read_stdin(&self) -> io::Result<Vec<u8>>;

    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<String>;

    /// The number of processors.
    fn cpus(&self) -> u32;

    /// The size of a page in bytes.
    fn page_size(&self) -> u64;

    /// The machine's memory in MiB.
    fn memory_mib(&self) -> u64;
}

/// Under which name the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `fio`: everything is as fio's users expect it.
    Fio,
    /// `fathom run`.
    Fathom,
}

impl Dialect {
    /// The name that messages begin with.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Fathom => "fathom",
        }
    }
}

/// A command line that is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Everything that is wrong; at least one error.
    pub diagnostics: Diagnostics,
    /// The jobs in which nothing is, nor in what they inherit: what a run would refuse in them
    /// can be told at once.
    pub sound: Plan,
    /// Settings, as far as they were understood.
    pub settings: Settings,
}

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum Invocation {
    /// Run these jobs; with `settings.parse_only` there is nothing more to do.
    Run {
        /// What to run.
        plan: Plan,
        /// How to run it and how to report.
        settings: Box<Settings>,
        /// Notes and warnings.
        notes: Diagnostics,
    },
    /// Print this and stop: help, version, or a command line.
    Print(String),
    /// There is no option of the name that help was asked for.
    NoSuchOption {
        /// What to say.
        complaint: String,
        /// Help on what was perhaps meant, to print; may be empty.
        closest: String,
    },
    /// The engine that help was asked for has no options of its own: print this and stop.
    NoEngineOptions(String),
    /// Try this out and stop.
    SelfTest(SelfTest),
    /// Print this compressed log and stop.
    InflateLog(String),
}

/// What can be tried out without a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelfTest {
    /// `--cpuclock-test`: whether the processor's counter can serve as a clock.
    CpuClock,
    /// `--crctest`: how fast the checksums are; these, or all.
    Checksums(Vec<String>),
    /// `--memcpytest`: how fast memory is copied; in these ways, or all.
    Copies(Vec<String>),
    /// `--idle-prof=calibrate`: how long the unit of work takes.
    UnitOfWork,
}
