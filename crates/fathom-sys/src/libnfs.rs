//! NFS in user space by libnfs, loaded when it is asked for.
//!
//! A mount belongs to one thread. Its calls only queue requests; [`Nfs::serve`] sends and receives.
//! The library is never told to reconnect: a server that restarts has lost what it was asked.

mod abi;
mod callbacks;

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::NonNull;

use fathom_core::{Completion, Errno, Nanos, Slot};

use self::abi::{Context, File, Functions, LIBRARY, STAT_SIZE, STAT_WORDS};
use self::callbacks::{looked_up, opened, read, returned};
use crate::in_flight::Ready;
use crate::library::calls::Calls;
use crate::library::{self, Library, LibraryError, Sockets, c_text};
use crate::memory::{Buffers, MemoryPlacement};

/// A mounted export, its open files, and the buffers of the slots.
pub struct Nfs {
    functions: Functions,
    context: NonNull<Context>,
    /// Results, which callbacks write until the context is destroyed.
    calls: Calls<Transfer>,
    buffers: Buffers,
    depth: u32,
    files: Box<[Option<NonNull<File>>]>,
    in_flight: u32,
    sockets: Sockets,
    /// Completions to be reaped.
    done: Ready,
    is_mounted: bool,
    /// The connection is lost; ops fail with this errno.
    lost: Option<Errno>,
    read_max: u64,
    write_max: u64,
}

/// Transfer of a slot, in requests of the size that the server takes; or the file that a call has
/// opened, or its size.
#[derive(Debug, Default)]
struct Transfer {
    op: NfsOp,
    moved: u32,
    opened: Option<NonNull<File>>,
}

/// Op on a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsOp {
    /// Kind of the op.
    pub kind: NfsOpKind,
    /// Number of the file.
    pub file: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Offset in the slot's buffer.
    pub buffer_offset: u32,
    /// Bytes.
    pub length: u32,
}

/// Kind of an op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NfsOpKind {
    /// READ.
    #[default]
    Read,
    /// WRITE.
    Write,
    /// COMMIT.
    Commit,
}

/// Use of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NfsOpen {
    /// It is written.
    pub write: bool,
    /// Create it if it is missing.
    pub create: bool,
    /// Each write completes when it is stable.
    pub sync: bool,
}

impl Nfs {
    /// Loads the library and creates a client that is not connected.
    ///
    /// # Errors
    /// The library is missing, or there is no memory.
    pub fn load(
        depth: u32,
        bytes: u32,
        files: usize,
        memory: &MemoryPlacement,
    ) -> Result<Self, LibraryError> {
        let functions = Functions::load(&Library::load(LIBRARY)?)?;
        let no_memory = |_| LibraryError::NoMemory;
        let buffers = Buffers::within(memory, depth, bytes).map_err(no_memory)?;
        // SAFETY: no arguments.
        let context = unsafe { (functions.nfs_init_context)() };
        Ok(Self {
            functions,
            context: NonNull::new(context).ok_or(LibraryError::NoMemory)?,
            calls: Calls::new(depth),
            buffers,
            depth,
            files: vec![None; files].into_boxed_slice(),
            in_flight: 0,
            sockets: Sockets::default(),
            done: Ready::new(depth),
            is_mounted: false,
            lost: None,
            read_max: 0,
            write_max: 0,
        })
    }

    /// Returns whether the export is mounted.
    #[must_use]
    pub const fn is_mounted(&self) -> bool {
        self.is_mounted
    }

