//! The table of what is measured: one row a line of `docs/BENCHMARKS.md`.

use std::fmt;

/// One comparison.
#[derive(Debug)]
pub(crate) struct Row {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// For the reader.
    pub(crate) what: &'static str,
    /// Options that both programs get, word for word. `FILE` stands for the test file's path.
    pub(crate) job: &'static [&'static str],
    /// What is done before each run.
    pub(crate) before: Before,
    /// What is read off a run.
    pub(crate) measure: Measure,
    /// What is to be reached.
    pub(crate) figure: Figure,
}

impl Row {
    /// Whether the job uses the test file.
    pub(crate) fn needs_file(&self) -> bool {
        self.job.iter().any(|word| word.contains("FILE"))
    }
}

/// What is done before each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing.
    Nothing,
    /// The test file is read once, so that all of it is in the page cache.
    ReadFile,
}

/// What is read off a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Ops per second, read and write together, from the program's own JSON.
    Iops,
    /// The largest resident memory of the process, from /proc.
    PeakMemory,
    /// Wall time of a whole process that does one op: an upper bound of start to first I/O.
    WholeRun,
}

impl Measure {
    /// Whether the job runs for the time that the user asked for; else it ends by itself.
    pub(crate) fn is_timed(self) -> bool {
        match self {
            Self::Iops | Self::PeakMemory => true,
            Self::WholeRun => false,
        }
    }
}

/// What is to be reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// The median ratio of fathom's figure to fio's, at least.
    Ratio(f64),
    /// Fathom's own median, MiB, at most.
    Mebibytes(f64),
    /// Fathom's own median, milliseconds, at most.
    Milliseconds(f64),
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(ratio) => write!(f, "≥ {ratio:.1} × fio"),
            Self::Mebibytes(limit) => write!(f, "≤ {limit} MiB"),
            Self::Milliseconds(limit) => write!(f, "≤ {limit} ms"),
        }
    }
}

/// All rows. Whoever adds one says in `what` all that tells it from its neighbours.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "null-norandommap",
        what: "null, randread 4k, iodepth 32, norandommap",
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
            "--norandommap",
        ],
        before: Before::Nothing,
        measure: Measure::Iops,
        figure: Figure::Ratio(4.0),
    },
    Row {
        name: "null-map-1g",
        what: "null, randread 4k, iodepth 32, random map over 1 GiB",
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
        ],
        before: Before::Nothing,
        measure: Measure::Iops,
        figure: Figure::Ratio(4.0),
    },
    Row {
        name: "null-map-1t",
        what: "null, randread 4k, iodepth 32, random map over 1 TiB",
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1t",
            "--iodepth=32",
        ],
        before: Before::Nothing,
        measure: Measure::Iops,
        figure: Figure::Ratio(4.0),
    },
    Row {
        name: "uring-direct",
        what: "io_uring, randread 4k, O_DIRECT on a file, iodepth 32",
        job: &[
            "--ioengine=io_uring",
            "--rw=randread",
            "--bs=4k",
            "--filename=FILE",
            "--iodepth=32",
            "--direct=1",
        ],
        before: Before::Nothing,
        measure: Measure::Iops,
        figure: Figure::Ratio(1.0),
    },
    Row {
        name: "psync-cached",
        what: "psync, randread 4k, from the page cache",
        job: &[
            "--ioengine=psync",
            "--rw=randread",
            "--bs=4k",
            "--filename=FILE",
            "--invalidate=0",
        ],
        before: Before::ReadFile,
        measure: Measure::Iops,
        figure: Figure::Ratio(1.0),
    },
    Row {
        name: "memory-1",
        what: "resident memory: null, random map over 1 GiB, 1 job",
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
        ],
        before: Before::Nothing,
        measure: Measure::PeakMemory,
        figure: Figure::Mebibytes(16.0),
    },
    Row {
        name: "memory-512",
        what: "resident memory: the same, 512 jobs",
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
            "--numjobs=512",
            "--group_reporting",
        ],
        before: Before::Nothing,
        measure: Measure::PeakMemory,
        figure: Figure::Mebibytes(256.0),
    },
    Row {
        name: "start",
        what: "start to first I/O: whole process of one 4k psync read of an existing file",
        job: &[
            "--ioengine=psync",
            "--rw=read",
            "--bs=4k",
            "--filename=FILE",
            "--io_size=4k",
        ],
        before: Before::Nothing,
        measure: Measure::WholeRun,
        figure: Figure::Milliseconds(30.0),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_figures_fit_their_measure() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(
                ROWS[..index].iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
            let fits = match row.measure {
                Measure::Iops => matches!(row.figure, Figure::Ratio(_)),
                Measure::PeakMemory => matches!(row.figure, Figure::Mebibytes(_)),
                Measure::WholeRun => matches!(row.figure, Figure::Milliseconds(_)),
            };
            assert!(fits, "{}", row.name);
        }
    }
}
