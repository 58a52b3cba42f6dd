//! Output that cannot be written under its name: kept under another one, which the error names.
//!
//! The numbers behind an output may have taken long to collect.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use fathom_host::output_file::{self, Stop};

use crate::failure::with_hint;

/// Writes a file. If that fails, it is kept under another name, which the error states.
pub(crate) fn write_or_keep(path: &Path, bytes: &[u8], what: Kept, stop: &Stop) -> Result<()> {
    let Err(error) = output_file::write(path, bytes, stop) else {
        return Ok(());
    };
    let error = at(path, error);
    if stop.is_asked() {
        return Err(error);
    }
    let kept = keep(path, what, &mut |file| file.write_all(bytes));
    Err(with_place(&error, what, kept))
}

/// Kind of an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Its words before "kept as": `the page was`.
    pub(crate) words: &'static str,
    /// Extension of its files' names, if theirs have none.
    pub(crate) extension: &'static str,
}

/// Returns the error with the place where the output was kept, if it was.
pub(crate) fn with_place(
    error: &anyhow::Error,
    what: Kept,
    kept: Option<PathBuf>,
) -> anyhow::Error {
    let hint = kept.map(|kept| format!("{} kept as {}", what.words, kept.display()));
    with_hint(format!("{error:#}"), hint)
}

/// Returns the error with the path, which a refusal names itself.
pub(crate) fn at(
    path: &Path,
    error: impl std::error::Error + Send + Sync + 'static,
) -> anyhow::Error {
    let (text, path) = (error.to_string(), path.display().to_string());
    match text.starts_with(&path) {
        true => anyhow::Error::new(error),
        false => anyhow::Error::new(error).context(path),
    }
}

/// Writes a new file beside a path, or among the temporary ones, and returns its name. `write`
/// starts over with each file that it gets.
pub(crate) fn keep(
    path: &Path,
    what: Kept,
    write: &mut dyn FnMut(&mut File) -> io::Result<()>,
) -> Option<PathBuf> {
    let mut folders = folders(path);
    folders.find_map(|folder| keep_in(&folder, path, what, write))
}

/// Writes files of these names into a new directory, beside a path or among the temporary ones,
/// and returns its name.
pub(crate) fn keep_folder(path: &Path, files: &[(String, &[u8])]) -> Option<PathBuf> {
    folders(path).find_map(|folder| {
        let kept = new_folder(&folder, path)?;
        let mut files = files.iter();
        let written = files.try_for_each(|(name, bytes)| fs::write(kept.join(name), bytes));
        if written.is_err() {
            // Some of the files are of no use; if they cannot be removed there is nothing to try.
            let _left = fs::remove_dir_all(&kept);
        }
        written.is_ok().then_some(kept)
    })
}

fn new_folder(folder: &Path, path: &Path) -> Option<PathBuf> {
    for number in 1..=NUMBER_MAX {
        let kept = folder.join(numbered(path, number, ""));
        match fs::create_dir(&kept) {
            Ok(()) => return Some(kept),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Returns the directories in which to keep an output, the nearest first.
fn folders(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let beside = path.parent().filter(|folder| is_for_files(folder));
    let beside = beside.map(Path::to_owned);
    beside.into_iter().chain([std::env::temp_dir()])
}

/// Returns whether a file may be left there: /dev is kept in RAM, and ends with it.
fn is_for_files(folder: &Path) -> bool {
    let whole = fs::canonicalize(if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    });
    let kernel = ["/dev", "/proc", "/sys"];
    whole.is_ok_and(|whole| !kernel.iter().any(|root| whole.starts_with(root)))
}

fn keep_in(
    folder: &Path,
    path: &Path,
    what: Kept,
    write: &mut dyn FnMut(&mut File) -> io::Result<()>,
) -> Option<PathBuf> {
    for number in 1..=NUMBER_MAX {
        let kept = folder.join(numbered(path, number, what.extension));
        // Only a new file: an existing one of the name is not ours.
        match File::options().write(true).create_new(true).open(&kept) {
            Ok(mut file) => {
                if write(&mut file).is_ok() {
                    return Some(kept);
                }
                // A part of an output is of no use; if it cannot be removed, nothing else helps.
                let _left = fs::remove_file(&kept);
                return None;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Returns the name of a path with a number before its extension: `run.1.html`.
fn numbered(path: &Path, number: u32, extension: &str) -> OsString {
    let mut name: OsString = path.file_stem().unwrap_or("output".as_ref()).into();
    name.push(format!(".{number}"));
    let extension = path.extension().unwrap_or(extension.as_ref());
    if !extension.is_empty() {
        name.push(".");
        name.push(extension);
    }
    name
}

/// Most outputs of a name that are kept in one place.
const NUMBER_MAX: u32 = 99;
