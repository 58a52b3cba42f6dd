//! NVMe character devices (`/dev/ng0n1`): identification by `ioctl(2)`. I/O goes through
//! [`uring`](crate::uring::CommandRing).

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::files::{DeviceNumber, FileKind};

/// Answer to an Identify command.
pub type IdentifyPage = [u8; IDENTIFY_BYTES];

/// Failure of a command that was passed through.
#[derive(Debug)]
pub enum CommandError {
    /// Error of the system call: the command was not sent, or its time was up.
    Call(io::Error),
    /// NVMe status: type in bits 10:8, code in 7:0, and perhaps flags above.
    Status(u16),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Status(status) => write!(f, "NVMe status {status:#x}"),
        }
    }
}

impl std::error::Error for CommandError {}

/// Structure that an Identify command returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identify {
    /// The namespace (CNS 00h).
    Namespace,
    /// The controller (CNS 01h).
    Controller,
    /// The identifiers of the namespace (CNS 03h).
    NamespaceDescriptors,
    /// The namespace, as the NVM command set extends it (CNS 05h, CSI 0).
    NvmNamespace,
    /// The namespace, as the Zoned Namespace Command Set extends it (CNS 05h, CSI 2).
    ZonedNamespace,
    /// The controller, as the Zoned Namespace Command Set extends it (CNS 06h, CSI 2).
    ZonedController,
}

impl Identify {
    /// Returns the structure's number (CNS), and that of the command set (CSI).
    const fn numbers(self) -> (u32, u32) {
        match self {
            Self::Namespace => (0x00, 0),
            Self::Controller => (0x01, 0),
            Self::NamespaceDescriptors => (0x03, 0),
            Self::NvmNamespace => (0x05, 0),
            Self::ZonedNamespace => (0x05, 2),
            Self::ZonedController => (0x06, 2),
        }
    }
}

/// Returns whether this is the character device of a namespace (`/dev/ng0n1`).
#[must_use]
pub fn is_generic_device(node: &Metadata) -> bool {
    folder_of(node).is_some()
}

/// Returns the name of the block device of the same namespace, `nvme0n1` for `ng0n1`; `None` if
/// there is none.
#[must_use]
pub fn block_device_of(node: &Metadata) -> Option<String> {
    let folder = folder_of(node)?;
    let name = folder.file_name()?.to_str()?.strip_prefix("ng")?;
    let block = format!("nvme{name}");
    Path::new("/sys/class/block")
        .join(&block)
        .exists()
        .then_some(block)
}

/// Returns the identity of a namespace: that of its block device if it has one, so that both names
/// have the same, else that of the character device `node`.
#[must_use]
pub fn device_identity(node: &Metadata) -> u64 {
    let block = block_device_of(node).and_then(|name| {
        let text = fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    });
    match block {
        Some(number) => number.identity(FileKind::Block),
        None => DeviceNumber::of_node(node).identity(FileKind::Character),
    }
}

/// Returns the sysfs folder of the character device of a namespace.
fn folder_of(node: &Metadata) -> Option<PathBuf> {
    if FileKind::of(node) != FileKind::Character {
        return None;
    }
    let link = format!("/sys/dev/char/{}", DeviceNumber::of_node(node));
    let folder = fs::canonicalize(link).ok()?;
    let class = fs::read_link(folder.join("subsystem")).ok()?;
    (class.file_name()? == "nvme-generic").then_some(folder)
}

/// Returns the identifier of the namespace behind a character device.
///
/// # Errors
/// The error of `ioctl(2)`: `ENOTTY` for anything but a device of the NVMe driver.
pub fn namespace_id(device: &File) -> io::Result<u32> {
    // SAFETY: the call takes no argument.
    let id = unsafe { libc::ioctl(device.as_raw_fd(), IOCTL_ID) };
    u32::try_from(id).map_err(|_negative| io::Error::last_os_error())
}

