//! Output of `fathom report`: the page, and its figures one by one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fathom_host::output_file::{self, Stop};
use fathom_report::Page;
use fathom_sys::signals::Interrupts;

use crate::failure::with_hint;

/// Writes a page, and each of its figures into a directory if one is named.
///
/// What cannot be written under its name is kept under another one, which the error tells: the
/// numbers behind a page may have taken long to collect.
pub(crate) fn write(page: &Page, html: &Path, svg_dir: Option<&Path>) -> Result<()> {
    let interrupts = Interrupts::install().context("signals")?;
    let stop = Stop::when(move || interrupts.count() > 0);
    write_or_keep(html, page.html().as_bytes(), &stop).context("--html")?;
    let Some(folder) = svg_dir else {
        return Ok(());
    };
    let option = || format!("--svg-dir: {}", folder.display());
    fs::create_dir_all(folder).with_context(option)?;
    for drawing in page.drawings() {
        let path = folder.join(format!("{}.svg", drawing.name));
        let written = output_file::write(&path, drawing.svg.as_bytes(), &stop);
        written
            .map_err(|error| at(&path, error))
            .context("--svg-dir")?;
    }
    Ok(())
}

fn write_or_keep(path: &Path, bytes: &[u8], stop: &Stop) -> Result<()> {
    let Err(error) = output_file::write(path, bytes, stop) else {
        return Ok(());
    };
    let error = at(path, error);
    if stop.is_asked() {
        return Err(error);
    }
    match keep(path, bytes) {
        Some(kept) => {
            let hint = format!("the page was kept as {}", kept.display());
            Err(with_hint(format!("{error:#}"), Some(hint)))
        }
        None => Err(error),
    }
}

/// Returns the error with the path, which a refusal names itself.
fn at(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let (text, path) = (error.to_string(), path.display().to_string());
    match text.starts_with(&path) {
        true => anyhow::Error::new(error),
        false => anyhow::Error::new(error).context(path),
    }
}

/// Writes a new file beside a path, or among the temporary ones, and returns its name.
fn keep(path: &Path, bytes: &[u8]) -> Option<PathBuf> {
    let beside = path.parent().filter(|folder| is_for_files(folder));
    let folders = beside.map(Path::to_owned).into_iter();
    let mut folders = folders.chain([std::env::temp_dir()]);
    folders.find_map(|folder| keep_in(&folder, path, bytes))
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

fn keep_in(folder: &Path, path: &Path, bytes: &[u8]) -> Option<PathBuf> {
    for number in 1..=NUMBER_MAX {
        let mut name: OsString = path.file_stem().unwrap_or("report".as_ref()).into();
        name.push(format!(".{number}.html"));
        let kept = folder.join(name);
        // Only a new file: another one of the name is somebody's.
        match File::options().write(true).create_new(true).open(&kept) {
            Ok(mut file) => {
                if file.write_all(bytes).is_ok() {
                    return Some(kept);
                }
                // A part of a page is of no use; if it cannot be removed there is nothing to try.
                let _left = fs::remove_file(&kept);
                return None;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Most pages that are kept in one place.
const NUMBER_MAX: u32 = 99;
