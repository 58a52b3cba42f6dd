//! What a run would refuse in jobs of a plan whose others have been refused already.

use fathom_host::target_kind::HostFileSystem;
use fathom_job::{Diagnostics, Plan, Settings, Size};

use crate::check;
use crate::error::RunError;
use crate::translate::{Translation, entropy, translate};

/// What a run would refuse in `sound`, a plan some of whose jobs have been refused already: so that
/// the user hears of everything at once. Nothing is started, created or written.
///
/// Jobs without a size of their own are passed over: their files may be those that a job which was
/// refused lays out.
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
