//! One rank of a run: its state machine, its messages, and on rank 0 the conductor.

use fathom_core::{Nanos, Tick};

use crate::comparisons::{Comparisons, LISTENING_NAP, Step};
use crate::conductor::{BadRankCount, Conductor};
use crate::error::MessageError;
use crate::events::{Event, Output};
use crate::link::{Link, LinkError};
use crate::member::{Gate, Member, Verdict};
use crate::messages::{Checks, CommonTime, Message, Progress, Report, Stage, StopReason};
use crate::offset::RemoteClock;
use crate::{Rank, Text, Wave};

/// One rank of a run and, beside rank 0, the conductor of all: carries their messages over a
/// [`Link`], and compares the clocks.
///
/// 1. The run reports its progress ([`checked`](Self::checked), [`laid_out`](Self::laid_out),
///    [`ready`](Self::ready), [`ended`](Self::ended)), and asks by the getters what it may do.
/// 2. The program reports that the record is written ([`through`](Self::through)), or that there is
///    none ([`failed`](Self::failed)). On rank 0, once [`is_all_through`](Self::is_all_through), it
///    gathers the records and calls [`leave`](Self::leave).
/// 3. All end when [`may_leave`](Self::may_leave) has a code.
///
/// All the while [`poll`](Self::poll) is called, at least every 50 ms and after
/// [`patience`](Self::patience): nothing is sent or received otherwise. No method waits.
///
/// Cost: a rank that runs jobs sends and receives a message a second, and answers some ten pings
/// every 30 s. One that waits looks 500 times a second, and spins for some ms while its clock is
/// compared.
pub struct Ranks<L> {
    link: L,
    /// The link has failed, and is not used any more.
    link_failed: bool,
    options: RanksOptions,
    member: Member,
    /// On rank 0.
    lead: Option<Lead>,
    /// Time since which no job runs here; `None` while one does.
    idle_since: Option<Tick>,
    /// End of the time for which pings are expected.
    listening: Option<Tick>,
    /// Reading of the common clock that rank 0 has told.
    common: Option<CommonTime>,
    waves: Vec<WaveSpan>,
    /// A message that cannot be read was told.
    told_bad: bool,
}

/// Options of [`Ranks`].
pub struct RanksOptions {
    /// Clock of this process: steady, and the same as long as the ranks talk.
    pub clock: Box<dyn Fn() -> Tick>,
    /// Wall clock at the origin of `clock`, ns since 1970.
    pub wall_origin_ns: u64,
    /// Number of ranks on this host, which share its processors.
    pub host_ranks: u32,
    /// On rank 0: when one rank is through with a wave, all end it.
    pub stop_together: bool,
    /// Receives events; all but those about the link occur on rank 0 alone.
    pub tell: Box<dyn FnMut(&Event)>,
}

/// Wave that ran on this rank. Times are those of its own wall clock, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveSpan {
    /// Wave.
    pub wave: Wave,
    /// Agreed start.
    pub agreed_ns: u64,
    /// Largest error of the agreed start against the common clock.
    pub bound: Nanos,
    /// Start of its first job.
    pub start_ns: u64,
    /// End of its last job.
    pub end_ns: u64,
}

/// This rank's wall clock against the common one, when its first wave started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockComparison {
    /// Own clock minus the common one.
    pub offset_ns: i64,
    /// Largest error of the offset.
    pub bound: Nanos,
    /// Rate of the own clock against the common one, in billionths; `None` if it is not known.
    pub drift_ppb: Option<i64>,
}

/// Parts of rank 0.
struct Lead {
    conductor: Conductor,
    comparisons: Comparisons,
    is_all_through: bool,
}

