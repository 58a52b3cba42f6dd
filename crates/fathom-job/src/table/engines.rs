//! Options that only some engines have.

use super::general::U32;
use super::read::{byte, narrow};
use super::row::{Kind, Row};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "hipri",
        "0",
        "Poll for completions (IOPOLL, RWF_HIPRI)",
        "hipri",
        Kind::Flag(|o, v| o.hipri = v),
    )
    .engines(&["io_uring", "pvsync2"]),
    Row::new(
        "fixedbufs",
        "0",
        "Register the buffers with the kernel beforehand",
        "fixedbufs",
        Kind::Flag(|o, v| o.fixedbufs = v),
    )
    .engines(&["io_uring"]),
    Row::new(
        "registerfiles",
        "0",
        "Register the files with the kernel beforehand",
        "registerfiles",
        Kind::Flag(|o, v| o.registerfiles = v),
    )
    .engines(&["io_uring"]),
    Row::new(
        "sqthread_poll",
        "0",
        "Let a kernel thread take ops off the queue (SQPOLL)",
        "sqthread_poll",
        Kind::Flag(|o, v| o.sqthread_poll = v),
    )
    .engines(&["io_uring"])
    .different(
        "slat is told, and clat begins when an op is handed over; fio 3.33 has no slat there, and \
         a clat longer than the run",
    ),
    Row::new(
        "sqthread_poll_cpu",
        "",
        "The processor of that kernel thread",
        "sqthread_poll_cpu=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.sqthread_poll_cpu = Some(narrow(v)),
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "nonvectored",
        "-1",
        "Use the plain read and write ops, not those with vectors",
        "nonvectored=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.nonvectored = v != 0,
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "force_async",
        "0",
        "Have every so manieth op done by a kernel worker",
        "force_async=4",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.force_async = narrow(v),
        },
    )
    .engines(&["io_uring"]),
    Row::new(
        "uncached",
        "0",
        "Go through the page cache, but leave nothing in it (RWF_DONTCACHE)",
        "uncached=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.uncached = v != 0,
        },
    )
    .engines(&["io_uring", "pvsync2"]),
    Row::new(
        "userspace_reap",
        "0",
        "Take completions off the ring without a system call",
        "userspace_reap",
        Kind::Flag(|o, v| o.userspace_reap = v),
    )
    .engines(&["libaio"]),
    Row::new(
        "nowait",
        "0",
        "Have ops that would wait fail at once with EAGAIN (RWF_NOWAIT)",
        "nowait=1",
        Kind::Bool(|o, v| o.nowait = v),
    )
    .engines(&["io_uring", "libaio", "pvsync2"]),
    Row::new(
        "libaio_vectored",
        "0",
        "Submit ops as vectors of one buffer (IOCB_CMD_PREADV, IOCB_CMD_PWRITEV)",
        "libaio_vectored=1",
        Kind::Bool(|o, v| o.libaio_vectored = v),
    )
    .engines(&["libaio"]),
    Row::new(
        "hipri_percentage",
        "100",
        "How many of the ops poll with `hipri`, in percent",
        "hipri_percentage=50",
        Kind::Int {
            min: 0,
            max: 100,
            set: |o, v| o.hipri_percentage = byte(v),
        },
    )
    .engines(&["pvsync2"]),
    Row::new(
        "thp",
        "",
        "Ask for huge pages behind the mapping (MADV_HUGEPAGE)",
        "thp=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.thp = v != 0,
        },
    )
    .engines(&["mmap"]),
];
