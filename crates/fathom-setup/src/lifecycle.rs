//! Start order and exit rules of jobs (`stonewall`, `wait_for`, `exitall`), shared by both drivers.
//!
//! The driver starts the jobs that [`Lifecycle::ready`] returns, together, and reports the end of
//! each job to [`Lifecycle::ended`], which returns the jobs to stop.

use fathom_core::OptionEffect;
use fathom_job::{ExitWhat, Plan};

use crate::groups::JobPlace;

/// State machine of a run's jobs: waiting, running, over.
///
/// Purely computational: it reads no clock and starts nothing. [`ready`](Self::ready) and
/// [`ended`](Self::ended) take time proportional to the number of jobs, but `ready` returns at once
/// when no job is waiting.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    jobs: Vec<Rules>,
    /// Number of waiting jobs, so that the end of a job costs O(1) in the common case that none
    /// waits.
    waiting: usize,
    /// Number of jobs of each section that are not over, for the same reason.
    open: Vec<usize>,
    /// Some job has `exitall`, which applies to all jobs.
    exit_all: bool,
}

#[derive(Clone, Debug)]
struct Rules {
    place: JobPlace,
    /// Section whose clones must have ended (`wait_for`).
    waits_for: Option<usize>,
    exit_what: ExitWhat,
    exit_on_error: bool,
    performs_io: bool,
    /// Ends with the last job that performs I/O.
    ends_with_io: bool,
    state: LifecycleState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LifecycleState {
    Waiting,
    Running,
    /// Ended, or will never start.
    Over,
}

impl Lifecycle {
    /// Creates the state of a run in which no job has started.
    pub fn new(plan: &Plan, places: impl Iterator<Item = JobPlace>) -> Self {
        let section_of = |name: &String| plan.jobs.iter().position(|job| &job.name == name);
        let rules = |place: JobPlace| {
            let options = &plan.jobs[place.section].options;
            let rules = &options.lifecycle;
            Rules {
                place,
                waits_for: rules.wait_for.as_ref().and_then(section_of),
                exit_what: rules.exit_what,
                exit_on_error: rules.exitall_on_error,
                performs_io: options.engine.performs_io(),
                ends_with_io: options.has_effect(OptionEffect::EndsWithIo),
                state: match options.create_only {
                    true => LifecycleState::Over,
                    false => LifecycleState::Waiting,
                },
            }
        };
        let mut options = plan.jobs.iter().map(|job| &job.options);
        let jobs: Vec<Rules> = places.map(rules).collect();
        let mut open = vec![0; plan.jobs.len()];
        let mut waiting = 0;
        for job in (jobs.iter()).filter(|job| job.state == LifecycleState::Waiting) {
            open[job.place.section] += 1;
            waiting += 1;
        }
        Self {
            waiting,
            open,
            jobs,
            exit_all: options.any(|options| options.lifecycle.exitall),
        }
    }

    /// Returns the jobs that may start now and marks them as running.
    pub fn ready(&mut self) -> Vec<usize> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let mut open = self
            .jobs
            .iter()
            .filter(|job| job.state != LifecycleState::Over);
        let Some(wave) = open.next().map(|rules| rules.place.wave) else {
            return Vec::new();
        };
        let waits = |rules: &Rules| {
            rules
                .waits_for
                .is_some_and(|section| self.open[section] > 0)
        };
        let may_start = |rules: &Rules| {
            rules.state == LifecycleState::Waiting && rules.place.wave == wave && !waits(rules)
        };
        let ready: Vec<usize> = (0..self.jobs.len())
            .filter(|&job| may_start(&self.jobs[job]))
            .collect();
        for &job in &ready {
            self.jobs[job].state = LifecycleState::Running;
        }
        self.waiting -= ready.len();
        ready
    }

    /// Marks a job as ended and returns the running jobs that must stop with it. Those that have
    /// not started never will.
    pub fn ended(&mut self, job: usize, failed: bool) -> Vec<usize> {
        self.over(job);
        let first = self.jobs[job].clone();
        let mut stop = self.ending_with_io();
        if !self.ends_others(job, failed) {
            return stop;
        }
        for index in 0..self.jobs.len() {
            let other = &self.jobs[index];
            let goes_too = match first.exit_what {
                ExitWhat::Group => other.place.group == first.place.group,
                ExitWhat::Stonewall => other.place.wave == first.place.wave,
                ExitWhat::All => true,
            };
            match other.state {
                LifecycleState::Running if goes_too && !stop.contains(&index) => stop.push(index),
                LifecycleState::Waiting if goes_too => self.over(index),
                _ => {}
            }
        }
        stop
    }

