//! `gtod_cpu`: a thread that reads the clock for all jobs, on a CPU of its own.

use fathom_core::Nanos;
use fathom_job::{Job, Options, Plan};
use fathom_record::Warning;
use fathom_setup::{ProblemKind, RunError, RunProblem};
use fathom_sys::clock::{Clock, TimeServer};
use fathom_sys::thread;

/// Clock thread of a run, if a job requests one; stops when dropped.
#[derive(Debug, Default)]
pub(crate) struct Gtod {
    server: Option<TimeServer>,
    /// Clock source that the thread reads.
    source: &'static str,
}

impl Gtod {
    /// Starts the thread if a job requests it and returns the clock for the run. All jobs share one
    /// clock, so the first job that sets `gtod_cpu` decides.
    ///
    /// # Errors
    /// The CPU is outside the affinity mask, or would leave none to the jobs.
    pub(crate) fn start(plan: &Plan, clock: Clock) -> Result<(Self, Clock), RunError> {
        let asked = plan
            .jobs
            .iter()
            .find_map(|job| Some((job, job.options.gtod_cpu?)));
        let Some((job, cpu)) = asked else {
            return Ok((Self::default(), clock));
        };
        let allowed = thread::allowed_cpus().unwrap_or_default();
        check(job, cpu, &allowed)?;
        let started = TimeServer::start(clock, cpu).map_err(|error| {
            let what = format!("cannot start the clock thread: {error}");
            RunProblem::new(ProblemKind::GtodCpu, what).at(job, "gtod_cpu")
        })?;
        let (server, served) = started;
        let own = Self {
            server: Some(server),
            source: clock.source(),
        };
        Ok((own, served))
    }

    /// Returns a warning about the accuracy of the run's times; `None` if every job read the clock
    /// itself.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let server = self.server.as_ref()?;
        Some(warning(
            server.cpu(),
            self.source,
            server.longest_standstill(),
        ))
    }
}

fn check(job: &Job, cpu: u32, allowed: &[u32]) -> Result<(), RunProblem> {
    let refuse = |what: String, hint: &str| {
        let problem = RunProblem::new(ProblemKind::GtodCpu, what).hint(hint);
        Err(problem.at(job, "gtod_cpu"))
    };
    if !allowed.contains(&cpu) {
        let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
        let what = format!("gtod_cpu: CPU {cpu} is outside this process's affinity mask");
        return refuse(what, &format!("choose among {}", list.join(", ")));
    }
    if allowed.len() == 1 {
        let what = format!("gtod_cpu: CPU {cpu} is the only one available; jobs need another");
        return refuse(what, "remove gtod_cpu");
    }
    Ok(())
}

/// Removes the CPU of the clock thread from a job's CPUs.
pub(crate) fn without(options: &Options, cpus: Option<Vec<u32>>) -> Option<Vec<u32>> {
    let Some(taken) = options.gtod_cpu else {
        return cpus;
    };
    let mut cpus = cpus.or_else(|| thread::allowed_cpus().ok())?;
    cpus.retain(|&cpu| cpu != taken);
    Some(cpus)
}

fn warning(cpu: u32, source: &str, standstill: Nanos) -> Warning {
    let us = standstill.get().div_ceil(1000);
    Warning {
        code: "gtod_cpu".into(),
        job: String::new(),
        message: format!(
            "times are read by a thread on CPU {cpu} ({source}): usually some tens of nanoseconds \
             old, at worst {us} us, when that thread was not scheduled"
        ),
        hint: if standstill > TOLERABLE {
            "keep other tasks off that CPU, or remove gtod_cpu".into()
        } else {
            String::new()
        },
    }
}

/// Staleness that needs no hint. A guess: about one interrupt, too rare to move a percentile.
const TOLERABLE: Nanos = Nanos::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    #[test]
    fn cpu_must_be_allowed_and_not_the_only_one() {
        let plan = plan("--name=t --ioengine=null --size=1m --gtod_cpu=1");
        let job = &plan.jobs[0];
        assert!(check(job, 1, &[0, 1]).is_ok());
        let text = |cpu, allowed: &[u32]| check(job, cpu, allowed).unwrap_err().to_string();
        assert!(text(7, &[0, 1]).contains("CPU 7 is outside this process's affinity mask"));
        assert!(text(1, &[1]).contains("the only one"));
    }

    #[test]
    fn jobs_avoid_the_clock_cpu() {
        let plan = plan("--name=t --ioengine=null --size=1m --gtod_cpu=1");
        let options = &plan.jobs[0].options;
        assert_eq!(without(options, Some(vec![0, 1, 2])), Some(vec![0, 2]));
        assert!(without(options, None).is_some_and(|cpus| !cpus.contains(&1)));
        assert_eq!(without(&Options::default(), None), None);
    }

    #[test]
    fn long_standstill_has_a_hint() {
        let short = warning(1, "tsc", Nanos::from_micros(3));
        assert!(short.message.contains("3 us") && short.hint.is_empty());
        let long = warning(1, "tsc", Nanos::from_millis(4));
        assert!(long.message.contains("4000 us") && !long.hint.is_empty());
    }
}
