//! nfs-ganesha with exports in memory, in namespaces of each test's own.

#[path = "../namespaces/mod.rs"]
mod namespaces;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Runs the calling test in namespaces of its own, unless the machine has no server.
#[track_caller]
pub(crate) fn within_namespaces(case: impl FnOnce()) {
    namespaces::within(PREPARE, case);
}

/// Running server, which ends with this value.
pub(crate) struct Ganesha(Child);

impl Ganesha {
    /// Starts a server of [`EXPORT`] and, for readers, [`READ_ONLY`].
    pub(crate) fn start() -> Self {
        for folder in ["/run/ganesha", "/run/rpcbind", EXPORT, READ_ONLY] {
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
        namespaces::stop(&self.0);
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

/// Replaces libnfs by a file that is not a library, for this test alone.
pub(crate) fn hide_library() {
    namespaces::hide_library("libnfs.so.13");
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

/// Looks for the server, 20 ms apart: a loaded machine takes seconds.
const LOOKS: u32 = 1500;

/// Script that looks for the programs, and gives the server a folder of its own.
const PREPARE: &str = "
for program in ganesha.nfsd rpcbind rpcinfo; do
    command -v $program >/dev/null || unable \"no $program\"
done
ldconfig -p | grep -q 'libnfs.so.13 ' || unable 'no libnfs13'
if [ -d /var/lib/nfs ]; then mount -t tmpfs tmpfs /var/lib/nfs || unable 'no mounts'; fi
";
