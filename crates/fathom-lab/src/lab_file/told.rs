//! Problems that several runs of a lab have in common.

use std::collections::BTreeSet;

use fathom_toml::{Source, TomlProblem};

/// Problems of runs, each noted once.
pub(super) struct Told<'a> {
    source: &'a Source<'a>,
    /// File, line, column and message.
    known: BTreeSet<(String, u32, u32, String)>,
}

impl<'a> Told<'a> {
    pub(super) const fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            known: BTreeSet::new(),
        }
    }

    /// Notes a problem, with these words before its message, unless it was noted before.
    pub(super) fn note(&mut self, mut problem: TomlProblem, of_run: &str) {
        let origin = &problem.origin;
        let place = (origin.file.clone(), origin.line, origin.column);
        let key = (place.0, place.1, place.2, problem.message.clone());
        if self.known.insert(key) {
            problem.message.insert_str(0, of_run);
            self.source.push(problem);
        }
    }

    /// Returns the number of problems.
    pub(super) fn count(&self) -> usize {
        self.known.len()
    }

    /// Returns whether there are so many that no further run is tried: combinations of values may
    /// go wrong in as many ways as there are.
    pub(super) fn is_full(&self) -> bool {
        self.count() >= PROBLEMS_MAX
    }
}

/// Problems after which no further run is tried.
const PROBLEMS_MAX: usize = 20;
