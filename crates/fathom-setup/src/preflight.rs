//! Preflight: everything that can be found out about a plan before its first file is created.

use fathom_host::control_groups::MemoryLimit;
use fathom_host::storage::is_shared_by_hosts;
use fathom_host::target_kind::{FileSystemProbe, HostFileSystem};
use fathom_job::{Diagnostics, Plan, Settings, Size};
use fathom_record::Warning;

use crate::check::{self, TakenFiles};
use crate::error::{RunError, RunProblem};
use crate::plan_warning::PlanWarning;
use crate::problem_kind::ProblemKind;
use crate::translate::{EarlyEnd, JobSetup, Translation, entropy, translate};

/// Host that a plan is checked against.
#[derive(Clone, Copy)]
pub enum Host<'a> {
    /// This machine, with its files, devices, limits and permissions. Its files come from the
    /// probe, which may know those of engines with remote storage, too.
    Local(&'a dyn FileSystemProbe),
    /// A modelled one: sizes of files come from the probe, and nothing of this machine counts.
    Modelled(&'a dyn FileSystemProbe),
}

/// Result of a preflight.
#[derive(Debug)]
pub struct Preflight {
    /// Every clone that can be set up, in the order of thread numbers.
    pub setups: Vec<JobSetup>,
    /// Warnings that a run begins with.
    pub warnings: Vec<PlanWarning>,
    /// Every reason why the plan cannot run, in the order of the checks.
    pub problems: Vec<RunProblem>,
}

impl Preflight {
    /// Takes the warnings out, as a record has them.
    pub fn take_warnings(&mut self) -> Vec<Warning> {
        let warnings = std::mem::take(&mut self.warnings);
        warnings.into_iter().map(Into::into).collect()
    }

    /// Returns itself, or every problem if there is one.
    ///
    /// # Errors
    /// The problems.
    pub fn checked(self) -> Result<Self, RunError> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        Err(RunError {
            problems: self.problems,
        })
    }
}

/// Sets up the jobs of a plan and checks all of them; nothing is started, created or written.
#[must_use]
pub fn preflight(plan: &Plan, settings: &Settings, host: Host<'_>) -> Preflight {
    let translation = match host {
        Host::Local(probe) => translate(plan, probe, &mut entropy),
        Host::Modelled(probe) => translate(plan, probe, &mut || 0),
    };
    let Translation {
        setups,
        mut warnings,
        mut problems,
    } = translation;
    if matches!(host, Host::Modelled(_)) {
        // Files that a job lacks for another reason are a problem already.
        let no_files = setups
            .iter()
            .filter(|setup| setup.early_end == Some(EarlyEnd::NoFiles));
        let message = "the job has no files";
        let problem = RunProblem::new(ProblemKind::NoFiles, message).hint("write `nrfiles=1`");
        problems.extend(no_files.map(|setup| problem.clone().at(&setup.job, "nrfiles")));
    }
    let memory = match host {
        Host::Local(_) => Some(MemoryLimit::detect().bytes).filter(|bytes| *bytes > 0),
        Host::Modelled(_) => None,
    };
    problems.extend(check::verify_maps(&setups, memory));
    warnings.extend(check::verified_by_many(&setups));
    problems.extend(check::recordings(settings, &setups));
    problems.extend(check::taken::outputs(settings, &setups, || match host {
        Host::Local(_) => TakenFiles::data(&setups),
        Host::Modelled(_) => TakenFiles::default(),
    }));
    if matches!(host, Host::Local(_)) {
        let (refused, told) = check::scheduler::check(&setups);
        problems.extend(refused);
        problems.extend(check::check(plan, settings, &setups));
        problems.extend(check::logs_as_data(&setups));
        warnings.extend(told);
        warnings.extend(check::pollers::crowded(&setups));
        warnings.extend(check::by_two_names(&setups));
        warnings.extend(check::shared_range::by_ranks(
            plan,
            &setups,
            &is_shared_by_hosts,
        ));
    }
    Preflight {
        setups,
        warnings,
        problems,
    }
}

/// Checks the jobs of a plan that the parser accepted while it refused others, so that the user
/// reads of all errors at once.
///
/// Jobs without a size of their own are left out: a refused job may be the one that creates their
/// files.
#[must_use]
pub fn preflight_accepted(accepted: &Plan, settings: &Settings) -> Diagnostics {
    let mut plan = accepted.clone();
    plan.jobs
        .retain(|job| matches!(job.options.size, Some(Size::Bytes(_))));
    let Preflight { problems, .. } = preflight(&plan, settings, Host::Local(&HostFileSystem));
    RunError { problems }.diagnostics()
}
