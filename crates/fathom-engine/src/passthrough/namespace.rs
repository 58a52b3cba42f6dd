//! Namespaces behind character devices: identification, and what a job needs of them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use fathom_core::{Direction, EngineError, EngineStep, Errno, RemoteFile};
use fathom_nvme::{
    BlockFormat, ControllerIdentity, HANDLE_STATUS_HEADER_BYTES, OptionalCommands, Status,
    ZoneFormat, handle_status_bytes, has_data_placement, placement_identifiers,
};
use fathom_sys::files::{self, Access, FileKind};
use fathom_sys::nvme::{self, CommandError, Identify};

use super::options::{Options, VERIFY_MODE};
use super::write_modes::{WRITE_MODE, WriteMode};
use super::{FileUse, zoned};
use crate::error::refused_value;
use crate::protection::MD_PER_IO_SIZE;

/// An identified namespace.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) id: u32,
    pub(super) format: BlockFormat,
    /// Bytes that an op has per block: the data, and metadata that follow them.
    pub(super) op_block_bytes: u32,
    /// Metadata that are transferred in a buffer of their own, bytes per block.
    pub(super) separate_bytes: u32,
    optional: OptionalCommands,
    /// Most bytes of data that a command may transfer; `u64::MAX`: any number.
    transfer_bytes_max: u64,
    /// Most bytes of data that an append may transfer; `None` without a limit of its own.
    pub(super) append_bytes_max: Option<u64>,
    /// Identifiers under which writes can be placed; empty if the device does not place data.
    pub(super) placements: Vec<u16>,
    /// Zones, of a job that keeps to them.
    pub(super) zones: Option<ZoneFormat>,
    watch: Option<FormatWatch>,
}

impl Namespace {
    /// Identifies the namespace behind an open device, and its zones if they are asked for. Costs a
    /// few commands.
    pub(super) fn identify(
        path: &str,
        device: &File,
        options: &Options,
        asks_for_zones: bool,
    ) -> Result<Self, EngineError> {
        let failed = |what| move |error| command_failed(path, what, &error);
        let id = nvme::namespace_id(device).map_err(|error| EngineError {
            step: EngineStep::Call("ioctl NVME_IOCTL_ID"),
            target: path.into(),
            errno: Errno::of(&error),
            hint: NAME_DEVICE.into(),
        })?;
        let identify = |what| nvme::identify(device, id, what);
        let page = identify(Identify::Namespace).map_err(failed("Identify Namespace"))?;
        let controller = identify(Identify::Controller).map_err(failed("Identify Controller"))?;
        // Controllers before NVMe 2.0 do not have it, and then have the first kind of guard alone.
        let extension = identify(Identify::NvmNamespace).ok();
        let format =
            BlockFormat::decode(&page, extension.as_deref()).ok_or_else(|| unknown_format(path))?;
        let placements = match has_data_placement(&controller) {
            true => placements(device, id).map_err(failed("Reclaim Unit Handle Status"))?,
            false => Vec::new(),
        };
        let zones = match asks_for_zones {
            true => zoned::format(path, device, id, &page)?,
            false => None,
        };
        let appends = options.write_modes.include(WriteMode::Append);
        let append_bytes_max = match zones.filter(|_| appends) {
            Some(_) => zoned::append_limit(path, device, id)?,
            None => None,
        };
        let mdts = ControllerIdentity::decode(&controller).mdts;
        let (extended, separate) = transferred_metadata(&format, options);
        Ok(Self {
            id,
            format,
            op_block_bytes: format.block_bytes() + extended,
            separate_bytes: separate,
            optional: ControllerIdentity::decode(&controller).optional,
            transfer_bytes_max: transfer_limit(mdts).unwrap_or(u64::MAX),
            append_bytes_max,
            placements,
            zones,
            watch: FormatWatch::of(path, &format),
        })
    }

