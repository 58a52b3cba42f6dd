//! `fathom peak`: the raw maximum of a device or of the kernel's I/O path.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use fathom_host::block_tree::BlockTree;
use fathom_host::{machine, storage};
use fathom_peak::{Interval, PeakConfig, PeakEngine, SWEEP_DEPTHS, peak};
use fathom_record::{PEAK_VERSION, PeakPoint, PeakRecord, Warning};
use fathom_report::{peak_line, peak_summary, peak_sweep};
use fathom_sys::clock::{self, Clock};
use fathom_sys::signals::Interrupts;

use crate::exit::ProgramEnd;
use crate::failure::with_hint;
use crate::output::{self, Data, StandardStream};

/// Arguments of `fathom peak`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct PeakArguments {
    /// Queue depth per thread [default: 128; sync: 1]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Ops submitted per system call [default: 32, at most the depth]
    #[arg(long, value_name = "N")]
    submit: Option<u32>,
    /// Completions to wait for when the queue is full [default: --submit]
    #[arg(long, value_name = "N")]
    complete: Option<u32>,
    /// Op size in bytes
    #[arg(long, value_name = "BYTES", default_value = "4096", value_parser = bytes)]
    block: u32,
    /// Number of threads, each with its own engine
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Poll for completions instead of waiting for interrupts
    #[arg(long)]
    polled: bool,
    /// Access blocks in order instead of at random
    #[arg(long)]
    sequential: bool,
    /// Use the page cache instead of O_DIRECT
    #[arg(long)]
    buffered: bool,
    /// Do not register buffers with io_uring
    #[arg(long)]
    no_fixed: bool,
    /// Do not register files with io_uring
    #[arg(long)]
    no_register: bool,
    /// Do not register the ring's file descriptor
    #[arg(long)]
    no_register_ring: bool,
    /// Issue no-ops to measure the ring alone, without a target
    #[arg(long)]
    nop: bool,
    /// I/O engine
    #[arg(long, value_name = "ENGINE", value_enum, default_value = "io_uring")]
    engine: EngineName,
    /// Write instead of read; destroys the target's data
    #[arg(long)]
    write: bool,
    /// CPU to pin the first thread to; further threads use the following CPUs
    #[arg(long, value_name = "N")]
    cpu: Option<u32>,
    /// Record per-op latency
    #[arg(long)]
    latency: bool,
    /// Duration per depth, in seconds
    #[arg(long, value_name = "N", default_value_t = 5)]
    seconds: u32,
    /// Sweep depths 1, 2, 4 … 64 with latency; from depth 8, batches are a quarter of the depth
    #[arg(long, conflicts_with_all = ["depth", "submit", "complete"])]
    sweep: bool,
    /// Compare with a saved `--json` result
    #[arg(long, value_name = "SAVED.json")]
    against: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Files or block devices
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
}

/// Engine to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineName {
    /// Rings shared with the kernel
    #[value(name = "io_uring")]
    Uring,
    /// Linux native asynchronous I/O
    Libaio,
    /// One system call per op
    Sync,
}

/// Measures and prints the result.
pub(crate) fn run(arguments: &PeakArguments) -> ProgramEnd {
    match measure(arguments) {
        Ok(interrupted) => ProgramEnd::Ran {
            failed_jobs: 0,
            tolerated_errors: 0,
            interrupted,
        },
        Err(error) => {
            output::print(StandardStream::Error, &format!("fathom: peak: {error:#}\n"));
            ProgramEnd::Refused
        }
    }
}

fn measure(arguments: &PeakArguments) -> Result<bool> {
    let against = arguments.against.as_deref().map(saved).transpose()?;
    let interrupts = Interrupts::install().context("signals")?;
    let mut points = Vec::new();
    let mut interrupted = false;
    let mut features = Vec::new();
    for config in configs(arguments) {
        if !arguments.json {
            output::print(StandardStream::Error, &headline(&config));
        }
        let mut second = 0_u32;
        let mut tell = |interval: &Interval| {
            second += 1;
            if !arguments.json && !arguments.sweep {
                let line = line(&format!("{second} s"), interval, moved_bytes(&config));
                output::print(StandardStream::Data, &line);
            }
        };
        let outcome = peak(&config, &mut tell, &|| interrupts.count());
        let outcome = outcome.map_err(|error| with_hint(&error, error.hint()))?;
        interrupted |= outcome.interrupted;
        features.clone_from(&outcome.features);
        points.push(outcome.into_point(&config));
        if interrupted {
            break;
        }
    }
    let mut record = record(arguments, points, features);
    record
        .warnings
        .extend(interrupted.then(interrupted_warning));
    let differs = against.as_ref().and_then(|saved| different(&record, saved));
    record.warnings.extend(differs);
    report(&record, arguments, against.as_ref())?;
    Ok(interrupted)
}

