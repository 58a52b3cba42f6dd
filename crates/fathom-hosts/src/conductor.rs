//! The conductor: decides which rank may start which wave, and when.

use std::collections::VecDeque;

use fathom_core::{Nanos, Tick};

use crate::checklist::Checklist;
use crate::events::{Event, Output};
use crate::messages::{Checks, Order, Progress, Report, Stage, StopReason};
use crate::offset::RemoteClock;
use crate::rank::RANKS_MAX;
use crate::seat::{Place, Seat, Standing, Tally};
use crate::{Rank, Wave};

/// State machine beside rank 0 that starts the waves of all ranks together.
///
/// Create it with [`Conductor::new`], and feed it with [`handle_report`](Self::handle_report) and,
/// from [`wake_at`](Self::wake_at) on, [`handle_timeout`](Self::handle_timeout); after each of them
/// and after each command take what is to be sent or reported from
/// [`poll_output`](Self::poll_output). Hand over reports that have arrived before a time-out. Rank
/// 0 has its own [`Member`](crate::Member) like all others; its messages need no transport.
///
/// 1. All ranks report their checks. If all are sound, each lays out its files; a file that several
///    name is the lowest rank's. Otherwise no rank creates or starts anything.
/// 2. When no rank runs jobs, and all wait at a gate or are through, the smallest wave that is
///    waited for starts, [`START_LEAD`] ahead on the common clock, which is rank 0's. When it has
///    ended on all ranks, they prepare their next ones.
/// 3. When all are through or lost, the caller gathers the records and calls
///    [`leave`](Self::leave).
///
/// A rank is lost when it was silent for [`SILENCE_MAX`], or when the transport says so
/// ([`handle_gone`](Self::handle_gone)). Then no further wave starts; those that run end.
///
/// A report costs the same with any number of ranks; an order to all ranks costs a step for each of
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Conductor {
    seats: Vec<Seat>,
    tally: Tally,
    stop_together: bool,
    checklist: Checklist,
    /// Result of the checks, once all ranks have made theirs.
    sound: Option<bool>,
    files_ready: bool,
    stop: Option<StopReason>,
    /// Start of the first wave, on the common clock.
    origin: Option<Tick>,
    /// A rank ran a wave at the last step.
    runs: bool,
    /// Last wave that all end now: a rank was through with it, under `--stop-together`, or asked.
    over: Option<Wave>,
    told_through: bool,
    /// Exit code, once ranks may leave.
    leave: Option<u8>,
    /// Worst exit code so far.
    code: u8,
    /// Time of the last look for silent ranks.
    scanned_at: Tick,
    out: VecDeque<Output>,
}

/// Error of [`Conductor::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRankCount {
    /// Number of ranks.
    pub ranks: u32,
}

impl std::fmt::Display for BadRankCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ranks: between 1 and {RANKS_MAX} can run", self.ranks)
    }
}

impl std::error::Error for BadRankCount {}

impl Conductor {
    /// Creates the conductor of `ranks` ranks. `stop_together`: when one rank is through with a
    /// wave, the others end it.
    ///
    /// # Errors
    /// No ranks, or more than [`RANKS_MAX`].
    pub fn new(now: Tick, ranks: u32, stop_together: bool) -> Result<Self, BadRankCount> {
        if !(1..=RANKS_MAX).contains(&ranks) {
            return Err(BadRankCount { ranks });
        }
        Ok(Self {
            seats: (0..ranks).map(|_| Seat::new(now)).collect(),
            tally: Tally::new(ranks),
            stop_together,
            checklist: Checklist::default(),
            sound: None,
            files_ready: false,
            stop: None,
            origin: None,
            runs: false,
            over: None,
            told_through: false,
            leave: None,
            code: 0,
            scanned_at: now,
            out: VecDeque::new(),
        })
    }

    /// Starts nothing on a rank before [`set_clock`](Self::set_clock) was called for it. Without
    /// this all clocks are taken to be rank 0's. Call it before the first report.
    #[must_use]
    pub fn awaiting_clocks(mut self) -> Self {
        for seat in self.seats.iter_mut().skip(1) {
            seat.clock_known = false;
        }
        self
    }

    /// Sets the clock of a rank, in which its start times are given. A rank that does not exist is
    /// ignored.
    pub fn set_clock(&mut self, now: Tick, rank: Rank, clock: RemoteClock) {
        if rank.index() < self.seats.len() {
            self.change(rank, |seat| {
                seat.clock = clock;
                seat.clock_known = true;
            });
            self.advance(now);
        }
    }