    /// Refuses what the namespace cannot do for the job, whose ops have up to `buffer_bytes`.
    pub(super) fn check(
        &self,
        path: &str,
        options: &Options,
        buffer_bytes: u32,
        FileUse { reads, writes, .. }: FileUse,
    ) -> Result<(), EngineError> {
        let refuse = |option, hint: &str| Err(refused_value(option, path.into(), hint));
        let transfers = reads || options.write_modes.used().any(WriteMode::transfers_data);
        if transfers && u64::from(buffer_bytes) > self.transfer_bytes_max {
            let most = self.transfer_bytes_max;
            let hint = format!("the controller transfers {most} B per command at most");
            return refuse("bs", &hint);
        }
        let blocks = buffer_bytes / self.op_block_bytes;
        let too_small = options
            .protection
            .too_small_for(blocks, self.separate_bytes);
        if let Some(hint) = too_small.filter(|_| transfers) {
            return refuse(MD_PER_IO_SIZE.name, &hint);
        }
        self.check_zones(path, options, writes)?;
        if writes && options.write_modes.include(WriteMode::Append) {
            self.check_appends(path, buffer_bytes)?;
        }
        let mut modes = options.write_modes.used().filter(|_| writes);
        if let Some(command) = modes.find_map(|mode| self.lacks(mode)) {
            return refuse(WRITE_MODE.name, &lacks(command));
        }
        if options.compares && self.lacks(WriteMode::Compare).is_some() {
            return refuse(VERIFY_MODE.name, &lacks("Compare"));
        }
        if options.compares && !self.is_data_alone() {
            let hint = "Compare covers metadata, too, which the job does not know: use \
                        `verify_mode=read`, or format the namespace without metadata";
            return refuse(VERIFY_MODE.name, hint);
        }
        Ok(())
    }

    /// Returns the name of a write's command if the controller lacks it.
    fn lacks(&self, mode: WriteMode) -> Option<&'static str> {
        let own = self.optional;
        let (is_there, name) = match mode {
            // Every controller has Write, and every namespace with zones Zone Append.
            WriteMode::Write | WriteMode::Append => return None,
            WriteMode::Zeroes => (own.write_zeroes, "Write Zeroes"),
            WriteMode::Uncorrectable => (own.write_uncorrectable, "Write Uncorrectable"),
            WriteMode::Verify => (own.verify, "Verify"),
            WriteMode::Compare => (own.compare, "Compare"),
        };
        (!is_there).then_some(name)
    }

    /// Returns whether blocks are data alone, as Compare needs them.
    const fn is_data_alone(&self) -> bool {
        self.format.metadata_bytes == 0
    }

    /// Returns whether the namespace has been formatted to blocks of another size since it was
    /// identified. Costs a read of sysfs.
    pub(super) fn is_reformatted(&self) -> bool {
        self.watch.as_ref().is_some_and(FormatWatch::has_changed)
    }

    /// Returns the size as a run sees it.
    pub(super) fn file(&self) -> RemoteFile {
        RemoteFile {
            // Cannot overflow: the format's limits leave room for metadata as long as the data.
            bytes: self
                .format
                .blocks
                .saturating_mul(self.op_block_bytes.into()),
            block_bytes: self.op_block_bytes,
            directions: &Direction::ALL,
        }
    }
}

/// Looks a namespace up before a run.
pub(super) fn look_up(path: &str, options: &Options) -> Result<RemoteFile, EngineError> {
    check_node(path)?;
    let device =
        files::open(Path::new(path), Access::READING).map_err(|error| open_failed(path, &error))?;
    Ok(Namespace::identify(path, &device, options, false)?.file())
}

/// Returns the error of a device that cannot be opened.
pub(super) fn open_failed(path: &str, error: &io::Error) -> EngineError {
    EngineError {
        step: EngineStep::Open,
        target: path.into(),
        errno: Errno::of(error),
        hint: match Errno::of(error) {
            Some(Errno::EACCES | Errno::EPERM) => "run as root".into(),
            _ => String::new(),
        },
    }
}

/// Refuses a path that is not a character device of a namespace, without opening it: merely opening
/// some devices has an effect.
pub(super) fn check_node(path: &str) -> Result<(), EngineError> {
    let refuse = |errno, hint: String| {
        Err(EngineError {
            step: EngineStep::Open,
            target: path.into(),
            errno,
            hint,
        })
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return refuse(Errno::of(&error), NAME_DEVICE.into()),
    };
    if nvme::is_generic_device(&metadata) {
        return Ok(());
    }
    let name = Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let hint = match (FileKind::of(&metadata), name.strip_prefix("nvme")) {
        (FileKind::Block, Some(rest)) => {
            format!("commands go through the namespace's character device: name /dev/ng{rest}")
        }
        _ => NAME_DEVICE.into(),
    };
    refuse(Some(Errno::ENOTTY), hint)
}

