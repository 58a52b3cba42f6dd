//! Files and block devices: opening, allocation, sizes, cached pages, free space.
//!
//! Not here: reading and writing (`file_io`), mapping (`map`).

mod atomic_writes;
mod extents;
mod identity;
mod network;
mod pages;
mod sharing;
mod streams;

use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub use atomic_writes::AtomicWriteUnits;
pub use extents::{FileExtent, extents};
pub use identity::{FileId, LoopBacking, filesystem_type, loop_backing};
pub use network::is_network;
pub use pages::{
    Advice, advise, cached_bytes, data_bytes, finish_writeback, set_write_hint, start_writeback,
};
pub use sharing::{creation_path, is_open_elsewhere};
pub use streams::{
    lacks_descriptors, lacks_other_end, open_nonblocking, wait_readable, wait_writable,
};

/// Mode of opening a file; the default is read-only, buffered, without creating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Write-only; takes precedence over `read_write`.
    pub write_only: bool,
    /// Read and write.
    pub read_write: bool,
    /// Create a missing file.
    pub create: bool,
    /// With `create`: fail if the file exists. Otherwise, on a block device: fail with `EBUSY` if
    /// it is claimed exclusively (a mount, swap, a RAID).
    pub exclusive: bool,
    /// Bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Durable writes: 1: `O_SYNC`, 2: `O_DSYNC`, 0: neither.
    pub sync: u8,
    /// Keep the access time (`O_NOATIME`) if the kernel allows it, which it does not for other
    /// users' files.
    pub keep_access_time: bool,
}

impl Access {
    /// Read-only, buffered, without creating: the default.
    pub const READING: Self = Self {
        write_only: false,
        read_write: false,
        create: false,
        exclusive: false,
        direct: false,
        sync: 0,
        keep_access_time: false,
    };
}

/// Flag of `OpenOptions::custom_flags`: do not open the target of a link (`O_NOFOLLOW`).
pub const NOFOLLOW: i32 = libc::O_NOFOLLOW;

/// Opens `path`; a created file has mode 0644 less the umask, as fio's have.
///
/// # Errors
/// The error of `open(2)`.
pub fn open(path: &Path, access: Access) -> io::Result<File> {
    let mut flags = libc::O_NOCTTY;
    if access.direct {
        flags |= libc::O_DIRECT;
    }
    if access.keep_access_time {
        flags |= libc::O_NOATIME;
    }
    if access.exclusive {
        flags |= libc::O_EXCL;
    }
    flags |= match access.sync {
        1 => libc::O_SYNC,
        2 => libc::O_DSYNC,
        _ => 0,
    };
    let writes = access.write_only || access.read_write;
    let open_with = |flags| {
        OpenOptions::new()
            .read(!access.write_only)
            .write(writes)
            .create(access.create && !access.exclusive)
            .create_new(access.create && access.exclusive)
            .mode(0o644)
            .custom_flags(flags)
            .open(path)
    };
    match open_with(flags) {
        Err(error) if access.keep_access_time && error.raw_os_error() == Some(libc::EPERM) => {
            open_with(flags & !libc::O_NOATIME)
        }
        opened => opened,
    }
}

/// Type of a file, by its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// A directory.
    Directory,
    /// A pipe or a socket.
    Other,
}

impl FileKind {
    /// Returns the kind in `metadata`.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        match () {
            () if kind.is_file() => Self::Regular,
            () if kind.is_block_device() => Self::Block,
            () if kind.is_char_device() => Self::Character,
            () if kind.is_dir() => Self::Directory,
            () => Self::Other,
        }
    }
}

/// Device number, `major:minor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device.
    pub minor: u32,
}

impl DeviceNumber {
    /// Splits a `dev_t`.
    #[must_use]
    pub fn from_raw(raw: u64) -> Self {
        Self {
            major: libc::major(raw),
            minor: libc::minor(raw),
        }
    }

    /// Returns the number of the device that holds a file.
    #[must_use]
    pub fn under(metadata: &Metadata) -> Self {
        Self::from_raw(metadata.dev())
    }

    /// Returns the number of the device that a node represents.
    #[must_use]
    pub fn of_node(metadata: &Metadata) -> Self {
        Self::from_raw(metadata.rdev())
    }

