//! Status of a run in numbers: current rates, percentage done, estimated time left. The reports
//! format them.

use fathom_core::{Direction, Nanos, PerDirection};
use fathom_job::{Options, Plan, ReadWrite, Size, Verify};
use fathom_workload::Phase;

use crate::groups::{JobPlace, places};
use crate::{JobSnapshot, JobState, Snapshot};

/// Returns the goals of a plan's jobs, one per clone, in the order of a snapshot's jobs. Bytes are
/// known only if the plan states them as such.
#[must_use]
pub fn goals(plan: &Plan) -> Vec<Goal> {
    let places = places(&plan.jobs).into_iter();
    let goal = |place: JobPlace| {
        let options = &plan.jobs[place.section].options;
        Goal::new(options, place.wave, bytes_asked_for(options))
    };
    places.map(goal).collect()
}

/// Returns the bytes of one pass, including verification reads.
fn bytes_asked_for(options: &Options) -> Option<u64> {
    let Some(Size::Bytes(bytes)) = options.io_size.or(options.size) else {
        return None;
    };
    let writes = options.rw != ReadWrite::Read;
    let reads_back = writes && options.do_verify && options.verify != Verify::None;
    Some(if reads_back {
        bytes.saturating_mul(2)
    } else {
        bytes
    })
}

/// Amount of work of a job, as far as it is known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// Wave of the job; waves run one after another.
    pub wave: u32,
    /// Bytes of all passes, if they end the job.
    pub bytes: Option<u64>,
    /// Maximum measured time.
    pub runtime: Option<Nanos>,
    /// Time before the measurement: `startdelay` and `ramp_time`.
    pub before: Nanos,
    /// fio's letter for the job while it runs.
    pub letter: char,
}

impl Goal {
    /// Creates the goal of a job of `wave` that moves `bytes` in one pass.
    #[must_use]
    pub fn new(options: &Options, wave: u32, bytes: Option<u64>) -> Self {
        let all_passes = bytes.map(|bytes| bytes.saturating_mul(u64::from(options.loops.max(1))));
        Self {
            wave,
            bytes: all_passes.filter(|_| !options.time_based),
            runtime: options.runtime.filter(|runtime| !runtime.is_zero()),
            before: options.startdelay.0 + options.ramp_time,
            letter: letter(options),
        }
    }

    /// Returns the time from the job's start to the end of its runtime.
    fn whole_time(&self) -> Option<Nanos> {
        self.runtime.map(|runtime| self.before + runtime)
    }
}

/// Returns fio's letter for a running job: upper case for sequential. A mix of 0 or 100 % reads has
/// the letter of its only direction.
fn letter(options: &Options) -> char {
    let letter = match (options.rw, options.rwmixread) {
        (ReadWrite::Read, _) | (ReadWrite::Mixed, 100) => 'r',
        (ReadWrite::Write, _) | (ReadWrite::Mixed, 0) => 'w',
        (ReadWrite::Mixed, _) => 'm',
        // Trims are the other way round: lower case is random.
        (ReadWrite::Trim | ReadWrite::TrimWrite, _) => {
            return if options.random { 'd' } else { 'D' };
        }
    };
    if options.random {
        letter
    } else {
        letter.to_ascii_uppercase()
    }
}

/// Status of a run at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStatus {
    /// Time since the first job started.
    pub elapsed: Nanos,
    /// Number of running jobs, including those in their ramp.
    pub running: u32,
    /// fio's letter for each job's state, in the order of the jobs.
    pub states: String,
    /// Percentage done; `None` if unknown, or while all running jobs are in their ramp.
    pub percent: Option<f64>,
    /// Bytes per second since the previous sample.
    pub bytes_per_s: PerDirection<u64>,
    /// Ops per second since the previous sample.
    pub ops_per_s: PerDirection<u64>,
    /// Estimated time left in whole seconds; `None` if unknown.
    pub eta_s: Option<u64>,
}

/// Computes the status of a run from successive snapshots.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    last: SnapshotTotals,
}

