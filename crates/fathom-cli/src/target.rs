//! `fathom target`: an NVMe/TCP target.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::Args;
use fathom_block::{BufferConfig, Null, PacingConfig, SharedMemory};
use fathom_core::{BlockDevice, Geometry, Nanos, Tick};
use fathom_net::target::{
    DeviceError, DeviceFactory, NamespaceConfig, SubsystemConfig, Target, TargetConfig,
    TargetEvent, TargetLimits, TargetLog, TargetStatistics, Wakers,
};
use fathom_nvme::Digests;
use fathom_sys::signals::Interrupts;
use fathom_sys::{clock, system, thread};
use fathom_target::{default_nguid, default_serial, is_loopback, read_size, show_size};

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};

/// Arguments of `fathom target`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TargetArguments {
    /// Namespace without data: writes are dropped, reads return zeros
    #[arg(long, value_name = "SIZE", value_parser = size)]
    null: Option<u64>,
    /// Namespace in memory
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "null")]
    memory: Option<u64>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4420")]
    listen: Vec<SocketAddr>,
    /// NQN of the subsystem
    #[arg(
        long,
        value_name = "NQN",
        default_value = "nqn.2026-01.io.fathom:target"
    )]
    nqn: String,
    /// NQN of a host that may connect [default: any, on loopback]
    #[arg(long, value_name = "NQN")]
    host: Vec<String>,
    /// Admit any host on addresses that other machines reach
    #[arg(long)]
    allow_any_host: bool,
    /// Number of threads [default: one per CPU of the process]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Poll instead of sleeping
    #[arg(long)]
    busy_poll: bool,
    /// Number of data buffers [default: as many as requests need]
    #[arg(long, value_name = "N")]
    buffers: Option<u32>,
    /// Buffers that a thread keeps for itself
    #[arg(long, value_name = "N", default_value_t = 32)]
    buffer_cache: u32,
}

/// Runs the target until it is interrupted.
pub(crate) fn run(arguments: &TargetArguments) -> ProgramEnd {
    match serve(arguments) {
        Ok(()) => ProgramEnd::Printed,
        Err(error) => {
            output::print(
                StandardStream::Error,
                &format!("fathom: target: {error:#}\n"),
            );
            ProgramEnd::Refused
        }
    }
}

fn serve(arguments: &TargetArguments) -> Result<()> {
    let interrupts = Interrupts::install()?;
    // Each connection is a descriptor.
    let _unchanged = system::raise_open_files_limit();
    let (config, description) = configure(arguments)?;
    let target = Target::start(config, Arc::new(Log))?;
    let mut lines = String::new();
    for address in target.addresses() {
        let (host, port) = (address.ip(), address.port());
        let nqn = &arguments.nqn;
        lines += &format!("nqn {nqn} traddr {host} trsvcid {port} ns 1 {description}\n");
    }
    output::print(StandardStream::Data, &lines);
    while interrupts.count() == 0 {
        clock::sleep(SIGNAL_CHECK);
    }
    output::print(StandardStream::Error, &summary(&target.stop()));
    Ok(())
}

fn configure(arguments: &TargetArguments) -> Result<(TargetConfig, String)> {
    let (device, description): (Arc<dyn DeviceFactory>, _) =
        match (arguments.null, arguments.memory) {
            (Some(bytes), _) => (
                Arc::new(NullFactory(bytes)),
                format!("{} null", show_size(bytes)),
            ),
            (None, Some(bytes)) => (
                Arc::new(MemoryFactory(SharedMemory::new(bytes))),
                format!("{} memory", show_size(bytes)),
            ),
            (None, None) => {
                bail!("no namespace\nhint: give one, such as `--null 8G` or `--memory 1G`")
            }
        };
    let is_open = arguments.host.is_empty() && !arguments.allow_any_host;
    let exposed = (arguments.listen.iter()).find(|address| !is_loopback(address.ip()));
    if let Some(address) = exposed.filter(|_| is_open) {
        bail!(
            "any host of the network could write: {address}\nhint: add `--host NQN`, or \
             `--allow-any-host`"
        );
    }
    let cpus = || thread::allowed_cpus().map_or(1, |cpus| cpus.len());
    let threads = arguments
        .threads
        .map_or_else(cpus, |threads| threads as usize);
    let threads = u32::try_from(threads)?;
    let limits = TargetLimits::DEFAULT;
    let config = TargetConfig {
        listen: arguments.listen.clone(),
        threads,
        wakers: Wakers::new(threads)?,
        cpus: None,
        busy_poll: arguments.busy_poll,
        subsystems: vec![SubsystemConfig {
            nqn: arguments.nqn.clone(),
            serial: default_serial(&arguments.nqn),
            model: "Fathom".to_owned(),
            allowed_hosts: Some(arguments.host.clone()).filter(|hosts| !hosts.is_empty()),
            namespaces: vec![NamespaceConfig {
                nsid: 1,
                nguid: default_nguid(&arguments.nqn, 1),
                block_bytes: BLOCK_BYTES,
                device,
            }],
        }],
        limits,
        buffers: BufferConfig {
            count: arguments.buffers,
            bytes: limits.io_bytes_max,
            cache: arguments.buffer_cache,
        },
        pacing: PacingConfig::None,
        digests: Digests {
            header: true,
            data: true,
        },
        success_in_data: true,
    };
    Ok((config, description))
}

fn summary(statistics: &TargetStatistics) -> String {
    let mut text = String::new();
    for namespace in &statistics.namespaces {
        let io = &namespace.io;
        text += &format!(
            "{} ns {}: {} reads, {}; {} writes, {}; {} others, {} errors\n",
            namespace.subsystem_nqn,
            namespace.nsid,
            io.reads,
            show_size(io.read_bytes),
            io.writes,
            show_size(io.written_bytes),
            io.others,
            io.errors,
        );
    }
    text
}

/// Factory of devices without data.
#[derive(Debug)]
struct NullFactory(u64);

impl DeviceFactory for NullFactory {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(Null::new(self.0, BLOCK_BYTES)))
    }

    fn geometry(&self) -> Geometry {
        Null::new(self.0, BLOCK_BYTES).geometry()
    }
}

/// Factory of devices that share memory.
#[derive(Debug)]
struct MemoryFactory(SharedMemory);

impl DeviceFactory for MemoryFactory {
    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(self.0.open()))
    }

    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }
}

/// Log on standard error.
#[derive(Debug)]
struct Log;

impl TargetLog for Log {
    fn event(&self, event: &TargetEvent<'_>) {
        output::print(StandardStream::Error, &format!("{event:?}\n"));
    }
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = read_size(text).filter(|bytes| *bytes >= u64::from(BLOCK_BYTES));
    bytes.ok_or_else(|| "expected a size in bytes, such as 512M or 8G".to_owned())
}

const BLOCK_BYTES: u32 = 512;
/// Longest time from a signal to the stop.
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);
