//! A target as a process of its own.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::pairs::Bench;
use super::super::programs::Program;
use super::trial::Exchange;
use crate::lines::Lines;
use crate::process;

/// Core of one end of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    Target,
    Host,
}

/// A running target; ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// NQN of its subsystem; the floor has none.
    nqn: Option<String>,
}

impl Server {
    /// Starts the floor.
    pub(crate) fn floor(bench: &Bench, exchange: Exchange) -> Result<Self> {
        let mut command = bench.pinned(Program::BareNvme, Core::Target)?;
        command.arg("serve").args(exchange.words());
        let (child, address) = start(&mut command)?;
        Ok(Self {
            child,
            address,
            nqn: None,
        })
    }

    /// Starts `fathom target` on a free port.
    pub(crate) fn fathom(bench: &Bench, options: &[&str]) -> Result<Self> {
        let mut command = bench.pinned(Program::FathomTarget, Core::Target)?;
        command.args(["--listen", "127.0.0.1:0"]).args(options);
        let (child, line) = start(&mut command)?;
        let mut server = Self {
            child,
            address: String::new(),
            nqn: None,
        };
        let field = |key: &str| value_of(&line, key).with_context(|| line.clone());
        server.address = format!("{}:{}", field("traddr")?, field("trsvcid")?);
        server.nqn = Some(field("nqn")?.to_owned());
        Ok(server)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Appends address and subsystem to a command of `bare-nvme`.
    pub(crate) fn name_to(&self, command: &mut Command) {
        command.arg(&self.address);
        if let Some(nqn) = &self.nqn {
            command.args(["--nqn", nqn]);
        }
    }

    /// Returns the namespace as a file name of the engine nvme_tcp, colons escaped.
    pub(crate) fn file_name(&self) -> Result<String> {
        let nqn = self.nqn.as_deref().context("the floor has no namespace")?;
        let (address, port) = self.address.rsplit_once(':').context("no port")?;
        let words =
            format!("trtype=tcp adrfam=ipv4 traddr={address} trsvcid={port} subnqn={nqn} ns=1");
        Ok(words.replace(':', "\\:"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Starts a program and returns its first line of output, which says where it listens. The pipe to
/// its input stays open: some programs end with it.
fn start(command: &mut Command) -> Result<(Child, String)> {
    let shown = process::shown(command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let output = Lines::of(child.stdout.take().context("no pipe")?);
    // Its log is read, so that it never waits, and forgotten, unless it does not start.
    let log = Lines::of(child.stderr.take().context("no pipe")?);
    let first = output.next(process::now() + START_LIMIT);
    let Ok(Some(line)) = first else {
        child.kill()?;
        child.wait()?;
        bail!("`{shown}` does not listen\n{}", log.rest().join("\n"));
    };
    Ok((child, line))
}

/// Returns the word that follows another.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace()
        .skip_while(|&word| word != key)
        .nth(1)
}

/// Time for a program to listen.
const START_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_line_follow_their_keys() {
        let line = "nqn nqn.2026-01.io.fathom:a traddr 127.0.0.1 trsvcid 4420 ns 1 8 GiB null";
        assert_eq!(value_of(line, "nqn"), Some("nqn.2026-01.io.fathom:a"));
        assert_eq!(value_of(line, "trsvcid"), Some("4420"));
        assert_eq!(value_of(line, "port"), None);
    }
}
