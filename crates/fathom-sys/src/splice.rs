//! Transfers through a pipe: `splice(2)` and `vmsplice(2)`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno;
use crate::file_io::{Descriptor, moved, raw};

/// A pipe through which data move between a file and a buffer, empty between transfers.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// Bytes that it holds at most.
    capacity: usize,
}

impl Pipe {
    /// Creates a pipe for transfers of `bytes`, which it holds at once if the system allows it.
    ///
    /// # Errors
    /// The error of `pipe2(2)`: EMFILE or ENFILE for lack of descriptors.
    pub fn new(bytes: u32) -> io::Result<Self> {
        let mut ends = [-1; 2];
        // SAFETY: the kernel fills in two descriptors, for which there is room.
        errno::check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
        // SAFETY: new descriptors, which nothing else owns.
        let [reader, writer] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        // A smaller pipe than wanted takes more calls for a transfer, but takes it.
        // SAFETY: plain integers; the descriptor is open.
        let _limited = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, wanted) };
        // SAFETY: plain integers; the descriptor is open.
        let held = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
        Ok(Self {
            reader,
            writer,
            capacity: usize::try_from(held).unwrap_or(PIPE_BYTES).max(1),
        })
    }

    /// Reads from a file: spliced into the pipe, then copied out of it. Returns the bytes read,
    /// fewer at the end of the file, or a negated errno.
    pub fn read(&mut self, file: Descriptor<'_>, offset: u64, out: &mut [u8]) -> i32 {
        let mut moved = 0;
        while moved < out.len() {
            let part = (out.len() - moved).min(self.capacity);
            let mut at = offset.wrapping_add(moved as u64).cast_signed();
            let (to, none) = (self.writer.as_raw_fd(), std::ptr::null_mut());
            let at = &raw mut at;
            // SAFETY: the offset is a live integer; a pipe has none.
            let spliced = call(|| unsafe {
                libc::splice(raw(file), at, to, none, part, libc::SPLICE_F_MOVE)
            });
            let taken = match spliced {
                Ok(0) => break,
                Ok(count) => self.take(&mut out[moved..][..count]),
                Err(failed) => Err(failed),
            };
            match taken {
                Ok(count) => moved += count,
                Err(failed) => return if moved > 0 { result(moved) } else { failed },
            }
        }
        result(moved)
    }

    /// Writes to a file: the buffer's pages are mapped into the pipe, then spliced into the file.
    /// Returns the bytes written or a negated errno.
    pub fn write(&mut self, file: Descriptor<'_>, offset: u64, data: &[u8]) -> i32 {
        let mut moved = 0;
        while moved < data.len() {
            let part = &data[moved..][..(data.len() - moved).min(self.capacity)];
            let written = match self.map_in(part) {
                Ok(count) => self.splice_out(file, offset.wrapping_add(moved as u64), count),
                Err(failed) => Err((0, failed)),
            };
            match written {
                Ok(count) => moved += count,
                Err((count, failed)) => {
                    moved += count;
                    return if moved > 0 { result(moved) } else { failed };
                }
            }
        }
        result(moved)
    }

    /// Copies what the pipe holds to `out`, which it fills. On failure the pipe is emptied.
    fn take(&mut self, out: &mut [u8]) -> Result<usize, i32> {
        match self.copy_out(out) {
            Ok(count) => Ok(count),
            Err(failed) => Err(self.empty(self.held(), failed)),
        }
    }

    /// Copies what the pipe holds to `out`, which it fills.
    fn copy_out(&mut self, out: &mut [u8]) -> Result<usize, i32> {
        let mut taken = 0;
        while taken < out.len() {
            let rest = &mut out[taken..];
            let (fd, address, count) = (
                self.reader.as_raw_fd(),
                rest.as_mut_ptr().cast(),
                rest.len(),
            );
            // SAFETY: the kernel writes at most `count` bytes to the borrowed buffer.
            match call(|| unsafe { libc::read(fd, address, count) })? {
                0 => break,
                count => taken += count,
            }
        }
        Ok(taken)
    }

    /// Maps pages of `data` into the pipe and returns the number of bytes.
    fn map_in(&mut self, data: &[u8]) -> Result<usize, i32> {
        let vector = libc::iovec {
            iov_base: data.as_ptr().cast_mut().cast(),
            iov_len: data.len(),
        };
        let fd = self.writer.as_raw_fd();
        // SAFETY: the vector names the borrowed buffer, which the kernel only reads, and reads no
        // more once the pipe is empty: the caller empties it before the borrow ends.
        call(|| unsafe { libc::vmsplice(fd, &raw const vector, 1, 0) })
    }

    /// Moves `count` bytes from the pipe to a file. On failure the pipe is emptied, and the error
    /// has the number of bytes moved.
    fn splice_out(
        &mut self,
        file: Descriptor<'_>,
        offset: u64,
        count: usize,
    ) -> Result<usize, (usize, i32)> {
        let mut moved = 0;
        while moved < count {
            let mut at = offset.wrapping_add(moved as u64).cast_signed();
            let (from, none, part) = (self.reader.as_raw_fd(), std::ptr::null_mut(), count - moved);
            let at = &raw mut at;
            // SAFETY: the offset is a live integer; a pipe has none.
            let spliced = call(|| unsafe {
                libc::splice(from, none, raw(file), at, part, libc::SPLICE_F_MOVE)
            });
            match spliced {
                Ok(0) => return Err((moved, self.empty(count - moved, -libc::EIO))),
                Ok(part) => moved += part,
                Err(failed) => return Err((moved, self.empty(count - moved, failed))),
            }
        }
        Ok(moved)
    }

    /// Returns the bytes that the pipe holds.
    #[cold]
    fn held(&self) -> usize {
        let mut held: libc::c_int = 0;
        // SAFETY: the descriptor is open, and the kernel writes one integer, which is alive.
        let _cannot_fail =
            unsafe { libc::ioctl(self.reader.as_raw_fd(), libc::FIONREAD, &raw mut held) };
        usize::try_from(held).unwrap_or(0)
    }

    /// Reads `count` bytes out of the pipe and drops them. Returns `failed`.
    #[cold]
    fn empty(&mut self, count: usize, failed: i32) -> i32 {
        let mut rest = vec![0; count];
        let _dropped = self.copy_out(&mut rest);
        failed
    }
}

