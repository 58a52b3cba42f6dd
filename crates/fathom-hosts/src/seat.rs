//! State of one rank as the conductor knows it.

use fathom_core::Tick;

use crate::Wave;
use crate::messages::{Progress, Stage, Start};
use crate::offset::RemoteClock;

/// Rank as the conductor knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seat {
    pub(crate) place: Place,
    /// Last wave that was started for the rank, and its time on the common clock.
    pub(crate) granted: Option<(Wave, Tick)>,
    pub(crate) progress: Progress,
    pub(crate) clock: RemoteClock,
    /// Its clock is known, without which it cannot be given a time to start.
    pub(crate) clock_known: bool,
    /// Time of its last report.
    pub(crate) heard_at: Tick,
    /// The rank was silent for too long. It stays lost, even if it returns.
    pub(crate) lost: bool,
    /// A lost rank has been heard of again.
    pub(crate) returned: bool,
}

impl Seat {
    pub(crate) fn new(now: Tick) -> Self {
        Self {
            place: Place::Checking,
            granted: None,
            progress: Progress::default(),
            clock: RemoteClock::ours(),
            clock_known: true,
            heard_at: now,
            lost: false,
            returned: false,
        }
    }

    /// Returns the state that decides whether others may go on.
    pub(crate) fn standing(&self) -> Standing {
        if self.lost {
            return Standing::Lost;
        }
        match self.place {
            Place::Checking => Standing::Checking,
            Place::Checked => Standing::LayingOut,
            Place::Ready(wave) if self.clock_known && !self.is_granted(wave) => Standing::Waiting,
            Place::Ready(wave) if self.is_granted(wave) => Standing::Running,
            Place::Running(_) => Standing::Running,
            Place::LaidOut | Place::Ready(_) | Place::Ended(_) => Standing::Busy,
            Place::Through => Standing::Through,
            Place::Left => Standing::Left,
        }
    }

    /// Returns whether the wave was started for this rank.
    pub(crate) fn is_granted(&self, wave: Wave) -> bool {
        self.granted.is_some_and(|(granted, _)| granted >= wave)
    }

    /// Returns the start of the wave that was granted last, on the clock of the rank; `origin` is
    /// the start of the run's first wave, on the common clock.
    pub(crate) fn start(&self, origin: Tick) -> Option<Start> {
        let (wave, at) = self.granted?;
        let (at, bound) = self.clock.to_remote(at);
        let (origin, _) = self.clock.to_remote(origin);
        Some(Start {
            wave,
            at,
            bound,
            origin,
        })
    }

    /// Returns the wave that has ended here since it was granted, if any.
    pub(crate) fn ended(&self) -> Option<Wave> {
        let (wave, _) = self.granted?;
        (self.place.key() > Place::Running(wave).key()).then_some(wave)
    }
}

/// Stage without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Checking,
    Checked,
    LaidOut,
    Ready(Wave),
    Running(Wave),
    Ended(Wave),
    /// Through or failed.
    Through,
    Left,
}

impl Place {
    pub(crate) const fn of(stage: &Stage) -> Self {
        match stage {
            Stage::Checking => Self::Checking,
            Stage::Checked(_) => Self::Checked,
            Stage::LaidOut => Self::LaidOut,
            Stage::Ready(wave) => Self::Ready(*wave),
            Stage::Running(wave) => Self::Running(*wave),
            Stage::Ended(wave) => Self::Ended(*wave),
            Stage::Through { .. } | Stage::Failed(_) => Self::Through,
            Stage::Left => Self::Left,
        }
    }

    /// Returns the order of places: a rank never moves to a lower one, so that a report with a
    /// lower one is an old one.
    pub(crate) const fn key(self) -> (u8, u32, u8) {
        match self {
            Self::Checking => (0, 0, 0),
            Self::Checked => (1, 0, 0),
            Self::LaidOut => (2, 0, 0),
            Self::Ready(wave) => (3, wave.get(), 0),
            Self::Running(wave) => (3, wave.get(), 1),
            Self::Ended(wave) => (3, wave.get(), 2),
            Self::Through => (4, 0, 0),
            Self::Left => (5, 0, 0),
        }
    }
}

/// State of a rank that decides whether others may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Checking,
    LayingOut,
    /// Is on its way to a gate, or waits there for its clock to be known.
    Busy,
    /// Runs a wave, or has been told when to.
    Running,
    /// Waits at a gate.
    Waiting,
    Through,
    Left,
    Lost,
}

/// Number of ranks in each standing, so that a report costs the same with any number of ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tally([u32; 8]);

impl Tally {
    /// Creates the tally of `ranks` ranks that have not been heard from.
    pub(crate) fn new(ranks: u32) -> Self {
        let mut counts = [0; 8];
        counts[Standing::Checking as usize] = ranks;
        Self(counts)
    }

    pub(crate) fn moves(&mut self, from: Standing, to: Standing) {
        self.0[from as usize] -= 1;
        self.0[to as usize] += 1;
    }

    pub(crate) fn count(&self, standings: &[Standing]) -> u32 {
        let counts = standings.iter().map(|&standing| self.0[standing as usize]);
        counts.sum()
    }
}
