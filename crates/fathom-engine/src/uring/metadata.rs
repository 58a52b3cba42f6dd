//! `io_uring` on block devices whose blocks have metadata: protection information past the block
//! layer's own (`md_per_io_size`).

use std::fs::File;
use std::os::fd::BorrowedFd;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineOption, EngineStep, Errno,
    FileIndex, Op, OpKind, Slot, Submitted, Tick, pass_to_engine,
};
use fathom_nvme::{BlockFormat, Guard, Protection, ProtectionType};
use fathom_sys::files::FileKind;
use fathom_sys::integrity::{BlockMetadata, GuardKind, block_metadata};
use fathom_sys::uring::IntegrityChecks;

use super::{HIPRI, INFO, Uring};
use crate::EngineConfig;
use crate::error::refused_value;
use crate::passthrough::extent;
use crate::protection::{MD_PER_IO_SIZE, OwnProtection, ProtectionOptions};

/// `io_uring` with a buffer of metadata beside the data of each read and write.
///
/// The kernel takes the metadata as they are, and asks the device for the checks of `pi_chk`. With
/// `pi_act=0` the job makes the protection information of its writes and checks that of its reads;
/// otherwise the metadata of writes are zeros, and those of reads are ignored. A type of its own,
/// so that ops without metadata cost nothing more.
pub(super) struct UringWithMetadata {
    uring: Uring,
    options: ProtectionOptions,
    buffer_bytes: u32,
    /// By file; those of closed files are kept.
    devices: Box<[Option<Device>]>,
    /// By slot.
    in_flight: Box<[ReadOp]>,
    /// Latest failure that a check explains, for [`Engine::explain`].
    failure: Option<(Errno, String)>,
}

/// Device with metadata.
#[derive(Clone, Copy, Debug)]
struct Device {
    format: BlockFormat,
    own_protection: Option<OwnProtection>,
}

/// Op in flight.
#[derive(Clone, Copy, Debug, Default)]
struct ReadOp {
    /// Its device, if what it reads is to be checked.
    checked: Option<FileIndex>,
    first: u64,
    buffer_offset: u32,
}

