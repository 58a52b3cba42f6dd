//! Runs, calls and errnos of the test, and the expected effects.

/// Kinds of runs: name, arguments, bytes that the jobs move. The first is the simplest.
pub(crate) const RUNS: [(&str, &str, u64); 23] = [
    ("psync", "--rw=randrw", 64 << 10),
    ("sync", "--rw=write --fsync=4 --end_fsync=1", 64 << 10),
    ("pvsync2", "--ioengine=pvsync2 --rw=randrw", 64 << 10),
    ("mmap", "--ioengine=mmap --rw=randrw --fsync=4", 64 << 10),
    (
        "libaio",
        "--ioengine=libaio --direct=1 --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "io_uring",
        "--ioengine=io_uring --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "io_uring_fixed",
        "--ioengine=io_uring --iodepth=4 --fixedbufs=1 --registerfiles=1 --fsync=4 --rw=randwrite",
        64 << 10,
    ),
    (
        "sqpoll",
        "--ioengine=io_uring --iodepth=4 --sqthread_poll=1 --rw=randread",
        64 << 10,
    ),
    (
        "offload",
        "--io_submit_mode=offload --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "offload_io_uring",
        "--io_submit_mode=offload --ioengine=io_uring --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "offload_libaio",
        "--io_submit_mode=offload --ioengine=libaio --direct=1 --iodepth=4 --rw=randrw",
        64 << 10,
    ),
    (
        "logs",
        "--rw=read --write_lat_log=log --write_bw_log=log --output=report",
        64 << 10,
    ),
    (
        "hooks",
        "--rw=read --exec_prerun=true --exec_postrun=true",
        64 << 10,
    ),
    ("trim", "--rw=randtrim", 64 << 10),
    ("cgroup", "--rw=read --cgroup=fathom-inject-@", 64 << 10),
    (
        "pace",
        "--rw=read --rate_iops=200 --numjobs=2 --pre_read=1",
        128 << 10,
    ),
    (
        "posixaio",
        "--ioengine=posixaio --iodepth=4 --rw=randrw --fsync=4",
        64 << 10,
    ),
    (
        "splice",
        "--ioengine=splice --rw=randrw --fsync=4",
        64 << 10,
    ),
    ("falloc", "--ioengine=falloc --rw=trimwrite", 128 << 10),
    (
        "ftruncate",
        "--ioengine=ftruncate --rw=write --filename=made",
        64 << 10,
    ),
    (
        "filecreate",
        "--ioengine=filecreate --filename=made1:made2:made3 --rw=write",
        12 << 10,
    ),
    (
        "filedelete",
        "--ioengine=filedelete --filename=made1:made2:made3 --rw=write",
        12 << 10,
    ),
    (
        "dirdelete",
        "--ioengine=dirdelete --filename=made1:made2:made3",
        12 << 10,
    ),
];

/// Expected effect of a call that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The run completes and exits with 0.
    Harmless,
    /// The run exits with another code.
    Failed,
    /// The call is the loader's, the allocator's or the standard library's, which end the process
    /// by a signal or a panic of their own.
    Runtime,
    /// One of the first two.
    Either,
}

use Expected::{Either, Failed, Harmless, Runtime};

/// Calls, errnos (none: all), and the expected effect; the first matching row applies.
pub(crate) const EXPECTED: &[(&str, &str, Expected)] = &[
    // Signals break off what is begun again.
    (
        "pread64 pwrite64 preadv pwritev fsync fdatasync msync",
        "EINTR",
        Harmless,
    ),
    (
        "fallocate io_submit io_getevents io_uring_enter",
        "EINTR",
        Harmless,
    ),
    ("waitid clock_nanosleep openat read", "EINTR", Harmless),
    // The kernel is out of requests for a moment.
    ("io_submit", "EAGAIN", Harmless),
    ("splice vmsplice unlink rmdir", "EINTR", Harmless),
    // What the user asked for.
    ("splice vmsplice", "", Failed),
    ("pwrite64 preadv pwritev fsync fdatasync msync", "", Failed),
    ("io_getevents", "", Failed),
    // What can only be passed over.
    (
        "madvise sched_setaffinity munmap close lseek io_destroy prctl",
        "",
        Either,
    ),
    (
        "sigaltstack sched_getaffinity uname sysinfo sched_yield",
        "",
        Harmless,
    ),
    // Before `main`, and where nothing can be reported any more.
    (
        "mmap mprotect poll getrandom rt_sigaction access arch_prctl",
        "",
        Runtime,
    ),
];

/// Calls exempt from injection: those without which nothing is left to test (process and thread
/// control), waiting between threads, whose only errors would be bugs of ours, and calls that
/// cannot fail, whose negated errno would pass for another process's number.
pub(crate) const LEFT_OUT: &str = "execve exit exit_group rt_sigreturn set_tid_address \
                                   set_robust_list rseq brk clone clone3 fork vfork \
                                   restart_syscall futex gettid getpid getppid getuid geteuid \
                                   getgid getegid";

/// Errnos injected in a usual run, and those that a long one adds.
pub(crate) const ERRNOS: [&str; 3] = ["EIO", "EINTR", "EAGAIN"];
pub(crate) const MORE_ERRNOS: [&str; 5] = ["ENOMEM", "ENOSPC", "EPERM", "EMFILE", "EINVAL"];

/// Engines without a run of their own, each with the reason.
pub(crate) const WITHOUT_RUN: &[(&str, &str)] = &[
    ("psync", "the default"),
    ("sync", "the calls of psync, and lseek"),
    ("vsync", "the calls of sync on vectors"),
    ("pvsync", "pvsync2 without flags"),
    ("null", "makes no call"),
    ("page_fault", "touches memory"),
    ("cpuio", "burns a processor"),
    ("exec", "its calls are those of hooks"),
    ("net", "has errors of its own in a test of its own"),
    ("netsplice", "as net"),
    ("nvme_tcp", "has errors of its own in a test of its own"),
    ("nbd", "has errors of its own in a test of its own"),
    (
        "http",
        "needs a build with its feature; has errors of its own in a test of its own",
    ),
    ("libiscsi", "has errors of its own in a test of its own"),
    ("nfs", "has errors of its own in a test of its own"),
    ("io_uring_cmd", "needs an NVMe namespace"),
    ("sg", "needs a SCSI disk"),
    ("e4defrag", "needs ext4"),
    ("filestat", "changes nothing"),
    ("dirstat", "changes nothing"),
    ("dircreate", "dirdelete, whose layout makes its calls"),
];
