//! Result of a simulation.

use std::fmt;

use fathom_core::Tick;
use fathom_workload::Results;

use crate::engine::ModelEngine;
use crate::files::ModelFile;

/// Result of a simulation.
#[derive(Debug)]
pub struct Ran<S> {
    /// Results and engine of each worker, in order of addition.
    pub jobs: Vec<(Results, ModelEngine)>,
    /// Files with their contents.
    pub files: Vec<ModelFile>,
    /// Storages in their final state.
    pub storages: Vec<S>,
}

/// Deadlock: a worker waits for an event that cannot happen, or never lets time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Number of the worker, in order of addition, from 0.
    pub job: usize,
    /// Time of the deadlock.
    pub at: Tick,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "job {} is stuck at {} ns of virtual time",
            self.job,
            self.at.get()
        )
    }
}

impl std::error::Error for Stuck {}
