//! Rows of the benchmark table.

use std::fmt;

use super::nvme::Nvme;
use super::truth::Truth;

/// One line of the table, or several if one run is compared with several figures.
#[derive(Debug)]
pub(crate) struct Row {
    /// Name, for `--only`.
    pub(crate) name: &'static str,
    /// Description, for the reader.
    pub(crate) what: &'static str,
    /// The programs to run and compare.
    pub(crate) method: Method,
    /// Options of the job, the same on both sides. `FILE` stands for the path of the target.
    pub(crate) job: &'static [&'static str],
    /// Target of the job.
    pub(crate) on: On,
    /// Required figures.
    pub(crate) checks: &'static [Check],
}

/// The programs to run and compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// Fathom, compared with fio on the same job.
    Fio,
    /// The job at half of its maximum rate, compared with that rate.
    HalfRate,
    /// `MANY_JOBS` jobs in one process on two cores, compared with two processes of one job, each
    /// on its own core.
    ManyJobs,
    /// The job, compared with `fathom peak` with these arguments on the same file.
    Peak(&'static [&'static str]),
    /// `fathom peak` with the second arguments, compared with fio's ring loop `t/io_uring` with the
    /// first, both on the row's target, if any.
    RingLoop(&'static [&'static str], &'static [&'static str]),
    /// The job with these options added, compared with the job without them. On two cores, because
    /// other threads write logs and execute offloaded ops. `LOG` stands for the logs' prefix.
    With(&'static [&'static str]),
    /// The job in virtual time on this machine file, compared with nothing; its virtual runtime
    /// takes about one second of wall time.
    Modelled(&'static str),
    /// Instructions of the job, counted by callgrind, compared with `xtask/baseline.json`.
    Counted,
    /// Instructions of the job with these options added, compared with the job without them.
    CountedWith(&'static [&'static str]),
    /// A target of NVMe/TCP; the row has no job of its own.
    Nvme(Nvme),
    /// Fathom's own share of latency or delay, compared with fio's on the same job.
    Truth(Truth),
}

/// Target of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Nothing that exists.
    Nothing,
    /// A file of random bytes.
    File,
    /// The same file, read before each run, so that it is in the page cache.
    CachedFile,
    /// A file that Fathom has written with `verify=crc32c` and 64k blocks, in the page cache.
    VerifiedFile,
    /// A zram device full of random bytes.
    Zram,
}

/// One required figure of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Quantity read from a run.
    pub(crate) measure: Measure,
    /// Name of the other side of the comparison.
    pub(crate) beside: &'static str,
    /// Required value.
    pub(crate) figure: Figure,
}

/// Quantity read from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Ops per second, reads and writes, from the program's own JSON.
    Iops,
    /// User CPU time per op, ns, from the program's own JSON: all its threads, as sampled by the
    /// kernel.
    UserTime,
    /// Ops per second of the whole process's wall time.
    WallIops,
    /// Peak resident memory of the process, MiB, from /proc.
    PeakMemory,
    /// Wall time, ms, of a whole process with one op: an upper bound of start to first I/O.
    WholeRun,
    /// User-space instructions per op.
    Instructions,
    /// Lines of I/O logs written per second of the job.
    KeptLines,
    /// Lines of I/O logs dropped.
    DroppedLines,
    /// The 99.9th percentile of the reads' clat, ns.
    Clat,
    /// The 99.99th percentile of the reads' lag, ns, which shows pauses of the job.
    Lag,
    /// Bytes per second of ops.
    Bandwidth,
    /// Mean of lat, µs.
    MeanLatency,
    /// Resident memory at one time, MiB, from /proc.
    Resident,
    /// Processor time, percent of a core.
    Processor,
    /// Time, ms, from the first packet of a new host to its first read.
    Join,
    /// Percentile of clat minus the device's time, ns; in per mille.
    ShareOfClat(u16),
    /// The same of lat.
    ShareOfLat(u16),
    /// The 99.9th percentile of the delay of submissions behind their schedule, ns.
    Deviation,
}

impl Measure {
    /// Returns whether the job runs for the requested time; otherwise it ends by itself.
    pub(crate) fn is_timed(self) -> bool {
        !matches!(
            self,
            Self::WholeRun | Self::Instructions | Self::ShareOfClat(_) | Self::ShareOfLat(_)
        )
    }

