//! Rows of the benchmark table.

use std::fmt;

/// One line of the table, or several where one run is judged by several figures.
#[derive(Debug)]
pub(crate) struct Row {
    /// Name, for `--only`.
    pub(crate) name: &'static str,
    /// Description, for the reader.
    pub(crate) what: &'static str,
    /// The programs to run and compare.
    pub(crate) method: Method,
    /// Options of the job; both sides get them, word for word. `FILE` stands for the path of what
    /// is read.
    pub(crate) job: &'static [&'static str],
    /// Target of the job.
    pub(crate) on: On,
    /// Figures that judge the runs.
    pub(crate) checks: &'static [Check],
}

/// The programs to run and compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// The job by fathom, beside the same job by fio.
    Fio,
    /// The job at half of what it reaches, beside the job as fast as it goes.
    HalfRate,
    /// `MANY` jobs in one process on two cores, beside two processes of one job, each on a core.
    ManyJobs,
    /// The job, beside `fathom peak` with these words on the same file.
    Peak(&'static [&'static str]),
    /// `fathom peak` with the second words, beside fio's own ring loop `t/io_uring` with the
    /// first, both on what the row reads, if that is anything.
    RingLoop(&'static [&'static str], &'static [&'static str]),
    /// The job with these words added, beside the job without: on two cores, as logs are written
    /// and ops are offloaded by other threads. `LOG` stands for the prefix of the logs' names.
    With(&'static [&'static str]),
    /// The job in virtual time on the machine of this file, beside nothing: as many seconds of it
    /// as take about one.
    Modelled(&'static str),
    /// Instructions of the job, counted by callgrind, beside those kept in `xtask/baseline.json`.
    Counted,
    /// Instructions of the job with these words added, beside those of the job without.
    CountedWith(&'static [&'static str]),
}

/// Target of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Nothing that exists.
    Nothing,
    /// A file of random bytes.
    File,
    /// The same, read through before each run, so that all of it is in the page cache.
    CachedFile,
    /// A compressed disk in memory, full of random bytes.
    Zram,
}

/// One figure, and what it is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Quantity read from a run.
    pub(crate) measure: Measure,
    /// Owner of the figure that Fathom's is compared with.
    pub(crate) beside: &'static str,
    /// Required value.
    pub(crate) figure: Figure,
}

/// Quantity read from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Ops per second, read and write together, from the program's own JSON.
    Iops,
    /// Nanoseconds of user CPU time for each op, from the program's own JSON: all threads of it,
    /// as the kernel sampled them.
    UserTime,
    /// Ops per second of the whole process's wall time.
    WallIops,
    /// The largest resident memory of the process, MiB, from /proc.
    PeakMemory,
    /// Wall time, ms, of a whole process that does one op: an upper bound of start to first I/O.
    WholeRun,
    /// User-space instructions for each op.
    Instructions,
    /// Lines of I/O logs that were written, for each second of the job.
    KeptLines,
    /// Lines of I/O logs that were dropped.
    DroppedLines,
    /// The 99.9th percentile of the reads' clat, ns.
    Clat,
    /// The 99.99th percentile of how late the reads began, ns: a pause of the job is seen here.
    Lag,
}

impl Measure {
    /// Returns whether the job runs for the requested time; otherwise it ends by itself.
    pub(crate) fn is_timed(self) -> bool {
        !matches!(self, Self::WholeRun | Self::Instructions)
    }

    /// A value with its unit.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Iops | Self::WallIops if value >= 1e6 => format!("{:.2} M IOPS", value / 1e6),
            Self::Iops | Self::WallIops => format!("{:.1} k IOPS", value / 1e3),
            Self::UserTime | Self::Clat | Self::Lag => format!("{value:.1} ns"),
            Self::PeakMemory => format!("{value:.1} MiB"),
            Self::WholeRun => format!("{value:.1} ms"),
            Self::Instructions => format!("{value:.1}"),
            Self::KeptLines => format!("{:.1} M lines/s", value / 1e6),
            Self::DroppedLines => format!("{value:.0} lines"),
        }
    }

    /// Suffix of the row's description; empty for the plain case.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Iops | Self::WallIops | Self::PeakMemory | Self::WholeRun => "",
            Self::UserTime => ": user CPU time per op",
            Self::Instructions => ": user-space instructions per op",
            Self::KeptLines => ": lines kept",
            Self::DroppedLines => ": lines dropped",
            Self::Clat => ": p99.9 of clat",
            Self::Lag => ": p99.99 of lag",
        }
    }
}

/// Required value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// The ratio of fathom's value to the other, at least.
    AtLeast(f64),
    /// The same ratio, at most.
    AtMost(f64),
    /// The same ratio, no further from 1 than this.
    Held(f64),
    /// Fathom's own value, at most.
    Limit(f64),
    /// Fathom's own value, at least.
    Floor(f64),
}

/// A figure as it is printed: it needs the unit and the other's name.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figure {
            Figure::AtLeast(ratio) => write!(f, "≥ {ratio:.2} × {}", self.beside),
            Figure::AtMost(ratio) => write!(f, "≤ {ratio:.2} × {}", self.beside),
            Figure::Held(share) => write!(f, "{} ± {:.1} %", self.beside, share * 100.0),
            Figure::Limit(limit) => write!(f, "≤ {}", self.measure.show(limit)),
            Figure::Floor(least) => write!(f, "≥ {}", self.measure.show(least)),
        }
    }
}

/// Jobs of `Method::ManyJobs`.
pub(crate) const MANY: u32 = 512;

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
        check(Measure::Iops, Figure::Held(0.001), "fio ± 0.1 %");
        check(Measure::PeakMemory, Figure::Limit(16.0), "≤ 16.0 MiB");
        check(Measure::Instructions, Figure::Limit(150.0), "≤ 150.0");
    }
}
