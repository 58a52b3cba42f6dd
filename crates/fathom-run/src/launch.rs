//! Starting the jobs when they may, watching them, and bringing their outcomes home.
//!
//! One thread for each job and none beside: the calling thread watches. A job's thread has a small
//! stack, of which only the touched pages are resident.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use fathom_core::{Nanos, PerDirection, Storage, Tick};
use fathom_host::block_tree::BlockTree;
use fathom_host::safety::Guard;
use fathom_record::Warning;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::outcome::{Fault, Outcome};
use fathom_setup::{Event, JobSnapshot, Session, Snapshot};
use fathom_sys::clock::sleep_until;
use fathom_workload::Control;

use crate::bandwidth::BandwidthLog;
use crate::drive::{Assignment, Guides, Shared, run_job};
use crate::gate::Gate;
use crate::interim::{Interim, SoFar};
use crate::progress::ProgressCell;
use crate::tracing_engine::Say;

/// A job to be run.
pub(crate) struct Launch {
    /// Its name, for the thread's.
    pub(crate) name: String,
    /// What its thread is given.
    pub(crate) assignment: Assignment,
    /// `allow_mounted_write`.
    pub(crate) allow_mounted_write: bool,
}

/// Runs all jobs; the outcomes are in the order of the launches, `None` for jobs that were not
/// started because of a request to stop, or because another one's end was theirs too. Beside them
/// what there is to say of the bandwidth's log.
pub(crate) fn run_all(
    launches: Vec<Launch>,
    lifecycle: Lifecycle,
    shared: &Shared,
    session: &mut Session<'_>,
    so_far: SoFar<'_>,
    bandwidth: Option<BandwidthLog>,
) -> (Vec<Option<Outcome>>, Option<Warning>) {
    let count = launches.len();
    let cells: Vec<ProgressCell> = (0..count).map(|_| ProgressCell::default()).collect();
    let controls: Vec<Control> = (0..count).map(|_| Control::default()).collect();
    let names: Vec<String> = launches.iter().map(|launch| launch.name.clone()).collect();
    let begun = shared.clock.now();
    let (sender, receiver) = channel();
    let mut watch = Watch {
        shared,
        cells: &cells,
        controls: &controls,
        lifecycle,
        receiver,
        begun,
        started: vec![None; count],
        outcomes: (0..count).map(|_| None).collect(),
        // Not at once: nothing runs yet.
        tell_at: begun + session.progress.unwrap_or_default(),
        names: &names,
        stopping: false,
        remind_at: Tick::MAX,
        interim: Interim::new(session.report_every.unwrap_or(Nanos::MAX), begun, count),
        reports_asked: (session.reports_asked)(),
        so_far,
        bandwidth,
    };
    std::thread::scope(|scope| {
        let mut launches: Vec<Option<Launch>> = launches.into_iter().map(Some).collect();
        let mut handles: Vec<Option<Handle<'_>>> = (0..count).map(|_| None).collect();
        loop {
            watch.look_around(session);
            let together = watch.lifecycle.ready();
            if !together.is_empty() {
                let members = together
                    .into_iter()
                    .filter_map(|index| Some((index, launches[index].take()?)));
                let members: Vec<_> = members.collect();
                watch.start(scope, members, &sender, session, &mut handles);
            } else if watch.lifecycle.any_runs() {
                let _ready = watch.hear(session, &mut handles);
            } else {
                break;
            }
        }
    });
    let now = shared.clock.now();
    let log = watch.bandwidth.take();
    let stop = || (session.stops)() > 0;
    let broken = log.and_then(|log| log.finish(now, &moved(&cells), &stop));
    (watch.outcomes, broken)
}

/// Bytes that all jobs have moved.
fn moved(cells: &[ProgressCell]) -> PerDirection<u64> {
    let each = cells.iter().map(|cell| cell.read().2);
    each.fold(PerDirection::default(), |sum, bytes| {
        PerDirection::from_fn(|direction| sum[direction] + bytes[direction])
    })
}

/// A job's thread.
type Handle<'scope> = ScopedJoinHandle<'scope, Outcome>;

