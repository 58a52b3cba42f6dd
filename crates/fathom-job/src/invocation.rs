//! The outcome of parsing a command line.

use crate::clients::Clients;
use crate::diagnostics::Diagnostics;
use crate::plan::{Plan, Settings};

/// The name under which the program was called, and so the rules that apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `fio`: behaves as users and tools of fio expect.
    Fio,
    /// `fathom run`.
    Fathom,
}

impl Dialect {
    /// Returns the prefix of messages.
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
pub struct RefusedInvocation {
    /// All findings, at least one of them an error.
    pub diagnostics: Diagnostics,
    /// The jobs without errors of their own or inherited ones, so that the caller can report in the
    /// same go what a run would refuse in them.
    pub sound: Plan,
    /// The settings, as far as they were understood.
    pub settings: Settings,
}

/// The action that a command line requests.
#[derive(Clone, Debug)]
pub enum Invocation {
    /// Run these jobs; with `settings.parse_only`, stop here.
    Run {
        /// The jobs.
        plan: Plan,
        /// Settings of the run and its reports.
        settings: Box<Settings>,
        /// Notes and warnings.
        notes: Diagnostics,
    },
    /// Run on other hosts; the job files have not been read.
    Clients(Box<Clients>),
    /// Print this and exit: help, version, or a command line.
    Print(String),
    /// Help was requested for an unknown option.
    NoSuchOption {
        /// The message.
        complaint: String,
        /// Help on the closest known option, to print; may be empty.
        closest: String,
    },
    /// Help was requested for an engine without options: print this and exit.
    NoEngineOptions(String),
    /// Run this self-test and exit.
    SelfTest(SelfTest),
    /// Print this compressed log and exit.
    InflateLog(String),
}

/// Self-tests that need no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelfTest {
    /// `--cpuclock-test`: suitability of the CPU's timestamp counter as a clock.
    CpuClock,
    /// `--crctest`: speed of these checksums; empty for all.
    Checksums(Vec<String>),
    /// `--memcpytest`: speed of these ways to copy memory; empty for all.
    Copies(Vec<String>),
    /// `--idle-prof=calibrate`: duration of the unit of work.
    UnitOfWork,
}
