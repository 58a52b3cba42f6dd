//! Starting the jobs wave by wave, watching them, and bringing their outcomes home.
//!
//! One thread for each job and none beside: the calling thread watches. A job's thread has a small
//! stack, of which only the touched pages are resident.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use fathom_core::{Nanos, Tick};

use crate::drive::{Assignment, Fault, Outcome, Shared, run_job};
use crate::gate::Gate;
use crate::progress::ProgressCell;
use crate::session::{Event, JobSnapshot, Session, Snapshot};

/// A job to be run: its wave, and what its thread is given.
pub(crate) struct Launch {
    /// Jobs of one wave start together; waves follow one another.
    pub(crate) wave: u32,
    /// Its name, for the thread's.
    pub(crate) name: String,
    /// What its thread is given.
    pub(crate) assignment: Assignment,
}

/// Runs all waves; the outcomes are in the order of the launches, `None` for jobs that were not
/// started because of a request to stop.
pub(crate) fn run_waves(
    launches: Vec<Launch>,
    shared: &Shared,
    session: &mut Session<'_>,
) -> Vec<Option<Outcome>> {
    let count = launches.len();
    let cells: Vec<ProgressCell> = (0..count).map(|_| ProgressCell::default()).collect();
    let mut outcomes: Vec<Option<Outcome>> = (0..count).map(|_| None).collect();
    let begun = shared.clock.now();
    let mut watch = Watch {
        shared,
        cells: &cells,
        begun,
        started: vec![None; count],
        // Not at once: nothing runs yet.
        tell_at: begun + session.progress.unwrap_or_default(),
        stopping: false,
    };
    let mut pending = launches.into_iter().enumerate().peekable();
    while let Some(wave) = pending.peek().map(|(_, launch)| launch.wave) {
        let members = std::iter::from_fn(|| pending.next_if(|(_, launch)| launch.wave == wave));
        let members: Vec<_> = members.collect();
        watch.look_for_stop(session);
        if watch.stopping {
            break;
        }
        run_wave(members, &mut watch, session, &mut outcomes);
    }
    outcomes
}

/// What a job's thread says to the watcher.
enum Message {
    /// It waits for the gate only, or has ended before it came so far.
    Ready,
    /// It has ended.
    Ended,
}

/// How many threads of a wave have said what; one that ends early says both.
#[derive(Default)]
struct Heard {
    ready: usize,
    ended: usize,
}

fn run_wave(
    members: Vec<(usize, Launch)>,
    watch: &mut Watch<'_>,
    session: &mut Session<'_>,
    outcomes: &mut [Option<Outcome>],
) {
    let gate = Gate::default();
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(members.len());
        for (index, launch) in members {
            match spawn(
                scope,
                launch,
                watch.shared,
                &gate,
                &watch.cells[index],
                sender.clone(),
            ) {
                Ok(handle) => handles.push((index, handle)),
                Err(error) => outcomes[index] = Some(not_started(&error)),
            }
        }
        drop(sender);
        let (count, mut heard) = (handles.len(), Heard::default());
        watch.until(&receiver, &mut heard, session, |heard| heard.ready == count);
        let now = watch.shared.clock.now();
        for (index, _) in &handles {
            watch.started[*index] = Some(now);
        }
        gate.open();
        watch.until(&receiver, &mut heard, session, |heard| heard.ended == count);
        for (index, handle) in handles {
            // Panics were caught on the thread; what is left is a failure of the runtime itself.
            let outcome = handle
                .join()
                .unwrap_or_else(|_| not_started(&"its thread was lost"));
            outcomes[index] = Some(outcome);
        }
    });
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    launch: Launch,
    shared: &'scope Shared,
    gate: &'scope Gate,
    cell: &'scope ProgressCell,
    sender: Sender<Message>,
) -> std::io::Result<ScopedJoinHandle<'scope, Outcome>> {
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
            let outcome = run_job(launch.assignment, shared, gate, cell, &ready);
            ready();
            let _heard = sender.send(Message::Ended);
            outcome
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
    begun: Tick,
    started: Vec<Option<Tick>>,
    tell_at: Tick,
    stopping: bool,
}

impl Watch<'_> {
    /// Watches until enough was heard.
    fn until(
        &mut self,
        receiver: &Receiver<Message>,
        heard: &mut Heard,
        session: &mut Session<'_>,
        enough: impl Fn(&Heard) -> bool,
    ) {
        while !enough(heard) {
            match receiver.recv_timeout(LOOK_EVERY) {
                Ok(Message::Ready) => heard.ready += 1,
                Ok(Message::Ended) => heard.ended += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.look_for_stop(session);
            self.tell_progress(session);
        }
    }

    fn look_for_stop(&mut self, session: &mut Session<'_>) {
        if !self.stopping && (session.stops)() > 0 {
            self.stopping = true;
            // Relaxed: the flag carries no data.
            self.shared.control.stop.store(true, Ordering::Relaxed);
            (session.tell)(Event::Stopping);
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
        let jobs = self.cells.iter().zip(&self.started).map(|(cell, started)| {
            let (state, ios, bytes) = cell.read();
            JobSnapshot {
                state,
                ios,
                bytes,
                elapsed: started.map_or(Nanos::ZERO, |started| now - started),
            }
        });
        let snapshot = Snapshot {
            elapsed: now - self.begun,
            jobs: jobs.collect(),
        };
        (session.tell)(Event::Progress(&snapshot));
    }
}

/// Deep enough for the loop and for formatting an error; 512 jobs map 128 MiB and touch a tenth.
const STACK_BYTES: usize = 256 * 1024;
/// How often the watcher looks for a request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const EAGAIN: u32 = 11;
