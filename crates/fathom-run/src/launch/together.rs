//! Waves of several ranks, as the watcher sees them: their common start and end.

use fathom_core::{Nanos, PerDirection, Tick};
use fathom_hosts::{Progress, StopReason, Wave};
use fathom_job::ExitWhat;
use fathom_setup::{JobState, Session};
use fathom_sys::clock::sleep_until;

use super::{LOOK_EVERY, Watcher};
use crate::agreed_start::AgreedStart;
use crate::peers::{Moment, from_to};

/// Wave of this rank, from the moment at which its jobs wait to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentWave {
    number: u32,
    /// Agreed start; `None` if the wave has not started.
    agreed: Option<Tick>,
    /// Start of its first job.
    begun: Option<Tick>,
    /// Its jobs have been told to end with those of other ranks.
    is_ending: bool,
}

impl Watcher<'_, '_> {
    /// Enters the wave of jobs that are about to start. Returns false if it goes on already: they
    /// have waited for others of their own wave (`wait_for`).
    pub(super) fn enter_wave(&mut self, wave: u32) -> bool {
        let goes_on = self.wave.is_some_and(|current| current.number == wave);
        if !goes_on && !self.peers.is_alone() {
            self.wave = Some(CurrentWave {
                number: wave,
                agreed: None,
                begun: None,
                is_ending: false,
            });
        }
        !goes_on
    }

    /// Waits until the wave before has ended on all ranks, or nothing more is to start. The next
    /// one then opens files as that one has left them: a network file system may show what another
    /// host has written only to those who open them later.
    pub(super) fn await_end_of_last(&mut self, session: &mut Session<'_>) {
        self.peers.set_idle(true);
        while !self.peers.see().may_prepare() {
            self.look_around(session);
            if self.stopping || self.peers.see().stop().is_some() {
                break;
            }
            self.tell_progress(session);
            let nap = LOOK_EVERY.min(self.peers.patience());
            sleep_until(&self.shared.clock, self.shared.clock.now() + nap);
        }
        self.peers.set_idle(false);
    }

    /// Waits for the start of a wave, with its jobs ready, and returns the time to start. Ends
    /// shortly before: the threads wait for the rest by themselves.
    pub(super) fn await_start(&mut self, wave: u32, session: &mut Session<'_>) -> Tick {
        self.peers.get().ready(Wave::new(wave));
        self.peers.set_idle(true);
        let start = self.await_moment(wave, session);
        self.peers.set_idle(false);
        start
    }

    fn await_moment(&mut self, wave: u32, session: &mut Session<'_>) -> Tick {
        loop {
            self.look_around(session);
            let now = self.shared.clock.now();
            let nap = match self.moment(wave) {
                _ if self.stopping => return now,
                Moment::Never(_) => {
                    self.stop_all();
                    return now;
                }
                Moment::In { left_ns, origin_ns } => {
                    let left = Nanos::new(u64::try_from(left_ns).unwrap_or(0));
                    if left <= OPEN_EARLY {
                        self.begin_wave(now, left_ns, origin_ns);
                        return now + left;
                    }
                    left - OPEN_EARLY
                }
                Moment::Unknown => LOOK_EVERY,
            };
            self.tell_progress(session);
            let nap = nap.min(LOOK_EVERY).min(self.peers.patience());
            sleep_until(&self.shared.clock, now + nap);
        }
    }

    /// Returns the moment at which a wave starts: the first one by the agreed time of day, if there
    /// is one.
    fn moment(&self, wave: u32) -> Moment {
        let agreed = self.shared.agreed;
        let agreed = agreed.filter(|_| self.shared.origin.get().is_none());
        match agreed.map(AgreedStart::left) {
            Some(left) => {
                let left_ns = i64::try_from(left.get()).unwrap_or(i64::MAX);
                Moment::In {
                    left_ns,
                    origin_ns: left_ns,
                }
            }
            None => self.peers.see().moment(Wave::new(wave)),
        }
    }

