//! A terminal that a full-screen view has taken over, and that is given back whatever happens.
//!
//! ```text
//!  view drops it · a panic · second SIGINT, SIGTERM · SIGHUP, SIGQUIT, SIGABRT ──► as it was
//!  SIGTSTP ──► as it was, stopped ── SIGCONT ──► taken over again, and drawn anew
//! ```
//!
//! Keys arrive one by one and without echo, but they still send signals: Ctrl-C and Ctrl-Z do what
//! they do without the view, to the processes that it has started, too. A process that is killed
//! (SIGKILL) gives nothing back; `reset` helps.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Terminal under a view, until it is dropped or given back.
#[derive(Debug)]
pub struct TakenTerminal {
    /// Actions of the handled signals before the view; an ignored signal is not handled.
    before: Vec<(libc::c_int, libc::sigaction)>,
}

/// Settings before and during the view; leaked, because a signal may need them at any time.
struct Modes {
    before: libc::termios,
    during: libc::termios,
}

impl TakenTerminal {
    /// Takes the terminal at a descriptor over: another screen, no cursor, keys one by one.
    ///
    /// # Errors
    /// `AlreadyExists` if a view has it; the error of a system call, such as `ENOTTY`.
    pub fn take(terminal: BorrowedFd<'_>) -> io::Result<Self> {
        let fd = terminal.as_raw_fd();
        // SAFETY: `termios` is a plain C struct of integers, for which zeros are a value.
        let mut before: libc::termios = unsafe { mem::zeroed() };
        // SAFETY: the descriptor is open (`BorrowedFd`), and the struct lives through the call.
        if unsafe { libc::tcgetattr(fd, &raw mut before) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut during = before;
        during.c_lflag &= !(libc::ICANON | libc::ECHO | libc::ECHONL);
        during.c_cc[libc::VMIN] = 1;
        during.c_cc[libc::VTIME] = 0;
        let mut slot = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if mem::replace(&mut *slot, true) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        drop(slot);
        FD.store(fd, Ordering::Relaxed);
        let modes = Box::leak(Box::new(Modes { before, during }));
        // Release: a handler that loads the pointer sees the settings, and the descriptor.
        MODES.store(modes, Ordering::Release);
        let mut taken = Self { before: Vec::new() };
        for signal in ENDING {
            taken.handle(signal, on_ending)?;
        }
        taken.handle(libc::SIGTSTP, on_stop)?;
        if !enter() {
            return Err(io::Error::last_os_error());
        }
        STATE.store(SHOWN, Ordering::Release);
        Ok(taken)
    }

    /// Installs a handler until the view ends, unless the signal is ignored, as under `nohup`.
    fn handle(
        &mut self,
        signal: libc::c_int,
        handler: extern "C" fn(libc::c_int),
    ) -> io::Result<()> {
        let before = action_of(signal)?;
        if before.sa_sigaction != libc::SIG_IGN {
            install(signal, handler)?;
            self.before.push((signal, before));
        }
        Ok(())
    }

    /// Returns whether the view still has the terminal: a panic anywhere gives it back, a stop does
    /// not.
    #[must_use]
    pub fn is_held(&self) -> bool {
        STATE.load(Ordering::Acquire) != RELEASED
    }

    /// Returns whether the terminal shows the view: not while the process stops or goes on.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        STATE.load(Ordering::Acquire) == SHOWN
    }

    /// Runs `draw`, which writes a frame, if the terminal shows the view; `None` otherwise.
    ///
    /// Whoever gives the terminal back meanwhile waits for the end of the frame, so that no part of
    /// it lands on the screen of the shell. The calling thread must have blocked the signals that
    /// give it back ([`block_all_in_this_thread`](crate::signals::block_all_in_this_thread)): their
    /// handlers would wait for the thread that they interrupted.
    pub fn while_shown<T>(&self, draw: impl FnOnce() -> T) -> Option<T> {
        // SeqCst, here and where the terminal is left: either this thread sees that it was given
        // back, or the other one sees the frame.
        DRAWING.store(true, Ordering::SeqCst);
        let drawn = (STATE.load(Ordering::SeqCst) == SHOWN).then(draw);
        DRAWING.store(false, Ordering::SeqCst);
        drawn
    }

