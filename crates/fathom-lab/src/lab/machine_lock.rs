//! One lab at a time on this machine: two would measure each other.

use super::lock_file::LockFile;

/// Takes the right to measure on this machine, for a lab of this name.
///
/// # Errors
/// Another lab has it; the message names it. Or the lock cannot be created.
pub fn lock_machine(name: &str) -> Result<LockFile, String> {
    let path = std::env::temp_dir().join("fathom-lab.lock");
    LockFile::take(&path, name, "another lab is running on this machine")
}