impl<L: Link> Ranks<L> {
    /// Creates a rank that begins to check its plan.
    ///
    /// # Errors
    /// The link has no ranks, or too many.
    pub fn new(link: L, options: RanksOptions) -> Result<Self, BadRankCount> {
        let now = (options.clock)();
        let ranks = link.ranks();
        let conductor = Conductor::new(now, ranks, options.stop_together)?;
        let lead = (link.rank() == LEADER).then(|| Lead {
            conductor: conductor.awaiting_clocks(),
            comparisons: Comparisons::new(ranks),
            is_all_through: false,
        });
        Ok(Self {
            link,
            link_failed: false,
            options,
            member: Member::new(now),
            lead,
            idle_since: Some(now),
            listening: None,
            common: None,
            waves: Vec::new(),
            told_bad: false,
        })
    }

    /// Reports the result of the checks. [`verdict`](Self::verdict) follows.
    pub fn checked(&mut self, checks: Checks) {
        self.enter(Stage::Checked(checks));
    }

    /// Reports that the files are laid out. [`files_ready`](Self::files_ready) follows.
    pub fn laid_out(&mut self) {
        self.enter(Stage::LaidOut);
    }

    /// Reports that the jobs of a wave wait to start. [`gate`](Self::gate) follows.
    pub fn ready(&mut self, wave: Wave) {
        self.enter(Stage::Ready(wave));
    }

    /// Reports that the last job of a wave has just ended. `late_ns`: start of its first job after
    /// the agreed moment; `None` if none ran.
    pub fn ended(&mut self, wave: Wave, late_ns: Option<i64>) {
        let start = self.member.start().filter(|start| start.wave == wave);
        if let Some((start, late_ns)) = start.zip(late_ns) {
            let agreed_ns = self.wall_ns(start.at);
            self.waves.push(WaveSpan {
                wave,
                agreed_ns,
                bound: start.bound,
                start_ns: agreed_ns.saturating_add_signed(late_ns),
                end_ns: self.wall_ns(self.now()),
            });
        }
        self.enter(Stage::Ended(wave));
    }

    /// Reports that the jobs have ended and the record is written; `code`: this rank's exit code.
    pub fn through(&mut self, code: u8) {
        self.enter(Stage::Through { code });
    }

    /// Reports that there will be no record, and why.
    pub fn failed(&mut self, reason: &str) {
        self.enter(Stage::Failed(Text::new(reason)));
    }

    /// Requests that all ranks stop.
    pub fn ask_stop(&mut self, reason: StopReason) {
        self.member.ask_stop(reason);
        self.flush();
    }

    /// Requests that all ranks end a wave.
    pub fn ask_end(&mut self, wave: Wave) {
        self.member.ask_end(wave);
        self.flush();
    }

    /// Sets the progress for the next report.
    pub const fn set_progress(&mut self, progress: Progress) {
        self.member.set_progress(progress);
    }

    /// Lets all ranks leave with this code, once their records are in or given up; on rank 0.
    pub fn leave(&mut self, code: u8) {
        if let Some(lead) = &mut self.lead {
            lead.conductor.leave(code);
        }
        self.flush();
    }

    /// Takes what has arrived, and sends what is to be sent. `idle`: no job runs here, and the
    /// caller does nothing but wait.
    pub fn poll(&mut self, idle: bool) {
        self.receive();
        let now = self.now();
        self.idle_since = idle.then(|| self.idle_since.unwrap_or(now));
        if now >= self.member.wake_at() {
            self.member.handle_timeout(now);
        }
        if let Some(lead) = &mut self.lead
            && now >= lead.conductor.wake_at()
        {
            lead.conductor.handle_timeout(now);
        }
        self.flush();
        self.compare();
    }

