//! Files of keys and certificates.

use std::fs;
use std::io;
use std::path::Path;

/// Reads a small regular file.
///
/// # Errors
/// The file cannot be read, is longer than 16 MiB, or is not a regular file: opening a pipe may
/// block for ever, and a device may have no end.
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

/// Some 60 times the size of a distribution's CA bundle.
const BYTES_MAX: u64 = 16 << 20;
