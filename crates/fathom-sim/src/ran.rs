//! What a simulation leaves behind.

use std::fmt;

use fathom_core::Tick;
use fathom_workload::Results;

use crate::engine::ModelEngine;
use crate::files::ModelFile;

/// What a simulation leaves behind.
#[derive(Debug)]
pub struct Ran<S> {
    /// Of each worker, in the order they were added.
    pub jobs: Vec<(Results, ModelEngine)>,
    /// The files, with what was written to them.
    pub files: Vec<ModelFile>,
    /// The storages.
    pub storages: Vec<S>,
}

/// A worker waits for something that will never happen, or turns for ever at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The worker, in the order they were added, from 0.
    pub job: usize,
    /// When.
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
