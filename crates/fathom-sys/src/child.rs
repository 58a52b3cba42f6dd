//! User commands (`exec_prerun`, `exec_postrun`) that end with the run, including all processes
//! they started.
//!
//! Each command leads its own process group. A signal to the group reaches everything that a shell
//! started, and Ctrl-C on a terminal reaches only this program, which then ends the command in
//! order. A second signal, which ends this process at once, kills the groups first (see `signals`).

mod guard;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicI32, Ordering};

use fathom_core::Nanos;

pub use guard::guard_commands;

use crate::clock;
use crate::drained_pipe::{DrainedPipe, Keep};
use crate::signals;

/// A running command, killed with its group on drop.
#[derive(Debug)]
pub struct Child {
    child: std::process::Child,
    /// Entry through which the signal handler finds the group; `None` if the table is full.
    place: Option<&'static AtomicI32>,
    has_ended: bool,
}

/// Result of waiting for a command.
#[derive(Debug)]
pub enum Ended<T> {
    /// The command ended by itself.
    ByItself(T),
    /// The command was ended by a stop request.
    Stopped,
}

impl Child {
    /// Starts a command as leader of its own process group.
    ///
    /// # Errors
    /// The error of starting it.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        // Not `pre_exec`: it would force a fork that copies the address space, including buffers
        // that the kernel is writing to.
        let command = guard::marked(command).process_group(0);
        let child = signals::with_none_blocked(|| command.spawn())??;
        let mut started = Self {
            child,
            place: None,
            has_ended: false,
        };
        let group = started.group();
        started.place = GROUPS.iter().find(|place| {
            // Relaxed: a PID that guards no other memory.
            let taken = place.compare_exchange(0, group, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        });
        Ok(started)
    }

    /// Returns the pipe from its standard output, if there is one and it has not been taken.
    pub const fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Returns the pipe from its standard error, if there is one and it has not been taken.
    pub const fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Returns the PID.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the command, or ends it once `stops` returns true.
    ///
    /// # Errors
    /// The error of `waitid(2)`; the command still runs until this is dropped.
    pub fn wait_unless(&mut self, stops: &dyn Fn() -> bool) -> io::Result<Ended<ExitStatus>> {
        let mut pause = FIRST_PAUSE;
        while !self.is_over()? {
            if stops() {
                self.end();
                return Ok(Ended::Stopped);
            }
            clock::sleep(pause);
            pause = Nanos::new(pause.get() * 2).min(PAUSE_MAX);
        }
        Ok(Ended::ByItself(self.reap()?))
    }

    /// Returns the exit status if the command has ended, without waiting. Then or after an error it
    /// is no longer asked.
    ///
    /// # Errors
    /// The error of `waitid(2)`.
    pub fn poll(&mut self) -> io::Result<Option<ExitStatus>> {
        match self.is_over()? {
            true => self.reap().map(Some),
            false => Ok(None),
        }
    }

    /// Ends the command: SIGTERM, and after a second SIGKILL to the whole group.
    pub fn end(&mut self) {
        self.end_within(GRACE);
    }

    /// Ends the command: SIGTERM, and after `grace` SIGKILL to the whole group.
    pub fn end_within(&mut self, grace: Nanos) {
        if self.has_ended {
            return;
        }
        self.signal_group(libc::SIGTERM);
        for _ in 0..grace.get() / PAUSE_MAX.get() {
            if self.is_over().unwrap_or(true) {
                break;
            }
            clock::sleep(PAUSE_MAX);
        }
        // Until it is reaped, its number cannot become another group's.
        self.signal_group(libc::SIGKILL);
        // A killed command ends; its exit status is of no interest.
        let _status = self.reap();
    }