    /// Mounts the export of a URL: `nfs://HOST/PATH?ARGUMENTS`.
    ///
    /// # Errors
    /// The library's words, or that the server did not answer in time.
    pub fn mount(&mut self, url: &str, timeout: Nanos) -> Result<(), LibraryError> {
        let text = c_text(url)?;
        let (functions, context) = (self.functions, self.context.as_ptr());
        // SAFETY: the context exists, and the text ends with a zero.
        let parsed = unsafe { (functions.nfs_parse_url_dir)(context, text.as_ptr()) };
        let Some(parsed) = NonNull::new(parsed) else {
            return Err(LibraryError::Url {
                text: self.error_text(),
            });
        };
        // SAFETY: the context exists.
        unsafe { (functions.nfs_set_autoreconnect)(context, 0) };
        // SAFETY: the library returned it just now, and it is destroyed below.
        let (server, export) = unsafe { (parsed.as_ref().server, parsed.as_ref().path) };
        let mounted = self.perform(timeout, NO_PLACE, |private| {
            // SAFETY: the context exists, the texts are those of the parsed URL, of which the
            // library makes copies, and `private` is the call of the callback.
            unsafe { (functions.nfs_mount_async)(context, server, export, returned, private) }
        });
        // SAFETY: the library returned it, and the mount has ended.
        unsafe { (functions.nfs_destroy_url)(parsed.as_ptr()) };
        mounted.map_err(|error| match error {
            // Its text has the reason; there may have been no connection yet.
            LibraryError::Call {
                errno: Some(Errno::ECONNRESET),
                text,
            } => LibraryError::Call { errno: None, text },
            error => error,
        })?;
        self.is_mounted = true;
        // SAFETY: the context exists.
        self.read_max = unsafe { (functions.nfs_get_readmax)(context) };
        // SAFETY: as before.
        self.write_max = unsafe { (functions.nfs_get_writemax)(context) };
        Ok(())
    }

    /// Opens a file of the export; returns its size.
    ///
    /// # Errors
    /// The library's words, or that the server did not answer in time.
    ///
    /// # Panics
    /// If the number is of an open file.
    pub fn open(
        &mut self,
        file: u32,
        path: &str,
        how: NfsOpen,
        timeout: Nanos,
    ) -> Result<u64, LibraryError> {
        assert!(self.files[file as usize].is_none(), "the file is open");
        let path = c_text(path)?;
        let (functions, context) = (self.functions, self.context.as_ptr());
        let flags = match how.write {
            true => libc::O_RDWR,
            false => libc::O_RDONLY,
        } | if how.create { libc::O_CREAT } else { 0 }
            | if how.sync { libc::O_SYNC } else { 0 };
        self.perform(timeout, NO_PLACE, |private| {
            // SAFETY: the context exists, the path ends with a zero and lives until the call has
            // ended, and `private` is the call of the callback.
            unsafe {
                (functions.nfs_open2_async)(context, path.as_ptr(), flags, MODE, opened, private)
            }
        })?;
        let call = self.calls.call(self.calls.waiting());
        let Some(handle) = call.extra.borrow_mut().opened.take() else {
            return Err(LibraryError::NoMemory);
        };
        self.files[file as usize] = Some(handle);
        self.size(handle, timeout)
    }

    /// Closes a file.
    ///
    /// # Errors
    /// The library's words, or that the server did not answer in time.
    pub fn close(&mut self, file: u32, timeout: Nanos) -> Result<(), LibraryError> {
        let Some(handle) = self.files[file as usize].take() else {
            return Ok(());
        };
        if self.lost.is_some() {
            // The handle is leaked: the library frees one only once the server has answered.
            return Ok(());
        }
        let (functions, context) = (self.functions, self.context.as_ptr());
        self.perform(timeout, NO_PLACE, |private| {
            // SAFETY: the context exists, the handle is open and forgotten, and `private` is the
            // call of the callback.
            unsafe { (functions.nfs_close_async)(context, handle.as_ptr(), returned, private) }
        })?;
        Ok(())
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    /// Hands the buffer of a slot to other threads.
    pub fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }

    /// Queues an op.
    ///
    /// # Panics
    /// If the slot is in flight, or its buffer too short.
    pub fn begin(&mut self, slot: Slot, op: NfsOp) {
        let number = slot.get();
        assert!(number < self.depth, "no such slot");
        let call = self.calls.call(number);
        *call.extra.borrow_mut() = Transfer {
            op,
            ..Transfer::default()
        };
        self.in_flight += 1;
        self.request(number);
        // A request that the library refuses has ended already.
        self.settle();
    }

