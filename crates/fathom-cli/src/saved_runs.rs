//! Runs in files and directories that the user names.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fathom_lab::{ImportedRun, import};

/// Reads the runs of a file, or of all files of a directory that end in `.json`, in the order of
/// their names; each with the name of its file.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, ImportedRun)>> {
    if !path.is_dir() {
        return read_file(path);
    }
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(|| path.display().to_string())?;
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    if files.is_empty() {
        bail!("{}: no file ends in .json", path.display());
    }
    let mut runs = Vec::new();
    for file in files {
        runs.extend(read_file(&file)?);
    }
    Ok(runs)
}

fn read_file(path: &Path) -> Result<Vec<(String, ImportedRun)>> {
    let name = path.display().to_string();
    let runs = import(&text(path)?).with_context(|| name.clone())?;
    Ok(runs.into_iter().map(|run| (name.clone(), run)).collect())
}

/// Reads a file as text.
pub(crate) fn text(path: &Path) -> Result<String> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| name.clone())?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.with_context(|| name.clone())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        bail!("{name}: more than {} MiB", FILE_BYTES_MAX >> 20);
    }
    // Notes of fio may be in any encoding; JSON is UTF-8.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Largest file; an endless one must not be read.
const FILE_BYTES_MAX: u64 = 1 << 30;
