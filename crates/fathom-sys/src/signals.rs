//! Termination signals, counted, so that the driver can stop in order.
//!
//! The first `SIGINT` or `SIGTERM` is only counted; the second takes its default action, which
//! ends the process at once. With libaio the kernel still waits for the ops in flight; running jobs
//! in a child process that is left behind was rejected, because it would disturb the next
//! measurement. `timeout(1)` signals the process and then its group: a repetition within a short
//! time counts as the same request.

use std::io;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::{aio, child, terminal};

/// Access to the counts of received signals, after the handlers were installed.
#[derive(Clone, Copy, Debug)]
pub struct Interrupts(());

impl Interrupts {
    /// Installs handlers for `SIGINT` and `SIGTERM`, even if they are ignored (as in a script's
    /// background jobs, which it may stop by `kill -INT`), and for `SIGUSR1`, which requests a
    /// report. Ignores `SIGXFSZ`, so that a write past `ulimit -f` fails instead of ending the
    /// process.
    ///
    /// # Errors
    /// The error of `sigaction(2)`.
    pub fn install() -> io::Result<Self> {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            set_handler(signal, on_signal)?;
        }
        set_handler(libc::SIGUSR1, on_report)?;
        report_file_size_limit();
        Ok(Self(()))
    }

    /// Returns the number of stop requests so far.
    #[must_use]
    pub fn count(self) -> u32 {
        // Relaxed: a count that guards no other memory.
        RECEIVED.load(Ordering::Relaxed)
    }

    /// Returns the number of report requests (`SIGUSR1`) so far.
    #[must_use]
    pub fn reports(self) -> u32 {
        // Relaxed: a count that guards no other memory.
        REPORTS.load(Ordering::Relaxed)
    }

    /// Returns the number of the last signal; 0 before the first.
    #[must_use]
    pub fn last(self) -> i32 {
        // Relaxed: as above.
        LAST.load(Ordering::Relaxed)
    }
}

/// Restores the default action of `SIGINT` and `SIGTERM`, which scripts ignore for background jobs.
/// Until [`Interrupts::install`], a user can so end a wait, such as for the writer of a FIFO that
/// is the job file.
pub fn restore_default_stop() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the default action needs no handler; the signals are not yet those of
        // `Interrupts`, as this is called before anything else.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Ignores `SIGXFSZ`, so that a write past `ulimit -f` fails with a reason.
pub fn report_file_size_limit() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Blocks `SIGINT`, `SIGTERM` and `SIGUSR1` in the calling thread, so that they do not interrupt
/// its system calls; other threads receive them.
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
    block(&set)
}

/// Calls `start` with no signal blocked in the calling thread: a program that is started has the
/// mask of its thread, and would take no SIGTERM. Whatever has been pending meanwhile is handled
/// here.
///
/// # Errors
/// The error of `pthread_sigmask(3)`.
pub fn with_none_blocked<T>(start: impl FnOnce() -> T) -> io::Result<T> {
    // SAFETY: `sigset_t` is a plain C struct of integers, for which zeros are a value.
    let (mut none, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { mem::zeroed() };
    // SAFETY: the sets are alive and ours alone.
    let error = unsafe {
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, &raw mut before)
    };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let started = start();
    // SAFETY: the set was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    Ok(started)
}

/// Blocks every signal that can be blocked in the calling thread; other threads receive them.
///
/// # Errors
/// The error of `pthread_sigmask(3)`.
pub fn block_all_in_this_thread() -> io::Result<()> {
    // SAFETY: `sigset_t` is a plain C struct of integers, for which zeros are a value.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is alive and ours alone.
    unsafe { libc::sigfillset(&raw mut set) };
    block(&set)
}

fn block(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set lives through the call; the old mask is not asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::from_ref(set), ptr::null_mut()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn set_handler(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: `sigaction` is a plain C struct, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // Without SA_RESTART, so that a waiting driver notices at once.
    action.sa_flags = 0;
    // SAFETY: the mask is alive and ours alone.
    unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
    // SAFETY: the handler has the signature that flags without SA_SIGINFO ask for, and does only
    // what is allowed in one: atomics, `clock_gettime`, `nanosleep`, `write`, `kill`, `signal`,
    // `raise`, and `tcsetattr`.
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
    terminal::give_back();
    say_leaving();
    child::kill_all();
    // SAFETY: async-signal-safe, and the default action needs nothing of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: async-signal-safe; delivered when this handler returns.
    unsafe { libc::raise(signal) };
}

/// Writes to standard error that the process ends now, and that the kernel may delay this until
/// libaio's ops in flight complete, which cannot be cancelled.
fn say_leaving() {
    let text = match aio::contexts() {
        0 => LEAVING,
        _ => LEAVING_AIO,
    };
    // SAFETY: async-signal-safe; the text is alive and as long as is said.
    let _unsaid = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

const LEAVING: &str = "fathom: leaving without a report\n";
const LEAVING_AIO: &str = "fathom: leaving without a report, once the device has completed \
                           libaio's ops in flight: the kernel lets no process end before\n";

/// Returns whether a signal at `now` repeats the one last counted; otherwise records it as such.
///
/// One atomic step, because two threads may receive the two signals of one request. An uncounted
/// repetition does not extend the window, so a key held down soon counts as a second request.
fn is_same_request(counted: &AtomicU64, now: u64) -> bool {
    // Relaxed: a count that guards no other memory.
    let update = counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        let is_same = last != NEVER && now.saturating_sub(last) < SAME_NS;
        (!is_same).then_some(now)
    });
    update.is_err()
}

/// Reads `CLOCK_MONOTONIC` async-signal-safely; 0 on failure.
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

/// Report requests so far.
static REPORTS: AtomicU32 = AtomicU32::new(0);
/// Stop requests so far.
static RECEIVED: AtomicU32 = AtomicU32::new(0);
/// Number of the last signal.
static LAST: AtomicI32 = AtomicI32::new(0);
/// Time of the last counted signal, per kind.
static INT_COUNTED_NS: AtomicU64 = AtomicU64::new(NEVER);
static TERM_COUNTED_NS: AtomicU64 = AtomicU64::new(NEVER);
const NEVER: u64 = u64::MAX;
/// Window in which a signal counts as a repetition: shorter than a user's second keypress, longer
/// than a descheduled sender takes between two signals.
const SAME_NS: u64 = 20_000_000;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, ExitStatus};

    use super::*;

    /// Runs this test in its own process, because signals are per process.
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
        // Another thread read the clock first and was counted second.
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
        // `raise` signals the calling thread, where the signal stays pending.
        raise(libc::SIGTERM);
        assert_eq!(interrupts.count(), 0);
    }

    const CHILD: &str = "FATHOM_SYS_SIGNALS_CHILD";
}