/// What a job's thread says to the watcher.
enum Message {
    /// It waits for the gate only, or has ended before it came so far.
    Ready,
    /// This one has ended.
    Ended(usize),
    /// Lines of `--debug`.
    Said(String),
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (index, launch): (usize, Launch),
    watch: &Watch<'scope>,
    gate: Arc<Gate>,
    sender: Sender<Message>,
) -> std::io::Result<Handle<'scope>> {
    let (shared, cell) = (watch.shared, &watch.cells[index]);
    let control = &watch.controls[index];
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
                    // The watcher outlives its threads; it cannot have hung up.
                    let _heard = sender.send(Message::Ready);
                }
            };
            let say = teller(shared, sender.clone());
            let guides = Guides {
                shared,
                control,
                gate: &gate,
                cell,
                ready: &ready,
                say: &say,
            };
            let outcome = run_job(launch.assignment, &guides);
            ready();
            let _heard = sender.send(Message::Ended(index));
            outcome
        })
}

/// Tells lines of `--debug`; it waits while too many have not been heard.
fn teller(shared: &Shared, sender: Sender<Message>) -> Say {
    let (unheard, clock) = (Arc::clone(&shared.unheard), shared.clock);
    Rc::new(move |lines| {
        // Relaxed, here and where they are heard: a limit that need not be exact.
        while unheard.load(Ordering::Relaxed) > UNHEARD_MAX {
            sleep_until(&clock, clock.now() + Nanos::from_millis(1));
        }
        unheard.fetch_add(1, Ordering::Relaxed);
        let _heard = sender.send(Message::Said(lines));
    })
}

/// Returns the outcome of a job that would now write a device in use.
fn refused(launch: &Launch, guard: &Guard) -> Option<Outcome> {
    let engine = &launch.assignment.engine;
    if launch.allow_mounted_write || engine.engine.info.storage != Storage::LocalFiles {
        return None;
    }
    let changed = engine
        .files
        .iter()
        .filter(|file| file.write || file.recreate);
    let mut changed = changed.map(|file| Path::new(&file.path));
    let refusal = changed.find_map(|path| guard.check_free(path).err())?;
    Some(Outcome {
        fault: Some(Fault {
            errno: EBUSY,
            text: refusal.to_string(),
            hint: refusal.hint().into(),
        }),
        ..Outcome::default()
    })
}

fn not_started(why: &dyn std::fmt::Display) -> Outcome {
    Outcome {
        fault: Some(Fault {
            errno: EAGAIN,
            text: format!("cannot start a thread: {why}"),
            hint: "raise the limit of processes (`ulimit -u`), or make `numjobs` smaller".into(),
        }),
        ..Outcome::default()
    }
}

/// What the watching thread keeps.
struct Watch<'a> {
    shared: &'a Shared,
    cells: &'a [ProgressCell],
    controls: &'a [Control],
    lifecycle: Lifecycle,
    receiver: Receiver<Message>,
    begun: Tick,
    started: Vec<Option<Tick>>,
    outcomes: Vec<Option<Outcome>>,
    tell_at: Tick,
    names: &'a [String],
    stopping: bool,
    /// When the user is told which jobs keep a stopping run.
    remind_at: Tick,
    /// Reports while the jobs run, if they are wanted.
    interim: Interim,
    /// Of those asked for, so many were told.
    reports_asked: u32,
    so_far: SoFar<'a>,
    bandwidth: Option<BandwidthLog>,
}

impl<'a> Watch<'a> {
    /// Starts these jobs, and lets them go when all are ready.
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        members: Vec<(usize, Launch)>,
        sender: &Sender<Message>,
        session: &mut Session<'_>,
        handles: &mut [Option<Handle<'scope>>],
    ) where
        'a: 'scope,
    {
        let gate = Arc::new(Gate::default());
        let mut awaited = Vec::with_capacity(members.len());
        // A device may have been mounted since the plan was checked: while files were laid out, or
        // while the jobs before these ran.
        let guard = Guard::new(BlockTree::default());
        for member in members {
            let index = member.0;
            if let Some(refused) = refused(&member.1, &guard) {
                self.ended(index, refused);
                continue;
            }
            match spawn(scope, member, self, Arc::clone(&gate), sender.clone()) {
                Ok(handle) => {
                    handles[index] = Some(handle);
                    awaited.push(index);
                }
                Err(error) => self.ended(index, not_started(&error)),
            }
        }
        let mut ready = 0;
        while ready < awaited.len() {
            ready += usize::from(self.hear(session, handles));
            self.look_around(session);
        }
        let now = self.shared.clock.now();
        for index in awaited {
            self.started[index] = Some(now);
        }
        let _first = self.shared.origin.get_or_init(|| now);
        gate.open();
    }

