//! System calls that perform one op: the result is bytes moved or a negated errno, as in a
//! completion.
//!
//! A missing descriptor is passed on as −1, so that the kernel returns EBADF.

use std::os::fd::{AsRawFd, BorrowedFd};

use fathom_core::{Completion, Direction, Op, OpKind, SyncKind};

use crate::files::FileKind;
use crate::memory::Buffers;

/// A borrowed open file, or none.
pub type Descriptor<'a> = Option<BorrowedFd<'a>>;

/// Calls `pread(2)`.
#[inline]
pub fn pread(file: Descriptor<'_>, buffer: &mut [u8], offset: u64) -> i32 {
    let (address, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the kernel writes at most `length` bytes to the borrowed buffer.
    moved(move || unsafe { libc::pread(raw(file), address, length, offset.cast_signed()) })
}

/// Calls `pwrite(2)`.
#[inline]
pub fn pwrite(file: Descriptor<'_>, buffer: &[u8], offset: u64) -> i32 {
    let (address, length) = (buffer.as_ptr().cast(), buffer.len());
    // SAFETY: the kernel reads at most `length` bytes of the borrowed buffer.
    moved(move || unsafe { libc::pwrite(raw(file), address, length, offset.cast_signed()) })
}

/// Calls `lseek(2)` from the start of the file; returns 0 or a negated errno.
#[inline]
pub fn seek(file: Descriptor<'_>, offset: u64) -> i32 {
    // SAFETY: plain integers.
    let position = unsafe { libc::lseek(raw(file), offset.cast_signed(), libc::SEEK_SET) };
    if position < 0 { failure() } else { 0 }
}

/// Calls `read(2)` at the file's position.
#[inline]
pub fn read(file: Descriptor<'_>, buffer: &mut [u8]) -> i32 {
    let (address, length) = (buffer.as_mut_ptr().cast(), buffer.len());
    // SAFETY: the kernel writes at most `length` bytes to the borrowed buffer.
    moved(move || unsafe { libc::read(raw(file), address, length) })
}

/// Calls `write(2)` at the file's position.
#[inline]
pub fn write(file: Descriptor<'_>, buffer: &[u8]) -> i32 {
    let (address, length) = (buffer.as_ptr().cast(), buffer.len());
    // SAFETY: the kernel reads at most `length` bytes of the borrowed buffer.
    moved(move || unsafe { libc::write(raw(file), address, length) })
}

/// Flags of one op (`RWF_*`) for `preadv2`, libaio and io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RwFlags(i32);

impl RwFlags {
    /// Creates flags: poll for completion, fail rather than block, drop pages after use.
    #[must_use]
    pub const fn new(hipri: bool, nowait: bool, uncached: bool) -> Self {
        let mut bits = 0;
        if hipri {
            bits |= libc::RWF_HIPRI;
        }
        if nowait {
            bits |= libc::RWF_NOWAIT;
        }
        if uncached {
            bits |= RWF_DONTCACHE;
        }
        Self(bits)
    }

    /// Adds `RWF_ATOMIC`: the write is stored whole or not at all.
    #[must_use]
    pub const fn atomic(self) -> Self {
        Self(self.0 | libc::RWF_ATOMIC)
    }

    /// Returns the kernel's names of the flags.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let table = [
            (libc::RWF_HIPRI, "RWF_HIPRI"),
            (libc::RWF_NOWAIT, "RWF_NOWAIT"),
            (RWF_DONTCACHE, "RWF_DONTCACHE"),
            (libc::RWF_ATOMIC, "RWF_ATOMIC"),
        ];
        let set = table.into_iter().filter(move |row| self.0 & row.0 != 0);
        set.map(|row| row.1)
    }

    /// Returns the flags as the kernel takes them.
    #[must_use]
    pub const fn bits(self) -> i32 {
        self.0
    }
}

/// Calls `preadv(2)` with a vector of one, or `preadv2(2)` if there are flags.
#[inline]
pub fn preadv(file: Descriptor<'_>, buffer: &mut [u8], offset: u64, flags: RwFlags) -> i32 {
    let vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let (file, offset) = (raw(file), offset.cast_signed());
    if flags == RwFlags::default() {
        // SAFETY: the vector is alive, and the kernel writes within the buffer it names.
        moved(move || unsafe { libc::preadv(file, &raw const vector, 1, offset) })
    } else {
        // SAFETY: as above.
        moved(move || unsafe { libc::preadv2(file, &raw const vector, 1, offset, flags.0) })
    }
}

