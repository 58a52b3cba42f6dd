//! `--bandwidth-log`: aggregate bandwidth of all jobs, one file per direction.
//!
//! Computed from the progress that jobs publish ten times a second, so it costs the jobs nothing; a
//! window may be off by the bytes of a tenth of a second. The last, partial window gets no line, as
//! in fio: over a millisecond its rate would mean nothing.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use fathom_core::{Direction, Nanos, PerDirection, Tick};
use fathom_log::open::{LogDestination, OpenLog, not_writable};
use fathom_record::Warning;
use fathom_setup::check::TakenFiles;
use fathom_setup::{ProblemKind, RunProblem};

/// Open log files, not yet truncated: a run that fails before it starts loses no earlier log.
#[derive(Debug)]
pub(crate) struct OpenBandwidthLog(Vec<(String, OpenLog)>);

impl OpenBandwidthLog {
    /// Opens the three files, whose names end with `suffix`. Waits for the readers of named pipes
    /// until `stop` returns true.
    ///
    /// # Errors
    /// A problem per file that is `taken`, or cannot be opened for writing.
    pub(crate) fn open(
        prefix: &str,
        suffix: &str,
        taken: &TakenFiles,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Vec<RunProblem>> {
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for direction in Direction::ALL {
            let path = format!("{prefix}-{}_bw.log{suffix}", direction.name());
            if let Some(message) = taken.conflict(&path) {
                let message = format!("--bandwidth-log: {message}");
                let problem = RunProblem::new(ProblemKind::Contradiction, message);
                problems.push(problem.hint("use another prefix"));
                continue;
            }
            match OpenLog::open(Path::new(&path), false, stop) {
                Ok(file) => files.push((path, file)),
                Err(error) => {
                    let what = "--bandwidth-log: cannot write";
                    problems.push(not_writable(what, &path, &error));
                }
            }
        }
        if problems.is_empty() {
            Ok(Self(files))
        } else {
            Err(problems)
        }
    }

    /// Returns the paths of the files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, _)| path.as_str())
    }

    /// Truncates the files and starts logging; times count from `begun`.
    ///
    /// # Errors
    /// A file that cannot be truncated.
    pub(crate) fn begin(self, begun: Tick) -> Result<BandwidthLog, RunProblem> {
        let mut files = Vec::new();
        for (path, file) in self.0 {
            let to = file.begin().map_err(|error| {
                let message = format!("--bandwidth-log: cannot truncate {path}: {error}");
                RunProblem::new(ProblemKind::LogNotWritable, message)
            })?;
            files.push(Written {
                path,
                to,
                text: String::new(),
            });
        }
        Ok(BandwidthLog {
            files,
            begun,
            last: begun,
            bytes: PerDirection::default(),
            failed: None,
        })
    }
}

/// Bandwidth log being written.
#[derive(Debug)]
pub(crate) struct BandwidthLog {
    /// Files by direction.
    files: Vec<Written>,
    begun: Tick,
    last: Tick,
    bytes: PerDirection<u64>,
    failed: Option<(String, io::Error)>,
}

#[derive(Debug)]
struct Written {
    path: String,
    to: LogDestination,
    /// Lines not yet written because the pipe is full.
    text: String,
}

impl BandwidthLog {
    /// Returns the time left until the current window ends.
    pub(crate) fn patience(&self, now: Tick) -> Nanos {
        (self.last + WINDOW) - now
    }

    /// Writes the windows that have ended by `now`; `bytes` are the totals at `now`.
    pub(crate) fn advance(&mut self, now: Tick, bytes: &PerDirection<u64>) {
        let windows = (now - self.last).get() / WINDOW.get();
        if windows > 0 {
            self.windows(windows, bytes);
        }
    }

    /// Writes the remaining full windows after the jobs have ended. Returns a warning if a file is
    /// incomplete.
    pub(crate) fn finish(
        mut self,
        now: Tick,
        bytes: &PerDirection<u64>,
        stop: &dyn Fn() -> bool,
    ) -> Option<Warning> {
        self.advance(now, bytes);
        for file in &mut self.files {
            if self.failed.is_none()
                && let Err(error) = file.to.write_all(file.text.as_bytes(), stop)
            {
                self.failed = Some((file.path.clone(), error));
            }
        }
        let (path, error) = self.failed?;
        Some(Warning {
            code: "log_broken".into(),
            job: String::new(),
            message: format!("the log {path} is incomplete: {error}"),
            hint: "free space on the disk, or remove `--bandwidth-log`".into(),
        })
    }

    /// Writes `count` windows. If the watcher was late, the bytes are spread evenly over them.
    fn windows(&mut self, count: u64, bytes: &PerDirection<u64>) {
        for (direction, file) in Direction::ALL.into_iter().zip(&mut self.files) {
            // Saturating: counters restart at 0 when a ramp ends.
            let moved = bytes[direction].saturating_sub(self.bytes[direction]);
            let span = u128::from(count * WINDOW.get()) * 1024;
            let kib = u128::from(moved) * SECOND / span;
            for window in 1..=count {
                let end = self.last + Nanos::new(window * WINDOW.get());
                let time = (end - self.begun).as_millis();
                // Cannot fail: writes to a string.
                let _ = writeln!(file.text, "{time}, {kib}, {}, 0, 0", direction.index());
            }
            if self.failed.is_some() {
                continue;
            }
            // Never blocks: this is the watcher's thread, which also handles stop requests.
            match file.to.write_now(file.text.as_bytes()) {
                Ok(written) => drop(file.text.drain(..written)),
                Err(error) => self.failed = Some((file.path.clone(), error)),
            }
        }
        self.last += Nanos::new(count * WINDOW.get());
        self.bytes = *bytes;
    }
}

/// Averaging window, the same as in fio.
const WINDOW: Nanos = Nanos::from_millis(500);
/// Nanoseconds per second.
const SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_aligned_and_add_up() {
        let folder = std::env::temp_dir().join(format!("fathom-bandwidth-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let prefix = folder.join("agg").display().to_string();
        let start = Tick::default() + Nanos::from_millis(77);
        let open = || OpenBandwidthLog::open(&prefix, "", &TakenFiles::default(), &|| false);
        let mut log = open().expect("files").begin(start).expect("files");
        let at = |ms| start + Nanos::from_millis(ms);
        for (ms, kib) in [(300, 1), (501, 1000), (990, 1500), (2010, 2500)] {
            log.advance(at(ms), &PerDirection::new(kib << 10, 0, 0));
        }
        assert!(
            log.finish(
                at(2100),
                &PerDirection::new(3000 << 10, 0, 7 << 10),
                &|| false
            )
            .is_none()
        );
        let text = |name| std::fs::read_to_string(format!("{prefix}-{name}_bw.log")).expect(name);
        let want = "500, 2000, 0, 0, 0\n1000, 1000, 0, 0, 0\n1500, 1000, 0, 0, 0\n\
                    2000, 1000, 0, 0, 0\n";
        assert_eq!(text("read"), want);
        assert_eq!(text("write").lines().count(), 4);
        assert!(
            text("trim").ends_with("2000, 0, 2, 0, 0\n"),
            "the partial window has no line"
        );
        std::fs::remove_dir_all(&folder).expect("a folder");
        let problems = open().expect_err("no folder");
        assert_eq!(problems.len(), 3);
    }
}
