//! Options of single engines.

use super::general::U32;
use super::read::{byte, narrow};
use super::row::{Row, ValueKind};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "hipri",
        "0",
        "Poll for completions (IORING_SETUP_IOPOLL, RWF_HIPRI)",
        "hipri",
        ValueKind::Flag(|o, v| o.hipri = v),
    )
    .engines(&["io_uring", "pvsync2"]),
    Row::new(
        "fixedbufs",
        "0",
        "Register I/O buffers with the kernel in advance",
        "fixedbufs",
        ValueKind::Flag(|o, v| o.fixedbufs = v),
    )
    .engines(&["io_uring"]),
    Row::new(
        "registerfiles",
        "0",
        "Register files with the kernel in advance",
        "registerfiles",
        ValueKind::Flag(|o, v| o.registerfiles = v),
    )
    .engines(&["io_uring"]),
    Row::new(
        "sqthread_poll",
        "0",
        "Let a kernel thread poll the submission queue (SQPOLL)",
        "sqthread_poll",
        ValueKind::Flag(|o, v| o.sqthread_poll = v),
    )
    .engines(&["io_uring"])
    .different(
        "slat is reported and clat starts at submission; fio 3.33 reports no slat, and a clat \
         longer than the run",
    ),
    Row::new(
        "sqthread_poll_cpu",
        "",
        "CPU of the SQPOLL kernel thread",
        "sqthread_poll_cpu=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.sqthread_poll_cpu = Some(narrow(v)),
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "nonvectored",
        "-1",
        "Use IORING_OP_READ and IORING_OP_WRITE instead of the vectored ops",
        "nonvectored=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.nonvectored = v != 0,
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "force_async",
        "0",
        "Issue every Nth op with IOSQE_ASYNC; 0: never",
        "force_async=4",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.force_async = narrow(v),
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "uncached",
        "0",
        "Use the page cache, but drop the pages after I/O (RWF_DONTCACHE)",
        "uncached=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.uncached = v != 0,
        },
    )
    .engines(&["io_uring", "pvsync2"]),
    Row::new(
        "userspace_reap",
        "0",
        "Reap completions from the user-space ring without a system call",
        "userspace_reap",
        ValueKind::Flag(|o, v| o.userspace_reap = v),
    )
    .engines(&["libaio"]),
    Row::new(
        "nowait",
        "0",
        "Fail ops that would block with EAGAIN (RWF_NOWAIT)",
        "nowait=1",
        ValueKind::Bool(|o, v| o.nowait = v),
    )
    .engines(&["io_uring", "libaio", "pvsync2"]),
    Row::new(
        "libaio_vectored",
        "0",
        "Submit vectored ops with one buffer (IOCB_CMD_PREADV, IOCB_CMD_PWRITEV)",
        "libaio_vectored=1",
        ValueKind::Bool(|o, v| o.libaio_vectored = v),
    )
    .engines(&["libaio"]),
    Row::new(
        "hipri_percentage",
        "100",
        "Percentage of ops that poll with `hipri`",
        "hipri_percentage=50",
        ValueKind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.hipri_percentage = byte(v),
        },
    )
    .engines(&["pvsync2"]),
    Row::new(
        "thp",
        "",
        "Request transparent huge pages for the mapping (MADV_HUGEPAGE)",
        "thp=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thp = v != 0,
        },
    )
    .engines(&["mmap"]),
];
