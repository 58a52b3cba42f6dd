//! Jobs of the rows: fio's options, with `FILE`, `LOG` and the like to be filled in.

pub(super) const NULL: &[&str] = &[
    "--ioengine=null",
    "--rw=randread",
    "--bs=4k",
    "--size=1g",
    "--iodepth=32",
    "--norandommap",
];

/// The same at three million ops per second.
pub(super) const NULL_3M: &[&str] = &[
    "--ioengine=null",
    "--rw=randread",
    "--bs=4k",
    "--size=1g",
    "--iodepth=32",
    "--norandommap",
    "--rate_iops=3m",
];

/// One file each for slat, clat and lat.
pub(super) const LATENCY_LOGS: &[&str] = &["--write_lat_log=LOG"];
pub(super) const NULL_BATCH_8: &[&str] = &[
    "--ioengine=null",
    "--rw=randread",
    "--bs=4k",
    "--size=1g",
    "--iodepth=32",
    "--norandommap",
    "--iodepth_batch=8",
    "--iodepth_batch_complete_max=32",
];
/// Execution of ops by worker threads.
pub(super) const OFFLOAD: &[&str] = &["--io_submit_mode=offload"];
pub(super) const URING_CACHED: &[&str] = &[
    "--ioengine=io_uring",
    "--rw=randread",
    "--bs=4k",
    "--filename=FILE",
    "--invalidate=0",
    "--iodepth=32",
    "--iodepth_batch=8",
    "--iodepth_batch_complete_max=8",
    "--fixedbufs",
    "--registerfiles",
    "--norandommap",
];
/// As `fathom peak` does it: completions are reaped before each batch, all of them, so that the
/// buffers used last are used next, and files are opened without access times.
pub(super) const URING_AS_PEAK: &[&str] = &[
    "--ioengine=io_uring",
    "--rw=randread",
    "--bs=4k",
    "--filename=FILE",
    "--invalidate=0",
    "--iodepth=32",
    "--iodepth_batch=8",
    "--iodepth_batch_complete_min=0",
    "--iodepth_batch_complete_max=32",
    "--fixedbufs",
    "--registerfiles",
    "--norandommap",
    "--noatime=1",
];
/// As `fathom peak --complete=8` on a device whose ops complete later: it waits for 8 of them.
pub(super) const URING_DIRECT_AS_PEAK: &[&str] = &[
    "--ioengine=io_uring",
    "--rw=randread",
    "--bs=4k",
    "--filename=FILE",
    "--direct=1",
    "--iodepth=32",
    "--iodepth_batch=8",
    "--iodepth_batch_complete_min=8",
    "--iodepth_batch_complete_max=32",
    "--fixedbufs",
    "--registerfiles",
    "--norandommap",
];
pub(super) const URING_DIRECT: &[&str] = &[
    "--ioengine=io_uring",
    "--rw=randread",
    "--bs=4k",
    "--filename=FILE",
    "--iodepth=32",
    "--direct=1",
];
pub(super) const LIBAIO_DIRECT: &[&str] = &[
    "--ioengine=libaio",
    "--rw=randread",
    "--bs=4k",
    "--filename=FILE",
    "--iodepth=32",
    "--direct=1",
];
