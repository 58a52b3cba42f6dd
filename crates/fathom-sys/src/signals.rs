//! Ctrl-C and its kin: counted, so that the driver can stop in order.
//!
//! The first `SIGINT` or `SIGTERM` is only counted; the second takes its default action, which
//! ends the process at once (with libaio: when the device has done what is in flight; a process of
//! its own for the jobs, left behind to wait, would disturb whatever is measured next).
//! `timeout(1)` sends one to the process and, right behind it, one to its group: what comes again
//! so soon is the same request.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::{aio, child};

/// The right to ask how often the process was told to stop.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts(());

impl Interrupts {
    /// Takes over `SIGINT` and `SIGTERM` of the process, even where a shell had one ignored (as a
    /// script does with what it starts behind `&`, and later stops by `kill -INT`), and `SIGUSR1`,
    /// which asks for a report. Also has
    /// `SIGXFSZ` ignored, so that a file that grows past `ulimit -f` is an error of that write and
    /// not the end of the process.
    ///
    /// # Errors
    /// The error of `sigaction(2)`.
    pub fn install() -> io::Result<Self> {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            set_handler(signal, on_signal)?;
        }
        set_handler(libc::SIGUSR1, on_report)?;
        // SAFETY: no handler is installed.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(Self(()))
    }

    /// How many came since the process began.
    #[must_use]
    pub fn count(self) -> u32 {
        // Relaxed: a count that guards no other memory.
        RECEIVED.load(Ordering::Relaxed)
    }

    /// How often `SIGUSR1` came, which asks for a report.
    #[must_use]
    pub fn reports(self) -> u32 {
        // Relaxed: a count that guards no other memory.
        REPORTS.load(Ordering::Relaxed)
    }

    /// The number of the last one; 0 before the first.
    #[must_use]
    pub fn last(self) -> i32 {
        // Relaxed: as above.
        LAST.load(Ordering::Relaxed)
    }
}

/// Has `SIGINT` and `SIGTERM` end the process where the shell had them ignored, as a script does
/// with what it starts behind `&`: until [`Interrupts::install`], what the program waits for (the
/// writer of a pipe that is its job file) is waited for no longer than its user wants.
pub fn heed() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the default action needs no handler; the signals are not yet those of
        // `Interrupts`, as this is called before anything else.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Keeps `SIGINT` and `SIGTERM` away from the calling thread, so that none of its system calls is
/// broken off by them; they are delivered to a thread that has not asked for this.
///
/// # Errors
/// The error of `pthread_sigmask(3)`.
pub fn block_in_this_thread() -> io::Result<()> {
    // SAFETY: `sigset_t` is a plain C struct of integers, for which zeros are a value.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is alive and ours alone.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1] {
        // SAFETY: the set was initialised above, and the number is a signal's.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    // SAFETY: the set lives through the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn set_handler(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: `sigaction` is a plain C struct, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // Without SA_RESTART: the waiting driver is to notice at once.
    action.sa_flags = 0;
    // SAFETY: the mask is alive and ours alone.
    unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
    // SAFETY: the handler has the signature that flags without SA_SIGINFO ask for, and does only
    // what is allowed in one: atomics, `clock_gettime`, `write`, `kill`, `signal` and `raise`.
    let rc = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

extern "C" fn on_signal(signal: libc::c_int) {
    let counted = match signal {
        libc::SIGTERM => &TERM_COUNTED_NS,
        _ => &INT_COUNTED_NS,
    };
    if is_same_request(counted, monotonic_ns()) {
        return;
    }
    // Relaxed, here and below: the numbers guard no other memory.
    LAST.store(signal, Ordering::Relaxed);
    if RECEIVED.fetch_add(1, Ordering::Relaxed) == 0 {
        return;
    }
    say_leaving();
    child::kill_all();
    // SAFETY: async-signal-safe, and the default action needs nothing of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: async-signal-safe; delivered when this handler returns.
    unsafe { libc::raise(signal) };
}

/// Says on standard error that the process ends now, and what it may still wait for: nothing that
/// it could do itself would make the kernel let go of what libaio has in flight.
fn say_leaving() {
    let text = match aio::contexts() {
        0 => LEAVING,
        _ => LEAVING_AIO,
    };
    // SAFETY: async-signal-safe; the text is alive and as long as is said.
    let _unsaid = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

const LEAVING: &str = "fathom: leaving without a report\n";
const LEAVING_AIO: &str = "fathom: leaving without a report, as soon as the device has done what \
                           libaio has in flight: the kernel lets no process go before\n";

/// Whether what comes `now` belongs to the signal of its kind that was `counted` last; if not it is
/// the one counted last.
///
/// One step for both, as two threads may take one each of the two that are one request. What is not
/// counted does not lengthen the time: a key that is held down is a second request soon enough.
fn is_same_request(counted: &AtomicU64, now: u64) -> bool {
    // Relaxed: a count that guards no other memory.
    let update = counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        let is_same = last != NEVER && now.saturating_sub(last) < SAME_NS;
        (!is_same).then_some(now)
    });
    update.is_err()
}

