//! Device in memory that several threads serve.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock};

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Errno, Finished, Geometry, OpKind, Tick,
};

use crate::sync::PoisonError;

/// Device whose data are in memory, sparse, and shared: threads [`open`](Self::open) it once each.
///
/// Data are copied between buffers and memory in the call, and a command completes at once. Memory
/// is taken in chunks when they are first written; what was never written reads as zeros and takes
/// none. A write for which no memory is left fails with `ENOSPC` if the address space is limited
/// (`RLIMIT_AS`, strict overcommit); otherwise the kernel may end the process. The data end with
/// the last of the devices.
///
/// # Cost
/// The copy, a lock per chunk touched, which readers share, and no table to search. A command that
/// touches two chunks is two copies: another one may be seen between them.
pub struct SharedMemory {
    chunks: Arc<Chunks>,
    geometry: Geometry,
    done: VecDeque<Finished>,
}

/// Chunks of a device. The table is in two levels, so that a large empty device takes no memory.
struct Chunks {
    tables: Box<[OnceLock<Table>]>,
}

type Table = Box<[RwLock<Option<Box<[u8]>>>]>;

impl SharedMemory {
    /// Creates a device of zeros.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let tables = bytes.div_ceil(TABLE_BYTES);
        Self::over(
            Arc::new(Chunks {
                tables: (0..tables).map(|_| OnceLock::new()).collect(),
            }),
            bytes,
        )
    }

    /// Opens the same device for another thread.
    #[must_use]
    pub fn open(&self) -> Self {
        Self::over(Arc::clone(&self.chunks), self.geometry.bytes)
    }

    fn over(chunks: Arc<Chunks>, bytes: u64) -> Self {
        Self {
            chunks,
            geometry: Geometry {
                bytes,
                moves_data: true,
                ..Geometry::UNBOUNDED
            },
            done: VecDeque::new(),
        }
    }

    /// Returns the bytes that written chunks take.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let tables = self.chunks.tables.iter().filter_map(OnceLock::get);
        let chunks = tables.flat_map(|table| table.iter());
        let written = chunks.filter(|chunk| {
            let chunk = chunk.read().unwrap_or_else(PoisonError::into_inner);
            chunk.is_some()
        });
        written.count() as u64 * CHUNK as u64
    }
}

impl BlockDevice for SharedMemory {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        let mut result = command.whole();
        let length = command.length as usize;
        match (command.kind, data) {
            (OpKind::Data(Direction::Read), Some(data)) => {
                let into = &mut data.bytes_mut()[..length];
                self.chunks.read(command.offset, into);
            }
            (OpKind::Data(Direction::Write), Some(data)) => {
                let written = self.chunks.write(command.offset, &data.bytes()[..length]);
                result = written.map_or_else(Errno::result, |()| result);
            }
            (OpKind::Data(Direction::Trim), _) => {
                self.chunks.discard(command.offset, length);
            }
            // Without a buffer nothing is to be moved, and everything is durable as it is.
            (OpKind::Data(_), None) | (OpKind::Sync(_), _) => {}
        }
        let finished = Finished::new(command.tag, now, result);
        self.done.push_back(finished);
    }

    fn next(&self) -> Option<Tick> {
        self.done.front().map(|finished| finished.at)
    }

    fn completed(&mut self, _now: Tick) -> Option<Finished> {
        self.done.pop_front()
    }
}

impl fmt::Debug for SharedMemory {
    /// The size alone: the content fills screens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} bytes)", self.geometry.bytes)
    }
}

impl Chunks {
    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut rest = into;
        let mut at = Place::of(offset);
        while !rest.is_empty() {
            let (part, behind) = rest.split_at_mut(rest.len().min(CHUNK - at.within));
            let chunk = self.tables[at.table].get().map(|table| {
                let chunk = &table[at.chunk];
                chunk.read().unwrap_or_else(PoisonError::into_inner)
            });
            match chunk.as_ref().and_then(|chunk| chunk.as_deref()) {
                Some(held) => part.copy_from_slice(&held[at.within..][..part.len()]),
                None => part.fill(0),
            }
            at = at.behind();
            rest = behind;
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut rest = bytes;
        let mut at = Place::of(offset);
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(CHUNK - at.within));
            let table = self.tables[at.table].get_or_init(new_table);
            let mut chunk = table[at.chunk]
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let held = match &mut *chunk {
                Some(held) => held,
                empty @ None => empty.insert(new_chunk()?),
            };
            held[at.within..][..part.len()].copy_from_slice(part);
            at = at.behind();
            rest = behind;
        }
        Ok(())
    }

    fn discard(&self, offset: u64, length: usize) {
        let mut rest = length;
        let mut at = Place::of(offset);
        while rest > 0 {
            let part = rest.min(CHUNK - at.within);
            if let Some(table) = self.tables[at.table].get() {
                let mut chunk = table[at.chunk]
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                if part == CHUNK {
                    *chunk = None;
                } else if let Some(held) = &mut *chunk {
                    held[at.within..][..part].fill(0);
                }
            }
            at = at.behind();
            rest -= part;
        }
    }
}

