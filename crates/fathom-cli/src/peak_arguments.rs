//! Arguments of `fathom peak`, and the measurements that they request.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_core::Nanos;
use fathom_peak::{PeakConfig, PeakEngine, SWEEP_DEPTHS, block_of};
use fathom_target::{read_size, show_size};

/// Arguments of `fathom peak`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub(crate) struct PeakArguments {
    /// Queue depths per thread, each measured [default: 128; sync: 1]
    #[arg(long, value_name = "N[,N…]", value_parser = numbers)]
    pub(crate) depth: Option<Numbers>,
    /// Ops submitted and completions awaited per system call; several make a depth × batch table
    #[arg(long, value_name = "N[,N…]", value_parser = numbers)]
    #[arg(conflicts_with_all = ["submit", "complete"])]
    pub(crate) batch: Option<Numbers>,
    /// Ops submitted per system call [default: 32, at most the depth]
    #[arg(long, value_name = "N")]
    pub(crate) submit: Option<u32>,
    /// Completions to wait for when the queue is full [default: --submit]
    #[arg(long, value_name = "N")]
    pub(crate) complete: Option<u32>,
    /// Op size: 512, 4k, 1m; sector: the smallest that the first target takes
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = op_size)]
    block: OpSize,
    /// Number of threads, each with its own engine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: u32,
    /// Poll for completions instead of waiting for interrupts
    #[arg(long)]
    pub(crate) polled: bool,
    /// Access blocks in order instead of at random
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Use the page cache instead of O_DIRECT
    #[arg(long)]
    pub(crate) buffered: bool,
    /// Do not register buffers with io_uring
    #[arg(long)]
    pub(crate) no_fixed: bool,
    /// Do not register files with io_uring
    #[arg(long)]
    pub(crate) no_register: bool,
    /// Do not register the ring's file descriptor
    #[arg(long)]
    pub(crate) no_register_ring: bool,
    /// Issue no-ops to measure the ring alone, without a target
    #[arg(long, conflicts_with_all = ["write", "buffered", "sequential", "block"])]
    pub(crate) nop: bool,
    /// I/O engine
    #[arg(long, value_name = "ENGINE", value_enum, default_value = "io_uring")]
    engine: EngineName,
    /// Pass NVMe commands to a namespace's character device, such as /dev/ng0n1, instead of using
    /// its block device
    #[arg(long, conflicts_with_all = ["engine", "buffered"])]
    passthrough: bool,
    /// Write instead of read; destroys the target's data
    #[arg(long)]
    pub(crate) write: bool,
    /// CPU to pin the first thread to; further threads use the following CPUs
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<u32>,
    /// Record per-op latency
    #[arg(long)]
    pub(crate) latency: bool,
    /// Duration of each repeat, such as 0.5
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = duration)]
    pub(crate) seconds: Nanos,
    /// Repeats per depth and batch, of which the median and the range are shown
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) repeats: u32,
    /// Sweep depths 1, 2, 4 … 64 with latency; from depth 8, batches are a quarter of the depth,
    /// unless --batch gives others
    #[arg(long, conflicts_with_all = ["depth", "submit", "complete"])]
    pub(crate) sweep: bool,
    /// Compare with a saved `--json` result, or with these options, measured in turn
    #[arg(long, value_name = "SAVED.json|OPTIONS", allow_hyphen_values = true)]
    pub(crate) against: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Files, block devices, or with --passthrough character devices of namespaces
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
}

/// Size of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpSize {
    Bytes(u32),
    /// The logical block of the first target.
    Sector,
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

/// Numbers of a list, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers(Vec<u32>);

