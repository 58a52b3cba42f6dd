//! Preflight of the remaining jobs of a plan, some of whose jobs the parser has rejected.

use fathom_host::target_kind::HostFileSystem;
use fathom_job::{Diagnostics, Plan, Settings, Size};

use crate::check;
use crate::error::RunError;
use crate::translate::{Translation, entropy, translate};

/// Returns the problems that a run would report for `sound`, the valid jobs of a partly rejected
/// plan, so that the user sees all problems at once. Nothing is started, created or written.
///
/// Jobs without a size of their own are skipped: a rejected job might have laid out their files.
#[must_use]
pub fn refusals(sound: &Plan, settings: &Settings) -> Diagnostics {
    let mut plan = sound.clone();
    plan.jobs
        .retain(|job| matches!(job.options.size, Some(Size::Bytes(_))));
    let Translation {
        setups,
        mut problems,
        ..
    } = translate(&plan, &HostFileSystem, &mut entropy);
    problems.extend(check::scheduler::check(&plan, &setups).0);
    problems.extend(check::check(&plan, settings, &setups));
    RunError { problems }.diagnostics()
}
