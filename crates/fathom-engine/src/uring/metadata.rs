//! `io_uring` on block devices whose blocks have metadata: protection information past the block
//! layer's own (`md_per_io_size`).

use std::fs::File;
use std::os::fd::BorrowedFd;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Op,
    OpKind, Slot, Submitted, Tick, Zone, ZoneAction,
};
use fathom_nvme::{BlockFormat, Guard, Protection, ProtectionType};
use fathom_sys::files::FileKind;
use fathom_sys::integrity::{BlockMetadata, GuardKind, block_metadata};
use fathom_sys::uring::IntegrityChecks;

use super::Uring;
use crate::EngineConfig;
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
    paths: Box<[String]>,
    /// By file; those of closed files are kept.
    formats: Box<[Option<BlockFormat>]>,
    /// By slot.
    in_flight: Box<[ReadOp]>,
    /// Latest failure that a check explains, for [`Engine::explain`].
    failure: Option<(Errno, String)>,
}

/// Op in flight, as far as what it reads is to be checked.
#[derive(Clone, Copy, Debug, Default)]
struct ReadOp {
    checked: Option<OwnProtection>,
    first: u64,
    buffer_offset: u32,
}

impl UringWithMetadata {
    pub(super) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = ProtectionOptions::resolve(&config.options)?;
        if !config.direct {
            return Err(EngineError {
                step: EngineStep::Option(MD_PER_IO_SIZE.name),
                target: "engine `io_uring`".into(),
                errno: None,
                hint: "metadata need direct I/O: set direct=1".into(),
            });
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
            paths: config.files.iter().map(|file| file.path.clone()).collect(),
            formats: config.files.iter().map(|_| None).collect(),
            in_flight: vec![ReadOp::default(); config.depth as usize].into_boxed_slice(),
            failure: None,
        })
    }

    /// Returns the format of an open device's blocks.
    fn format(&self, file: FileIndex, device: &File) -> Result<BlockFormat, EngineError> {
        let path = &self.paths[file.index()];
        let refuse = |errno, hint: String| EngineError {
            step: EngineStep::Option(MD_PER_IO_SIZE.name),
            target: path.clone(),
            errno,
            hint,
        };
        let is_block = device
            .metadata()
            .is_ok_and(|metadata| FileKind::of(&metadata) == FileKind::Block);
        if !is_block {
            let hint = "only block devices have metadata: name one, like /dev/nvme0n1";
            return Err(refuse(None, hint.into()));
        }
        let metadata = block_metadata(device).map_err(|error| {
            let hint = "metadata of block devices need Linux 6.17: before it, run with \
                        `--ioengine=io_uring_cmd` on the character device";
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
        let blocks = self.buffer_bytes >> format.block_shift;
        let needed = u64::from(blocks) * u64::from(format.metadata_bytes);
        if needed > u64::from(self.options.metadata_bytes) {
            let own = format.metadata_bytes;
            let hint = format!(
                "the device has {own} B of metadata per block: set md_per_io_size={needed} for \
                 the {blocks} blocks of the largest op"
            );
            return Err(refuse(None, hint));
        }
        Ok(format)
    }

    /// Queues a read or a write with its metadata.
    fn queue(&mut self, op: &Op, direction: Direction) -> Result<(), Errno> {
        let format = self.formats[op.file.index()].ok_or(Errno::EBADF)?;
        let (first, blocks) = extent(op, &format).ok_or(Errno::EINVAL)?;
        let own = OwnProtection::of(&format, &self.options);
        let bytes = blocks * u32::from(format.metadata_bytes);
        let ring = &mut self.uring.ring;
        if direction == Direction::Write
            && let Some(own) = &own
        {
            let (data, metadata) = ring.both_buffers(op.slot);
            own.protect(first, part(data, op.buffer_offset, op.length), metadata);
        }
        ring.set_metadata(op.slot, bytes, first);
        self.in_flight[op.slot.index()] = ReadOp {
            checked: own.filter(|_| direction == Direction::Read),
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
        let (Some(own), 1..) = (op.checked, result) else {
            return result;
        };
        let (data, metadata) = self.uring.ring.both_buffers(slot);
        let data = part(data, op.buffer_offset, result.unsigned_abs());
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
    fn capabilities(&self) -> Capabilities {
        self.uring.capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.uring.open(file)?;
        let found = self.uring.files.get(file);
        let format = found.map(|device| self.format(file, device)).transpose();
        match format {
            Ok(format) => {
                self.formats[file.index()] = format;
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

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        self.uring.manage_zone(file, action, zone)
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        self.uring.report_zone(file, offset)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.uring.invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.uring.buffer(slot)
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

    fn reaped_at(&mut self) -> Option<Tick> {
        self.uring.reaped_at()
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.uring.wait(min, until)
    }

    fn release(&mut self, slot: Slot) {
        self.uring.release(slot);
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

/// Returns the first block of an op and the number of its blocks, if they are whole ones.
fn extent(op: &Op, format: &BlockFormat) -> Option<(u64, u32)> {
    let mask = (1_u64 << format.block_shift) - 1;
    let is_whole = (op.offset | u64::from(op.length)) & mask == 0;
    is_whole.then_some((
        op.offset >> format.block_shift,
        op.length >> format.block_shift,
    ))
}

fn part(buffer: &mut [u8], offset: u32, length: u32) -> &mut [u8] {
    &mut buffer[offset as usize..][..length as usize]
}
