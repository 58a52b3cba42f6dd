//! A command on the user's host, with the times of its output.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::lab::WORK;
use crate::process;

/// Running command. Its output goes to files, since processes that outlive it would keep a pipe.
#[derive(Debug)]
pub(crate) struct Job {
    line: String,
    child: Child,
    start: Instant,
}

/// Outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    line: String,
    code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Job {
    /// Starts a command. The files of its output are outside of its folder: at most one runs at a
    /// time.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let line = process::shown(command);
        let child = command
            .stdout(File::create(OUT)?)
            .stderr(File::create(ERR)?)
            .spawn()
            .with_context(|| format!("cannot start `{line}`"))?;
        Ok(Self {
            line,
            child,
            start: process::now(),
        })
    }

    /// Waits until something holds while the command runs.
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut() -> bool) -> Result<Instant> {
        while !holds() {
            if self.child.try_wait()?.is_some() || self.start.elapsed() > LIMIT {
                let err = fs::read_to_string(ERR).unwrap_or_default();
                bail!("`{}`: never: {what}\n{err}", self.line);
            }
            process::pause(POLL);
        }
        Ok(process::now())
    }

    /// Waits until standard error has these words.
    pub(crate) fn until_told(&mut self, words: &str) -> Result<Instant> {
        let has = || fs::read_to_string(ERR).is_ok_and(|text| text.contains(words));
        self.until(&format!("`{words}` on standard error"), has)
    }

    /// Waits until files in the folder of the test have blocks: jobs run.
    pub(crate) fn until_written(&mut self, names: &[&str]) -> Result<Instant> {
        // Their length says less: it is set before the jobs start.
        let has =
            |name: &&str| fs::metadata(Path::new(WORK).join(name)).is_ok_and(|it| it.blocks() > 0);
        self.until("jobs write", || names.iter().all(has))
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Result<Outcome> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if self.start.elapsed() > LIMIT {
                self.child.kill()?;
                self.child.wait()?;
                let err = fs::read_to_string(ERR).unwrap_or_default();
                bail!("`{}` does not end\n{err}", self.line);
            }
            process::pause(POLL);
        };
        Ok(Outcome {
            line: self.line,
            code: status.code(),
            out: fs::read_to_string(OUT)?,
            err: fs::read_to_string(ERR)?,
        })
    }

    /// Waits for the end, which must have this exit code.
    pub(crate) fn expect(self, code: i32) -> Result<Outcome> {
        let outcome = self.finish()?;
        outcome.check(outcome.code == Some(code), &format!("exit code {code}"))?;
        Ok(outcome)
    }
}

impl Outcome {
    /// Fails with all output unless something holds.
    pub(crate) fn check(&self, holds: bool, what: &str) -> Result<()> {
        if holds {
            return Ok(());
        }
        let Self {
            line,
            code,
            out,
            err,
        } = self;
        bail!("not so: {what}\n`{line}`, exit code {code:?}\n{out}\n{err}")
    }

    pub(crate) fn json(&self) -> Result<Value> {
        let read = serde_json::from_str(&self.out);
        read.with_context(|| {
            format!(
                "`{}` printed no JSON: {}\n{}",
                self.line, self.out, self.err
            )
        })
    }
}

/// Reads a report that `--output` has put into the folder of the test, and the time at which it was
/// complete, in nanoseconds since 1970.
pub(crate) fn report(name: &str) -> Result<(Value, u128)> {
    let path: PathBuf = Path::new(WORK).join(name);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok((serde_json::from_str(&text)?, written_ns(&path)?))
}

/// Returns the present time as the kernel marks files with it, in nanoseconds since 1970.
pub(crate) fn wall_ns() -> Result<u128> {
    let mark = Path::new("/run/tmp/mark");
    fs::write(mark, "now")?;
    written_ns(mark)
}

fn written_ns(path: &Path) -> Result<u128> {
    let written = fs::metadata(path)?.modified()?;
    Ok(written.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos())
}

const OUT: &str = "/run/tmp/out";
const ERR: &str = "/run/tmp/err";
const POLL: Duration = Duration::from_millis(5);
/// Far more than any run takes.
const LIMIT: Duration = Duration::from_secs(120);