    /// Returns the running jobs that end with the last job that performs I/O, if all of those are
    /// over. A run without such jobs has no last one.
    fn ending_with_io(&self) -> Vec<usize> {
        let mut io = self.jobs.iter().filter(|job| job.performs_io).peekable();
        if io.peek().is_none() || io.any(|job| job.state != LifecycleState::Over) {
            return Vec::new();
        }
        let ends = |job: &Rules| job.ends_with_io && job.state == LifecycleState::Running;
        (0..self.jobs.len())
            .filter(|&index| ends(&self.jobs[index]))
            .collect()
    }

    /// Returns which jobs end with a job, if it ends others (`exitall`, `exitall_on_error`). A
    /// group that is all of its wave is a wave.
    pub fn exits(&self, job: usize, failed: bool) -> Option<ExitWhat> {
        if !self.ends_others(job, failed) {
            return None;
        }
        let first = &self.jobs[job];
        let mut wave = self
            .jobs
            .iter()
            .filter(|other| other.place.wave == first.place.wave);
        let is_wave = wave.all(|other| other.place.group == first.place.group);
        match first.exit_what {
            ExitWhat::Group if is_wave => Some(ExitWhat::Stonewall),
            what => Some(what),
        }
    }

    /// Returns the running jobs of a wave. Those of it that have not started never will.
    pub fn end_wave(&mut self, wave: u32) -> Vec<usize> {
        let of_wave = (0..self.jobs.len()).filter(|&job| self.jobs[job].place.wave == wave);
        let (waiting, others): (Vec<_>, Vec<_>) =
            of_wave.partition(|&job| self.jobs[job].state == LifecycleState::Waiting);
        waiting.into_iter().for_each(|job| self.over(job));
        let runs = |job: &usize| self.jobs[*job].state == LifecycleState::Running;
        others.into_iter().filter(runs).collect()
    }

    /// Returns the wave of a job.
    pub fn wave_of(&self, job: usize) -> u32 {
        self.jobs[job].place.wave
    }

    /// Returns the wave of the first job that is not over; `None` if all are.
    pub fn wave(&self) -> Option<u32> {
        let mut jobs = self.jobs.iter();
        let open = jobs.find(|job| job.state != LifecycleState::Over);
        open.map(|job| job.place.wave)
    }

    /// Prevents waiting jobs from starting.
    pub fn start_no_more(&mut self) {
        for job in 0..self.jobs.len() {
            if self.jobs[job].state == LifecycleState::Waiting {
                self.over(job);
            }
        }
    }

    /// Returns whether others end with a job.
    fn ends_others(&self, job: usize, failed: bool) -> bool {
        self.exit_all || failed && self.jobs[job].exit_on_error
    }

    /// Marks a job as over: ended, or never to start.
    fn over(&mut self, job: usize) {
        let rules = &mut self.jobs[job];
        match std::mem::replace(&mut rules.state, LifecycleState::Over) {
            LifecycleState::Over => return,
            LifecycleState::Waiting => self.waiting -= 1,
            LifecycleState::Running => {}
        }
        self.open[rules.place.section] -= 1;
    }