impl UringWithMetadata {
    pub(super) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = ProtectionOptions::resolve(&config.options)?;
        let refuse = |option: &EngineOption, hint| {
            let engine = format!("engine `{}`", INFO.name);
            Err(refused_value(option.name, engine, hint))
        };
        if !config.direct {
            return refuse(&MD_PER_IO_SIZE, "metadata need direct I/O: set direct=1");
        }
        // Seen on Linux 7.2: EOPNOTSUPP for each op.
        if config.options.flag(&HIPRI) {
            return refuse(
                &HIPRI,
                "polled queues transfer no metadata: leave out hipri, or md_per_io_size",
            );
        }
        let tags = &options.tags;
        let checks = IntegrityChecks {
            guard: tags.check_guard,
            reference: tags.check_reference,
            application: tags.check_application,
            application_tag: tags.application,
        };
        Ok(Self {
            uring: Uring::with_metadata(config, options.metadata_bytes, Some(checks))?,
            options,
            buffer_bytes: config.buffer_bytes,
            devices: config.files.iter().map(|_| None).collect(),
            in_flight: vec![ReadOp::default(); config.depth as usize].into_boxed_slice(),
            failure: None,
        })
    }

    /// Returns the format of an open device's blocks, if the job can transfer their metadata.
    fn format(&self, file: FileIndex, device: &File) -> Result<BlockFormat, EngineError> {
        let refuse = |errno, hint: String| EngineError {
            step: EngineStep::Option(MD_PER_IO_SIZE.name),
            target: self.uring.files.path(file).to_owned(),
            errno,
            hint,
        };
        if self.uring.files.kind(file) != FileKind::Block {
            let hint = "only block devices have metadata: name one, like /dev/nvme0n1";
            return Err(refuse(None, hint.into()));
        }
        let metadata = block_metadata(device).map_err(|error| {
            let hint = "metadata of block devices need Linux 6.17, built with \
                        CONFIG_BLK_DEV_INTEGRITY: without it, run with `--ioengine=io_uring_cmd` \
                        on the character device";
            refuse(Errno::of(&error), hint.into())
        })?;
        let Some(metadata) = metadata else {
            let hint = "the block layer has no metadata of the device's blocks: leave out \
                        md_per_io_size, or run with `--ioengine=io_uring_cmd`";
            return Err(refuse(None, hint.into()));
        };
        let Some(format) = block_format(&metadata) else {
            let hint = "the device has protection information of a kind that is not known, or \
                        none: format it to another";
            return Err(refuse(None, hint.into()));
        };
        let blocks = self.buffer_bytes / format.block_bytes();
        let too_small = (self.options).too_small_for(blocks, format.metadata_bytes.into());
        too_small.map_or(Ok(format), |hint| Err(refuse(None, hint)))
    }

    /// Queues a read or a write with its metadata.
    fn queue(&mut self, op: &Op, direction: Direction) -> Result<(), Errno> {
        let Some(Device {
            format,
            own_protection,
        }) = &self.devices[op.file.index()]
        else {
            return Err(Errno::EBADF);
        };
        let (first, blocks) =
            extent(op.offset, op.length, format.block_bytes()).ok_or(Errno::EINVAL)?;
        let bytes = blocks * u32::from(format.metadata_bytes);
        let ring = &mut self.uring.ring;
        if direction == Direction::Write
            && let Some(own) = own_protection
        {
            let (data, metadata) = ring.data_and_metadata(op.slot, op.buffer_offset, op.length);
            own.protect(first, data, metadata);
        }
        ring.set_metadata(op.slot, bytes, first);
        let reads = direction == Direction::Read;
        self.in_flight[op.slot.index()] = ReadOp {
            checked: (reads && own_protection.is_some()).then_some(op.file),
            first,
            buffer_offset: op.buffer_offset,
        };
        let files = &self.uring.files;
        ring.push(op, || files.descriptor(op.file));
        Ok(())
    }

    /// Returns the result of a completed op, given what the ring has of it.
    fn result(&mut self, slot: Slot, result: i32) -> i32 {
        if result == Errno::EILSEQ.result() {
            let text = "wrong protection information, found by the device or the kernel";
            self.failure = Some((Errno::EILSEQ, text.into()));
        }
        let op = self.in_flight[slot.index()];
        let device = op.checked.and_then(|file| self.devices[file.index()]);
        let own = device.and_then(|device| device.own_protection);
        let (Some(own), 1..) = (own, result) else {
            return result;
        };
        let (offset, length) = (op.buffer_offset, result.unsigned_abs());
        let (data, metadata) = (self.uring.ring).data_and_metadata(slot, offset, length);
        match own.check(op.first, data, metadata) {
            Ok(()) => result,
            Err((block, error)) => {
                let text = format!("{error} in block {block}, found by the host");
                self.failure = Some((Errno::EILSEQ, text));
                Errno::EILSEQ.result()
            }
        }
    }
}

impl Engine for UringWithMetadata {
    pass_to_engine!(uring);

    fn capabilities(&self) -> Capabilities {
        self.uring.capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.uring.open(file)?;
        let found = self.uring.files.get(file);
        let format = found.map(|device| self.format(file, device)).transpose();
        match format {
            Ok(format) => {
                self.devices[file.index()] = format.map(|format| Device {
                    own_protection: OwnProtection::of(&format, &self.options),
                    format,
                });
                Ok(())
            }
            Err(error) => {
                self.uring.close(file)?;
                Err(error)
            }
        }
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.uring.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.uring.invalidate(file)
    }

