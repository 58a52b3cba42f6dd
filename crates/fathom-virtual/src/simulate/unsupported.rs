//! Options and command-line switches that virtual time does not support.

use fathom_core::OptionEffect;
use fathom_job::{Job, Plan, Settings};
use fathom_record::Warning;
use fathom_setup::{ProblemKind, RunError, RunProblem};

/// Refuses what virtual time cannot do in any way.
///
/// # Errors
/// A job loads the verify state of an earlier run, whose data is not there: modelled devices are
/// empty at first. Or it sends commands that modelled devices do not have: trims of several ranges,
/// comparisons, appends to zones.
pub(super) fn refuse(plan: &Plan) -> Result<(), RunError> {
    let problems: Vec<_> = plan.jobs.iter().filter_map(unsupported).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(RunError { problems }),
    }
}

fn unsupported(job: &Job) -> Option<RunProblem> {
    let options = &job.options;
    let (kind, message, hint, option) = if options.verification.loads_state {
        (
            ProblemKind::VerifyState,
            "there is no earlier run in virtual time: modelled devices are empty at first",
            "remove `verify_state_load`",
            "verify_state_load",
        )
    } else if options.trims.ranges > 1 {
        (
            ProblemKind::EngineCannot,
            "modelled devices trim one range per op",
            "write `num_range=1`",
            "num_range",
        )
    } else if options.has_effect(OptionEffect::ComparedReadback) {
        (
            ProblemKind::EngineCannot,
            "modelled devices have no Compare command",
            "write `verify_mode=read`",
            "verify_mode",
        )
    } else if options.appends_to_zones() {
        (
            ProblemKind::EngineCannot,
            "modelled devices have no Zone Append command",
            "write `write_mode=write`",
            "write_mode",
        )
    } else {
        return None;
    };
    Some(RunProblem::new(kind, message).hint(hint).at(job, option))
}

/// Returns a warning for each unsupported option in use.
pub(super) fn warnings(plan: &Plan, settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, job: &str, message: &str, hint: &str| {
        warnings.push(Warning {
            code: code.into(),
            job: job.into(),
            message: message.into(),
            hint: hint.into(),
        });
    };
    for job in &plan.jobs {
        let lifecycle = &job.options.lifecycle;
        if lifecycle.exec_prerun.is_some() || lifecycle.exec_postrun.is_some() {
            let message = "commands are not run in virtual time";
            warn("commands_not_run", &job.name, message, "");
        }
        if !job.options.direct {
            let message = "there is no page cache in virtual time: every op goes to the device";
            let hint = "write `direct=1` to say so";
            warn("no_page_cache", &job.name, message, hint);
        }
        if job.options.verification.saves_state {
            let message = "no verify state is saved in virtual time: the data end with the run";
            warn("no_verify_state", &job.name, message, "");
        }
        if job.options.verification.dumps {
            let message = "`verify_dump` saves no blocks in virtual time";
            warn("no_verify_dump", &job.name, message, "");
        }
        if job.options.replay.merge_to.is_some() {
            let message = "`merge_blktrace_file` is not written in virtual time";
            let hint = "write it with `--merge-blktrace-only`";
            warn("not_merged", &job.name, message, hint);
        }
        if job.options.offload {
            let message = "there are no workers in virtual time: `io_submit_mode=offload` has \
                           ops go to the device when they are submitted, and none is ever queued";
            warn("no_workers", &job.name, message, "");
        }
    }
    if settings.trigger.is_some() {
        let message = "the command of `--trigger` is not run in virtual time";
        warn("commands_not_run", "", message, "");
    }
    if settings.bandwidth_log.is_some() {
        let message = "`--bandwidth-log` is not written in virtual time";
        let hint = "the jobs' own logs are: `write_bw_log`";
        warn("no_bandwidth_log", "", message, hint);
    }
    if settings.idle_profile.is_some() {
        let message = "`--idle-prof` has nothing to measure in virtual time";
        warn("no_idle_profile", "", message, "");
    }
    warnings
}
