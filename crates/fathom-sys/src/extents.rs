//! System calls on the size and the blocks of an open file: allocation, truncation, and the
//! exchange of blocks between files of ext4. Each returns 0 or a negated errno, unless it says
//! otherwise.

use std::os::fd::AsRawFd;

use crate::file_io::{Descriptor, done, failure, raw};

/// Effect of `fallocate(2)` on a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeChange {
    /// Allocates blocks; extends the file to the end of the range.
    Extend,
    /// Allocates blocks, beyond the end of the file too; keeps its size.
    KeepSize,
    /// Frees blocks, which leaves a hole; keeps the size.
    PunchHole,
}

/// Calls `fallocate(2)` on `length` bytes from `offset`.
#[must_use]
pub fn change_range(file: Descriptor<'_>, change: RangeChange, offset: u64, length: u32) -> i32 {
    let mode = match change {
        RangeChange::Extend => 0,
        RangeChange::KeepSize => libc::FALLOC_FL_KEEP_SIZE,
        RangeChange::PunchHole => libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE,
    };
    let fd = raw(file);
    // SAFETY: plain integers.
    done(|| unsafe { libc::fallocate(fd, mode, offset.cast_signed(), length.into()) })
}

/// Calls `ftruncate(2)`.
#[must_use]
pub fn truncate(file: Descriptor<'_>, size: u64) -> i32 {
    let fd = raw(file);
    // SAFETY: plain integers.
    done(|| unsafe { libc::ftruncate(fd, size.cast_signed()) })
}

/// Exchanges `blocks` blocks of the file system, from block `start`, between a file and a donor
/// (`EXT4_IOC_MOVE_EXT`): the donor's blocks get the file's data and become the file's. Returns the
/// number of blocks exchanged, fewer where the file has a hole, or the negated errno.
///
/// # Errors
/// ENOTTY or EOPNOTSUPP on another file system than ext4, ENODATA where there is nothing to
/// exchange.
pub fn exchange_blocks(
    file: Descriptor<'_>,
    donor: &impl AsRawFd,
    start: u64,
    blocks: u64,
) -> Result<u64, i32> {
    let mut request = MoveExtent {
        reserved: 0,
        donor: donor.as_raw_fd().cast_unsigned(),
        start,
        donor_start: start,
        blocks,
        moved: 0,
    };
    // SAFETY: the ioctl reads and writes one `MoveExtent` at the address, which is a live one.
    let failed = unsafe { libc::ioctl(raw(file), EXT4_IOC_MOVE_EXT, &raw mut request) };
    match failed {
        0.. => Ok(request.moved),
        _ => Err(failure()),
    }
}

/// `struct move_extent` of ext4: 8 bytes of descriptors, then four 64-bit numbers of blocks.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    start: u64,
    donor_start: u64,
    blocks: u64,
    moved: u64,
}

/// `_IOWR('f', 15, struct move_extent)` of Linux's Documentation/filesystems/ext4.
const EXT4_IOC_MOVE_EXT: libc::Ioctl = 0xc028_660f_u32 as libc::Ioctl;

const _: () = assert!(size_of::<MoveExtent>() == 0x28);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn ranges_are_allocated_and_freed() {
        let (_scratch, file) = Scratch::new("ranges");
        let fd = Some(file.as_fd());
        if change_range(fd, RangeChange::KeepSize, 0, 1 << 16) == -libc::EOPNOTSUPP {
            println!("skipped: the file system allocates nothing");
            return;
        }
        assert_eq!(file.metadata().unwrap().len(), 0);
        let allocated = file.metadata().unwrap().blocks();
        assert!(allocated >= 128);
        assert_eq!(change_range(fd, RangeChange::Extend, 0, 1 << 16), 0);
        assert_eq!(file.metadata().unwrap().len(), 1 << 16);
        assert_eq!(change_range(fd, RangeChange::PunchHole, 0, 1 << 16), 0);
        assert!(file.metadata().unwrap().blocks() < allocated);
        assert_eq!(truncate(fd, 512), 0);
        assert_eq!(file.metadata().unwrap().len(), 512);
    }

    #[test]
    fn impossible_sizes_and_missing_files_are_errors() {
        let (_scratch, file) = Scratch::new("impossible");
        let fd = Some(file.as_fd());
        assert_eq!(truncate(fd, 1 << 63), -libc::EINVAL);
        assert_eq!(
            change_range(fd, RangeChange::Extend, 1 << 63, 1),
            -libc::EINVAL
        );
        assert_eq!(truncate(None, 0), -libc::EBADF);
        assert_eq!(change_range(None, RangeChange::Extend, 0, 1), -libc::EBADF);
    }

    #[test]
    fn data_survive_an_exchange_of_blocks() {
        let (_scratch, file) = Scratch::new("exchange");
        let (_other, donor) = Scratch::new("donor");
        let data = vec![7; 1 << 16];
        file.write_all_at(&data, 0).unwrap();
        file.sync_all().unwrap();
        assert_eq!(
            change_range(Some(donor.as_fd()), RangeChange::Extend, 0, 1 << 16),
            0
        );
        let block = file.metadata().unwrap().blksize();
        match exchange_blocks(Some(file.as_fd()), &donor, 0, (1 << 16) / block) {
            Ok(moved) => assert_eq!(moved * block, 1 << 16),
            Err(errno) => {
                println!("skipped: not on this file system: errno {}", -errno);
                return;
            }
        }
        let mut found = vec![0; 1 << 16];
        file.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, data);
    }
}