    fn prepare(&mut self, op: &Op) {
        self.in_flight[op.slot.index()] = ReadOp::default();
        let OpKind::Data(direction @ (Direction::Read | Direction::Write)) = op.kind else {
            return self.uring.prepare(op);
        };
        if let Err(errno) = self.queue(op, direction) {
            if errno == Errno::EINVAL {
                let text = "not a whole number of blocks with metadata";
                self.failure = Some((errno, text.into()));
            }
            self.uring.ring.complete(op.slot, errno.result());
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.uring.submit(want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = self.uring.reap(out);
        for completion in &mut out[..count] {
            completion.result = self.result(completion.slot, completion.result);
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.uring.wait(min, until)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.uring.descriptor()
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        let (own, text) = self.failure.as_ref()?;
        (*own == errno).then(|| text.clone())
    }
}

/// Returns the format of blocks with this metadata; `None` without protection information that can
/// be made and checked here.
fn block_format(metadata: &BlockMetadata) -> Option<BlockFormat> {
    let interval = u32::from(metadata.interval_bytes);
    let guard = match metadata.guard {
        GuardKind::Crc16 => Guard::Crc16,
        GuardKind::Crc64 => Guard::Crc64,
        GuardKind::Other => return None,
    };
    let is_known = interval.is_power_of_two()
        && metadata.storage_tag_bytes == 0
        && usize::from(metadata.protection_bytes) == guard.tuple_bytes();
    let protection = Protection {
        kind: match metadata.has_reference {
            true => ProtectionType::One,
            false => ProtectionType::Three,
        },
        guard,
        is_first: metadata.protection_offset == 0,
    };
    is_known.then_some(BlockFormat {
        blocks: 0,
        block_shift: u8::try_from(interval.trailing_zeros()).ok()?,
        metadata_bytes: metadata.bytes.into(),
        is_extended: false,
        protection: Some(protection),
    })
}

#[cfg(test)]
mod tests {
    use fathom_core::EngineValues;
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::built_in;

    /// 64 bytes of metadata, of which the last 16 are protection information.
    const METADATA: BlockMetadata = BlockMetadata {
        interval_bytes: 512,
        bytes: 64,
        protection_bytes: 16,
        protection_offset: 48,
        guard: GuardKind::Crc64,
        has_reference: true,
        storage_tag_bytes: 0,
    };

    #[test]
    fn formats_follow_from_what_the_kernel_says() {
        let format = block_format(&METADATA).unwrap();
        assert_eq!((format.block_bytes(), format.metadata_bytes), (512, 64));
        let protection = format.protection.unwrap();
        assert_eq!(
            (protection.guard, protection.is_first),
            (Guard::Crc64, false)
        );
        assert_eq!(protection.kind, ProtectionType::One);
        let without = |change: fn(&mut BlockMetadata)| {
            let mut metadata = METADATA;
            change(&mut metadata);
            block_format(&metadata)
        };
        assert!(without(|one| one.guard = GuardKind::Other).is_none());
        assert!(without(|one| one.storage_tag_bytes = 4).is_none());
        assert!(without(|one| one.protection_bytes = 8).is_none());
        let third = without(|one| (one.has_reference, one.protection_offset) = (false, 0));
        let third = third.unwrap().protection.unwrap();
        assert_eq!((third.kind, third.is_first), (ProtectionType::Three, true));
    }

    #[test]
    fn what_the_kernel_does_not_transfer_is_refused() {
        let hint = |direct, hipri| {
            let values = EngineValues::default().with(&MD_PER_IO_SIZE, 64);
            let config = EngineConfig {
                direct,
                options: values.with(&HIPRI, hipri),
                ..EngineConfig::new(built_in("io_uring"), Clock::monotonic())
            };
            UringWithMetadata::start(&config)
                .err()
                .map(|error| error.hint)
        };
        assert!(hint(false, 0).is_some_and(|hint| hint.contains("direct=1")));
        assert!(hint(true, 1).is_some_and(|hint| hint.contains("leave out hipri")));
    }
}
