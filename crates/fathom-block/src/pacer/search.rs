//! Search for the fewest bytes in flight that keep full bandwidth.
//!
//! ```text
//!  bandwidth
//!   │        ┌────────────┐
//!   │      ╱ ↑             ╲ ___________   beyond the cache, data are fetched twice
//!   │    ╱   the limit that is sought
//!   │  ╱  too few to keep the devices, the link and the processor busy
//!   └──────────────────────────────────── bytes in flight
//! ```
//!
//! A *sweep* measures no limit, then limits that halve until bandwidth falls, then the same ones
//! back up, and keeps the lowest that is as good as the best. *Trials* then compare the limit with
//! a neighbour, epoch by epoch in turn, so that a drift of the load hits both. A change of the load
//! starts the next sweep.

use fathom_core::{Nanos, Tick};

use super::epoch::{Epoch, Measured, Totals};
use super::setting::{Beside, Setting, UNLIMITED, bandwidth};
use super::sweep::{Chosen, Sweep};
use super::trial::{Kind, Trial};

/// Evidence for the limit in force.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Evidence {
    pub(super) bandwidth: u64,
    pub(super) below: Option<Beside>,
    pub(super) above: Option<Beside>,
    pub(super) changed_at: Tick,
    pub(super) sweeps: u64,
    pub(super) trials: u64,
}

/// State of the search: one for all threads of a target.
#[derive(Debug)]
pub(super) struct Search {
    /// Setting in force, of an epoch of a sweep or trial.
    setting: Setting,
    /// Setting chosen so far.
    base: Setting,
    epoch: Epoch,
    phase: Phase,
    /// Rate of work at the base, averaged.
    reference: f64,
    /// Relative deviation of an epoch from the one before, averaged.
    noise: f64,
    /// Epochs in a row that differ from the reference.
    deviating: u32,
    /// The load has changed since the last sweep.
    must_sweep: bool,
    slow_part: u32,
    /// Slow devices have moved data since the load began.
    has_slow: bool,
    /// Peak in flight without a limit, in the last sweep.
    top: u64,
    /// Peak of what was in flight or waited, per thread, when the base was chosen.
    demand: u64,
    /// Highest bandwidth of an epoch since the load began.
    capacity: f64,
    next_kind: usize,
    /// Pause between trials; grows while they find nothing.
    pause: Nanos,
    sweep_again: Tick,
    sweep_pause: Nanos,
    evidence: Evidence,
}

#[derive(Debug)]
enum Phase {
    /// Too little load to compare anything.
    Idle,
    /// One epoch without a limit, before a sweep.
    Opening,
    Sweep(Sweep),
    /// Between trials.
    Hold {
        until: Tick,
    },
    Trial(Trial),
}

impl Search {
    /// Creates the search. Slow devices get at least one part in `slow_part`.
    pub(super) fn new(slow_part: u32) -> Self {
        Self {
            slow_part,
            has_slow: false,
            setting: Setting::OPEN,
            base: Setting::OPEN,
            epoch: Epoch::default(),
            phase: Phase::Idle,
            reference: 0.0,
            noise: NOISE,
            deviating: 0,
            must_sweep: false,
            top: 0,
            demand: 0,
            capacity: 0.0,
            next_kind: 0,
            pause: PAUSE_MIN,
            sweep_again: Tick::ZERO,
            sweep_pause: SWEEP_PAUSE_MIN,
            evidence: Evidence::default(),
        }
    }

    /// Takes the counters of all threads; returns the setting from now on, and the time of the next
    /// call.
    pub(super) fn step(&mut self, totals: &Totals, now: Tick) -> (Setting, Tick) {
        if let Some(measured) = self.epoch.advance(totals, now) {
            let setting = self.decide(&measured, now);
            self.epoch.begin(totals, setting != self.setting, now);
            self.setting = setting;
        }
        (self.setting, self.epoch.due(now))
    }

    /// Returns the bytes per second of one part of what the target has moved at its best.
    pub(super) fn slow_rate(&self) -> u64 {
        let part = match self.setting.slow_part {
            0 => self.slow_part,
            part => part,
        };
        bandwidth(self.capacity) / u64::from(part)
    }

    pub(super) const fn base(&self) -> Setting {
        self.base
    }

    pub(super) const fn evidence(&self) -> Evidence {
        self.evidence
    }

