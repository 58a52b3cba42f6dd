//! Program that serves in the background of a test.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::common::{Folder, Run};

/// NQN of the one subsystem of a command line.
pub(crate) const NQN: &str = "nqn.2026-01.io.fathom:target";

/// Program in the background; killed if the test fails.
pub(crate) struct Background {
    child: Option<Child>,
    out: BufReader<ChildStdout>,
    err: Receiver<String>,
    read: Vec<String>,
    reader: Option<JoinHandle<()>>,
}

/// Starts a program.
pub(crate) fn spawn(mut command: Command) -> Background {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let (sender, err) = channel();
    let stream: ChildStderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let _gone = sender.send(line.unwrap());
        }
    });
    Background {
        child: Some(child),
        out,
        err,
        read: Vec::new(),
        reader: Some(reader),
    }
}

impl Background {
    /// Returns the next line of standard output; empty at its end.
    pub(crate) fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// Waits for a line of standard error that contains `part`.
    pub(crate) fn log_line(&mut self, part: &str) -> String {
        let fits = |line: &&String| line.contains(part);
        if let Some(line) = self.read.iter().find(fits) {
            return line.clone();
        }
        self.next_log_line(part)
    }

    /// Waits for another line of standard error that contains `part`.
    pub(crate) fn next_log_line(&mut self, part: &str) -> String {
        loop {
            let line = self.err.recv().expect("a line before the end");
            self.read.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.args([format!("-{signal}"), self.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }

    /// Kills it and waits for its end.
    pub(crate) fn kill(&mut self) {
        let child = self.child.as_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn wait_for_end(&mut self) -> Option<i32> {
        self.child.as_mut().unwrap().wait().unwrap().code()
    }

    /// Waits for the end, which something else has caused.
    pub(crate) fn finish(mut self) -> Run {
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let code = self.child.take().unwrap().wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        let mut read = std::mem::take(&mut self.read);
        read.extend(self.err.try_iter());
        let err = read.join("\n");
        Run { code, out, err }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

/// Target in the background.
pub(crate) struct Serving {
    background: std::cell::RefCell<Background>,
    /// Lines of its start.
    pub(crate) announced: String,
}

impl Serving {
    /// Starts a target on a free port of the loopback address.
    pub(crate) fn start(folder: &Folder, words: &str) -> Self {
        Self::start_as_is(folder, &format!("{words} --listen 127.0.0.1:0"))
    }

    /// Starts a target; it serves when this returns.
    pub(crate) fn start_as_is(folder: &Folder, words: &str) -> Self {
        let words = format!("target {words} --socket stats.sock");
        let command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let mut background = spawn(command);
        let mut announced = background.next_line();
        if announced.is_empty() {
            panic!("{:#?}", background.finish());
        }
        // Written at once, one line per subsystem and address.
        while !background.out.buffer().is_empty() {
            announced += &background.next_line();
        }
        Self {
            background: background.into(),
            announced,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.word_after("trsvcid").parse().unwrap()
    }

    /// Returns the port of one of several addresses, or that of any.
    fn port_of(&self, address: &str) -> u16 {
        let key = format!("traddr {address} trsvcid ");
        let after = self.announced.split_once(&key).map(|(_, after)| after);
        let port = after.and_then(|after| after.split_whitespace().next());
        port.map_or_else(|| self.port(), |port| port.parse().unwrap())
    }

    fn word_after(&self, key: &str) -> &str {
        let mut words = self.announced.split_whitespace();
        words.find(|word| *word == key).unwrap();
        words.next().unwrap()
    }

    /// Runs a job on a namespace of the first subsystem.
    pub(crate) fn load(&self, folder: &Folder, ns: u32, words: &str) -> Run {
        self.load_of(folder, self.word_after("nqn"), ns, words)
    }

    /// Runs a job on a namespace.
    pub(crate) fn load_of(&self, folder: &Folder, nqn: &str, ns: u32, words: &str) -> Run {
        Run::of(self.job(folder, nqn, ns, words))
    }

    pub(crate) fn job(&self, folder: &Folder, nqn: &str, ns: u32, words: &str) -> Command {
        self.job_at(folder, "127.0.0.1", nqn, ns, words)
    }

    /// Returns the command of a job on a namespace of the target at this address.
    pub(crate) fn job_at(
        &self,
        folder: &Folder,
        address: &str,
        nqn: &str,
        ns: u32,
        words: &str,
    ) -> Command {
        let words = format!("run --name=t --ioengine=nvme_tcp --size=1m {words}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let port = self.port_of(address);
        let family = if address.contains(':') {
            "ipv6"
        } else {
            "ipv4"
        };
        let at = format!("adrfam={family} traddr={address} trsvcid={port}");
        command.arg(format!("--filename=trtype=tcp {at} subnqn={nqn} ns={ns}"));
        command
    }

    pub(crate) fn stats(&self, folder: &Folder) -> Value {
        let run = folder.fathom("target stats --json --socket stats.sock");
        run.expect(0).json()
    }

    pub(crate) fn log_line(&self, part: &str) -> String {
        self.background.borrow_mut().log_line(part)
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.background.borrow().signal(signal);
    }

    pub(crate) fn id(&self) -> u32 {
        self.background.borrow().id()
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.background.get_mut().kill();
    }

    /// Stops it by a signal.
    pub(crate) fn stop(self, signal: &str) -> Run {
        self.signal(signal);
        self.background.into_inner().finish()
    }
}
