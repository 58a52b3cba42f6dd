//! Starts the jobs in order, watches them, and gathers their outcomes.
//!
//! ```text
//!              ┌─ start barrier, stop flag ─► job thread ─┐
//! watcher ─────┤                                          ├─ messages, progress ─► watcher
//! (the caller) └─ start barrier, stop flag ─► job thread ─┘
//! ```
//!
//! One thread per job and no others: the calling thread is the watcher. A job's thread has a small
//! stack, of which only the touched pages are resident.

mod together;

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use fathom_core::{Errno, Nanos, PerDirection, StopRequest, Storage, Tick};
use fathom_host::block_tree::BlockTree;
use fathom_host::disks::DiskWatch;
use fathom_host::safety::Guard;
use fathom_record::Warning;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::outcome::{JobFailure, JobOutcome};
use fathom_setup::{JobSnapshot, RunEvent, Session, Snapshot};
use fathom_sys::clock::sleep_until;

use crate::bandwidth::BandwidthLog;
use crate::drive::{JobHandles, JobSpec, RunState, run_job};
use crate::interim::{Interim, SoFar};
use crate::peer_access::PeerAccess;
use crate::progress::ProgressCell;
use crate::stalls::Pauses;
use crate::start_barrier::StartBarrier;
use crate::tracing_engine::Say;

use self::together::CurrentWave;

/// Job ready to start.
pub(crate) struct Launch {
    /// Name of the job, used for its thread.
    pub(crate) name: String,
    /// Everything the thread needs.
    pub(crate) spec: JobSpec,
    /// `allow_mounted_write`.
    pub(crate) allow_mounted_write: bool,
}

/// Receivers of what jobs do, beside the session.
pub(crate) struct Watched<'a, 'p> {
    /// Builds the records of interim reports.
    pub(crate) so_far: SoFar<'a>,
    /// Log of the bandwidth of all jobs.
    pub(crate) bandwidth: Option<BandwidthLog>,
    /// Disks whose activity is reported with the progress.
    pub(crate) disks: Option<DiskWatch>,
    /// Other ranks.
    pub(crate) peers: &'a PeerAccess<'p>,
}

/// Runs all jobs and returns their outcomes, in the order of the launches, and a warning if the
/// bandwidth log is incomplete. An outcome is `None` if the job was never started because the run
/// was stopped or another job ended it (`exitall`).
pub(crate) fn run_all(
    launches: Vec<Launch>,
    lifecycle: Lifecycle,
    shared: &RunState,
    session: &mut Session<'_>,
    watched: Watched<'_, '_>,
) -> (Vec<Option<JobOutcome>>, Option<Warning>) {
    let count = launches.len();
    let cells: Vec<ProgressCell> = (0..count).map(|_| ProgressCell::default()).collect();
    let stops: Vec<StopRequest> = (0..count).map(|_| StopRequest::default()).collect();
    let names: Vec<String> = launches.iter().map(|launch| launch.name.clone()).collect();
    let begun = shared.clock.now();
    let (sender, receiver) = channel();
    let mut watcher = Watcher {
        shared,
        cells: &cells,
        stops: &stops,
        lifecycle,
        receiver,
        begun,
        started: vec![None; count],
        outcomes: (0..count).map(|_| None).collect(),
        // Not immediately: no job runs yet.
        tell_at: begun + session.progress.unwrap_or_default(),
        names: &names,
        opening: BTreeSet::new(),
        stopping: false,
        remind_at: Tick::MAX,
        interim: Interim::new(session.report_every, shared.keep_every, begun, count),
        reports_asked: (session.reports_asked)(),
        so_far: watched.so_far,
        bandwidth: watched.bandwidth,
        pauses: Pauses::watch(),
        disks: watched.disks,
        peers: watched.peers,
        wave: None,
    };
    std::thread::scope(|scope| {
        let mut launches: Vec<Option<Launch>> = launches.into_iter().map(Some).collect();
        let mut handles: Vec<Option<JobThread<'_>>> = (0..count).map(|_| None).collect();
        loop {
            watcher.look_around(session);
            watcher.leave_wave();
            let together = watcher.lifecycle.ready();
            if !together.is_empty() {
                let members = together
                    .into_iter()
                    .filter_map(|index| Some((index, launches[index].take()?)));
                let members: Vec<_> = members.collect();
                watcher.start(scope, members, &sender, session, &mut handles);
            } else if watcher.lifecycle.any_runs() {
                watcher.hear(session, &mut handles);
            } else {
                break;
            }
        }
    });
    watcher.tell_last_progress(session);
    let now = shared.clock.now();
    let log = watcher.bandwidth.take();
    let stop = || (session.stops)() > 0;
    let broken = log.and_then(|log| log.finish(now, &moved(&cells), &stop));
    let mut outcomes = std::mem::take(&mut watcher.outcomes);
    watcher.explain_stalls(&mut outcomes);
    (outcomes, broken)
}

