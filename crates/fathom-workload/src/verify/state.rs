//! Saved state of verification: the latest write of each block that a job acknowledged.
//!
//! All numbers are little-endian:
//!
//! ```text
//! "fathom verify state\n"   version, 4   is complete, 4   crc32c, 4   bytes of the description, 8
//! description: boot   number of jobs, 4, and their names   number of files, 4, and of each:
//!              path   start, 8   end, 8   bytes per entry, 4   bytes per block, 4   policy, 4
//! zeros up to a multiple of 4
//! of each file: entries, 4 each; if its policy is 1 and the state is incomplete, the number of
//!              syncs that have begun, 4, the last that has ended, 4, that of each block, 4
//! ```
//!
//! A block has a header of its own, and one entry or several. The policy is 0 if a write counts
//! when it has completed, and 1 if it does when a sync has (`verify_policy`); in a complete state
//! the entries of others are unknown.
//!
//! A text follows its length, 4. The checksum covers all that follows it; of an incomplete state
//! only the description, for its entries change: a run that is killed leaves such a state, whose
//! entries it changed in place while it ran (see [`GenerationMap::kept_in`]).
//!
//! Entries are those of the [`GenerationMap`]; a block with a write in flight is unknown. The
//! format is Fathom's own and changes with its version; fio's, which names writes in flight, was
//! rejected: it describes the sequence of a generator that Fathom does not have.

use std::fmt;
use std::sync::atomic::AtomicU32;

use fathom_checksum::crc32c;

use super::entries::{Entries, UNKNOWN};
use super::synced::SyncedBlocks;
use super::{GenerationMap, MapLayout};

/// State of the files of one or more jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyState {
    /// The run had ended; otherwise it still runs, or was killed.
    pub is_complete: bool,
    /// Boot of the host during which an incomplete state was kept. Its entries lie in the page
    /// cache, which does not outlive the boot: those found after it are of several moments.
    pub boot: String,
    /// Names of the jobs.
    pub jobs: Vec<String>,
    /// Their files.
    pub files: Vec<FileState>,
}

/// State of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Path, as the job had it.
    pub path: String,
    /// Extent and granularity of the map.
    pub layout: MapLayout,
    /// Only writes that a completed sync covers are known.
    pub by_sync: bool,
    /// Its entries.
    pub entries: Vec<u32>,
}

impl VerifyState {
    /// Returns the bytes of a state file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_head();
        for file in &self.files {
            for entry in &file.entries {
                bytes.extend(entry.to_le_bytes());
            }
            if file.by_sync && !self.is_complete {
                // Nothing is in flight: no block waits for a sync.
                let words = file.entries.len() as u64 + SyncedBlocks::HEAD;
                bytes.extend((0..words).flat_map(|_| [0; 4]));
            }
        }
        if self.is_complete {
            let sum = crc32c(&bytes[SUMMED..]);
            bytes[SUMMED - 4..SUMMED].copy_from_slice(&sum.to_le_bytes());
        }
        bytes
    }

    /// Returns the bytes in front of the entries, with the checksum of an incomplete state. Their
    /// number is a multiple of 4.
    #[must_use]
    pub fn encode_head(&self) -> Vec<u8> {
        let mut described = Vec::new();
        put_text(&mut described, &self.boot);
        put_count(&mut described, self.jobs.len());
        self.jobs
            .iter()
            .for_each(|job| put_text(&mut described, job));
        put_count(&mut described, self.files.len());
        for file in &self.files {
            put_text(&mut described, &file.path);
            described.extend(file.layout.start.to_le_bytes());
            described.extend(file.layout.end.to_le_bytes());
            described.extend(file.layout.block_bytes.to_le_bytes());
            described.extend(file.layout.interval.to_le_bytes());
            described.extend(u32::from(file.by_sync).to_le_bytes());
        }
        let mut summed = (described.len() as u64).to_le_bytes().to_vec();
        summed.append(&mut described);
        summed.resize(summed.len().next_multiple_of(4), 0);

        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(u32::from(self.is_complete).to_le_bytes());
        bytes.extend(crc32c(&summed).to_le_bytes());
        bytes.append(&mut summed);
        bytes
    }

    /// Reads the bytes of a state file.
    ///
    /// # Errors
    /// They are none, of another version, or damaged. Nothing is reserved for lengths that the
    /// bytes do not have.
    pub fn decode(bytes: &[u8]) -> Result<Self, StateError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(StateError::NoState)?;
        let mut head = Reader(rest);
        let version = head.u32()?;
        if version != VERSION {
            return Err(StateError::Version(version));
        }
        let is_complete = match head.u32()? {
            0 => false,
            1 => true,
            _ => return Err(StateError::Damaged),
        };
        let sum = head.u32()?;
        let summed = head.0;
        let described = usize::try_from(head.u64()?).map_err(|_| StateError::Damaged)?;
        let mut description = Reader(head.take(described)?);
        let padding = head.take(described.next_multiple_of(4) - described)?;
        let covered = match is_complete {
            true => summed,
            false => &summed[..summed.len() - head.0.len()],
        };
        if crc32c(covered) != sum || padding.iter().any(|&byte| byte != 0) {
            return Err(StateError::Damaged);
        }
        let boot = description.text()?;
        let jobs = (0..description.u32()?).map(|_| description.text());
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let files = (0..description.u32()?).map(|_| description.file(&mut head, is_complete));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        match (description.0, head.0) {
            ([], []) => Ok(Self {
                is_complete,
                boot,
                jobs,
                files,
            }),
            _ => Err(StateError::Damaged),
        }
    }
}

