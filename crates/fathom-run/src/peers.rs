//! Other ranks of a run, as the run sees them.

use std::cell::RefCell;

use fathom_core::{Nanos, Tick};
use fathom_hosts::{
    Checks, ClockComparison, Gate, Link, Progress, Ranks, StopReason, Verdict, Wave, WaveSpan,
};

/// Other ranks that run the same plan at the same time, on this host or others.
///
/// The run reports its progress, and asks what it may do, from the thread that called it; while its
/// jobs run, it asks between naps. No method waits for an answer, or spins.
///
/// ```text
/// checked → verdict → laid_out → files_ready → (ready → moment → … → ended → may_prepare) per wave
/// ```
///
/// [`Alone`] is the implementation of a run without others; [`Ranks`] that of several.
pub trait Peers {
    /// Takes what has arrived, and sends what is to be sent. The run calls it at least every 50 ms,
    /// and not later than [`patience`](Self::patience) after the last call. `idle`: no job runs
    /// here, and the run does nothing but wait.
    fn poll(&mut self, idle: bool);

    /// Returns the longest time until the next call of [`poll`](Self::poll).
    fn patience(&self) -> Nanos;

    /// Returns the place among all ranks.
    fn place(&self) -> PeerPlace;

    /// Reports the result of checking the plan.
    fn checked(&mut self, checks: Checks);

    /// Returns the verdict of all ranks on the plan, once there is one.
    fn verdict(&self) -> Option<Verdict>;

    /// Reports that the files are laid out that this rank is to lay out.
    fn laid_out(&mut self);

    /// Returns whether the files of all ranks are laid out.
    fn files_ready(&self) -> bool;

    /// Reports that the jobs of a wave wait to start.
    fn ready(&mut self, wave: Wave);

    /// Returns the moment at which the jobs of a wave start.
    fn moment(&self, wave: Wave) -> Moment;

    /// Reports that the last job of a wave has just ended. `late_ns`: start of its first job after
    /// the agreed moment; `None` if none started.
    fn ended(&mut self, wave: Wave, late_ns: Option<i64>);

    /// Returns whether the jobs of the next wave may be prepared: the last one has ended on all
    /// ranks, so that the files are as it left them.
    fn may_prepare(&self) -> bool;

    /// Requests that all ranks end a wave.
    fn ask_end(&mut self, wave: Wave);

    /// Returns whether jobs of a wave that run have to end.
    fn ends(&self, wave: Wave) -> bool;

    /// Requests that all ranks stop.
    fn ask_stop(&mut self, reason: StopReason);

    /// Returns the reason for which nothing more starts, if so.
    fn stop(&self) -> Option<StopReason>;

    /// Returns whether the progress is to be reported now.
    fn wants_progress(&self) -> bool;

    /// Reports the progress of this rank's jobs.
    fn set_progress(&mut self, progress: Progress);

    /// Returns this host's clock and waves, for the record; `None` in a run alone.
    fn times(&self) -> Option<PeerTimes>;
}

/// Place of a rank among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerPlace {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of ranks on this host.
    pub host_ranks: u32,
}

/// Moment at which the jobs of a wave start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It is not agreed yet.
    Unknown,
    /// It is agreed. Both times count from now; negative ones are past.
    In {
        /// Start of the wave.
        left_ns: i64,
        /// Start of the first wave of the run, from which `startdelay` counts.
        origin_ns: i64,
    },
    /// The wave never starts, for this reason.
    Never(StopReason),
}

impl Moment {
    /// Now, as the first moment of the run.
    pub(crate) const NOW: Self = Self::In {
        left_ns: 0,
        origin_ns: 0,
    };
}

/// Clock and waves of this host, for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerTimes {
    /// Wall clock against the common one; `None` if they were not compared.
    pub clock: Option<ClockComparison>,
    /// Waves that ran here, in order.
    pub waves: Vec<WaveSpan>,
}

/// No other ranks: everything may be done at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Peers for Alone {
    fn poll(&mut self, _idle: bool) {}

    fn patience(&self) -> Nanos {
        Nanos::MAX
    }

    fn place(&self) -> PeerPlace {
        PeerPlace {
            rank: 0,
            ranks: 1,
            host_ranks: 1,
        }
    }

    fn checked(&mut self, _checks: Checks) {}

    fn verdict(&self) -> Option<Verdict> {
        Some(Verdict::Sound { others: Vec::new() })
    }

    fn laid_out(&mut self) {}

    fn files_ready(&self) -> bool {
        true
    }

    fn ready(&mut self, _wave: Wave) {}

    fn moment(&self, _wave: Wave) -> Moment {
        Moment::NOW
    }

    fn ended(&mut self, _wave: Wave, _late_ns: Option<i64>) {}

    fn may_prepare(&self) -> bool {
        true
    }

    fn ask_end(&mut self, _wave: Wave) {}

    fn ends(&self, _wave: Wave) -> bool {
        false
    }

    fn ask_stop(&mut self, _reason: StopReason) {}

    fn stop(&self) -> Option<StopReason> {
        None
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn set_progress(&mut self, _progress: Progress) {}

    fn times(&self) -> Option<PeerTimes> {
        None
    }
}