    /// Returns the longest time until the next [`poll`](Self::poll), as the last one left it; zero:
    /// at once.
    #[must_use]
    pub fn patience(&self) -> Nanos {
        let now = self.now();
        let listens = self.listening.is_some_and(|until| now < until);
        let nap = match (listens, self.idle_since) {
            (true, Some(_)) => Nanos::ZERO,
            (true, None) => LISTENING_NAP,
            (false, Some(since)) if now - since > IDLE_FOR_LONG => LONG_IDLE_NAP,
            (false, Some(_)) => IDLE_NAP,
            (false, None) => Nanos::MAX,
        };
        let mut patience = nap.min(self.member.wake_at() - now);
        if let Some(lead) = &self.lead {
            let comparisons = lead.comparisons.patience(now, self.is_idle());
            patience = patience.min(comparisons);
            patience = patience.min(lead.conductor.wake_at() - now);
        }
        patience
    }

    const fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    /// Returns the verdict on the plan, once there is one.
    #[must_use]
    pub const fn verdict(&self) -> Option<&Verdict> {
        self.member.verdict()
    }

    /// Returns whether the files of all ranks are laid out.
    #[must_use]
    pub const fn files_ready(&self) -> bool {
        self.member.files_ready()
    }

    /// Returns when the jobs of a wave start, by the clock of the options, or that they wait or
    /// never will.
    #[must_use]
    pub fn gate(&self, wave: Wave) -> Gate {
        self.member.gate(wave)
    }

    /// Returns whether the jobs of the next wave may be prepared: the last one has ended on all
    /// ranks.
    #[must_use]
    pub fn may_prepare(&self) -> bool {
        self.member.may_prepare()
    }

    /// Returns whether jobs of a wave that run have to end.
    #[must_use]
    pub fn ends(&self, wave: Wave) -> bool {
        self.member.ends(wave)
    }

    /// Returns the reason for which nothing more starts, if so.
    #[must_use]
    pub const fn stop(&self) -> Option<StopReason> {
        self.member.stop()
    }

    /// Returns the code with which this process ends, once it may.
    #[must_use]
    pub const fn may_leave(&self) -> Option<u8> {
        self.member.may_leave()
    }

    /// Returns whether all ranks are through or lost; on rank 0.
    #[must_use]
    pub fn is_all_through(&self) -> bool {
        self.lead.as_ref().is_some_and(|lead| lead.is_all_through)
    }

    /// Returns the conductor; on rank 0.
    #[must_use]
    pub fn conductor(&self) -> Option<&Conductor> {
        self.lead.as_ref().map(|lead| &lead.conductor)
    }

    /// Returns whether the report of the next 100 ms lacks the progress.
    #[must_use]
    pub fn wants_progress(&self) -> bool {
        self.member.wake_at() - self.now() <= PROGRESS_AHEAD
    }

    /// Returns the waves that ran here, in order.
    #[must_use]
    pub fn waves(&self) -> &[WaveSpan] {
        &self.waves
    }

    /// Returns this rank's wall clock against the common one; `None` before it was compared.
    #[must_use]
    pub fn comparison(&self) -> Option<ClockComparison> {
        if self.lead.is_some() {
            return Some(ClockComparison {
                offset_ns: 0,
                bound: Nanos::ZERO,
                drift_ppb: Some(0),
            });
        }
        let common = self.common?;
        let own_ns = self.wall_ns(common.at);
        let first_ns = self.waves.first().map_or(own_ns, |first| first.agreed_ns);
        let since_ns = i128::from(own_ns) - i128::from(first_ns);
        let drift = common.drift_ppb.map_or(0, i128::from);
        let moved = since_ns * drift / 1_000_000_000;
        let offset = i128::from(own_ns) - i128::from(common.common_ns) - moved;
        let bound = self.waves.first().map_or(common.bound, |first| first.bound);
        Some(ClockComparison {
            offset_ns: i64::try_from(offset).unwrap_or(i64::MAX),
            bound,
            drift_ppb: common.drift_ppb,
        })
    }

    /// Returns the current time of the clock of the options.
    #[must_use]
    pub fn now(&self) -> Tick {
        (self.options.clock)()
    }

    /// Returns the options.
    #[must_use]
    pub const fn options(&self) -> &RanksOptions {
        &self.options
    }

