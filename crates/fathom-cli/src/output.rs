//! Output streams: data goes to standard output or `--output`, everything else to standard error.
//!
//! A closed pipe is not an error: its reader has seen enough.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use fathom_host::output_file::{self, OutputFile, Stop};

use fathom_job::{Diagnostics, Dialect};

use crate::exit::ProgramEnd;
use crate::held_output;
use crate::rank_voice;
use crate::text_width::fitted_messages;

pub(crate) use crate::standard_stream::StandardStream;
pub(crate) use fathom_report::printable_lines;

/// Prints to a stream that may be closed.
pub(crate) fn print(stream: StandardStream, text: &str) {
    if rank_voice::takes(stream, text) || held_output::takes(stream, text) {
        return;
    }
    // A closed standard error leaves nowhere to report it; for standard output see the module.
    let _closed = match stream {
        StandardStream::Data => write_all(&mut io::stdout().lock(), text),
        StandardStream::Error => write_all(&mut io::stderr().lock(), text),
    };
}

/// Prints what was held back while a view had the terminal.
#[cfg_attr(
    not(feature = "live"),
    expect(dead_code, reason = "no view has the terminal")
)]
pub(crate) fn print_held() {
    for (stream, text) in held_output::release() {
        print(stream, &text);
    }
}

/// Prints the whole output of a command and returns `end`; if it cannot be written, reports that
/// under the program's name.
pub(crate) fn show(text: &str, program: &str, end: ProgramEnd) -> ProgramEnd {
    match Data::Stdout.add(text) {
        Ok(()) => end,
        Err(error) => not_written(&error, program),
    }
}

/// Returns the beginning of a foreign text, without control characters, for a message.
pub(crate) fn beginning(text: &str) -> String {
    let mut letters = text.chars();
    let start: String = letters.by_ref().take(SHOWN_MAX).collect();
    let more = if letters.next().is_some() { "…" } else { "" };
    format!("{}{more}", fathom_lab::printable(&start))
}

/// Prints why the output could not be written.
pub(crate) fn not_written(error: &anyhow::Error, program: &str) -> ProgramEnd {
    print(StandardStream::Error, &format!("{program}: {error:#}\n"));
    ProgramEnd::NotReported
}

/// Renders diagnostics for standard error: on a terminal in colour, and fitted to it.
pub(crate) fn render(diagnostics: &Diagnostics, dialect: Dialect) -> String {
    let program = dialect.program();
    let text = diagnostics.render(program, has_colour(&io::stderr()));
    match io::stderr().is_terminal() {
        true => fitted_messages(&text, program),
        false => text,
    }
}

/// Returns whether text on this stream may be in colour.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

fn write_all(stream: &mut dyn Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Destination of a report.
#[derive(Debug)]
pub(crate) enum Data {
    /// Standard output, written at once.
    Stdout,
    /// A file, put in place when it is complete.
    File {
        /// Option that names it.
        option: &'static str,
        /// Its name.
        path: PathBuf,
        /// Contents so far.
        text: String,
        /// The open file and the number of bytes written to it, after the first `show`.
        shown: Option<(OutputFile, usize)>,
        /// Condition on which to stop waiting for the reader of a pipe.
        stop: Stop,
    },
}

impl Data {
    /// Creates the destination `--output` names, or standard output.
    pub(crate) fn new(output: Option<&str>) -> Self {
        match output {
            None => Self::Stdout,
            Some(path) => Self::file(OUTPUT, path),
        }
    }

    /// Creates the destination that `option` names.
    pub(crate) fn file(option: &'static str, path: &str) -> Self {
        Self::File {
            option,
            path: path.into(),
            text: String::new(),
            shown: None,
            stop: Stop::never(),
        }
    }

    /// Sets the condition on which to stop waiting for the reader of a pipe.
    pub(crate) fn stop_when(&mut self, when: &Stop) {
        if let Self::File { stop, .. } = self {
            *stop = when.clone();
        }
    }

    /// Checks that the file can be written: before a long run, not after it. An existing file keeps
    /// its contents until there is something to replace them.
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
            Self::Stdout if rank_voice::takes(StandardStream::Data, more) => {}
            Self::Stdout if held_output::takes(StandardStream::Data, more) => {}
            Self::Stdout => match write_all(&mut io::stdout().lock(), more) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                result => result.context("standard output")?,
            },
        }
        Ok(())
    }

    /// Makes the reports so far visible while the run goes on. A failure is not reported: `finish`
    /// tries again.
    pub(crate) fn show(&mut self) {
        // Not synced: that I/O would disturb the measurement.
        let _later = self.place(false);
    }

    /// Discards what was added since the last `show`.
    pub(crate) fn forget(&mut self) {
        if let Self::File { text, shown, .. } = self {
            text.truncate(shown.as_ref().map_or(0, |(_, bytes)| *bytes));
        }
    }

    /// Puts the file in place. If that fails, the report goes to standard output so that it is not
    /// lost, and the error says so.
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
        // A file that was removed or rotated meanwhile is created again.
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

/// Option that names the report's file.
const OUTPUT: &str = "--output";

/// Letters of another's text in a message.
const SHOWN_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
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