impl PeakArguments {
    /// Returns the configuration of each measurement: one, or one per depth and batch. A batch
    /// that exceeds the depth is left out where it fits another one.
    pub(crate) fn configs(&self) -> Vec<PeakConfig> {
        let depths = match &self.depth {
            _ if self.sweep => SWEEP_DEPTHS.to_vec(),
            Some(Numbers(depths)) => depths.clone(),
            None => vec![self.usual_depth()],
        };
        let batches = match &self.batch {
            Some(Numbers(batches)) => batches.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let mut configs = Vec::new();
        for &depth in &depths {
            // One that fits none is kept, and refused by its name.
            let fits =
                |batch: &Option<u32>| batch.is_none_or(|batch| batch <= depth || batch > deepest);
            for batch in batches.iter().copied().filter(fits) {
                configs.push(self.config(depth, batch));
            }
        }
        configs
    }

    /// Returns whether the result is a table.
    pub(crate) fn is_table(&self) -> bool {
        self.sweep || self.configs().len() > 1
    }

    /// Returns the configuration of the first measurement, which stands for what all share.
    pub(crate) fn shared_config(&self) -> PeakConfig {
        self.config(self.usual_depth(), None)
    }

    const fn engine(&self) -> PeakEngine {
        match self.engine {
            _ if self.passthrough => PeakEngine::Passthrough,
            EngineName::Uring => PeakEngine::Uring,
            EngineName::Libaio => PeakEngine::Libaio,
            EngineName::Sync => PeakEngine::Sync,
        }
    }

    fn block_bytes(&self) -> u32 {
        match self.block {
            OpSize::Bytes(bytes) => bytes,
            OpSize::Sector => self
                .targets
                .first()
                .map_or(SECTOR_BYTES, |path| block_of(path)),
        }
    }

    const fn usual_depth(&self) -> u32 {
        match self.engine() {
            PeakEngine::Sync => 1,
            PeakEngine::Uring | PeakEngine::Passthrough | PeakEngine::Libaio => 128,
        }
    }

    fn config(&self, depth: u32, batch: Option<u32>) -> PeakConfig {
        let submit = batch.or(self.submit).unwrap_or_else(|| depth.min(32));
        let config = PeakConfig {
            targets: self.targets.clone(),
            engine: self.engine(),
            depth,
            submit,
            complete: batch.or(self.complete).unwrap_or(submit),
            block_bytes: self.block_bytes(),
            threads: self.threads,
            polled: self.polled,
            sequential: self.sequential,
            buffered: self.buffered,
            fixed_buffers: !self.no_fixed,
            fixed_files: !self.no_register,
            register_ring: !self.no_register_ring,
            nops: self.nop,
            write: self.write,
            cpu: self.cpu,
            latency: self.latency || self.sweep,
            duration: self.seconds,
        };
        match batch {
            None if self.sweep => config.at_depth(depth),
            _ => config,
        }
    }

    /// Returns the line that describes the measurements about to start.
    pub(crate) fn headline(&self) -> String {
        let config = self.shared_config();
        let ops = if config.nops {
            "no-ops".to_owned()
        } else {
            let order = if config.sequential {
                "sequential"
            } else {
                "random"
            };
            let verb = if config.write { "writes" } else { "reads" };
            format!(
                "{order} {verb} of {}",
                show_size(u64::from(config.block_bytes))
            )
        };
        let configs = self.configs();
        let settings = settings(&config);
        let settings = settings.iter().map(|setting| format!(", {setting}"));
        format!(
            "{ops}: {}, depth {}, submit {}, complete {}, threads {}{}\n",
            config.engine.name(),
            each(&configs, |config| config.depth),
            each(&configs, |config| config.submit),
            each(&configs, |config| config.complete),
            config.threads,
            settings.collect::<String>(),
        )
    }
}

/// Lists the values of a setting, each once.
fn each(configs: &[PeakConfig], value: impl Fn(&PeakConfig) -> u32) -> String {
    let mut values: Vec<u32> = configs.iter().map(value).collect();
    values.sort_unstable();
    values.dedup();
    let values: Vec<String> = values.iter().map(u32::to_string).collect();
    values.join("/")
}

/// Returns the options that differ from their defaults, as on the command line.
pub(crate) fn settings(config: &PeakConfig) -> Vec<String> {
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

/// Parses a size in bytes with an optional binary suffix: 512, 4k, 1m.
fn bytes(text: &str) -> Result<u32, String> {
    let bytes = read_size(text).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "expected a size in bytes, such as 512, 4096, 4k or 1m".into())
}

fn op_size(text: &str) -> Result<OpSize, String> {
    match text {
        "sector" => Ok(OpSize::Sector),
        size => bytes(size).map(OpSize::Bytes),
    }
}

/// Parses a list of numbers: 1,8,32.
fn numbers(text: &str) -> Result<Numbers, String> {
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    let mut numbers = numbers.map_err(|_| "expected numbers, such as 8 or 1,8,32")?;
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.len() > LIST_MAX {
        return Err(format!("more than {LIST_MAX} numbers"));
    }
    Ok(Numbers(numbers))
}

/// Parses a duration in seconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are far below 2^53 ns, and not negative"
)]
fn duration(text: &str) -> Result<Nanos, String> {
    let seconds: Option<f64> = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.01..=1e6).contains(seconds));
    let seconds = seconds.ok_or("expected seconds from 0.01 to 1000000, such as 0.5 or 10")?;
    Ok(Nanos::new((seconds * 1e9).round() as u64))
}

