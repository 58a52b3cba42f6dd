//! `fathom trace`: a block device's requests, or io_uring's task work, from the kernel's events.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use fathom_record::Warning;
use fathom_sys::signals::Interrupts;
use fathom_trace::{TraceConfig, TraceError, trace_device, trace_uring};
use serde_json::Value;

use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::output::{self, Data, StandardStream};

/// Arguments of `fathom trace`.
#[derive(Args, Clone, Debug)]
#[command(override_usage = USAGE, after_help = EXAMPLES)]
pub(crate) struct TraceArguments {
    /// Duration in seconds [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Count io_uring task work instead of a device's requests
    #[arg(long)]
    uring: bool,
    /// Process to trace, with --uring [default: all]
    #[arg(
        long,
        value_name = "PID",
        requires = "uring",
        conflicts_with = "device"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Trace buffer per CPU, in MiB [default: 256 over all CPUs, 1 to 8 per CPU]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: Option<u32>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Disk or partition to trace
    #[arg(required_unless_present = "uring", conflicts_with = "uring")]
    device: Option<PathBuf>,
}

/// Traces and prints the result.
pub(crate) fn run(arguments: &TraceArguments) -> ProgramEnd {
    match trace(arguments) {
        Ok(interrupted) => ProgramEnd::Ran {
            failed_jobs: 0,
            tolerated_errors: 0,
            interrupted,
        },
        Err(error) => {
            output::print(
                StandardStream::Error,
                &format!("fathom: trace: {error:#}\n"),
            );
            ProgramEnd::Refused
        }
    }
}

/// Traces, prints the result, and returns whether the trace was interrupted.
fn trace(arguments: &TraceArguments) -> Result<bool> {
    let interrupts = Interrupts::install().context("signals")?;
    let config = TraceConfig {
        seconds: arguments.seconds,
        ring_mib: arguments.buffer.unwrap_or(0),
        stops: &|| interrupts.count(),
    };
    let duration = match arguments.seconds {
        Some(seconds) => format!("for {seconds} s"),
        None => "until Ctrl-C".to_owned(),
    };
    let begun = |what: &str| {
        output::print(
            StandardStream::Error,
            &format!("tracing {what} {duration}\n"),
        );
    };
    let (text, warnings, interrupted) = match &arguments.device {
        Some(device) => {
            let mut begun = || begun(&device.display().to_string());
            let traced = trace_device(device, &config, &mut begun).map_err(failure)?;
            let text = match arguments.json {
                true => json(serde_json::to_value(&traced.record)?),
                false => fathom_report::trace(&traced.record),
            };
            (text, traced.record.warnings, traced.interrupted)
        }
        None => {
            let mut begun = || begun("io_uring");
            let traced = trace_uring(arguments.pid, &config, &mut begun).map_err(failure)?;
            let text = match arguments.json {
                true => json(serde_json::to_value(&traced.record)?),
                false => fathom_report::uring_trace(&traced.record),
            };
            (text, traced.record.warnings, traced.interrupted)
        }
    };
    Data::Stdout.add(&text)?;
    warnings.iter().for_each(print_warning);
    Ok(interrupted)
}

fn failure(error: TraceError) -> anyhow::Error {
    with_hint(&error, error.hint())
}

fn json(record: Value) -> String {
    format!("{record:#}\n")
}

fn print_warning(warning: &Warning) {
    let Warning { message, hint, .. } = warning;
    output::print(
        StandardStream::Error,
        &format!("fathom: trace: {message}\n"),
    );
    if !hint.is_empty() {
        output::print(StandardStream::Error, &format!("hint: {hint}\n"));
    }
}

const USAGE: &str = "\
fathom trace [OPTIONS] <DEVICE>
       fathom trace [OPTIONS] --uring [--pid <PID>]";

const EXAMPLES: &str = "\
Examples:
  fathom trace --seconds 10 /dev/sda
  fathom trace --seconds 10 --json /dev/nvme0n1p2 > trace.json
  fathom trace --uring --seconds 10
  fathom trace --uring --pid 4711

Requires root. Exit codes: 0 done; 2 not done, or not completely.";