impl<L: Link> Peers for Ranks<L> {
    fn poll(&mut self, idle: bool) {
        self.poll(idle);
    }

    fn patience(&self) -> Nanos {
        self.patience()
    }

    fn place(&self) -> PeerPlace {
        let (rank, ranks) = self.place();
        PeerPlace {
            rank: rank.get(),
            ranks,
            host_ranks: self.options().host_ranks,
        }
    }

    fn checked(&mut self, checks: Checks) {
        self.checked(checks);
    }

    fn verdict(&self) -> Option<Verdict> {
        self.verdict().cloned()
    }

    fn laid_out(&mut self) {
        self.laid_out();
    }

    fn files_ready(&self) -> bool {
        self.files_ready()
    }

    fn ready(&mut self, wave: Wave) {
        self.ready(wave);
    }

    fn moment(&self, wave: Wave) -> Moment {
        let now = self.now();
        match self.gate(wave) {
            Gate::Wait => Moment::Unknown,
            Gate::Over(reason) => Moment::Never(reason),
            Gate::At(start) => Moment::In {
                left_ns: from_to(now, start.at),
                origin_ns: from_to(now, start.origin),
            },
        }
    }

    fn ended(&mut self, wave: Wave, late_ns: Option<i64>) {
        self.ended(wave, late_ns);
    }

    fn may_prepare(&self) -> bool {
        self.may_prepare()
    }

    fn ask_end(&mut self, wave: Wave) {
        self.ask_end(wave);
    }

    fn ends(&self, wave: Wave) -> bool {
        self.ends(wave)
    }

    fn ask_stop(&mut self, reason: StopReason) {
        self.ask_stop(reason);
    }

    fn stop(&self) -> Option<StopReason> {
        self.stop()
    }

    fn wants_progress(&self) -> bool {
        self.wants_progress()
    }

    fn set_progress(&mut self, progress: Progress) {
        self.set_progress(progress);
    }

    fn times(&self) -> Option<PeerTimes> {
        Some(PeerTimes {
            clock: self.comparison(),
            waves: self.waves().to_vec(),
        })
    }
}

/// Peers that the caller of a run observes, too, between the events that it receives.
impl<P: Peers> Peers for &RefCell<P> {
    fn poll(&mut self, idle: bool) {
        self.borrow_mut().poll(idle);
    }

    fn patience(&self) -> Nanos {
        self.borrow().patience()
    }

    fn place(&self) -> PeerPlace {
        self.borrow().place()
    }

    fn checked(&mut self, checks: Checks) {
        self.borrow_mut().checked(checks);
    }

    fn verdict(&self) -> Option<Verdict> {
        self.borrow().verdict()
    }

    fn laid_out(&mut self) {
        self.borrow_mut().laid_out();
    }

    fn files_ready(&self) -> bool {
        self.borrow().files_ready()
    }

    fn ready(&mut self, wave: Wave) {
        self.borrow_mut().ready(wave);
    }

    fn moment(&self, wave: Wave) -> Moment {
        self.borrow().moment(wave)
    }

    fn ended(&mut self, wave: Wave, late_ns: Option<i64>) {
        self.borrow_mut().ended(wave, late_ns);
    }

    fn may_prepare(&self) -> bool {
        self.borrow().may_prepare()
    }

    fn ask_end(&mut self, wave: Wave) {
        self.borrow_mut().ask_end(wave);
    }

    fn ends(&self, wave: Wave) -> bool {
        self.borrow().ends(wave)
    }

    fn ask_stop(&mut self, reason: StopReason) {
        self.borrow_mut().ask_stop(reason);
    }

    fn stop(&self) -> Option<StopReason> {
        self.borrow().stop()
    }

    fn wants_progress(&self) -> bool {
        self.borrow().wants_progress()
    }

    fn set_progress(&mut self, progress: Progress) {
        self.borrow_mut().set_progress(progress);
    }

    fn times(&self) -> Option<PeerTimes> {
        self.borrow().times()
    }
}

/// Returns the time from one moment to another; negative if that is earlier.
pub(crate) fn from_to(from: Tick, to: Tick) -> i64 {
    let span = |later: Tick, earlier: Tick| i64::try_from((later - earlier).get());
    match to >= from {
        true => span(to, from).unwrap_or(i64::MAX),
        false => span(from, to).map_or(i64::MIN, |span| -span),
    }
}
