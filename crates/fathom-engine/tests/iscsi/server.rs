//! tgt with units in memory, in namespaces of each test's own.

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
pub(crate) struct Tgt {
    pub(crate) process: ServerProcess,
}

impl Tgt {
    /// Starts a server of [`TARGET`], whose units are [`DISK`], [`READ_ONLY`] and [`THIN`], and of
    /// [`LOCKED`], which lets in `me` with the password `open-sesame-12`.
    pub(crate) fn start() -> Self {
        let mut daemon = Command::new("tgtd");
        daemon
            .args(["-f", "-C", "0", "--iscsi", "portal=127.0.0.1:3260"])
            .env("TGT_IPC_SOCKET", SOCKET);
        let mut process = ServerProcess::start(&mut daemon);
        let answers = || command("show", "sys", &[]).output().unwrap().status;
        process.await_answer(|| answers().success(), || "tgtd".into());
        add_target("1", TARGET);
        for (number, path) in [("1", DISK), ("2", READ_ONLY), ("3", THIN)] {
            add_unit("1", number, path);
        }
        update_unit("2", "readonly=1");
        update_unit("3", "thin_provisioning=1");
        add_target("2", LOCKED);
        add_unit("2", "1", DISK);
        admin(
            "new",
            "account",
            &["--user", "me", "--password", "open-sesame-12"],
        );
        admin("bind", "account", &["--tid", "2", "--user", "me"]);
        Self { process }
    }

    /// Makes a unit of [`TARGET`] read-only.
    #[expect(clippy::unused_self, reason = "the server runs")]
    pub(crate) fn lock(&self, unit: &str) {
        update_unit(unit, "readonly=1");
    }

    /// Replaces a unit of [`TARGET`] by another, of a file that exists.
    #[expect(clippy::unused_self, reason = "the server runs")]
    pub(crate) fn replace_unit(&self, unit: &str, path: &str) {
        admin("delete", "logicalunit", &["--tid", "1", "--lun", unit]);
        add_unit("1", unit, path);
    }

    /// Has [`LOCKED`] prove itself, too: as `tgt`, with the password `open-sesame-34`.
    #[allow(dead_code, reason = "only tests of the program use it")]
    #[expect(clippy::unused_self, reason = "the server runs")]
    pub(crate) fn prove(&self) {
        let account = ["--user", "tgt", "--password", "open-sesame-34"];
        admin("new", "account", &account);
        let account = ["--tid", "2", "--user", "tgt", "--outgoing"];
        admin("bind", "account", &account);
    }

    /// Adds a portal.
    #[expect(clippy::unused_self, reason = "the server runs")]
    pub(crate) fn listen(&self, address: &str) {
        let portal = format!("portal={address}");
        admin("new", "portal", &["--param", &portal]);
    }

    /// Adds a target whose logins are redirected.
    #[expect(clippy::unused_self, reason = "the server runs")]
    pub(crate) fn redirect(&self, target: &str, host: &str, port: &str) {
        add_target("3", target);
        add_unit("3", "1", DISK);
        for (name, value) in [
            ("RedirectAddress", host),
            ("RedirectPort", port),
            ("RedirectReason", "Temporary"),
        ] {
            admin("update", "target", &["--tid", "3", "-n", name, "-v", value]);
        }
    }
}

/// Returns the URL of a unit.
pub(crate) fn url(target: &str, unit: u32) -> String {
    format!("iscsi://127.0.0.1/{target}/{unit}")
}

/// Replaces libiscsi by a file that is not a library, for this test alone.
pub(crate) fn hide_library() {
    namespaces::hide_library("libiscsi.so.7");
}

fn add_target(number: &str, name: &str) {
    admin("new", "target", &["--tid", number, "-T", name]);
    admin("bind", "target", &["--tid", number, "-I", "ALL"]);
}

fn add_unit(target: &str, number: &str, path: &str) {
    if fs::metadata(path).is_err() {
        fs::File::create(path).unwrap().set_len(BYTES).unwrap();
    }
    admin(
        "new",
        "logicalunit",
        &["--tid", target, "--lun", number, "-b", path],
    );
}

fn update_unit(number: &str, parameter: &str) {
    let arguments = ["--tid", "1", "--lun", number, "--params", parameter];
    admin("update", "logicalunit", &arguments);
}

#[track_caller]
fn admin(op: &str, mode: &str, arguments: &[&str]) {
    let output = command(op, mode, arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{op} {mode} {arguments:?}: {text}");
}

fn command(op: &str, mode: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("tgtadm");
    command
        .args(["-C", "0", "--lld", "iscsi", "--op", op, "--mode", mode])
        .args(arguments)
        .env("TGT_IPC_SOCKET", SOCKET);
    command
}

pub(crate) const TARGET: &str = "iqn.2026-01.test:open";
pub(crate) const LOCKED: &str = "iqn.2026-01.test:locked";

/// Files behind the units 1 to 3: the second is read-only, and the third takes trims.
pub(crate) const DISK: &str = "/run/disk";
pub(crate) const READ_ONLY: &str = "/run/read-only";
pub(crate) const THIN: &str = "/run/thin";

/// Size of a unit whose file does not exist before the server.
pub(crate) const BYTES: u64 = 16 << 20;

const SOCKET: &str = "/run/tgtd.socket";

/// Script that looks for the programs.
const PREPARE: &str = "
for program in tgtd tgtadm; do
    command -v $program >/dev/null || unable \"no $program\"
done
ldconfig -p | grep -q 'libiscsi.so.7 ' || unable 'no libiscsi7'
";
