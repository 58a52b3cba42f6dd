//! Trims of several ranges: one Dataset Management command.

use fathom_core::{Slot, TrimRange};
use fathom_sys::uring::CommandData;

use super::encode::{Encoded, RANGE_BYTES, extent, put_range};
use super::namespace::Namespace;
use crate::EngineConfig;

/// Ranges of the trims in each slot.
#[derive(Debug)]
pub(super) struct Ranges {
    /// Largest number per trim.
    max: usize,
    /// `max` places per slot.
    all: Box<[TrimRange]>,
    /// Ranges in use, by slot.
    counts: Box<[usize]>,
}

impl Ranges {
    /// Reserves the ranges of a job; `None` if its trims have one.
    pub(super) fn of(config: &EngineConfig) -> Option<Self> {
        let (max, slots) = (config.trim_ranges as usize, config.depth as usize);
        (max > 1).then(|| Self {
            max,
            all: vec![TrimRange::default(); max * slots].into_boxed_slice(),
            counts: vec![0; slots].into_boxed_slice(),
        })
    }

    /// Keeps the ranges of a slot's next trim.
    pub(super) fn set(&mut self, slot: Slot, ranges: &[TrimRange]) {
        // Panics if there are more than the job has per trim.
        let places = &mut self.all[slot.index() * self.max..][..self.max];
        places[..ranges.len()].copy_from_slice(ranges);
        self.counts[slot.index()] = ranges.len();
    }

    /// Writes the ranges of a slot to the buffer of its command, and their number to the command;
    /// `None` if one is not in whole blocks.
    pub(super) fn put(
        &self,
        slot: Slot,
        namespace: &Namespace,
        trim: &mut Encoded,
        buffer: &mut [u8],
    ) -> Option<()> {
        let count = self.counts[slot.index()];
        let ranges = &self.all[slot.index() * self.max..][..count];
        for (range, bytes) in ranges
            .iter()
            .zip(buffer.chunks_exact_mut(RANGE_BYTES as usize))
        {
            let block_bytes = namespace.op_block_bytes;
            put_range(bytes, extent(range.offset, range.length, block_bytes)?);
        }
        // At most 256, which the job language sees to; counted from 0.
        let count = u32::try_from(count).ok()?;
        trim.command.dwords_10[0] = count.checked_sub(1)?;
        trim.command.data = CommandData::Extra {
            length: count * RANGE_BYTES,
        };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, EngineValues, FileIndex, Op, OpKind};
    use fathom_nvme::Opcode;
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::built_in;
    use crate::passthrough::encode::encode;
    use crate::passthrough::namespace::tests::namespace;
    use crate::passthrough::options::Options;

    /// Encodes the trim of some ranges (first byte, bytes) in slot 1; returns the number of ranges
    /// less one, the bytes of data, and these.
    fn encoded(of: &[(u64, u32)]) -> Option<(u32, u32, Vec<u8>)> {
        let config = EngineConfig {
            depth: 2,
            trim_ranges: 3,
            ..EngineConfig::new(built_in("io_uring_cmd"), Clock::monotonic())
        };
        let mut ranges = Ranges::of(&config).expect("several ranges");
        let of: Vec<_> = of
            .iter()
            .map(|&(offset, length)| TrimRange { offset, length })
            .collect();
        let slot = Slot::new(1);
        ranges.set(slot, &of);
        let options = Options::resolve(&EngineValues::default()).expect("defaults");
        let namespace = namespace(0, false, None, &options);
        let trim = Op {
            slot,
            kind: OpKind::Data(Direction::Trim),
            priority: 0,
            file: FileIndex::new(0),
            length: of.iter().map(|range| range.length).sum(),
            buffer_offset: 0,
            offset: of[0].offset,
            sequence: 0,
        };
        let mut trim = encode(&trim, Opcode::READ, &namespace, &options, None)?;
        let mut buffer = vec![0xff; 3 * RANGE_BYTES as usize];
        ranges.put(slot, &namespace, &mut trim, &mut buffer)?;
        let CommandData::Extra { length } = trim.command.data else {
            panic!("a trim has ranges");
        };
        buffer.truncate(length as usize);
        Some((trim.command.dwords_10[0], length, buffer))
    }

    #[test]
    fn each_range_has_its_blocks() {
        let (last, length, bytes) = encoded(&[(8192, 4096), (0, 65536)]).expect("whole blocks");
        assert_eq!((last, length), (1, 32));
        let first = [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
        let second = [0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes, [first, second].concat());
        let (last, length, bytes) = encoded(&[(4096, 4096)]).expect("whole blocks");
        assert_eq!((last, length, bytes[8]), (0, 16, 1));
    }

    #[test]
    fn a_part_of_a_block_is_refused() {
        assert_eq!(encoded(&[(0, 4096), (100, 4096)]), None);
        assert_eq!(encoded(&[(0, 4096), (4096, 2048), (8192, 2048)]), None);
    }
}
