//! Map of the latest write of each block of a file.
//!
//! ```text
//!            begin(w)                 end(w)
//!  settled ───────────► in flight ───────────► known (w), zeroed (w), or unknown if it failed
//!                           │ begin(v), before end(w)
//!                           ▼
//!                       contended ───────────► as above, once one of the overlapping writes must
//!                                  end(w), end(v)  be the last; else contended, either is right
//! ```
//!
//! An entry is a word of 32 bits: three of state, the rest the [`Generation`] of the block, so that
//! the map is a two-hundredth of a file of 1 KiB blocks, and less of larger ones. It is zeroed
//! memory, and a page of it is used when its part of the file is.
//!
//! A read is judged by what the entries say when it is issued *and* when it has completed: only
//! where both are the same was no write in flight beside it. So no read takes a lock, and no writer
//! waits for a reader.
//!
//! # Rejected
//! * *A log of writes alone*: other jobs' writes are not in it, and partial overlaps need a search.
//! * *A list of writes in flight*: every read would search it, under a lock shared by all jobs.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fathom_core::NoMemory;

use super::contended::ContendedBlocks;
use super::entries::{
    BYTES_PER_ENTRY, Entries, EntryMemory, State, UNKNOWN, UNTOUCHED, UNTRACKED, generation, known,
    state, word, zeroed,
};
use super::expected::Expected;
use super::generation::Generation;
use super::map_layout::MapLayout;
use super::synced::{SyncNumber, SyncedBlocks};

/// Latest write of each block of a file, shared by the jobs that work on it.
///
/// Create it with the part of the file that jobs write; the first worker that uses it reserves its
/// memory. Writes and trims are reported twice, before they are issued ([`begin`](Self::begin)) and
/// when they have completed or failed ([`end`](Self::end)).
///
/// # What this costs
/// [`BYTES_PER_BLOCK`](Self::BYTES_PER_BLOCK) bytes per block, two stores per block and write (two
/// compare-and-swap operations if several jobs share it), and a load per block and read. Blocks
/// with overlapping writes in flight take a lock.
#[derive(Debug)]
pub struct GenerationMap {
    layout: MapLayout,
    /// Binary logarithm of the bytes per entry, if it is a whole number and the map does not know
    /// of syncs: the common case, which has a path of its own.
    shift: Option<u32>,
    /// One job alone uses it.
    exclusive: bool,
    /// The blocks of all writers have the same format, so any job can check any of them.
    uniform: bool,
    entries: OnceLock<Entries>,
    contended: Mutex<ContendedBlocks>,
    /// Syncs that the blocks wait for; `None`: a write counts when it has completed.
    synced: Option<SyncedBlocks>,
}

/// Memory of a map that outlives it.
#[derive(Debug)]
pub struct KeptMemory {
    /// A word per entry.
    pub entries: Box<dyn EntryMemory>,
    /// [`GenerationMap::sync_words`] words of 0.
    pub syncs: Option<Box<dyn EntryMemory>>,
}

/// Write or trim, as reported to the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
    /// Identity of the write.
    pub generation: Generation,
    /// Content that it leaves.
    pub content: Content,
}

/// Content that a change leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Stamped blocks of this many bytes, counted from the op's offset.
    Stamped(u32),
    /// Zeros.
    Zeros,
    /// Data of a job that does not verify.
    Untracked,
}

impl GenerationMap {
    /// Bytes that an entry takes.
    pub const BYTES_PER_BLOCK: u64 = BYTES_PER_ENTRY;

    /// Creates a map without memory, for one job.
    #[must_use]
    pub fn new(layout: MapLayout) -> Self {
        let block = layout.block_bytes;
        Self {
            layout,
            shift: block.is_power_of_two().then(|| block.ilog2()),
            exclusive: true,
            uniform: true,
            entries: OnceLock::new(),
            contended: Mutex::default(),
            synced: None,
        }
    }