    /// Returns whether the command has ended, without reaping it.
    fn is_over(&self) -> io::Result<bool> {
        // SAFETY: `siginfo_t` is a plain C struct of integers, for which zeros are a value.
        let mut found: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the struct is alive; the flags are the call's own.
        let failed = unsafe { libc::waitid(libc::P_PID, self.child.id(), &raw mut found, flags) };
        if failed != 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            };
        }
        // SAFETY: the call succeeded, so the number is set: zero where nothing is to be told.
        Ok(unsafe { found.si_pid() } != 0)
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        // Before the number can be reused.
        self.leave_place();
        self.has_ended = true;
        self.child.wait()
    }

    fn leave_place(&mut self) {
        if let Some(place) = self.place.take() {
            // Relaxed: a PID that guards no other memory.
            place.store(0, Ordering::Relaxed);
        }
    }

    fn signal_group(&self, signal: libc::c_int) {
        // SAFETY: plain integers; the group is that of our child, which has not been reaped.
        // It may be gone, which is as well.
        let _gone = unsafe { libc::kill(-self.group(), signal) };
    }

    /// Returns the group's number, which is the leader's PID.
    fn group(&self) -> i32 {
        self.child.id().cast_signed()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.has_ended {
            self.signal_group(libc::SIGKILL);
            let _status = self.reap();
        }
    }
}

/// Runs a command and returns its output, up to 256 MiB of each kind, or ends it once `stops`
/// returns true. The command is killed when this process ends, in any way; what it left running in
/// the background is not.
///
/// Not for use while jobs run: it forks with a copy of the address space.
///
/// # Errors
/// The error of starting it or of waiting for it.
pub fn output_unless(command: &mut Command, stops: &dyn Fn() -> bool) -> io::Result<Ended<Output>> {
    end_with_parent(command);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = Child::spawn(command)?;
    let out = child.child.stdout.take().map(drained);
    let err = child.child.stderr.take().map(drained);
    let ended = child.wait_unless(stops)?;
    drop(child);
    let text = |pipe: Option<DrainedPipe>| {
        // What it left in the background may hold the pipe.
        pipe.map_or_else(Vec::new, |pipe| pipe.text_within(LEFT_OPEN_MAX))
    };
    Ok(match ended {
        Ended::Stopped => Ended::Stopped,
        Ended::ByItself(status) => Ended::ByItself(Output {
            status,
            stdout: text(out),
            stderr: text(err),
        }),
    })
}

fn drained(pipe: impl io::Read + Send + 'static) -> DrainedPipe {
    DrainedPipe::new(pipe, Keep::First(OUTPUT_BYTES_MAX), None)
}

/// Makes the kernel kill the command when the thread that starts it ends, in any way.
///
/// Not for use while jobs run: the command is then forked with a copy of the address space.
pub fn end_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let set = move || {
        // SAFETY: async-signal-safe, plain integers.
        let failed = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // SAFETY: async-signal-safe.
        let is_orphan = unsafe { libc::getppid() }.cast_unsigned() != parent;
        match failed {
            0 if is_orphan => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(set) };
}

