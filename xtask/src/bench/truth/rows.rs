//! Rows of `cargo xtask bench truth`.

use super::super::row::{Check, Figure, Measure, Method, On, Row};
use super::Truth;

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    share("disk-uring-1", "disk, io_uring, depth 1", On::File, URING_1),
    share(
        "disk-uring-32",
        "disk, io_uring, depth 32",
        On::File,
        URING_32,
    ),
    share("disk-libaio-1", "disk, libaio, depth 1", On::File, LIBAIO_1),
    share(
        "disk-libaio-32",
        "disk, libaio, depth 32",
        On::File,
        LIBAIO_32,
    ),
    share("disk-psync", "disk, psync", On::File, PSYNC),
    share("zram-uring-1", "zram, io_uring, depth 1", On::Zram, URING_1),
    share(
        "zram-uring-32",
        "zram, io_uring, depth 32",
        On::Zram,
        URING_32,
    ),
    share("zram-libaio-1", "zram, libaio, depth 1", On::Zram, LIBAIO_1),
    share(
        "zram-libaio-32",
        "zram, libaio, depth 32",
        On::Zram,
        LIBAIO_32,
    ),
    share("zram-psync", "zram, psync", On::Zram, PSYNC),
    schedule("rate-1k", "1,000 IOPS", 1_000),
    schedule("rate-10k", "10,000 IOPS", 10_000),
    schedule("rate-100k", "100,000 IOPS", 100_000),
];

const fn share(
    name: &'static str,
    what: &'static str,
    on: On,
    job: &'static [&'static str],
) -> Row {
    Row {
        name,
        what,
        method: Method::Truth(Truth::Share),
        job,
        on,
        checks: SHARES,
    }
}

const fn schedule(name: &'static str, what: &'static str, rate: u32) -> Row {
    Row {
        name,
        what,
        method: Method::Truth(Truth::Schedule(rate)),
        job: RATE,
        on: On::CachedFile,
        checks: &[Check {
            measure: Measure::Deviation,
            beside: "fio",
            figure: Figure::AtMost(0.5),
        }],
    }
}

/// Checks of a row of latencies.
const SHARES: &[Check] = &[
    no_more(Measure::ShareOfClat(500)),
    no_more(Measure::ShareOfClat(990)),
    no_more(Measure::ShareOfLat(500)),
    no_more(Measure::ShareOfLat(990)),
];

const fn no_more(measure: Measure) -> Check {
    Check {
        measure,
        beside: "fio",
        figure: Figure::NoMore,
    }
}

/// Defines the job of an engine and depth: with the random map, so that each offset is read once.
macro_rules! job {
    ($($word:literal),*) => {
        &[
            "--filename=FILE",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            $($word),*
        ]
    };
}

const URING_1: &[&str] = job!("--ioengine=io_uring", "--iodepth=1");
const URING_32: &[&str] = job!("--ioengine=io_uring", "--iodepth=32");
const LIBAIO_1: &[&str] = job!("--ioengine=libaio", "--iodepth=1");
const LIBAIO_32: &[&str] = job!("--ioengine=libaio", "--iodepth=32");
const PSYNC: &[&str] = job!("--ioengine=psync");

/// From the page cache, so that no device delays an op.
const RATE: &[&str] = &[
    "--filename=FILE",
    "--rw=randread",
    "--bs=4k",
    "--norandommap=1",
    "--ioengine=psync",
    // Or the job would begin by dropping the file from the page cache.
    "--invalidate=0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_a_target_of_its_own() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(row.job.contains(&"--filename=FILE"), "{}", row.name);
            let mut earlier = ROWS[..index].iter();
            let repeated = earlier.any(|other| other.name == row.name || other.what == row.what);
            assert!(!repeated, "{}", row.name);
        }
    }

    #[test]
    fn offsets_are_read_once_where_they_identify_ops() {
        for row in ROWS
            .iter()
            .filter(|row| row.method == Method::Truth(Truth::Share))
        {
            assert!(!row.job.iter().any(|word| word.contains("norandommap")));
            assert!(row.checks.iter().all(|check| !check.measure.is_timed()));
        }
    }
}
