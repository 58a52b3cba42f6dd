//! Pages of a file: cached pages, allocated extents, write-back.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::{check, signed, size};
use crate::kept_mappings;

/// Advice on the use of a file's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Default behaviour.
    Normal,
    /// Sequential reads.
    Sequential,
    /// Random reads.
    Random,
    /// Used once.
    NoReuse,
    /// Not needed: clean pages are dropped from the cache.
    DontNeed,
}

/// Calls `posix_fadvise(2)` on `length` bytes from `offset`; length 0 means to the end.
///
/// # Errors
/// The error of the call.
pub fn advise(fd: impl AsFd, advice: Advice, offset: u64, length: u64) -> io::Result<()> {
    let advice = match advice {
        Advice::Normal => libc::POSIX_FADV_NORMAL,
        Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        Advice::Random => libc::POSIX_FADV_RANDOM,
        Advice::NoReuse => libc::POSIX_FADV_NOREUSE,
        Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
    };
    let (offset, length) = (signed(offset)?, signed(length)?);
    // SAFETY: plain integers; the descriptor is open for the length of the call.
    match unsafe { libc::posix_fadvise(fd.as_fd().as_raw_fd(), offset, length, advice) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// The kernel's `F_LINUX_SPECIFIC_BASE` and 12; not in `libc` yet.
const F_SET_RW_HINT: i32 = 1024 + 12;

/// Sets the write lifetime hint of a file, from 1 (none) to 5 (extreme): `fcntl(2)`,
/// `F_SET_RW_HINT`.
///
/// # Errors
/// The error of the call: EINVAL where the kernel or the file has no such hints.
pub fn set_write_hint(fd: impl AsFd, hint: u8) -> io::Result<()> {
    let hint = u64::from(hint);
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one live word; the descriptor is open for the length of the call.
    check(unsafe { libc::fcntl(fd, F_SET_RW_HINT, &raw const hint) })
}

/// Starts write-back of a range's dirty pages, without waiting and without durability
/// (`sync_file_range(2)`, `SYNC_FILE_RANGE_WRITE`).
///
/// # Errors
/// The error of the call.
pub fn start_writeback(fd: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    let (offset, length) = (signed(offset)?, signed(length)?);
    let flags = libc::SYNC_FILE_RANGE_WRITE;
    // SAFETY: plain integers; the descriptor is open for the length of the call.
    check(unsafe { libc::sync_file_range(fd.as_fd().as_raw_fd(), offset, length, flags) })
}

/// Writes back a range and waits for it, without durability (`sync_file_range(2)` with all flags).
///
/// # Errors
/// The error of the call, or of writing the pages.
pub fn finish_writeback(fd: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
    let (offset, length) = (signed(offset)?, signed(length)?);
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: plain integers; the descriptor is open for the length of the call.
    check(unsafe { libc::sync_file_range(fd.as_fd().as_raw_fd(), offset, length, flags) })
}

/// Returns how many of the first `length` bytes of a file are in the page cache.
///
/// Uses `cachestat(2)` (Linux 6.5), else `mincore(2)`.
///
/// # Errors
/// The error of the calls; `EPERM` for a file that this process could neither write nor owns.
pub fn cached_bytes(file: &File, length: u64) -> io::Result<u64> {
    match cachestat(file, length) {
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            mincore_bytes(file, length.min(size(file)?), MINCORE_WINDOW)
        }
        pages => Ok(pages?
            .saturating_mul(crate::system::page_size())
            .min(length)),
    }
}

/// Returns how many of the first `length` bytes of a regular file hold data. The rest are holes or
/// unwritten extents, which read as zeros without reaching a device.
///
/// Examines at most `extents_max` extents and counts the rest as data.
///
/// # Errors
/// The error of `lseek(2)`.
pub fn data_bytes(file: &File, length: u64, extents_max: u32) -> io::Result<u64> {
    let length = length.min(file.metadata()?.len());
    let mut data = 0_u64;
    let mut at = 0_u64;
    for _ in 0..extents_max {
        let Some(start) = seek(file, at, libc::SEEK_DATA)? else {
            return Ok(data);
        };
        if start >= length {
            return Ok(data);
        }
        let end = seek(file, start, libc::SEEK_HOLE)?
            .unwrap_or(length)
            .min(length);
        data += end - start;
        if end == length {
            return Ok(data);
        }
        at = end;
    }
    Ok(data + (length - at))
}

/// Seeks data or a hole; `None` if there is no more.
fn seek(file: &File, from: u64, whence: libc::c_int) -> io::Result<Option<u64>> {
    // SAFETY: plain integers; the descriptor is open.
    let found = unsafe { libc::lseek(file.as_raw_fd(), signed(from)?, whence) };
    match u64::try_from(found) {
        Ok(found) => Ok(Some(found)),
        Err(_negative) => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
    }
}

fn cachestat(file: &File, length: u64) -> io::Result<u64> {
    // Both structs are laid out as in <linux/mman.h>.
    let range: [u64; 2] = [0, length];
    let mut stat = [0_u64; 5];
    // SAFETY: the number takes a descriptor, two addresses and flags; the kernel reads two and
    // writes five u64, which is what is there, alive through the call.
    let rc = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            stat.as_mut_ptr(),
            0_u32,
        )
    };
    match rc {
        0 => Ok(stat[0]),
        _ => Err(io::Error::last_os_error()),
    }
}

