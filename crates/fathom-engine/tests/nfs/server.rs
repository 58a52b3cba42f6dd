//! nfs-ganesha with exports in memory, in namespaces of each test's own.

#[path = "../namespaces/mod.rs"]
mod namespaces;

use std::fs;
use std::process::Command;

use namespaces::ServerProcess;

/// Runs the calling test in namespaces of its own, unless the machine has no server.
#[track_caller]
pub(crate) fn within_namespaces(case: impl FnOnce()) {
    namespaces::within(PREPARE, case);
}

/// Running server, which ends with this value.
pub(crate) struct Ganesha {
    pub(crate) process: ServerProcess,
}

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
        let mut command = Command::new("ganesha.nfsd");
        command
            .args(["-F", "-L", LOG, "-f", "/run/ganesha.conf"])
            .args(["-p", "/run/ganesha.pid"]);
        let mut process = ServerProcess::start(&mut command);
        process.await_answer(
            || answers("nfs", "3") && answers("mountd", "3"),
            || fs::read_to_string(LOG).unwrap_or_default(),
        );
        Self { process }
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

/// Directory of the export that is written.
pub(crate) const EXPORT: &str = "/run/export";
/// File of the tests in it.
#[allow(dead_code, reason = "only tests of the engine use it")]
pub(crate) const FILE: &str = "/run/export/file";
/// Directory of the export that is read-only.
pub(crate) const READ_ONLY: &str = "/run/export/read-only";

const LOG: &str = "/run/ganesha.log";

/// Script that looks for the programs, and gives the server a folder of its own.
const PREPARE: &str = "
for program in ganesha.nfsd rpcbind rpcinfo; do
    command -v $program >/dev/null || unable \"no $program\"
done
ldconfig -p | grep -q 'libnfs.so.13 ' || unable 'no libnfs13'
if [ -d /var/lib/nfs ]; then mount -t tmpfs tmpfs /var/lib/nfs || unable 'no mounts'; fi
";
