//! Saved state of verification: the latest write of each block that a job acknowledged.
//!
//! All numbers are little-endian:
//!
//! ```text
//! "fathom verify state\n"   version, 4   length of the rest, 8   crc32c of the rest, 4
//! job: length, 4, and name  number of files, 4
//! each file: path as the job's name   start, 8   end, 8   bytes per entry, 4   entries, 4 each
//! ```
//!
//! Entries are those of the [`GenerationMap`]; a block with a write in flight is unknown. The
//! format is Fathom's own and changes with its version; fio's, which names writes in flight, was
//! rejected: it describes the sequence of a generator that Fathom does not have.

use std::fmt;

use fathom_checksum::crc32c;

use super::{GenerationMap, MapLayout};

/// State of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyState {
    /// Name of the job.
    pub job: String,
    /// Its files, in their order.
    pub files: Vec<FileState>,
}

/// State of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Path, as the job had it.
    pub path: String,
    /// Extent and granularity of the map.
    pub layout: MapLayout,
    /// Its entries.
    pub entries: Vec<u32>,
}

impl VerifyState {
    /// Returns the bytes of a state file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_text(&mut body, &self.job);
        put_count(&mut body, self.files.len());
        for file in &self.files {
            put_text(&mut body, &file.path);
            body.extend(file.layout.start.to_le_bytes());
            body.extend(file.layout.end.to_le_bytes());
            body.extend(file.layout.block_bytes.to_le_bytes());
            file.entries
                .iter()
                .for_each(|entry| body.extend(entry.to_le_bytes()));
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((body.len() as u64).to_le_bytes());
        bytes.extend(crc32c(&body).to_le_bytes());
        bytes.append(&mut body);
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
        let (length, sum) = (head.u64()?, head.u32()?);
        let body = head.0;
        if body.len() as u64 != length || crc32c(body) != sum {
            return Err(StateError::Damaged);
        }
        let mut body = Reader(body);
        let job = body.text()?;
        let files = (0..body.u32()?).map(|_| body.file());
        let files = files.collect::<Result<Vec<_>, _>>()?;
        match body.0 {
            [] => Ok(Self { job, files }),
            _ => Err(StateError::Damaged),
        }
    }
}

impl FileState {
    /// Returns the state of a file, taken from its map.
    #[must_use]
    pub fn of(path: String, map: &GenerationMap) -> Self {
        Self {
            path,
            layout: map.layout(),
            entries: map.known_entries(),
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

    fn file(&mut self) -> Result<FileState, StateError> {
        let path = self.text()?;
        let layout = MapLayout {
            start: self.u64()?,
            end: self.u64()?,
            block_bytes: self.u32()?,
        };
        if layout.block_bytes == 0 || layout.end < layout.start {
            return Err(StateError::Damaged);
        }
        let bytes = usize::try_from(layout.memory_bytes()).unwrap_or(usize::MAX);
        let entries = self.take(bytes)?.as_chunks::<4>().0;
        Ok(FileState {
            path,
            layout,
            entries: entries
                .iter()
                .map(|entry| u32::from_le_bytes(*entry))
                .collect(),
        })
    }
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
const VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> VerifyState {
        let layout = MapLayout {
            start: 4096,
            end: 4096 + 5 * 512,
            block_bytes: 512,
        };
        VerifyState {
            job: "t".into(),
            files: vec![FileState {
                path: "data".into(),
                layout,
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
