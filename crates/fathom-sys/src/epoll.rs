//! Readiness of many descriptors (`epoll(7)`), and a wake-up from another thread (`eventfd(2)`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use fathom_core::Nanos;

use crate::clock;

/// Set of descriptors to wait for.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// Condition to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable; reported as long as it is.
    Readable,
    /// Readable, writable or closed; reported once for each change, so that a busy socket costs no
    /// call to change what is waited for.
    Changes,
}

/// Room for the events of one [`Epoll::wait`].
pub struct Events {
    list: Box<[libc::epoll_event]>,
    count: usize,
}

/// Event of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Number that the descriptor was added under.
    pub token: u64,
    /// A read would not block.
    pub is_readable: bool,
    /// A write would not block.
    pub is_writable: bool,
    /// The peer has closed its end, or there was an error: a read shows which.
    pub is_closed: bool,
}

impl Epoll {
    /// Creates an empty set.
    ///
    /// # Errors
    /// The error of `epoll_create1(2)`: `EMFILE` if the process has too many open files.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain integers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds a descriptor under a number. Closing it removes it, unless it was duplicated.
    ///
    /// # Errors
    /// The error of `epoll_ctl(2)`: `EPERM` for a regular file, `ENOSPC` beyond the limit of the
    /// user.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::Readable => libc::EPOLLIN,
            Interest::Changes => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
        };
        let mut event = libc::epoll_event {
            events: events.cast_unsigned(),
            u64: token,
        };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open, and the event lives through the call.
        let failed =
            unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        match failed {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a descriptor is ready, `timeout` has passed or a signal arrives. Without a
    /// timeout it waits for ever; a timeout of zero only looks.
    ///
    /// # Errors
    /// The error of `epoll_pwait2(2)`; no cause is known.
    pub fn wait(&self, events: &mut Events, timeout: Option<Nanos>) -> io::Result<()> {
        events.count = 0;
        let count = match timeout {
            Some(timeout) if timeout.is_zero() => self.wait_ms(events, 0),
            None => self.wait_ms(events, -1),
            Some(timeout) => match self.wait_ns(events, timeout) {
                // Before Linux 5.11: up to a millisecond late.
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                    let ms = timeout.get().div_ceil(1_000_000);
                    self.wait_ms(events, i32::try_from(ms).unwrap_or(i32::MAX))
                }
                waited => waited,
            },
        };
        match count {
            Ok(count) => {
                events.count = count;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn wait_ms(&self, events: &mut Events, timeout_ms: i32) -> io::Result<usize> {
        let room = events.room();
        // SAFETY: the kernel writes at most `room` events to memory of that many.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.list.as_mut_ptr(),
                room,
                timeout_ms,
            )
        };
        usize::try_from(count).map_err(|_negative| io::Error::last_os_error())
    }

    fn wait_ns(&self, events: &mut Events, timeout: Nanos) -> io::Result<usize> {
        let timeout = clock::timespec(timeout.get());
        let room = events.room();
        // SAFETY: the kernel writes at most `room` events to memory of that many, reads a live
        // timeout, and is given no signal mask. libc has no function for it in older versions.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.list.as_mut_ptr(),
                room,
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        usize::try_from(count).map_err(|_negative| io::Error::last_os_error())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Events {
    /// Creates room for up to `count` events at a time.
    #[must_use]
    pub fn new(count: u16) -> Self {
        let none = libc::epoll_event { events: 0, u64: 0 };
        Self {
            list: vec![none; usize::from(count.max(1))].into_boxed_slice(),
            count: 0,
        }
    }

    /// Returns the events of the last wait.
    pub fn iter(&self) -> impl Iterator<Item = Readiness> + '_ {
        self.list[..self.count].iter().map(|event| {
            // Copied: the fields of a packed struct cannot be borrowed.
            let (events, token) = (event.events.cast_signed(), event.u64);
            Readiness {
                token,
                is_readable: events & libc::EPOLLIN != 0,
                is_writable: events & libc::EPOLLOUT != 0,
                is_closed: events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            }
        })
    }

    fn room(&self) -> i32 {
        i32::try_from(self.list.len()).unwrap_or(i32::MAX)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Wakes a thread that waits in an [`Epoll`] which this was added to.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker without a pending wake-up.
    ///
    /// # Errors
    /// The error of `eventfd(2)`: `EMFILE` if the process has too many open files.
    pub fn new() -> io::Result<Self> {
        // SAFETY: plain integers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wakes the thread. Several calls before it looks are one.
    pub fn wake(&self) {
        let one = 1_u64;
        let size = size_of_val(&one);
        // SAFETY: the kernel reads eight bytes of a live word.
        let written = unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size) };
        // Fails only where the count is full: the thread is awake then.
        let _full = written;
    }

    /// Forgets the wakes so far.
    pub fn clear(&self) {
        let mut count = 0_u64;
        let size = size_of_val(&count);
        // SAFETY: the kernel writes at most eight bytes to a live word.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size) };
        // Fails only where there were none.
        let _none = read;
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn tokens(events: &Events) -> Vec<u64> {
        events.iter().map(|event| event.token).collect()
    }

    #[test]
    fn a_waker_is_readable_until_it_is_cleared() {
        let (epoll, waker, mut events) =
            (Epoll::new().unwrap(), Waker::new().unwrap(), Events::new(4));
        epoll.add(&waker, 7, Interest::Readable).unwrap();
        epoll.wait(&mut events, Some(Nanos::ZERO)).unwrap();
        assert_eq!(tokens(&events), []);
        waker.wake();
        waker.wake();
        for _ in 0..2 {
            epoll.wait(&mut events, None).unwrap();
            assert_eq!(tokens(&events), [7]);
        }
        waker.clear();
        epoll
            .wait(&mut events, Some(Nanos::from_micros(10)))
            .unwrap();
        assert_eq!(tokens(&events), []);
    }

    #[test]
    fn changes_are_reported_once() {
        let (epoll, mut events) = (Epoll::new().unwrap(), Events::new(4));
        let (mut near, mut far) = UnixStream::pair().unwrap();
        epoll.add(&near, 1, Interest::Changes).unwrap();
        epoll.wait(&mut events, None).unwrap();
        let first: Vec<_> = events.iter().collect();
        assert!(first[0].is_writable && !first[0].is_readable && !first[0].is_closed);
        far.write_all(b"x").unwrap();
        epoll.wait(&mut events, None).unwrap();
        assert!(events.iter().all(|event| event.is_readable));
        epoll.wait(&mut events, Some(Nanos::ZERO)).unwrap();
        assert_eq!(
            tokens(&events),
            [],
            "said once, though it is still readable"
        );
        near.read_exact(&mut [0]).unwrap();
        drop(far);
        epoll.wait(&mut events, None).unwrap();
        assert!(events.iter().all(|event| event.is_closed));
    }
}