    /// Completes an op without a request.
    pub fn finish(&mut self, slot: Slot, result: i32) {
        self.done.push(slot, result);
    }

    /// Returns the number of ops that have a request.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of ops to be reaped.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.done.count()
    }

    /// Takes ops that have completed.
    pub fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.done.take(out)
    }

    /// Sends and receives, waiting for the socket for at most so long; returns whether anything
    /// has happened.
    pub fn serve(&mut self, timeout: Option<Nanos>) -> bool {
        if self.lost.is_some() {
            return false;
        }
        let happened = self.serve_once(timeout);
        self.settle();
        happened
    }

    /// Gives the connection up: all ops fail, and so do later ones.
    #[cold]
    pub fn abandon(&mut self, errno: Errno, text: String) {
        self.lose(errno, text);
        self.settle();
    }

    /// Returns what is known about the first failure with an errno.
    #[must_use]
    pub fn explanation(&self, errno: Errno) -> Option<String> {
        self.calls.explanation(errno)
    }

    /// Sends the next request of a slot's op.
    fn request(&mut self, number: u32) {
        let call = self.calls.call(number);
        let (op, moved) = {
            let transfer = call.extra.borrow();
            (transfer.op, transfer.moved)
        };
        let handle = self.files.get(op.file as usize).copied().flatten();
        let Some(handle) = handle.filter(|_| self.lost.is_none()) else {
            let errno = self.lost.unwrap_or(Errno::EBADF);
            let _begun = self.calls.begin(number, NO_PLACE);
            self.calls.end(number, errno.result());
            return;
        };
        let (functions, context) = (self.functions, self.context.as_ptr());
        let left = op.length - moved;
        let offset = op.offset + u64::from(moved);
        let limit = |max: u64| match u32::try_from(max) {
            Ok(max) if max > 0 => left.min(max),
            _ => left,
        };
        let place = |length| {
            let start = op.buffer_offset + moved;
            let address = self.buffers.address(Slot::new(number), start, length);
            (address, length as usize)
        };
        let file = handle.as_ptr();
        let refused = match op.kind {
            NfsOpKind::Read => {
                let length = limit(self.read_max);
                let private = self.calls.begin(number, place(length));
                // SAFETY: the context and the file are open; the callback copies to a place in the
                // slot's buffer, which is the call's until it has ended.
                unsafe {
                    let count = length.into();
                    (functions.nfs_pread_async)(context, file, offset, count, read, private)
                }
            }
            NfsOpKind::Write => {
                let length = limit(self.write_max);
                let (address, _) = place(length);
                let private = self.calls.begin(number, NO_PLACE);
                // SAFETY: the context and the file are open; the data are in the slot's buffer,
                // which nothing changes until the op has completed, and which outlives the context.
                unsafe {
                    let (count, data) = (length.into(), address.cast_const().cast());
                    (functions.nfs_pwrite_async)(
                        context, file, offset, count, data, returned, private,
                    )
                }
            }
            NfsOpKind::Commit => {
                let private = self.calls.begin(number, NO_PLACE);
                // SAFETY: the context and the file are open.
                unsafe { (functions.nfs_fsync_async)(context, file, returned, private) }
            }
        };
        if refused < 0 {
            let text = self.error_text();
            self.calls.explain(Errno::EIO, text);
            self.calls.end(number, Errno::EIO.result());
        }
    }

    /// Takes what callbacks have returned: completes ops, or sends their next requests.
    fn settle(&mut self) {
        while let Some((number, result)) = self.calls.next() {
            let result = self.named(result);
            self.advance(number, result);
        }
    }

    /// Completes an op, or sends its next request.
    fn advance(&mut self, number: u32, result: i32) {
        if number == self.depth {
            return;
        }
        let is_done = {
            let mut transfer = self.calls.call(number).extra.borrow_mut();
            let count = u32::try_from(result).unwrap_or(0);
            transfer.moved = (transfer.moved + count).min(transfer.op.length);
            let is_whole = transfer.moved == transfer.op.length;
            result <= 0 || is_whole || transfer.op.kind == NfsOpKind::Commit
        };
        if !is_done {
            return self.request(number);
        }
        let moved = self.calls.call(number).extra.borrow().moved;
        let moved = moved.min(Completion::BYTES_MAX).cast_signed();
        self.in_flight -= 1;
        let result = if result < 0 { result } else { moved };
        self.done.push(Slot::new(number), result);
    }

    /// Starts a call and waits until it has ended; returns its result.
    fn perform(
        &mut self,
        timeout: Nanos,
        place: (*mut u8, usize),
        start: impl FnOnce(*mut c_void) -> c_int,
    ) -> Result<i32, LibraryError> {
        if let Some(errno) = self.lost {
            return Err(LibraryError::Call {
                errno: Some(errno),
                text: self.calls.explanation(errno).unwrap_or_default(),
            });
        }
        let number = self.calls.waiting();
        self.calls.call(number).extra.take();
        let private = self.calls.begin(number, place);
        if start(private) < 0 {
            self.calls.end(number, Errno::EIO.result());
            self.settle();
            return Err(LibraryError::Call {
                errno: None,
                text: self.error_text(),
            });
        }
        let end = crate::clock::monotonic_ns().saturating_add(timeout.get());
        while self.calls.is_in_flight(number) {
            let left = end.saturating_sub(crate::clock::monotonic_ns());
            if left == 0 {
                self.abandon(Errno::ETIMEDOUT, LibraryError::Silent(timeout).to_string());
                return Err(LibraryError::Silent(timeout));
            }
            // The library changes its socket on the way from one program of the server to the next.
            self.serve_once(Some(Nanos::new(left).min(STEP)));
            if self.lost.is_some() {
                break;
            }
        }
        let mut own = 0;
        while let Some((other, result)) = self.calls.next() {
            let result = self.named(result);
            match other == number {
                true => own = result,
                false => self.advance(other, result),
            }
        }
        if own >= 0 {
            return Ok(own);
        }
        let errno = Errno::try_from(-own).ok();
        let known = errno.and_then(|errno| self.calls.explanation(errno));
        Err(LibraryError::Call {
            errno,
            text: known.unwrap_or_else(|| self.error_text()),
        })
    }

    /// Returns the size of an open file.
    fn size(&mut self, handle: NonNull<File>, timeout: Nanos) -> Result<u64, LibraryError> {
        let mut stat = [0_u64; STAT_WORDS];
        let (functions, context) = (self.functions, self.context.as_ptr());
        let place = (stat.as_mut_ptr().cast(), size_of_val(&stat));
        self.perform(timeout, place, |private| {
            // SAFETY: the context and the file are open, and `private` is the call of the callback.
            unsafe { (functions.nfs_fstat64_async)(context, handle.as_ptr(), looked_up, private) }
        })?;
        Ok(stat[STAT_SIZE])
    }

    fn serve_once(&mut self, timeout: Option<Nanos>) -> bool {
        let (functions, context) = (self.functions, self.context.as_ptr());
        // SAFETY: the context exists.
        let descriptor = unsafe { (functions.nfs_get_fd)(context) };
        // SAFETY: as before.
        let events = unsafe { (functions.nfs_which_events)(context) };
        self.sockets.clear();
        self.sockets.add(descriptor, events);
        self.sockets.wait(timeout);
        let events = self.sockets.events(0);
        // SAFETY: the context exists. Callbacks get calls of this table, which outlives it, and
        // touch nothing that is borrowed here.
        let failed = unsafe { (functions.nfs_service)(context, events.of_library) } < 0;
        // Connections to other programs of the server come and go before the export is mounted.
        let is_closed = events.is_closed && self.is_mounted;
        if failed || is_closed {
            let text = without_connection(&self.error_text());
            self.lose(Errno::ECONNRESET, text);
        }
        events.of_library != 0 || failed || is_closed
    }

    #[cold]
    fn lose(&mut self, errno: Errno, text: String) {
        self.calls.explain(errno, text);
        self.lost.get_or_insert(errno);
        self.calls.end_all(errno.result());
    }

    /// Returns a result with the errno of its failure, and keeps the library's message about it.
    fn named(&self, result: i32) -> i32 {
        let Ok(errno) = Errno::try_from(-result) else {
            return result;
        };
        let (errno, text) = named(errno, self.error_text());
        self.calls.explain(errno, text);
        errno.result()
    }

    /// Returns the library's message about its latest failure.
    #[cold]
    fn error_text(&self) -> String {
        // SAFETY: the context exists.
        let text = unsafe { (self.functions.nfs_get_error)(self.context.as_ptr()) };
        // SAFETY: null, or a text of the context, which is copied before its next call.
        unsafe { library::text(text) }.unwrap_or_default()
    }
}