#[derive(Clone, Copy, Debug, Default)]
struct SnapshotTotals {
    elapsed: Nanos,
    ios: PerDirection<u64>,
    bytes: PerDirection<u64>,
}

impl Meter {
    /// Returns the status of the run; rates cover the time since the previous call, or since the
    /// start. `goals` are those of the snapshot's jobs, in their order.
    pub fn sample(&mut self, goals: &[Goal], snapshot: &Snapshot) -> RunStatus {
        let now = SnapshotTotals {
            elapsed: snapshot.elapsed,
            ios: sums(snapshot, |job| &job.ios),
            bytes: sums(snapshot, |job| &job.bytes),
        };
        let last = std::mem::replace(&mut self.last, now);
        let span = now.elapsed - last.elapsed;
        let rates = |now: &PerDirection<u64>, last: &PerDirection<u64>| {
            PerDirection::from_fn(|d| per_second(now[d].saturating_sub(last[d]), span))
        };
        let jobs: Vec<(&Goal, &JobSnapshot)> = goals.iter().zip(&snapshot.jobs).collect();
        RunStatus {
            elapsed: now.elapsed,
            running: count(jobs.iter().filter(|(_, job)| runs(job.state)).count()),
            states: jobs
                .iter()
                .map(|(goal, job)| state(goal, job.state))
                .collect(),
            percent: percent(&jobs),
            bytes_per_s: rates(&now.bytes, &last.bytes),
            ops_per_s: rates(&now.ios, &last.ios),
            eta_s: eta(&jobs, &now).map(|left| left.get().div_ceil(1_000_000_000)),
        }
    }
}

fn sums(snapshot: &Snapshot, of: impl Fn(&JobSnapshot) -> &PerDirection<u64>) -> PerDirection<u64> {
    PerDirection::from_fn(|direction| snapshot.jobs.iter().map(|job| of(job)[direction]).sum())
}

fn runs(state: JobState) -> bool {
    matches!(state, JobState::Working(phase) if !matches!(phase, Phase::Delayed | Phase::Finished))
}

fn state(goal: &Goal, state: JobState) -> char {
    match state {
        JobState::NotStarted => 'P',
        JobState::SettingUp => 'I',
        JobState::Ended => '_',
        JobState::Failed => 'X',
        JobState::Working(phase) => match phase {
            Phase::Delayed => 'C',
            Phase::Ramp => '/',
            Phase::Running => goal.letter,
            Phase::Verifying => 'V',
            Phase::Syncing => 'F',
            Phase::Finished => 'f',
        },
    }
}

/// Returns the mean percentage over all jobs; `None` if the end of any job is unknown.
fn percent(jobs: &[(&Goal, &JobSnapshot)]) -> Option<f64> {
    let measures = |state| runs(state) && state != JobState::Working(Phase::Ramp);
    let ended = |state| matches!(state, JobState::Ended | JobState::Failed);
    if !jobs
        .iter()
        .any(|(_, job)| measures(job.state) || ended(job.state))
    {
        return None;
    }
    let parts: Option<Vec<u64>> = jobs.iter().map(|(goal, job)| done(goal, job)).collect();
    let parts = parts?;
    let mean = parts
        .iter()
        .sum::<u64>()
        .checked_div(u64::try_from(parts.len()).ok()?)?;
    u32::try_from(mean)
        .ok()
        .map(|mean| f64::from(mean) / f64::from(PERCENT))
}

/// Returns the completed share of a job in millionths, by bytes or time, whichever ends it first.
fn done(goal: &Goal, job: &JobSnapshot) -> Option<u64> {
    match job.state {
        JobState::Ended | JobState::Failed => return Some(WHOLE),
        JobState::NotStarted | JobState::SettingUp => return Some(0),
        JobState::Working(_) => {}
    }
    let by_time = goal
        .whole_time()
        .map(|whole| part(job.elapsed.get(), whole.get()));
    let by_bytes = goal.bytes.map(|bytes| part(moved(job), bytes));
    by_time.max(by_bytes)
}

