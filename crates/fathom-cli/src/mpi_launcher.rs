//! The MPI launcher of this host, and the line that starts ranks with it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use fathom_core::Nanos;
use fathom_sys::child::{self, Ended};
use fathom_sys::clock::Clock;
use fathom_sys::system;

use crate::failure::with_hint;
use crate::output;

/// Launcher of an MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MpiLauncher {
    program: PathBuf,
    kind: LauncherKind,
    /// This host, as its launcher is to call it.
    here: String,
}

/// Family of launchers with the same switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LauncherKind {
    OpenMpi,
    /// Process manager of MPICH, and of the MPIs that derive from it, such as Intel's.
    Hydra,
}

impl MpiLauncher {
    /// Finds the launcher: as `FATHOM_MPIRUN` names it, else `mpirun` or `mpiexec` in the PATH.
    pub(crate) fn find() -> Result<Self> {
        let named = std::env::var_os(VARIABLE).filter(|named| !named.is_empty());
        let program = match named {
            Some(named) => PathBuf::from(named),
            None => NAMES.into_iter().find_map(in_path).ok_or_else(|| {
                let hint = format!(
                    "install an MPI (Debian: `apt-get install openmpi-bin`), or set {VARIABLE}"
                );
                with_hint("--client: no mpirun or mpiexec in the PATH", Some(hint))
            })?,
        };
        let shown = program.display().to_string();
        let text = version(&program).with_context(|| format!("--client: {shown} --version"))?;
        let kind = LauncherKind::of_version(&text).ok_or_else(|| {
            let hint = format!("set {VARIABLE} to the launcher of Open MPI, MPICH or Intel MPI");
            let first = text.lines().next().unwrap_or("no version").trim();
            let first = output::beginning(first);
            with_hint(
                format!("--client: {shown}: unknown launcher: {first}"),
                Some(hint),
            )
        })?;
        let here = match kind {
            LauncherKind::OpenMpi => "localhost".to_owned(),
            // Its proxies on other hosts connect to the first name of the list.
            LauncherKind::Hydra => system::kernel().host,
        };
        Ok(Self {
            program,
            kind,
            here,
        })
    }

    /// Returns the command that starts a rank beside the user with some words, then one on each
    /// host with others. `as_root`: the user is root, and has chosen to be.
    ///
    /// # Errors
    /// A word of the user is one that ends a rank's words for every launcher.
    pub(crate) fn command(
        &self,
        rank: &RankCommand,
        here: &[OsString],
        hosts: &[&str],
        as_root: bool,
    ) -> Result<Command> {
        if here.iter().any(|word| word == NEXT_RANK) {
            let hint = "write `--SWITCH=:` as one word, or name a file `./:`";
            let why = "--client: the MPI launcher takes the word `:` for the end of the line";
            return Err(with_hint(why, Some(hint)));
        }
        let mut command = Command::new(&self.program);
        match self.kind {
            LauncherKind::OpenMpi => {
                // Each rank on all processors of its host, and more than one if a host is named
                // twice.
                command.args(["--bind-to", "none", "--oversubscribe"]);
                if as_root {
                    command.arg("--allow-run-as-root");
                }
            }
            // One list for all, which is filled in order, a rank for each entry.
            LauncherKind::Hydra => {
                let all: Vec<&str> = std::iter::once(&*self.here)
                    .chain(hosts.iter().copied())
                    .collect();
                command.args(["-hosts", &all.join(",")]);
            }
        }
        let mut first = true;
        for (name, words) in std::iter::once((&*self.here, here))
            .chain(hosts.iter().map(|&name| (name, &rank.words[..])))
        {
            if !std::mem::take(&mut first) {
                command.arg(NEXT_RANK);
            }
            command.args(["-n", "1"]);
            if self.kind == LauncherKind::OpenMpi {
                command.args(["--host", name]);
            }
            command.arg(&rank.program);
            command.args(words);
        }
        Ok(command)
    }
}

/// Program of a rank, with the words of those on other hosts.
#[derive(Clone, Debug)]
pub(crate) struct RankCommand {
    /// Path, the same on all hosts.
    pub(crate) program: PathBuf,
    /// Words.
    pub(crate) words: Vec<OsString>,
}

