//! Servers of tests: each test has namespaces of its own for network, mounts and processes, in
//! which a server uses its usual ports, and which end with the test.

use std::env;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Runs the calling test again, in namespaces of its own, where it gets to `case`. There, a script
/// of the shell looks for the server's programs and prepares the rest; it calls `unable REASON` for
/// what the machine has not or does not permit, which is printed.
#[track_caller]
pub(crate) fn within(prepare: &str, case: impl FnOnce()) {
    if env::var_os(WITHIN).is_some() {
        return case();
    }
    let thread = thread::current();
    let Some(name) = thread.name() else {
        panic!("the thread of a test has its name");
    };
    let mut command = Command::new("unshare");
    command
        .args(["-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", &format!("{BEGIN}{prepare}{END}")])
        .arg(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(WITHIN, "1")
        .env("SCRATCH", env!("CARGO_TARGET_TMPDIR"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: unshare: {error}"),
    };
    if let Some(reason) = unable(&output) {
        return println!("skipped: {reason}");
    }
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{name} has not run: {out}\n{err}");
}

/// Returns why a test did not begin.
fn unable(output: &Output) -> Option<String> {
    let err = String::from_utf8_lossy(&output.stderr);
    // Without namespaces there is no script. `unshare` also complains when a signal ends a test.
    let has_begun = output.stdout.starts_with(BEGUN);
    let is_unable = output.status.code() == Some(UNABLE);
    (is_unable || !has_begun && err.starts_with("unshare:")).then(|| err.trim().to_owned())
}

/// Process of a server, which ends with this value.
pub(crate) struct ServerProcess(Child);

impl ServerProcess {
    /// Starts a server without input and output.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(silent.stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits until the server answers; it panics with the end of the server, or after half a
    /// minute, and with `log`.
    #[track_caller]
    pub(crate) fn await_answer(&mut self, answers: impl Fn() -> bool, log: impl Fn() -> String) {
        for _look in 0..LOOKS {
            if answers() {
                return;
            }
            if let Some(status) = self.0.try_wait().unwrap() {
                panic!("{status}: {}", log());
            }
            thread::park_timeout(LOOK_INTERVAL);
        }
        panic!("the server does not start: {}", log());
    }

    /// Ends the server without a chance to answer.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Stops the server: its connections stay, and it answers no more.
    pub(crate) fn stop(&self) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-STOP", &id]).status();
        assert!(sent.unwrap().success());
        // A thread that runs on another processor stops a moment later.
        while !self.is_stopped() {
            thread::yield_now();
        }
    }

    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let mut states = threads.map(|thread| {
            let stat = fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
            stat.contains(") T ")
        });
        states.all(|is_stopped| is_stopped)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// Replaces a library by a file that is none, for this test alone.
pub(crate) fn hide_library(file: &str) {
    let list = Command::new("ldconfig").arg("-p").output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let wanted = format!("{file} ");
    let lines = list.lines().filter(|line| line.contains(&wanted));
    for path in lines.filter_map(|line| line.split(" => ").nth(1)) {
        let path = fs::canonicalize(path).unwrap();
        let mut command = Command::new("mount");
        command.args(["--bind", "/dev/null"]).arg(path);
        assert!(command.status().unwrap().success());
    }
}

/// Set in the namespaces.
const WITHIN: &str = "FATHOM_TEST_WITHIN";
/// Exit code of a script that could not do its part.
const UNABLE: i32 = 77;

/// Looks for a server that starts: a loaded machine takes seconds.
const LOOKS: u32 = 1500;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// First word of the script.
const BEGUN: &[u8] = b"begun";
const BEGIN: &str = "
echo begun
unable() { echo \"$1\" >&2; exit 77; }
command -v ip >/dev/null || unable 'no ip'
";

/// Goes on to become its arguments.
const END: &str = "
ip link set lo up || unable 'no network of its own'
mount -t tmpfs tmpfs /run || unable 'no mounts of its own'
# Folders of tests are named by process, and in here each test is the same one.
mount -t tmpfs tmpfs \"$SCRATCH\" || unable 'no mounts of its own'
exec \"$0\" \"$@\"
";

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    #[track_caller]
    fn check(code: i32, out: &str, err: &str, want: Option<&str>) {
        let output = Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: out.into(),
            stderr: err.into(),
        };
        assert_eq!(unable(&output).as_deref(), want, "{output:?}");
    }

    #[test]
    fn a_test_that_a_signal_ends_is_not_skipped() {
        let signal = "unshare: sigprocmask unblock failed: Invalid argument\n";
        check(1, "begun\nrunning 1 test\n", signal, None);
        check(101, "begun\n", "panicked", None);
        check(77, "begun\n", "no tgtd\n", Some("no tgtd"));
        let denied = "unshare: unshare failed: Operation not permitted";
        check(1, "", denied, Some(denied));
    }
}
