//! The engines by name: those that are there, and those that only fio has.

/// An engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// Ops are done one after the other, whatever `iodepth` says.
    pub(crate) synchronous: bool,
    pub(crate) help: &'static str,
}

/// The engine that this name means: fio takes `aio…` and `linuxaio…` for libaio.
pub(crate) fn find(name: &str) -> Option<&'static Engine> {
    let name = if name.starts_with("aio") || name.starts_with("linuxaio") {
        "libaio"
    } else {
        name
    };
    ENGINES.iter().find(|engine| engine.name == name)
}

/// All that are there.
pub(crate) const ENGINES: [Engine; 9] = [
    engine("psync", true, "pread(2) and pwrite(2)"),
    engine("sync", true, "lseek(2), read(2) and write(2)"),
    engine(
        "vsync",
        true,
        "readv(2) and writev(2), adjacent ops together",
    ),
    engine("pvsync", true, "preadv(2) and pwritev(2)"),
    engine("pvsync2", true, "preadv2(2) and pwritev2(2)"),
    engine(
        "libaio",
        false,
        "the kernel's older asynchronous interface, io_submit(2)",
    ),
    engine("io_uring", false, "the kernel's rings, io_uring_enter(2)"),
    engine("mmap", true, "memory mapped files"),
    engine("null", false, "nothing at all: what the tool itself costs"),
];

/// Engines of fio's own table that Fathom has not yet.
pub(crate) const LATER: [&str; 43] = [
    "posixaio",
    "splice",
    "net",
    "netsplice",
    "cpuio",
    "exec",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "ftruncate",
    "falloc",
    "e4defrag",
    "page_fault",
    "io_uring_cmd",
    "sg",
    "mtd",
    "nbd",
    "libiscsi",
    "nfs",
    "http",
    "rados",
    "rbd",
    "gfapi",
    "gfapi_async",
    "rdma",
    "libhdfs",
    "dfs",
    "ime_psync",
    "ime_psyncv",
    "ime_aio",
    "libpmem",
    "dev-dax",
    "libzbc",
    "libblkio",
    "xnvme",
    "libcufile",
    "libhipfile",
    "windowsaio",
    "solarisaio",
    "external",
];

const fn engine(name: &'static str, synchronous: bool, help: &'static str) -> Engine {
    Engine {
        name,
        synchronous,
        help,
    }
}