/// Returns the bytes that all jobs have transferred.
fn moved(cells: &[ProgressCell]) -> PerDirection<u64> {
    let each = cells.iter().map(|cell| cell.read().bytes);
    each.fold(PerDirection::default(), |sum, bytes| {
        PerDirection::from_fn(|direction| sum[direction] + bytes[direction])
    })
}

/// Handle of a job's thread.
type JobThread<'scope> = ScopedJoinHandle<'scope, JobOutcome>;

/// Message from a job's thread to the watcher.
enum Message {
    /// The thread of this job waits at the start barrier, or ended before reaching it.
    Ready(usize),
    /// The thread of this job has ended.
    Ended(usize),
    /// Output of `--debug`.
    Said(String),
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (index, launch): (usize, Launch),
    watcher: &Watcher<'scope, '_>,
    barrier: Arc<StartBarrier>,
    sender: Sender<Message>,
) -> std::io::Result<JobThread<'scope>> {
    let (shared, cell) = (watcher.shared, &watcher.cells[index]);
    let stop = &watcher.stops[index];
    let live = shared.live.as_ref().and_then(|live| live.of_job(index));
    // The kernel keeps 15 bytes of a thread's name.
    let name: String = launch
        .name
        .chars()
        .filter(|&c| c != '\0')
        .take(15)
        .collect();
    Builder::new()
        .name(name)
        .stack_size(STACK_BYTES)
        .spawn_scoped(scope, move || {
            let is_ready = std::cell::Cell::new(false);
            let ready = || {
                if !is_ready.replace(true) {
                    // Cannot fail: the watcher outlives the threads.
                    let _heard = sender.send(Message::Ready(index));
                }
            };
            let say = teller(shared, sender.clone());
            let handles = JobHandles {
                shared,
                index,
                stop,
                barrier: &barrier,
                cell,
                live,
                ready: &ready,
                say: &say,
            };
            let outcome = run_job(launch.spec, &handles);
            ready();
            let _heard = sender.send(Message::Ended(index));
            outcome
        })
}

/// Returns the sink of `--debug` output, which blocks while too much is unread.
fn teller(shared: &RunState, sender: Sender<Message>) -> Say {
    let (unheard, clock) = (Arc::clone(&shared.unheard), shared.clock);
    Rc::new(move |lines| {
        // Relaxed, here and in the watcher: the limit need not be exact.
        while unheard.load(Ordering::Relaxed) > UNHEARD_MAX {
            sleep_until(&clock, clock.now() + Nanos::from_millis(1));
        }
        unheard.fetch_add(1, Ordering::Relaxed);
        let _heard = sender.send(Message::Said(lines));
    })
}

/// Returns a failed outcome if the job would write to a device that is now in use.
fn refused(launch: &Launch, guard: &Guard) -> Option<JobOutcome> {
    let engine = &launch.spec.engine;
    if launch.allow_mounted_write {
        return None;
    }
    let check = |path: &str| match engine.engine.info.storage {
        Storage::LocalFiles => guard.check_free(Path::new(path)).err(),
        Storage::Device => guard.check_passthrough(Path::new(path), true, false).err(),
        Storage::None | Storage::Peer | Storage::Remote => None,
    };
    let changed = engine
        .files
        .iter()
        .filter(|file| file.write || file.recreate);
    let named = engine.engine.info.written_files(&engine.options);
    let named = named.map(|(_option, path)| path);
    let mut changed = changed.map(|file| file.path.clone()).chain(named);
    let refusal = changed.find_map(|path| check(&path))?;
    Some(JobOutcome {
        failure: Some(JobFailure::new(Errno::EBUSY, refusal.to_string()).hint(refusal.hint())),
        ..JobOutcome::default()
    })
}

fn not_started(why: &dyn std::fmt::Display) -> JobOutcome {
    let failure = JobFailure::new(Errno::EAGAIN, format!("cannot start a thread: {why}"));
    JobOutcome {
        failure: Some(failure.hint("raise `ulimit -u`, or reduce `numjobs`")),
        ..JobOutcome::default()
    }
}

