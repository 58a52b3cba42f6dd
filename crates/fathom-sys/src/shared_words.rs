//! Words of a mapped file, shared by threads: what they store survives the process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::kept_mappings;

/// Shared mapping of a file as words of 32 bits.
///
/// The page cache has every store at once, so the file holds it even if the process is killed. A
/// file whose blocks are not allocated, or that another process truncates, ends this one with
/// SIGBUS at the next access.
#[derive(Debug)]
pub struct SharedWords {
    base: NonNull<AtomicU32>,
    count: usize,
}

impl SharedWords {
    /// Maps the first `count` words of a file that is open for reading and writing.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENODEV if the file cannot be mapped, EINVAL for no words.
    pub fn new(file: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        let length = count.checked_mul(size_of::<AtomicU32>());
        let length = length.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<AtomicU32>());
        let base = base.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { base, count })
    }
}

impl AsRef<[AtomicU32]> for SharedWords {
    #[inline]
    fn as_ref(&self) -> &[AtomicU32] {
        // SAFETY: `count` words from `base`, the start of a page, are mapped until `self` is
        // dropped, and any bits are a valid word. All access in this process goes through these
        // atomics.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

// SAFETY: the mapping belongs to no thread, and all that can be done with it is atomic.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let length = self.count * size_of::<AtomicU32>();
        // SAFETY: the mapping is ours, and no reference into it is left.
        unsafe { kept_mappings::unmap(self.base.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn stores_reach_the_file() {
        let name = format!("fathom-sys-words-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let open = std::fs::File::options();
        let open = open
            .clone()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let mut file = open.expect("a file");
        std::fs::remove_file(&path).expect("it is there");
        file.write_all(&[1, 0, 0, 0, 2, 0, 0, 0]).expect("a write");
        let words = SharedWords::new(file.as_fd(), 2).expect("a mapping");
        assert_eq!(words.as_ref()[1].load(Ordering::Relaxed).to_le(), 2);
        words.as_ref()[0].store(7, Ordering::Relaxed);
        let mut bytes = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).expect("a read");
        assert_eq!(
            u32::from_ne_bytes(bytes[..4].try_into().expect("4 bytes")),
            7
        );
        drop(words);
        assert!(SharedWords::new(file.as_fd(), 0).is_err());
    }
}
