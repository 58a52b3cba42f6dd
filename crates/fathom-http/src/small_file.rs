//! Files of keys and certificates.

use std::fs;
use std::io;
use std::path::Path;

/// Reads a regular file of moderate size.
///
/// # Errors
/// It cannot be read, is longer than 16 MiB, or is no regular file: opening a pipe may wait for
/// ever, and a device may have no end.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if found.len() > BYTES_MAX {
        return Err(io::Error::other("longer than 16 MiB"));
    }
    fs::read(path)
}

/// 60 times the CA certificates of a distribution.
const BYTES_MAX: u64 = 16 << 20;