/// State of the watcher: it starts and stops jobs, and delivers events, on the calling thread.
///
/// Wakes every 50 ms, or earlier for a message, an interim report or a window of the bandwidth log,
/// so its load does not depend on the op rate.
struct Watcher<'a, 'p> {
    shared: &'a RunState,
    cells: &'a [ProgressCell],
    stops: &'a [StopRequest],
    lifecycle: Lifecycle,
    receiver: Receiver<Message>,
    begun: Tick,
    started: Vec<Option<Tick>>,
    outcomes: Vec<Option<JobOutcome>>,
    tell_at: Tick,
    names: &'a [String],
    /// Jobs whose threads have not reached the start barrier.
    opening: BTreeSet<usize>,
    stopping: bool,
    /// Time to report the jobs that a stopping run still waits for.
    remind_at: Tick,
    /// Interim reports.
    interim: Interim,
    /// Number of requested reports already handled.
    reports_asked: u32,
    so_far: SoFar<'a>,
    bandwidth: Option<BandwidthLog>,
    /// Times for which the process did not run.
    pauses: Pauses,
    /// Disks whose activity is reported with the progress.
    disks: Option<DiskWatch>,
    /// Other ranks.
    peers: &'a PeerAccess<'p>,
    /// Wave that other ranks start and end together with this one.
    wave: Option<CurrentWave>,
}

