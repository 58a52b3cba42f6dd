//! Commands that a guest has run on the machine around it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lines::Lines;
use crate::process;

/// Processes started for a guest, and the folder in which they run. All end when it is dropped.
#[derive(Debug)]
pub(crate) struct Outside {
    folder: PathBuf,
    /// Port of this machine that leads to the guest's, if the guest has a network.
    port: Option<u16>,
    started: BTreeMap<String, (Child, Lines)>,
}

impl Outside {
    /// Prepares a folder in which `fathom` is the program under test.
    pub(crate) fn new(folder: &Path, fathom: &Path, port: Option<u16>) -> Result<Self> {
        fs::create_dir_all(folder.join("bin"))?;
        symlink(fathom.canonicalize()?, folder.join("bin/fathom"))?;
        Ok(Self {
            folder: folder.to_owned(),
            port,
            started: BTreeMap::new(),
        })
    }

    /// Returns the lines of the processes' standard error, each with its process's name.
    pub(crate) fn logs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|end| end == "log")
                && let Ok(text) = fs::read(&path)
            {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let text = String::from_utf8_lossy(&text);
                lines.extend(text.lines().map(|line| format!("{name}: {line}")));
            }
        }
        lines
    }

    /// Does what the guest asks for and returns the lines of the answer.
    pub(crate) fn request(&mut self, words: &str, deadline: Instant) -> Result<Vec<String>> {
        let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
        match verb {
            "run" => self.run(rest),
            "start" => {
                let (name, command) = rest.split_once(' ').context("start NAME COMMAND")?;
                self.start(name, command, deadline)
            }
            "stop" => self.stop(rest),
            "port" => {
                let port = self
                    .port
                    .context("the machine has no network: `# vm: --network`")?;
                Ok(vec![port.to_string()])
            }
            other => bail!("the guest asks for `{other}`: run, start, stop or port"),
        }
    }

    fn run(&self, line: &str) -> Result<Vec<String>> {
        let text = process::capture(&mut self.shell(line)?)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn start(&mut self, name: &str, line: &str, deadline: Instant) -> Result<Vec<String>> {
        if self.started.contains_key(name) {
            bail!("`{name}` has been started");
        }
        let mut command = self.shell(line)?;
        // Shown only if the test fails.
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(format!("{name}.log")))?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start `{line}`"))?;
        let output = child.stdout.take().context("no pipe")?;
        let lines = Lines::of(output);
        let (_, lines) = self
            .started
            .entry(name.to_owned())
            .or_insert((child, lines));
        let first = lines.next(deadline.min(process::now() + START_LIMIT))?;
        Ok(vec![
            first.with_context(|| format!("`{line}` ended at once"))?,
        ])
    }

    /// Ends a process by its id and requires that it exits with 0.
    fn stop(&mut self, name: &str) -> Result<Vec<String>> {
        let started = self.started.remove(name);
        let (mut child, _) = started.with_context(|| format!("`{name}` has not been started"))?;
        let id = child.id().to_string();
        process::run(Command::new("kill").args(["-TERM", &id]))?;
        let limit = process::now() + STOP_LIMIT;
        while process::now() < limit {
            if let Some(status) = child.try_wait()? {
                if !status.success() {
                    bail!("`{name}` ended with {status}");
                }
                return Ok(Vec::new());
            }
            process::pause(POLL_INTERVAL);
        }
        child.kill()?;
        child.wait()?;
        bail!("`{name}` did not end after SIGTERM")
    }

    /// Returns a shell that is replaced by the command, so that its id is that of the command.
    fn shell(&self, line: &str) -> Result<Command> {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.folder.join("bin").canonicalize()?;
        let mut command = process::tied("sh");
        command
            .args(["-c", &format!("exec {line}")])
            .env("PATH", format!("{}:{path}", bin.display()))
            .current_dir(&self.folder);
        Ok(command)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        for (child, _) in self.started.values_mut() {
            let _has_ended = child.kill();
            let _status = child.wait();
        }
    }
}

/// Time for a process to print its first line.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Time for a process to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
