//! One lab at a time on this machine: two would measure each other.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use fathom_sys::lease::Lease;

/// Right to measure on this machine, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub struct MachineLock(#[expect(dead_code, reason = "held, not read")] LockFile);

impl MachineLock {
    /// Takes the right for a lab of this name.
    ///
    /// # Errors
    /// Another lab has it; the message names it. Or the lock cannot be created.
    pub fn take(name: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join("fathom-lab.lock");
        let why = "another lab is running on this machine";
        Ok(Self(lock(&path, name, why)?))
    }
}

/// Lock file, removed on drop.
#[derive(Debug)]
pub(super) struct LockFile(Lease);

impl Drop for LockFile {
    fn drop(&mut self) {
        let _left_behind = fs::remove_file(self.0.path());
    }
}

/// Creates and locks a file. `taken` is the error if another process has locked it.
pub(super) fn lock(path: &Path, name: &str, taken: &str) -> Result<LockFile, String> {
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
                let holder = format!("`{name}`, process {}", std::process::id());
                fs::write(path, holder).map_err(failed)?;
                return Ok(LockFile(lease));
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

/// Attempts, while other labs end.
const ATTEMPTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first() {
        let path = std::env::temp_dir().join(format!("fathom-lock-test-{}", std::process::id()));
        let first = lock(&path, "one", "taken").unwrap();
        let refusal = lock(&path, "two", "taken").unwrap_err();
        assert!(refusal.starts_with("taken: `one`"), "{refusal}");
        assert!(refusal.ends_with("\nhint: wait until it ends"), "{refusal}");
        drop(first);
        drop(lock(&path, "two", "taken").unwrap());
        assert!(!path.exists());
    }
}
