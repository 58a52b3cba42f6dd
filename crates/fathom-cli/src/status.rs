//! Status line, drawn over itself on a terminal as fio's is.

use fathom_core::{Direction, Nanos, PerDirection};
use fathom_job::{Job, Plan, ReadWrite, Settings};
use fathom_report::{StatusFigures, status_line};
use fathom_setup::status::{Goal, Meter, goals};
use fathom_setup::{JobState, LatencyMeter, Snapshot};

use crate::output::{self, StandardStream};

/// Line that is on the terminal now.
pub(crate) struct StatusLine {
    stream: StandardStream,
    /// Interval between lines; `None`: none is drawn.
    every: Option<Nanos>,
    due: Nanos,
    /// `--eta-newline`.
    newline_every: Option<Nanos>,
    newline_at: Nanos,
    /// Characters of the visible line; 0 for none.
    length: usize,
    meter: Meter,
    /// `--eta-percentiles`.
    latencies: Option<LatencyMeter>,
    /// Goal of each clone; computed when the first line is drawn.
    goals: Vec<Goal>,
}

impl StatusLine {
    /// Creates a status line that is not drawn yet.
    pub(crate) fn new(stream: StandardStream, settings: &Settings) -> Self {
        let newline_every = settings.eta_newline;
        Self {
            stream,
            every: None,
            due: Nanos::ZERO,
            newline_every,
            newline_at: newline_every.unwrap_or_default(),
            length: 0,
            meter: Meter::default(),
            latencies: settings.eta_percentiles.then(LatencyMeter::default),
            goals: Vec::new(),
        }
    }

    /// Sets the interval between lines; `None` for none.
    pub(crate) fn draw_every(&mut self, every: Option<Nanos>) {
        self.every = every;
    }

    /// Draws the line over the previous one, if it is time: a view may ask for progress more often.
    pub(crate) fn draw(&mut self, plan: &Plan, snapshot: &Snapshot) {
        let Some(every) = self.every.filter(|_| snapshot.elapsed >= self.due) else {
            return;
        };
        self.due = snapshot.elapsed + every;
        if self.goals.is_empty() {
            self.goals = goals(plan);
        }
        let status = self.meter.sample(&self.goals, snapshot);
        let latencies = self.latencies.as_mut();
        let latencies = latencies.map(|latencies| latencies.sample(snapshot));
        let running = running(plan, snapshot);
        let limits = RateBounds::of(&running);
        let line = status_line(&StatusFigures {
            elapsed_ms: status.elapsed.as_millis(),
            running: status.running,
            open_files: running.iter().map(|job| job.options.nrfiles).sum(),
            rate_bytes: limits.bytes,
            rate_iops: limits.iops,
            states: status.states,
            percent: status.percent,
            bytes_per_s: status.bytes_per_s,
            ops_per_s: status.ops_per_s,
            eta_s: status.eta_s,
            p50_and_p99_ns: latencies
                .unwrap_or_default()
                .map(|shown| shown.map(|shown| (shown.p50_ns, shown.p99_ns))),
            kb_base: plan.jobs.first().map_or(1024, |job| job.options.kb_base),
            unit_base: plan.jobs.first().map_or(0, |job| job.options.unit_base),
        });
        let end = self.line_end(snapshot.elapsed);
        let length = line.chars().count();
        output::print(
            self.stream,
            &format!("{line:<width$}{end}", width = self.length),
        );
        self.length = if end == "\r" { length } else { 0 };
    }

    /// Erases the line, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        if self.length > 0 {
            output::print(
                self.stream,
                &format!("{:width$}\r", "", width = self.length),
            );
            self.length = 0;
        }
    }

    /// Returns what ends the line: a line feed at each `--eta-newline` interval, else a return.
    fn line_end(&mut self, elapsed: Nanos) -> &'static str {
        match self.newline_every {
            Some(every) if !every.is_zero() && elapsed >= self.newline_at => {
                self.newline_at = elapsed + every;
                "\n"
            }
            _ => "\r",
        }
    }
}

/// Returns the job of each running clone.
fn running<'a>(plan: &'a Plan, snapshot: &Snapshot) -> Vec<&'a Job> {
    let clones = plan.jobs.iter().flat_map(|job| {
        let count = usize::try_from(job.options.numjobs.max(1)).unwrap_or(usize::MAX);
        std::iter::repeat_n(job, count)
    });
    let jobs = clones.zip(&snapshot.jobs);
    let running = jobs.filter(|(_, seen)| matches!(seen.state, JobState::Working(_)));
    running.map(|(job, _)| job).collect()
}

/// Returns whether `rw` includes ops of this direction.
fn uses(rw: ReadWrite, direction: Direction) -> bool {
    match direction {
        Direction::Read => matches!(rw, ReadWrite::Read | ReadWrite::Mixed),
        Direction::Write => {
            matches!(
                rw,
                ReadWrite::Write | ReadWrite::Mixed | ReadWrite::TrimWrite
            )
        }
        Direction::Trim => matches!(rw, ReadWrite::Trim | ReadWrite::TrimWrite),
    }
}

/// Sums of the minimum and maximum rates of the running jobs.
struct RateBounds {
    bytes: Option<(u64, u64)>,
    iops: Option<(u64, u64)>,
}

impl RateBounds {
    fn of(jobs: &[&Job]) -> Self {
        let sum = |of: fn(&Job) -> &PerDirection<Option<u64>>| -> u64 {
            let each = jobs.iter().flat_map(|job| {
                let rates = of(job).iter();
                rates.filter_map(|(d, rate)| rate.filter(|_| uses(job.options.rw, d)))
            });
            each.fold(0, u64::saturating_add)
        };
        let pair = |least: u64, most: u64| (least > 0 || most > 0).then_some((least, most));
        Self {
            bytes: pair(
                sum(|job| &job.options.rate_min),
                sum(|job| &job.options.rate),
            ),
            iops: pair(
                sum(|job| &job.options.rate_iops_min),
                sum(|job| &job.options.rate_iops),
            ),
        }
    }
}
