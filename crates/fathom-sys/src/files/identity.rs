//! Identities of files, the same under every name, link and device node.

use std::ffi::CString;
use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{DeviceNumber, check};

/// Identity of a file: its file system and its inode there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Number of the file system.
    pub filesystem: DeviceNumber,
    /// Inode within it.
    pub inode: u64,
}

impl FileId {
    /// Returns the identity of the file that `metadata` describes.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            filesystem: DeviceNumber::under(metadata),
            inode: metadata.ino(),
        }
    }
}

/// Backing file or device of a loop device, as its driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopBacking {
    /// The backing file, or the node through which a backing device was opened.
    pub file: FileId,
    /// Number of the backing device; `None` for a regular file.
    pub device: Option<DeviceNumber>,
    /// The answer is ambiguous: older kernels report the number of its file system for a regular
    /// file, which a node stored on the device it represents has too.
    pub is_ambiguous: bool,
}

/// Queries the backing file of a loop device (`LOOP_GET_STATUS64`).
///
/// # Errors
/// The error of the request: `ENXIO` where nothing is attached, `ENOTTY` for any other device.
pub fn loop_backing(device: impl AsFd) -> io::Result<LoopBacking> {
    let mut info = LoopInfo64::default();
    // SAFETY: the descriptor is open for the length of the call (`AsFd`), and LOOP_GET_STATUS64
    // writes one `struct loop_info64` to the address, which is that of a live one.
    let rc = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    check(rc)?;
    let number = |raw| DeviceNumber::from_raw(raw);
    Ok(LoopBacking {
        file: FileId {
            filesystem: number(info.device),
            inode: info.inode,
        },
        device: (info.node != 0).then(|| number(info.node)),
        is_ambiguous: info.node != 0 && info.node == info.device,
    })
}

/// Returns the magic number of the file system of `path`, as documented in `statfs(2)`.
///
/// # Errors
/// The error of `statfs(2)`.
pub fn filesystem_type(path: &Path) -> io::Result<u32> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statfs` is a plain C struct of integers, for which zeros are a value.
    let mut stat: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a nul byte and the struct lives through the call.
    check(unsafe { libc::statfs(path.as_ptr(), &raw mut stat) })?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the numbers have 32 bits; the field is signed, and wider on some architectures"
    )]
    let magic = stat.f_type as u32;
    Ok(magic)
}

/// `struct loop_info64` of <linux/loop.h>.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    node: u64,
    offset: u64,
    size_limit: u64,
    numbers: [u32; 4],
    names: [u8; 160],
    init: [u64; 2],
}

const _: () = assert!(size_of::<LoopInfo64>() == 232);

impl Default for LoopInfo64 {
    fn default() -> Self {
        Self {
            device: 0,
            inode: 0,
            node: 0,
            offset: 0,
            size_limit: 0,
            numbers: [0; 4],
            names: [0; 160],
            init: [0; 2],
        }
    }
}

/// Of <linux/loop.h>.
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn a_link_has_the_identity_of_its_file() {
        let (scratch, file) = Scratch::new("identity");
        let id = FileId::of(&file.metadata().unwrap());
        let link = scratch.path().with_extension("link");
        fs::hard_link(scratch.path(), &link).unwrap();
        let linked = fs::metadata(&link).map(|metadata| FileId::of(&metadata));
        fs::remove_file(&link).unwrap();
        assert_eq!(linked.unwrap(), id);
        let (_other, file) = Scratch::new("identity-other");
        assert_ne!(FileId::of(&file.metadata().unwrap()), id);
    }

    #[test]
    fn only_loop_devices_have_something_behind_them() {
        let error = loop_backing(File::open("/dev/null").unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn procfs_says_what_it_is() {
        assert_eq!(filesystem_type(Path::new("/proc")).unwrap(), 0x9fa0);
        assert!(filesystem_type(Path::new("/no/such/path")).is_err());
    }
}
