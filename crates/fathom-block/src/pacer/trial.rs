//! Trial of a setting other than the one in force.

use super::epoch::Measured;
use super::setting::Setting;
use super::sweep::{GAIN_MIN, WAITED_MIN};

/// Setting that a trial compares with the one in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A higher limit.
    Up,
    /// A lower limit.
    Down,
    /// A limit that is high enough to show a slope that is lost in the noise nearby.
    FarUp,
    /// A limit that is low enough to correct a disturbed sweep at once.
    FarDown,
    /// Slow devices held to a share.
    HoldSlow,
    /// Slow devices held to twice their share.
    FreeSlow,
}

/// Comparison of two settings by epochs in the order base, candidate, candidate, base, and so on:
/// a drift of the load is the same for both.
#[derive(Debug)]
pub(super) struct Trial {
    kind: Kind,
    candidate: Setting,
    noise: f64,
    epochs: u32,
    base: Sum,
    tried: Sum,
}

#[derive(Debug, Default)]
struct Sum {
    rate: f64,
    bandwidth: f64,
    waited: f64,
    count: u32,
}

impl Kind {
    /// Kinds in the order in which they are tried. Slow devices come first: while they take what
    /// the others need, no limit shows its effect.
    pub(super) const ALL: [Self; 6] = [
        Self::HoldSlow,
        Self::Up,
        Self::Down,
        Self::FarUp,
        Self::FarDown,
        Self::FreeSlow,
    ];

    /// Returns the place in [`ALL`](Self::ALL).
    pub(super) fn place(self) -> usize {
        let places = Self::ALL.iter();
        places.clone().position(|kind| *kind == self).unwrap_or(0)
    }

    /// Returns the smallest gain, relative to the base, that lets the candidate win.
    const fn gain_min(self) -> f64 {
        match self {
            // More buffers have to earn more bandwidth, fewer only to lose none that shows.
            Self::Up | Self::FarUp => 0.006,
            Self::Down => -0.004,
            // Beyond what noise explains: steps of `Down` cover the rest.
            Self::FarDown => 0.02,
            // Apart, or the share would go up and down for ever.
            Self::HoldSlow => 0.06,
            Self::FreeSlow => -0.02,
        }
    }
}

impl Trial {
    /// Begins a trial; the setting of the first epoch is the candidate's if the flag is true.
    pub(super) fn new(kind: Kind, candidate: Setting, noise: f64) -> (Self, bool) {
        let trial = Self {
            kind,
            candidate,
            noise,
            epochs: 0,
            base: Sum::default(),
            tried: Sum::default(),
        };
        let is_candidate = trial.next_is_candidate();
        (trial, is_candidate)
    }

    /// Returns true if the next epoch belongs to the candidate.
    pub(super) const fn next_is_candidate(&self) -> bool {
        matches!(self.epochs % 4, 1 | 2)
    }

    pub(super) fn add(&mut self, measured: &Measured, was_candidate: bool) {
        let sum = if was_candidate {
            &mut self.tried
        } else {
            &mut self.base
        };
        sum.rate += measured.rate;
        sum.bandwidth += measured.bandwidth;
        sum.waited += measured.waited;
        sum.count += 1;
        self.epochs += 1;
    }

    /// Returns true if the candidate is to be the base, false if not, `None` if that is open.
    pub(super) fn verdict(&self) -> Option<bool> {
        let pairs = self.base.count.min(self.tried.count);
        if self.base.count != self.tried.count || pairs == 0 {
            return None;
        }
        let gain = self.gain();
        if gain < LOSS_SURE {
            return Some(false);
        }
        // Twice the variance of one epoch, over the number of pairs.
        let error = self.noise * (2.0 / f64::from(pairs)).sqrt();
        let over = gain - self.kind.gain_min();
        if pairs >= PAIRS_MIN && over.abs() > error {
            return Some(over > 0.0 && self.holds_back());
        }
        // Indistinguishable settings are decided for fewer buffers, and for slow devices.
        let wins_ties = matches!(self.kind, Kind::Down | Kind::FreeSlow);
        let least = if wins_ties { -error / 2.0 } else { error / 2.0 };
        (pairs >= PAIRS_MAX).then(|| over > least && self.holds_back())
    }

    /// Returns true if a lower limit makes requests wait, or gains something all the same.
    fn holds_back(&self) -> bool {
        !matches!(self.kind, Kind::Down | Kind::FarDown)
            || self.tried.average(self.tried.waited) >= WAITED_MIN
            || self.gain() > GAIN_MIN
    }

    fn gain(&self) -> f64 {
        self.candidate_rate() / self.base.average(self.base.rate).max(1.0) - 1.0
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) const fn candidate(&self) -> Setting {
        self.candidate
    }

    pub(super) fn candidate_rate(&self) -> f64 {
        self.tried.average(self.tried.rate)
    }

    pub(super) fn candidate_bandwidth(&self) -> f64 {
        self.tried.average(self.tried.bandwidth)
    }

    pub(super) fn base_bandwidth(&self) -> f64 {
        self.base.average(self.base.bandwidth)
    }
}

impl Sum {
    fn average(&self, sum: f64) -> f64 {
        sum / f64::from(self.count.max(1))
    }
}

/// Loss that no noise explains: one pair is enough, and more would cost bandwidth.
const LOSS_SURE: f64 = -0.1;
/// Pairs before anything else is decided.
const PAIRS_MIN: u32 = 2;
/// Pairs after which the average decides.
const PAIRS_MAX: u32 = 6;
