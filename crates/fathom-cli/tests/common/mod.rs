//! Scratch directory of a test, and the program run in it.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod namespace;
pub(crate) mod sums;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

/// A folder that is removed when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not below /tmp's tmpfs where there is one: direct I/O and disks are wanted.
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = base.join(format!("cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// Returns the names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Runs the program with these arguments, split at blanks, in this directory.
    pub(crate) fn fathom(&self, words: &str) -> Run {
        Run::of(self.command(env!("CARGO_BIN_EXE_fathom"), words))
    }

    /// Runs the program under the name `fio`.
    pub(crate) fn fio(&self, words: &str) -> Run {
        let bin = self.0.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let link = bin.join("fio");
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fathom"), &link).unwrap();
        }
        Run::of(self.command(link.to_str().unwrap(), words))
    }

    pub(crate) fn command(&self, program: &str, words: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(words.split_whitespace())
            .current_dir(&self.0)
            .stdin(Stdio::null());
        command.env_remove("RUST_BACKTRACE");
        // No test adds to the history of its user.
        command
            .env_remove("FATHOM_HISTORY")
            .env("XDG_DATA_HOME", self.0.join("data"));
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Works on all items, twice as many at a time as there are processors, because programs that are
/// started spend half of their time waiting. Returns the results in no order.
pub(crate) fn each<'a, T: Sync, R: Send>(
    items: &'a [T],
    work: impl Fn(&'a T) -> R + Sync,
) -> Vec<R> {
    let threads = 2 * thread::available_parallelism().unwrap().get();
    let next = AtomicUsize::new(0);
    let worker = || {
        // Relaxed: a number that each thread takes once.
        let taken = || items.get(next.fetch_add(1, Ordering::Relaxed));
        std::iter::from_fn(|| taken().map(&work)).collect()
    };
    thread::scope(|scope| {
        let workers: Vec<thread::ScopedJoinHandle<'_, Vec<R>>> =
            (0..threads).map(|_| scope.spawn(worker)).collect();
        let done = workers.into_iter().map(|worker| worker.join().unwrap());
        done.flatten().collect()
    })
}

/// Result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(mut command: Command) -> Self {
        command.output().unwrap().into()
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.err.contains("internal error"), "{self:#?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Returns why the kernel refuses the request, if it does.
    pub(crate) fn refused(&self) -> Option<&str> {
        (self.code == Some(2) && self.err.contains("cannot start engine")).then_some(&self.err)
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