/// Returns whether ops on this file support `RWF_NOWAIT`. If not, io_uring punts every op to a
/// kernel worker.
#[must_use]
pub fn takes_nowait(file: Descriptor<'_>) -> bool {
    // Past the end of any file: the kernel checks the flag, and there is nothing to read.
    let offset = i64::MAX.cast_unsigned() - 0xffff;
    let flags = RwFlags::new(false, true, false);
    preadv(file, &mut [0], offset, flags) != -libc::EOPNOTSUPP
}

/// Calls `pwritev(2)` with a vector of one, or `pwritev2(2)` if there are flags.
#[inline]
pub fn pwritev(file: Descriptor<'_>, buffer: &[u8], offset: u64, flags: RwFlags) -> i32 {
    let vector = libc::iovec {
        iov_base: buffer.as_ptr().cast_mut().cast(),
        iov_len: buffer.len(),
    };
    let (file, offset) = (raw(file), offset.cast_signed());
    if flags == RwFlags::default() {
        // SAFETY: the vector is alive, and the kernel only reads the buffer it names.
        moved(move || unsafe { libc::pwritev(file, &raw const vector, 1, offset) })
    } else {
        // SAFETY: as above.
        moved(move || unsafe { libc::pwritev2(file, &raw const vector, 1, offset, flags.0) })
    }
}

/// Vectors for `readv(2)` and `writev(2)` over the buffers of several slots, allocated once.
#[derive(Debug)]
pub struct Vectors {
    list: Vec<libc::iovec>,
}

impl Vectors {
    /// Allocates vectors for `ops` ops, at most the kernel's limit per call.
    #[must_use]
    pub fn new(ops: usize) -> Self {
        Self {
            list: Vec::with_capacity(ops.min(VECTORS_MAX)),
        }
    }

    /// Returns the ops that fit one call.
    #[must_use]
    pub fn room(&self) -> usize {
        self.list.capacity().min(VECTORS_MAX)
    }

    /// Performs the ops of `run` in one call at the file's position.
    ///
    /// # Panics
    /// If an op's data are outside its slot's buffer, or there are more ops than `room`.
    pub fn transfer(
        &mut self,
        file: Descriptor<'_>,
        write: bool,
        buffers: &mut Buffers,
        run: &[Op],
    ) -> i32 {
        assert!(run.len() <= self.room(), "a run of {} ops", run.len());
        self.list.clear();
        self.list.extend(run.iter().map(|op| libc::iovec {
            iov_base: buffers.address(op.slot, op.buffer_offset, op.length).cast(),
            iov_len: op.length as usize,
        }));
        let (first, count) = (self.list.as_ptr(), run.len());
        // At most VECTORS_MAX = 1024.
        let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
        if write {
            // SAFETY: the vectors name parts of `buffers`, borrowed for the length of the call.
            moved(move || unsafe { libc::writev(raw(file), first, count) })
        } else {
            // SAFETY: as above, and borrowed mutably, so nothing else accesses them.
            moved(move || unsafe { libc::readv(raw(file), first, count) })
        }
    }
}

/// Syncs a file as `kind` says, with a range (`length` bytes from `offset`) where it takes one.
/// Returns 0 or a negated errno.
pub fn sync(file: Descriptor<'_>, kind: SyncKind, offset: u64, length: u32) -> i32 {
    let file = raw(file);
    done(move || match kind {
        // SAFETY: a plain integer.
        SyncKind::Full => unsafe { libc::fsync(file) },
        // SAFETY: a plain integer.
        SyncKind::Data => unsafe { libc::fdatasync(file) },
        SyncKind::Range(flags) => {
            let (offset, length) = (offset.cast_signed(), i64::from(length));
            // SAFETY: plain integers.
            unsafe { libc::sync_file_range(file, offset, length, flags.into()) }
        }
        // SAFETY: a plain integer.
        SyncKind::FileSystem => unsafe { libc::syncfs(file) },
    })
}

