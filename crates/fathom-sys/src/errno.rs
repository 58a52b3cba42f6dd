//! The kernel's error numbers: their names, and what they most likely mean for whoever measures
//! storage.

/// The name of an error number, such as `EIO`; `errno N` has no name here.
#[must_use]
pub fn name(errno: i32) -> Option<&'static str> {
    find(errno).map(|row| row.name)
}

/// What an error number most likely means for an op on a file or a device, as half a sentence in
/// lower case.
#[must_use]
pub fn meaning(errno: i32) -> Option<&'static str> {
    find(errno).map(|row| row.meaning)
}

/// Whether an error says that the device or the medium failed, and not that the op was wrong.
#[must_use]
pub fn blames_the_device(errno: i32) -> bool {
    matches!(
        errno,
        libc::EIO
            | libc::EREMOTEIO
            | libc::EILSEQ
            | libc::ENODATA
            | libc::ETIMEDOUT
            | libc::ENOLINK
    )
}

/// Asserts in debug builds that a call which gives something back (`munmap(2)`) was not misused:
/// `EINVAL` is a bug of ours; any other error is the kernel's, and leaves nothing to be done.
pub(crate) fn assert_not_misused(failed: i32, call: &str) {
    let misused = || std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    debug_assert!(failed == 0 || !misused(), "{call}: invalid argument");
}

struct Row {
    errno: i32,
    name: &'static str,
    meaning: &'static str,
}

fn find(errno: i32) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.errno == errno)
}

const fn row(errno: i32, name: &'static str, meaning: &'static str) -> Row {
    Row {
        errno,
        name,
        meaning,
    }
}

const TABLE: &[Row] = &[
    row(
        libc::EPERM,
        "EPERM",
        "this user may not do that, or the file is immutable or sealed",
    ),
    row(libc::ENOENT, "ENOENT", "there is no such file"),
    row(libc::EINTR, "EINTR", "a signal interrupted the call"),
    row(libc::EIO, "EIO", "the device failed to read or write"),
    row(
        libc::ENXIO,
        "ENXIO",
        "the device is not there, or the offset is past its end",
    ),
    row(
        libc::EBADF,
        "EBADF",
        "the file is not open, or not for this direction",
    ),
    row(
        libc::EAGAIN,
        "EAGAIN",
        "the kernel's queue is full, or the op would have to wait (nowait)",
    ),
    row(
        libc::ENOMEM,
        "ENOMEM",
        "no memory, or over the locked-memory limit",
    ),
    row(
        libc::EACCES,
        "EACCES",
        "this user may not open the file that way",
    ),
    row(libc::EFAULT, "EFAULT", "a buffer is not in memory"),
    row(
        libc::EBUSY,
        "EBUSY",
        "the device is in use by something that wants it alone",
    ),
    row(libc::EEXIST, "EEXIST", "the file exists already"),
    row(
        libc::ENODEV,
        "ENODEV",
        "the device does not do that, or is gone",
    ),
    row(
        libc::ENOTDIR,
        "ENOTDIR",
        "a part of the path is not a directory",
    ),
    row(libc::EISDIR, "EISDIR", "the path names a directory"),
    row(
        libc::EINVAL,
        "EINVAL",
        "the kernel does not take these values: with direct I/O, the offset and the size must be \
         multiples of the device's logical block",
    ),
    row(
        libc::ENFILE,
        "ENFILE",
        "the system has no room for more open files",
    ),
    row(
        libc::EMFILE,
        "EMFILE",
        "the process has as many open files as it may (ulimit -n)",
    ),
    row(
        libc::ETXTBSY,
        "ETXTBSY",
        "the file is a program that is running, or swap space",
    ),
    row(
        libc::EFBIG,
        "EFBIG",
        "the offset is past the largest file of this filesystem or limit",
    ),
    row(libc::ENOSPC, "ENOSPC", "no space left on the device"),
    row(libc::ESPIPE, "ESPIPE", "a pipe or terminal has no offsets"),
    row(
        libc::EROFS,
        "EROFS",
        "the filesystem or the device is read-only",
    ),
    row(libc::ENOSYS, "ENOSYS", "this kernel does not have the call"),
    row(libc::ELOOP, "ELOOP", "too many symbolic links in the path"),
    row(
        libc::ENODATA,
        "ENODATA",
        "the medium has no readable data there",
    ),
    row(
        libc::EOVERFLOW,
        "EOVERFLOW",
        "a size or offset does not fit",
    ),
    row(libc::EILSEQ, "EILSEQ", "a checksum or the data were wrong"),
    row(
        libc::EOPNOTSUPP,
        "EOPNOTSUPP",
        "the filesystem or device does not support that",
    ),
    row(libc::ENOBUFS, "ENOBUFS", "no room for more requests"),
    row(
        libc::ETIMEDOUT,
        "ETIMEDOUT",
        "the device did not answer in time",
    ),
    row(
        libc::ECANCELED,
        "ECANCELED",
        "the op was cancelled before it began",
    ),
    row(libc::EDQUOT, "EDQUOT", "the disk quota is used up"),
    row(
        libc::EREMOTEIO,
        "EREMOTEIO",
        "the device reports an unexpected fault",
    ),
    row(libc::ENOLINK, "ENOLINK", "the path to the device is gone"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_stands_once_and_agrees_with_the_system() {
        for (index, row) in TABLE.iter().enumerate() {
            let twice = TABLE[..index].iter().any(|other| other.errno == row.errno);
            assert!(!twice, "{}", row.name);
            let system = std::io::Error::from_raw_os_error(row.errno).to_string();
            assert!(!system.starts_with("Unknown"), "{}", row.name);
        }
        assert_eq!(name(libc::EIO), Some("EIO"));
        assert_eq!(name(100_000), None);
        assert!(blames_the_device(libc::EIO) && !blames_the_device(libc::EINVAL));
    }
}
