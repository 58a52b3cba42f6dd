//! Stages of a job's ops: before, at and after the device.

use fathom_log::TappedOp;
use fathom_record::{PeakLatency, TracedJob};
use fathom_stats::Latency;
use fathom_trace::{DeviceTime, DiskMap, Joined, TracedSpans};

use super::clock_pair::{ClockPair, monotonic};

/// Files of a job and the events about them.
pub(crate) struct TracedFiles<'a> {
    pub(crate) maps: &'a [DiskMap],
    pub(crate) spans: &'a TracedSpans,
    /// Times at which the job's thread was woken, ascending.
    pub(crate) wakings: &'a [u64],
    /// Moments before and after the run on both clocks.
    pub(crate) clocks: [ClockPair; 2],
}

/// Latencies of the stages, and counts.
struct Stages {
    counts: TracedJob,
    before: Latency,
    device: Latency,
    after: Latency,
    wake_up: Latency,
    total: Latency,
}

/// Start and end of an op on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy)]
struct OpTime {
    started_ns: u64,
    completed_ns: u64,
}

impl TracedFiles<'_> {
    /// Joins the ops of a job.
    pub(crate) fn job(&self, name: &str, number: u32, ops: &[TappedOp]) -> TracedJob {
        let mut stages = Stages::new();
        for op in ops {
            let time = OpTime {
                started_ns: monotonic(self.clocks, op.started_ns),
                completed_ns: monotonic(self.clocks, op.completed_ns),
            };
            match self.join(op, time) {
                Joined::Device(device) => stages.add(time, device, self.wakings),
                Joined::Absent => stages.counts.absent += 1,
                Joined::Partial | Joined::Ambiguous => stages.counts.unclear += 1,
            }
        }
        let mut devices: Vec<String> = Vec::new();
        for map in self.maps {
            if !devices.iter().any(|name| name == map.device()) {
                devices.push(map.device().to_owned());
            }
        }
        TracedJob {
            name: name.to_owned(),
            number,
            devices,
            ops: ops.len() as u64,
            ..stages.record()
        }
    }

    /// Looks an op up in all files of its job: the log has offsets, but no files.
    fn join(&self, op: &TappedOp, time: OpTime) -> Joined {
        let window = time.started_ns.saturating_sub(SLACK_NS)..time.completed_ns + SLACK_NS;
        let mut found = Joined::Absent;
        for map in self.maps {
            let Some(spans) = self.spans.of(map) else {
                continue;
            };
            let Some(sectors) = map.sectors(op.offset, op.length.into()) else {
                continue;
            };
            found = match (found, spans.join(op.direction, &sectors, window.clone())) {
                (found, Joined::Absent) => found,
                (Joined::Absent, other) => other,
                // A part of an op of another job on the other file.
                (Joined::Device(device), Joined::Partial) => Joined::Device(device),
                (Joined::Partial, other) => other,
                (_, _) => Joined::Ambiguous,
            };
        }
        found
    }
}

impl Stages {
    fn new() -> Self {
        let latency = || Latency::new(true);
        Self {
            counts: TracedJob::default(),
            before: latency(),
            device: latency(),
            after: latency(),
            wake_up: latency(),
            total: latency(),
        }
    }

    fn add(&mut self, op: OpTime, device: DeviceTime, wakings: &[u64]) {
        self.counts.joined += 1;
        self.counts.split += u64::from(device.requests > 1);
        self.counts.merged += u64::from(device.is_merged);
        let between = |from: u64, to: u64| to.saturating_sub(from);
        self.before.record(between(op.started_ns, device.issued_ns));
        self.device
            .record(between(device.issued_ns, device.completed_ns));
        self.after
            .record(between(device.completed_ns, op.completed_ns));
        self.total.record(between(op.started_ns, op.completed_ns));
        let until = wakings.partition_point(|&at_ns| at_ns <= op.completed_ns);
        let woken = until.checked_sub(1).map(|last| wakings[last]);
        if let Some(at_ns) = woken.filter(|&at_ns| at_ns >= device.completed_ns) {
            self.wake_up.record(between(at_ns, op.completed_ns));
        }
    }

    fn record(self) -> TracedJob {
        TracedJob {
            before: PeakLatency::new(self.before),
            device: PeakLatency::new(self.device),
            after: PeakLatency::new(self.after),
            wake_up: PeakLatency::new(self.wake_up),
            total: PeakLatency::new(self.total),
            ..self.counts
        }
    }
}

/// Tolerance of the conversion between clocks (guess; a calibrated clock is within 1 µs).
const SLACK_NS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_add_up_to_the_op() {
        let mut stages = Stages::new();
        let op = OpTime {
            started_ns: 100,
            completed_ns: 190,
        };
        let device = DeviceTime {
            issued_ns: 110,
            completed_ns: 160,
            requests: 2,
            is_merged: true,
        };
        // Woken for an earlier op; for this one; and later.
        stages.add(op, device, &[105, 170, 300]);
        stages.add(op, device, &[105, 300]);
        let job = stages.record();
        let mean = |times: &PeakLatency| times.all.summary.mean();
        let found = [&job.before, &job.device, &job.after, &job.total].map(mean);
        assert_eq!(found, [10.0, 50.0, 30.0, 90.0]);
        assert_eq!(job.wake_up.all.summary.count(), 1);
        assert_eq!(mean(&job.wake_up), 20.0);
        assert_eq!((job.joined, job.split, job.merged), (2, 2, 2));
    }
}
