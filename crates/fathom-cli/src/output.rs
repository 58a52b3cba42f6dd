//! Where text goes: data to standard output or `--output`, everything else to standard error.
//!
//! A closed pipe is not an error: whoever read it has seen enough.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::exit::End;

/// One of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output.
    Data,
    /// Standard error.
    Error,
}

/// Prints to a stream that may be closed.
pub(crate) fn print(stream: Stream, text: &str) {
    // With standard error gone there is nobody left to tell; with standard output gone, see above.
    let _closed = match stream {
        Stream::Data => write_all(&mut io::stdout().lock(), text),
        Stream::Error => write_all(&mut io::stderr().lock(), text),
    };
}

/// Prints what was asked for, of which there is nothing else, and ends so; or otherwise, if it
/// cannot be written, which is told under the program's name.
pub(crate) fn show(text: &str, program: &str, end: End) -> End {
    match Data::Stdout.add(text) {
        Ok(()) => end,
        Err(error) => not_written(&error, program),
    }
}

/// Says why there is no report where it was to go.
pub(crate) fn not_written(error: &anyhow::Error, program: &str) -> End {
    print(Stream::Error, &format!("{program}: {error:#}\n"));
    End::NotReported
}

fn write_all(stream: &mut dyn Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Where the report goes.
#[derive(Debug)]
pub(crate) enum Data {
    /// Standard output, as it comes.
    Stdout,
    /// A file. A new one is written beside its name when all is there, and renamed. One that was
    /// there is written where it is: it may be a link, mounted by itself, or not for all to read.
    File {
        /// The option that names it.
        option: &'static str,
        /// Its name.
        path: PathBuf,
        /// What it will hold.
        text: String,
        /// Where it is a pipe or a device: that, and how many bytes have gone into it.
        stream: Option<(File, usize)>,
    },
}

impl Data {
    /// Standard output, or the file that `--output` names.
    pub(crate) fn new(output: Option<&str>) -> Self {
        match output {
            None => Self::Stdout,
            Some(path) => Self::file("--output", path),
        }
    }

    /// The file that an option names.
    pub(crate) fn file(option: &'static str, path: &str) -> Self {
        Self::File {
            option,
            path: path.into(),
            text: String::new(),
            stream: None,
        }
    }

    /// Whether a file can be written there; asked before a long run, not after it. One that was
    /// there keeps what it holds until there is something to take its place.
    pub(crate) fn check(&self) -> Result<()> {
        let Self::File { option, path, .. } = self else {
            return Ok(());
        };
        if path.is_dir() {
            anyhow::bail!("{option}: {} is a directory", path.display());
        }
        if is_special(path) {
            return Ok(()); // opened when there is something to write
        }
        if is_there(path) {
            open_there(path).with_context(|| format!("{option}: {}", path.display()))?;
            return Ok(());
        }
        let beside = beside(path);
        File::create(&beside).with_context(|| format!("{option}: {}", path.display()))?;
        fs::remove_file(&beside).with_context(|| format!("{option}: {}", beside.display()))
    }

    /// Adds text.
    pub(crate) fn add(&mut self, more: &str) -> Result<()> {
        match self {
            Self::File { text, .. } => text.push_str(more),
            Self::Stdout => match write_all(&mut io::stdout().lock(), more) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                result => result.context("standard output")?,
            },
        }
        Ok(())
    }

    /// Shows what there is so far: whole reports, while the run goes on.
    pub(crate) fn show(&mut self) -> Result<()> {
        // Not synced: that would have a part in what is measured.
        self.place(false)
    }

    /// Puts the file in place.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.place(true)
    }

    fn place(&mut self, last: bool) -> Result<()> {
        let Self::File {
            option,
            path,
            text,
            stream,
        } = self
        else {
            return Ok(());
        };
        let placed = if is_special(path) {
            write_on(stream, path, text)
        } else if is_there(path) {
            write_there(path, text, last)
        } else {
            write_beside(path, text, last)
        };
        placed.with_context(|| format!("{option}: {}", path.display()))
    }
}

/// A pipe or a device.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
}

/// Whether there is a file of this name, or a link to where one is to be.
fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Writes to a pipe or a device what has not gone there yet.
fn write_on(stream: &mut Option<(File, usize)>, path: &Path, text: &str) -> io::Result<()> {
    let (file, gone) = match stream {
        Some(stream) => stream,
        None => stream.insert((File::options().write(true).open(path)?, 0)),
    };
    file.write_all(&text.as_bytes()[*gone..])?;
    *gone = text.len();
    Ok(())
}

/// Writes a file where it is. What was written before is the beginning of what is written now: who
/// reads meanwhile sees no less than before.
fn write_there(path: &Path, text: &str, last: bool) -> io::Result<()> {
    let mut file = open_there(path)?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    if last { file.sync_all() } else { Ok(()) }
}

/// Opens a file where it is, with what it holds; a link may lead to one that is not there yet.
fn open_there(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false).open(path)
}

/// Writes a file under another name, and renames it.
fn write_beside(path: &Path, text: &str, last: bool) -> io::Result<()> {
    let beside = beside(path);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if last { file.sync_all() } else { Ok(()) }
    });
    let placed = written.and_then(|()| fs::rename(&beside, path));
    if placed.is_err() {
        // It may be there half-written, or not at all.
        let _gone = fs::remove_file(&beside);
    }
    placed
}

/// The name that a file is written under first.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("fathom-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("report.json");
        let mut data = Data::new(path.to_str());
        data.check().unwrap();
        data.add("{\n").unwrap();
        assert!(!path.exists());
        data.add("}\n").unwrap();
        data.show().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n}\n");
        data.add("{}\n").unwrap();
        data.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n}\n{}\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
        assert!(Data::new(path.to_str()).check().is_err());
    }
}
