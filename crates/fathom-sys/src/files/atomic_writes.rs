//! Limits of atomic writes: those that a file system and its device store whole or not at all.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use super::check;

/// Sizes of the atomic writes that a file takes. Each is a power of two and aligned to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicWriteUnits {
    /// Smallest size in bytes.
    pub min: u32,
    /// Largest size in bytes.
    pub max: u32,
}

impl AtomicWriteUnits {
    /// Queries an open file (`STATX_WRITE_ATOMIC`, Linux 6.11); `None` if it takes no atomic
    /// writes. A file not opened with `O_DIRECT` has the units, too, but takes none.
    ///
    /// # Errors
    /// The error of `statx(2)`.
    pub fn of(file: impl AsFd) -> io::Result<Option<Self>> {
        // SAFETY: `statx` is a plain C struct of integers, for which zeros are a value.
        let mut stat: libc::statx = unsafe { std::mem::zeroed() };
        let (fd, mask) = (file.as_fd().as_raw_fd(), libc::STATX_WRITE_ATOMIC);
        // SAFETY: the descriptor is open for the length of the call (`AsFd`), the path is an empty
        // C string, and the kernel writes one `struct statx` to a live one.
        check(unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut stat) })?;
        // An older kernel leaves the fields at zero.
        let units = Self {
            min: stat.stx_atomic_write_unit_min,
            max: stat.stx_atomic_write_unit_max,
        };
        Ok((units.max > 0).then_some(units))
    }

    /// Returns whether writes of `bytes` can be atomic.
    #[must_use]
    pub const fn allow(&self, bytes: u64) -> bool {
        bytes.is_power_of_two() && bytes >= self.min as u64 && bytes <= self.max as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Scratch;
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_within_the_units() {
        let units = AtomicWriteUnits {
            min: 4096,
            max: 65536,
        };
        let allowed = [512, 4096, 8192, 12288, 65536, 131_072].map(|bytes| units.allow(bytes));
        assert_eq!(allowed, [false, true, true, false, true, false]);
    }

    #[test]
    fn a_pipe_takes_no_atomic_writes() {
        let (_scratch, file) = Scratch::new("atomic");
        if let Some(units) = AtomicWriteUnits::of(&file).unwrap() {
            assert!(units.min.is_power_of_two() && units.min <= units.max);
        }
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(AtomicWriteUnits::of(reader).unwrap(), None);
    }
}