fn mincore_bytes(file: &File, length: u64, window: u64) -> io::Result<u64> {
    let page = crate::system::page_size();
    let mut resident = 0_u64;
    let mut offset = 0_u64;
    while offset < length {
        let span = window.min(length - offset);
        resident += mincore_window(file, offset, span, page)?;
        offset += span;
    }
    Ok(resident.saturating_mul(page).min(length))
}

/// Counts the resident pages of one window; `offset` is a multiple of the page size.
fn mincore_window(file: &File, offset: u64, span: u64, page: u64) -> io::Result<u64> {
    let bytes = usize::try_from(span).map_err(io::Error::other)?;
    let pages = usize::try_from(span.div_ceil(page)).map_err(io::Error::other)?;
    let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
    let (fd, at) = (file.as_raw_fd(), signed(offset)?);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours; the
    // descriptor is open. It is never read through, so a shrinking file cannot fault.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, prot, flags, fd, at) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut states = vec![0_u8; pages];
    // SAFETY: the range was mapped just now, and the kernel writes one byte for each of its pages,
    // which is what the vector holds.
    let rc = unsafe { libc::mincore(address, bytes, states.as_mut_ptr()) };
    let result = check(rc);
    // SAFETY: the same range, mapped above, with no reference into it.
    unsafe { kept_mappings::unmap(address, bytes) };
    result?;
    Ok(states.iter().map(|state| u64::from(state & 1)).sum())
}

/// The number of `cachestat`, the same on every architecture; not yet in the libc crate's tables
/// for all of them.
const SYS_CACHESTAT: libc::c_long = 451;
/// Window of 1 GiB, whose page states take 256 KiB: few calls, and small enough to map.
const MINCORE_WINDOW: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::super::tests::Scratch;
    use super::*;

    #[test]
    fn what_was_written_is_cached_until_it_is_dropped() {
        let (_scratch, mut file) = Scratch::new("cached");
        file.write_all(&vec![7; 256 << 10]).unwrap();
        file.sync_all().unwrap();
        assert_eq!(cached_bytes(&file, 256 << 10).unwrap(), 256 << 10);
        assert_eq!(
            mincore_bytes(&file, 256 << 10, 128 << 10).unwrap(),
            256 << 10
        );
        advise(&file, Advice::DontNeed, 0, 0).unwrap();
        let left = cached_bytes(&file, 256 << 10).unwrap();
        if left == 256 << 10 {
            println!("skipped: this filesystem lives in the page cache");
            return;
        }
        assert_eq!(left, 0);
        assert_eq!(mincore_bytes(&file, 256 << 10, 128 << 10).unwrap(), 0);
    }

    #[test]
    fn holes_hold_no_data() {
        let (_scratch, mut file) = Scratch::new("holes");
        assert_eq!(data_bytes(&file, u64::MAX, 8).unwrap(), 0);
        file.set_len(1 << 20).unwrap();
        if data_bytes(&file, u64::MAX, 8).unwrap() != 0 {
            println!("skipped: this filesystem does not report holes");
            return;
        }
        file.write_all(&[1; 64 << 10]).unwrap();
        file.seek(io::SeekFrom::Start(512 << 10)).unwrap();
        file.write_all(&[1; 64 << 10]).unwrap();
        assert_eq!(data_bytes(&file, u64::MAX, 8).unwrap(), 128 << 10);
        assert_eq!(
            data_bytes(&file, (512 << 10) + 4096, 8).unwrap(),
            (64 << 10) + 4096
        );
        assert_eq!(
            data_bytes(&file, 1 << 20, 1).unwrap(),
            (64 << 10) + (960 << 10)
        );
    }
}