    /// Lets the map know which writes a completed sync covers: the entries of others are unknown
    /// after the run. This takes another word per block.
    #[must_use]
    pub fn with_syncs(self) -> Self {
        self.with_synced(Some(SyncedBlocks::default()))
    }

    fn with_synced(self, synced: Option<SyncedBlocks>) -> Self {
        Self {
            shift: self.shift.filter(|_| synced.is_none()),
            synced,
            ..self
        }
    }

    /// Lets several jobs use the map; `uniform`: their verified blocks have the same format.
    #[must_use]
    pub fn shared(self, uniform: bool) -> Self {
        Self {
            exclusive: false,
            uniform,
            ..self
        }
    }

    /// Creates a map with the entries of an earlier run, for any number of jobs. An entry that is
    /// none, or is missing, is unknown.
    #[must_use]
    pub fn restored(layout: MapLayout, mut entries: Vec<u32>) -> Self {
        let count = usize::try_from(layout.blocks()).unwrap_or(usize::MAX);
        entries.iter_mut().for_each(|entry| *entry = known(*entry));
        entries.resize(count.min(entries.len()), UNKNOWN);
        let map = Self::new(layout).shared(true);
        let entries = entries.into_iter().map(AtomicU32::new).collect();
        // A new map has no entries.
        let _ = map.entries.set(Entries::Own(entries));
        map
    }

    /// Returns this map with its entries moved into other memory, in which every change is seen at
    /// once. What a killed process leaves there is a state of its files: an entry of a completed
    /// write is set before the write is acknowledged to anyone.
    ///
    /// # Panics
    /// The memory has not the number of entries that the layout has.
    #[must_use]
    pub fn kept_in(&self, memory: KeptMemory) -> Self {
        let words = (*memory.entries).as_ref();
        assert_eq!(words.len() as u64, self.layout.blocks(), "a word per entry");
        for (word, entry) in words.iter().zip(self.entries()) {
            word.store(entry.load(Ordering::Acquire), Ordering::Release);
        }
        let map = Self {
            exclusive: self.exclusive,
            uniform: self.uniform,
            entries: OnceLock::from(Entries::Kept(memory.entries)),
            ..Self::new(self.layout)
        };
        let syncs = memory.syncs.map(Entries::Kept);
        map.with_synced(syncs.map(SyncedBlocks::kept_in))
    }

    /// Returns the extent and the granularity.
    #[must_use]
    pub const fn layout(&self) -> MapLayout {
        self.layout
    }

    /// Returns the words that the numbers of syncs take; 0 if the map does not know of syncs.
    #[must_use]
    pub fn sync_words(&self) -> u64 {
        let words = self.layout.blocks().saturating_add(SyncedBlocks::HEAD);
        self.synced.as_ref().map_or(0, |_| words)
    }

