//! Ops as SCSI commands.

use fathom_core::{Direction, Op, OpKind};
use fathom_sys::scsi::{ScsiCommand, ScsiData};

use super::device::Device;
use super::options::{Options, WriteMode};
use crate::scsi::blocks;
use crate::scsi::cdb::{self, Compare, Extent, UNMAP_LIST_BYTES};

/// Command of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoded {
    pub(super) command: ScsiCommand,
    /// Bytes that it transfers.
    pub(super) transferred: u32,
    /// The device may limit its blocks apart from those of transfers (UNMAP and WRITE SAME).
    pub(super) has_limit: bool,
    /// Parameter list of an UNMAP.
    pub(super) list: Option<[u8; UNMAP_LIST_BYTES as usize]>,
}

/// Encodes an op; `None` if it is not in whole blocks, or in more than a command can name.
pub(super) fn encode(op: &Op, device: &Device, options: &Options) -> Option<Encoded> {
    let direction = match op.kind {
        OpKind::Data(direction) => direction,
        OpKind::Sync(_) => {
            return Some(Encoded {
                command: ScsiCommand {
                    cdb: cdb::synchronize_cache(),
                    data: ScsiData::None,
                },
                transferred: 0,
                has_limit: false,
                list: None,
            });
        }
    };
    let extent = blocks::extent(op, device.capacity.block_bytes)?;
    match direction {
        Direction::Read => {
            let data = ScsiData::In {
                offset: op.buffer_offset,
                length: op.length,
            };
            let cdb = cdb::read(extent, options.read_fua);
            Some(Encoded {
                command: ScsiCommand { cdb, data },
                transferred: op.length,
                has_limit: false,
                list: None,
            })
        }
        Direction::Write => write(op, extent, device, options),
        Direction::Trim => {
            let length = UNMAP_LIST_BYTES.into();
            Some(Encoded {
                command: ScsiCommand {
                    cdb: cdb::unmap(),
                    data: ScsiData::Parameters { length },
                },
                transferred: length,
                has_limit: true,
                list: Some(cdb::unmap_list(extent)),
            })
        }
    }
}

/// Encodes a write by the command of the job's mode.
fn write(op: &Op, extent: Extent, device: &Device, options: &Options) -> Option<Encoded> {
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
        list: None,
    })
}

#[cfg(test)]
mod tests {
    use fathom_core::{EngineValues, FileIndex, Slot, SyncKind};

    use super::*;

    fn op(kind: OpKind, offset: u64, length: u32) -> Op {
        Op {
            slot: Slot::new(0),
            kind,
            priority: 0,
            file: FileIndex::new(0),
            length,
            buffer_offset: 64,
            offset,
            sequence: 0,
        }
    }

    const WRITE: OpKind = OpKind::Data(Direction::Write);
    const READ: OpKind = OpKind::Data(Direction::Read);

    fn options(write_mode: WriteMode) -> Options {
        Options {
            write_mode,
            ..Options::resolve(&EngineValues::default()).unwrap()
        }
    }

    fn encoded(op: &Op, options: &Options) -> Option<Encoded> {
        encode(op, &Device::of_blocks(512), options)
    }

    #[track_caller]
    fn check(mode: WriteMode, opcode: u8, transferred: u32) {
        let got = encoded(&op(WRITE, 1024, 4096), &options(mode)).unwrap();
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
        let read = encoded(&op(READ, 512, 1024), &plain).unwrap();
        let want = [0x28, 0, 0, 0, 0, 1, 0, 0, 2, 0];
        assert_eq!(read.command.cdb.as_bytes(), want);
        let trim = encoded(&op(OpKind::Data(Direction::Trim), 512, 1024), &plain).unwrap();
        assert_eq!((trim.transferred, trim.has_limit), (24, true));
        assert_eq!(trim.list.unwrap()[15..20], [1, 0, 0, 0, 2]);
        let sync = encoded(&op(OpKind::Sync(SyncKind::Data), 0, 0), &plain).unwrap();
        assert_eq!((sync.command.data, sync.transferred), (ScsiData::None, 0));
    }

    #[test]
    fn forced_access_is_of_its_direction() {
        let fua = Options {
            read_fua: true,
            ..options(WriteMode::Write)
        };
        let flags = |kind| {
            encoded(&op(kind, 0, 512), &fua)
                .unwrap()
                .command
                .cdb
                .as_bytes()[1]
        };
        assert_eq!((flags(READ), flags(WRITE)), (8, 0));
    }

    #[test]
    fn ops_are_in_whole_blocks() {
        let plain = options(WriteMode::Write);
        for (offset, length) in [(100, 512), (512, 100), (0, 0)] {
            assert_eq!(encoded(&op(READ, offset, length), &plain), None);
        }
        let long = op(WRITE, 0, 512 << 16);
        assert_eq!(encoded(&long, &options(WriteMode::WriteStream)), None);
        assert!(encoded(&long, &plain).is_some());
    }
}