    /// Lets all ranks leave with this exit code: their records are in, or given up.
    pub fn leave(&mut self, code: u8) {
        self.leave = Some(code);
        self.send_to_all();
    }

    /// Handles a report. One from a rank that does not exist is ignored.
    pub fn handle_report(&mut self, now: Tick, from: Rank, report: Report) {
        let Some(seat) = self.seats.get_mut(from.index()) else {
            return;
        };
        seat.heard_at = seat.heard_at.max(now);
        let place = Place::of(&report.stage);
        let is_old = place.key() < seat.place.key();
        if !is_old && report.progress.elapsed >= seat.progress.elapsed {
            seat.progress = report.progress;
        }
        if seat.lost && !seat.returned {
            seat.returned = true;
            self.tell(Event::RankReturned(from));
        }
        if let Some(reason) = report.wants_stop {
            self.stop_all(reason, from);
        }
        let wants_end = report.wants_end;
        self.end_wave(wants_end.filter(|&wave| self.has_started(from, wave)));
        let seat = &self.seats[from.index()];
        if place.key() > seat.place.key() {
            self.enters(from, place, report.stage);
        }
        self.advance(now);
        if !self.send(from) {
            let order = Order::Heard;
            self.out.push_back(Output::Send { to: from, order });
        }
    }

    /// Handles the word of the transport that a rank is gone.
    pub fn handle_gone(&mut self, now: Tick, rank: Rank) {
        if rank.index() < self.seats.len() {
            self.lose(now, rank);
            self.advance(now);
        }
    }

    /// Looks for ranks that have been silent for too long.
    pub fn handle_timeout(&mut self, now: Tick) {
        let late = (now - self.scanned_at) - SCAN_EVERY;
        // This process did not run for a while: silence meanwhile is not the fault of other ranks.
        let pause = if late > OWN_PAUSE_MAX {
            late
        } else {
            Nanos::ZERO
        };
        self.scanned_at = self.scanned_at.max(now);
        for index in 0..self.seats.len() {
            let seat = &mut self.seats[index];
            seat.heard_at += pause;
            if now - seat.heard_at >= SILENCE_MAX {
                self.lose(now, rank_at(index));
            }
        }
        self.advance(now);
    }

    /// Takes the next order or event.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Returns the time of the next call of [`handle_timeout`](Self::handle_timeout).
    #[must_use]
    pub fn wake_at(&self) -> Tick {
        self.scanned_at + SCAN_EVERY
    }

