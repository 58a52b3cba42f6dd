//! Plans for tests, of jobs with the built-in engines.

use fathom_engine::Registry;
use fathom_job::Plan;

use crate::fixture;

/// Parses a command line; see [`fixture::plan`].
#[track_caller]
pub(crate) fn plan(words: &str) -> Plan {
    fixture::plan(words, Registry::built_in().infos())
}
