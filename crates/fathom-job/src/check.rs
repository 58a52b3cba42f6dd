//! Rules on a whole job that need no look at the machine's disks.

mod content;
mod device;
mod placement;
mod trim_ranges;
mod verify_only;
mod wait_for;
mod zones;

use fathom_core::{Direction, Synchronous};

use crate::Environment;
use crate::findings::Findings;
use crate::layer::{OptionLayer, WrittenOption};
use crate::logs::LogValue;
use crate::number;
use crate::plan::{BlockSize, Job, Options, Size};
use crate::problem::{FioLevel, Piece, Problem};
use crate::rank_place::RankPlace;
use crate::reporter::Reporter;
use crate::source::Spot;
use crate::table::NO_CPU;
use crate::workload::ReadWrite;

/// Checks of one finished job, before the disks of the machine are examined.
///
/// Every rule reports at the option that breaks it, so all are applied even if some fail. A few
/// also correct what fio corrects silently (`iodepth_batch_complete_max` below the minimum), so
/// the layer is mutable.
pub(crate) struct JobCheck<'a> {
    pub(crate) reporter: &'a mut Reporter,
    pub(crate) environment: &'a dyn Environment,
    /// The layer that the job inherits.
    pub(crate) globals: &'a OptionLayer,
    /// The jobs defined before this one.
    pub(crate) earlier: &'a [Job],
    pub(crate) name: &'a str,
    pub(crate) layer: &'a mut OptionLayer,
    /// Place of the section's header.
    pub(crate) header: &'a Spot,
    /// Place of this rank.
    pub(crate) own: &'a RankPlace,
}

