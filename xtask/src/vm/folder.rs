//! Folder of a running machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Folder that is removed when it is dropped, and also when this process is killed.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// Shell that waits for the end of its input, which ends with this process, and then removes
    /// the folder.
    remover: Child,
}

impl RunFolder {
    /// Creates a folder in `parent`.
    pub(crate) fn create(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        let path = path.canonicalize()?;
        let remover = Command::new("sh")
            .args(["-c", REMOVE, "remove"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start a shell")?;
        Ok(Self { path, remover })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _status = self.remover.wait();
    }
}

/// The signals of a terminal reach the shell, too, and must not end it before its work is done.
const REMOVE: &str = "trap '' HUP INT TERM; read -r _; rm -rf -- \"$1\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_it_is_dropped() {
        let folder = RunFolder::create(&std::env::temp_dir()).expect("a folder");
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "content").expect("a file");
        drop(folder);
        assert!(!path.exists());
    }
}
