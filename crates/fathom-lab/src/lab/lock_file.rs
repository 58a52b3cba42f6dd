//! Lock files: a lab that one process runs is not run by another one.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
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
                // Another user takes it over from a killed process.
                Ok(file) => {
                    let _private = file.set_permissions(Permissions::from_mode(OF_ALL_USERS));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
            match Lease::take(path) {
                Ok(Some(lease)) => {
                    let lock = Self(lease);
                    // The lock counts, not the name, which only its owner may be able to write.
                    let _unnamed = lock.name_holder(lab);
                    return Ok(lock);
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

    /// Writes the name of the lab into the file that is locked, whatever its path leads to by now.
    fn name_holder(&self, lab: &str) -> io::Result<()> {
        let mut file = self.0.file();
        file.set_len(0)?;
        write!(file, "`{lab}`, process {}", std::process::id())
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _left_behind = fs::remove_file(self.0.path());
    }
}

/// Attempts, while other labs end.
const ATTEMPTS: u32 = 10;

/// Permissions of a lock file: all users of a machine share one.
const OF_ALL_USERS: u32 = 0o666;

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

    #[test]
    fn a_file_that_another_user_left_is_taken_over() {
        let path = std::env::temp_dir().join(format!("fathom-lock-left-{}", std::process::id()));
        fs::write(&path, "`old`, process 1").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
        if OpenOptions::new().write(true).open(&path).is_ok() {
            println!("skipped: root writes any file");
        }
        let lock = LockFile::take(&path, "new", "taken").unwrap();
        assert!(LockFile::take(&path, "third", "taken").is_err());
        drop(lock);
        // One that is created serves all users, whatever the umask.
        let lock = LockFile::take(&path, "new", "taken").unwrap();
        assert_eq!(
            lock.0.file().metadata().unwrap().permissions().mode() & 0o777,
            OF_ALL_USERS
        );
        drop(lock);
        assert!(!path.exists());
    }
}
