//! Tracking of a job's ops in the generation maps of its files.
//!
//! ```text
//!            prepared               completed
//!  write ──► begin (map) ─────────► end (map)
//!  read  ──► observe (snapshot) ──► expected (snapshot, map) ─► Verifier
//! ```

use std::ops::Range;
use std::sync::Arc;

use fathom_core::{Direction, FileIndex, NoMemory, OpKind, Slot, SyncKind};

use crate::config::{Mix, WorkerConfig};
use crate::slots::SlotState;
use crate::source::used_directions;
use crate::verify::{
    Change, Content, DryRunMap, Expected, Generation, GenerationMap, SyncNumber, Verifier,
};
use crate::worker::Worker;

/// Generation maps of a job's files, and what its ops in flight need of them.
#[derive(Debug)]
pub(crate) struct Tracking {
    /// Maps by file; `None` for a file that no job writes.
    files: Box<[Option<Arc<GenerationMap>>]>,
    /// Maps of a dry run, by file; empty for other jobs.
    pub(crate) dry_run: Box<[DryRunMap]>,
    /// Change of the write or trim in flight in each slot.
    changes: Box<[Option<Change>]>,
    /// Writes are synced when they complete.
    syncs_each_write: bool,
    /// Number of the sync in flight in each slot.
    syncs: Box<[Option<SyncNumber>]>,
    /// Entries at the issue of the read in flight in each slot, `observed_max` places each.
    seen: Box<[u32]>,
    observed_max: usize,
}

impl Tracking {
    /// Reserves the maps of a job with this verifier; `None` if it has none.
    ///
    /// # Errors
    /// Not enough memory.
    pub(crate) fn new(
        config: &WorkerConfig,
        verifier: Option<&Verifier>,
        depth: u32,
    ) -> Result<Option<Box<Self>>, NoMemory> {
        let dry_run = match verifier.filter(|_| config.is_dry_run) {
            Some(verifier) => dry_run_maps(config, verifier, depth)?,
            None => Vec::new(),
        };
        let files = match (&config.generations[..], verifier) {
            ([], _) if !dry_run.is_empty() => Vec::new(),
            ([], Some(verifier)) if writes(config) => own_maps(config, verifier.interval()),
            ([], _) => return Ok(None),
            (shared, _) => shared.to_vec(),
        };
        for map in files.iter().flatten() {
            map.reserve()?;
        }
        let depth = depth as usize;
        let observed_max = match verifier {
            Some(_) => observed_max(config, &files),
            None => 0,
        };
        Ok(Some(Box::new(Self {
            files: files.into_boxed_slice(),
            dry_run: dry_run.into_boxed_slice(),
            changes: vec![None; depth].into_boxed_slice(),
            syncs_each_write: config.sync.each_write,
            syncs: vec![None; depth].into_boxed_slice(),
            seen: zeros(depth.saturating_mul(observed_max))?,
            observed_max,
        })))
    }

    /// Notes an op that is about to be issued; `stamped`: the generation and interval of the
    /// blocks of a write.
    pub(crate) fn begin(&mut self, state: &SlotState, stamped: Option<(Generation, u32)>) {
        let op = &state.op;
        let Some(map) = self.files.get(op.file.index()).and_then(Option::as_ref) else {
            return;
        };
        let OpKind::Data(direction) = op.kind else {
            return;
        };
        let content = match (direction, stamped) {
            (Direction::Read, _) => {
                let from = op.slot.index() * self.observed_max;
                let seen = &mut self.seen[from..from + self.observed_max];
                return map.observe(op.offset, op.length, seen);
            }
            (Direction::Write, Some((_, interval))) => Content::Stamped(interval),
            (Direction::Write, None) => Content::Untracked,
            (Direction::Trim, _) => Content::Zeros,
        };
        let unstamped = || Generation::new(state.start.get(), op.sequence, 0);
        let change = Change {
            offset: op.offset,
            length: op.length,
            generation: stamped.map_or_else(unstamped, |(generation, _)| generation),
            content,
        };
        map.begin(&change);
        self.changes[op.slot.index()] = Some(change);
    }

    /// Notes that the op in a slot has completed, or will not (`done` false). Returns the
    /// generation of what it changed.
    pub(crate) fn end(&mut self, state: &SlotState, done: bool) -> Option<Generation> {
        let change = self.changes[state.op.slot.index()].take()?;
        let map = self.map(state.op.file)?;
        map.end(&change, done);
        if done && self.syncs_each_write && change.content != Content::Zeros {
            map.synced(&change);
        }
        Some(change.generation)
    }

    /// Notes a sync of a file that is about to be issued. One of a part of it covers no write: it
    /// leaves the device's cache as it is.
    pub(crate) fn begin_sync(&mut self, slot: Slot, file: FileIndex, kind: SyncKind) {
        let covers = !matches!(kind, SyncKind::Range(_));
        let map = self.map(file).filter(|_| covers);
        self.syncs[slot.index()] = map.and_then(GenerationMap::begin_sync);
    }