    /// Returns the progress of all ranks, lost ones included.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let mut sum = Progress::default();
        for seat in &self.seats {
            sum.add(&seat.progress);
        }
        sum
    }

    /// Returns the progress of one rank.
    #[must_use]
    pub fn progress_of(&self, rank: Rank) -> Option<Progress> {
        Some(self.seats.get(rank.index())?.progress)
    }

    /// Returns the lost ranks, rising.
    pub fn lost(&self) -> impl Iterator<Item = Rank> {
        let lost = self.seats.iter().enumerate().filter(|(_, seat)| seat.lost);
        lost.map(|(index, _)| rank_at(index))
    }

    /// Returns the reason for which all ranks stop, if they do: also those that are through, which
    /// no order reaches.
    #[must_use]
    pub const fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// Returns the worst exit code of the ranks: 2 if one has failed or is lost, or if the plan was
    /// refused.
    #[must_use]
    pub const fn worst_code(&self) -> u8 {
        self.code
    }

    /// Returns whether a wave was started for a rank.
    #[must_use]
    pub fn has_started(&self, rank: Rank, wave: Wave) -> bool {
        let seat = self.seats.get(rank.index());
        seat.is_some_and(|seat| seat.is_granted(wave))
    }

    /// Returns whether a rank waits at a gate for its clock to be known.
    #[must_use]
    pub fn awaits_clock(&self, rank: Rank) -> bool {
        let seat = self.seats.get(rank.index());
        seat.is_some_and(|seat| !seat.clock_known && matches!(seat.place, Place::Ready(_)))
    }

    /// Returns whether a rank is lost, or has left.
    #[must_use]
    pub fn is_gone(&self, rank: Rank) -> bool {
        let seat = self.seats.get(rank.index());
        seat.is_none_or(|seat| matches!(seat.standing(), Standing::Lost | Standing::Left))
    }

    /// Returns whether the rank has not reported the result of its checks yet.
    #[must_use]
    pub fn is_checking(&self, rank: Rank) -> bool {
        let seat = self.seats.get(rank.index());
        seat.is_some_and(|seat| seat.standing() == Standing::Checking)
    }

    /// Returns the clock of a rank; `None` before it is known.
    #[must_use]
    pub fn clock_of(&self, rank: Rank) -> Option<&RemoteClock> {
        let seat = self.seats.get(rank.index())?;
        seat.clock_known.then_some(&seat.clock)
    }

    /// Returns whether all ranks have left or are lost.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let gone = self.tally.count(&[Standing::Left, Standing::Lost]);
        gone as usize == self.seats.len()
    }

    /// Moves a rank to a later place.
    fn enters(&mut self, rank: Rank, place: Place, stage: Stage) {
        self.change(rank, |seat| seat.place = place);
        let seat = &self.seats[rank.index()];
        match stage {
            Stage::Checked(checks) if !seat.lost => self.add_checks(rank, checks),
            Stage::LaidOut => self.checklist.laid_out(rank),
            Stage::Through { code } => self.code = self.code.max(code),
            Stage::Failed(reason) => {
                self.code = self.code.max(EXIT_FAILED);
                self.tell(Event::RankFailed { rank, reason });
            }
            _ => {}
        }
        if self.stop_together {
            self.end_wave(self.seats[rank.index()].ended());
        }
    }

    /// Ends a wave on all ranks, if one is given.
    fn end_wave(&mut self, wave: Option<Wave>) {
        if wave > self.over {
            self.over = wave;
            self.send_to_all();
        }
    }

    fn add_checks(&mut self, rank: Rank, checks: Checks) {
        // A rank that skipped its checks was not waited for.
        if self.sound.is_none() {
            self.checklist.add(rank, checks);
        }
    }

    /// Changes a rank's state, and the tally with it.
    fn change(&mut self, rank: Rank, change: impl FnOnce(&mut Seat)) {
        let seat = &mut self.seats[rank.index()];
        let before = seat.standing();
        change(seat);
        self.tally.moves(before, seat.standing());
    }

    fn stop_all(&mut self, reason: StopReason, rank: Rank) {
        if reason.replaces(self.stop) {
            self.stop = Some(reason);
            self.tell(Event::Stopping { reason, rank });
            self.send_to_all();
        }
    }

    fn lose(&mut self, now: Tick, rank: Rank) {
        let seat = &self.seats[rank.index()];
        match seat.standing() {
            Standing::Lost | Standing::Left => return,
            // Told to leave, and has: only its last word has not arrived.
            Standing::Through if self.leave.is_some() => {
                self.change(rank, |seat| seat.place = Place::Left);
                return;
            }
            _ => {}
        }
        let silent = now - seat.heard_at;
        self.change(rank, |seat| seat.lost = true);
        self.code = self.code.max(EXIT_FAILED);
        self.tell(Event::RankLost { rank, silent });
        self.stop_all(StopReason::RankLost, rank);
    }

    /// Does all that has become possible.
    fn advance(&mut self, now: Tick) {
        use Standing::{Busy, Checking, LayingOut, Running, Waiting};
        if self.sound.is_none() && self.stop.is_none() && self.tally.count(&[Checking]) == 0 {
            self.decide();
        }
        let behind = self.tally.count(&[Checking, LayingOut]);
        if self.sound == Some(true) && !self.files_ready && behind == 0 {
            self.files_ready = true;
            self.checklist.forget_files();
            self.send_to_all();
        }
        let ran = std::mem::replace(&mut self.runs, self.tally.count(&[Running]) > 0);
        if ran && !self.runs {
            self.send_to_all();
        }
        let may_start = self.files_ready && self.stop.is_none();
        if may_start && behind + self.tally.count(&[Busy, Running]) == 0 {
            self.start_wave(now);
        }
        let under_way = self
            .tally
            .count(&[Checking, LayingOut, Busy, Running, Waiting]);
        if under_way == 0 && !self.told_through {
            self.told_through = true;
            self.tell(Event::AllThrough);
        }
    }

    /// Decides on the plan, now that all have checked it.
    fn decide(&mut self) {
        let is_sound = self.checklist.is_sound();
        self.sound = Some(is_sound);
        if is_sound {
            self.tell(Event::Sound);
        } else {
            self.code = self.code.max(EXIT_FAILED);
            let (refusals, left_out) = self.checklist.refusals();
            self.tell(Event::Refused { refusals, left_out });
        }
        self.send_to_all();
    }

    /// Starts the smallest wave that ranks wait for, if any do.
    fn start_wave(&mut self, now: Tick) {
        let waits = |seat: &Seat| match seat.place {
            Place::Ready(wave) if seat.standing() == Standing::Waiting => Some(wave),
            _ => None,
        };
        let Some(wave) = self.seats.iter().filter_map(waits).min() else {
            return;
        };
        self.runs = true;
        let at = now + START_LEAD;
        let origin = *self.origin.get_or_insert(at);
        let (mut ranks, mut bound) = (0, Nanos::ZERO);
        for index in 0..self.seats.len() {
            if waits(&self.seats[index]) != Some(wave) {
                continue;
            }
            let to = rank_at(index);
            self.change(to, |seat| seat.granted = Some((wave, at)));
            if let Some(start) = self.seats[index].start(origin) {
                (ranks, bound) = (ranks + 1, start.bound.max(bound));
                let order = Order::Start(start);
                self.out.push_back(Output::Send { to, order });
            }
        }
        self.tell(Event::WaveStarts {
            wave,
            at,
            ranks,
            bound,
        });
    }

    /// Returns all that a rank has to know now. It follows from the state alone, so that a repeated
    /// answer heals a lost one.
    fn order_for(&self, rank: Rank) -> Order {
        let seat = &self.seats[rank.index()];
        if let (Some(code), Place::Through | Place::Left) = (self.leave, seat.place) {
            return Order::Leave { code };
        }
        let at_rest = self.stop.map_or(Order::Heard, Order::Stop);
        match (seat.place, self.stop) {
            (Place::Through | Place::Left, _) => Order::Heard,
            (_, Some(reason)) if reason.ends_running() => Order::Stop(reason),
            _ if self.sound == Some(false) => Order::Refused,
            (Place::Checked, None) if self.sound == Some(true) => Order::LayOut {
                others: self.checklist.others(rank),
            },
            (Place::LaidOut, None) if self.files_ready => Order::FilesReady,
            // A lost rank that returns would start late, or again.
            (Place::Ready(wave), _) if seat.is_granted(wave) && !seat.lost => {
                let origin = self.origin.unwrap_or_default();
                seat.start(origin).map_or(at_rest, Order::Start)
            }
            (Place::Running(_), _) => Order::Heard,
            (Place::Ended(wave), None) if self.tally.count(&[Standing::Running]) == 0 => {
                Order::AllEnded(wave)
            }
            _ => at_rest,
        }
    }

    /// Returns the wave that the rank has to end, because of another.
    fn wave_to_end(&self, rank: Rank) -> Option<Wave> {
        let seat = &self.seats[rank.index()];
        let (wave, _) = seat.granted?;
        (self.over >= Some(wave) && seat.ended().is_none()).then_some(wave)
    }

    /// Sends to a rank what it has to know; returns whether that is anything.
    fn send(&mut self, to: Rank) -> bool {
        let end = self.wave_to_end(to).map(Order::EndWave);
        let orders = [Some(self.order_for(to)), end].into_iter().flatten();
        let before = self.out.len();
        let orders = orders.filter(|order| *order != Order::Heard);
        self.out
            .extend(orders.map(|order| Output::Send { to, order }));
        self.out.len() > before
    }

    /// Sends to each rank that is not lost what it has to know, if that is anything.
    fn send_to_all(&mut self) {
        for index in 0..self.seats.len() {
            if !self.seats[index].lost {
                self.send(rank_at(index));
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.out.push_back(Output::Tell(event));
    }
}

fn rank_at(index: usize) -> Rank {
    // Cannot fail: at most `RANKS_MAX` seats.
    Rank::new(u32::try_from(index).unwrap_or(u32::MAX))
}

/// Time from the order to start to the start: the orders to 1,000 ranks are ready in 0.3 ms of a
/// development build, which leaves the rest to the network.
pub const START_LEAD: Nanos = Nanos::from_millis(20);
/// Silence after which a rank is lost: eleven reports in a row. As the conductor looks twice a
/// second, the rank is named within 12 s; a link that was down for 5 s loses nothing.
pub const SILENCE_MAX: Nanos = Nanos::from_secs(11);
/// Interval between looks for silent ranks.
const SCAN_EVERY: Nanos = Nanos::from_millis(500);
/// Lateness of such a look that is taken for a pause of this process.
const OWN_PAUSE_MAX: Nanos = Nanos::from_secs(1);
/// Exit code of a run that could not be done.
pub(crate) const EXIT_FAILED: u8 = 2;
