//! Creation of files whose names the program chose, in directories that others may write.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Creates a file for writing, in place of whatever has its name.
///
/// A symbolic link is replaced, not followed: the file that it names belongs to something else. So
/// is a pipe, for which opening would wait for a reader.
///
/// # Errors
/// Those of the removal and the creation: a directory, for instance, is not replaced.
pub(crate) fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => File::options().write(true).create_new(true).open(path),
    }
}
