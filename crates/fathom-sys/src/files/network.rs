//! File systems that several hosts share.

/// Returns whether file systems of this magic number, as `statfs(2)` returns it, are shared by
/// several hosts.
#[must_use]
pub fn is_network(kind: u32) -> bool {
    NETWORK.contains(&kind)
}

/// Magic numbers of statfs(2) and of the kernel's `magic.h`: NFS, SMB, SMB 2, CIFS, AFS, Coda, NCP,
/// 9P, Ceph, FUSE (sshfs among them: its kind is not known), GPFS, Lustre.
const NETWORK: [u32; 12] = [
    0x6969,
    0x517b,
    0xfe53_4d42,
    0xff53_4d42,
    0x5346_414f,
    0x7375_7245,
    0x564c,
    0x0102_1997,
    0x00c3_6400,
    0x6573_5546,
    0x4750_4653,
    0x0bd0_0bd0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_network_file_systems_alone() {
        let [nfs, cifs, smb2, fuse] = [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x6573_5546];
        assert!([nfs, cifs, smb2, fuse].into_iter().all(is_network));
        let [ext4, xfs, tmpfs, overlay] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];
        assert!(![ext4, xfs, tmpfs, overlay].into_iter().any(is_network));
    }
}
