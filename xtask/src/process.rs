//! Child processes, the workspace's paths, and the only clock of this tool.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Returns the current time, for timing child processes.
#[expect(
    clippy::disallowed_methods,
    reason = "times whole child processes; no part of the program that measures storage"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Sleeps between two polls of a child.
#[expect(
    clippy::disallowed_methods,
    reason = "polls a child process; no part of the program that measures storage"
)]
pub(crate) fn pause(time: std::time::Duration) {
    std::thread::sleep(time);
}

/// Returns a command for the cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns a command whose process is killed when the calling thread ends, however that ends, where
/// util-linux is installed.
pub(crate) fn tied(program: &str) -> Command {
    match find("setpriv") {
        None => Command::new(program),
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL", program]);
            command
        }
    }
}

/// Returns the workspace's root directory.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = manifest.parent().context("xtask has no parent folder")?;
    root.canonicalize()
        .with_context(|| format!("cannot find the workspace: {}", root.display()))
}

/// Returns the output of `cargo metadata` about the workspace alone, which needs no network.
pub(crate) fn metadata() -> Result<Value> {
    let mut command = cargo();
    command
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(root()?);
    let text = capture(&mut command)?;
    serde_json::from_str(&text).context("cannot read what `cargo metadata` printed")
}

/// Returns the output of `cargo metadata` about the workspace and all its dependencies on this
/// host, optional ones included.
pub(crate) fn dependencies() -> Result<Value> {
    let mut command = cargo();
    command
        .args([
            "metadata",
            "--locked",
            "--all-features",
            "--format-version=1",
        ])
        .args(["--filter-platform", &host_triple()?])
        .current_dir(root()?);
    let text = capture(&mut command)?;
    serde_json::from_str(&text).context("cannot read what `cargo metadata` printed")
}

/// Returns the compiler's host triple.
pub(crate) fn host_triple() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = capture(Command::new(rustc).arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}

/// Runs a command with inherited output; fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = shown(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output; fails if it does.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let line = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        bail!("`{line}` failed: {}\n{stderr}{stdout}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no UTF-8"))
}

/// Formats a command as typed in a shell.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// Returns the path of fio; a link of that name to Fathom is none.
pub(crate) fn find_fio() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&path).map(|folder| folder.join("fio"));
    let mut files = candidates.filter(|candidate| candidate.is_file());
    files.find(|candidate| {
        let version = capture(Command::new(candidate).arg("--version"));
        version.is_ok_and(|version| !version.contains("-fathom-"))
    })
}

/// Returns the full path of an installed program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}