/// Kills all groups; async-signal-safe.
pub(crate) fn kill_all() {
    for place in &GROUPS {
        // Relaxed: a PID that guards no other memory.
        let group = place.load(Ordering::Relaxed);
        if group > 0 {
            // SAFETY: async-signal-safe, plain integers. A group leaves its place before its
            // number is free for another.
            let _gone = unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
}

/// Running groups; 0 is a free entry. The size is a guess at the number of commands at once; any
/// beyond it survive if a second signal ends the process.
static GROUPS: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];

/// Poll interval: short at first, for short commands, then longer.
const FIRST_PAUSE: Nanos = Nanos::from_micros(500);
const PAUSE_MAX: Nanos = Nanos::from_millis(20);

/// Most bytes of a kind of output that are kept: beyond any report.
const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Time for what is left in the pipes of a command that has ended: a guess, much more than a reader
/// needs for a full pipe.
const LEFT_OPEN_MAX: Nanos = Nanos::from_secs(1);

/// Time between SIGTERM and SIGKILL: one second for cleanup (guess).
const GRACE: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::BufRead;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_can_be_looked_at_without_waiting() {
        let mut child = Child::spawn(&mut shell("exec sleep 1000")).unwrap();
        assert_eq!(child.poll().unwrap(), None);
        child.end_within(Nanos::ZERO);
        let mut child = Child::spawn(&mut shell("exit 4")).unwrap();
        let status = loop {
            if let Some(status) = child.poll().unwrap() {
                break status;
            }
            clock::sleep(FIRST_PAUSE);
        };
        assert_eq!(status.code(), Some(4));
    }

    /// Waits for the PID that a script writes to a file.
    fn number(path: &Path) -> Option<u32> {
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn is_alive(process: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
        // A zombie counts as ended; reaping it is its parent's task.
        status.is_ok_and(|status| !status.contains(") Z "))
    }

    #[test]
    fn a_command_of_a_thread_without_signals_hears_sigterm() {
        let said = std::thread::spawn(|| {
            signals::block_in_this_thread().unwrap();
            let mut command = shell("trap 'echo heard; exit 0' TERM; echo up; while :; do :; done");
            command.stdout(std::process::Stdio::piped());
            let mut child = Child::spawn(&mut command).unwrap();
            let mut lines = io::BufReader::new(child.take_stdout().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "up");
            child.end_within(Nanos::from_secs(20));
            lines.next().map(Result::unwrap)
        });
        assert_eq!(said.join().unwrap().as_deref(), Some("heard"));
    }

    #[test]
    fn a_command_that_ends_tells_how() {
        let mut child = Child::spawn(&mut shell("exit 3")).unwrap();
        let ended = child.wait_unless(&|| false).unwrap();
        assert!(matches!(ended, Ended::ByItself(status) if status.code() == Some(3)));
        let mut child = Child::spawn(&mut shell("kill -9 $$")).unwrap();
        let ended = child.wait_unless(&|| false).unwrap();
        assert!(matches!(ended, Ended::ByItself(status) if status.signal() == Some(9)));
    }

    /// Stops a shell once its child runs; returns whether the child is alive then.
    fn survives(name: &str, script: &str) -> bool {
        let path = std::env::temp_dir().join(format!("fathom-child-{}-{name}", std::process::id()));
        let script = format!(
            "{script} & echo $! > {}.new; mv {0}.new {0}; wait",
            path.display()
        );
        let mut child = Child::spawn(&mut shell(&script)).unwrap();
        let found = Cell::new(None);
        let stops = || {
            found.set(number(&path));
            found.get().is_some()
        };
        assert!(matches!(child.wait_unless(&stops).unwrap(), Ended::Stopped));
        let _gone = std::fs::remove_file(&path);
        let process = found.get().unwrap();
        // Killed, but perhaps not yet reaped.
        (0..500).all(|_| {
            clock::sleep(Nanos::from_millis(20));
            is_alive(process)
        })
    }

    #[test]
    fn what_a_command_has_started_ends_with_it() {
        assert!(!survives("plain", "sleep 1000"));
    }

    #[test]
    fn what_does_not_listen_is_killed() {
        assert!(!survives("deaf", "(trap '' TERM; exec sleep 1000)"));
    }

    #[test]
    fn what_is_printed_is_brought_home() {
        let mut command = shell("echo out; echo err >&2; exit 2");
        let Ended::ByItself(output) = output_unless(&mut command, &|| false).unwrap() else {
            panic!("nobody has stopped it");
        };
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"out\n"[..], &b"err\n"[..])
        );
        let mut command = shell("sleep 1000");
        assert!(matches!(
            output_unless(&mut command, &|| true).unwrap(),
            Ended::Stopped
        ));
    }

    #[test]
    fn a_command_that_leaves_another_behind_has_ended() {
        let mut command = shell("sleep 1000 & echo $!");
        let Ended::ByItself(output) = output_unless(&mut command, &|| false).unwrap() else {
            panic!("it was not stopped");
        };
        let process = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert!(is_alive(process.parse().unwrap()), "{output:?}");
        let killed = Command::new("kill").arg(&process).status();
        assert!(killed.unwrap().success());
    }
}
