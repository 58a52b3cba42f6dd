//! Errors of system calls.

use std::io;

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