/// Returns the configuration of each measurement: one, or one per depth of the sweep.
fn configs(arguments: &PeakArguments) -> Vec<PeakConfig> {
    if !arguments.sweep {
        return vec![config(arguments)];
    }
    let depths = SWEEP_DEPTHS.iter();
    depths
        .map(|&depth| config(arguments).at_depth(depth))
        .collect()
}

fn config(arguments: &PeakArguments) -> PeakConfig {
    let engine = match arguments.engine {
        EngineName::Uring => PeakEngine::Uring,
        EngineName::Libaio => PeakEngine::Libaio,
        EngineName::Sync => PeakEngine::Sync,
    };
    let usual = if engine == PeakEngine::Sync { 1 } else { 128 };
    let depth = arguments.depth.unwrap_or(usual);
    let submit = arguments.submit.unwrap_or_else(|| depth.min(32));
    PeakConfig {
        targets: arguments.targets.clone(),
        engine,
        depth,
        submit,
        complete: arguments.complete.unwrap_or(submit),
        block_bytes: arguments.block,
        threads: arguments.threads,
        polled: arguments.polled,
        sequential: arguments.sequential,
        buffered: arguments.buffered,
        fixed_buffers: !arguments.no_fixed,
        fixed_files: !arguments.no_register,
        register_ring: !arguments.no_register_ring,
        nops: arguments.nop,
        write: arguments.write,
        cpu: arguments.cpu,
        latency: arguments.latency,
        seconds: arguments.seconds,
    }
}

fn record(arguments: &PeakArguments, points: Vec<PeakPoint>, features: Vec<String>) -> PeakRecord {
    let config = config(arguments);
    let targets = config.targets.iter();
    let tree = BlockTree::default();
    let paths = targets.clone().map(PathBuf::as_path);
    let storages = storage::storages_under(paths, &tree);
    PeakRecord {
        version: PEAK_VERSION,
        timestamp_ms: clock::wall_ms(),
        targets: targets.map(|path| path.display().to_string()).collect(),
        engine: config.engine.name().into(),
        block_bytes: moved_bytes(&config),
        threads: config.threads,
        settings: settings(&config),
        machine: Some(machine::machine(&Clock::calibrated(), storages, features)),
        points,
        warnings: Vec::new(),
    }
}

/// Returns the bytes that an op moves: none for a no-op.
const fn moved_bytes(config: &PeakConfig) -> u32 {
    if config.nops { 0 } else { config.block_bytes }
}

fn interrupted_warning() -> Warning {
    Warning {
        code: "interrupted".into(),
        job: String::new(),
        message: "interrupted; measured for less than the requested time".into(),
        hint: String::new(),
    }
}

/// Returns the settings in which a saved result differs, so that its figures do not compare.
fn different(record: &PeakRecord, saved: &PeakRecord) -> Option<Warning> {
    let pairs = [
        ("engine", record.engine != saved.engine),
        ("block size", record.block_bytes != saved.block_bytes),
        ("threads", record.threads != saved.threads),
        ("targets", record.targets != saved.targets),
        ("settings", record.settings != saved.settings),
    ];
    let other = pairs.iter().filter(|(_, differs)| *differs);
    let other: Vec<&str> = other.map(|(name, _)| *name).collect();
    (!other.is_empty()).then(|| Warning {
        code: "against_differs".into(),
        job: String::new(),
        message: format!(
            "--against: the saved result differs in {}",
            other.join(", ")
        ),
        hint: "compare results that differ in one setting only".into(),
    })
}

