//! Metadata of block devices: what a block has besides its data, by `ioctl(2)`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Metadata of a device's blocks, as the kernel's block layer has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMetadata {
    /// Bytes of data that have metadata of their own.
    pub interval_bytes: u16,
    /// Bytes of metadata per interval.
    pub bytes: u8,
    /// Bytes of protection information among them.
    pub protection_bytes: u8,
    /// Place of the protection information in the metadata.
    pub protection_offset: u8,
    /// Kind of its guard.
    pub guard: GuardKind,
    /// It has a reference tag that the kernel can check.
    pub has_reference: bool,
    /// Bytes of its storage tag.
    pub storage_tag_bytes: u8,
}

/// Kind of guard in protection information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// CRC-16/T10-DIF.
    Crc16,
    /// CRC-64/NVME.
    Crc64,
    /// None, the checksum of IP, or one that is not known here.
    Other,
}

/// Returns the metadata of an open device's blocks; `None` if they have none.
///
/// # Errors
/// The error of `FS_IOC_GETLBMD_CAP`: `ENOTTY` for anything but a block device, and before Linux
/// 6.17 or without `CONFIG_BLK_DEV_INTEGRITY` that or what the driver returns, such as `EINVAL`.
pub fn block_metadata(device: &File) -> io::Result<Option<BlockMetadata>> {
    let mut found = Capability::default();
    // SAFETY: the descriptor is open for the length of the call, and FS_IOC_GETLBMD_CAP writes one
    // structure of the size in its number to the address, which is that of a live one.
    let rc = unsafe { libc::ioctl(device.as_raw_fd(), FS_IOC_GETLBMD_CAP, &raw mut found) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    if found.flags & HAS_INTEGRITY == 0 {
        return Ok(None);
    }
    Ok(Some(BlockMetadata {
        interval_bytes: found.interval,
        bytes: found.size,
        protection_bytes: found.pi_size,
        protection_offset: found.pi_offset,
        guard: match found.guard_tag_type {
            2 => GuardKind::Crc16,
            4 => GuardKind::Crc64,
            _ => GuardKind::Other,
        },
        has_reference: found.flags & HAS_REFERENCE != 0,
        storage_tag_bytes: found.storage_tag_size,
    }))
}

/// `struct logical_block_metadata_cap` of <linux/fs.h>.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Capability {
    flags: u32,
    interval: u16,
    size: u8,
    opaque_size: u8,
    opaque_offset: u8,
    pi_size: u8,
    pi_offset: u8,
    guard_tag_type: u8,
    app_tag_size: u8,
    ref_tag_size: u8,
    storage_tag_size: u8,
    padding: u8,
}

const _: () = assert!(size_of::<Capability>() == 16);

/// `_IOWR(0x15, 2, struct logical_block_metadata_cap)`.
const FS_IOC_GETLBMD_CAP: libc::Ioctl = (3 << 30 | 16 << 16 | 0x15 << 8 | 2) as libc::Ioctl;
const HAS_INTEGRITY: u32 = 1 << 0;
const HAS_REFERENCE: u32 = 1 << 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_no_metadata() {
        let file = File::open("/proc/self/exe").unwrap();
        let error = block_metadata(&file).unwrap_err();
        let errno = error.raw_os_error();
        assert!(
            matches!(errno, Some(libc::ENOTTY | libc::EOPNOTSUPP)),
            "{error}"
        );
    }
}
