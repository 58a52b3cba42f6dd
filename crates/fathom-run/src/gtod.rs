//! `gtod_cpu`: a thread that reads the clock for all jobs, alone on its processor.

use fathom_core::Nanos;
use fathom_job::{Job, Options, Plan};
use fathom_record::Warning;
use fathom_setup::{Problem, RunError};
use fathom_sys::clock::{Clock, TimeServer};
use fathom_sys::thread;

/// The thread of a run that asks for one.
#[derive(Debug, Default)]
pub(crate) struct Gtod {
    server: Option<TimeServer>,
    /// What it reads.
    source: &'static str,
}

impl Gtod {
    /// Starts the thread if a job asks for it, and gives the clock that the run is to use. There is
    /// one clock for all jobs, so the first one's word counts.
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
            let what = format!("cannot start the thread that reads the clock: {error}");
            Problem::new("gtod_cpu", what).at(job, "gtod_cpu")
        })?;
        let (server, served) = started;
        let own = Self {
            server: Some(server),
            source: clock.source(),
        };
        Ok((own, served))
    }

    /// What the times of the run are worth; nothing if every job read the clock itself.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let server = self.server.as_ref()?;
        Some(warning(
            server.cpu(),
            self.source,
            server.longest_standstill(),
        ))
    }
}

fn check(job: &Job, cpu: u32, allowed: &[u32]) -> Result<(), Problem> {
    let refuse = |what: String, hint: &str| {
        let problem = Problem::new("gtod_cpu", what).hint(hint);
        Err(problem.at(job, "gtod_cpu"))
    };
    if !allowed.contains(&cpu) {
        let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
        let what = format!("gtod_cpu: CPU {cpu} is outside this process's affinity mask");
        return refuse(what, &format!("choose among {}", list.join(", ")));
    }
    if allowed.len() == 1 {
        let what = format!("gtod_cpu: CPU {cpu} is the only one, and jobs need another");
        return refuse(what, "leave gtod_cpu out");
    }
    Ok(())
}

/// The processors that a job is left with.
pub(crate) fn without(options: &Options, cpus: Vec<u32>) -> Vec<u32> {
    let Some(taken) = options.gtod_cpu else {
        return cpus;
    };
    let all = if cpus.is_empty() {
        thread::allowed_cpus().unwrap_or_default()
    } else {
        cpus
    };
    all.into_iter().filter(|&cpu| cpu != taken).collect()
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

/// A guess at what still disturbs no percentile that anybody looks at: an interrupt.
const TOLERABLE: Nanos = Nanos::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    #[test]
    fn a_processor_must_be_there_and_not_the_last() {
        let plan = plan("--name=t --ioengine=null --size=1m --gtod_cpu=1");
        let job = &plan.jobs[0];
        assert!(check(job, 1, &[0, 1]).is_ok());
        let text = |cpu, allowed: &[u32]| check(job, cpu, allowed).unwrap_err().to_string();
        assert!(text(7, &[0, 1]).contains("CPU 7 is outside this process's affinity mask"));
        assert!(text(1, &[1]).contains("the only one"));
    }

    #[test]
    fn jobs_leave_its_processor_alone() {
        let plan = plan("--name=t --ioengine=null --size=1m --gtod_cpu=1");
        let options = &plan.jobs[0].options;
        assert_eq!(without(options, vec![0, 1, 2]), [0, 2]);
        assert!(!without(options, Vec::new()).contains(&1));
        assert_eq!(without(&Options::default(), vec![0, 1]), [0, 1]);
    }

    #[test]
    fn a_long_standstill_comes_with_a_hint() {
        let short = warning(1, "tsc", Nanos::from_micros(3));
        assert!(short.message.contains("3 us") && short.hint.is_empty());
        let long = warning(1, "tsc", Nanos::from_millis(4));
        assert!(long.message.contains("4000 us") && !long.hint.is_empty());
    }
}
