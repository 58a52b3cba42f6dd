//! The table of benchmark rows. The description (`what`) of a row names everything in which it
//! differs from its neighbours; its name is the key of the kept counts in `xtask/baseline.json`.

use super::jobs::{
    LATENCY_LOGS, LIBAIO_DIRECT, NULL, NULL_3M, NULL_BATCH_8, OFFLOAD, URING_AS_PEAK, URING_CACHED,
    URING_DIRECT, URING_DIRECT_AS_PEAK,
};
use super::row::{Check, Figure, KEPT, Measure, Method, On, Row};

/// All rows.
pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "null-batch-8",
        what: "null, randread 4k, depth 32, no random map, batches of 8, up to 32 reaped at once",
        method: Method::Fio,
        job: NULL_BATCH_8,
        on: On::Nothing,
        checks: &[iops(6.0)],
    },
    Row {
        name: "null",
        what: "null, randread 4k, depth 32, no random map",
        method: Method::Fio,
        job: NULL,
        on: On::Nothing,
        checks: &[iops(7.0)],
    },
    Row {
        name: "null-map-1g",
        what: "null, randread 4k, depth 32, random map over 1 GiB",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
        ],
        on: On::Nothing,
        checks: &[iops(6.0)],
    },
    Row {
        name: "null-map-1t",
        what: "null, randread 4k, depth 32, random map over 1 TiB",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1t",
            "--iodepth=32",
        ],
        on: On::Nothing,
        checks: &[iops(5.0)],
    },
    Row {
        name: "null-zipf",
        what: "null, randread 4k, depth 32, zipf:1.1 over 1 GiB",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
            "--norandommap",
            "--random_distribution=zipf:1.1",
        ],
        on: On::Nothing,
        checks: &[iops(5.0)],
    },
    Row {
        name: "null-rate",
        what: "null, randread 4k, depth 32, no random map, rate_iops at half of the maximum",
        method: Method::HalfRate,
        job: NULL,
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::Iops,
            beside: "the requested rate",
            figure: Figure::Held(0.001),
        }],
    },
    Row {
        name: "null-depth-1",
        what: "null, randread 4k, depth 1, no random map",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=1",
            "--norandommap",
        ],
        on: On::Nothing,
        checks: &[iops(2.0)],
    },
    Row {
        name: "null-512-jobs",
        what: "null, randread 4k, depth 32, no random map, 512 jobs on two cores",
        method: Method::ManyJobs,
        job: NULL,
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::WallIops,
            beside: "two single jobs",
            figure: Figure::AtLeast(0.9),
        }],
    },
    Row {
        name: "uring-cached",
        what: "io_uring, randread 4k from the page cache, depth 32, batches of 8, fixed buffers, \
               registered files",
        method: Method::Fio,
        job: URING_CACHED,
        on: On::CachedFile,
        checks: &[iops(1.25)],
    },
    Row {
        name: "uring-peak",
        what: "the same beside `fathom peak`",
        method: Method::Peak(&["--depth=32", "--submit=8", "--complete=8", "--buffered"]),
        job: URING_CACHED,
        on: On::CachedFile,
        checks: &[Check {
            measure: Measure::Iops,
            beside: "peak",
            figure: Figure::AtLeast(0.9),
        }],
    },
    Row {
        name: "run-over-peak",
        what: "io_uring from the page cache with the settings of `fathom peak`",
        method: Method::Peak(&["--depth=32", "--submit=8", "--complete=8", "--buffered"]),
        job: URING_AS_PEAK,
        on: On::CachedFile,
        checks: RUN_OVER_PEAK,
    },
    Row {
        name: "run-over-peak-zram",
        what: "the same, O_DIRECT on zram",
        method: Method::Peak(&["--depth=32", "--submit=8", "--complete=8"]),
        job: URING_DIRECT_AS_PEAK,
        on: On::Zram,
        checks: RUN_OVER_PEAK,
    },
    Row {
        name: "peak-cached",
        what: "`fathom peak`, random 4k reads from the page cache, depth 32, batches of 8",
        method: Method::RingLoop(
            &["-d32", "-s8", "-c8", "-b4096", "-p0", "-O0"],
            &["--depth=32", "--submit=8", "--complete=8", "--buffered"],
        ),
        job: &[],
        on: On::CachedFile,
        checks: RING_LOOP,
    },
    Row {
        name: "peak-nop",
        what: "`fathom peak`, no-ops, depth 128, batches of 32",
        method: Method::RingLoop(&["-d128", "-s32", "-c32", "-p0", "-N1"], &["--nop"]),
        job: &[],
        on: On::Nothing,
        checks: RING_LOOP,
    },
    Row {
        name: "verify-cached",
        what: "io_uring, read 64k from the page cache, depth 32, verify=crc32c",
        method: Method::Fio,
        job: &[
            "--ioengine=io_uring",
            "--rw=read",
            "--bs=64k",
            "--filename=FILE",
            "--invalidate=0",
            "--iodepth=32",
            "--verify=crc32c",
        ],
        on: On::VerifiedFile,
        checks: &[iops(1.5)],
    },
    Row {
        name: "uring-direct",
        what: "io_uring, randread 4k, depth 32, O_DIRECT on a file",
        method: Method::Fio,
        job: URING_DIRECT,
        on: On::File,
        checks: DEVICE,
    },
    Row {
        name: "libaio-direct",
        what: "libaio, randread 4k, depth 32, O_DIRECT on a file",
        method: Method::Fio,
        job: LIBAIO_DIRECT,
        on: On::File,
        checks: DEVICE,
    },
    Row {
        name: "uring-zram",
        what: "io_uring, randread 4k, depth 32, O_DIRECT on zram",
        method: Method::Fio,
        job: URING_DIRECT,
        on: On::Zram,
        checks: DEVICE,
    },
    Row {
        name: "libaio-zram",
        what: "libaio, randread 4k, depth 32, O_DIRECT on zram",
        method: Method::Fio,
        job: LIBAIO_DIRECT,
        on: On::Zram,
        checks: DEVICE,
    },
    Row {
        name: "psync-cached",
        what: "psync, randread 4k from the page cache",
        method: Method::Fio,
        job: &[
            "--ioengine=psync",
            "--rw=randread",
            "--bs=4k",
            "--filename=FILE",
            "--invalidate=0",
        ],
        on: On::CachedFile,
        checks: &[iops(1.0)],
    },
    Row {
        name: "log",
        what: "null, randread 4k, depth 32, no random map, every op in three logs \
               (write_lat_log), in memory, two cores",
        method: Method::With(LATENCY_LOGS),
        job: NULL,
        on: On::Nothing,
        checks: &[
            Check {
                measure: Measure::Iops,
                beside: "without a log",
                figure: Figure::AtLeast(0.7),
            },
            Check {
                measure: Measure::KeptLines,
                beside: "without a log",
                figure: Figure::Floor(8e6),
            },
        ],
    },
    Row {
        name: "offload-null",
        what: "null, randread 4k, depth 256, no random map, batches of 32, offloaded to worker \
               threads (io_submit_mode=offload), two cores: 120 ns per op",
        method: Method::With(OFFLOAD),
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=256",
            "--iodepth_batch=32",
            "--iodepth_batch_complete_max=32",
            "--norandommap",
        ],
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::Iops,
            beside: "without offloading",
            figure: Figure::Floor(1e9 / 120.0),
        }],
    },
    Row {
        name: "offload-cached",
        what: "libaio, randread 4k from the page cache, depth 32, batches of 8, offloaded to \
               worker threads, two cores",
        method: Method::With(OFFLOAD),
        job: &[
            "--ioengine=libaio",
            "--rw=randread",
            "--bs=4k",
            "--filename=FILE",
            "--invalidate=0",
            "--iodepth=32",
            "--iodepth_batch=8",
            "--iodepth_batch_complete_max=8",
            "--norandommap",
        ],
        on: On::CachedFile,
        checks: &[Check {
            measure: Measure::Iops,
            beside: "without offloading",
            figure: Figure::AtLeast(0.9),
        }],
    },
    Row {
        name: "log-3m",
        what: "the same at rate_iops=3m",
        method: Method::With(LATENCY_LOGS),
        job: NULL_3M,
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::DroppedLines,
            beside: "without a log",
            figure: Figure::Limit(0.0),
        }],
    },
    Row {
        name: "log-3m-memory",
        what: "resident memory: null at rate_iops=3m, every op in three logs",
        method: Method::With(LATENCY_LOGS),
        job: NULL_3M,
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::PeakMemory,
            beside: "without a log",
            figure: Figure::Limit(96.0),
        }],
    },
    Row {
        name: "log-100k",
        what: "psync, randread 4k from the page cache at rate_iops=100000, every op in logs",
        method: Method::With(LATENCY_LOGS),
        job: &[
            "--ioengine=psync",
            "--rw=randread",
            "--bs=4k",
            "--filename=FILE",
            "--invalidate=0",
            "--rate_iops=100000",
        ],
        on: On::CachedFile,
        checks: &[
            no_more_than_without(Measure::Clat),
            no_more_than_without(Measure::Lag),
        ],
    },
    Row {
        name: "memory-1",
        what: "resident memory: null, random map over 1 GiB, 1 job",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
        ],
        on: On::Nothing,
        checks: &[limit(Measure::PeakMemory, 16.0)],
    },
    Row {
        name: "memory-512",
        what: "resident memory: the same, 512 jobs",
        method: Method::Fio,
        job: &[
            "--ioengine=null",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--iodepth=32",
            "--numjobs=512",
            "--group_reporting",
        ],
        on: On::Nothing,
        checks: &[limit(Measure::PeakMemory, 256.0)],
    },
    Row {
        name: "start",
        what: "start to first I/O: whole process of one 4k psync read of an existing file",
        method: Method::Fio,
        job: &[
            "--ioengine=psync",
            "--rw=read",
            "--bs=4k",
            "--filename=FILE",
            "--io_size=4k",
        ],
        on: On::File,
        checks: &[limit(Measure::WholeRun, 30.0)],
    },
    Row {
        name: "virtual-time",
        what: "virtual time, one core: 32 jobs, randread 4k, depth 1, on a device of constant \
               latency: modelled ops per second of real time",
        method: Method::Modelled("examples/machines/constant.toml"),
        job: &[
            "--filename=/dev/modelled",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=randread",
            "--bs=4k",
            "--size=1g",
            "--numjobs=32",
            "--norandommap",
        ],
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::WallIops,
            beside: "itself",
            figure: Figure::Floor(1.5e6),
        }],
    },
    Row {
        name: "virtual-zones",
        what: "virtual time, one core: 8 jobs, zonemode=zbd, randwrite 4k, depth 1: modelled ops \
               per second of real time",
        method: Method::Modelled("examples/machines/zoned.toml"),
        job: &[
            "--filename=/dev/sdz",
            "--ioengine=libaio",
            "--direct=1",
            "--rw=randwrite",
            "--bs=4k",
            "--zonemode=zbd",
            "--numjobs=8",
            "--norandommap",
        ],
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::WallIops,
            beside: "itself",
            figure: Figure::Floor(1e6),
        }],
    },
    Row {
        name: "instructions",
        what: "null, randread 4k, depth 32, no random map",
        method: Method::Counted,
        job: NULL,
        on: On::Nothing,
        checks: COUNTED,
    },
    Row {
        name: "instructions-batch-8",
        what: "the same in batches of 8, up to 32 reaped at once",
        method: Method::Counted,
        job: NULL_BATCH_8,
        on: On::Nothing,
        checks: COUNTED,
    },
    Row {
        name: "instructions-rate",
        what: "null, randread 4k, depth 32, no random map, behind schedule at rate_iops=5m",
        method: Method::CountedWith(&["--rate_iops=5m"]),
        job: NULL,
        on: On::Nothing,
        checks: &[Check {
            measure: Measure::Instructions,
            beside: "without a rate",
            figure: Figure::AtMost(1.5),
        }],
    },
];