    /// Notes that the sync in a slot has completed.
    pub(crate) fn end_sync(&mut self, state: &SlotState) {
        if let Some(sync) = self.syncs[state.op.slot.index()].take()
            && let Some(map) = self.map(state.op.file)
        {
            map.end_sync(sync);
        }
    }

    /// Makes the content of a range unknown, in which no write is in flight.
    pub(crate) fn forget(&self, file: FileIndex, range: Range<u64>) {
        if let Some(map) = self.map(file) {
            map.forget(range);
        }
    }

    /// Returns what the block of `length` bytes at `offset` must hold, which a completed read
    /// covers.
    pub(crate) fn expected(&self, state: &SlotState, offset: u64, length: u32) -> Expected {
        let Some(map) = self.map(state.op.file) else {
            return Expected::Valid;
        };
        let from = state.op.slot.index() * self.observed_max;
        let seen = &self.seen[from..from + self.observed_max];
        let skipped = map.entries_between(state.start_offset(), offset);
        map.expected(offset, length, seen.get(skipped..).unwrap_or_default())
    }

    /// Returns the map of a file.
    pub(crate) fn map(&self, file: FileIndex) -> Option<&GenerationMap> {
        self.files.get(file.index())?.as_deref()
    }

    /// Returns a file's map in a dry run.
    pub(crate) fn dry_run(&self, file: FileIndex) -> Option<&DryRunMap> {
        self.dry_run.get(file.index())
    }

    /// Returns whether this job can check the blocks of all writers of a file.
    pub(crate) fn is_uniform(&self, file: FileIndex) -> bool {
        self.map(file).is_none_or(GenerationMap::is_uniform)
    }

    /// Forgets all writes: the files were created again.
    pub(crate) fn clear(&self) {
        self.files.iter().flatten().for_each(|map| map.clear());
    }
}

impl Worker {
    /// Notes that a prepared op is about to be issued.
    pub(crate) fn track(&mut self, slot: Slot) {
        let state = self.queue.slots.state(slot);
        if let Some(tracking) = &mut self.tracking {
            let readback = self.readback.as_ref();
            tracking.begin(state, readback.map(|readback| readback.stamped(state)));
        }
    }

    /// Frees the slot of an op that has failed or was abandoned: nothing is known of what it wrote.
    #[cold]
    pub(crate) fn release_failed(&mut self, slot: Slot) {
        self.release_zone(slot, false);
        if let Some(tracking) = &mut self.tracking {
            tracking.end(self.queue.slots.state(slot), false);
        }
        if let Some(readback) = &mut self.readback {
            readback.release(slot);
        }
        self.queue.slots.put_reset(slot);
    }
}

/// Returns whether a job changes its files.
fn writes(config: &WorkerConfig) -> bool {
    let used = used_directions(config.pattern.mix);
    used.write || used.trim
}

/// Creates the maps of a job whose files no other job uses.
fn own_maps(config: &WorkerConfig, interval: u32) -> Vec<Option<Arc<GenerationMap>>> {
    let map = |file| Arc::new(GenerationMap::new(config.map_layout(file, interval)));
    (0..config.pattern.files.len())
        .map(|file| Some(map(file)))
        .collect()
}

/// Creates the maps of a dry run.
fn dry_run_maps(
    config: &WorkerConfig,
    verifier: &Verifier,
    depth: u32,
) -> Result<Vec<DryRunMap>, NoMemory> {
    // The write of a pair waits for its trim, and no other op overlaps either.
    let ordered = depth == 1 || config.serialize_overlap || config.pattern.mix == Mix::TrimWrite;
    let layouts = config.dry_run_layouts().into_iter();
    layouts
        .map(|layout| DryRunMap::new(layout, verifier.period(), ordered))
        .collect()
}

/// Returns the largest number of entries that a read of a job touches.
fn observed_max(config: &WorkerConfig, files: &[Option<Arc<GenerationMap>>]) -> usize {
    let largest = largest_read(config);
    let entries = |map: &Arc<GenerationMap>| map.entries_touched_max(largest);
    files.iter().flatten().map(entries).max().unwrap_or(0)
}

/// Reserves zeros.
fn zeros(count: usize) -> Result<Box<[u32]>, NoMemory> {
    let bytes = (count as u64).saturating_mul(size_of::<u32>() as u64);
    let reserved = Vec::<u32>::new().try_reserve_exact(count);
    reserved.map_err(|_| NoMemory { bytes })?;
    // Zeroed by the system, so that unused pages stay unused.
    Ok(vec![0; count].into_boxed_slice())
}

/// Returns the length of a job's longest read, those of readback included.
fn largest_read(config: &WorkerConfig) -> u32 {
    let used = used_directions(config.pattern.mix);
    let sizes = &config.pattern.sizes;
    // By order, sequential ops have the size of reads, whatever their direction.
    let by_order = config.pattern.sizes_by_order;
    let used = [Direction::Read, Direction::Write]
        .into_iter()
        .filter(|&d| used[d] || by_order);
    used.map(|direction| sizes[direction].largest())
        .max()
        .unwrap_or(0)
}