    /// Returns the link, for messages of another kind that it carries.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Returns the rank of this process and the number of ranks.
    #[must_use]
    pub fn place(&self) -> (Rank, u32) {
        (self.link.rank(), self.link.ranks())
    }

    fn enter(&mut self, stage: Stage) {
        self.member.enter(stage);
        self.flush();
    }

    fn wall_ns(&self, at: Tick) -> u64 {
        self.options.wall_origin_ns.saturating_add(at.get())
    }

    /// Takes the messages that have arrived.
    fn receive(&mut self) {
        for _ in 0..MESSAGES_MAX {
            if self.link_failed {
                return;
            }
            match self.link.receive() {
                Ok(Some((from, bytes))) => {
                    // Before anything else: the answer to a ping came now.
                    let now = self.now();
                    self.handle_message(now, from, &bytes);
                }
                Ok(None) => return,
                Err(error) => self.handle_link_error(error),
            }
        }
    }

    fn handle_message(&mut self, now: Tick, from: Rank, bytes: &[u8]) {
        let from_leader = from == LEADER && self.lead.is_none();
        match Message::decode(bytes) {
            Ok(Message::Report(report)) => self.handle_report(now, from, report),
            Ok(Message::Pong { token, at }) => {
                if let Some(lead) = &mut self.lead {
                    lead.comparisons.handle_pong(from, token, at, now);
                }
            }
            Ok(Message::Order(order)) if from_leader => self.member.handle_order(now, order),
            Ok(Message::Ping { token, more }) if from_leader => self.answer(token, more),
            Ok(Message::Clock(common)) if from_leader => self.common = Some(common),
            Ok(Message::Order(_) | Message::Ping { .. } | Message::Clock(_)) => {}
            Err(error) => self.handle_bad_message(now, from, error),
        }
    }

    fn handle_report(&mut self, now: Tick, from: Rank, report: Report) {
        if let Some(lead) = &mut self.lead {
            lead.conductor.handle_report(now, from, report);
            if lead.conductor.awaits_clock(from) {
                lead.comparisons.demand(now, from);
            }
        }
    }

    /// Answers a ping, and listens for the next one if there is to be one.
    fn answer(&mut self, token: u32, more: bool) {
        let at = self.now();
        self.send(LEADER, &Message::Pong { token, at });
        let length = match self.is_idle() {
            true => LISTEN_IDLE,
            false => LISTEN,
        };
        self.listening = more.then(|| at + length);
    }

    /// A rank of another version cannot take part; one that could before has gone mad.
    fn handle_bad_message(&mut self, now: Tick, from: Rank, error: MessageError) {
        if !std::mem::replace(&mut self.told_bad, true) {
            (self.options.tell)(&Event::BadMessage { rank: from, error });
        }
        let Some(lead) = &mut self.lead else {
            return;
        };
        if !lead.conductor.is_checking(from) {
            lead.conductor.handle_gone(now, from);
            return;
        }
        // Cannot fail: it has no files.
        if let Ok(checks) = Checks::new(&[error.to_string()], Vec::new()) {
            let report = Report {
                stage: Stage::Checked(checks),
                wants_stop: None,
                wants_end: None,
                progress: Progress::default(),
            };
            lead.conductor.handle_report(now, from, report);
        }
    }

    fn handle_link_error(&mut self, error: LinkError) {
        let now = self.now();
        match error {
            LinkError::Gone(rank) => self.handle_gone(now, rank),
            LinkError::Failed(_) => {
                self.link_failed = true;
                let text = Text::new(&error.to_string());
                (self.options.tell)(&Event::LinkFailed(text));
                let others = (0..self.link.ranks()).map(Rank::new);
                let own = self.link.rank();
                for rank in others.filter(|&rank| rank != own) {
                    self.handle_gone(now, rank);
                }
            }
        }
    }

