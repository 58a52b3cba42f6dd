//! Limits that few jobs have: a number of ops, a flow shared with other jobs, bounds on latency.
//!
//! A job without any has no [`JobLimits`] and pays nothing per op; a job with some takes the
//! checked path.

use fathom_core::{Direction, Errno, Nanos, PerDirection, Tick};

use crate::config::WorkerConfig;
use crate::depth_search::{DepthSearch, FoundDepth, JudgedOp, LatencyVerdict};
use crate::flow::{FlowMember, FlowShare};
use crate::readback::Readback;
use crate::results::{JobActivity, JobError};
use crate::slots::SlotState;
use crate::worker::{Stage, Worker};

/// Limits of a job and their state.
#[derive(Debug)]
pub(crate) struct JobLimits {
    /// Number of ops to issue over all passes, not counting those of a ramp.
    ops: u64,
    /// Those of them that are left.
    ops_left: u64,
    /// Bytes left to move before counting starts.
    pub(crate) ramp_left: u64,
    slowest: PerDirection<Option<Nanos>>,
    search: Option<DepthSearch>,
    flow: Option<FlowMember>,
}

/// Reason why a limit holds the next op back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueBlock {
    /// `number_ios` ops have been issued.
    OpsExhausted,
    /// Turn of other jobs of the flow; try again at this time.
    Until(Tick),
    /// The depth search allows no more ops in flight at present.
    AtDepth,
}

impl JobLimits {
    /// Creates the limits of a job; `None` if it has none.
    pub(crate) fn new(config: &WorkerConfig) -> Option<Box<Self>> {
        let limits = &config.limits;
        limits.apply_to_ops().then(|| {
            Box::new(Self {
                ops: limits.ops.unwrap_or(u64::MAX),
                ops_left: limits.ops.unwrap_or(u64::MAX),
                ramp_left: limits.ramp_bytes,
                slowest: limits.slowest,
                search: limits
                    .target
                    .map(|target| DepthSearch::new(target, config.depth)),
                flow: limits.flow.as_ref().map(FlowShare::member),
            })
        })
    }

    /// Begins with the first op. The job has joined its flow before, unless it was delayed.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.flow.iter_mut().for_each(FlowMember::join);
        self.search.iter_mut().for_each(|search| search.begin(now));
    }

    /// Returns why no op may be issued while `in_flight` ops are in flight, if so.
    pub(crate) fn hold_back(&mut self, now: Tick, in_flight: u32) -> Option<IssueBlock> {
        if self.ops_left == 0 {
            return Some(IssueBlock::OpsExhausted);
        }
        if self.search.as_ref().is_some_and(|s| in_flight >= s.depth()) {
            return Some(IssueBlock::AtDepth);
        }
        let flow = self.flow.as_mut().filter(|flow| !flow.may_go())?;
        Some(IssueBlock::Until(now + flow.pause(now)))
    }

    /// Returns whether all ops have been issued that the job may issue.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.ops_left == 0
    }

    /// Returns the number of ops that the job may still issue.
    pub(crate) const fn ops_left(&self) -> u64 {
        self.ops_left
    }

    /// Counts an op that is issued. Trims of written blocks may come after the last one.
    pub(crate) const fn count_op(&mut self) {
        self.ops_left = self.ops_left.saturating_sub(1);
    }

    /// Counts ops from now on: those in flight, but not those that completed before, in a ramp.
    pub(crate) fn restart_count(&mut self, in_flight: u32) {
        self.ops_left = self.ops.saturating_sub(in_flight.into());
    }

    /// Takes a turn in the flow.
    pub(crate) fn take_turn(&mut self) {
        self.flow.iter_mut().for_each(FlowMember::went);
    }

    /// Leaves the flow at the end of the job.
    pub(crate) fn end(&mut self) {
        self.flow.iter_mut().for_each(FlowMember::leave);
    }

    /// Returns what a search for a depth has found.
    pub(crate) fn depth_found(&self) -> Option<FoundDepth> {
        self.search.as_ref().map(DepthSearch::found)
    }
}

impl Worker {
    /// Joins the job's flow before the first turn.
    ///
    /// Call it for all jobs that start together before the first of them turns; otherwise that one
    /// would have the flow to itself until the others begin. A delayed job joins when it begins.
    pub fn join_flow(&mut self) {
        if !self.config.start_delay.is_zero() {
            return;
        }
        let limits = self.limits.iter_mut();
        limits.for_each(|limits| limits.flow.iter_mut().for_each(FlowMember::join));
    }

    /// Returns the limit that holds the next op of the pattern back.
    pub(crate) fn held_back(&mut self, now: Tick) -> Option<IssueBlock> {
        let limits = self.limits.as_mut()?;
        // Readback is exempt from these limits.
        if self.stage != Stage::Running {
            return None;
        }
        limits.hold_back(now, self.queue.occupied())
    }

    /// Checks a completed op against the limits.
    pub(crate) fn check_limits(&mut self, direction: Direction, op: &SlotState, now: Tick) {
        let Some(limits) = &mut self.limits else {
            return;
        };
        if limits.ramp_left > 0 {
            limits.ramp_left = limits.ramp_left.saturating_sub(op.total_length().into());
            if limits.ramp_left == 0 {
                self.measure_from(now);
                self.set_next_rule();
            }
            return;
        }
        if self.recorder.is_of_ramp(op, now) {
            // It was counted as one in flight when the ramp ended, at this moment.
            limits.ops_left = limits.ops_left.saturating_add(1);
            return;
        }
        let latency = now - op.start;
        let is_in_ramp = self.timers.ramp_end != Tick::MAX;
        let too_slow = |&bound: &Nanos| latency > bound && !is_in_ramp;
        if let Some(bound) = limits.slowest[direction].filter(too_slow) {
            return self.too_slow(direction, op, latency, bound);
        }
        let reads_back = || self.readback.as_ref().is_some_and(Readback::is_reading);
        // What is read back after a pass does not count, as in fio.
        let Some(search) = limits.search.as_mut().filter(|_| !reads_back()) else {
            return;
        };
        let target = search.target();
        let judged = JudgedOp {
            sequence: op.op.sequence,
            latency,
        };
        match search.completed(judged, self.source.sequence, now) {
            LatencyVerdict::GoOn => {}
            LatencyVerdict::Final => self.restart_measurement(now),
            LatencyVerdict::Done => self.end_with_pass(),
            LatencyVerdict::Hopeless => self.too_slow(direction, op, latency, target),
        }
    }

    /// Ends the job with this pass, as if it had issued all of its ops: what it wrote is read back,
    /// unless it is time-based.
    fn end_with_pass(&mut self) {
        match &mut self.limits {
            Some(limits) if !self.config.time_based => limits.ops_left = 0,
            _ => self.stop_issuing(),
        }
    }

    #[cold]
    fn too_slow(&mut self, direction: Direction, op: &SlotState, latency: Nanos, bound: Nanos) {
        self.fail(JobError {
            // As in fio, for an op that took too long.
            errno: Errno::ETIMEDOUT,
            activity: JobActivity::MaxLatency(direction),
            file: op.op.file,
            offset: op.op.offset,
            length: op.op.length,
            detail: Some(format!(
                "latency of {} nsec exceeds specified max ({} nsec)",
                latency.get(),
                bound.get()
            )),
        });
    }
}