    /// Waits a little for a message; says whether a thread is ready.
    fn hear(&mut self, session: &mut Session<'_>, handles: &mut [Option<Handle<'_>>]) -> bool {
        let message = self.receiver.recv_timeout(self.nap());
        self.tell_progress(session);
        self.tell_interim(session);
        if let Some(log) = &mut self.bandwidth {
            log.look(self.shared.clock.now(), &moved(self.cells));
        }
        match message {
            Ok(Message::Ready) => return true,
            Ok(Message::Said(lines)) => {
                (session.tell)(Event::Debug(&lines));
                self.shared.unheard.fetch_sub(1, Ordering::Relaxed);
            }
            Ok(Message::Ended(index)) => {
                if let Some(handle) = handles[index].take() {
                    // Panics were caught on the thread; what is left is a failure of the runtime.
                    let lost = |_| not_started(&"its thread was lost");
                    self.ended(index, handle.join().unwrap_or_else(lost));
                }
            }
            // This side has a sender too, so nobody ever hangs up.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        false
    }

    /// How long nothing need be looked at.
    fn nap(&self) -> Duration {
        let now = self.shared.clock.now();
        let patience = self.interim.patience(now);
        let log = self.bandwidth.as_ref();
        let patience = log.map_or(patience, |log| log.patience(now).min(patience));
        Duration::from_nanos(patience.get()).min(LOOK_EVERY)
    }

    /// A report of what was measured so far, when it is due.
    fn tell_interim(&mut self, session: &mut Session<'_>) {
        let asked = (session.reports_asked)();
        if std::mem::replace(&mut self.reports_asked, asked) != asked {
            self.interim.ask();
        }
        let now = self.shared.clock.now();
        let Some(latest) = self.interim.look(now, self.cells) else {
            return;
        };
        let both = self.outcomes.iter().zip(latest);
        let outcomes = both.map(|(ended, latest)| ended.as_ref().or(latest.as_ref()).cloned());
        let record = (self.so_far)(outcomes.collect(), &self.snapshot(now));
        (session.tell)(Event::Interim(&record));
    }

    /// A job has ended; others may have to go with it.
    fn ended(&mut self, index: usize, outcome: Outcome) {
        let stop = self.lifecycle.ended(index, outcome.has_failed());
        self.outcomes[index] = Some(outcome);
        for other in stop {
            // Relaxed: the flag carries no data.
            self.controls[other].stop.store(true, Ordering::Relaxed);
        }
    }

    /// Stops all jobs if that was asked for.
    fn look_around(&mut self, session: &mut Session<'_>) {
        if !self.stopping && (session.stops)() > 0 {
            self.stopping = true;
            self.lifecycle.start_no_more();
            for control in self.controls {
                // Relaxed: the flag carries no data.
                control.stop.store(true, Ordering::Relaxed);
            }
            (session.tell)(Event::Stopping);
            self.remind_at = self.shared.clock.now() + PATIENCE;
        }
        if self.stopping && self.shared.clock.now() >= self.remind_at {
            self.remind_at = Tick::MAX;
            let all = self.names.iter().zip(&self.started).zip(&self.outcomes);
            let waited =
                all.filter(|((_, started), outcome)| started.is_some() && outcome.is_none());
            let names: Vec<&str> = waited.map(|((name, _), _)| name.as_str()).collect();
            (session.tell)(Event::StillStopping(&names));
        }
    }

    fn tell_progress(&mut self, session: &mut Session<'_>) {
        let Some(every) = session.progress else {
            return;
        };
        let now = self.shared.clock.now();
        if now < self.tell_at {
            return;
        }
        self.tell_at = now + every;
        let snapshot = self.snapshot(now);
        (session.tell)(Event::Progress(&snapshot));
    }

    fn snapshot(&self, now: Tick) -> Snapshot {
        let jobs = self.cells.iter().zip(&self.started).map(|(cell, started)| {
            let (state, ios, bytes) = cell.read();
            JobSnapshot {
                state,
                ios,
                bytes,
                elapsed: started.map_or(Nanos::ZERO, |started| now - started),
            }
        });
        Snapshot {
            elapsed: now - self.begun,
            jobs: jobs.collect(),
        }
    }
}

/// Deep enough for the loop and for formatting an error; 512 jobs map 128 MiB and touch a tenth.
const STACK_BYTES: usize = 256 * 1024;
/// Time to drain before the user is told what is waited for; a healthy device takes less.
const PATIENCE: Nanos = Nanos::from_secs(1);
/// How often the watcher looks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Chunks of lines, of 8 KiB each.
const UNHEARD_MAX: usize = 1024;
const EAGAIN: u32 = 11;
const EBUSY: u32 = 16;