    fn handle_gone(&mut self, now: Tick, rank: Rank) {
        match &mut self.lead {
            Some(lead) => {
                lead.conductor.handle_gone(now, rank);
                lead.comparisons.forget(rank);
            }
            None if rank == LEADER => self.member.handle_gone(),
            None => {}
        }
    }

    /// Sends all reports and orders, those of rank 0 to itself without the link.
    fn flush(&mut self) {
        while self.flush_report() | self.flush_output() {}
    }

    fn flush_report(&mut self) -> bool {
        let Some(report) = self.member.poll_report() else {
            return false;
        };
        let now = self.now();
        match &mut self.lead {
            Some(lead) => lead.conductor.handle_report(now, LEADER, report),
            None => self.send(LEADER, &Message::Report(report)),
        }
        true
    }

    fn flush_output(&mut self) -> bool {
        let Some(lead) = &mut self.lead else {
            return false;
        };
        match lead.conductor.poll_output() {
            None => return false,
            Some(Output::Send { to: LEADER, order }) => {
                let now = self.now();
                self.member.handle_order(now, order);
            }
            Some(Output::Send { to, order }) => self.send(to, &Message::Order(order)),
            Some(Output::Tell(event)) => {
                match &event {
                    Event::AllThrough => lead.is_all_through = true,
                    Event::RankLost { rank, .. } => lead.comparisons.forget(*rank),
                    _ => {}
                }
                (self.options.tell)(&event);
            }
        }
        true
    }

    /// Compares clocks, on rank 0.
    fn compare(&mut self) {
        loop {
            let now = self.now();
            let Some(lead) = &mut self.lead else {
                return;
            };
            match lead.comparisons.poll(now, self.idle_since.is_some()) {
                None => return,
                Some(Step::Ping { to, token, more }) => {
                    lead.comparisons.sent((self.options.clock)());
                    self.send(to, &Message::Ping { token, more });
                }
                Some(Step::Compared(rank)) => self.set_clock(now, rank),
            }
        }
    }

    /// Tells a rank's clock to the conductor, and to the rank for its record.
    fn set_clock(&mut self, now: Tick, rank: Rank) {
        let common_ns = self.wall_ns(now);
        let Some(lead) = &mut self.lead else {
            return;
        };
        let clock = lead.comparisons.clock(rank);
        let clock = clock.cloned().unwrap_or_else(RemoteClock::ours);
        let (at, bound) = clock.to_remote(now);
        let time = CommonTime {
            at,
            common_ns,
            bound,
            drift_ppb: clock.drift_ppb(),
        };
        lead.conductor.set_clock(now, rank, clock);
        self.send(rank, &Message::Clock(time));
        self.flush();
    }

    fn send(&mut self, to: Rank, message: &Message) {
        if self.link_failed {
            return;
        }
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        if let Err(error) = self.link.send(to, &bytes) {
            self.handle_link_error(error);
        }
    }
}

/// Rank of the conductor.
const LEADER: Rank = Rank::new(0);
/// Most messages taken at once: four from each of 1,000 ranks.
const MESSAGES_MAX: u32 = 4_096;
/// Nap of a rank that waits for the start: a tenth of its lead.
const IDLE_NAP: Nanos = Nanos::from_millis(2);
/// Nap of a rank that has waited for long, as one without a job does: half a percent of a
/// processor, and still a quarter of the lead of a start.
const LONG_IDLE_NAP: Nanos = Nanos::from_millis(5);
const IDLE_FOR_LONG: Nanos = Nanos::from_millis(500);
/// Time for which an idle rank spins for the next ping: the round trips of a network, and a little.
const LISTEN_IDLE: Nanos = Nanos::from_millis(2);
/// Time for which a rank beside its jobs naps briefly for the next ping: rank 0 may have jobs, too.
const LISTEN: Nanos = Nanos::from_millis(60);
/// Time before a report from which its progress is asked for: two looks of a run at its jobs.
const PROGRESS_AHEAD: Nanos = Nanos::from_millis(100);
