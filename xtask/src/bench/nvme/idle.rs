//! Connections that do nothing, and one more on a target that has much to do.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::pairs::{Bench, Pair};
use super::super::programs::Program;
use super::rows::NULL;
use super::server::{Core, Server};
use super::trial::{Exchange, Shape};
use crate::process;

/// Measures resident memory, MiB, and share of a core, %, of a target without connections and with
/// them.
pub(crate) fn connections(bench: &Bench, count: u32) -> Result<Vec<Pair>> {
    let server = Server::fathom(bench, NULL)?;
    let before = usage(server.id())?;
    let _held = Held::connections(bench, &server, count)?;
    // What connecting took is not a part of it.
    process::pause(SETTLE);
    let with = usage(server.id())?;
    Ok(pairs(before, with))
}

/// Times a new host, ms, of a target at rest and of one at full load.
pub(crate) fn join(bench: &Bench) -> Result<Vec<Pair>> {
    let server = Server::fathom(bench, NULL)?;
    let other = time(bench, &server)?;
    let load = Exchange {
        shape: Shape::Read,
        bytes: 4096,
        depth: 32,
        queues: 4,
        warm_up: None,
        is_polled: false,
    };
    let held = Held::load(bench, &server, load)?;
    process::pause(SETTLE);
    let fathom = time(bench, &server);
    drop(held);
    Ok(vec![Pair {
        other,
        fathom: fathom?,
    }])
}

fn time(bench: &Bench, server: &Server) -> Result<f64> {
    let mut command = bench.pinned(Program::BareNvme, Core::Host)?;
    command.arg("join");
    server.name_to(&mut command);
    let text = process::capture(&mut command)?;
    text.trim().parse().context("not a time")
}

/// A process that holds connections or loads them; ended when it is dropped.
struct Held(Child);

impl Held {
    fn connections(bench: &Bench, server: &Server, count: u32) -> Result<Self> {
        let mut command = bench.pinned(Program::BareNvme, Core::Host)?;
        command.args(["hold", "--connections", &count.to_string()]);
        server.name_to(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut held = Self(command.spawn().context("cannot hold connections")?);
        let output = held.0.stdout.take().context("no pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let all = line.trim().parse() == Ok(count);
        all.then_some(held)
            .context("not all connections were accepted")
    }

    fn load(bench: &Bench, server: &Server, exchange: Exchange) -> Result<Self> {
        let mut command = bench.pinned(Program::BareNvme, Core::Host)?;
        command.arg("load").args(exchange.words());
        command.args(["--seconds", "60"]);
        server.name_to(&mut command);
        command.stdout(Stdio::null());
        Ok(Self(command.spawn().context("cannot start the load")?))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _has_ended = self.0.kill();
        let _status = self.0.wait();
    }
}

/// Resident memory and processor time.
#[derive(Clone, Copy, Debug)]
struct Usage {
    resident_mib: f64,
    /// Percent of a core.
    share: f64,
}

fn pairs(other: Usage, fathom: Usage) -> Vec<Pair> {
    let values = [
        (other.resident_mib, fathom.resident_mib),
        (other.share, fathom.share),
    ];
    let pair = |(other, fathom)| Pair { other, fathom };
    values.map(pair).into()
}

/// Observes a process for some seconds.
fn usage(id: u32) -> Result<Usage> {
    let (start, before) = (process::now(), processor_seconds(id)?);
    process::pause(OBSERVED);
    let used = processor_seconds(id)? - before;
    Ok(Usage {
        resident_mib: resident_mib(id)?,
        share: used / start.elapsed().as_secs_f64() * 100.0,
    })
}

/// Returns the time that all threads of a process have run, from the scheduler's sums, because
/// ticks are too coarse for an idle process.
fn processor_seconds(id: u32) -> Result<f64> {
    let mut ns = 0_u64;
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text
            .split_whitespace()
            .next()
            .context("schedstat is empty")?;
        ns += first.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(ns).as_secs_f64())
}

fn resident_mib(id: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    let kib: u32 = word.context("no VmRSS")?.parse()?;
    Ok(f64::from(kib) / 1024.0)
}

/// Time after a change and before a measurement.
const SETTLE: Duration = Duration::from_millis(500);
/// Time over which processor time is observed.
const OBSERVED: Duration = Duration::from_secs(3);