/// Requires that logs do not raise a measure.
const fn no_more_than_without(measure: Measure) -> Check {
    Check {
        measure,
        beside: "without a log",
        figure: Figure::AtMost(1.0),
    }
}

/// Compares Fathom's IOPS with fio's.
const fn iops(least: f64) -> Check {
    Check {
        measure: Measure::Iops,
        beside: "fio",
        figure: Figure::AtLeast(least),
    }
}

/// Limits Fathom's own value; fio's is shown beside it.
const fn limit(measure: Measure, most: f64) -> Check {
    Check {
        measure,
        beside: "fio",
        figure: Figure::Limit(most),
    }
}

/// Jobs limited by the device: no slower than fio, at half of the CPU time.
const DEVICE: &[Check] = &[
    iops(1.0),
    Check {
        measure: Measure::UserTime,
        beside: "fio",
        figure: Figure::AtMost(0.5),
    },
];
/// A job beside `fathom peak`: what its statistics and rules cost.
const RUN_OVER_PEAK: &[Check] = &[Check {
    measure: Measure::Iops,
    beside: "peak",
    figure: Figure::AtLeast(0.97),
}];
/// `fathom peak` beside fio's ring loop.
const RING_LOOP: &[Check] = &[Check {
    measure: Measure::Iops,
    beside: "t/io_uring",
    figure: Figure::AtLeast(0.98),
}];
/// Instruction counts: below a fixed limit, and no growth over the kept count.
const COUNTED: &[Check] = &[
    Check {
        measure: Measure::Instructions,
        beside: KEPT,
        figure: Figure::Limit(150.0),
    },
    Check {
        measure: Measure::Instructions,
        beside: KEPT,
        figure: Figure::AtMost(1.05),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            let earlier = &ROWS[..index];
            assert!(
                earlier.iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn every_row_reads_what_its_job_names() {
        for row in ROWS {
            if matches!(row.method, Method::RingLoop(..)) {
                continue;
            }
            let names_file = row.job.contains(&"--filename=FILE");
            assert_eq!(names_file, row.on != On::Nothing, "{}", row.name);
        }
    }

    #[test]
    fn every_row_measures_what_its_method_can() {
        for row in ROWS {
            for check in row.checks {
                let fits = match row.method {
                    Method::Fio => {
                        !matches!(check.measure, Measure::Instructions | Measure::WallIops)
                    }
                    Method::ManyJobs | Method::Modelled(_) => check.measure == Measure::WallIops,
                    Method::HalfRate | Method::Peak(_) | Method::RingLoop(..) => {
                        check.measure == Measure::Iops
                    }
                    Method::With(_) => matches!(
                        check.measure,
                        Measure::Iops
                            | Measure::PeakMemory
                            | Measure::KeptLines
                            | Measure::DroppedLines
                            | Measure::Clat
                            | Measure::Lag
                    ),
                    Method::Nvme(_) | Method::Truth(_) => false,
                    Method::Counted | Method::CountedWith(_) => {
                        check.measure == Measure::Instructions
                    }
                };
                assert!(fits, "{}", row.name);
                // These need special runs, which other checks cannot share.
                let alone = matches!(check.measure, Measure::PeakMemory | Measure::WholeRun);
                assert!(!alone || row.checks.len() == 1, "{}", row.name);
            }
        }
    }
}