/// Makes a call, again after EINTR, and returns the count or the negated errno.
fn call(call: impl Fn() -> isize) -> Result<usize, i32> {
    let result = moved(call);
    usize::try_from(result).map_err(|_negative| result)
}

fn result(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Capacity of a pipe that does not tell: the kernel's default, 16 pages.
const PIPE_BYTES: usize = 65_536;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::{ptr, slice};

    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn more_than_the_pipe_holds_goes_through_it() {
        let (_scratch, file) = Scratch::new("splice");
        let fd = Some(file.as_fd());
        let data: Vec<u8> = (0..3_000_001_u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut pipe = Pipe::new(4096).unwrap();
        assert_eq!(pipe.write(fd, 5, &data), 3_000_001);
        let mut out = vec![0; data.len() + 9];
        assert_eq!(pipe.read(fd, 5, &mut out), 3_000_001, "short at the end");
        assert_eq!(out[..data.len()], data);
        assert_eq!(pipe.read(fd, 4_000_000, &mut out), 0);
    }

    #[test]
    fn a_failed_read_leaves_the_pipe_empty() {
        let (_scratch, file) = Scratch::new("splice-read-fails");
        let fd = Some(file.as_fd());
        let mut pipe = Pipe::new(65_536).unwrap();
        assert_eq!(pipe.write(fd, 0, &[[1; 4096], [2; 4096]].concat()), 8192);
        let (none, private) = (ptr::null_mut(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory at an address of the kernel's choice.
        let memory = unsafe { libc::mmap(none, 4096, libc::PROT_READ, private, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        // SAFETY: mapped above and this test's alone; nothing writes it but the kernel, which may
        // not.
        let read_only = unsafe { slice::from_raw_parts_mut(memory.cast::<u8>(), 4096) };
        assert_eq!(pipe.read(fd, 0, read_only), -libc::EFAULT);
        // SAFETY: mapped above, and not used any more.
        unsafe { libc::munmap(memory, 4096) };
        let mut out = [0; 4096];
        assert_eq!(pipe.read(fd, 4096, &mut out), 4096);
        assert!(out.iter().all(|&byte| byte == 2));
    }

    #[test]
    fn a_failed_write_leaves_the_pipe_empty() {
        let (scratch, file) = Scratch::new("splice-fails");
        let closed = crate::files::open(scratch.path(), crate::files::Access::READING).unwrap();
        let mut pipe = Pipe::new(65_536).unwrap();
        assert_eq!(
            pipe.write(Some(closed.as_fd()), 0, &[1; 8192]),
            -libc::EBADF
        );
        assert_eq!(pipe.write(None, 0, &[1; 8192]), -libc::EBADF);
        assert_eq!(pipe.read(None, 0, &mut [0; 9]), -libc::EBADF);
        let fd = Some(file.as_fd());
        assert_eq!(pipe.write(fd, 0, &[2; 8192]), 8192);
        let mut out = [0; 8192];
        assert_eq!(pipe.read(fd, 0, &mut out), 8192);
        assert!(out.iter().all(|&byte| byte == 2));
    }
}