impl JobCheck<'_> {
    /// Applies all rules. Returns the place that says that the job writes or trims, if it does:
    /// `--readonly` may still follow.
    pub(crate) fn run(mut self) -> Option<Spot> {
        self.verify_only();
        self.mix();
        self.direct();
        self.zones();
        self.ranges();
        self.sizes();
        self.queue();
        self.atomic();
        self.streams();
        self.preconditioning();
        self.trims();
        self.trim_ranges();
        self.rates();
        self.runtime();
        self.latency_target();
        self.logs();
        self.priorities();
        self.patterns();
        self.working_set();
        self.verify();
        self.verify_state();
        self.verify_policy();
        self.cpus();
        self.wait_for();
        self.placement();
        let options = &self.layer.options;
        // A replay writes if its log does, which the setup of a run finds out.
        let changes =
            !options.replay.replays() && (writes(options) || options.rw == ReadWrite::Trim);
        changes.then(|| self.place(&["rw"]))
    }

    /// `rwmixread` and `rwmixwrite` of one section must add up to 100.
    fn mix(&mut self) {
        let [Some(read), Some(write)] = ["rwmixread", "rwmixwrite"].map(|name| self.own(name))
        else {
            return;
        };
        let percent = |written: &WrittenOption| {
            let text = written.text().unwrap_or_default();
            number::counted(Piece::new(text), 1024, 0, 100, &mut Findings::new(true))
        };
        if let (Ok(reads), Ok(writes)) = (percent(&read), percent(&write))
            && reads + writes != 100
        {
            let why = format!(
                "rwmixread={reads} and rwmixwrite={writes} add up to {}, not 100",
                reads + writes
            );
            let options = &self.layer.options;
            let problem = problem("bad-mix", why)
                .read_as(format!("rwmixread={}", options.rwmixread))
                .fix("remove one of them");
            self.error(&value(&write), problem);
        }
    }

    /// `direct` and `buffered` of one section must agree.
    fn direct(&mut self) {
        if let [Some(direct), Some(buffered)] = ["direct", "buffered"].map(|name| self.own(name))
            && direct.text().map(str::trim) == buffered.text().map(str::trim)
        {
            let why = "`direct` and `buffered` contradict each other";
            let problem = problem("contradiction", why)
                .read_as(format!("direct={}", u8::from(self.layer.options.direct)))
                .fix("remove one of them");
            self.error(&value(&buffered), problem);
        }
    }

    /// Ops are shorter than 4 GiB: a range that exceeds this is cut to the largest multiple of its
    /// minimum.
    fn ranges(&mut self) {
        let mut beyond = None;
        for direction in Direction::ALL {
            if let BlockSize::Range { min, max } = &mut self.layer.options.block_sizes[direction]
                && *max > OP_MAX
                && *min <= OP_MAX
            {
                *max = OP_MAX / *min * *min;
                beyond = Some(*max);
            }
        }
        if let Some(max) = beyond {
            let why = "Linux has no ops of 4 GiB or more";
            let problem = problem("bs-too-large", why)
                .read_as(max.to_string())
                .fix("end the range below `4g`");
            self.error_at(&["bsrange"], problem);
        }
    }

    fn sizes(&mut self) {
        if self.layer.options.numjobs == 0 {
            let problem = problem(
                "no-clones",
                "the job has no clones to run; fio refuses this too",
            )
            .fix("write `numjobs=1` or more");
            self.error_at(&["numjobs"], problem);
        }
        let options = &self.layer.options;
        if options.engine.name_work().is_some() {
            return; // an op is a file, whatever its length
        }
        let drawn = options.drawn_rw().directions().iter();
        let blocks = drawn
            .map(|&direction| smallest(&options.block_sizes[direction]))
            .max()
            .unwrap_or(1);
        let names = ["bs", "bsrange", "bssplit"];
        let too_large = |what: &str, bytes: u64| {
            problem(
                "bs-too-large",
                format!("the block size of {blocks} bytes exceeds {what} of {bytes} bytes"),
            )
            .fix("increase it, or reduce the block size")
        };
        if let Some(Size::Bytes(size)) = options.size
            && (1..blocks).contains(&size)
        {
            let problem = too_large("the size", size);
            self.error_at(&["size", "bs", "bsrange", "bssplit"], problem);
        } else if let Some((_, largest)) = options.filesize
            && largest < blocks
        {
            let problem = too_large("the file size", largest);
            self.error_at(&["filesize", names[0], names[1], names[2]], problem);
        } else if let (Some(Size::Bytes(size)), None) = (options.size, options.filesize)
            && options.nrfiles > 1
            // Not for sequential jobs: an op may fit if the file is longer than its share.
            && options.random
            && (1..blocks).contains(&(size / u64::from(options.nrfiles)))
        {
            let each = size / u64::from(options.nrfiles);
            let why = format!(
                "each of the {} files has only {each} B, less than the block size of {blocks} B",
                options.nrfiles
            );
            let problem = problem("bs-too-large", why).fix("increase the size, or use fewer files");
            self.error_at(&["nrfiles", "filename", "size"], problem);
        }
    }

    fn queue(&mut self) {
        let options = &mut self.layer.options;
        let (min, max) = (
            options.iodepth_batch_complete_min,
            options.iodepth_batch_complete_max,
        );
        let depth = options.iodepth;
        if max > 0 && max < min {
            options.iodepth_batch_complete_max = min;
            let both = ["iodepth_batch_complete_min", "iodepth_batch_complete_max"]
                .map(|name| self.own(name));
            if let [Some(_), Some(written)] = both {
                let why = format!("the maximum of {max} completions is below the minimum of {min}");
                let problem = problem("contradiction", why)
                    .read_as(format!("iodepth_batch_complete_max={min}"))
                    .fix("raise `iodepth_batch_complete_max` to at least the minimum");
                self.error(&value(&written), problem);
            }
        }
        let options = &self.layer.options;
        let engine = Some(options.engine).filter(|_| !options.offload);
        if depth > 1
            && engine.is_some_and(|info| info.synchronous == Synchronous::Always || info.gathers)
        {
            let why = "both iodepth >= 1 and synchronous I/O engine are selected, \
                       queue depth will be capped at 1";
            let fix = "use `ioengine=io_uring` or `ioengine=libaio` for more ops in flight";
            self.warn_at(
                &["iodepth", "ioengine"],
                problem("depth-capped", why)
                    .fio_level(FioLevel::Note)
                    .fix(fix),
            );
        }
    }

    fn rates(&mut self) {
        let options = &self.layer.options;
        let any = |pairs: [(Option<u64>, Option<u64>); 3], bad: fn(u64, u64) -> bool| {
            pairs
                .iter()
                .any(|pair| matches!(pair, (Some(a), Some(b)) if bad(*a, *b)))
        };
        let bytes =
            Direction::ALL.map(|direction| (options.rate[direction], options.rate_min[direction]));
        let ops = Direction::ALL.map(|direction| {
            (
                options.rate_iops[direction],
                options.rate_iops_min[direction],
            )
        });
        let given = |values: &[(Option<u64>, Option<u64>); 3]| {
            let max = values.iter().any(|(max, _)| max.is_some());
            let min = values.iter().any(|(_, min)| min.is_some());
            (max, min)
        };
        let ((rate, rate_min), (rate_iops, rate_iops_min)) = (given(&bytes), given(&ops));
        let below = |max: u64, min: u64| min > max;
        let (bytes_bad, ops_bad) = (any(bytes, below), any(ops, below));
        let fix = "remove one of them";
        if rate && rate_iops {
            let why = "`rate` and `rate_iops` are mutually exclusive, as in fio";
            self.error_at(
                &["rate_iops", "rate"],
                problem("contradiction", why).fix(fix),
            );
        }
        if rate_min && rate_iops_min {
            let why = "`rate_min` and `rate_iops_min` are mutually exclusive, as in fio";
            self.error_at(
                &["rate_iops_min", "rate_min"],
                problem("contradiction", why).fix(fix),
            );
        }
        let why = "the minimum rate exceeds the rate limit";
        let lower = "lower it";
        if bytes_bad {
            self.error_at(
                &["rate_min", "rate"],
                problem("contradiction", why).fix(lower),
            );
        }
        if ops_bad {
            self.error_at(
                &["rate_iops_min", "rate_iops"],
                problem("contradiction", why).fix(lower),
            );
        }
    }

    fn latency_target(&mut self) {
        let rules = &self.layer.options.lifecycle;
        if !rules.latency_target.is_zero() && rules.latency_window.is_zero() {
            let why = "`latency_target` needs a `latency_window`, the time to test each depth";
            let problem = problem("no-latency-window", why).fix("add `latency_window=1s`");
            let reading = "a window that ends with the first op";
            self.error_at(&["latency_target"], problem.read_as(reading));
        }
    }

    fn runtime(&mut self) {
        if self.layer.options.ramp_size > 0 && !self.layer.options.ramp_time.is_zero() {
            let why = "`ramp_time` and `ramp_size` are mutually exclusive, as in fio";
            let problem = problem("contradiction", why).fix("remove one of them");
            self.error_at(&["ramp_size", "ramp_time"], problem);
        }
        let options = &mut self.layer.options;
        if options.time_based && options.runtime.is_none() {
            options.time_based = false;
            let why = "`time_based` has no effect without `runtime`, as in fio";
            self.warn_at(
                &["time_based"],
                problem("no-runtime", why)
                    .fio_level(FioLevel::Warning)
                    .fix("add a `runtime`, as in `runtime=30s`"),
            );
        }
    }

    fn priorities(&mut self) {
        let options = &self.layer.options;
        let by_size = options.cmdprio_bssplit.iter().any(|(_, l)| !l.is_empty());
        let by_chance = options.cmdprio_percentage.iter().any(|(_, p)| *p > 0);
        if by_size && by_chance {
            let why = "`cmdprio_percentage` and `cmdprio_bssplit` exclude each other, as in fio";
            self.error_at(
                &["cmdprio_bssplit", "cmdprio_percentage"],
                problem("contradiction", why).fix("remove one of them"),
            );
        }
    }

    fn logs(&mut self) {
        let logs = &self.layer.options.logs;
        if logs.response.is_some() && !has_due_times(&self.layer.options) {
            let why = "`write_resp_log` needs a schedule: without a rate no op is due, and its \
                       response time is lat";
            let fix = "use `write_lat_log`, or set `rate` or `rate_iops`";
            self.error_at(&["write_resp_log"], problem("no-schedule", why).fix(fix));
        } else if logs.issue_time && !logs.offset {
            let problem = problem(
                "log-without-offset",
                "`log_issue_time` needs `log_offset=1`",
            )
            .fix("add `log_offset=1`");
            self.error_at(&["log_issue_time"], problem);
        } else if logs.stored && logs.format != "text" {
            let format = logs.format;
            let why =
                format!("`log_store_compressed` and `log_format={format}` are mutually exclusive");
            self.error_at(
                &["log_format", "log_store_compressed"],
                problem("contradiction", why).fix("remove one of them"),
            );
        } else if logs.stored && (logs.issue_time || logs.value == LogValue::Both) {
            let name = if logs.issue_time {
                "log_issue_time"
            } else {
                "log_window_value"
            };
            let why = format!("compressed logs have no column for `{name}`");
            let problem =
                problem("no-column", why).fix("remove one of them, or use `log_format=parquet`");
            self.error_at(&[name, "log_store_compressed"], problem);
        } else if logs.histogram.is_some() && logs.histogram_ms == 0 {
            let why = "`write_hist_log` writes nothing without `log_hist_msec`, as in fio";
            let problem = problem("empty-log", why).fix("add `log_hist_msec=1000`");
            self.warn_at(&["write_hist_log"], problem);
        }
    }

    fn cpus(&mut self) {
        let allowed = &self.layer.options.cpus_allowed;
        if allowed.as_ref().is_some_and(Vec::is_empty) && self.own("cpumask").is_none() {
            let why = "the list leaves the job no CPU";
            let problem = problem("bad-cpu", why).read_as(NO_CPU);
            self.error_at(
                &["cpus_allowed"],
                problem.fix("name a CPU, as in `cpus_allowed=0`"),
            );
        }
        let cpus = self.environment.cpus();
        let wanted = self.layer.options.cpus_allowed.iter().flatten();
        if let Some(cpu) = wanted.copied().find(|cpu| *cpu >= cpus) {
            let why = format!("no CPU {cpu}: the machine has {cpus}");
            let fix = format!("use CPUs from 0 to {}", cpus.saturating_sub(1));
            self.error_at(&["cpus_allowed"], problem("bad-cpu", why).fix(fix));
        }
    }

    /// Returns an option written in this section, not an inherited one.
    fn own(&self, name: &str) -> Option<WrittenOption> {
        self.layer.find(name).cloned()
    }

    /// Returns the place of the first of these options: in the section, else inherited, else the
    /// section's header.
    fn place(&self, names: &[&str]) -> Spot {
        let own = names.iter().find_map(|name| self.layer.find(name));
        let inherited = || names.iter().find_map(|name| self.globals.find(name));
        own.or_else(inherited)
            .map_or_else(|| self.header.clone(), value)
    }

    fn error(&mut self, spot: &Spot, problem: Problem) {
        self.reporter.job_error(spot, problem);
    }

    fn error_at(&mut self, names: &[&str], problem: Problem) {
        let spot = self.place(names);
        self.error(&spot, problem);
    }

    fn warn_at(&mut self, names: &[&str], problem: Problem) {
        let spot = self.place(names);
        self.reporter.job_warning(&spot, problem);
    }
}

