//! Where text goes: data to standard output or `--output`, everything else to standard error.
//!
//! A closed pipe is not an error: whoever read it has seen enough.

use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use fathom_host::output_file::{self, OutputFile, Stop};

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

/// The place where a report goes.
#[derive(Debug)]
pub(crate) enum Data {
    /// Standard output, as it comes.
    Stdout,
    /// A file, which appears when all is there.
    File {
        /// The option that names it.
        option: &'static str,
        /// Its name.
        path: PathBuf,
        /// What it will hold.
        text: String,
        /// The file, and how many bytes have gone into it, once something has been shown.
        shown: Option<(OutputFile, usize)>,
        /// Ends the wait for the reader of a pipe.
        stop: Stop,
    },
}

impl Data {
    /// Standard output, or the file that `--output` names.
    pub(crate) fn new(output: Option<&str>) -> Self {
        match output {
            None => Self::Stdout,
            Some(path) => Self::file(OUTPUT, path),
        }
    }

    /// The file that an option names.
    pub(crate) fn file(option: &'static str, path: &str) -> Self {
        Self::File {
            option,
            path: path.into(),
            text: String::new(),
            shown: None,
            stop: Stop::never(),
        }
    }

    /// From now on the wait for the reader of a pipe ends when `stop` says so.
    pub(crate) fn stop_when(&mut self, when: &Stop) {
        if let Self::File { stop, .. } = self {
            *stop = when.clone();
        }
    }

    /// Whether a file can be written there; asked before a long run, not after it. One that was
    /// there keeps what it holds until there is something to take its place.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::File { option, path, .. } => {
                output_file::check(path).with_context(|| format!("{option}: {}", path.display()))
            }
        }
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

    /// Shows what there is so far: whole reports, while the run goes on. What cannot be shown now
    /// is tried again later.
    pub(crate) fn show(&mut self) {
        // Not synced: that would have a part in what is measured.
        let _later = self.place(false);
    }

    /// Forgets what was added and not shown.
    pub(crate) fn forget(&mut self) {
        if let Self::File { text, shown, .. } = self {
            text.truncate(shown.as_ref().map_or(0, |(_, bytes)| *bytes));
        }
    }

    /// Puts the file in place. A report that cannot be put there goes to standard output, so that
    /// it is not lost, and the error says so.
    pub(crate) fn finish(mut self) -> Result<()> {
        let Err(error) = self.place(true) else {
            return Ok(());
        };
        let Self::File {
            option, path, text, ..
        } = &self
        else {
            return Err(error.into());
        };
        let why = format!("{option}: {}: {error}", path.display());
        if *option != OUTPUT || text.is_empty() {
            bail!(why);
        }
        Self::Stdout.add(text).with_context(|| why.clone())?;
        bail!("{why}; the report is on standard output instead");
    }

    fn place(&mut self, last: bool) -> io::Result<()> {
        let Self::File {
            path,
            text,
            shown,
            stop,
            ..
        } = self
        else {
            return Ok(());
        };
        if text.is_empty() && shown.is_none() {
            return Ok(());
        }
        // A file that was removed or rotated meanwhile is written anew.
        let earlier = shown.take().filter(|(file, _)| file.is_there());
        let (mut file, gone) = match earlier {
            Some(earlier) => earlier,
            None => (OutputFile::create(path, stop)?, 0),
        };
        file.write_all(&text.as_bytes()[gone..])?;
        file.place(last)?;
        *shown = Some((file, text.len()));
        Ok(())
    }
}

/// The option that names the report's file.
const OUTPUT: &str = "--output";

#[cfg(test)]
mod tests {
    use std::fs;

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
        data.show();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n}\n");
        data.add("{}\n").unwrap();
        data.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n}\n{}\n");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
        assert!(Data::new(path.to_str()).check().is_err());
    }
}