    /// Returns a number that no other device of this machine has, above 0: block and character
    /// devices are numbered apart.
    #[must_use]
    pub fn identity(self, kind: FileKind) -> u64 {
        // Major numbers have 12 bits.
        let apart = u64::from(kind == FileKind::Character) << 63;
        apart | u64::from(self.major) << 32 | u64::from(self.minor)
    }
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Returns the size of a regular file or a block device; 0 for other kinds.
///
/// # Errors
/// The error of `fstat(2)` or the `BLKGETSIZE64` request.
pub fn size(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    match FileKind::of(&metadata) {
        FileKind::Regular => Ok(metadata.len()),
        FileKind::Block => block_device_size(file),
        FileKind::Character | FileKind::Directory | FileKind::Other => Ok(0),
    }
}

fn block_device_size(fd: impl AsFd) -> io::Result<u64> {
    let mut bytes: u64 = 0;
    // SAFETY: the descriptor is open for the length of the call (`AsFd`), and BLKGETSIZE64 writes
    // one u64 to the address, which is that of a live u64.
    let rc = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKGETSIZE64, &raw mut bytes) };
    check(rc)?;
    Ok(bytes)
}

/// Returns the logical block size of a block device, of which direct I/O must be a multiple.
///
/// # Errors
/// The error of the `BLKSSZGET` request; `ENOTTY` for anything but a block device.
pub fn logical_block_size(fd: impl AsFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open for the length of the call (`AsFd`), and BLKSSZGET writes one
    // int to the address, which is that of a live c_int.
    let rc = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKSSZGET, &raw mut bytes) };
    check(rc)?;
    u32::try_from(bytes).map_err(|_negative| io::Error::from_raw_os_error(libc::EIO))
}

/// Writes back and drops the cached blocks of a block device (`BLKFLSBUF`); needs privileges.
///
/// # Errors
/// The error of the request.
pub fn flush_block_device(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call (`AsFd`); BLKFLSBUF takes no
    // argument.
    check(unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKFLSBUF, 0) })
}

/// Method of allocating blocks for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// `fallocate(2)`: extends the file; fails if the filesystem does not support it.
    Native,
    /// `fallocate(2)` with `FALLOC_FL_KEEP_SIZE`: allocates blocks, keeps the size.
    KeepSize,
    /// `posix_fallocate(3)`: writes zeros if the filesystem does not support allocation.
    Posix,
}

/// Allocates blocks for `length` bytes from `offset`.
///
/// # Errors
/// The error of the call: `EOPNOTSUPP` if the file system does not support it, `ENOSPC` if it is
/// full.
pub fn allocate(fd: impl AsFd, how: Allocation, offset: u64, length: u64) -> io::Result<()> {
    let (offset, length) = (signed(offset)?, signed(length)?);
    let fd = fd.as_fd().as_raw_fd();
    let mode = match how {
        Allocation::Native => 0,
        Allocation::KeepSize => libc::FALLOC_FL_KEEP_SIZE,
        Allocation::Posix => {
            // SAFETY: plain integers; the descriptor is open for the length of the call.
            return match unsafe { libc::posix_fallocate(fd, offset, length) } {
                0 => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno)),
            };
        }
    };
    // SAFETY: plain integers; the descriptor is open for the length of the call.
    check(unsafe { libc::fallocate(fd, mode, offset, length) })
}

/// Space on a filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes available to this process.
    pub available_bytes: u64,
    /// Capacity of the filesystem.
    pub total_bytes: u64,
    /// Allocation unit.
    pub block_bytes: u64,
}

/// Returns the space on the filesystem of `path`.
///
/// # Errors
/// The error of `statvfs(3)`.
pub fn space(path: &Path) -> io::Result<Space> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `statvfs` is a plain C struct of integers, for which zeros are a value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends in a nul byte and the struct lives through the call.
    check(unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) })?;
    // SAFETY: no preconditions.
    let privileged = unsafe { libc::geteuid() } == 0;
    // The reserved blocks are available to the superuser.
    let blocks = if privileged {
        stat.f_bfree
    } else {
        stat.f_bavail
    };
    Ok(Space {
        available_bytes: blocks.saturating_mul(stat.f_frsize),
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        block_bytes: stat.f_frsize,
    })
}