impl FileState {
    /// Entry of a block that may hold anything.
    pub const UNKNOWN: u32 = UNKNOWN;

    /// Returns the state of a file, taken from its map.
    #[must_use]
    pub fn of(path: String, map: &GenerationMap) -> Self {
        Self {
            path,
            layout: map.layout(),
            by_sync: map.sync_words() > 0,
            entries: map.known_entries(),
        }
    }

    /// Forgets what another state of this file does not say, too.
    pub fn merge(&mut self, other: &Self) {
        let is_alike = self.layout == other.layout && self.entries.len() == other.entries.len();
        self.by_sync |= other.by_sync;
        let mut others = other.entries.iter().filter(|_| is_alike);
        for entry in &mut self.entries {
            if others.next() != Some(entry) {
                *entry = UNKNOWN;
            }
        }
    }
}

/// Error of a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// It does not begin as one: of fio, for instance.
    NoState,
    /// Another version of the format.
    Version(u32),
    /// It is incomplete, or its checksum differs.
    Damaged,
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoState => f.write_str("not a verify state of fathom"),
            Self::Version(found) => write!(
                f,
                "verify state of version {found}, and this program reads version {VERSION}"
            ),
            Self::Damaged => f.write_str("incomplete or damaged verify state"),
        }
    }
}

impl std::error::Error for StateError {}

/// Bytes that are left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], StateError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(StateError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, StateError> {
        let bytes = self.take(4)?.try_into();
        bytes
            .map(u32::from_le_bytes)
            .map_err(|_| StateError::Damaged)
    }

    fn u64(&mut self) -> Result<u64, StateError> {
        let bytes = self.take(8)?.try_into();
        bytes
            .map(u64::from_le_bytes)
            .map_err(|_| StateError::Damaged)
    }

    fn text(&mut self) -> Result<String, StateError> {
        let length = self.u32()? as usize;
        let text = std::str::from_utf8(self.take(length)?);
        text.map(str::to_owned).map_err(|_| StateError::Damaged)
    }

    /// Reads the description of a file, and its entries.
    fn file(&mut self, entries: &mut Self, is_complete: bool) -> Result<FileState, StateError> {
        let path = self.text()?;
        let layout = MapLayout {
            start: self.u64()?,
            end: self.u64()?,
            block_bytes: self.u32()?,
            interval: self.u32()?,
        };
        let by_sync = match self.u32()? {
            0 => false,
            1 => true,
            _ => return Err(StateError::Damaged),
        };
        if layout.block_bytes == 0 || layout.end < layout.start {
            return Err(StateError::Damaged);
        }
        let bytes = usize::try_from(layout.memory_bytes()).unwrap_or(usize::MAX);
        let mut known = words(entries.take(bytes)?).collect::<Vec<_>>();
        if by_sync && !is_complete {
            let bytes = bytes.checked_add(SyncedBlocks::HEAD_BYTES);
            let syncs = entries.take(bytes.ok_or(StateError::Damaged)?)?;
            let syncs =
                SyncedBlocks::kept_in(Entries::Own(words(syncs).map(AtomicU32::new).collect()));
            for (block, entry) in known.iter_mut().enumerate() {
                if !syncs.covers(block) {
                    *entry = UNKNOWN;
                }
            }
        }
        Ok(FileState {
            path,
            layout,
            by_sync,
            entries: known,
        })
    }
}