/// Returns the metadata that an op transfers per block: after the data, and in a buffer of their
/// own. A controller that inserts and removes metadata which are protection information alone
/// transfers none.
fn transferred_metadata(format: &BlockFormat, options: &Options) -> (u32, u32) {
    let is_protection_alone = format
        .protection
        .is_some_and(|own| own.guard.tuple_bytes() == usize::from(format.metadata_bytes));
    let bytes = u32::from(format.metadata_bytes);
    match (
        is_protection_alone && options.protection.controller_protects,
        format.is_extended,
    ) {
        (true, _) => (0, 0),
        (false, true) => (bytes, 0),
        (false, false) => (0, bytes),
    }
}

/// Reads the placement identifiers that a namespace offers.
///
/// The header is read first, for the length: QEMU refuses a buffer of several segments that it does
/// not fill.
fn placements(device: &File, id: u32) -> Result<Vec<u16>, CommandError> {
    let mut header = [0; HANDLE_STATUS_HEADER_BYTES];
    nvme::reclaim_unit_handles(device, id, &mut header)?;
    let mut status = vec![0; handle_status_bytes(&header)];
    nvme::reclaim_unit_handles(device, id, &mut status)?;
    Ok(placement_identifiers(&status))
}

/// Returns the bytes that a field like MDTS stands for; `None` for no limit. They are in units of
/// the controller's smallest page, which is 4 KiB on all that are known.
pub(super) fn transfer_limit(shift: u8) -> Option<u64> {
    (shift > 0).then(|| 4096_u64.checked_shl(shift.into()).unwrap_or(u64::MAX))
}

/// Returns the hint for a command that the controller does not have.
fn lacks(command: &str) -> String {
    format!("the controller lacks the command {command}: choose another")
}

fn unknown_format(path: &str) -> EngineError {
    EngineError {
        step: EngineStep::Call("Identify Namespace"),
        target: path.into(),
        errno: None,
        hint: "the namespace has a block size of less than 512 B or more than 64 KiB, or \
               protection information of a kind that is not known: format it to another"
            .into(),
    }
}

/// Returns the error of a command that was passed through, with the status's name.
pub(super) fn command_failed(
    path: &str,
    command: &'static str,
    error: &CommandError,
) -> EngineError {
    let (target, errno, hint) = match error {
        CommandError::Call(error) => {
            let errno = Errno::of(error);
            let hint = match errno {
                Some(Errno::EACCES | Errno::EPERM) => {
                    "only root may send commands before Linux 6.2: run as root"
                }
                _ => "",
            };
            (path.to_owned(), errno, hint)
        }
        CommandError::Status(status) => {
            let status = Status::from_bits(*status);
            (format!("{path}: {status}"), None, "")
        }
    };
    EngineError {
        step: EngineStep::Call(command),
        target,
        errno,
        hint: hint.into(),
    }
}

/// Block size of a namespace as the kernel knows it, read from time to time.
#[derive(Debug)]
struct FormatWatch {
    /// `queue/logical_block_size` of the block device, which the kernel updates when it sees a
    /// namespace formatted.
    attribute: File,
    block_bytes: u32,
}

impl FormatWatch {
    /// Creates the watch of a namespace; none if the kernel has no block device for it.
    fn of(path: &str, format: &BlockFormat) -> Option<Self> {
        let block = nvme::block_device_of(&fs::metadata(path).ok()?)?;
        let attribute = format!("/sys/class/block/{block}/queue/logical_block_size");
        let watch = Self {
            attribute: File::open(attribute).ok()?,
            block_bytes: format.block_bytes(),
        };
        // The kernel sets other sizes for formats that its block layer does not support.
        (!watch.has_changed()).then_some(watch)
    }

    fn has_changed(&self) -> bool {
        let mut text = [0; 16];
        let read = self.attribute.read_at(&mut text, 0).unwrap_or(0);
        let now = std::str::from_utf8(&text[..read]).ok();
        now.and_then(|now| now.trim().parse().ok())
            .is_some_and(|bytes: u32| bytes != self.block_bytes)
    }
}

const NAME_DEVICE: &str = "name the character device of an NVMe namespace, like /dev/ng0n1";

#[cfg(test)]
pub(super) mod tests {
    use fathom_core::EngineValues;
    use fathom_nvme::{Guard, Protection, ProtectionType};

    use super::*;
    use crate::passthrough::write_modes::WriteModes;

    const WRITES: FileUse = FileUse {
        reads: false,
        writes: true,
        keeps_to_zones: false,
    };

