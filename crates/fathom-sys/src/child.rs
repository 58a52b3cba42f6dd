//! Commands of the user's that end when the run does, with all that they have started.
//!
//! Each is the leader of a process group of its own, so that a signal reaches what a shell has
//! started, too, and so that Ctrl-C on a terminal reaches this program alone, which then ends the
//! command in order. A second signal, which ends this process at once, kills the groups first (see
//! `signals`).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use fathom_core::Nanos;

use crate::clock;

/// A command that runs.
///
/// It is killed, with its group, if this goes before it has ended.
#[derive(Debug)]
pub struct Child {
    child: std::process::Child,
    /// The entry through which a signal handler finds its group; `None` if there are more commands
    /// than places.
    place: Option<&'static AtomicI32>,
    has_ended: bool,
}

/// Outcome of waiting for a command.
#[derive(Debug)]
pub enum Ended<T> {
    /// It ended by itself.
    ByItself(T),
    /// It was ended because it was to stop.
    Stopped,
}

impl Child {
    /// Starts a command as the leader of a group.
    ///
    /// # Errors
    /// The error of starting it.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        // Not `pre_exec`, which would have the whole address space copied: buffers that the kernel
        // writes to must not be.
        let child = command.process_group(0).spawn()?;
        let mut started = Self {
            child,
            place: None,
            has_ended: false,
        };
        let group = started.group();
        started.place = GROUPS.iter().find(|place| {
            // Relaxed: the number guards no other memory.
            let taken = place.compare_exchange(0, group, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        });
        Ok(started)
    }

    /// Waits for the command's end, or ends it once `stops` says so.
    ///
    /// # Errors
    /// The error of `waitid(2)`; the command is killed then.
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

    /// Has the command end: asks it to, and kills it and all that it has started a second later.
    pub fn end(&mut self) {
        if self.has_ended {
            return;
        }
        self.signal_group(libc::SIGTERM);
        for _ in 0..GRACE_PAUSES {
            if self.is_over().unwrap_or(true) {
                break;
            }
            clock::sleep(PAUSE_MAX);
        }
        // As long as it is not reaped, its number is no other group's.
        self.signal_group(libc::SIGKILL);
        // Killed, it ends; what else there is to say of it nobody asks.
        let _status = self.reap();
    }

    /// Returns whether it has ended, without reaping it.
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
        // Before the number may become another process's.
        self.leave_place();
        self.has_ended = true;
        self.child.wait()
    }

    fn leave_place(&mut self) {
        if let Some(place) = self.place.take() {
            // Relaxed: the number guards no other memory.
            place.store(0, Ordering::Relaxed);
        }
    }

    fn signal_group(&self, signal: libc::c_int) {
        // SAFETY: plain integers; the group is that of our child, which has not been reaped.
        // It may be gone, which is as well.
        let _gone = unsafe { libc::kill(-self.group(), signal) };
    }

    /// Its own number, as the leader's is the group's.
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

/// Runs a command to its end and brings home what it prints, or ends it once `stops` says so. It
/// ends with this process, however that ends.
///
/// Only where no job runs: it copies the address space.
///
/// # Errors
/// The error of starting it or of waiting for it.
pub fn output_unless(command: &mut Command, stops: &dyn Fn() -> bool) -> io::Result<Ended<Output>> {
    let parent = std::process::id();
    let end_with_parent = move || {
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
    unsafe { command.pre_exec(end_with_parent) };
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = Child::spawn(command)?;
    let (out, err) = (child.child.stdout.take(), child.child.stderr.take());
    thread::scope(|scope| {
        let out = scope.spawn(|| text(out));
        let err = scope.spawn(|| text(err));
        let ended = child.wait_unless(stops);
        // It is over, and with it what held the pipes open.
        drop(child);
        let (stdout, stderr) = (
            out.join().unwrap_or_default(),
            err.join().unwrap_or_default(),
        );
        Ok(match ended? {
            Ended::Stopped => Ended::Stopped,
            Ended::ByItself(status) => Ended::ByItself(Output {
                status,
                stdout,
                stderr,
            }),
        })
    })
}

/// All that comes out of a pipe.
fn text(pipe: Option<impl io::Read>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was read until then is as much as there is to be had.
        let _broken = pipe.read_to_end(&mut text);
    }
    text
}

/// Kills all groups; async-signal-safe.
pub(crate) fn kill_all() {
    for place in &GROUPS {
        // Relaxed: the number guards no other memory.
        let group = place.load(Ordering::Relaxed);
        if group > 0 {
            // SAFETY: async-signal-safe, plain integers. A group leaves its place before its
            // number is free for another.
            let _gone = unsafe { libc::kill(-group, libc::SIGKILL) };
        }
    }
}

/// The groups that run; 0 is a free place. A guess at how many jobs run their commands at once;
/// more of them than this outlive a process that is killed by a second signal.
static GROUPS: [AtomicI32; 256] = [const { AtomicI32::new(0) }; 256];

/// Between two looks: short after the start, as most commands are, then longer.
const FIRST_PAUSE: Nanos = Nanos::from_micros(500);
const PAUSE_MAX: Nanos = Nanos::from_millis(20);

/// A second between SIGTERM and SIGKILL: a guess at what tidying up takes.
const GRACE_PAUSES: u32 = 50;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// The number that a script writes to a file once what it names runs.
    fn number(path: &Path) -> Option<u32> {
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn is_alive(process: u32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
        // A zombie waits for its parent, which is no concern of ours.
        status.is_ok_and(|status| !status.contains(") Z "))
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

    /// Stops a shell once what it has started runs; whether that is alive then.
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
        // Killed, but perhaps not gone yet.
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
}
