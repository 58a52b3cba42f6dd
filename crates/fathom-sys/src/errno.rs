//! Errors that only a misuse by this crate can cause.

use std::io;

/// Asserts in debug builds that a call which releases something (`munmap(2)`) was not misused:
/// `EINVAL` is a bug of ours; any other error is the kernel's, and leaves nothing to be done.
pub(crate) fn assert_not_misused(failed: i32, call: &str) {
    let misused = || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    debug_assert!(failed == 0 || !misused(), "{call}: invalid argument");
}

/// Returns the error of a call that just failed, if it did.
pub(crate) fn check(failed: i32) -> io::Result<()> {
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::Errno;

    macro_rules! check {
        ($($name:ident)*) => {
            $(assert_eq!(Errno::$name.get(), libc::$name, stringify!($name));)*
        };
    }

    #[test]
    #[cfg(not(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc64")))]
    fn numbers_without_libc_are_those_of_libc() {
        check! {
            EPERM ENOENT EINTR EIO ENXIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST ENODEV
            ENOTDIR EISDIR EINVAL ENFILE EMFILE ETXTBSY EFBIG ENOSPC ESPIPE EROFS ENOSYS ELOOP
            ENODATA ENOLINK EPROTO EOVERFLOW EILSEQ EOPNOTSUPP ECONNRESET ENOBUFS ESHUTDOWN
            ETIMEDOUT EREMOTEIO EDQUOT ECANCELED ENOTRECOVERABLE
        }
    }
}