/// Checks whether this process may create files in a folder. Another process may change that before
/// the file is created.
///
/// # Errors
/// The reason why it may not: `EACCES`, `EROFS`, or those of reaching the folder.
pub fn check_create_in(folder: &Path) -> io::Result<()> {
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let (mode, flags) = (libc::W_OK | libc::X_OK, libc::AT_EACCESS);
    // SAFETY: the path ends in a nul byte.
    check(unsafe { libc::faccessat(libc::AT_FDCWD, folder.as_ptr(), mode, flags) })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn signed(bytes: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(bytes).map_err(|_large| io::Error::from_raw_os_error(libc::EFBIG))
}

/// `_IO(0x12, 97)`, `_IO(0x12, 104)` and `_IOR(0x12, 114, size_t)` of <linux/fs.h>.
const BLKFLSBUF: libc::Ioctl = 0x1261;
const BLKSSZGET: libc::Ioctl = 0x1268;
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;

    /// A file that is removed when the test ends.
    pub(crate) struct Scratch(PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> (Self, File) {
            let name = format!("fathom-sys-files-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let access = Access {
                read_write: true,
                create: true,
                exclusive: true,
                ..Access::default()
            };
            let file = open(&path, access).unwrap();
            (Self(path), file)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone_is_fine = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn exclusive_creation_refuses_what_exists() {
        let (scratch, _file) = Scratch::new("exclusive");
        let access = Access {
            write_only: true,
            create: true,
            exclusive: true,
            ..Access::default()
        };
        let error = open(&scratch.0, access).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
    }

    #[test]
    fn the_default_access_neither_creates_nor_writes() {
        let (scratch, _file) = Scratch::new("default");
        let mut file = open(&scratch.0, Access::default()).unwrap();
        assert_eq!(
            file.write(b"x").unwrap_err().raw_os_error(),
            Some(libc::EBADF)
        );
        let missing = scratch.0.with_extension("missing");
        assert!(open(&missing, Access::default()).is_err());
        assert!(!missing.exists());
    }

    #[test]
    fn allocation_sets_size_or_keeps_it() {
        for (how, size_after) in [
            (Allocation::Native, 1 << 20),
            (Allocation::Posix, 1 << 20),
            (Allocation::KeepSize, 0),
        ] {
            let (_scratch, file) = Scratch::new(&format!("allocate-{how:?}"));
            match allocate(&file, how, 0, 1 << 20) {
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                    println!("skipped: the filesystem cannot allocate {how:?}");
                }
                result => {
                    result.unwrap();
                    assert_eq!(size(&file).unwrap(), size_after, "{how:?}");
                    assert!(file.metadata().unwrap().blocks() >= 2048, "{how:?}");
                }
            }
        }
    }

    #[test]
    fn a_size_beyond_what_the_kernel_counts_is_an_error() {
        let (_scratch, file) = Scratch::new("beyond");
        let error = allocate(&file, Allocation::Native, 0, u64::MAX).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG));
    }

    #[test]
    fn kinds_are_told_apart() {
        let kind = |path: &str| FileKind::of(&std::fs::metadata(path).unwrap());
        assert_eq!(kind("/dev/null"), FileKind::Character);
        assert_eq!(kind("/"), FileKind::Directory);
        assert_eq!(kind("/proc/self/exe"), FileKind::Regular);
        let null = DeviceNumber::of_node(&std::fs::metadata("/dev/null").unwrap());
        assert_eq!(null.to_string(), "1:3");
    }

    #[test]
    fn a_regular_file_has_no_logical_block() {
        let (_scratch, file) = Scratch::new("block");
        assert_eq!(
            logical_block_size(&file).unwrap_err().raw_os_error(),
            Some(libc::ENOTTY)
        );
        assert!(flush_block_device(&file).is_err());
    }

    #[test]
    fn files_are_made_only_in_folders_that_are_there() {
        check_create_in(&std::env::temp_dir()).unwrap();
        check_create_in(Path::new("/nowhere/at/all")).unwrap_err();
        check_create_in(Path::new("a\0b")).unwrap_err();
    }

    #[test]
    fn room_is_within_the_whole() {
        let room = space(Path::new("/")).unwrap();
        assert!(room.available_bytes <= room.total_bytes);
        assert!(room.block_bytes.is_power_of_two());
    }

    #[test]
    fn a_loop_device_has_a_size_and_a_logical_block() {
        let Ok(device) = open(Path::new("/dev/loop0"), Access::default()) else {
            println!("skipped: /dev/loop0 cannot be opened");
            return;
        };
        assert!(logical_block_size(&device).unwrap() >= 512);
        size(&device).unwrap();
    }

    #[test]
    fn reading_leaves_the_access_time_alone_where_asked() {
        let (scratch, file) = Scratch::new("access-time");
        (&file).write_all(b"content").unwrap();
        // Older than the last change: a mount that keeps access times would bring it up to date.
        let old = std::fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH);
        file.set_times(old).unwrap();
        let access = Access {
            keep_access_time: true,
            ..Access::default()
        };
        let content = io::read_to_string(open(&scratch.0, access).unwrap()).unwrap();
        assert_eq!(content, "content");
        let accessed = scratch.0.metadata().unwrap().accessed().unwrap();
        assert_eq!(accessed, std::time::UNIX_EPOCH);
    }
}