/// `CLOCK_MONOTONIC`, in a way that a handler may use; 0 where it cannot be read.
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: async-signal-safe; the struct lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

extern "C" fn on_report(_signal: libc::c_int) {
    // Relaxed: a count that guards no other memory.
    REPORTS.fetch_add(1, Ordering::Relaxed);
}

/// How often a report was asked for since the process began.
static REPORTS: AtomicU32 = AtomicU32::new(0);
/// Signals received since the process began.
static RECEIVED: AtomicU32 = AtomicU32::new(0);
/// The number of the last of them.
static LAST: AtomicI32 = AtomicI32::new(0);
/// When the one of its kind came that was counted last.
static INT_COUNTED_NS: AtomicU64 = AtomicU64::new(NEVER);
static TERM_COUNTED_NS: AtomicU64 = AtomicU64::new(NEVER);
const NEVER: u64 = u64::MAX;
/// The same signal is no second request for so long: shorter than a user takes, long enough for a
/// sender of two that does not get a processor at once.
const SAME_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    use super::*;

    /// Runs this test alone in a process of its own, since signals are the process's.
    fn in_a_child(test: &str) -> ExitStatus {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("signals::tests::{test}"), "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap()
            .status
    }

    fn raise(signal: libc::c_int) {
        // SAFETY: a plain integer.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    #[test]
    fn the_first_is_counted() {
        if std::env::var_os(CHILD).is_none() {
            assert!(in_a_child("the_first_is_counted").success());
            return;
        }
        let interrupts = Interrupts::install().unwrap();
        assert_eq!(interrupts.count(), 0);
        raise(libc::SIGINT);
        assert_eq!(interrupts.count(), 1);
    }

    #[test]
    fn the_second_ends_the_process_whichever_it_is() {
        if std::env::var_os(CHILD).is_none() {
            let status = in_a_child("the_second_ends_the_process_whichever_it_is");
            assert_eq!(status.signal(), Some(libc::SIGTERM));
            return;
        }
        Interrupts::install().unwrap();
        raise(libc::SIGINT);
        raise(libc::SIGTERM);
        panic!("still here");
    }

    #[test]
    fn the_same_within_20_ms_is_one_request() {
        let counted = AtomicU64::new(NEVER);
        let check = |ms: u64, want: bool| {
            assert_eq!(is_same_request(&counted, ms * 1_000_000), want, "{ms} ms");
        };
        check(5, false);
        check(5, true);
        check(24, true);
        check(25, false);
        // Another thread looked at the clock first, and was counted second.
        check(24, true);
        // A key that is held down: every 15 ms.
        check(40, true);
        check(55, false);
    }

    #[test]
    fn a_file_too_large_is_an_error() {
        if std::env::var_os(CHILD).is_none() {
            assert!(in_a_child("a_file_too_large_is_an_error").success());
            return;
        }
        Interrupts::install().unwrap();
        let limit = libc::rlimit {
            rlim_cur: 4096,
            rlim_max: 4096,
        };
        // SAFETY: the struct lives through the call.
        let rc = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        assert_eq!(rc, 0);
        let name = format!("fathom-sys-signals-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let written = std::fs::write(&path, [0; 8192]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(written.unwrap_err().raw_os_error(), Some(libc::EFBIG));
    }

    #[test]
    fn a_blocked_thread_is_not_interrupted() {
        if std::env::var_os(CHILD).is_none() {
            assert!(in_a_child("a_blocked_thread_is_not_interrupted").success());
            return;
        }
        let interrupts = Interrupts::install().unwrap();
        block_in_this_thread().unwrap();
        // `raise` sends to the calling thread, where it stays pending.
        raise(libc::SIGTERM);
        assert_eq!(interrupts.count(), 0);
    }

    const CHILD: &str = "FATHOM_SYS_SIGNALS_CHILD";
}
