//! Entries of a generation map: words of three bits of state and a generation, and their memory.

use std::fmt::Debug;
use std::sync::atomic::AtomicU32;

use fathom_core::NoMemory;

use super::generation::Generation;

/// Memory of the entries.
#[derive(Debug)]
pub(super) enum Entries {
    Own(Box<[AtomicU32]>),
    Kept(Box<dyn EntryMemory>),
}

impl Entries {
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU32] {
        match self {
            Self::Own(words) => words,
            Self::Kept(memory) => (**memory).as_ref(),
        }
    }
}

/// Memory for entries that outlives the map: a file that is mapped, for instance.
pub trait EntryMemory: AsRef<[AtomicU32]> + Debug + Send + Sync {}

impl<T: AsRef<[AtomicU32]> + Debug + Send + Sync> EntryMemory for T {}

/// State of an entry: its upper three bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// [`UNTOUCHED`], [`UNKNOWN`] or [`UNTRACKED`].
    Special,
    /// First part of a stamped block.
    First,
    /// Another part of a stamped block.
    Rest,
    /// Trimmed, or zeros were written.
    Zeroed,
    /// One write is in flight.
    InFlight,
    /// Several writes were in flight together; see [`ContendedBlocks`]. In place of a generation
    /// the entry has a version, so that a reader notices each change.
    ///
    /// [`ContendedBlocks`]: super::contended::ContendedBlocks
    Contended,
}

/// Returns an entry.
#[inline]
pub(super) const fn word(state: State, generation: Generation) -> u32 {
    (state as u32) << Generation::BITS | generation.get()
}

/// Returns the state of an entry.
#[inline]
pub(super) const fn state(entry: u32) -> State {
    match entry >> Generation::BITS {
        1 => State::First,
        2 => State::Rest,
        3 => State::Zeroed,
        4 => State::InFlight,
        5 => State::Contended,
        _ => State::Special,
    }
}

/// Returns the generation in an entry.
#[inline]
pub(super) const fn generation(entry: u32) -> Generation {
    Generation::from_low_bits(entry)
}

/// Returns an entry that outlives a run; unknown where a write is in flight.
pub(super) const fn known(entry: u32) -> u32 {
    match state(entry) {
        State::First | State::Rest | State::Zeroed => entry,
        State::Special if entry == UNTOUCHED => entry,
        State::Special | State::InFlight | State::Contended => UNKNOWN,
    }
}

/// Entry of a block that was not written in this run.
pub(super) const UNTOUCHED: u32 = 0;
/// Entry of a block that may hold anything.
pub(super) const UNKNOWN: u32 = 1;
/// Entry of a block that a job without verification wrote last, in whole or in part.
pub(super) const UNTRACKED: u32 = 2;

/// Reserves zeroed entries.
pub(super) fn zeroed(blocks: u64) -> Result<Box<[AtomicU32]>, NoMemory> {
    let refused = NoMemory {
        bytes: blocks.saturating_mul(BYTES_PER_ENTRY),
    };
    let count = usize::try_from(blocks).map_err(|_| refused)?;
    Vec::<u32>::new()
        .try_reserve_exact(count)
        .map_err(|_| refused)?;
    // Zeroed by the system and converted in place, so that unused pages stay unused.
    Ok(vec![0; count].into_iter().map(AtomicU32::new).collect())
}

/// Bytes that an entry takes.
pub(super) const BYTES_PER_ENTRY: u64 = size_of::<AtomicU32>() as u64;
