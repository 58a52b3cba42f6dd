//! One exchange of commands between a target and a host.

use anyhow::{Context, Result};
use serde_json::Value;

use super::super::pairs::Bench;
use super::super::programs::Program;
use super::super::row::Measure;
use super::super::run_report::RunReport;
use super::rows::Options;
use super::server::{Core, Server};
use crate::process;

/// Method of a row of this group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nvme {
    /// One exchange with two pairs of programs.
    Beside {
        exchange: Exchange,
        other: Ends,
        fathom: Ends,
    },
    /// One exchange with a paced target, beside the fixed number of buffers that is best for it.
    BestFixed {
        exchange: Exchange,
        settings: &'static [Options],
        paced: Ends,
    },
    /// A target with this many idle connections, beside itself without.
    Idle { connections: u32 },
    /// Time for a new host to be served, with the target at full load beside it at rest.
    Join,
}

/// Commands to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) shape: Shape,
    pub(crate) bytes: u32,
    /// Commands in flight on each queue.
    pub(crate) depth: u32,
    /// Queues, one connection each.
    pub(crate) queues: u32,
    /// Seconds of load that do not count, if more than it takes for windows to grow.
    pub(crate) warm_up: Option<u32>,
    /// All programs poll their sockets; otherwise they sleep in them.
    pub(crate) is_polled: bool,
}

/// Direction of the data and their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Read,
    /// Write with the data in the capsule.
    Capsule,
    /// Write whose data the target requests.
    ReadyToTransfer,
}

/// Programs at the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) target: Target,
    pub(crate) host: Host,
}

/// Program at the target's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The bare loop.
    Floor,
    /// `fathom target` with these options.
    Fathom(Options),
}

/// Program at the host's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// The bare loop.
    Bare,
    /// `fathom run` with the engine nvme_tcp.
    Fathom,
}

/// Result of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) iops: f64,
    bytes_per_op: u32,
    lat_us_mean: f64,
}

impl Rates {
    pub(crate) fn value(&self, measure: Measure) -> f64 {
        match measure {
            Measure::Bandwidth => self.iops * f64::from(self.bytes_per_op),
            Measure::MeanLatency => self.lat_us_mean,
            _ => self.iops,
        }
    }
}

impl Shape {
    /// Word for `bare-nvme --shape`.
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Capsule => "capsule",
            Self::ReadyToTransfer => "r2t",
        }
    }
}

/// Starts the target, runs the host against it and ends the target.
pub(crate) fn run(bench: &Bench, exchange: Exchange, ends: Ends) -> Result<Rates> {
    let server = match ends.target {
        Target::Floor => Server::floor(bench, exchange)?,
        Target::Fathom(options) => {
            let poll: &[&str] = if exchange.is_polled {
                &["--busy-poll"]
            } else {
                &[]
            };
            Server::fathom(bench, &[options, poll].concat())?
        }
    };
    match ends.host {
        Host::Bare => bare_host(bench, exchange, &server),
        Host::Fathom => fathom_host(bench, exchange, &server),
    }
}

fn bare_host(bench: &Bench, exchange: Exchange, server: &Server) -> Result<Rates> {
    let mut command = bench.pinned(Program::BareNvme, Core::Host)?;
    command.arg("load").args(exchange.words());
    command.args(["--seconds", &bench.seconds.to_string()]);
    if let Some(warm_up) = exchange.warm_up {
        command.args(["--warm-up", &warm_up.to_string()]);
    }
    server.name_to(&mut command);
    let text = process::capture(&mut command)?;
    let report: Value = serde_json::from_str(&text).context("cannot read the load's report")?;
    let number = |key: &str| report[key].as_f64().with_context(|| format!("no `{key}`"));
    Ok(Rates {
        iops: number("iops")?,
        bytes_per_op: exchange.bytes,
        lat_us_mean: number("lat_us_mean")?,
    })
}

fn fathom_host(bench: &Bench, exchange: Exchange, server: &Server) -> Result<Rates> {
    let mut command = bench.pinned(Program::FathomRun, Core::Host)?;
    let pattern = match exchange.shape {
        Shape::Read => "randread",
        Shape::Capsule | Shape::ReadyToTransfer => "randwrite",
    };
    command
        .args(["--name=bench", "--thread", "--output-format=json"])
        .args(["--ioengine=nvme_tcp", "--norandommap", "--group_reporting"])
        .args(["--time_based", "--size=1g"])
        .arg(format!("--filename={}", server.file_name()?))
        .arg(format!("--rw={pattern}"))
        .arg(format!("--bs={}", exchange.bytes))
        .arg(format!("--iodepth={}", exchange.depth))
        // As the floor: what has come is replaced at once, in one send.
        .arg(format!("--iodepth_batch={}", exchange.depth))
        .arg(format!("--iodepth_batch_complete_max={}", exchange.depth))
        .arg(format!("--numjobs={}", exchange.queues))
        .arg(format!("--runtime={}s", bench.seconds));
    if exchange.is_polled {
        command.arg("--hipri");
    }
    let report = RunReport::parse(&process::capture(&mut command)?)?;
    Ok(Rates {
        iops: report.iops,
        bytes_per_op: exchange.bytes,
        lat_us_mean: report.lat_ns_mean / 1e3,
    })
}

impl Exchange {
    /// Options of `bare-nvme`, for both its ends.
    pub(crate) fn words(self) -> Vec<String> {
        let numbers = [
            ("--bytes", self.bytes),
            ("--depth", self.depth),
            ("--queues", self.queues),
        ];
        let mut words = vec!["--shape".to_owned(), self.shape.word().to_owned()];
        for (option, number) in numbers {
            words.extend([option.to_owned(), number.to_string()]);
        }
        let wait = if self.is_polled { "poll" } else { "epoll" };
        words.extend(["--wait".to_owned(), wait.to_owned()]);
        words
    }
}
