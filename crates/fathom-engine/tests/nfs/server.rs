//! nfs-ganesha with exports in memory. Each test has namespaces of its own for network, mounts and
//! processes, in which the server uses its usual ports, and which end with the test.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Runs the calling test again, in namespaces of its own, where it gets to `case`. Prints why not
/// where the machine has no server or does not permit namespaces.
#[track_caller]
pub(crate) fn within_namespaces(case: impl FnOnce()) {
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
        .args(["sh", "-c", PREPARE])
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
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    // 1 is `unshare`'s own failure, before the script is there.
    if output.status.code() == Some(UNABLE) || err.starts_with("unshare:") {
        return println!("skipped: {}", err.trim());
    }
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{name} has not run: {out}\n{err}");
}

/// Running server, which ends with this value.
pub(crate) struct Ganesha(Child);

impl Ganesha {
    /// Starts a server of [`EXPORT`] and, for readers, [`READ_ONLY`].
    pub(crate) fn start() -> Self {
        for folder in [EXPORT, READ_ONLY] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(
            "/run/ganesha.conf",
            format!(
                "NFS_CORE_PARAM {{ Protocols = 3; MNT_Port = 20048; Enable_NLM = false; \
                 Enable_RQUOTA = false; }}\n{}{}",
                export(1, EXPORT, "RW"),
                export(2, READ_ONLY, "RO"),
            ),
        )
        .unwrap();
        if !answers("portmapper", "2") {
            assert!(Command::new("rpcbind").status().unwrap().success());
        }
        let child = Command::new("ganesha.nfsd")
            .args(["-F", "-L", "/run/ganesha.log", "-f", "/run/ganesha.conf"])
            .args(["-p", "/run/ganesha.pid"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut server = Self(child.unwrap());
        for _look in 0..LOOKS {
            if answers("nfs", "3") && answers("mountd", "3") {
                return server;
            }
            if let Some(status) = server.0.try_wait().unwrap() {
                panic!("{status}: {}", log());
            }
            thread::park_timeout(Duration::from_millis(20));
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
        let stopped = Command::new("kill").args(["-STOP", &id]).status();
        assert!(stopped.unwrap().success());
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

impl Drop for Ganesha {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

/// Returns the URL of an export.
pub(crate) fn url(export: &str) -> String {
    format!("nfs://127.0.0.1{export}")
}

/// Replaces libnfs by a file that is no library, for this test alone.
pub(crate) fn hide_library() {
    let list = Command::new("ldconfig").arg("-p").output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    let lines = list.lines().filter(|line| line.contains("libnfs.so.13 "));
    for path in lines.filter_map(|line| line.split(" => ").nth(1)) {
        let path = fs::canonicalize(path).unwrap();
        let mut command = Command::new("mount");
        command.args(["--bind", "/dev/null"]).arg(path);
        assert!(command.status().unwrap().success());
    }
}

fn export(number: u32, path: &str, access: &str) -> String {
    format!(
        "EXPORT {{ Export_Id = {number}; Path = {path}; Pseudo = /{number}; Protocols = 3; \
         Access_Type = {access}; Squash = No_Root_Squash; SecType = sys; \
         FSAL {{ Name = VFS; }} }}\n"
    )
}

/// Returns whether a program answers a call: a killed server stays registered.
fn answers(program: &str, version: &str) -> bool {
    let mut command = Command::new("rpcinfo");
    command.args(["-T", "tcp", "127.0.0.1", program, version]);
    let output = command.output().unwrap();
    output.status.success()
}

fn log() -> String {
    fs::read_to_string(Path::new("/run/ganesha.log")).unwrap_or_default()
}

/// Directory of the export that is written.
pub(crate) const EXPORT: &str = "/run/export";
/// Directory of the export that is read-only.
pub(crate) const READ_ONLY: &str = "/run/export/read-only";

/// Set in the namespaces.
const WITHIN: &str = "FATHOM_NFS_WITHIN";
/// Looks for the server, 20 ms apart: a loaded machine takes seconds.
const LOOKS: u32 = 1500;
/// Exit code of a script that could not do its part.
const UNABLE: i32 = 77;

/// Script that prepares the namespaces, and becomes its arguments.
const PREPARE: &str = "
unable() { echo \"$1\" >&2; exit 77; }
for program in ganesha.nfsd rpcbind rpcinfo ip; do
    command -v $program >/dev/null || unable \"no $program\"
done
ldconfig -p | grep -q 'libnfs.so.13 ' || unable 'no libnfs13'
ip link set lo up || unable 'no network of its own'
mount -t tmpfs tmpfs /run || unable 'no mounts of its own'
mkdir -p /run/ganesha /run/rpcbind
# Folders of tests are named by process, and in here each test is the same one.
mount -t tmpfs tmpfs \"$SCRATCH\" || unable 'no mounts of its own'
if [ -d /var/lib/nfs ]; then mount -t tmpfs tmpfs /var/lib/nfs || exit 77; fi
exec \"$0\" \"$@\"
";
