//! Process of a service: from its start, until it is ready, to its end.

use std::cell::RefCell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use fathom_core::Nanos;
use fathom_sys::child::{Child, end_with_parent};
use fathom_sys::drained_pipe::{DrainedPipe, Keep};

use super::super::executor::RunFailure;
use super::commands::Commands;
use crate::lab_plan::{Ready, Service};

/// Running service; killed with all that it started on drop.
pub(super) struct ServiceProcess {
    name: String,
    /// Behind a cell: a look at whether it has ended is needed while the run is waited for.
    child: RefCell<Child>,
    /// Exit status, once it has ended by itself.
    status: RefCell<Option<ExitStatus>>,
    output: DrainedPipe,
}

impl ServiceProcess {
    /// Starts a service and waits until it is ready.
    pub(super) fn start(service: &Service, commands: &Commands<'_>) -> Result<Self, RunFailure> {
        Self::start_within(READY_LIMIT, service, commands)
    }

    fn start_within(
        limit: Nanos,
        service: &Service,
        commands: &Commands<'_>,
    ) -> Result<Self, RunFailure> {
        let failed = |why: String| RunFailure::Failed(format!("service `{}` {why}", service.name));
        if let Some(Ready::Port(port)) = service.ready
            && accepts(port)
        {
            let why = format!("cannot start: another program listens on port {port} already");
            return Err(failed(why));
        }
        let this = Self::spawn(service, commands)
            .map_err(|error| failed(format!("cannot start: {error}")))?;
        match this.wait_until_ready(limit, service.ready.as_ref(), commands) {
            Ok(()) => Ok(this),
            Err(why) => {
                this.stop();
                Err(why)
            }
        }
    }

    /// Starts the program itself, in place of the shell that finds its words: a signal to the
    /// process is one to the program.
    fn spawn(service: &Service, commands: &Commands<'_>) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mut command: Command = commands.shell(&format!("exec {}", service.command));
        command.stdout(writer.try_clone()?).stderr(writer);
        end_with_parent(&mut command);
        let child = Child::spawn(&mut command)?;
        // It holds the writing ends: without them the pipe closes when the service ends.
        drop(command);
        let awaited = match &service.ready {
            Some(Ready::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        Ok(Self {
            name: service.name.clone(),
            child: RefCell::new(child),
            status: RefCell::new(None),
            output: DrainedPipe::new(reader, Keep::Last(OUTPUT_BYTES), awaited),
        })
    }

    fn wait_until_ready(
        &self,
        limit: Nanos,
        ready: Option<&Ready>,
        commands: &Commands<'_>,
    ) -> Result<(), RunFailure> {
        let until = commands.clock.now() + limit;
        loop {
            // The end first: what it printed may look ready.
            if let Some(why) = self.ended("before it was ready") {
                return Err(RunFailure::Failed(why));
            }
            let is_ready = match ready {
                Some(Ready::Text(_)) => self.output.has_seen(),
                Some(Ready::Port(port)) => accepts(*port),
                None => true,
            };
            if is_ready {
                return Ok(());
            }
            if commands.clock.now() >= until {
                let seconds = limit.get() / 1_000_000_000;
                let Self { name, .. } = self;
                let told = self.last_lines();
                let why = format!("service `{name}` was not ready within {seconds} s{told}");
                return Err(RunFailure::Failed(why));
            }
            commands.pause(PAUSE)?;
        }
    }

    /// Returns whether the service has ended by itself.
    pub(super) fn is_over(&self) -> bool {
        let mut status = self.status.borrow_mut();
        if status.is_none() {
            *status = self.child.borrow_mut().poll().unwrap_or_default();
        }
        status.is_some()
    }

    /// Returns a sentence about the end of the service, if it has ended by itself.
    pub(super) fn ended(&self, when: &str) -> Option<String> {
        if !self.is_over() {
            return None;
        }
        let status = self.status.borrow();
        let status = status.map_or_else(String::new, |status| format!(" with {status}"));
        let told = self.last_lines();
        Some(format!(
            "service `{}` ended {when}{status}{told}",
            self.name
        ))
    }

    /// Ends the service: SIGTERM, and SIGKILL to all that it started if it goes on.
    pub(super) fn stop(self) {
        if !self.is_over() {
            self.child.into_inner().end_within(STOP_LIMIT);
        }
    }

    /// Returns the last lines of the output as the end of a sentence.
    fn last_lines(&self) -> String {
        let text = self.output.text_within(LAST_LINES_LIMIT);
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        let last = &lines[lines.len().saturating_sub(LINES)..];
        match last.is_empty() {
            true => "; it printed nothing".into(),
            false => format!("; its last lines: {}", printable(&last.join(" / "))),
        }
    }
}

/// Returns whether a program accepts connections on a port of the loopback address.
fn accepts(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, CONNECT_LIMIT).is_ok()
}

/// Returns a text without control characters.
fn printable(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(shown).collect()
}

/// Time in which a service must be ready.
const READY_LIMIT: Nanos = Nanos::from_secs(30);

/// Time between looks at whether it is.
const PAUSE: Nanos = Nanos::from_millis(2);

/// Time in which a service must accept a connection; on the loopback address it does so at once, or
/// its queue is full.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// Time between SIGTERM and SIGKILL: a service may have data to write back (guess).
const STOP_LIMIT: Nanos = Nanos::from_secs(10);

/// Time for what is left in the pipe.
const LAST_LINES_LIMIT: Nanos = Nanos::from_millis(100);

/// Bytes of the output that are kept.
const OUTPUT_BYTES: usize = 16 << 10;

/// Lines of the output in an error.
const LINES: usize = 3;

#[cfg(test)]
mod tests;
