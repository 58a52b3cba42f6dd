//! `fathom target`: an NVMe/TCP target.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use fathom_block::{AutoConfig, BufferConfig, PacingConfig, RateConfig};
use fathom_core::Nanos;
use fathom_job::{Dialect, Origin};
use fathom_record::TargetRecord;
use fathom_sys::signals::Interrupts;
use fathom_sys::{clock, system};
use fathom_target::{
    AllowedHosts, DEFAULT_MODEL, Device, EventLog, FileDevice, FileWishes, LogFormat, MemoryDevice,
    NamespacePlan, NullDevice, Obstacle, RunningTarget, Storage, SubsystemPlan, TargetFileError,
    TargetPlan, ThisHost, default_nguid, default_serial,
};

use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::output::{self, Data, StandardStream};
use crate::target_stats::{self, StatsArguments};
use crate::target_values::{Cpus, address, buffer_size, cpus, metrics, nqn, period, size};

/// Arguments of `fathom target`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct TargetArguments {
    #[command(subcommand)]
    command: Option<TargetCommand>,
    /// Target file, instead of one namespace; see docs/TARGET.md
    #[arg(value_name = "FILE.toml")]
    #[arg(conflicts_with_all = ["null", "memory", "file", "nqn", "host", "buffer_size"])]
    plan: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
    /// IP address to listen on, with a port; 0: any free one [default: 127.0.0.1:4420]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Vec<SocketAddr>,
    /// NQN of the subsystem
    #[arg(long, value_name = "NQN", default_value = NQN, value_parser = nqn)]
    nqn: String,
    /// NQN of a host that may connect [default: any, on the loopback address]
    #[arg(long, value_name = "NQN", value_parser = nqn, conflicts_with = "allow_any_host")]
    host: Vec<String>,
    /// Admit every host, also on addresses that other machines reach
    #[arg(long)]
    allow_any_host: bool,
    #[command(flatten)]
    tuning: TuningArguments,
    /// Address or port of a Prometheus endpoint; a port alone: on 127.0.0.1
    #[arg(long, value_name = "ADDRESS", value_parser = metrics)]
    metrics: Option<SocketAddr>,
    /// Path of the statistics socket [default: in a folder of this user]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Format of the log on standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    log: LogName,
}

/// Device of the namespace.
#[derive(Args, Clone, Debug)]
struct DeviceArguments {
    /// Namespace without data: reads return zeros, writes are discarded
    #[arg(long, value_name = "SIZE", value_parser = size)]
    null: Option<u64>,
    /// Namespace in memory, sparse
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "null")]
    memory: Option<u64>,
    /// Namespace on a file or block device, through io_uring
    #[arg(long, value_name = "PATH", conflicts_with_all = ["null", "memory"])]
    file: Option<PathBuf>,
    /// Size of the file, which is created if it is missing
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "file")]
    // Named one by one: what conflicts with `file` lifts the rule that it is required.
    #[arg(conflicts_with_all = ["null", "memory", "plan"])]
    size: Option<u64>,
    /// Refuse writes, to every namespace
    #[arg(long)]
    read_only: bool,
}

/// Threads, buffers and pacing.
#[derive(Args, Clone, Debug)]
struct TuningArguments {
    /// Number of threads [default: one per CPU of the process]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// CPUs of the threads, one each, such as 0-3,8 [default: left to the kernel]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<Cpus>,
    /// Poll instead of sleeping
    #[arg(long)]
    busy_poll: bool,
    /// Number of data buffers [default: as many as requests need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    buffers: Option<u32>,
    /// Bytes of a data buffer, and of the largest read or write [default: 128k]
    #[arg(long, value_name = "SIZE", value_parser = buffer_size)]
    buffer_size: Option<u32>,
    /// Data buffers that a thread keeps for itself [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    buffer_cache: Option<u32>,
    /// Limit of the data in flight [default: none]
    #[arg(long, value_name = "POLICY", value_enum)]
    pacing: Option<PacingName>,
    /// Period of --pacing rate, in microseconds per 128 KiB and thread [default: 23]
    #[arg(long, value_name = "US", value_parser = period)]
    period: Option<Nanos>,
}

/// Commands beside serving.
#[derive(Clone, Debug, Subcommand)]
enum TargetCommand {
    /// Show the state of a running target
    Stats(StatsArguments),
}