impl<'a> Watcher<'a, '_> {
    /// Starts the threads of these jobs and opens their start barrier once all are ready.
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        members: Vec<(usize, Launch)>,
        sender: &Sender<Message>,
        session: &mut Session<'_>,
        handles: &mut [Option<JobThread<'scope>>],
    ) where
        'a: 'scope,
    {
        let barrier = Arc::new(StartBarrier::default());
        let wave = members
            .first()
            .map(|(index, _)| self.lifecycle.wave_of(*index));
        let wave = wave.unwrap_or_default();
        let begins = self.enter_wave(wave);
        if begins {
            self.await_end_of_last(session);
        }
        let mut awaited = Vec::with_capacity(members.len());
        // Checked again: a device may have been mounted during layout or a previous wave.
        let guard = Guard::new(BlockTree::default());
        for member in members {
            let index = member.0;
            if let Some(refused) = refused(&member.1, &guard) {
                self.ended(index, refused);
                continue;
            }
            match spawn(scope, member, self, Arc::clone(&barrier), sender.clone()) {
                Ok(handle) => {
                    handles[index] = Some(handle);
                    awaited.push(index);
                }
                Err(error) => self.ended(index, not_started(&error)),
            }
        }
        self.opening.extend(&awaited);
        while !self.opening.is_empty() {
            self.hear(session, handles);
            self.look_around(session);
        }
        if awaited.is_empty() && !self.peers.is_alone() {
            return;
        }
        let start = match begins {
            true => self.await_start(wave, session),
            false => self.shared.clock.now(),
        };
        for index in awaited {
            self.started[index] = Some(start);
        }
        let _first = self.shared.origin.get_or_init(|| start);
        barrier.open(start);
    }

    /// Waits for a message until the next deadline, and takes it.
    fn hear(&mut self, session: &mut Session<'_>, handles: &mut [Option<JobThread<'_>>]) {
        let nap = self.nap();
        self.pauses.falls_asleep(self.shared.clock.now(), nap);
        let message = self.receiver.recv_timeout(Duration::from_nanos(nap.get()));
        self.pauses.wakes(self.shared.clock.now());
        self.tell_progress(session);
        self.tell_interim(session);
        if let Some(log) = &mut self.bandwidth {
            log.advance(self.shared.clock.now(), &moved(self.cells));
        }
        match message {
            Ok(Message::Ready(index)) => {
                self.opening.remove(&index);
            }
            Ok(Message::Said(lines)) => {
                (session.tell)(RunEvent::Debug(&lines));
                self.shared.unheard.fetch_sub(1, Ordering::Relaxed);
            }
            Ok(Message::Ended(index)) => {
                if let Some(handle) = handles[index].take() {
                    // Panics are caught on the thread; anything else is a failure of the runtime.
                    let lost = |_| JobOutcome {
                        failure: Some(JobFailure::new(
                            Errno::EIO,
                            "the job's thread ended without a result",
                        )),
                        ..JobOutcome::default()
                    };
                    self.ended(index, handle.join().unwrap_or_else(lost));
                }
            }
            // Never disconnected: the watcher holds a sender of its own.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    /// Returns the time until the next deadline.
    fn nap(&self) -> Nanos {
        let now = self.shared.clock.now();
        let patience = self.interim.patience(now);
        let log = self.bandwidth.as_ref();
        let patience = log.map_or(patience, |log| log.patience(now).min(patience));
        patience.min(self.peers.patience()).min(LOOK_EVERY)
    }

    /// Delivers an interim report when one is due.
    fn tell_interim(&mut self, session: &mut Session<'_>) {
        let asked = (session.reports_asked)();
        if std::mem::replace(&mut self.reports_asked, asked) != asked {
            self.interim.ask();
        }
        let now = self.shared.clock.now();
        let Some((purpose, latest)) = self.interim.poll(now, self.cells) else {
            return;
        };
        let both = self.outcomes.iter().zip(latest);
        let outcomes = both.map(|(ended, latest)| ended.as_ref().or(latest.as_ref()).cloned());
        let mut outcomes: Vec<_> = outcomes.collect();
        self.explain_stalls(&mut outcomes);
        let record = (self.so_far)(outcomes, &self.snapshot(now));
        if purpose.is_shown {
            (session.tell)(RunEvent::Interim(&record));
        }
        if purpose.is_kept {
            (session.tell)(RunEvent::SoFar(&record));
        }
    }

    /// Adds to the stalls of jobs for how much of them this process did not run.
    fn explain_stalls(&self, outcomes: &mut [Option<JobOutcome>]) {
        let all = outcomes.iter_mut().flatten();
        all.for_each(|outcome| self.pauses.explain(outcome));
    }

    /// Records the end of a job and stops those that must end with it.
    fn ended(&mut self, index: usize, outcome: JobOutcome) {
        let failed = outcome.has_failed();
        self.tell_end(index, failed, outcome.begun);
        let stop = self.lifecycle.ended(index, failed);
        self.outcomes[index] = Some(outcome);
        for other in stop {
            self.stops[other].request();
        }
    }

    /// Stops all jobs on request, and later reports those still running.
    fn look_around(&mut self, session: &mut Session<'_>) {
        // Asked in any case: this lets the messages of other ranks go on.
        let asked = (session.stops)() > 0;
        self.follow_peers();
        if !self.stopping && asked {
            self.stopping = true;
            self.stop_all();
            (session.tell)(RunEvent::Stopping);
            self.remind_at = self.shared.clock.now() + DRAIN_WAIT;
        }
        if self.stopping && self.shared.clock.now() >= self.remind_at {
            self.remind_at = Tick::MAX;
            self.remind(session);
        }
    }

    /// Names the jobs that a stopping run waits for.
    fn remind(&self, session: &mut Session<'_>) {
        let all = self.names.iter().zip(&self.started).zip(&self.outcomes);
        let draining = all.filter(|((_, started), outcome)| started.is_some() && outcome.is_none());
        let draining: Vec<&str> = draining.map(|((name, _), _)| name.as_str()).collect();
        // The last job may have ended just now.
        if !draining.is_empty() {
            (session.tell)(RunEvent::StillStopping(&draining));
        }
        let opening = self.opening.iter().map(|index| self.names[*index].as_str());
        let opening: Vec<&str> = opening.collect();
        if !opening.is_empty() {
            (session.tell)(RunEvent::StillOpening(&opening));
        }
    }

    fn tell_progress(&mut self, session: &mut Session<'_>) {
        let Some(every) = session.progress else {
            return;
        };
        let now = self.shared.clock.now();
        if now >= self.tell_at {
            self.tell_at = now + every;
            self.tell_progress_at(now, session);
        }
    }

    /// Shows a view how the jobs ended.
    fn tell_last_progress(&mut self, session: &mut Session<'_>) {
        if self.disks.is_some() {
            self.tell_progress_at(self.shared.clock.now(), session);
        }
    }

    fn tell_progress_at(&mut self, now: Tick, session: &mut Session<'_>) {
        let mut snapshot = self.snapshot(now);
        if let Some(live) = &self.shared.live {
            snapshot.latencies = live.so_far();
        }
        if let Some(disks) = &mut self.disks {
            snapshot.disks = disks.lap(now);
        }
        (session.tell)(RunEvent::Progress(&snapshot));
    }

    fn snapshot(&self, now: Tick) -> Snapshot {
        let both = self.cells.iter().zip(&self.started);
        let jobs = both.map(|(cell, started)| JobSnapshot {
            elapsed: started.map_or(Nanos::ZERO, |started| now - started),
            ..cell.read()
        });
        Snapshot {
            elapsed: now - self.begun,
            jobs: jobs.collect(),
            ..Snapshot::default()
        }
    }
}

/// Enough for the loop and for formatting an error; 512 jobs map 128 MiB and touch a tenth of it.
const STACK_BYTES: usize = 256 * 1024;
/// Time to drain before the jobs still running are reported; a healthy device needs less.
const DRAIN_WAIT: Nanos = Nanos::from_secs(1);
/// Maximum interval between checks for a stop request.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);
/// Maximum number of unread chunks of `--debug` output: of 8 KiB each, 8 MiB in all.
const UNHEARD_MAX: usize = 1024;
