//! Identity of storage among hosts: equal for paths that may name the same file.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_sys::files::filesystem_type;
use fathom_sys::system;

use crate::storage::resolved;

/// Returns a digest of a path, which need not exist: of the path without symbolic links and, where
/// its file system belongs to one host, of the host.
///
/// Two hosts that mount one network file system under different paths get different digests; two
/// that have storage of their own under one path of an unknown file system get equal ones.
#[must_use]
pub fn storage_identity(path: &Path) -> u64 {
    let found = resolved(path);
    let local = found.as_ref().is_some_and(|(real, _)| is_local(real));
    let host = match local {
        true => host_identity(),
        false => String::new(),
    };
    let (real, rest) = found.unwrap_or_else(|| (path.to_path_buf(), Default::default()));
    // As one path: a rank may look while another creates its folders.
    let whole: PathBuf = real.components().chain(rest.components()).collect();
    digest(&[host.as_bytes(), whole.as_os_str().as_bytes()])
}

/// Returns whether files of this path's file system belong to one host.
fn is_local(path: &Path) -> bool {
    filesystem_type(path).is_ok_and(|magic| LOCAL.contains(&magic))
}

/// Returns the identity of the running kernel; ranks in containers of one host share it.
fn host_identity() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    boot.unwrap_or_else(|_| system::kernel().host)
}

/// FNV-1a of all parts, each with its end.
fn digest(parts: &[&[u8]]) -> u64 {
    let ended = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    ended.fold(FNV_OFFSET, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Numbers of file systems of one host, from <linux/magic.h> or the file system's own source.
const LOCAL: [u32; 17] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlay
    0x2fc1_2fc1, // zfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs3
    0x3153_464a, // jfs
    0x3434,      // nilfs2
    0x2405_1905, // ubifs
    0x5265_4973, // reiserfs
    0x9584_58f6, // hugetlbfs
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_identity_before_and_after_it_is_made() {
        let folder = std::env::temp_dir().join(format!("fathom-identity-{}", std::process::id()));
        let (path, other) = (folder.join("a/b"), folder.join("a/c"));
        let missing = storage_identity(&path);
        assert_ne!(missing, storage_identity(&other));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert_eq!(storage_identity(&path), missing);
        fs::write(&path, "").unwrap();
        assert_eq!(storage_identity(&path), missing);
        std::os::unix::fs::symlink(&path, &other).unwrap();
        assert_eq!(storage_identity(&other), missing, "a link to it");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_in_memory_belong_to_a_host() {
        assert!(is_local(Path::new("/dev/shm")) || !Path::new("/dev/shm").exists());
        assert!(!is_local(Path::new("/no/such/path")));
    }
}