    /// Returns true if any job is running.
    pub fn any_runs(&self) -> bool {
        let mut states = self.jobs.iter().map(|rules| rules.state);
        states.any(|state| state == LifecycleState::Running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::places;
    use crate::testing::plan;

    fn lifecycle(words: &str) -> Lifecycle {
        let plan = plan(words);
        Lifecycle::new(&plan, places(&plan.jobs).into_iter())
    }

    /// Ends jobs in the order in which they started; `starts` lists the jobs that start together.
    #[track_caller]
    fn check(words: &str, starts: &[&[usize]]) {
        let mut rules = lifecycle(words);
        let mut seen = Vec::new();
        let mut running = std::collections::VecDeque::new();
        loop {
            let ready = rules.ready();
            running.extend(ready.iter().copied());
            if !ready.is_empty() {
                seen.push(ready);
            }
            let Some(first) = running.pop_front() else {
                break;
            };
            assert_eq!(rules.ended(first, false), [0; 0], "{words}");
        }
        assert_eq!(seen, starts, "{words}");
        assert!(!rules.any_runs());
    }

    #[test]
    fn start_order() {
        let with = |words: &str| format!("--ioengine=null --size=1m {words}");
        check(&with("--name=a --name=b"), &[&[0, 1]]);
        check(&with("--name=a --name=b --stonewall"), &[&[0], &[1]]);
        check(&with("--name=a --name=b --new_group"), &[&[0, 1]]);
        check(&with("--name=a --name=b --create_only=1"), &[&[0]]);
        let waits = with("--name=a --create_only=1 --name=b --stonewall --wait_for=a");
        check(&waits, &[&[1]]);
        check(
            &with("--name=a --name=b --wait_for=a --name=c"),
            &[&[0, 2], &[1]],
        );
        let clones = "--name=a --numjobs=2 --name=b --wait_for=a --name=c --wait_for=b";
        check(&with(clones), &[&[0, 1], &[2], &[3]]);
        let walls = "--name=a --name=b --wait_for=a --name=c --stonewall --name=d --wait_for=a";
        check(&with(walls), &[&[0], &[1], &[2, 3]]);
    }

    /// Ends job 0 first, with or without an error: `stop` must stop with it, and `later` jobs start
    /// after that.
    #[track_caller]
    fn check_end(words: &str, failed: bool, stop: &[usize], later: usize) {
        let mut rules = lifecycle(&format!("--ioengine=null --size=1m {words}"));
        let started = rules.ready();
        assert_eq!(rules.ended(0, failed), stop, "{words}");
        for job in started.into_iter().skip(1) {
            let _none_run = rules.ended(job, false);
        }
        assert_eq!(rules.ready().len(), later, "{words}");
    }

    #[test]
    fn jobs_without_io_end_with_the_last_that_has() {
        let burn = "--ioengine=cpuio --cpuload=1 --exit_on_io_done=1";
        let mut rules = lifecycle(&format!(
            "--size=1m --name=a --ioengine=null --name=b {burn} --name=c {burn} \
             --name=d --ioengine=null"
        ));
        assert_eq!(rules.ready(), [0, 1, 2, 3]);
        assert_eq!(rules.ended(0, false), [0; 0]);
        assert_eq!(rules.ended(2, false), [0; 0]);
        assert_eq!(rules.ended(3, true), [1]);
        let mut alone = lifecycle(&format!("--name=b --numjobs=2 {burn}"));
        assert_eq!(alone.ready(), [0, 1]);
        assert_eq!(alone.ended(0, false), [0; 0]);
    }

    #[test]
    fn exits_of_waves_and_all_concern_other_hosts() {
        #[track_caller]
        fn check(words: &str, failed: bool, want: Option<ExitWhat>) {
            let rules = lifecycle(&format!("--ioengine=null --size=1m {words}"));
            assert_eq!(rules.exits(0, failed), want, "{words}");
        }
        let two = "--name=a --name=b --name=c --stonewall";
        check(two, true, None);
        check(
            &format!("--exitall {two}"),
            false,
            Some(ExitWhat::Stonewall),
        );
        check(&format!("--exitall_on_error {two}"), false, None);
        check(
            &format!("--exitall_on_error {two}"),
            true,
            Some(ExitWhat::Stonewall),
        );
        let all = format!("--exitall --exit_what=all {two}");
        check(&all, false, Some(ExitWhat::All));
        let groups = "--exitall --name=a --name=b --new_group";
        check(groups, false, Some(ExitWhat::Group));
    }

    #[test]
    fn a_wave_that_another_host_ends_starts_nothing_more() {
        let three = "--name=a --name=b --wait_for=a --name=c --stonewall";
        let mut rules = lifecycle(&format!("--ioengine=null --size=1m {three}"));
        assert_eq!((rules.ready(), rules.wave()), (vec![0], Some(0)));
        assert_eq!(rules.end_wave(0), [0]);
        assert_eq!(rules.ended(0, false), [0; 0]);
        assert_eq!((rules.wave(), rules.ready()), (Some(1), vec![2]));
        assert_eq!(rules.ended(2, false), [0; 0]);
        assert_eq!(rules.wave(), None);
    }

    #[test]
    fn exit_rules() {
        let three = "--name=a --name=b --name=c --new_group --name=d --stonewall";
        check_end(three, true, &[], 1);
        check_end(&format!("--exitall {three}"), false, &[1], 1);
        check_end(&format!("{three} --exitall"), false, &[1], 1);
        check_end(
            &format!("--exit_what=stonewall --exitall {three}"),
            false,
            &[1, 2],
            1,
        );
        check_end(
            &format!("--exit_what=all --exitall {three}"),
            false,
            &[1, 2],
            0,
        );
        check_end(&format!("--exitall_on_error {three}"), false, &[], 1);
        check_end(&format!("--exitall_on_error {three}"), true, &[1], 1);
        check_end(&format!("{three} --exitall_on_error"), true, &[], 1);
    }
}