    /// Returns the memory that the map takes, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let syncs = self.sync_words().saturating_mul(BYTES_PER_ENTRY);
        self.layout.memory_bytes().saturating_add(syncs)
    }

    /// Returns the entries, those of writes in flight as unknown, and those that no sync covers if
    /// the map knows of syncs. So are all entries if the blocks of the writers differ in format,
    /// for an entry does not tell whose it is.
    #[must_use]
    pub fn known_entries(&self) -> Vec<u32> {
        let entries = self.entries().iter().enumerate();
        let covers = |block| {
            self.synced
                .as_ref()
                .is_none_or(|synced| synced.covers(block))
        };
        // Acquire: pairs with the release of a writer in another thread.
        let known = |(block, entry): (usize, &AtomicU32)| match self.uniform && covers(block) {
            true => known(entry.load(Ordering::Acquire)),
            false => UNKNOWN,
        };
        entries.map(known).collect()
    }

    /// Returns whether the blocks of all writers have the same format.
    #[must_use]
    pub const fn is_uniform(&self) -> bool {
        self.uniform
    }

    /// Reserves the memory, unless another worker has done so.
    ///
    /// # Errors
    /// There is not enough.
    pub fn reserve(&self) -> Result<(), NoMemory> {
        if let Some(synced) = &self.synced {
            synced.reserve(self.layout.blocks())?;
        }
        if self.entries.get().is_some() {
            return Ok(());
        }
        let entries = zeroed(self.layout.blocks())?;
        // Two workers may come here together: one of the maps is dropped unused.
        let _ = self.entries.set(Entries::Own(entries));
        Ok(())
    }

    /// Notes a write or trim that is about to be issued.
    #[inline]
    pub fn begin(&self, change: &Change) {
        let new = word(State::InFlight, change.generation);
        self.each(change, |index, entry, _| {
            let old = entry.load(Ordering::Relaxed);
            let is_settled = !matches!(state(old), State::InFlight | State::Contended);
            if !is_settled || !self.exchange(entry, old, new) {
                self.begin_contended(index, entry, change.generation);
            }
        });
    }

    /// Notes that a write or trim has completed; one that has not (`done` false) may have left
    /// anything in its blocks.
    #[inline]
    pub fn end(&self, change: &Change, done: bool) {
        // The shift is looked at in any case.
        if self.shift.is_none()
            && let Some(synced) = &self.synced
        {
            synced.written(self.touched(change.offset, change.length));
        }
        let old = word(State::InFlight, change.generation);
        self.each(change, |index, entry, settled| {
            let new = if done { settled } else { UNKNOWN };
            if entry.load(Ordering::Relaxed) != old || !self.exchange(entry, old, new) {
                self.end_contended(index, entry, change.generation, new);
            }
        });
    }

    /// Notes a sync of the file that is about to be issued; `None` if the map does not know of
    /// syncs.
    #[must_use]
    pub fn begin_sync(&self) -> Option<SyncNumber> {
        self.synced.as_ref()?.begin()
    }

    /// Notes that a write was synced when it completed.
    pub fn synced(&self, change: &Change) {
        if let Some(synced) = &self.synced {
            synced.cover(self.touched(change.offset, change.length));
        }
    }

    /// Notes that a sync has completed without an error.
    pub fn end_sync(&self, sync: SyncNumber) {
        self.synced.iter().for_each(|synced| synced.end(sync));
    }

    #[cold]
    fn begin_contended(&self, index: usize, entry: &AtomicU32, generation: Generation) {
        self.contended().begin(index, entry, generation);
    }

    #[cold]
    fn end_contended(&self, index: usize, entry: &AtomicU32, of: Generation, settled: u32) {
        self.contended().end(index, entry, of, settled);
    }

    /// Forgets all writes: the file was created again.
    pub(crate) fn clear(&self) {
        let mut contended = self.contended();
        for entry in self.entries() {
            entry.store(UNTOUCHED, Ordering::Release);
        }
        contended.clear();
        self.synced.iter().for_each(SyncedBlocks::clear);
    }

    /// Makes the content of a range unknown, in which no write is in flight.
    pub(crate) fn forget(&self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (from, to) = (
            self.touched(range.start, 0).start,
            self.touched(range.end, 0).end,
        );
        for entry in self.entries().get(from..to).unwrap_or_default() {
            // Release: pairs with the acquire of `observe`.
            entry.store(UNKNOWN, Ordering::Release);
        }
    }

    /// Copies the entries of a range into `out`, which must hold those that the range touches.
    pub(crate) fn observe(&self, offset: u64, length: u32, out: &mut [u32]) {
        let touched = self.touched(offset, length);
        for (entry, out) in self.entries()[touched].iter().zip(out) {
            // Acquire: pairs with the release of a writer in another thread, whose data this read
            // then finds.
            *out = entry.load(Ordering::Acquire);
        }
    }

    /// Returns what the block at `offset` must hold after a read at whose issue its entries were
    /// `seen`; the rest of `seen` belongs to later blocks.
    pub(crate) fn expected(&self, offset: u64, length: u32, seen: &[u32]) -> Expected {
        let touched = self.touched(offset, length);
        let whole = self.layout.is_whole(offset, length) && !touched.is_empty();
        let Some(seen) = seen.get(..touched.len()).filter(|_| whole) else {
            return Expected::Anything;
        };
        let entries = &self.entries()[touched.clone()];
        // Acquire: pairs with the release of a writer in another thread, some of whose data the
        // read may have found.
        let same = |(entry, seen): (&AtomicU32, &u32)| entry.load(Ordering::Acquire) == *seen;
        if !entries.iter().zip(seen).all(same) {
            return Expected::Anything;
        }
        let (first, rest) = (seen[0], &seen[1..]);
        let generation = generation(first);
        match state(first) {
            State::Special if first == UNTOUCHED && rest.iter().all(|e| *e == UNTOUCHED) => {
                Expected::Valid
            }
            State::Zeroed if rest.iter().all(|e| state(*e) == State::Zeroed) => Expected::Zeros,
            State::First if rest.iter().all(|e| *e == word(State::Rest, generation)) => {
                Expected::Latest {
                    generation,
                    sequence: None,
                }
            }
            State::Contended if rest.iter().all(|e| state(*e) == State::Contended) => {
                let candidates = self.contended().candidates(touched);
                candidates.map_or(Expected::Anything, Expected::OneOf)
            }
            _ if seen.contains(&UNTRACKED) => after_untracked(seen),
            _ => Expected::Anything,
        }
    }

    /// Returns whether the block at `offset` still holds, or may hold, this write of it.
    #[must_use]
    #[inline]
    pub fn holds(&self, offset: u64, length: u32, generation: Generation) -> bool {
        if let Some((_, entry)) = self.only_touched(offset, length)
            && entry.load(Ordering::Relaxed) == word(State::First, generation)
        {
            return true;
        }
        self.holds_in_parts(offset, length, generation)
    }

    fn holds_in_parts(&self, offset: u64, length: u32, generation: Generation) -> bool {
        let touched = self.touched(offset, length);
        let Some((first, rest)) = self.entries()[touched.clone()].split_first() else {
            return false;
        };
        match first.load(Ordering::Relaxed) {
            entry if entry == word(State::First, generation) => rest
                .iter()
                .all(|e| e.load(Ordering::Relaxed) == word(State::Rest, generation)),
            entry if state(entry) == State::Contended => {
                self.contended().may_hold(touched.start, generation)
            }
            _ => false,
        }
    }

    /// Returns whether the block at `offset` still holds the zeros of this trim of it.
    pub(crate) fn holds_zeros(&self, offset: u64, length: u32, generation: Generation) -> bool {
        let zeroed = word(State::Zeroed, generation);
        let entries = &self.entries()[self.touched(offset, length)];
        !entries.is_empty() && entries.iter().all(|e| e.load(Ordering::Relaxed) == zeroed)
    }

    /// Calls `f` with each entry that a change touches, its index, and the entry that the change
    /// leaves if all goes well.
    #[inline]
    fn each(&self, change: &Change, mut f: impl FnMut(usize, &AtomicU32, u32)) {
        match self.only_touched(change.offset, change.length) {
            Some((index, entry)) => {
                f(
                    index,
                    entry,
                    change.settled(0, self.layout.block_bytes.into()),
                );
            }
            None => self.each_of_several(change, f),
        }
    }

    #[inline(never)]
    fn each_of_several(&self, change: &Change, mut f: impl FnMut(usize, &AtomicU32, u32)) {
        let touched = self.touched(change.offset, change.length);
        let block = u64::from(self.layout.block_bytes);
        let end = change.offset + u64::from(change.length);
        let mut at = self.layout.start + touched.start as u64 * block;
        for (index, entry) in (touched.start..).zip(&self.entries()[touched]) {
            let is_whole = at >= change.offset && at + block <= end;
            let within = at.saturating_sub(change.offset);
            let settled = match is_whole {
                true => change.settled(within, block),
                false => change.settled_in_part(),
            };
            f(index, entry, settled);
            at += block;
        }
    }

    /// Replaces an entry that has just been found to be `old`, and returns whether it still was.
    #[inline]
    fn exchange(&self, entry: &AtomicU32, old: u32, new: u32) -> bool {
        if self.exclusive {
            // Relaxed: only one thread uses the map.
            entry.store(new, Ordering::Relaxed);
            return true;
        }
        // Release: pairs with the acquire of `observe`. Relaxed on failure: the lock follows.
        entry
            .compare_exchange(old, new, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the indices of the entries that a range touches.
    #[inline]
    fn touched(&self, offset: u64, length: u32) -> Range<usize> {
        self.layout.touched(self.entries().len(), offset, length)
    }

    /// Returns the entry that a range is, and its index, if it is exactly one and entries have a
    /// power of two of bytes.
    ///
    /// The common case by far. The fewer instructions an op has, the more of the cache misses of
    /// ops that follow each other overlap.
    #[inline]
    fn only_touched(&self, offset: u64, length: u32) -> Option<(usize, &AtomicU32)> {
        let within = offset.wrapping_sub(self.layout.start);
        if length != self.layout.block_bytes || within & u64::from(length - 1) != 0 {
            return None;
        }
        let index = usize::try_from(within >> self.shift?).ok()?;
        Some((index, self.entries().get(index)?))
    }

    fn entries(&self) -> &[AtomicU32] {
        self.entries.get().map_or(&[], Entries::words)
    }

    /// Returns the number of entries that a range of this length can touch.
    pub(crate) fn entries_touched_max(&self, length: u32) -> usize {
        // Cannot be cut: at most 2³² + 1.
        length.div_ceil(self.layout.block_bytes) as usize + 1
    }

    /// Returns the number of entries between two offsets.
    pub(crate) fn entries_between(&self, from: u64, to: u64) -> usize {
        self.touched(to, 0).start - self.touched(from, 0).start
    }

    #[cold]
    fn contended(&self) -> MutexGuard<'_, ContendedBlocks> {
        // A poisoned lock belongs to a job that panicked, and so failed.
        self.contended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Change {
    /// Returns what it leaves in the entry of `block` bytes at `within` bytes from its start.
    #[inline]
    fn settled(&self, within: u64, block: u64) -> u32 {
        match self.content {
            Content::Stamped(interval) => {
                let interval = u64::from(interval);
                let into = match within < interval {
                    // Most ops have one interval: a comparison saves them the division.
                    true => within,
                    false => within % interval,
                };
                match into {
                    0 if block <= interval => word(State::First, self.generation),
                    at if at + block <= interval => word(State::Rest, self.generation),
                    _ => UNKNOWN,
                }
            }
            Content::Zeros => word(State::Zeroed, self.generation),
            Content::Untracked => UNTRACKED,
        }
    }

    /// Returns what it leaves in an entry that it covers only in part.
    const fn settled_in_part(&self) -> u32 {
        match self.content {
            Content::Stamped(_) | Content::Zeros => UNKNOWN,
            Content::Untracked => UNTRACKED,
        }
    }
}

/// Returns what a block must hold if a job without verification wrote some of it last: data that
/// are valid by themselves, as after an earlier run, unless other entries leave even that open.
fn after_untracked(seen: &[u32]) -> Expected {
    let is_settled = |entry: &u32| match state(*entry) {
        State::Special => *entry != UNKNOWN,
        State::First | State::Rest | State::Zeroed => true,
        State::InFlight | State::Contended => false,
    };
    match seen.iter().all(is_settled) {
        true => Expected::Valid,
        false => Expected::Anything,
    }
}
