//! A job up to its first op: files, worker, start barrier, peer.

use std::fs;

use fathom_core::{Capabilities, Engine, Errno, FileIndex, Nanos, Tick};
use fathom_engine::EngineConfig;
use fathom_setup::outcome::JobFailure;
use fathom_sys::clock::{Clock, sleep_until, spin_until, yield_until};
use fathom_sys::files::FileKind;
use fathom_sys::thread;
use fathom_workload::Worker;

use super::{JobContext, Work};
use crate::pacing::LOOK_AROUND;
use crate::replay_reader::ReplayReader;

/// Refuses files that another program or an earlier job replaced by a pipe after the checks:
/// opening it would wait for its other end, and heed no stop request.
pub(super) fn check_files(config: &EngineConfig) -> Result<(), JobFailure> {
    let kind = |path: &str| fs::metadata(path).map(|found| FileKind::of(&found));
    let mut paths = config.files.iter().map(|file| &file.path);
    match paths.find(|path| kind(path).is_ok_and(|kind| kind == FileKind::Other)) {
        None => Ok(()),
        Some(path) => {
            let why = format!("open: {path}: it was replaced by a pipe or a socket");
            let hint = "name a regular file or a block device";
            Err(JobFailure::new(Errno::ESPIPE, why).hint(hint))
        }
    }
}

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
    let (clock, stop) = (&context.handles.shared.clock, context.handles.stop);
    let origin = context.handles.shared.origin.get().copied();
    let start = origin.unwrap_or_default() + delay;
    while clock.now() < start && !stop.is_requested() {
        sleep_until(clock, start.min(clock.now() + LOOK_AROUND));
    }
    let limit = runtime.map_or(Tick::MAX, |runtime| clock.now() + runtime);
    while !stop.is_requested() {
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

/// Waits for the start of the wave. Returns the time, and where jobs share processors what holds
/// until the first op has been issued.
///
/// The barrier opens before an agreed start, and each thread sleeps until shortly before it by a
/// timer of its own: woken by the watcher instead, the last of 8 ranks on two processors began
/// twice as late. With a processor each, threads spin the rest. Without, they take turns, so that
/// each is awake at the start; asleep until then, the 8 ranks began a quarter further apart.
pub(super) fn pass_barrier(context: &JobContext<'_>) -> (Tick, Option<SharedStart>) {
    let (handles, shared) = (context.handles, context.handles.shared);
    // A command would inherit the one processor, and a peer lets wait.
    let begins_at_once = !context.has_peer && !context.hooks.has_prerun();
    let shared_start = match begins_at_once && !shared.wakes_early {
        true => Some(SharedStart::in_turn(shared.jobs_before + handles.index)),
        false => None,
    };
    let (clock, start) = (&shared.clock, handles.barrier.pass());
    sleep_until(
        clock,
        Tick::new(start.get().saturating_sub(WAKE_EARLY.get())),
    );
    match shared.wakes_early {
        true => spin_until(clock, start),
        false => yield_until(clock, start),
    }
    (clock.now(), shared_start)
}

/// Start of a job that shares its processor: until it is dropped, the calling thread is confined to
/// one of those that it may use, so that jobs use all of them evenly. Left to the scheduler, six of
/// 8 ranks came to be on one of two.
pub(super) struct SharedStart {
    /// Processors to give back; `None` if there is no choice.
    allowed: Option<Vec<u32>>,
}

impl SharedStart {
    /// Confines the thread whose turn this is, of many.
    fn in_turn(turn: usize) -> Self {
        let allowed = thread::allowed_cpus().ok().filter(|cpus| cpus.len() > 1);
        let is_confined = |cpus: &Vec<u32>| {
            let own = cpus[turn % cpus.len()];
            thread::set_allowed_cpus(&[own]).is_ok()
        };
        Self {
            allowed: allowed.filter(is_confined),
        }
    }

    /// Lets the jobs that share the processor issue their first ops before this one goes on: the
    /// last of four began a third later when each went to sleep first. It may use all processors
    /// from then on, which costs 10 µs, too many for those that wait.
    pub(super) fn give_way(self) {
        std::thread::yield_now();
    }
}

impl Drop for SharedStart {
    fn drop(&mut self) {
        if let Some(allowed) = &self.allowed {
            // Fails if the host has taken all the others away meanwhile.
            let _one_is_left = thread::set_allowed_cpus(allowed);
        }
    }
}

/// Time that waking a thread takes, on an idle host.
const WAKE_EARLY: Nanos = Nanos::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_processors_in_turn_and_give_them_back() {
        let all = thread::allowed_cpus().expect("a mask");
        for turn in 0..=all.len() {
            let start = SharedStart::in_turn(turn);
            let own = all[turn % all.len()];
            assert_eq!(thread::allowed_cpus().expect("a mask"), [own]);
            SharedStart::in_turn(turn + 1).give_way();
            assert_eq!(thread::allowed_cpus().expect("a mask"), [own], "no choice");
            start.give_way();
            assert_eq!(thread::allowed_cpus().expect("a mask"), all);
        }
    }
}
