//! Error numbers of Linux system calls.

use std::io;

/// Error number of a system call, 1 to 4095 as the kernel's `MAX_ERRNO`.
///
/// The values are those of the generic ABI (x86, Arm, RISC-V, POWER, s390x); Alpha, MIPS, PA-RISC
/// and SPARC number some differently. Pure crates cannot ask libc, and virtual time must give the
/// same results on every host; a test of `fathom-sys` compares them with libc's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(u16);

impl Errno {
    /// Returns the number of an error that the system returned; `None` if it has none.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        Self::try_from(error.raw_os_error()?).ok()
    }

    /// Returns the number as in `errno` and [`io::Error::raw_os_error`].
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }

    /// Returns the number as in records and logs, where it has no sign.
    #[must_use]
    pub const fn unsigned(self) -> u32 {
        self.0 as u32
    }

    /// Returns the result of an op that failed: the negated number.
    #[must_use]
    pub const fn result(self) -> i32 {
        -self.get()
    }

    /// Returns the name, such as `EIO`, if the number is in the table below.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let row = TABLE.iter().find(|(_, errno)| *errno == self);
        row.map(|(name, _)| *name)
    }

    /// Looks up a name of the table below.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|(known, _)| *known == name);
        row.map(|(_, errno)| *errno)
    }
}

impl TryFrom<i32> for Errno {
    type Error = i32;

    /// Takes a number as in `errno`; returns it as the error if no system call fails with it.
    fn try_from(number: i32) -> Result<Self, i32> {
        match u16::try_from(number) {
            Ok(errno @ 1..=ERRNO_MAX) => Ok(Self(errno)),
            _ => Err(number),
        }
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        Self::from_raw_os_error(errno.get())
    }
}

/// `MAX_ERRNO` of the kernel.
const ERRNO_MAX: u16 = 4095;

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Self = Self($number);)*
        }

        const TABLE: &[(&str, Errno)] = &[$((stringify!($name), Errno::$name)),*];
    };
}

errnos! {
    EPERM = 1, "Operation not permitted.";
    ENOENT = 2, "No such file or directory.";
    EINTR = 4, "Interrupted by a signal.";
    EIO = 5, "Input/output error.";
    ENXIO = 6, "No such device or address.";
    EBADF = 9, "Bad file descriptor.";
    EAGAIN = 11, "Resource temporarily unavailable.";
    ENOMEM = 12, "Cannot allocate memory.";
    EACCES = 13, "Permission denied.";
    EFAULT = 14, "Bad address.";
    EBUSY = 16, "Device or resource busy.";
    EEXIST = 17, "File exists.";
    ENODEV = 19, "No such device.";
    ENOTDIR = 20, "Not a directory.";
    EISDIR = 21, "Is a directory.";
    EINVAL = 22, "Invalid argument.";
    ENFILE = 23, "Too many open files in the system.";
    EMFILE = 24, "Too many open files in the process.";
    ENOTTY = 25, "Inappropriate ioctl for a device.";
    ETXTBSY = 26, "Text file busy.";
    EFBIG = 27, "File too large.";
    ENOSPC = 28, "No space left on the device.";
    ESPIPE = 29, "Illegal seek.";
    EROFS = 30, "Read-only file system.";
    ENOSYS = 38, "System call not implemented.";
    ELOOP = 40, "Too many levels of symbolic links.";
    ENODATA = 61, "No data available; unreadable medium.";
    ENOLINK = 67, "Link has been severed; path to the device lost.";
    EPROTO = 71, "Protocol error; a peer broke its rules.";
    EOVERFLOW = 75, "Value too large for its type.";
    EILSEQ = 84, "Illegal byte sequence; a failed checksum.";
    EOPNOTSUPP = 95, "Operation not supported.";
    ECONNRESET = 104, "Connection reset by the peer.";
    ENOBUFS = 105, "No buffer space available.";
    ESHUTDOWN = 108, "Peer is shutting down.";
    ETOOMANYREFS = 109, "Too many references; too many open zones.";
    ETIMEDOUT = 110, "Timed out.";
    ESTALE = 116, "The server no longer has the file.";
    EREMOTEIO = 121, "Remote I/O error.";
    EDQUOT = 122, "Disk quota exceeded.";
    ECANCELED = 125, "Operation cancelled.";
    ENOTRECOVERABLE = 131, "State not recoverable.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique() {
        for (index, (name, errno)) in TABLE.iter().enumerate() {
            let before = &TABLE[..index];
            let repeated = before.iter().any(|(n, e)| n == name || e == errno);
            assert!(!repeated, "{name}");
            assert_eq!(Errno::named(name), Some(*errno));
            assert_eq!(errno.name(), Some(*name));
        }
    }

    #[test]
    fn only_numbers_of_the_kernel_are_taken() {
        assert_eq!(Errno::try_from(5), Ok(Errno::EIO));
        for number in [0, -5, 4096, i32::MAX] {
            assert_eq!(Errno::try_from(number), Err(number));
        }
        assert_eq!(Errno::EIO.result(), -5);
    }
}