/// Discards a range: `BLKDISCARD` on a block device, a hole in a regular file. Returns `length`,
/// or [`Completion::BYTES_MAX`] for a longer range, which is discarded whole too, or a negated
/// errno.
pub fn discard(file: Descriptor<'_>, kind: FileKind, offset: u64, length: u32) -> i32 {
    let fd = raw(file);
    let failed = done(move || match kind {
        FileKind::Block => {
            let range = [offset, u64::from(length)];
            // SAFETY: BLKDISCARD reads two u64 from the address, which is that of a live array.
            unsafe { libc::ioctl(fd, BLKDISCARD, range.as_ptr()) }
        }
        FileKind::Regular | FileKind::Character | FileKind::Directory | FileKind::Other => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: plain integers.
            unsafe { libc::fallocate(fd, mode, offset.cast_signed(), i64::from(length)) }
        }
    });
    match failed {
        0 => length.min(Completion::BYTES_MAX).cast_signed(),
        failed => failed,
    }
}

/// Performs a trim or a sync, which most queues cannot take.
///
/// # Panics
/// If the op is a read or a write.
pub fn perform_dataless(file: Descriptor<'_>, kind: FileKind, op: &Op) -> i32 {
    match op.kind {
        OpKind::Data(Direction::Trim) => discard(file, kind, op.offset, op.length),
        OpKind::Sync(kind) => sync(file, kind, op.offset, op.length),
        OpKind::Data(Direction::Read | Direction::Write) => panic!("{op:?} moves data"),
    }
}

#[inline]
pub(crate) fn raw(file: Descriptor<'_>) -> libc::c_int {
    file.map_or(-1, |file| file.as_raw_fd())
}

/// Makes a call, again after EINTR, and returns bytes moved or a negated errno.
#[inline]
pub(crate) fn moved(call: impl Fn() -> isize) -> i32 {
    let mut result = call();
    if result < 0 {
        result = again(call);
    }
    // Fits: the kernel moves at most `TRANSFER_BYTES_MAX` per call.
    i32::try_from(result).unwrap_or(i32::MAX)
}

/// Makes a call, again after EINTR, and returns 0 or a negated errno.
#[inline]
pub(crate) fn done(call: impl Fn() -> libc::c_int) -> i32 {
    moved(move || if call() == 0 { 0 } else { -1 })
}

/// Repeats a call while it fails with EINTR, and returns its result.
#[cold]
#[inline(never)]
fn again(call: impl Fn() -> isize) -> isize {
    for _ in 0..INTERRUPTIONS {
        let failed = failure();
        if failed != -libc::EINTR {
            return failed as isize;
        }
        let result = call();
        if result >= 0 {
            return result;
        }
    }
    failure() as isize
}

/// Returns the negated errno of the call that just failed.
#[cold]
pub(crate) fn failure() -> i32 {
    -std::io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or(libc::EIO)
}

/// Retries of one call after EINTR (guess): more are not caused by a user, and a file system that
/// always returns EINTR must not hang the job.
const INTERRUPTIONS: u32 = 100;

/// MAX_RW_COUNT of <linux/fs.h>, the limit of one call: 2 GiB less a page. Whole pages, so that the
/// rest of a larger direct op keeps the alignment of the op.
pub(crate) const TRANSFER_BYTES_MAX: usize = 0x7fff_f000;

/// UIO_MAXIOV of <linux/uio.h>.
const VECTORS_MAX: usize = 1024;

/// `_IO(0x12, 119)` of <linux/fs.h>.
const BLKDISCARD: libc::Ioctl = 0x1277;

/// From <linux/fs.h> of Linux 6.14; older kernels return EOPNOTSUPP. The libc crate lacks it for
/// some targets.
const RWF_DONTCACHE: i32 = 0x80;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Makes a call that fails with this errno a number of times and then moves 7 bytes; returns
    /// the result and the number of calls.
    fn made(errno: i32, failures: u32) -> (i32, u32) {
        let calls = Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            if calls.get() > failures {
                return 7;
            }
            // SAFETY: the address is of this thread's own errno.
            unsafe { *libc::__errno_location() = errno };
            -1
        };
        (moved(call), calls.get())
    }

    #[test]
    fn a_call_that_a_signal_broke_off_is_made_again() {
        assert_eq!(made(libc::EINTR, 3), (7, 4));
        assert_eq!(made(libc::EIO, 3), (-libc::EIO, 1));
        assert_eq!(made(libc::EAGAIN, 1), (-libc::EAGAIN, 1));
        assert_eq!(
            made(libc::EINTR, 1_000_000),
            (-libc::EINTR, 1 + INTERRUPTIONS)
        );
    }
}
