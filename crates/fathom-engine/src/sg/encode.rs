//! Ops as SCSI commands.

use fathom_core::Op;
use fathom_sys::scsi::{ScsiCommand, ScsiData};

use super::device::Device;
use super::options::{Options, WriteMode};
use crate::scsi::blocks;
use crate::scsi::cdb::{self, Compare};

/// Command of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) command: ScsiCommand,
    /// Bytes that it transfers.
    pub(super) transferred: u32,
    /// The device may limit its blocks apart from those of transfers (UNMAP and WRITE SAME).
    pub(super) has_limit: bool,
}

/// Encodes a sync.
pub(super) const fn sync() -> Encoded {
    Encoded {
        command: ScsiCommand {
            cdb: cdb::synchronize_cache(),
            data: ScsiData::None,
        },
        transferred: 0,
        has_limit: false,
    }
}

/// Encodes a read; `None` if it is not in whole blocks.
pub(super) fn read(op: &Op, device: &Device, options: &Options) -> Option<Encoded> {
    let extent = blocks::extent(op, device.capacity.block_bytes)?;
    let data = ScsiData::In {
        offset: op.buffer_offset,
        length: op.length,
    };
    let cdb = cdb::read(extent, options.read_fua);
    Some(Encoded {
        command: ScsiCommand { cdb, data },
        transferred: op.length,
        has_limit: false,
    })
}

/// Encodes trims of so many ranges, which the slot's parameter list has.
pub(super) fn unmap(ranges: u16) -> Encoded {
    let length = cdb::unmap_list_bytes(ranges).into();
    Encoded {
        command: ScsiCommand {
            cdb: cdb::unmap(ranges),
            data: ScsiData::Parameters { length },
        },
        transferred: length,
        has_limit: true,
    }
}

/// Encodes a write by the command of the job's mode; `None` if it is not in whole blocks, or in
/// more than the command can name.
pub(super) fn write(op: &Op, device: &Device, options: &Options) -> Option<Encoded> {
    let extent = blocks::extent(op, device.capacity.block_bytes)?;
    let (whole, one, none) = (op.length, device.capacity.block_bytes, 0);
    let fua = options.write_fua;
    let (cdb, length) = match options.write_mode {
        WriteMode::Write => (cdb::write(extent, fua), whole),
        WriteMode::WriteAndVerify => (cdb::write_and_verify(extent), whole),
        WriteMode::WriteSame => (cdb::write_same(extent), one),
        WriteMode::WriteSameWithoutData => (cdb::write_same_without_data(extent), none),
        WriteMode::Verify => (cdb::verify(extent, Compare::Nothing), none),
        WriteMode::VerifyBlocks => (cdb::verify(extent, Compare::Blocks), whole),
        WriteMode::VerifyOneBlock => (cdb::verify(extent, Compare::OneBlock), one),
        WriteMode::WriteStream => (cdb::write_stream(extent, fua, device.stream)?, whole),
    };
    let data = match length {
        0 => ScsiData::None,
        length => ScsiData::Out {
            offset: op.buffer_offset,
            length,
        },
    };
    Some(Encoded {
        command: ScsiCommand { cdb, data },
        transferred: length,
        has_limit: matches!(
            options.write_mode,
            WriteMode::WriteSame | WriteMode::WriteSameWithoutData
        ),
    })
}

#[cfg(test)]
mod tests {
    use fathom_core::{Direction, EngineValues, FileIndex, OpKind, Slot};

    use super::*;

    fn op(offset: u64, length: u32) -> Op {
        Op {
            slot: Slot::new(0),
            kind: OpKind::Data(Direction::Write),
            priority: 0,
            file: FileIndex::new(0),
            length,
            buffer_offset: 64,
            offset,
            sequence: 0,
        }
    }

    fn options(write_mode: WriteMode) -> Options {
        Options {
            write_mode,
            ..Options::resolve(&EngineValues::default()).unwrap()
        }
    }

    fn read_of(op: &Op, options: &Options) -> Option<Encoded> {
        read(op, &Device::of_blocks(512), options)
    }

    fn write_of(op: &Op, options: &Options) -> Option<Encoded> {
        write(op, &Device::of_blocks(512), options)
    }

    #[track_caller]
    fn check(mode: WriteMode, opcode: u8, transferred: u32) {
        let got = write_of(&op(1024, 4096), &options(mode)).unwrap();
        let is_same = [WriteMode::WriteSame, WriteMode::WriteSameWithoutData].contains(&mode);
        assert_eq!(got.has_limit, is_same);
        assert_eq!(got.command.cdb.as_bytes()[0], opcode);
        assert_eq!(got.transferred, transferred);
        let want = match transferred {
            0 => ScsiData::None,
            length => ScsiData::Out { offset: 64, length },
        };
        assert_eq!(got.command.data, want);
    }

    #[test]
    fn modes_have_their_commands_and_data() {
        check(WriteMode::Write, 0x2a, 4096);
        check(WriteMode::WriteAndVerify, 0x2e, 4096);
        check(WriteMode::WriteSame, 0x41, 512);
        check(WriteMode::WriteSameWithoutData, 0x93, 0);
        check(WriteMode::Verify, 0x2f, 0);
        check(WriteMode::VerifyBlocks, 0x2f, 4096);
        check(WriteMode::VerifyOneBlock, 0x2f, 512);
        check(WriteMode::WriteStream, 0x9a, 4096);
    }

    #[test]
    fn reads_trims_and_syncs() {
        let plain = options(WriteMode::Write);
        let read = read_of(&op(512, 1024), &plain).unwrap();
        let want = [0x28, 0, 0, 0, 0, 1, 0, 0, 2, 0];
        assert_eq!(read.command.cdb.as_bytes(), want);
        let trim = unmap(3);
        assert_eq!((trim.transferred, trim.has_limit), (56, true));
        assert_eq!(trim.command.data, ScsiData::Parameters { length: 56 });
        assert_eq!(
            (sync().command.data, sync().transferred),
            (ScsiData::None, 0)
        );
    }

    #[test]
    fn forced_access_is_of_its_direction() {
        let fua = Options {
            read_fua: true,
            ..options(WriteMode::Write)
        };
        let flags = |encoded: Option<Encoded>| encoded.unwrap().command.cdb.as_bytes()[1];
        let op = op(0, 512);
        assert_eq!(flags(read_of(&op, &fua)), 8);
        assert_eq!(flags(write_of(&op, &fua)), 0);
    }

    #[test]
    fn ops_are_in_whole_blocks() {
        let plain = options(WriteMode::Write);
        for (offset, length) in [(100, 512), (512, 100), (0, 0)] {
            assert_eq!(read_of(&op(offset, length), &plain), None);
        }
        let long = op(0, 512 << 16);
        assert_eq!(write_of(&long, &options(WriteMode::WriteStream)), None);
        assert!(write_of(&long, &plain).is_some());
    }
}
