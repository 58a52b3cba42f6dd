//! Lock files: a lab that one process runs is not run by another one.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use fathom_sys::lease::Lease;

/// Locked file, which is removed on drop. A process that ends in any other way unlocks it.
#[derive(Debug)]
pub struct LockFile(Lease);

impl LockFile {
    /// Creates a file and locks it for a lab; `taken` begins the message if that is not possible.
    ///
    /// # Errors
    /// Another process has locked it; the message names its lab. Or the file cannot be created.
    pub(super) fn take(path: &Path, lab: &str, taken: &str) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        for _ in 0..ATTEMPTS {
            let created = OpenOptions::new().write(true).create_new(true).open(path);
            match created {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(error));
                }
                _ => {}
            }
            match Lease::take(path) {
                Ok(Some(lease)) => {
                    let holder = format!("`{lab}`, process {}", std::process::id());
                    fs::write(path, holder).map_err(failed)?;
                    return Ok(Self(lease));
                }
                Ok(None) => {
                    let holder = fs::read_to_string(path).unwrap_or_default();
                    return Err(format!("{taken}: {holder}\nhint: wait until it ends"));
                }
                // Its holder has just ended and removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(format!(
            "{}: it is created and removed again and again",
            path.display()
        ))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _left_behind = fs::remove_file(self.0.path());
    }
}

/// Attempts, while other labs end.
const ATTEMPTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_with_the_name_of_the_first() {
        let path = std::env::temp_dir().join(format!("fathom-lock-test-{}", std::process::id()));
        let first = LockFile::take(&path, "one", "taken").unwrap();
        let refusal = LockFile::take(&path, "two", "taken").unwrap_err();
        assert!(refusal.starts_with("taken: `one`"), "{refusal}");
        assert!(refusal.ends_with("\nhint: wait until it ends"), "{refusal}");
        drop(first);
        drop(LockFile::take(&path, "two", "taken").unwrap());
        assert!(!path.exists());
    }
}