    /// Formats a value with its unit.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Iops | Self::WallIops if value >= 1e6 => format!("{:.2} M IOPS", value / 1e6),
            Self::Iops | Self::WallIops => format!("{:.1} k IOPS", value / 1e3),
            Self::UserTime | Self::Clat | Self::Lag => format!("{value:.1} ns"),
            Self::ShareOfClat(_) | Self::ShareOfLat(_) | Self::Deviation => {
                format!("{:.2} µs", value / 1e3)
            }
            Self::PeakMemory | Self::Resident => format!("{value:.1} MiB"),
            Self::WholeRun | Self::Join => format!("{value:.1} ms"),
            Self::Bandwidth => format!("{:.0} MiB/s ({:.2} GB/s)", value / MIB, value / 1e9),
            Self::MeanLatency => format!("{value:.2} µs"),
            Self::Processor => format!("{value:.2} %"),
            Self::Instructions => format!("{value:.1}"),
            Self::KeptLines => format!("{:.1} M lines/s", value / 1e6),
            Self::DroppedLines => format!("{value:.0} lines"),
        }
    }

    /// Suffix of the row's description; empty for the plain case.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Iops
            | Self::WallIops
            | Self::PeakMemory
            | Self::WholeRun
            | Self::Bandwidth
            | Self::Join => "",
            Self::MeanLatency => ": mean latency",
            Self::Resident => ": resident memory",
            Self::Processor => ": processor time",
            Self::UserTime => ": user CPU time per op",
            Self::Instructions => ": user-space instructions per op",
            Self::KeptLines => ": lines kept",
            Self::DroppedLines => ": lines dropped",
            Self::Clat => ": p99.9 of clat",
            Self::Lag => ": p99.99 of lag",
            Self::ShareOfClat(500) => ": clat − device, median",
            Self::ShareOfClat(_) => ": clat − device, p99",
            Self::ShareOfLat(500) => ": lat − device, median",
            Self::ShareOfLat(_) => ": lat − device, p99",
            Self::Deviation => ": p99.9 behind the schedule",
        }
    }
}

/// Required value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// Lower bound of the ratio of Fathom's value to the other.
    AtLeast(f64),
    /// Upper bound of that ratio.
    AtMost(f64),
    /// At most the other value; compared by difference, because values may be negative.
    NoMore,
    /// Largest distance of that ratio from 1.
    Held(f64),
    /// Upper bound of Fathom's own value.
    Limit(f64),
    /// Lower bound of Fathom's own value.
    Floor(f64),
}

/// Formats the figure, with the measure's unit and the name of the other side.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figure {
            Figure::AtLeast(ratio) => write!(f, "≥ {ratio:.2} × {}", self.beside),
            Figure::AtMost(ratio) => write!(f, "≤ {ratio:.2} × {}", self.beside),
            Figure::NoMore => write!(f, "≤ {}", self.beside),
            Figure::Held(share) => write!(f, "{} ± {:.1} %", self.beside, share * 100.0),
            Figure::Limit(limit) => write!(f, "≤ {}", self.measure.show(limit)),
            Figure::Floor(least) => write!(f, "≥ {}", self.measure.show(least)),
        }
    }
}

/// Jobs of `Method::ManyJobs`.
pub(crate) const MANY_JOBS: u32 = 512;

const MIB: f64 = 1024.0 * 1024.0;

/// Name of the kept count, which instruction counts must not exceed.
pub(crate) const KEPT: &str = "the kept count";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(measure: Measure, figure: Figure, want: &str) {
        let check = Check {
            measure,
            beside: "fio",
            figure,
        };
        assert_eq!(check.to_string(), want);
    }

    #[test]
    fn a_figure_is_printed_with_its_unit_and_the_other_side() {
        check(Measure::Iops, Figure::AtLeast(1.25), "≥ 1.25 × fio");
        check(Measure::UserTime, Figure::AtMost(0.5), "≤ 0.50 × fio");
        check(Measure::ShareOfClat(500), Figure::NoMore, "≤ fio");
        check(Measure::Iops, Figure::Held(0.001), "fio ± 0.1 %");
        check(Measure::PeakMemory, Figure::Limit(16.0), "≤ 16.0 MiB");
        check(Measure::Instructions, Figure::Limit(150.0), "≤ 150.0");
    }
}