/// Iterates over little-endian words.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| u32::from_le_bytes(*word))
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_count(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn put_count(bytes: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a job has fewer than 2^32 files, and names are short");
    bytes.extend(count.to_le_bytes());
}

const MAGIC: &[u8] = b"fathom verify state\n";
const VERSION: u32 = 5;
/// Offset of what the checksum covers: all that follows it, version, and state.
const SUMMED: usize = MAGIC.len() + 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> VerifyState {
        let layout = MapLayout {
            start: 4096,
            end: 4096 + 5 * 512,
            block_bytes: 512,
            interval: 1024,
        };
        VerifyState {
            is_complete: true,
            boot: "b0".into(),
            jobs: vec!["t".into()],
            files: vec![FileState {
                path: "data".into(),
                layout,
                by_sync: false,
                entries: vec![0, 1, 1 << 29 | 5, 2 << 29 | 5, 3 << 29 | 9],
            }],
        }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        assert_eq!(VerifyState::decode(&state().encode()), Ok(state()));
        let empty = VerifyState::default();
        assert_eq!(VerifyState::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let good = state().encode();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(VerifyState::decode(&bad).is_err(), "byte {at}");
            assert!(VerifyState::decode(&good[..at]).is_err(), "cut at {at}");
        }
        let longer = [&good[..], &[0]].concat();
        assert_eq!(VerifyState::decode(&longer), Err(StateError::Damaged));
    }

    /// The entries of an incomplete state change without its checksum.
    #[test]
    fn an_incomplete_state_is_read_with_any_entries() {
        let state = VerifyState {
            is_complete: false,
            ..state()
        };
        let mut bytes = state.encode();
        let head = state.encode_head().len();
        assert_eq!((head % 4, bytes.len()), (0, head + 5 * 4));
        assert_eq!(VerifyState::decode(&bytes), Ok(state));
        bytes[head + 8] ^= 1;
        let read = VerifyState::decode(&bytes).unwrap();
        assert_eq!(read.files[0].entries[2], 1 << 29 | 4);
        for at in 0..head {
            bytes[at] ^= 1;
            assert!(VerifyState::decode(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
        assert!(VerifyState::decode(&bytes[..bytes.len() - 1]).is_err());
    }

    /// Of an incomplete state, each block has the sync that covers it.
    #[test]
    fn blocks_of_an_incomplete_state_are_unknown_until_their_sync() {
        let mut state = VerifyState {
            is_complete: false,
            ..state()
        };
        state.files[0].by_sync = true;
        let mut bytes = state.encode();
        assert_eq!(VerifyState::decode(&bytes), Ok(state.clone()));
        let syncs = state.encode_head().len() + 5 * 4;
        assert_eq!(bytes.len(), syncs + 7 * 4);
        // Two syncs have begun and one has ended; the fourth block waits for the second.
        bytes[syncs] = 2;
        bytes[syncs + 4] = 1;
        for (block, number) in [1, 0, 1, 2, 1].into_iter().enumerate() {
            bytes[syncs + 8 + 4 * block] = number;
        }
        let read = VerifyState::decode(&bytes).unwrap();
        let want = [0, 1, 1 << 29 | 5, UNKNOWN, 3 << 29 | 9];
        assert_eq!(read.files[0].entries, want);
        assert!(VerifyState::decode(&bytes[..bytes.len() - 1]).is_err());
        // Of a complete state they are unknown already.
        state.is_complete = true;
        assert_eq!(VerifyState::decode(&state.encode()), Ok(state));
    }

    #[test]
    fn states_of_one_file_agree_or_are_unknown() {
        let mut one = state().files.remove(0);
        let mut other = one.clone();
        other.entries[3] = 7;
        one.merge(&other);
        assert_eq!(one.entries, [0, 1, 1 << 29 | 5, UNKNOWN, 3 << 29 | 9]);
        other.layout.start = 0;
        one.merge(&other);
        assert_eq!(one.entries, [UNKNOWN; 5]);
    }

    #[test]
    fn other_versions_and_programs_are_refused() {
        let mut bytes = state().encode();
        bytes[MAGIC.len()] = 7;
        assert_eq!(VerifyState::decode(&bytes), Err(StateError::Version(7)));
        assert_eq!(VerifyState::decode(&[7; 200]), Err(StateError::NoState));
    }

    #[test]
    fn entries_of_a_state_that_are_none_are_unknown() {
        let of = |entry| GenerationMap::restored(state().files[0].layout, vec![entry; 5]);
        let known = |entry| of(entry).known_entries()[0];
        assert_eq!(
            (known(0), known(1), known(1 << 29 | 5)),
            (0, 1, 1 << 29 | 5)
        );
        // In flight, contended, no state at all, and a special entry that does not exist.
        assert_eq!(
            [known(4 << 29), known(5 << 29), known(7 << 29), known(2)],
            [1; 4]
        );
    }
}