    fn options(controller_protects: bool, metadata_bytes: u32) -> Options {
        let mut options = Options::resolve(&EngineValues::default()).unwrap();
        options.protection.controller_protects = controller_protects;
        options.protection.metadata_bytes = metadata_bytes;
        options
    }

    fn format(metadata_bytes: u16, is_extended: bool, guard: Option<Guard>) -> BlockFormat {
        BlockFormat {
            blocks: 1000,
            block_shift: 12,
            metadata_bytes,
            is_extended,
            protection: guard.map(|guard| Protection {
                kind: ProtectionType::One,
                guard,
                is_first: false,
            }),
        }
    }

    /// Returns a namespace with blocks of 4 KiB, of 512 KiB per command, and Write Zeroes.
    pub(in crate::passthrough) fn namespace(
        metadata_bytes: u16,
        is_extended: bool,
        guard: Option<Guard>,
        options: &Options,
    ) -> Namespace {
        let format = format(metadata_bytes, is_extended, guard);
        let (extended, separate) = transferred_metadata(&format, options);
        Namespace {
            id: 1,
            format,
            op_block_bytes: format.block_bytes() + extended,
            separate_bytes: separate,
            optional: OptionalCommands {
                write_zeroes: true,
                ..OptionalCommands::default()
            },
            transfer_bytes_max: 1 << 19,
            append_bytes_max: None,
            placements: Vec::new(),
            zones: None,
            watch: None,
        }
    }

    #[test]
    fn metadata_are_transferred_unless_the_controller_makes_all_of_them() {
        let guard = Some(Guard::Crc16);
        for (format, controller_protects, want) in [
            (format(0, false, None), true, (0, 0)),
            (format(8, false, guard), true, (0, 0)),
            (format(8, true, guard), true, (0, 0)),
            (format(8, false, guard), false, (0, 8)),
            (format(8, true, guard), false, (8, 0)),
            (format(64, false, guard), true, (0, 64)),
            (format(64, true, guard), true, (64, 0)),
            (format(8, false, None), true, (0, 8)),
        ] {
            let got = transferred_metadata(&format, &options(controller_protects, 0));
            assert_eq!(got, want, "{format:?} {controller_protects}");
        }
    }

    #[track_caller]
    fn check(options: Options, bytes: u32, want: Result<(), &str>) {
        check_use(WRITES, options, bytes, want);
    }

    #[track_caller]
    fn check_use(file_use: FileUse, options: Options, bytes: u32, want: Result<(), &str>) {
        let namespace = namespace(8, false, Some(Guard::Crc16), &options);
        let got = namespace.check("/dev/ng0n1", &options, bytes, file_use);
        match want {
            Ok(()) => assert_eq!(got, Ok(())),
            Err(want) => {
                let error = got.unwrap_err();
                let said = format!("{error} {}", error.hint);
                assert!(said.contains(want), "{said}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_size_that_does() {
        check(options(true, 0), 16 << 10, Ok(()));
        check(options(false, 32), 16 << 10, Ok(()));
        check(
            options(false, 31),
            16 << 10,
            Err("set md_per_io_size=32 for the 4 blocks"),
        );
        check(
            options(true, 0),
            1 << 20,
            Err("bs: /dev/ng0n1 the controller transfers 524288 B"),
        );
        let uncorrectable = Options {
            write_modes: WriteModes::only(WriteMode::Uncorrectable),
            ..options(true, 0)
        };
        check(
            uncorrectable,
            4096,
            Err("lacks the command Write Uncorrectable"),
        );
    }

    #[test]
    fn limits_of_transfers_hold_for_commands_with_data() {
        let zeroes = Options {
            write_modes: WriteModes::only(WriteMode::Zeroes),
            ..options(false, 0)
        };
        check(zeroes, 1 << 20, Ok(()));
        let also_reads = FileUse {
            reads: true,
            ..WRITES
        };
        let refused = Err("bs: /dev/ng0n1 the controller transfers 524288 B");
        check_use(also_reads, zeroes, 1 << 20, refused);
    }

    #[test]
    fn other_files_are_refused_before_they_are_opened() {
        for path in ["/dev/null", "/dev/fathom-no-such-device", "/etc/passwd"] {
            let error = look_up(path, &options(true, 0)).unwrap_err();
            assert_eq!(error.step, EngineStep::Open, "{path}");
            assert!(error.hint.contains("/dev/ng0n1"), "{path}: {error:?}");
        }
    }
}