/// Place of a byte: table, chunk in the table, and offset in the chunk.
#[derive(Clone, Copy)]
struct Place {
    table: usize,
    chunk: usize,
    within: usize,
}

impl Place {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "remainders below a table's size, and a table's index, which was a usize"
    )]
    const fn of(offset: u64) -> Self {
        Self {
            table: (offset / TABLE_BYTES) as usize,
            chunk: (offset % TABLE_BYTES) as usize / CHUNK,
            within: (offset % CHUNK as u64) as usize,
        }
    }

    /// Returns the beginning of the next chunk.
    const fn behind(self) -> Self {
        let is_last = self.chunk + 1 == TABLE;
        Self {
            table: self.table + is_last as usize,
            chunk: if is_last { 0 } else { self.chunk + 1 },
            within: 0,
        }
    }
}

fn new_table() -> Table {
    (0..TABLE).map(|_| RwLock::new(None)).collect()
}

/// Returns a chunk of zeros.
///
/// A failed allocation would end the process, so memory is asked for before; the chunk itself is
/// not made by `try_reserve` and `resize`, which would touch all its pages.
fn new_chunk() -> Result<Box<[u8]>, Errno> {
    let reserved = Vec::<u8>::new().try_reserve_exact(HEADROOM);
    reserved.map_err(|_no_memory| Errno::ENOSPC)?;
    Ok(vec![0; CHUNK].into_boxed_slice())
}

/// Bytes of a chunk. Large, so that few transfers touch two and the processor's page walks stay
/// short; small enough that scattered writes do not fill memory at once: pages of a chunk that are
/// never touched take none.
const CHUNK: usize = 2 << 20;
/// Memory that data leave to the rest of the process, among it a chunk of each other thread. More
/// than 32 MiB: glibc takes freed memory of up to that size as a reason to give chunks from its
/// heap, where it has to clear them.
const HEADROOM: usize = 64 << 20;
/// Chunks of a table: a table for each GiB.
const TABLE: usize = 512;
const TABLE_BYTES: u64 = CHUNK as u64 * TABLE as u64;

#[cfg(test)]
mod tests {
    use fathom_core::DataBuffer;

    use super::*;

    fn command(device: &mut SharedMemory, direction: Direction, offset: u64, bytes: &mut [u8]) {
        let length = u32::try_from(bytes.len()).expect("short");
        let mut buffer = Box::new(DataBuffer::new(length));
        buffer.bytes_mut().copy_from_slice(bytes);
        let mut data = (direction != Direction::Trim).then_some(buffer);
        let command = Command {
            tag: 7,
            kind: OpKind::Data(direction),
            offset,
            length,
        };
        device.start(&command, &mut data, Tick::ZERO);
        let finished = device.completed(Tick::ZERO).expect("done at once");
        assert_eq!(finished.result, length.cast_signed());
        assert_eq!(device.completed(Tick::ZERO), None);
        if let Some(data) = data {
            bytes.copy_from_slice(data.bytes());
        }
    }

    #[test]
    fn what_one_thread_wrote_another_reads() {
        let mut first = SharedMemory::new(3 << 30);
        let mut second = first.open();
        // Across the end of a chunk that is the end of a table.
        let offset = (1 << 30) - 4096;
        let mut bytes: Vec<u8> = (0..=255).cycle().take(12_288).collect();
        command(&mut first, Direction::Write, offset, &mut bytes);
        let mut seen = vec![9; 20_480];
        command(&mut second, Direction::Read, offset - 4096, &mut seen);
        assert!(seen[..4096].iter().all(|byte| *byte == 0));
        assert_eq!(seen[4096..16_384], bytes);
        assert!(seen[16_384..].iter().all(|byte| *byte == 0));
        assert_eq!(first.allocated_bytes(), 2 * CHUNK as u64);
    }

    #[test]
    fn what_was_not_written_takes_no_memory() {
        let mut device = SharedMemory::new(1 << 40);
        let mut seen = vec![9; 131_072];
        command(&mut device, Direction::Read, 1 << 39, &mut seen);
        assert!(seen.iter().all(|byte| *byte == 0));
        let end = (1 << 40) - 4096;
        command(&mut device, Direction::Write, end, &mut [5; 4096]);
        assert_eq!(device.allocated_bytes(), CHUNK as u64);
        command(&mut device, Direction::Trim, 0, &mut vec![0; CHUNK]);
        let mut last = vec![0; 4096];
        command(&mut device, Direction::Read, end, &mut last);
        assert!(last.iter().all(|byte| *byte == 5));
        let from = (1 << 40) - CHUNK as u64;
        command(&mut device, Direction::Trim, end, &mut [0; 4096]);
        command(&mut device, Direction::Read, end, &mut last);
        assert!(last.iter().all(|byte| *byte == 0));
        command(&mut device, Direction::Trim, from, &mut vec![0; CHUNK]);
        assert_eq!(device.allocated_bytes(), 0, "a whole chunk is let go");
    }
}