    /// Returns how often it was taken over again after a stop, and must be redrawn.
    #[must_use]
    pub fn resumed(&self) -> u32 {
        RESUMED.load(Ordering::Relaxed)
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        give_back();
        for (signal, before) in &self.before {
            // SAFETY: an action that was in force before, alive through the call.
            unsafe { libc::sigaction(*signal, ptr::from_ref(before), ptr::null_mut()) };
        }
        *OWNER.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// Gives the terminal back, if a view has it. Async-signal-safe; the second call does nothing.
pub fn give_back() {
    // Of two threads one gives it back, after what `enter` did; SeqCst: see `while_shown`.
    if STATE.swap(RELEASED, Ordering::SeqCst) == SHOWN {
        leave();
    }
}

/// Asks the process to stop as Ctrl-C does: the first time in order, the second time at once.
///
/// # Errors
/// The error of `kill(2)`.
pub fn interrupt_self() -> io::Result<()> {
    // SAFETY: plain integers, and the process is this one.
    match unsafe { libc::kill(libc::getpid(), libc::SIGINT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Switches to the view, and returns whether it could. Async-signal-safe.
fn enter() -> bool {
    let is_set = set(|modes| &modes.during);
    if is_set {
        write(ENTER);
    }
    is_set
}

/// Switches back to what was there before the view, after the frame that is being written.
/// Async-signal-safe.
fn leave() {
    wait_for_frame();
    write(LEAVE);
    set(|modes| &modes.before);
}

/// Waits for the end of a frame, but not for a terminal that takes nothing (Ctrl-S).
fn wait_for_frame() {
    let pause = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    for _ in 0..FRAME_WAIT_MS {
        if !DRAWING.load(Ordering::SeqCst) {
            return;
        }
        // SAFETY: async-signal-safe; the struct lives through the call.
        unsafe { libc::nanosleep(&raw const pause, ptr::null_mut()) };
    }
}

/// Changes the settings of the terminal, and returns whether it could.
fn set(of: fn(&Modes) -> &libc::termios) -> bool {
    // Acquire: pairs with the store in `take`.
    let modes = MODES.load(Ordering::Acquire);
    if modes.is_null() {
        return false;
    }
    // SAFETY: not null, so it points to settings that are leaked and never written again.
    let modes = unsafe { &*modes };
    let fd = FD.load(Ordering::Relaxed);
    // SAFETY: async-signal-safe; a descriptor that was closed meanwhile is an error, not more.
    unsafe { libc::tcsetattr(fd, libc::TCSADRAIN, ptr::from_ref(of(modes))) == 0 }
}

fn write(text: &[u8]) {
    let fd = FD.load(Ordering::Relaxed);
    // SAFETY: async-signal-safe; the text is alive and as long as is said.
    let _unsaid = unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
}

/// Handles a signal that ends the process.
extern "C" fn on_ending(signal: libc::c_int) {
    give_back();
    // SAFETY: async-signal-safe, and the default action needs nothing of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    // SAFETY: async-signal-safe; delivered when this handler returns.
    unsafe { libc::raise(signal) };
}

/// Handles a stop from the keyboard: stops with the terminal as it was, and goes on where it was.
extern "C" fn on_stop(_signal: libc::c_int) {
    let was_shown = suspend();
    // The whole process stops here, until SIGCONT.
    // SAFETY: async-signal-safe; plain integers.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
    if was_shown {
        resume();
    }
}

/// Switches back for the time of a stop, and returns whether the view was shown.
///
/// The view goes on to have the terminal: other threads run until the stop reaches them, and again
/// before [`resume`], and one that draws must not take this for the end.
fn suspend() -> bool {
    // SeqCst: see `while_shown`.
    let moved = STATE.compare_exchange(SHOWN, STOPPED, Ordering::SeqCst, Ordering::Relaxed);
    if moved.is_ok() {
        leave();
    }
    moved.is_ok()
}

/// Switches to the view again, unless the terminal was given back meanwhile.
fn resume() {
    if !enter() {
        return;
    }
    let moved = STATE.compare_exchange(STOPPED, SHOWN, Ordering::AcqRel, Ordering::Relaxed);
    match moved {
        Ok(_) => {
            RESUMED.fetch_add(1, Ordering::Relaxed);
        }
        Err(_) => leave(),
    }
}

/// Returns the present action of a signal.
fn action_of(signal: libc::c_int) -> io::Result<libc::sigaction> {
    // SAFETY: `sigaction` is a plain C struct, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: only reads the present action into a struct that lives through the call.
    match unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } {
        0 => Ok(action),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Installs a handler.
fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: `sigaction` is a plain C struct, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the mask is alive and ours alone.
    unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
    // SAFETY: the handler has the signature that flags without SA_SIGINFO ask for, and does only
    // what is allowed in one: atomics, `nanosleep`, `tcsetattr`, `write`, `kill`, `signal` and
    // `raise`.
    let rc = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A view has the terminal; unlike `STATE`, until it is dropped.
static OWNER: Mutex<bool> = Mutex::new(false);
static STATE: AtomicU8 = AtomicU8::new(RELEASED);
/// No view has the terminal, or it was given back.
const RELEASED: u8 = 0;
/// The terminal shows the view.
const SHOWN: u8 = 1;
/// The view has the terminal, which is as before for the time of a stop.
const STOPPED: u8 = 2;
static FD: AtomicI32 = AtomicI32::new(-1);
static MODES: AtomicPtr<Modes> = AtomicPtr::new(ptr::null_mut());
static RESUMED: AtomicU32 = AtomicU32::new(0);
/// A frame is being written.
static DRAWING: AtomicBool = AtomicBool::new(false);
/// Time that a frame is waited for: many times what one takes on a busy machine, and short for a
/// user whose terminal is stopped.
const FRAME_WAIT_MS: u32 = 1_000;
/// Signals that end the process at once. SIGINT and SIGTERM are those of
/// [`signals`](crate::signals).
const ENDING: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGQUIT, libc::SIGABRT];
/// Alternate screen, no cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Plain text, cursor, the screen as it was.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};

    use super::*;

    fn has_echo(terminal: &OwnedFd) -> bool {
        // SAFETY: `termios` is a plain C struct of integers, for which zeros are a value.
        let mut modes: libc::termios = unsafe { mem::zeroed() };
        // SAFETY: the descriptor is open, and the struct lives through the call.
        let rc = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes) };
        assert_eq!(rc, 0);
        modes.c_lflag & (libc::ECHO | libc::ICANON) == libc::ECHO | libc::ICANON
    }

    /// Opens a terminal: the end of its emulator, and that of the program.
    fn open() -> (OwnedFd, OwnedFd) {
        let (mut master, mut slave) = (-1, -1);
        let null = ptr::null_mut();
        // SAFETY: both numbers live through the call; no name, settings or size are asked for.
        let rc = unsafe {
            libc::openpty(
                &raw mut master,
                &raw mut slave,
                null,
                null.cast(),
                null.cast(),
            )
        };
        assert_eq!(rc, 0);
        // SAFETY: new descriptors, which nothing else owns.
        unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
    }

    #[test]
    fn a_terminal_is_given_back_once() {
        let _alone = ONE_VIEW.lock().unwrap();
        let (master, slave) = open();
        assert!(has_echo(&slave));
        let taken = TakenTerminal::take(slave.as_fd()).unwrap();
        assert!(taken.is_held() && !has_echo(&slave));
        let again = TakenTerminal::take(slave.as_fd()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        // A stop: the view keeps the terminal, and shows nothing until it goes on.
        assert!(suspend());
        assert!(taken.is_held() && !taken.is_shown() && has_echo(&slave));
        assert_eq!(taken.resumed(), 0);
        resume();
        assert!(taken.is_shown() && !has_echo(&slave));
        assert_eq!(taken.resumed(), 1);
        give_back();
        assert!(!taken.is_held() && has_echo(&slave));
        assert!(!suspend());
        // Given back during a stop.
        STATE.store(STOPPED, Ordering::Release);
        give_back();
        resume();
        assert!(!taken.is_held() && has_echo(&slave));
        assert_eq!(taken.resumed(), 1);
        drop(taken);
        drop(slave);
        let mut written = vec![0; 3 * (ENTER.len() + LEAVE.len())];
        let mut master = File::from(master);
        master.read_exact(&mut written).unwrap();
        assert_eq!(written, [ENTER, LEAVE].concat().repeat(3));
        let mut more = Vec::new();
        // EIO: the other end is closed, and nothing more was written.
        assert!(master.read_to_end(&mut more).is_err() && more.is_empty());
        let file = File::open("/dev/null").unwrap();
        assert!(TakenTerminal::take(file.as_fd()).is_err());
    }

    #[test]
    fn signals_have_their_actions_again_after_the_view() {
        let _alone = ONE_VIEW.lock().unwrap();
        let (_master, slave) = open();
        // SAFETY: to ignore a signal needs nothing of ours.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        // SAFETY: the handler does only what is allowed in one.
        unsafe { libc::signal(libc::SIGQUIT, on_stop as *const () as libc::sighandler_t) };
        let actions = || {
            [libc::SIGHUP, libc::SIGQUIT, libc::SIGABRT, libc::SIGTSTP]
                .map(|signal| action_of(signal).unwrap().sa_sigaction)
        };
        let before = actions();
        let taken = TakenTerminal::take(slave.as_fd()).unwrap();
        let handled = actions();
        assert_eq!(handled[0], libc::SIG_IGN);
        assert!((1..4).all(|index| handled[index] != before[index]));
        drop(taken);
        let after = actions();
        for signal in [libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: the default action needs nothing of ours.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        assert_eq!(after, before);
    }

    #[test]
    fn a_frame_is_whole_before_the_terminal_is_given_back() {
        let _alone = ONE_VIEW.lock().unwrap();
        let (master, slave) = open();
        let taken = TakenTerminal::take(slave.as_fd()).unwrap();
        let (half, is_half) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let drawn = taken.while_shown(|| {
                    write(b"\x1b[12;");
                    half.send(()).unwrap();
                    while taken.is_held() {
                        std::thread::yield_now();
                    }
                    // Time in which it could be given back too early.
                    std::thread::park_timeout(std::time::Duration::from_millis(20));
                    write(b"1H");
                });
                assert!(drawn.is_some());
            });
            is_half.recv().unwrap();
            give_back();
        });
        assert!(taken.while_shown(|| write(b"late")).is_none());
        drop(taken);
        drop(slave);
        let want = [ENTER, b"\x1b[12;1H", LEAVE].concat();
        let mut written = vec![0; want.len()];
        let mut master = File::from(master);
        master.read_exact(&mut written).unwrap();
        assert_eq!(written, want);
        let mut more = Vec::new();
        assert!(master.read_to_end(&mut more).is_err() && more.is_empty());
    }

    /// The terminal under a view is the process's.
    static ONE_VIEW: Mutex<()> = Mutex::new(());
}