impl LauncherKind {
    /// Distinguishes launchers by the output of `--version`.
    fn of_version(text: &str) -> Option<Self> {
        let has = |words: &str| text.contains(words);
        match () {
            () if has("Open MPI") || has("OpenRTE") || has("PRRTE") => Some(Self::OpenMpi),
            () if has("HYDRA") || has("Intel(R) MPI") || has("MPICH") => Some(Self::Hydra),
            () => None,
        }
    }
}

/// Returns the version text of a launcher, limited in time and bytes.
fn version(program: &Path) -> Result<String> {
    let clock = Clock::monotonic();
    let until = clock.now() + VERSION_PATIENCE;
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null());
    match child::output_unless(&mut command, &|| clock.now() >= until)? {
        Ended::ByItself(output) => {
            let text = &output.stdout[..output.stdout.len().min(VERSION_BYTES_MAX)];
            Ok(String::from_utf8_lossy(text).into_owned())
        }
        Ended::Stopped => {
            let hint = format!("run it by hand, or set {VARIABLE} to another launcher");
            Err(with_hint("no answer for 20 s", Some(hint)))
        }
    }
}

/// Returns a command as a line for a shell.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || "-._/=:,@%+".contains(letter);
        match !word.is_empty() && word.chars().all(is_plain) {
            true => word.into_owned(),
            false => format!("'{}'", word.replace('\'', r"'\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Returns the file of this name in the PATH.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let files = std::env::split_paths(&path).map(|folder| folder.join(name));
    let mut files = files.filter(|file: &PathBuf| Path::is_file(file));
    files.next()
}

/// Word between two ranks.
const NEXT_RANK: &str = ":";
/// Variable that names the launcher.
const VARIABLE: &str = "FATHOM_MPIRUN";
const NAMES: [&str; 2] = ["mpirun", "mpiexec"];
/// A guess: launchers answer within a tenth of a second, from a network file system within some.
const VERSION_PATIENCE: Nanos = Nanos::from_secs(20);
/// Limit of that text: MPICH's, with all its switches, has 2 KiB.
const VERSION_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_apart() {
        let cases = [
            (
                "mpirun (Open MPI) 4.1.4\n\nReport bugs",
                Some(LauncherKind::OpenMpi),
            ),
            ("mpirun (Open MPI) 5.0.8\n", Some(LauncherKind::OpenMpi)),
            (
                "HYDRA build details:\n    Version: 4.0.2\n",
                Some(LauncherKind::Hydra),
            ),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.9",
                Some(LauncherKind::Hydra),
            ),
            ("slurm 23.02", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(LauncherKind::of_version(text), want, "{text}");
        }
    }

    #[track_caller]
    fn check(kind: LauncherKind, as_root: bool, want: &str) {
        let launcher = MpiLauncher {
            program: "mpirun".into(),
            kind,
            here: "user".to_owned(),
        };
        let rank = RankCommand {
            program: "/opt/fathom-mpi".into(),
            words: vec!["join".into()],
        };
        let here = ["conduct", "it's"].map(OsString::from);
        let command = launcher.command(&rank, &here, &["a", "b"], as_root);
        assert_eq!(line(&command.unwrap()), want);
        let split = ["conduct", "--description", ":"].map(OsString::from);
        let refused = launcher.command(&rank, &split, &["a"], as_root);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("the word `:`"), "{text}");
    }

    #[test]
    fn each_host_is_a_rank_in_the_order_given() {
        let ranks = |of: [&str; 3]| {
            let [here, a, b] = of;
            format!(
                "-n 1 {here}/opt/fathom-mpi conduct 'it'\\''s' : -n 1 {a}/opt/fathom-mpi join : \
                 -n 1 {b}/opt/fathom-mpi join"
            )
        };
        let open = "mpirun --bind-to none --oversubscribe";
        let plain = ranks(["--host user ", "--host a ", "--host b "]);
        check(LauncherKind::OpenMpi, false, &format!("{open} {plain}"));
        let as_root = format!("{open} --allow-run-as-root {plain}");
        check(LauncherKind::OpenMpi, true, &as_root);
        let hydra = format!("mpirun -hosts user,a,b {}", ranks([""; 3]));
        check(LauncherKind::Hydra, true, &hydra);
    }
}