    fn decide(&mut self, measured: &Measured, now: Tick) -> Setting {
        if measured.is_idle {
            self.phase = Phase::Idle;
            self.base = Setting::OPEN;
            self.sweep_pause = SWEEP_PAUSE_MIN;
            self.has_slow = false;
            self.capacity = 0.0;
            return self.base;
        }
        self.capacity = self.capacity.max(measured.bandwidth);
        if measured.has_slow && !self.has_slow {
            // Held at first: while they take what the others need, no limit shows its effect.
            // Trials give them more as long as the others lose nothing.
            self.has_slow = true;
            return self.sweep(measured, now);
        }
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle | Phase::Opening => self.sweep(measured, now),
            Phase::Sweep(sweep) => self.on_sweep(sweep, measured, now),
            Phase::Hold { until } => self.on_hold(until, measured, now),
            Phase::Trial(trial) => self.on_trial(trial, measured, now),
        }
    }

    /// Begins a sweep with an epoch without a limit.
    fn sweep(&mut self, measured: &Measured, now: Tick) -> Setting {
        let slow_part = if self.has_slow { self.slow_part } else { 0 };
        self.base = self.base.with_slow_part(slow_part);
        let open = self.base.with_limit(UNLIMITED);
        if self.setting != open {
            self.phase = Phase::Opening;
            return open;
        }
        self.must_sweep = false;
        self.evidence.sweeps += 1;
        self.top = measured.peak;
        self.on_sweep(Sweep::new(measured), measured, now)
    }

    fn on_sweep(&mut self, mut sweep: Sweep, measured: &Measured, now: Tick) -> Setting {
        match sweep.add(measured) {
            Some(limit) => {
                self.phase = Phase::Sweep(sweep);
                self.base.with_limit(limit)
            }
            None => self.take(&sweep.choose(), now),
        }
    }

    /// Makes the limit that a sweep found the base.
    fn take(&mut self, chosen: &Chosen, now: Tick) -> Setting {
        let before = self.base.limit;
        let is_near = |one: u64, other: u64| one == other || one / 2 < other;
        let is_as_before = is_near(before, chosen.limit) && is_near(chosen.limit, before);
        self.sweep_pause = if is_as_before {
            Nanos::new(self.sweep_pause.get() * 2).min(SWEEP_PAUSE_MAX)
        } else {
            SWEEP_PAUSE_MIN
        };
        self.sweep_again = now + self.sweep_pause;
        self.evidence.bandwidth = bandwidth(chosen.bandwidth);
        (self.evidence.above, self.evidence.below) = (chosen.above, chosen.below);
        (self.reference, self.demand) = (chosen.rate, chosen.demand);
        self.deviating = 0;
        self.next_kind = 0;
        self.pause = PAUSE_MIN;
        self.set_base(self.base.with_limit(chosen.limit), now);
        self.phase = Phase::Hold { until: now };
        self.base
    }

    fn on_hold(&mut self, until: Tick, measured: &Measured, now: Tick) -> Setting {
        self.watch(measured);
        if self.must_sweep && now >= self.sweep_again {
            return self.sweep(measured, now);
        }
        if now < until {
            self.phase = Phase::Hold { until };
            return self.base;
        }
        for _ in 0..Kind::ALL.len() {
            let kind = Kind::ALL[self.next_kind % Kind::ALL.len()];
            self.next_kind += 1;
            if let Some(candidate) = self.candidate(kind, measured) {
                return self.begin_trial(kind, candidate);
            }
        }
        self.end_trial(false, now)
    }

    /// Follows the rate at the base, and counts epochs in a row that are far from it.
    fn watch(&mut self, measured: &Measured) {
        let change = measured.rate / self.reference.max(1.0) - 1.0;
        // The average deviation is four fifths of the standard deviation; a stall is not noise.
        let deviation = change.abs().min(STALL) * 1.25;
        self.noise = (self.noise * 0.95 + deviation * 0.05).max(NOISE_MIN);
        let has_more_demand = measured.demand > 2 * (self.demand + measured.largest);
        if change.abs() > CHANGE.max(3.0 * self.noise) || has_more_demand {
            self.deviating += 1;
            if self.deviating >= DEVIATING_MAX {
                self.must_sweep = true;
                self.deviating = 0;
                self.reference = measured.rate;
                self.demand = measured.demand;
            }
            return;
        }
        self.deviating = 0;
        // Halves in half a second: demand that comes in bursts is not news each time.
        self.demand = measured.demand.max(self.demand - self.demand / 50);
        self.reference = self.reference * 0.8 + measured.rate * 0.2;
        self.evidence.bandwidth = bandwidth(measured.bandwidth);
    }

    fn candidate(&self, kind: Kind, measured: &Measured) -> Option<Setting> {
        let limit = self.base.limit;
        let candidate = match kind {
            Kind::Up if limit != UNLIMITED => self.base.with_limit(self.times(2)),
            Kind::FarUp if limit != UNLIMITED => self.base.with_limit(self.times(4)),
            Kind::Down => {
                let lower = step_down(limit.min(measured.peak));
                (lower >= measured.largest).then(|| self.base.with_limit(lower))?
            }
            Kind::FarDown => {
                let lower = limit.min(measured.peak) / 4;
                (lower >= measured.largest).then(|| self.base.with_limit(lower))?
            }
            Kind::HoldSlow if measured.has_slow && self.base.slow_part != self.slow_part => {
                self.base.with_slow_part(self.slow_part)
            }
            // Twice the share, not all at once: a long queue would take long to be served.
            Kind::FreeSlow if self.base.slow_part > 0 => {
                self.base.with_slow_part(self.base.slow_part / 2)
            }
            _ => return None,
        };
        Some(candidate)
    }

    /// Returns a multiple of the limit; none if that much was not in flight without a limit.
    const fn times(&self, factor: u64) -> u64 {
        let limit = self.base.limit.saturating_mul(factor);
        if limit < self.top { limit } else { UNLIMITED }
    }

    fn begin_trial(&mut self, kind: Kind, candidate: Setting) -> Setting {
        self.evidence.trials += 1;
        let (trial, is_candidate) = Trial::new(kind, candidate, self.noise);
        self.phase = Phase::Trial(trial);
        if is_candidate { candidate } else { self.base }
    }

    fn on_trial(&mut self, mut trial: Trial, measured: &Measured, now: Tick) -> Setting {
        let candidate = trial.candidate();
        let was_candidate = self.setting == candidate;
        trial.add(measured, was_candidate);
        if !was_candidate {
            self.watch(measured);
            if self.deviating > 0 {
                // The load has changed: what was compared is no longer comparable.
                return self.end_trial(false, now);
            }
        }
        let Some(is_better) = trial.verdict() else {
            let is_candidate = trial.next_is_candidate();
            self.phase = Phase::Trial(trial);
            return if is_candidate { candidate } else { self.base };
        };
        self.note(&trial, is_better);
        if is_better {
            self.set_base(candidate, now);
            self.reference = trial.candidate_rate();
            self.evidence.bandwidth = bandwidth(trial.candidate_bandwidth());
            if trial.kind() == Kind::HoldSlow {
                return self.sweep(measured, now);
            }
            // Once more in the same direction.
            self.next_kind = trial.kind().place();
        }
        self.end_trial(is_better, now)
    }

    /// Ends a trial; the next one begins at once if it moved the base.
    fn end_trial(&mut self, moved: bool, now: Tick) -> Setting {
        self.pause = if moved {
            PAUSE_MIN
        } else {
            Nanos::new(self.pause.get() * 3 / 2).min(PAUSE_MAX)
        };
        let pause = if moved { Nanos::ZERO } else { self.pause };
        self.phase = Phase::Hold { until: now + pause };
        self.base
    }

    /// Records what a trial has shown beside the limit that remains.
    fn note(&mut self, trial: &Trial, is_better: bool) {
        let candidate = Beside::new(trial.candidate().limit, trial.candidate_bandwidth());
        let base = Beside::new(self.base.limit, trial.base_bandwidth());
        let evidence = &mut self.evidence;
        match (trial.kind(), is_better) {
            (Kind::Up | Kind::FarUp, false) => evidence.above = Some(candidate),
            (Kind::Down | Kind::FarDown, false) => evidence.below = Some(candidate),
            (Kind::Up | Kind::FarUp, true) => (evidence.below, evidence.above) = (Some(base), None),
            (Kind::Down | Kind::FarDown, true) => {
                (evidence.above, evidence.below) = (Some(base), None)
            }
            (Kind::HoldSlow | Kind::FreeSlow, _) => {}
        }
    }

    fn set_base(&mut self, base: Setting, now: Tick) {
        if base != self.base {
            self.evidence.changed_at = now;
        }
        self.base = base;
    }
}

/// Divides by √2.
const fn step_down(limit: u64) -> u64 {
    limit.saturating_mul(128) / 181
}
/// Difference from the rate at the base that is a change of the load, if it lasts. Larger than any
/// noise seen, smaller than the effect of a device or host that comes or goes.
const CHANGE: f64 = 0.2;
/// Most that one epoch counts as noise.
const STALL: f64 = 0.5;
/// Epochs that a change lasts before it counts.
const DEVIATING_MAX: u32 = 3;
/// Relative noise of an epoch before any was measured, and the least that is assumed.
const NOISE: f64 = 0.02;
const NOISE_MIN: f64 = 0.004;
/// Pause between trials: short at first, since a sweep has only found the neighbourhood; trials
/// that find nothing cost up to a third of the bandwidth of an epoch in twenty at the end.
const PAUSE_MIN: Nanos = Nanos::from_millis(20);
const PAUSE_MAX: Nanos = Nanos::from_secs(1);
/// Time from a sweep to the next: a load that changes all the time is not swept all the time.
const SWEEP_PAUSE_MIN: Nanos = Nanos::from_millis(500);
const SWEEP_PAUSE_MAX: Nanos = Nanos::from_secs(8);
