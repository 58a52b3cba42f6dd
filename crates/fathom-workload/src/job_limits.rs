//! Rules that few jobs have: a number of ops, turns with other jobs, bounds on latency.
//!
//! A job without any of them has no [`JobLimits`] and is not slowed down by one branch per op; one
//! that has is issued op by op.

use std::sync::Arc;

use fathom_core::{Direction, Errno, Nanos, PerDirection, Tick};

use crate::config::WorkerConfig;
use crate::depth_search::{DepthSearch, Finding, LatencyTarget};
use crate::flow::{FlowMember, FlowShare};
use crate::results::JobError;
use crate::slots::SlotState;
use crate::steady::SteadyGroup;
use crate::worker::{Stage, Worker};

/// What a job with such rules is told.
#[derive(Clone, Debug, Default)]
pub struct LimitConfig {
    /// Ops to issue in all passes together at most.
    pub ops: Option<u64>,
    /// An op that takes longer ends the job with an error.
    pub slowest: PerDirection<Option<Nanos>>,
    /// Look for the largest depth that keeps to a latency.
    pub target: Option<LatencyTarget>,
    /// Take turns with others.
    pub flow: Option<FlowShare>,
    /// Nothing is counted before so many bytes were moved; 0 to count from the start.
    pub ramp_bytes: u64,
    /// End when what it does has become steady.
    pub steady: Option<Arc<SteadyGroup>>,
}

impl LimitConfig {
    /// Returns whether any limit looks at single ops.
    pub(crate) fn look_at_ops(&self) -> bool {
        let Self {
            ops,
            slowest,
            target,
            flow,
            ramp_bytes,
            // Looked at once per interval.
            steady: _,
        } = self;
        let bounds = slowest.iter().any(|(_, bound)| bound.is_some());
        bounds || *ramp_bytes > 0 || ops.is_some() || target.is_some() || flow.is_some()
    }
}

/// A job's rules, and how it stands with them.
#[derive(Debug)]
pub(crate) struct JobLimits {
    ops_left: u64,
    /// Bytes to move before anything is counted.
    pub(crate) ramp_left: u64,
    slowest: PerDirection<Option<Nanos>>,
    search: Option<DepthSearch>,
    flow: Option<FlowMember>,
}

/// Why a limit keeps the next op back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueBlock {
    /// `number_ios` ops were issued.
    OpsExhausted,
    /// Other jobs of the flow come first; ask again at this time.
    Until(Tick),
    /// As many ops are in flight as the depth search allows now.
    AtDepth,
}

impl JobLimits {
    /// The rules of a job; none if it has none of them.
    pub(crate) fn new(config: &WorkerConfig) -> Option<Box<Self>> {
        let limits = &config.limits;
        limits.look_at_ops().then(|| {
            Box::new(Self {
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

    /// The job begins to issue; it has joined its flow before, unless it was delayed.
    pub(crate) fn begin(&mut self, now: Tick) {
        self.flow.iter_mut().for_each(FlowMember::join);
        self.search.iter_mut().for_each(|search| search.begin(now));
    }

    /// Whether an op may be issued while `in_flight` are on their way.
    pub(crate) fn hold_back(&self, now: Tick, in_flight: u32) -> Option<IssueBlock> {
        if self.ops_left == 0 {
            return Some(IssueBlock::OpsExhausted);
        }
        if self.search.as_ref().is_some_and(|s| in_flight >= s.depth()) {
            return Some(IssueBlock::AtDepth);
        }
        let flow = self.flow.as_ref().filter(|flow| !flow.may_go())?;
        Some(IssueBlock::Until(now + flow.pause()))
    }

    /// An op was issued.
    pub(crate) fn issued(&mut self) {
        self.ops_left -= 1;
        self.flow.iter_mut().for_each(FlowMember::went);
    }

    /// The job has ended: it keeps nobody waiting any more.
    pub(crate) fn end(&mut self) {
        self.flow.iter_mut().for_each(FlowMember::leave);
    }

    /// The depth that a search has come to.
    pub(crate) fn depth_found(&self) -> Option<u32> {
        self.search.as_ref().map(DepthSearch::depth)
    }
}

impl Worker {
    /// It is about to begin together with others: from now on those of its flow count on it.
    ///
    /// To be called for all that start at once before the first of them turns; else that one would
    /// have the flow for itself for as long as the others take to begin. A job that is delayed
    /// joins when it begins.
    pub fn join_flow(&mut self) {
        if !self.config.start_delay.is_zero() {
            return;
        }
        let limits = self.limits.iter_mut();
        limits.for_each(|limits| limits.flow.iter_mut().for_each(FlowMember::join));
    }

    /// What keeps the next op of the pattern back.
    pub(crate) fn held_back(&self, now: Tick) -> Option<IssueBlock> {
        let limits = self.limits.as_ref()?;
        // Reading back is not what these rules are about.
        if self.stage != Stage::Running {
            return None;
        }
        limits.hold_back(now, self.queue.occupied())
    }

    /// An op of a job with such rules has completed.
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
        let latency = now - op.start;
        if let Some(bound) = limits.slowest[direction].filter(|&bound| latency > bound) {
            return self.too_slow(direction, op, latency, bound);
        }
        let Some(search) = &mut limits.search else {
            return;
        };
        let target = search.target();
        match search.completed(latency, now) {
            Finding::GoOn => {}
            Finding::Final => self.measure_anew(now),
            Finding::Done => self.stop_issuing(),
            Finding::Hopeless => self.too_slow(direction, op, latency, target),
        }
    }

    #[cold]
    fn too_slow(&mut self, direction: Direction, op: &SlotState, latency: Nanos, bound: Nanos) {
        self.fail(JobError {
            // As in fio, for an op that took too long.
            errno: Errno::ETIMEDOUT.unsigned(),
            what: direction.name(),
            file: op.op.file,
            offset: op.op.offset,
            length: op.op.length,
            detail: Some(format!(
                "latency of {} ns exceeds the maximum of {} ns",
                latency.get(),
                bound.get()
            )),
        });
    }
}