/// Returns the options that differ from their defaults, as on the command line.
fn settings(config: &PeakConfig) -> Vec<String> {
    let switches = [
        ("--polled", config.polled),
        ("--sequential", config.sequential),
        ("--buffered", config.buffered),
        ("--no-fixed", !config.fixed_buffers),
        ("--no-register", !config.fixed_files),
        ("--no-register-ring", !config.register_ring),
        ("--nop", config.nops),
        ("--write", config.write),
    ];
    let on = switches.iter().filter(|(_, on)| *on);
    let mut settings: Vec<String> = on.map(|(name, _)| (*name).to_owned()).collect();
    settings.extend(config.cpu.map(|cpu| format!("--cpu {cpu}")));
    settings
}

fn report(
    record: &PeakRecord,
    arguments: &PeakArguments,
    against: Option<&PeakRecord>,
) -> Result<()> {
    let text = if arguments.json {
        let mut text = record.to_json()?;
        text.push('\n');
        text
    } else if arguments.sweep {
        peak_sweep(record, against)
    } else {
        peak_summary(record, against)
    };
    Data::Stdout.add(&text)?;
    let machine = record.machine.iter().filter(|_| !arguments.json);
    for machine in machine.filter(|machine| !machine.engine_features.is_empty()) {
        let used = machine.engine_features.join(", ");
        output::print(
            StandardStream::Error,
            &format!("kernel features used: {used}\n"),
        );
    }
    for warning in &record.warnings {
        output::print(
            StandardStream::Error,
            &format!("fathom: peak: {}\n", warning.message),
        );
    }
    Ok(())
}

/// Returns the line that describes the measurement about to start.
fn headline(config: &PeakConfig) -> String {
    let what = if config.nops {
        "no-ops".to_owned()
    } else {
        let order = if config.sequential {
            "sequential"
        } else {
            "random"
        };
        let verb = if config.write { "writes" } else { "reads" };
        format!("{order} {verb} of {} B", config.block_bytes)
    };
    let settings = settings(config);
    let settings = settings.iter().map(|setting| format!(", {setting}"));
    format!(
        "{what}: {}, depth {}, submit {}, complete {}, threads {}{}\n",
        config.engine.name(),
        config.depth,
        config.submit,
        config.complete,
        config.threads,
        settings.collect::<String>(),
    )
}

fn line(label: &str, interval: &Interval, block_bytes: u32) -> String {
    let calls = float(interval.calls).max(1.0);
    peak_line(
        label,
        interval.iops(),
        block_bytes,
        float(interval.ops) / calls,
    )
}

/// Reads a saved result of `--json`.
fn saved(path: &Path) -> Result<PeakRecord> {
    let name = || format!("--against: {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(name)?;
    let mut source = file.take(SAVED_BYTES_MAX + 1);
    let bytes = source.read_to_string(&mut text).with_context(name)?;
    if bytes as u64 > SAVED_BYTES_MAX {
        return Err(anyhow::anyhow!("more than {SAVED_BYTES_MAX} B")).with_context(name);
    }
    PeakRecord::from_json(&text).with_context(name)
}

/// Largest saved result; a sweep has less than 200 KiB, and an endless file must not be read.
const SAVED_BYTES_MAX: u64 = 16 << 20;

/// Parses a size in bytes with an optional binary suffix: 512, 4k, 1m.
fn bytes(text: &str) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = match lower.strip_suffix(['k', 'm']) {
        Some(digits) if lower.ends_with('k') => (digits, 1 << 10),
        Some(digits) => (digits, 1 << 20),
        None => (lower.as_str(), 1),
    };
    let number = digits.parse::<u32>().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "expected a size in bytes, such as 512, 4096, 4k or 1m".into())
}

#[expect(clippy::cast_precision_loss, reason = "a rate is not exact to 2⁻⁵³")]
const fn float(number: u64) -> f64 {
    number as f64
}

const EXAMPLES: &str = "\
Examples:
  fathom peak /dev/nvme0n1
  fathom peak --sweep --block 512 --cpu 1 --json /dev/nvme0n1 > before.json
  fathom peak --sweep --block 512 --cpu 1 --against before.json /dev/nvme0n1
  fathom peak --nop --seconds 2

Latency is measured from just before an op is prepared until it is reaped; one clock read serves a
whole batch.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_may_have_a_suffix() {
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(bytes("4k"), Ok(4096));
        assert_eq!(bytes("1M"), Ok(1 << 20));
        for wrong in ["", "k", "4q", "-1", "4096m", "5000000000"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
