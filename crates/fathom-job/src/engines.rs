//! Engines by name: Fathom's, and those that only fio has.

/// An engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// Set if ops are executed one at a time, whatever `iodepth` is.
    pub(crate) synchronous: bool,
    pub(crate) help: &'static str,
}

/// Returns the engine with this name. `aio…` and `linuxaio…` mean libaio, as in fio.
pub(crate) fn find(name: &str) -> Option<&'static Engine> {
    let name = if name.starts_with("aio") || name.starts_with("linuxaio") {
        "libaio"
    } else {
        name
    };
    ENGINES.iter().find(|engine| engine.name == name)
}

/// All engines of Fathom.
pub(crate) const ENGINES: [Engine; 9] = [
    engine("psync", true, "pread(2) and pwrite(2)"),
    engine("sync", true, "lseek(2), read(2) and write(2)"),
    engine(
        "vsync",
        true,
        "readv(2) and writev(2); adjacent ops are merged",
    ),
    engine("pvsync", true, "preadv(2) and pwritev(2)"),
    engine("pvsync2", true, "preadv2(2) and pwritev2(2)"),
    engine(
        "libaio",
        false,
        "Linux AIO: io_submit(2) and io_getevents(2)",
    ),
    engine(
        "io_uring",
        false,
        "io_uring submission and completion rings",
    ),
    engine("mmap", true, "memory-mapped files"),
    engine(
        "null",
        false,
        "no I/O at all; measures the overhead of the tool",
    ),
];

/// Engines of fio that need only Linux and are not implemented yet.
pub(crate) const LATER: [&str; 21] = [
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
    "nbd",
    "libiscsi",
    "nfs",
    "http",
    "external",
];

/// Returns whether this is an SPDK plugin, by its name or by the path of its library.
pub(crate) fn is_spdk(name: &str) -> bool {
    let path = name.strip_prefix("external:").unwrap_or(name);
    let file = path.rsplit('/').next().unwrap_or(path);
    file.starts_with("spdk") || file == "fio_plugin" || path.contains("/spdk/")
}

/// Returns the library or device that an engine of fio needs and Fathom does not support.
pub(crate) fn needs(name: &str) -> Option<&'static str> {
    let found = NEEDS.iter().find(|(engine, _)| *engine == name);
    found.map(|(_, what)| *what)
}

/// Current and former engines of fio with the library or device that each needs.
pub(crate) const NEEDS: [(&str, &str); 32] = [
    ("io_uring_cmd", "an NVMe character device"),
    ("sg", "a SCSI generic device"),
    ("mtd", "an MTD flash device"),
    ("rados", "librados"),
    ("rbd", "librbd"),
    ("gfapi", "libgfapi"),
    ("gfapi_async", "libgfapi"),
    ("rdma", "librdmacm and an RDMA device"),
    ("librpma_apm_client", "librpma"),
    ("librpma_apm_server", "librpma"),
    ("librpma_gpspm_client", "librpma"),
    ("librpma_gpspm_server", "librpma"),
    ("libhdfs", "libhdfs"),
    ("dfs", "libdfs (DAOS)"),
    ("ime_psync", "DDN's IME client"),
    ("ime_psyncv", "DDN's IME client"),
    ("ime_aio", "DDN's IME client"),
    ("libpmem", "libpmem"),
    ("pmemblk", "libpmemblk"),
    ("dev-dax", "libpmem and a DAX device"),
    ("libzbc", "libzbc"),
    ("libblkio", "libblkio"),
    ("libcufile", "NVIDIA's cuFile"),
    ("libhipfile", "AMD's hipFile"),
    ("xnvme", "libxnvme"),
    ("cpp_null", "a shared library with fio's interface"),
    ("skeleton_external", "a shared library with fio's interface"),
    ("guasi", "libguasi"),
    ("binject", "a driver that was never in Linux"),
    ("fusion-aw-sync", "libnvm"),
    ("windowsaio", "Windows"),
    ("solarisaio", "Solaris"),
];

const fn engine(name: &'static str, synchronous: bool, help: &'static str) -> Engine {
    Engine {
        name,
        synchronous,
        help,
    }
}
