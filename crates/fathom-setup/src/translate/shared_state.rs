//! State that a job shares with others while it runs (`flow`, `steadystate`), and limits that end
//! it early.

use std::collections::HashMap;
use std::sync::Arc;

use fathom_core::{Nanos, PerDirection};
use fathom_job::{Job, Options, SteadyFigure};
use fathom_stats::SteadyCriterion;
use fathom_workload::{
    Figure, Flow, FlowShare, LatencyTarget, LimitConfig, SteadyGroup, SteadyRule,
};

use super::notes::Warnings;
use crate::error::RunProblem;
use crate::groups::JobPlace;
use crate::plan_warning::PlanWarningKind;
use crate::problem_kind::ProblemKind;

/// State shared by jobs, created when the first of them is translated.
#[derive(Debug, Default)]
pub(super) struct SharedState {
    flows: HashMap<u32, Arc<Flow>>,
    /// Steady-state detectors of groups with `group_reporting`.
    steady: HashMap<u32, Arc<SteadyGroup>>,
}

impl SharedState {
    /// Returns the limits of one clone; `ops` is the maximum number of ops it may issue.
    pub(super) fn limits(
        &mut self,
        job: &Job,
        place: JobPlace,
        ops: Option<u64>,
    ) -> Result<LimitConfig, RunProblem> {
        let rules = &job.options.lifecycle;
        // A dry run issues no ops, so there is no turn to wait for and nothing to reach.
        let measures = job.options.verification.dry_run.is_none();
        let flow = (rules.flow > 0 && measures).then(|| FlowShare {
            flow: Arc::clone(self.flows.entry(rules.flow_id).or_default()),
            weight: rules.flow,
            sleep: rules.flow_sleep,
        });
        Ok(LimitConfig {
            ops,
            ramp_bytes: job.options.ramp_size,
            // As in fio, which compares the times that it records.
            slowest: match job.options.disable_lat || job.options.gtod_reduce {
                true => PerDirection::default(),
                false => rules.max_latency,
            },
            target: target(job)?.filter(|_| measures),
            flow,
            steady: self.steady(job, place)?.filter(|_| measures),
        })
    }

    fn steady(
        &mut self,
        job: &Job,
        place: JobPlace,
    ) -> Result<Option<Arc<SteadyGroup>>, RunProblem> {
        let Some(rule) = steady_rule(job)? else {
            return Ok(None);
        };
        let new = || Arc::new(SteadyGroup::new(rule));
        if !job.options.group_reporting {
            return Ok(Some(new()));
        }
        let group = self.steady.entry(place.group).or_insert_with(new);
        if *group.rule() != rule {
            let message = "jobs of one reporting group have different `steadystate` options";
            let problem = RunProblem::new(ProblemKind::SteadyRulesDiffer, message);
            let hint = "set the same `steadystate` options for all, or start a `new_group`";
            return Err(problem.hint(hint).at(job, "steadystate"));
        }
        Ok(Some(Arc::clone(group)))
    }
}

/// Warns about a steady-state window that is longer than the run.
pub(super) fn note_windows(options: &Options, warnings: &mut Warnings<'_>) {
    let rules = &options.lifecycle;
    let watched = rules.steady.is_some() && !rules.steady_duration.is_zero();
    let Some(runtime) = options.runtime.filter(|_| watched) else {
        return;
    };
    let needed = rules.steady_ramp + rules.steady_duration;
    if needed > runtime {
        warnings.add(
            PlanWarningKind::SteadyWindowBeyondRun,
            format!(
                "steady state cannot be attained: it needs {} s of samples, but the job runs for \
                 {} s",
                needed.get() / 1_000_000_000,
                runtime.get() / 1_000_000_000
            ),
            "increase `runtime`, or reduce `steadystate_duration`",
        );
    }
}

fn target(job: &Job) -> Result<Option<LatencyTarget>, RunProblem> {
    let rules = &job.options.lifecycle;
    if rules.latency_target.is_zero() {
        return Ok(None);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 100 percent, in millionths"
    )]
    let share = (rules.latency_percentile * 1e6) as u64;
    Ok(Some(LatencyTarget {
        latency: rules.latency_target,
        window: rules.latency_window,
        share,
        run: rules.latency_run,
    }))
}

fn steady_rule(job: &Job) -> Result<Option<SteadyRule>, RunProblem> {
    let rules = &job.options.lifecycle;
    let Some(steady) = rules.steady.filter(|_| !rules.steady_duration.is_zero()) else {
        return Ok(None);
    };
    let refuse = |option, kind, message: &str, hint: &str| {
        let problem = RunProblem::new(kind, message).hint(hint);
        Err(problem.at(job, option))
    };
    let (window, interval) = (rules.steady_duration, rules.steady_interval);
    if interval < Nanos::from_secs(1) {
        let message = "`steadystate_check_interval` is below 1 s";
        return refuse(
            "steadystate_check_interval",
            ProblemKind::SteadyIntervalTooShort,
            message,
            "use `ss_interval=1s` or more",
        );
    }
    if !window.get().is_multiple_of(interval.get()) {
        let message = "`steadystate_duration` is not a multiple of `steadystate_check_interval`";
        return refuse(
            "steadystate_check_interval",
            ProblemKind::SteadyWindowUneven,
            message,
            "choose a duration that is a multiple of the interval",
        );
    }
    let intervals = usize::try_from(window.get() / interval.get()).unwrap_or(usize::MAX);
    if intervals > STEADY_INTERVALS_MAX {
        return refuse(
            "steadystate_duration",
            ProblemKind::SteadyWindowTooLong,
            &format!(
                "a window of {intervals} intervals, more than the {STEADY_INTERVALS_MAX} that \
                 reports can have"
            ),
            "reduce `steadystate_duration`, or increase `steadystate_check_interval`",
        );
    }
    Ok(Some(SteadyRule {
        figure: match steady.figure {
            SteadyFigure::Iops => Figure::Iops,
            SteadyFigure::Bandwidth => Figure::Bandwidth,
            SteadyFigure::Latency => Figure::Latency,
        },
        criterion: match steady.slope {
            true => SteadyCriterion::Slope,
            false => SteadyCriterion::Deviation,
        },
        limit: steady.limit,
        percent: steady.percent,
        intervals,
        interval,
        ramp: rules.steady_ramp,
    }))
}

/// Most intervals of a steady-state window: 11 days at a second each. Reports have three numbers of
/// each.
const STEADY_INTERVALS_MAX: usize = 1_000_000;