/// Estimates the time until the last wave ends.
fn eta(jobs: &[(&Goal, &JobSnapshot)], now: &SnapshotTotals) -> Option<Nanos> {
    let mut waves: Vec<u32> = jobs.iter().map(|(goal, _)| goal.wave).collect();
    waves.dedup();
    let mut sum = Nanos::ZERO;
    for wave in waves {
        let members = jobs.iter().filter(|(goal, _)| goal.wave == wave);
        let lefts: Option<Vec<Nanos>> = members.map(|(goal, job)| left(goal, job, now)).collect();
        sum += lefts?.into_iter().max().unwrap_or(Nanos::ZERO);
    }
    Some(sum)
}

/// Estimates the time left for a job. Without any progress of its own, it is assumed to be as fast
/// as the whole run so far.
fn left(goal: &Goal, job: &JobSnapshot, now: &SnapshotTotals) -> Option<Nanos> {
    if matches!(job.state, JobState::Ended | JobState::Failed) {
        return Some(Nanos::ZERO);
    }
    let by_time = goal.whole_time().map(|whole| whole - job.elapsed);
    let by_bytes = goal.bytes.and_then(|bytes| {
        let moved = moved(job);
        let rest = bytes.saturating_sub(moved);
        let (time, amount) = match moved {
            0 => (
                now.elapsed,
                Direction::ALL.map(|d| now.bytes[d]).iter().sum(),
            ),
            moved => (job.elapsed, moved),
        };
        Some(Nanos::new(scaled(rest, time.get(), amount)?))
    });
    match (by_time, by_bytes) {
        (Some(time), Some(bytes)) => Some(time.min(bytes)),
        (time, bytes) => time.or(bytes),
    }
}

fn moved(job: &JobSnapshot) -> u64 {
    Direction::ALL
        .iter()
        .map(|&direction| job.bytes[direction])
        .sum()
}

fn part(done: u64, whole: u64) -> u64 {
    scaled(done, WHOLE, whole).map_or(WHOLE, |part| part.min(WHOLE))
}

fn per_second(amount: u64, span: Nanos) -> u64 {
    scaled(amount, 1_000_000_000, span.get()).unwrap_or(0)
}

/// Returns a · b / c, saturated to 64 bits; `None` for c = 0. The product has 128 bits.
fn scaled(a: u64, b: u64, c: u64) -> Option<u64> {
    let product = u128::from(a) * u128::from(b);
    let quotient = product.checked_div(u128::from(c))?;
    Some(u64::try_from(quotient).unwrap_or(u64::MAX))
}

fn count(jobs: usize) -> u32 {
    u32::try_from(jobs).unwrap_or(u32::MAX)
}

