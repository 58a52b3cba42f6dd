//! A job up to its first op: files, worker, start barrier, peer.

use std::sync::atomic::Ordering;

use fathom_core::{Capabilities, Engine, Errno, FileIndex, Nanos, Tick};
use fathom_setup::outcome::JobFailure;
use fathom_sys::clock::{Clock, sleep_until, spin_until, yield_until};
use fathom_workload::Worker;

use super::{JobContext, JobHandles, Work};
use crate::pacing::LOOK_AROUND;
use crate::replay_reader::ReplayReader;

/// Opens the files of a job and drops their page cache. Those of a replay are closed again, for its
/// log to open: their errors come before the first op, and no op waits for the cache.
pub(super) fn open_files(
    engine: &mut impl Engine,
    files: u32,
    invalidate: bool,
    replays: bool,
) -> Result<(), JobFailure> {
    for file in (0..files).map(FileIndex::new) {
        engine.open(file)?;
        if invalidate {
            // The `page_cache` check of the report shows what could not be dropped.
            let _stays_cached = engine.invalidate(file);
        }
        if replays {
            engine.close(file)?;
        }
    }
    Ok(())
}

/// Creates the worker of a job, connected to its log and to the log that it replays.
///
/// It is on the heap: by value, each function on the way to the loop had room for it on the stack,
/// and touched pages of a stack stay in memory, 512 times in a run of 512 jobs.
pub(super) fn worker_of(
    work: Work,
    capabilities: Capabilities,
    clock: &Clock,
) -> Result<Box<Worker>, JobFailure> {
    let mut worker = match Worker::new(work.config, capabilities, clock.now()) {
        Ok(worker) => Box::new(worker),
        Err(error) => return Err(JobFailure::new(Errno::EINVAL, error.to_string())),
    };
    // A read of a clock that another thread keeps may take less than 1 ns.
    worker.set_clock_read(Nanos::new(clock.read_cost_ns().max(1)));
    if let Some(log) = work.log {
        worker.log_to(log);
    }
    if let Some(sink) = work.sink {
        worker.record_to(sink);
    }
    if let Some(checker) = work.checker {
        worker.check_by(checker);
    }
    if let Some(replay) = &work.replay {
        worker.replay_from(Box::new(ReplayReader::start(replay)?));
    }
    Ok(worker)
}

/// Connects the engine to its peer, if it has one, no earlier than the job starts. Returns false if
/// the run was stopped first.
pub(super) fn await_peer<E: Engine>(
    engine: &mut E,
    delay: Nanos,
    runtime: Option<Nanos>,
    context: &JobContext<'_>,
) -> Result<bool, JobFailure> {
    if !context.has_peer {
        return Ok(true);
    }
    let (clock, control) = (&context.handles.shared.clock, context.handles.control);
    // Relaxed: the flag carries no data.
    let stops = || control.stop.load(Ordering::Relaxed);
    let origin = context.handles.shared.origin.get().copied();
    let start = origin.unwrap_or_default() + delay;
    while clock.now() < start && !stops() {
        sleep_until(clock, start.min(clock.now() + LOOK_AROUND));
    }
    let limit = runtime.map_or(Tick::MAX, |runtime| clock.now() + runtime);
    while !stops() {
        if engine.connect()? {
            return Ok(true);
        }
        if clock.now() >= limit {
            let text = "no peer has connected within the job's `runtime`";
            let hint = "start the job of the peer first, or lengthen `runtime`";
            return Err(JobFailure::new(Errno::ETIMEDOUT, text).hint(hint));
        }
    }
    Ok(false)
}

/// Waits for the start of the wave, and returns the time.
///
/// The barrier opens before an agreed start, and each thread sleeps until shortly before it by a
/// timer of its own: woken by the watcher instead, the last of 8 ranks on two processors began
/// twice as late. With a processor each, threads spin the rest. Without, they take turns, so that
/// each is awake at the start; asleep until then, the 8 ranks began a quarter further apart.
pub(super) fn pass_barrier(handles: &JobHandles<'_>) -> Tick {
    let (clock, start) = (&handles.shared.clock, handles.barrier.pass());
    sleep_until(
        clock,
        Tick::new(start.get().saturating_sub(WAKE_EARLY.get())),
    );
    match handles.shared.wakes_early {
        true => spin_until(clock, start),
        false => yield_until(clock, start),
    }
    clock.now()
}

/// Time that waking a thread takes, on an idle host.
const WAKE_EARLY: Nanos = Nanos::from_micros(200);
