//! Engines that only fio has.

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

/// Returns what to do instead of using an engine whose library is not supported.
pub(crate) fn instead_of_library(name: &str) -> Option<&'static str> {
    Some(match name {
        "rbd" => "map the image with `rbd map`, and name the block device",
        "gfapi" | "gfapi_async" => "mount the volume, and name a `directory` in it",
        "libpmem" | "pmemblk" | "dev-dax" => {
            "use `ioengine=mmap` on a file system that is mounted with `dax`"
        }
        "libblkio" => "use `ioengine=io_uring` or `ioengine=io_uring_cmd` on the device",
        "libhdfs" | "dfs" => "mount the storage, and name a `directory` in it",
        "libzbc" => "use `zonemode=zbd` with `ioengine=libaio` or `ioengine=io_uring`",
        "xnvme" => "use `ioengine=io_uring_cmd` on /dev/ng0n1",
        _ => return None,
    })
}

/// Current and former engines of fio with the library or device that each needs.
pub(crate) const NEEDS: [(&str, &str); 31] = [
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
    ("external", "a shared library with fio's interface"),
    ("cpp_null", "a shared library with fio's interface"),
    ("skeleton_external", "a shared library with fio's interface"),
    ("guasi", "libguasi"),
    ("binject", "a driver that was never in Linux"),
    ("fusion-aw-sync", "libnvm"),
    ("windowsaio", "Windows"),
    ("solarisaio", "Solaris"),
];