/// Longest list of depths or batches.
const LIST_MAX: usize = 32;

/// The block layer's sector.
const SECTOR_BYTES: u32 = 512;

const EXAMPLES: &str = "\
Examples:
  fathom peak /dev/nvme0n1
  fathom peak --depth 1,8,64 --batch 1,8,64 --seconds 0.5 /dev/nvme0n1
  fathom peak --sweep --block 512 --cpu 1 --json /dev/nvme0n1 > before.json
  fathom peak --sweep --block 512 --cpu 1 --against before.json /dev/nvme0n1
  fathom peak --depth 32 --against '--engine libaio' /dev/nvme0n1
  fathom peak --passthrough /dev/ng0n1
  fathom peak --nop --seconds 2

A comparison shows no change that is within the spread of the repeats. Settings \
of this command are best compared in turn, with --against 'OPTIONS': drift of the \
machine then affects both alike.
Latency is measured from just before an op is prepared until it is reaped; one \
clock read serves a whole batch.";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Line {
        #[command(flatten)]
        arguments: PeakArguments,
    }

    fn points(line: &str) -> Vec<(u32, u32, u32)> {
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        let configs = line.arguments.configs();
        let point = |config: &PeakConfig| (config.depth, config.submit, config.complete);
        configs.iter().map(point).collect()
    }

    #[test]
    fn block_sizes_may_have_a_suffix() {
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(bytes("4k"), Ok(4096));
        assert_eq!(bytes("4KiB"), Ok(4096));
        assert_eq!(bytes("1M"), Ok(1 << 20));
        for wrong in ["", "k", "4q", "-1", "4096m", "5000000000"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        assert_eq!(duration("0.5"), Ok(Nanos::from_millis(500)));
        assert_eq!(duration("10"), Ok(Nanos::from_secs(10)));
        for wrong in ["", "0", "-1", "nan", "inf", "1e9", "1s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_multiplied_as_far_as_batches_fit() {
        assert_eq!(points("x"), [(128, 32, 32)]);
        assert_eq!(points("--depth 8 --complete 1 x"), [(8, 8, 1)]);
        assert_eq!(points("--engine sync x"), [(1, 1, 1)]);
        let table = points("--depth 8,1 --batch 4,1 x");
        assert_eq!(table, [(1, 1, 1), (8, 1, 1), (8, 4, 4)]);
        assert_eq!(points("--sweep x").len(), 7);
        assert_eq!(points("--sweep --batch 1,16 x").len(), 7 + 3);
        // A batch that is too large for each depth is refused later, by its name.
        assert_eq!(points("--depth 4 --batch 8 x"), [(4, 8, 8)]);
        assert_eq!(points("--depth 8 --batch 1,64 x"), [(8, 1, 1), (8, 64, 64)]);
    }
}