/// Returns whether ops of a job are due at some time: by a rate, or by the times of a replay.
fn has_due_times(options: &Options) -> bool {
    let replay = &options.replay;
    let has_rate = |&d: &Direction| options.rate[d].is_some() || options.rate_iops[d].is_some();
    options.rw.directions().iter().any(has_rate) || !replay.logs.is_empty() && !replay.no_stall
}

fn writes(options: &Options) -> bool {
    options.rw.directions().contains(&Direction::Write)
}

fn smallest(size: &BlockSize) -> u64 {
    match size {
        BlockSize::Fixed(bytes) => *bytes,
        BlockSize::Range { min, .. } => *min,
        BlockSize::Split(entries) => entries.iter().map(|(bytes, _)| *bytes).min().unwrap_or(1),
    }
}

fn largest(size: &BlockSize) -> u64 {
    match size {
        BlockSize::Fixed(bytes) => *bytes,
        BlockSize::Range { max, .. } => *max,
        BlockSize::Split(entries) => entries.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1),
    }
}

fn value(written: &WrittenOption) -> Spot {
    written.value.as_ref().unwrap_or(&written.name).clone()
}

fn problem(code: &'static str, why: impl Into<String>) -> Problem {
    Problem::new(code, 0..0, why)
}

/// Limit of op sizes, which have 32 bits.
const OP_MAX: u64 = u32::MAX as u64;
