//! Memory-mapped files that survive truncation by others.
//!
//! Touching a page past the end of a file raises SIGBUS, which would end the process. While an op
//! copies, the handler knows the range it works on: it maps a page of zeros at the fault, so that
//! the copy can finish, and sets a flag, so that the op fails with EIO. Faults anywhere else go to
//! the previous handler.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use crate::file_io::{TRANSFER_BYTES_MAX, done};
use crate::kept_mappings;
use crate::system;

/// A shared mapping of a file or of its first part.
#[derive(Debug)]
pub struct Map {
    base: NonNull<u8>,
    length: usize,
    writable: bool,
}

impl Map {
    /// Maps the first `length` bytes of a file.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENODEV if the file cannot be mapped, EACCES if it is not open in a
    /// sufficient mode, EINVAL for no bytes.
    pub fn new(file: BorrowedFd<'_>, length: u64, writable: bool) -> io::Result<Self> {
        let length =
            usize::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
        catch_sigbus()?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe { map_file(std::ptr::null_mut(), length, file, writable, 0)? };
        Ok(Self {
            base,
            length,
            writable,
        })
    }

    /// Returns the mapped length.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length as u64
    }

    /// Copies from the file, as `read(2)` would. Returns bytes copied, fewer at the end of the
    /// mapping, or a negated errno: EIO if the file had no page.
    pub fn read(&mut self, file: BorrowedFd<'_>, offset: u64, out: &mut [u8]) -> i32 {
        let (address, count) = self.span(offset, out.len().min(TRANSFER_BYTES_MAX));
        // SAFETY: `count` bytes from `address` are mapped and at most `out.len()`; `out` is ours,
        // so the two are apart. Others may write to the file meanwhile; whole bytes of theirs are
        // as good as any.
        let whole = unsafe { copy(address, out.as_mut_ptr(), count, address) };
        self.outcome(file, whole, count)
    }

    /// Copies into the file; returns as [`read`](Self::read) does, and ENXIO past the mapping.
    pub fn write(&mut self, file: BorrowedFd<'_>, offset: u64, data: &[u8]) -> i32 {
        assert!(self.writable, "a write to a mapping for reading");
        let (address, count) = self.span(offset, data.len().min(TRANSFER_BYTES_MAX));
        if count == 0 && !data.is_empty() {
            return -libc::ENXIO;
        }
        // SAFETY: `count` bytes from `address` are mapped for writing and at most `data.len()`;
        // `data` is ours, so the two are apart.
        let whole = unsafe { copy(data.as_ptr(), address, count, address) };
        self.outcome(file, whole, count)
    }

    /// Makes a range durable (`msync(2)`); returns 0 or a negated errno.
    pub fn sync(&self, offset: u64, length: u64) -> i32 {
        self.over_pages(offset, length, |address, count| {
            // SAFETY: the pages belong to the mapping; writing them out changes nothing in it.
            unsafe { libc::msync(address, count, libc::MS_SYNC) }
        })
    }

    /// Unmaps a range's pages, so that the page cache may drop them; returns 0 or a negated errno.
    pub fn drop_pages(&self, offset: u64, length: u64) -> i32 {
        self.over_pages(offset, length, |address, count| {
            // SAFETY: the pages belong to a shared mapping, whose content is the file's: the next
            // access brings the same bytes back.
            unsafe { libc::madvise(address, count, libc::MADV_DONTNEED) }
        })
    }

    /// Advises random access (no readahead) or sequential access (more readahead); returns 0 or a
    /// negated errno.
    pub fn advise_order(&self, random: bool) -> i32 {
        let advice = if random {
            libc::MADV_RANDOM
        } else {
            libc::MADV_SEQUENTIAL
        };
        self.over_pages(0, self.length(), |address, count| {
            // SAFETY: the pages belong to the mapping; the advice changes no content.
            unsafe { libc::madvise(address, count, advice) }
        })
    }

    /// Asks for huge pages; returns 0 or a negated errno.
    pub fn want_huge_pages(&self) -> i32 {
        self.over_pages(0, self.length(), |address, count| {
            // SAFETY: the pages belong to the mapping; the advice changes no content.
            unsafe { libc::madvise(address, count, libc::MADV_HUGEPAGE) }
        })
    }

    /// Clips `length` bytes from `offset` to the mapping.
    fn span(&self, offset: u64, length: usize) -> (*mut u8, usize) {
        let start = usize::try_from(offset).map_or(self.length, |start| start.min(self.length));
        let count = length.min(self.length - start);
        // SAFETY: start ≤ length of the mapping.
        (unsafe { self.base.as_ptr().add(start) }, count)
    }

    /// Calls `f` with the whole pages that a range touches.
    fn over_pages(
        &self,
        offset: u64,
        length: u64,
        f: impl Fn(*mut libc::c_void, usize) -> libc::c_int,
    ) -> i32 {
        let page = page_size();
        let (start, count) = self.span(offset, usize::try_from(length).unwrap_or(usize::MAX));
        let before = start.addr() % page;
        // SAFETY: the mapping begins at a page, so the page that `start` lies in is its own.
        let start = unsafe { start.sub(before) };
        done(|| f(start.cast(), count + before))
    }

    /// Returns the result of a copy; after a fault, maps the file again in place of the zeros.
    fn outcome(&mut self, file: BorrowedFd<'_>, whole: bool, count: usize) -> i32 {
        if whole {
            return i32::try_from(count).unwrap_or(i32::MAX);
        }
        let base = self.base.as_ptr();
        // SAFETY: exactly this mapping is replaced by one of the same file; no reference into it
        // exists outside of `read` and `write`.
        let again = unsafe { map_file(base, self.length, file, self.writable, libc::MAP_FIXED) };
        match again {
            Ok(_) => -libc::EIO,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it is left.
        unsafe { kept_mappings::unmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// # Safety
/// With `MAP_FIXED` in `flags`, the caller owns the mapping at `address` that is replaced.
unsafe fn map_file(
    address: *mut u8,
    length: usize,
    file: BorrowedFd<'_>,
    writable: bool,
    flags: libc::c_int,
) -> io::Result<NonNull<u8>> {
    let write = if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: the caller's promise; else the kernel chooses an address that is free.
    let base = unsafe {
        libc::mmap(
            address.cast(),
            length,
            libc::PROT_READ | write,
            libc::MAP_SHARED | flags,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Copies with faults in the `count` bytes from `guarded` caught; returns whether none occurred.
///
/// # Safety
/// As `ptr::copy_nonoverlapping`, except that pages from `guarded` on may be missing.
unsafe fn copy(from: *const u8, to: *mut u8, count: usize, guarded: *const u8) -> bool {
    FAULTED.with(|faulted| faulted.store(false, Ordering::Relaxed));
    guard(guarded.addr(), count);
    // The handler interrupts this thread: the range must be stored before the copy, and the flag
    // loaded after it.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise; missing pages are filled by the handler.
    unsafe { std::ptr::copy_nonoverlapping(from, to, count) };
    compiler_fence(Ordering::SeqCst);
    guard(0, 0);
    !FAULTED.with(|faulted| faulted.load(Ordering::Relaxed))
}

/// Sets the range in which faults are caught.
fn guard(start: usize, count: usize) {
    GUARD_START.with(|place| place.store(start, Ordering::Relaxed));
    GUARD_COUNT.with(|place| place.store(count, Ordering::Relaxed));
}

// Thread-local, and atomic only because a signal handler of the same thread accesses them: relaxed,
// with compiler fences around the copy.
thread_local! {
    /// Start of the range that the thread's op accesses.
    static GUARD_START: AtomicUsize = const { AtomicUsize::new(0) };
    /// Length of the range.
    static GUARD_COUNT: AtomicUsize = const { AtomicUsize::new(0) };
    /// The handler has replaced a missing page.
    static FAULTED: AtomicBool = const { AtomicBool::new(false) };
}

/// Installs the handler, once per process.
fn catch_sigbus() -> io::Result<()> {
    static DONE: OnceLock<Result<(), i32>> = OnceLock::new();
    // Initialised here, because the handler must not.
    page_size();
    let done = DONE.get_or_init(|| {
        let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
        // SAFETY: an all-zero `sigaction` is a valid value: the default action, no flags.
        let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: only the old action is asked for, into a live structure.
        if unsafe { libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before) } != 0 {
            return Err(errno());
        }
        PREVIOUS.get_or_init(|| before);
        // SAFETY: as above.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            on_sigbus;
        action.sa_sigaction = handler as usize;
        // On the alternate stack that Rust installs: stack overflows arrive here as well.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler only touches the thread's own cells, makes raw system calls, and
        // reads what was stored before it was installed.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(errno());
        }
        Ok(())
    });
    done.map_err(io::Error::from_raw_os_error)
}

/// Previous action for SIGBUS.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel gives a valid structure, and SIGBUS has an address.
    let fault = unsafe { (*info).si_addr() }.addr();
    let start = GUARD_START.with(|start| start.load(Ordering::Relaxed));
    let count = GUARD_COUNT.with(|count| count.load(Ordering::Relaxed));
    if fault.wrapping_sub(start) < count && fill_page(fault) {
        FAULTED.with(|faulted| faulted.store(true, Ordering::Relaxed));
        return;
    }
    pass_on(signal, info, context);
}

/// Maps a page of zeros over the one with this address, which is in a guarded range (`guard`), and
/// returns whether that succeeded.
fn fill_page(fault: usize) -> bool {
    let page = page_size();
    let start = std::ptr::without_provenance_mut::<libc::c_void>(fault - fault % page);
    // SAFETY: the page lies in the mapping that the interrupted copy works on, and which `outcome`
    // maps again; nothing else refers to it. `mmap` is a bare system call.
    let filled = unsafe {
        libc::mmap(
            start,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    filled != libc::MAP_FAILED
}

/// Passes a foreign fault to the previous handler. Without one, the default action is restored, and
/// the access, retried on return, ends the process.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get().filter(|previous| {
        let kinds = [libc::SIG_DFL, libc::SIG_IGN];
        previous.sa_flags & libc::SA_SIGINFO != 0 && !kinds.contains(&previous.sa_sigaction)
    });
    if let Some(previous) = previous {
        type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: the kernel was given this address as a handler with these three arguments.
        let handler = unsafe { std::mem::transmute::<usize, Handler>(previous.sa_sigaction) };
        handler(signal, info, context);
        return;
    }
    // SAFETY: an all-zero `sigaction` is the default action.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a live structure; `sigaction` may be called in a handler.
    unsafe { libc::sigaction(signal, &raw const default, std::ptr::null_mut()) };
}

/// Page size, read in advance: `sysconf` is not async-signal-safe.
fn page_size() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| usize::try_from(system::page_size()).unwrap_or(4096))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::os::fd::AsFd;
    use std::path::PathBuf;

    use super::*;

    /// A file of 16 KiB of sevens, removed when the test ends.
    struct Scratch(PathBuf, File);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("fathom-sys-map-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, [7; 16384]).unwrap();
            let file = OpenOptions::new().read(true).write(true).open(&path);
            Self(path, file.unwrap())
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _gone_is_fine = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn what_is_written_is_in_the_file_and_the_end_is_the_end() {
        let scratch = Scratch::new("copy");
        let file = scratch.1.as_fd();
        let mut map = Map::new(file, 16384, true).unwrap();
        assert_eq!(map.write(file, 5000, &[1, 2, 3]), 3);
        assert_eq!(map.sync(5000, 3), 0);
        assert_eq!(fs::read(&scratch.0).unwrap()[4999..5004], [7, 1, 2, 3, 7]);
        let mut out = [0; 16];
        assert_eq!(map.read(file, 16380, &mut out), 4);
        assert_eq!(out[..5], [7, 7, 7, 7, 0]);
        assert_eq!(map.read(file, 16384, &mut out), 0);
        assert_eq!(map.read(file, u64::MAX, &mut out), 0);
        assert_eq!(map.write(file, 16384, &[1]), -libc::ENXIO);
        assert_eq!(map.drop_pages(0, u64::MAX), 0);
        assert_eq!(map.advise_order(true), 0);
        assert_eq!(map.read(file, 5000, &mut out[..3]), 3);
        assert_eq!(out[..3], [1, 2, 3]);
    }

    #[test]
    fn a_file_that_shrinks_fails_the_op_and_recovers_with_it() {
        let scratch = Scratch::new("shrink");
        let file = scratch.1.as_fd();
        let mut map = Map::new(file, 16384, true).unwrap();
        scratch.1.set_len(4096).unwrap();
        let mut out = [0; 12288];
        assert_eq!(map.read(file, 2048, &mut out), -libc::EIO);
        assert_eq!(map.write(file, 8192, &[1]), -libc::EIO);
        // The zeros of the first fault are not there any more.
        assert_eq!(map.read(file, 8192, &mut out), -libc::EIO);
        assert_eq!(map.read(file, 0, &mut out[..4096]), 4096);
        assert!(out[..4096].iter().all(|&byte| byte == 7));
        scratch.1.set_len(16384).unwrap();
        assert_eq!(map.read(file, 8192, &mut out[..8]), 8);
        assert_eq!(out[..8], [0; 8]);
    }
}
