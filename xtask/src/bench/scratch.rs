//! Directory of a benchmark's files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Directory that is removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates an empty directory among the temporary files.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let name = format!("fathom-bench-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}