/// Pacing policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PacingName {
    /// No pacing
    None,
    /// The number of buffers is the limit
    Buffers,
    /// A credit of bytes per period
    Rate,
    /// The fewest bytes in flight that keep full bandwidth
    Auto,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogName {
    /// Lines of text
    Text,
    /// An object per line
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &TargetArguments) -> ProgramEnd {
    let done = match &arguments.command {
        Some(TargetCommand::Stats(arguments)) => target_stats::show(arguments),
        None => serve(arguments),
    };
    match done {
        Ok(end) => end,
        Err(error) => {
            let text = format!("fathom: target: {error:#}\n");
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

/// Serves until a signal comes. A second one ends the process at once.
fn serve(arguments: &TargetArguments) -> Result<ProgramEnd> {
    let planned = match &arguments.plan {
        Some(file) => read_plan(file)?,
        None => Ok(single(arguments)?),
    };
    let checked = planned.and_then(|mut plan| {
        adjust(&mut plan, arguments);
        plan.check_exposure().map(|()| plan)
    });
    let plan = match checked {
        Ok(plan) => plan,
        Err(error) => return Ok(refuse(&error)),
    };
    check_tuning(&plan, arguments)?;
    let interrupts = Interrupts::install().context("signals")?;
    // Best effort: each connection is a descriptor.
    let _unchanged = system::raise_open_files_limit();
    let format = match arguments.log {
        LogName::Text => LogFormat::Text,
        LogName::Json => LogFormat::Json,
    };
    let log = EventLog::start(format, |line| output::print(StandardStream::Error, line));
    let log = Arc::new(log.context("log")?);
    let started = RunningTarget::start(plan, Arc::clone(&log));
    let (target, warning) = started.map_err(|error| explained(&error, error.hint()))?;
    if let Some(error) = warning {
        let text = format!("fathom: target: no statistics socket: {error}\n");
        output::print(StandardStream::Error, &text);
    }
    if let Some(address) = target.metrics() {
        let text = format!("fathom: target: metrics at http://{address}/metrics\n");
        output::print(StandardStream::Error, &text);
    }
    Data::Stdout.add(&target.announcement())?;
    let mut failed = None;
    while interrupts.count() == 0 && failed.is_none() {
        clock::sleep(SIGNAL_CHECK);
        failed = target.failed_thread();
    }
    let last = target.stop();
    // The target had the other references. The summary follows the last lines.
    let log = Arc::into_inner(log);
    let is_written = log.is_none_or(|log| log.finish(summary(&last)));
    match failed {
        None => Ok(ProgramEnd::Printed),
        Some(thread) if is_written => {
            bail!("thread {thread} has failed, and with it the target; the reason is above")
        }
        // Where nobody reads, a message would wait for ever.
        Some(_) => Ok(ProgramEnd::Refused),
    }
}

/// Prints all problems of a plan.
fn refuse(error: &TargetFileError) -> ProgramEnd {
    let text = output::render(&error.diagnostics(), Dialect::Fathom);
    output::print(StandardStream::Error, &text);
    ProgramEnd::Refused
}

fn read_plan(file: &Path) -> Result<Result<TargetPlan, TargetFileError>> {
    let name = file.display().to_string();
    let failed = || format!("cannot read target file `{name}`");
    let length = fs::metadata(file).with_context(failed)?.len();
    if length > FILE_BYTES_MAX {
        bail!("{}: the file is too long", failed());
    }
    let text = fs::read_to_string(file).with_context(failed)?;
    Ok(TargetPlan::parse(&name, &text, &ThisHost::new()))
}

/// Creates the plan of one namespace.
fn single(arguments: &TargetArguments) -> Result<TargetPlan> {
    let buffer_bytes = arguments.tuning.buffer_size;
    let hosts = match (arguments.host.as_slice(), arguments.allow_any_host) {
        ([], true) => AllowedHosts::Any,
        ([], false) => AllowedHosts::Local,
        (hosts, _) => AllowedHosts::Listed(hosts.to_vec()),
    };
    let nqn = arguments.nqn.clone();
    let mut plan = TargetPlan::new(Vec::new());
    plan.buffers.bytes = buffer_bytes.unwrap_or(plan.buffers.bytes);
    plan.subsystems.push(SubsystemPlan {
        serial: default_serial(&nqn),
        model: DEFAULT_MODEL.to_owned(),
        hosts,
        namespaces: vec![NamespacePlan {
            nsid: 1,
            nguid: default_nguid(&nqn, 1),
            device: Device::new(storage(&arguments.device, plan.buffers.bytes)?),
        }],
        nqn,
        origin: Origin::default(),
    });
    Ok(plan)
}

fn storage(arguments: &DeviceArguments, transfer_bytes_max: u32) -> Result<Arc<dyn Storage>> {
    let failed = |option: &str, Obstacle { why, hint }: Obstacle| {
        explained(format!("{option}: {why}"), &hint)
    };
    let DeviceArguments {
        null, memory, file, ..
    } = arguments;
    Ok(match (null, memory, file) {
        (Some(bytes), _, _) => Arc::new(NullDevice::new(*bytes)),
        (None, Some(bytes), _) => {
            let memory = MemoryDevice::checked(*bytes, &ThisHost::new());
            Arc::new(memory.map_err(|obstacle| failed("--memory", obstacle))?)
        }
        (None, None, Some(path)) => {
            let wishes = FileWishes {
                size: arguments.size,
                read_only: arguments.read_only,
                ..FileWishes::new(transfer_bytes_max)
            };
            let device = FileDevice::new(path, wishes, &ThisHost::new());
            Arc::new(device.map_err(|obstacle| failed("--file", obstacle))?)
        }
        (None, None, None) => {
            let hint =
                "name one with `--null 8G`, `--memory 1G` or `--file PATH`, or a target file";
            return Err(with_hint("no namespace", Some(hint)));
        }
    })
}

/// Puts the options of the command line over those of the file.
fn adjust(plan: &mut TargetPlan, arguments: &TargetArguments) {
    let TuningArguments {
        threads,
        cpus,
        busy_poll,
        buffers,
        buffer_cache,
        pacing,
        period,
        buffer_size: _,
    } = &arguments.tuning;
    if !arguments.listen.is_empty() {
        plan.listen.clone_from(&arguments.listen);
    }
    plan.threads = threads.or(plan.threads);
    if let Some(Cpus(cpus)) = cpus {
        plan.cpus.clone_from(cpus);
    }
    plan.busy_poll |= busy_poll;
    plan.buffers = BufferConfig {
        count: buffers.or(plan.buffers.count),
        cache: buffer_cache.unwrap_or(plan.buffers.cache),
        ..plan.buffers
    };
    match pacing {
        None => {}
        Some(PacingName::None | PacingName::Buffers) => plan.pacing = PacingConfig::None,
        Some(PacingName::Rate) => plan.pacing = PacingConfig::Rate(RateConfig::default()),
        Some(PacingName::Auto) => plan.pacing = PacingConfig::Auto(AutoConfig::default()),
    }
    if let (PacingConfig::Rate(rate), Some(period)) = (&mut plan.pacing, period) {
        rate.period = *period;
    }
    plan.metrics = arguments.metrics.or(plan.metrics);
    plan.socket = arguments.socket.clone().or(plan.socket.take());
    if arguments.device.read_only {
        let subsystems = plan.subsystems.iter_mut();
        let namespaces = subsystems.flat_map(|subsystem| &mut subsystem.namespaces);
        namespaces.for_each(|namespace| namespace.device.protect());
    }
    if arguments.allow_any_host {
        let subsystems = plan.subsystems.iter_mut();
        let local = subsystems.filter(|subsystem| subsystem.hosts == AllowedHosts::Local);
        local.for_each(|subsystem| subsystem.hosts = AllowedHosts::Any);
    }
}

/// Refuses options of the command line that contradict each other or the file.
fn check_tuning(plan: &TargetPlan, arguments: &TargetArguments) -> Result<()> {
    let tuning = &arguments.tuning;
    let threads = plan.threads.map(|threads| threads as usize);
    if let Some(threads) =
        threads.filter(|threads| !plan.cpus.is_empty() && plan.cpus.len() != *threads)
    {
        let message = format!("--cpus: {} CPUs for {threads} threads", plan.cpus.len());
        return Err(with_hint(message, Some("name one for each thread")));
    }
    if tuning.pacing == Some(PacingName::Buffers) && plan.buffers.count.is_none() {
        let hint = "add `--buffers 32`, or another number of buffers";
        return Err(with_hint("--pacing: the pool has no limit", Some(hint)));
    }
    if tuning.period.is_some() && !matches!(plan.pacing, PacingConfig::Rate(_)) {
        let hint = "add `--pacing rate`";
        return Err(with_hint("--period: no policy that has one", Some(hint)));
    }
    Ok(())
}

fn summary(last: &TargetRecord) -> String {
    let mut text = String::new();
    for namespace in &last.namespaces {
        let commands = &namespace.commands;
        text += &format!(
            "{} ns {}: {} reads, {:.1} MiB; {} writes, {:.1} MiB; {} others, {} errors\n",
            namespace.nqn,
            namespace.nsid,
            commands.reads,
            mib(commands.read_bytes),
            commands.writes,
            mib(commands.written_bytes),
            commands.others,
            commands.errors,
        );
    }
    let events = last.events;
    text += &format!(
        "{} connections, {} turned away, {} refused, {} expired, {} terminated; {} buffers still \
         in use\n",
        events.accepted,
        events.turned_away,
        events.refused,
        events.expired,
        events.terminated,
        last.buffers.in_use,
    );
    text
}

#[expect(clippy::cast_precision_loss, reason = "a rounded number for people")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Builds an error with its hint, which may be empty.
pub(crate) fn explained(message: impl std::fmt::Display, hint: &str) -> anyhow::Error {
    match hint {
        "" => anyhow!("{message}"),
        hint => with_hint(message, Some(hint)),
    }
}

const NQN: &str = "nqn.2026-01.io.fathom:target";
const EXAMPLES: &str = "\
Examples:
  fathom target --null 8G
  fathom target --file disk.img --size 1G --listen 127.0.0.1:0
  fathom target examples/targets/paced.toml
  fathom target --memory 1G --listen 0.0.0.0:4420 --host nqn.2014-08.…
  fathom target stats --watch

Prints a line per subsystem and address when it serves: `nqn … traddr … trsvcid \
… ns …`. The first SIGINT or SIGTERM stops it in order, a second one at once.
Exit codes: 0 stopped as asked; 2 not started, or ended by a failure.";
/// Longest time from a signal to the stop.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);
/// As for job files.
const FILE_BYTES_MAX: u64 = 1 << 20;