impl Drop for Nfs {
    fn drop(&mut self) {
        // Callbacks that come now find their calls ended.
        self.calls.end_all(Errno::ECANCELED.result());
        // SAFETY: the context exists, and nothing uses it afterwards. Its last callbacks get calls
        // of the table, which is dropped later.
        unsafe { (self.functions.nfs_destroy_context)(self.context.as_ptr()) };
    }
}

impl fmt::Debug for Nfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nfs").finish_non_exhaustive()
    }
}

/// Returns the errno of a failure: the library has EFAULT for a call that got no answer, and for
/// statuses without an errno of theirs, which its words name.
#[cold]
fn named(errno: Errno, text: String) -> (Errno, String) {
    match errno {
        Errno::EFAULT if text.contains("NFS3ERR_") => {
            let known = STATUSES.iter().find(|(name, _)| text.contains(name));
            (known.map_or(Errno::EIO, |(_, errno)| *errno), text)
        }
        Errno::EFAULT => (Errno::ECONNRESET, without_connection(&text)),
        errno => (errno, text),
    }
}

#[cold]
fn without_connection(text: &str) -> String {
    match text {
        "" => "no connection to the server: it has ended".into(),
        text => format!("no connection to the server: {text}"),
    }
}

/// Statuses of reads and writes, as the library's words have them.
const STATUSES: [(&str, Errno); 7] = [
    ("NFS3ERR_STALE", Errno::ESTALE),
    ("NFS3ERR_NOSPC", Errno::ENOSPC),
    ("NFS3ERR_DQUOT", Errno::EDQUOT),
    ("NFS3ERR_FBIG", Errno::EFBIG),
    ("NFS3ERR_ROFS", Errno::EROFS),
    ("NFS3ERR_ACCES", Errno::EACCES),
    ("NFS3ERR_PERM", Errno::EPERM),
];

const NO_PLACE: (*mut u8, usize) = (std::ptr::null_mut(), 0);

/// Rights of a file that is created.
const MODE: c_int = 0o644;

/// Longest wait for one socket during a call that may use several.
const STEP: Nanos = Nanos::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_errno() {
        let errno = |text: &str| named(Errno::EFAULT, text.into()).0;
        for (text, want) in [
            ("NFS: Write failed with NFS3ERR_NOSPC(-28)", Errno::ENOSPC),
            ("NFS: Write failed with NFS3ERR_FBIG(-27)", Errno::EFBIG),
            ("NFS: Write failed with NFS3ERR_DQUOT(-122)", Errno::EDQUOT),
            ("NFS: Read failed with NFS3ERR_STALE(-116)", Errno::ESTALE),
            ("NFS: Read failed with NFS3ERR_IO(-5)", Errno::EIO),
            ("", Errno::ECONNRESET),
        ] {
            assert_eq!(errno(text), want, "{text}");
        }
        assert_eq!(named(Errno::ENOENT, String::new()).0, Errno::ENOENT);
    }
}
