//! File systems whose files are kernel interfaces: a write changes a setting, and creating a
//! folder creates a control group or a configuration item.

use std::path::Path;

use fathom_sys::files;

/// Returns the name of the file system of `path`, if its files are interfaces instead of storage.
pub fn kernel_filesystem(path: &Path) -> Option<&'static str> {
    name(files::filesystem_type(path).ok()?)
}

/// Numbers of <linux/magic.h> and, where that has none, of the file system's own source.
const fn name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x9fa0 => "procfs",
        0x6265_6572 => "sysfs",
        0x0027_e0eb => "cgroup",
        0x6367_7270 => "cgroup2",
        0x6462_6720 => "debugfs",
        0x7472_6163 => "tracefs",
        0x6265_6570 => "configfs",
        0x7363_6673 => "securityfs",
        0xf97c_ff8c => "selinuxfs",
        0x4341_5d53 => "smackfs",
        0xcafe_4a11 => "bpf",
        0xde5e_81e4 => "efivarfs",
        0x6165_676c => "pstore",
        0x4249_4e4d => "binfmt_misc",
        0x0000_1cd1 => "devpts",
        0x1980_0202 => "mqueue",
        0x6e73_6673 => "nsfs",
        0x6573_5543 => "fusectl",
        0x0765_5821 => "resctrl",
        0xabba_1974 => "xenfs",
        0x6e66_7364 => "nfsd",
        0x6759_6969 => "rpc_pipefs",
        0x6c6f_6f70 => "binder",
        0x9fa1 => "openpromfs",
        0x9fa2 => "usbfs",
        0x76a9_f425 => "ocfs2_dlmfs",
        0x0a64_7361 => "functionfs",
        0xaee7_1ee7 => "gadgetfs",
        0x0187 => "autofs",
        0x5049_4446 => "pidfs",
        0x5049_5045 => "pipefs",
        0x534f_434b => "sockfs",
        0x0904_1934 => "anon_inodefs",
        0x444d_4142 => "dmabuf",
        0x5345_434d => "secretmem",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_told_from_storage() {
        assert_eq!(
            kernel_filesystem(Path::new("/proc/self/comm")),
            Some("procfs")
        );
        if Path::new("/sys/kernel").exists() {
            assert_eq!(kernel_filesystem(Path::new("/sys/kernel")), Some("sysfs"));
        }
        assert_eq!(kernel_filesystem(&std::env::temp_dir()), None);
        assert_eq!(kernel_filesystem(Path::new("/no/such/path")), None);
    }
}