/// A completed job, in millionths.
const WHOLE: u64 = 1_000_000;
/// One percent, in millionths.
const PERCENT: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const RUNNING: JobState = JobState::Working(Phase::Running);

    fn goal(bytes: Option<u64>, runtime_s: Option<u64>) -> Goal {
        Goal {
            wave: 0,
            bytes,
            runtime: runtime_s.map(Nanos::from_secs),
            before: Nanos::ZERO,
            letter: 'r',
        }
    }

    fn job(state: JobState, mib: u64, elapsed_s: u64) -> JobSnapshot {
        JobSnapshot {
            state,
            ios: PerDirection::new(mib, 0, 0),
            bytes: PerDirection::new(mib * MIB, 0, 0),
            elapsed: Nanos::from_secs(elapsed_s),
            ..JobSnapshot::default()
        }
    }

    fn sample(goals: &[Goal], elapsed_s: u64, jobs: &[JobSnapshot]) -> RunStatus {
        let snapshot = Snapshot {
            elapsed: Nanos::from_secs(elapsed_s),
            jobs: jobs.to_vec(),
            ..Snapshot::default()
        };
        Meter::default().sample(goals, &snapshot)
    }

    #[track_caller]
    fn check(goals: &[Goal], jobs: &[JobSnapshot], percent: Option<f64>, eta_s: Option<u64>) {
        let elapsed = jobs
            .iter()
            .map(|job| job.elapsed.get() / 1_000_000_000)
            .max()
            .unwrap();
        let status = sample(goals, elapsed, jobs);
        match (status.percent, percent) {
            (Some(have), Some(want)) => assert!((have - want).abs() < 0.01, "{have}"),
            (have, want) => assert_eq!(have, want),
        }
        assert_eq!(status.eta_s, eta_s);
    }

    #[test]
    fn time_or_bytes_end_a_job_whichever_is_first() {
        check(
            &[goal(None, Some(20))],
            &[job(RUNNING, 7, 5)],
            Some(25.0),
            Some(15),
        );
        check(
            &[goal(Some(100 * MIB), None)],
            &[job(RUNNING, 25, 5)],
            Some(25.0),
            Some(15),
        );
        check(
            &[goal(Some(100 * MIB), Some(10))],
            &[job(RUNNING, 25, 5)],
            Some(50.0),
            Some(5),
        );
        check(
            &[goal(Some(100 * MIB), Some(50))],
            &[job(RUNNING, 50, 5)],
            Some(50.0),
            Some(5),
        );
        check(&[goal(None, None)], &[job(RUNNING, 50, 5)], None, None);
    }

    #[test]
    fn time_before_measuring_counts() {
        let mut delayed = goal(None, Some(10));
        delayed.before = Nanos::from_secs(10);
        check(
            &[delayed],
            &[job(JobState::Working(Phase::Ramp), 1, 5)],
            None,
            Some(15),
        );
        check(&[delayed], &[job(RUNNING, 1, 15)], Some(75.0), Some(5));
    }

    #[test]
    fn waves_add_up_and_members_of_one_do_not() {
        let first = goal(None, Some(10));
        let mut second = first;
        second.wave = 1;
        let waiting = job(JobState::NotStarted, 0, 0);
        let jobs = [job(RUNNING, 1, 4), job(JobState::Ended, 1, 4), waiting];
        check(&[first, first, second], &jobs, Some(140.0 / 3.0), Some(16));
    }

    #[test]
    fn waiting_job_is_assumed_as_fast_as_the_others() {
        let first = goal(Some(100 * MIB), None);
        let mut second = first;
        second.wave = 1;
        let jobs = [job(RUNNING, 50, 5), job(JobState::NotStarted, 0, 0)];
        check(&[first, second], &jobs, Some(25.0), Some(15));
    }

    #[test]
    fn percentage_saturates() {
        check(
            &[goal(None, Some(10))],
            &[job(RUNNING, 1, 30)],
            Some(100.0),
            Some(0),
        );
        check(
            &[goal(Some(0), None)],
            &[job(RUNNING, 1, 30)],
            Some(100.0),
            Some(0),
        );
    }

    #[test]
    fn rates_cover_the_time_since_the_previous_sample() {
        let mut meter = Meter::default();
        let mut at = |elapsed_ms, mib| {
            let snapshot = Snapshot {
                elapsed: Nanos::from_millis(elapsed_ms),
                jobs: vec![job(RUNNING, mib, 0)],
                ..Snapshot::default()
            };
            let status = meter.sample(&[goal(None, Some(10))], &snapshot);
            (status.bytes_per_s.read, status.ops_per_s.read)
        };
        assert_eq!(at(1_000, 10), (10 * MIB, 10));
        assert_eq!(at(1_500, 20), (20 * MIB, 20));
        assert_eq!(at(1_500, 30), (0, 0));
        assert_eq!(at(2_500, 30), (0, 0));
    }

    #[test]
    fn every_state_has_its_letter() {
        let states = [
            JobState::NotStarted,
            JobState::SettingUp,
            JobState::Working(Phase::Delayed),
            JobState::Working(Phase::Ramp),
            RUNNING,
            JobState::Working(Phase::Verifying),
            JobState::Working(Phase::Syncing),
            JobState::Working(Phase::Finished),
            JobState::Ended,
            JobState::Failed,
        ];
        let status = sample(
            &[goal(None, None); 10],
            1,
            &states.map(|state| job(state, 0, 1)),
        );
        assert_eq!(status.states, "PIC/rVFf_X");
        assert_eq!(status.running, 4);
    }
}
