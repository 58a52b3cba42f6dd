//! `io_uring_enter(2)`, and the reactions to its errors.

use std::io;

use fathom_core::Nanos;

use crate::clock;

use super::Ring;
use super::abi::{ENTER_EXT_ARG, ENTER_GETEVENTS, ENTER_SQ_WAKEUP, EventsArgument};
use super::call;

impl<const BIG: bool> Ring<BIG> {
    /// Wakes the SQPOLL thread if it sleeps, and waits for `want` completions.
    pub(super) fn submit_to_thread(&mut self, want: u32) -> io::Result<()> {
        let mut flags = 0;
        if self.rings.submission.needs_wakeup() {
            flags |= ENTER_SQ_WAKEUP;
        }
        if want > 0 {
            flags |= ENTER_GETEVENTS;
        }
        if flags == 0 {
            return Ok(());
        }
        match self.enter(0, want, flags) {
            Err(error) if error.raw_os_error() != Some(libc::EINTR) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Prepares the next try after the kernel took no entry: returns at once after a signal; if the
    /// kernel is out of requests, waits for a completion, or for a while if none of ours is
    /// pending.
    #[cold]
    pub(super) fn make_room(&mut self, error: &io::Error, retries: &mut u32) -> io::Result<()> {
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            Some(libc::EAGAIN | libc::EBUSY)
                if self.with_kernel() > self.rings.completion.len() =>
            {
                self.wait(self.rings.completion.len() + 1, Some(RETRY))
            }
            // No op of ours can make room: give up after a while.
            Some(libc::EAGAIN | libc::EBUSY) if *retries > 0 => {
                *retries -= 1;
                clock::sleep(RETRY);
                Ok(())
            }
            errno => Err(io::Error::from_raw_os_error(errno.unwrap_or(libc::EIO))),
        }
    }

    /// Calls `io_uring_enter(2)` and returns the number of entries the kernel took.
    #[inline(always)]
    pub(super) fn enter(&mut self, submit: u32, min: u32, flags: u32) -> io::Result<u32> {
        // SAFETY: there is no argument.
        unsafe { self.enter_with(submit, min, flags, std::ptr::null()) }
    }

    /// Calls it to wait for completions, at most for `span`.
    pub(super) fn enter_for(&mut self, min: u32, span: Option<Nanos>) -> io::Result<u32> {
        let Some(span) = span else {
            return self.enter(0, min, ENTER_GETEVENTS);
        };
        let time = clock::timespec(span.get());
        let argument = EventsArgument {
            mask: 0,
            mask_size: 0,
            min_wait_us: 0,
            time: (&raw const time).expose_provenance() as u64,
        };
        // SAFETY: the argument is alive and names a live timespec.
        unsafe { self.enter_with(0, min, ENTER_GETEVENTS | ENTER_EXT_ARG, &raw const argument) }
    }

    /// # Safety
    /// `argument` is null, or with `ENTER_EXT_ARG` points to a live argument.
    #[inline(always)]
    unsafe fn enter_with(
        &mut self,
        submit: u32,
        min: u32,
        flags: u32,
        argument: *const EventsArgument,
    ) -> io::Result<u32> {
        self.calls += 1;
        let size = if argument.is_null() {
            0
        } else {
            size_of::<EventsArgument>()
        };
        // SAFETY: the caller vouches for the argument. What the entries name is kept alive by
        // `push`.
        let taken = unsafe {
            call::io_uring_enter(
                self.enter_fd,
                submit,
                min,
                flags | self.enter_flags,
                argument.cast(),
                size,
            )
        };
        u32::try_from(taken).map_err(|_negative| io::Error::from_raw_os_error(-taken))
    }
}

/// Wait for a completion before the next try when the kernel is out of requests: long for an op,
/// short for a user.
const RETRY: Nanos = Nanos::from_millis(10);

/// Tries of one submission while none of our ops is in the kernel: one second in all (guess: memory
/// that other programs free comes sooner, or not soon).
pub(super) const RETRIES: u32 = 100;

/// Returns the error of a call that took no entry and returned none.
#[cold]
pub(super) fn no_room() -> io::Error {
    io::Error::from_raw_os_error(libc::EAGAIN)
}