    /// Notes the start of a wave, and of the run if it is the first one here.
    fn begin_wave(&mut self, now: Tick, left_ns: i64, origin_ns: i64) {
        let at = |ns: i64| Tick::new(now.get().saturating_add_signed(ns));
        if let Some(wave) = &mut self.wave {
            wave.agreed = Some(at(left_ns));
            self.peers.begin();
            let _first = self.shared.origin.get_or_init(|| at(origin_ns));
        }
    }

    /// Tells the other ranks once the last job of the wave is over.
    pub(super) fn leave_wave(&mut self) {
        let Some(wave) = self.wave else {
            return;
        };
        if self.lifecycle.wave() == Some(wave.number) {
            return;
        }
        let late_ns = wave.agreed.zip(wave.begun);
        let late_ns = late_ns.map(|(agreed, begun)| from_to(agreed, begun));
        self.peers.get().ended(Wave::new(wave.number), late_ns);
        self.wave = None;
    }

    /// Follows the orders of the other ranks, and reports the progress to them. They have been
    /// asked with the request to stop.
    pub(super) fn follow_peers(&mut self) {
        if self.peers.is_alone() {
            return;
        }
        if self.peers.see().wants_progress() {
            let progress = self.progress();
            self.peers.get().set_progress(progress);
        }
        let stop = self.peers.see().stop();
        if stop.is_some_and(StopReason::ends_running) {
            self.stop_all();
        }
        let ends = |number| self.peers.see().ends(Wave::new(number));
        let Some(wave) = &mut self.wave else {
            return;
        };
        if !wave.is_ending && ends(wave.number) {
            wave.is_ending = true;
            for job in self.lifecycle.end_wave(wave.number) {
                self.stops[job].request();
            }
        }
    }

    /// Notes when a job of the wave began, and asks the other ranks to end with it if it ends
    /// others (`exitall`).
    pub(super) fn tell_end(&mut self, job: usize, failed: bool, begun: Option<Tick>) {
        let Some(wave) = &mut self.wave else {
            return;
        };
        let both = wave.begun.into_iter().chain(begun);
        wave.begun = both.min();
        match (self.lifecycle.exits(job, failed), failed) {
            (Some(ExitWhat::All), false) => self.peers.get().ask_stop(StopReason::ExitAll),
            (Some(ExitWhat::All), true) => self.peers.get().ask_stop(StopReason::ExitAllOnError),
            (Some(ExitWhat::Stonewall), _) => self.peers.get().ask_end(Wave::new(wave.number)),
            // A group beside others in its wave ends on its own rank.
            (Some(ExitWhat::Group) | None, _) => {}
        }
    }

    /// Stops all jobs, and starts no more.
    pub(super) fn stop_all(&mut self) {
        self.lifecycle.start_no_more();
        for stop in self.stops {
            stop.request();
        }
    }

    /// Returns the progress of all jobs.
    fn progress(&self) -> Progress {
        let origin = self.shared.origin.get();
        let mut sum = Progress {
            elapsed: origin.map_or(Nanos::ZERO, |&origin| self.shared.clock.now() - origin),
            ..Progress::default()
        };
        for job in self.cells.iter().map(|cell| cell.read()) {
            match job.state {
                JobState::NotStarted => {}
                JobState::SettingUp | JobState::Working(_) => sum.jobs_running += 1,
                JobState::Ended | JobState::Failed => sum.jobs_ended += 1,
            }
            let add = |sum: PerDirection<u64>, own: PerDirection<u64>| {
                PerDirection::from_fn(|direction| sum[direction] + own[direction])
            };
            sum.ios = add(sum.ios, job.ios);
            sum.bytes = add(sum.bytes, job.bytes);
        }
        sum
    }
}

/// Time before an agreed start at which the threads of a wave learn of it: enough to wake all
/// threads of many ranks that share few processors, and short beside the 20 ms by which a start is
/// agreed ahead. A request to stop that comes within it acts once they have started.
const OPEN_EARLY: Nanos = Nanos::from_millis(5);