/// Identifies a namespace or its controller. Costs a command on the admin queue.
///
/// # Errors
/// The error of `ioctl(2)`: `EACCES` and `EPERM` without the right to send commands; or the
/// command's status.
pub fn identify(
    device: &File,
    nsid: u32,
    what: Identify,
) -> Result<Box<IdentifyPage>, CommandError> {
    let mut page = Box::new([0; IDENTIFY_BYTES]);
    let (structure, command_set) = what.numbers();
    let command = Command {
        opcode: OPCODE_IDENTIFY,
        nsid: match what {
            Identify::Controller | Identify::ZonedController => 0,
            _ => nsid,
        },
        dwords: [structure, command_set << 24, 0, 0, 0, 0],
        ..Command::default()
    };
    send(device, IOCTL_ADMIN, command, &mut page[..])?;
    Ok(page)
}

/// Fills `status` with the start of the status of a namespace's reclaim unit handles (I/O
/// Management Receive).
///
/// # Errors
/// As for [`identify`].
///
/// # Panics
/// `status` is empty, or not a number of dwords.
pub fn reclaim_unit_handles(
    device: &File,
    nsid: u32,
    status: &mut [u8],
) -> Result<(), CommandError> {
    assert!(!status.is_empty() && status.len().is_multiple_of(4));
    let dwords = u32::try_from(status.len() / 4).unwrap_or(u32::MAX);
    let command = Command {
        opcode: OPCODE_IO_MANAGEMENT_RECEIVE,
        nsid,
        // The operation, and the number of dwords less one.
        dwords: [1, dwords - 1, 0, 0, 0, 0],
        ..Command::default()
    };
    send(device, IOCTL_IO, command, status)
}

/// Reads the state of the zones from the one that begins at a block on (Zone Management Receive),
/// as many as fit into `report`.
///
/// # Errors
/// As for [`identify`].
pub fn zone_report<const BYTES: usize>(
    device: &File,
    nsid: u32,
    first: u64,
    report: &mut [u8; BYTES],
) -> Result<(), CommandError> {
    // The header, and a number of dwords that can be sent less one.
    const { assert!(BYTES >= 64 && BYTES.is_multiple_of(4) && BYTES <= 1 << 16) };
    let [low, high] = halves(first);
    let command = Command {
        opcode: OPCODE_ZONE_MANAGEMENT_RECEIVE,
        nsid,
        dwords: [
            low,
            high,
            u32::try_from(BYTES / 4).unwrap_or(1) - 1,
            // Action 0, zones of all states, and a count of those in this report alone.
            1 << 16,
            0,
            0,
        ],
        ..Command::default()
    };
    send(device, IOCTL_IO, command, report)
}

/// Changes the state of the zone that begins at a block (Zone Management Send, whose dword 13 is
/// `action`), and waits for it.
///
/// # Errors
/// As for [`identify`].
pub fn manage_zone(device: &File, nsid: u32, first: u64, action: u32) -> Result<(), CommandError> {
    let [low, high] = halves(first);
    let command = Command {
        opcode: OPCODE_ZONE_MANAGEMENT_SEND,
        nsid,
        dwords: [low, high, 0, action, 0, 0],
        ..Command::default()
    };
    send(device, IOCTL_IO, command, &mut [])
}

/// Makes earlier writes to a namespace durable (Flush), and waits for it.
///
/// # Errors
/// As for [`identify`].
pub fn flush(device: &File, nsid: u32) -> Result<(), CommandError> {
    let command = Command {
        nsid,
        ..Command::default()
    };
    send(device, IOCTL_IO, command, &mut [])
}

