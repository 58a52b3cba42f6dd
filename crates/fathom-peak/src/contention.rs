//! Processors for which the measuring threads had to wait.

use fathom_core::Tick;
use fathom_host::processors::ProcessorTimes;
use fathom_record::{PeakContention, PeakPoint, Warning};
use fathom_sys::thread::{ScheduleTimes, ThreadSchedule, allowed_cpus};

use crate::PeakConfig;

/// Observer of the processors of one repeat.
pub(crate) struct ProcessorWatch(ProcessorTimes);

impl ProcessorWatch {
    /// Reads the times of the processors on which the threads may run.
    pub(crate) fn start(config: &PeakConfig, now: Tick) -> Self {
        let cpus = match config.cpu {
            Some(first) => (first..first + config.threads).collect(),
            None => allowed_cpus().unwrap_or_default(),
        };
        Self(ProcessorTimes::start(cpus, now))
    }

    /// Returns the contention of a repeat whose threads waited so; `None` if the kernel does not
    /// count it.
    ///
    /// Shares are of the time since [`start`](Self::start), not of the measured span: a thread is
    /// late to notice the end of the span when it waits for a processor.
    #[expect(clippy::cast_precision_loss, reason = "shares")]
    pub(crate) fn finish(&self, now: Tick, threads: &[ScheduleTimes]) -> Option<PeakContention> {
        let worst = threads.iter().max_by_key(|times| times.waited)?;
        let used = self.0.finish(now)?;
        let waited = worst.waited.get() as f64;
        Some(PeakContention {
            waited_percent: waited / 10.0 / used.wall_us.max(1) as f64,
            wait_mean_us: waited / 1e3 / worst.turns.max(1) as f64,
            cpus: used.cpus,
            busy_percent: used.busy_percent().unwrap_or(0.0),
            others_cpus: used.others_us() as f64 / used.wall_us.max(1) as f64,
        })
    }
}

/// Times of a thread from one moment on.
pub(crate) struct ThreadTimes(Option<(ThreadSchedule, ScheduleTimes)>);

impl ThreadTimes {
    /// Begins with those of the calling thread.
    pub(crate) fn start() -> Self {
        let schedule = ThreadSchedule::own().ok();
        Self(schedule.and_then(|open| open.read().map(|before| (open, before))))
    }

    /// Returns the times since; `None` if the kernel does not count them.
    pub(crate) fn finish(&self) -> Option<ScheduleTimes> {
        let (schedule, before) = self.0.as_ref()?;
        Some(schedule.read()?.since(*before))
    }
}

/// Returns the warning that threads waited for a processor, if they did in one of the repeats.
#[must_use]
pub fn contention_warning(points: &[PeakPoint]) -> Option<Warning> {
    let repeats = || points.iter().flat_map(|point| &point.repeats);
    let contended: Vec<PeakContention> = repeats()
        .filter_map(|repeat| repeat.contention.filter(PeakContention::matters))
        .collect();
    let worst = contended
        .iter()
        .max_by(|one, other| one.waited_percent.total_cmp(&other.waited_percent))?;
    let PeakContention {
        waited_percent,
        cpus,
        others_cpus,
        ..
    } = worst;
    let count = match repeats().count() {
        1 => String::new(),
        all => format!("in {} of {all} repeats ", contended.len()),
    };
    Some(Warning {
        code: "contention".into(),
        job: String::new(),
        message: format!(
            "{count}threads were runnable but had no CPU for up to {waited_percent:.0} % of the \
             time: other programs used {others_cpus:.1} of {cpus} CPUs"
        ),
        hint: "measure on an idle machine, with at most a thread per CPU".into(),
    })
}

#[cfg(test)]
mod tests {
    use fathom_record::PeakRepeat;

    use super::*;

    fn points(waits: &[f64]) -> Vec<PeakPoint> {
        let repeat = |&waited_percent| PeakRepeat {
            contention: Some(PeakContention {
                waited_percent,
                wait_mean_us: 100.0,
                cpus: 2,
                busy_percent: 90.0,
                others_cpus: 1.25,
            }),
            ..PeakRepeat::default()
        };
        vec![PeakPoint {
            repeats: waits.iter().map(repeat).collect(),
            ..PeakPoint::default()
        }]
    }

    #[test]
    fn the_worst_of_the_contended_repeats_is_told() {
        let text = |waits| contention_warning(&points(waits)).map(|warning| warning.message);
        let of_three = text(&[2.9, 40.0, 3.0]).unwrap();
        assert!(
            of_three.starts_with("in 2 of 3 repeats threads were runnable"),
            "{of_three}"
        );
        assert!(
            of_three.contains("up to 40 % of the time: other programs used 1.2 of 2 CPUs"),
            "{of_three}"
        );
        assert!(text(&[50.0]).unwrap().starts_with("threads were runnable"));
        assert_eq!(text(&[2.9, 0.0]), None);
        assert_eq!(contention_warning(&[PeakPoint::default()]), None);
    }

    #[test]
    fn waking_up_is_no_contention() {
        let mut points = points(&[40.0]);
        let matters = |points: &[PeakPoint]| contention_warning(points).is_some();
        assert!(matters(&points));
        let mut with = |change: fn(&mut PeakContention)| {
            change(points[0].repeats[0].contention.as_mut().unwrap());
            contention_warning(&points).is_some()
        };
        assert!(!with(|seen| seen.wait_mean_us = 9.0));
        assert!(with(|seen| seen.wait_mean_us = 10.0));
        assert!(!with(|seen| seen.busy_percent = 49.0));
    }
}