/// Sends a command whose answer fills `data`, and waits for it.
fn send(
    device: &File,
    request: libc::Ioctl,
    mut command: Command,
    data: &mut [u8],
) -> Result<(), CommandError> {
    if !data.is_empty() {
        command.data = data.as_mut_ptr().expose_provenance() as u64;
    }
    command.data_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
    // SAFETY: the kernel reads and writes one live structure of the layout it expects, and writes
    // the data, which are borrowed for the call.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), request, &raw mut command) };
    match status {
        0 => Ok(()),
        1.. => Err(CommandError::Status(
            u16::try_from(status).unwrap_or(u16::MAX),
        )),
        _ => Err(CommandError::Call(io::Error::last_os_error())),
    }
}

/// Returns the low and the high half of a block's address, which dwords 10 and 11 have.
#[expect(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
const fn halves(block: u64) -> [u32; 2] {
    [block as u32, (block >> 32) as u32]
}

/// `struct nvme_passthru_cmd` of <linux/nvme_ioctl.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    nsid: u32,
    dwords_2: [u32; 2],
    metadata: u64,
    data: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    /// Command dwords 10 to 15.
    dwords: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const COMMAND_BYTES: u32 = 72;
const _: () = assert!(size_of::<Command>() == COMMAND_BYTES as usize);

/// Encodes a request of the driver that reads and writes a structure of this size (`_IOWR`).
const fn request(number: u8, bytes: u32) -> u32 {
    assert!(bytes < 1 << 14);
    3 << 30 | bytes << 16 | (b'N' as u32) << 8 | number as u32
}

/// Bytes of every Identify answer.
const IDENTIFY_BYTES: usize = 4096;

const IOCTL_ID: libc::Ioctl = 0x4e40;
const IOCTL_ADMIN: libc::Ioctl = request(0x41, COMMAND_BYTES) as libc::Ioctl;
const IOCTL_IO: libc::Ioctl = request(0x43, COMMAND_BYTES) as libc::Ioctl;

/// `NVME_URING_CMD_IO`; its structure has the layout above, but for the result.
pub(crate) const URING_CMD_IO: u32 = request(0x80, COMMAND_BYTES);
/// `NVME_URING_CMD_IO_VEC`.
pub(crate) const URING_CMD_IO_VECTOR: u32 = request(0x81, COMMAND_BYTES);

const OPCODE_IDENTIFY: u8 = 0x06;
const OPCODE_IO_MANAGEMENT_RECEIVE: u8 = 0x12;
const OPCODE_ZONE_MANAGEMENT_SEND: u8 = 0x79;
const OPCODE_ZONE_MANAGEMENT_RECEIVE: u8 = 0x7a;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_header() {
        // As printed by a program in C that includes <linux/nvme_ioctl.h>.
        assert_eq!(request(0x41, COMMAND_BYTES), 0xc048_4e41);
        assert_eq!(request(0x43, COMMAND_BYTES), 0xc048_4e43);
        assert_eq!(URING_CMD_IO, 0xc048_4e80);
        assert_eq!(URING_CMD_IO_VECTOR, 0xc048_4e81);
    }

    #[test]
    fn other_files_are_no_namespaces() {
        let file = File::open("/dev/null").unwrap();
        let error = namespace_id(&file).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        let error = identify(&file, 1, Identify::Namespace).unwrap_err();
        assert!(matches!(error, CommandError::Call(_)), "{error}");
        let error = zone_report(&file, 1, 0, &mut [0; 128]).unwrap_err();
        assert!(matches!(error, CommandError::Call(_)), "{error}");
        let error = manage_zone(&file, 1, 0, 4).unwrap_err();
        assert!(matches!(error, CommandError::Call(_)), "{error}");
    }

    #[test]
    fn devices_have_one_identity_each() {
        let node = fs::metadata("/dev/null").unwrap();
        let number = DeviceNumber::of_node(&node);
        assert_eq!(device_identity(&node), 1 << 63 | 1 << 32 | 3);
        assert_eq!(number.identity(FileKind::Block), 1 << 32 | 3);
        assert_eq!(halves(0x1_0000_0002), [2, 1]);
    }
}
