//! One log file being written.

use std::fs::File;
use std::io::{self, Write};

use fathom_host::output_file::{OutputFile, OutputStream, Stop};

use super::format::Page;
use super::record_format::{RecordFile, RecordFormat};
use super::row::Shape;

/// Destination of a log.
#[derive(Debug)]
pub(super) enum Sink {
    /// A regular file, written in place.
    File(File),
    /// A pipe or a device.
    Stream(OutputStream, Stop),
    /// A file that is renamed into place when it is complete.
    Whole(OutputFile),
    Memory(Vec<u8>),
}

/// Format of a log file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Lines of text, fio's own.
    Text,
    Records(&'static RecordFormat),
}

impl LogFormat {
    /// Returns the end of the names of files in this format.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Text => "log",
            Self::Records(format) => format.extension,
        }
    }

    /// Returns whether lines can be added to a complete file.
    pub(crate) const fn can_append(self) -> bool {
        match self {
            Self::Text => true,
            Self::Records(format) => format.can_append,
        }
    }
}

/// Format and content of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFormat {
    pub(crate) format: LogFormat,
    /// Columns, needed by the Parquet schema; text and compressed records describe themselves.
    pub(crate) shape: Shape,
    /// Logged quantity, with its unit.
    pub(crate) value: String,
}

/// A log file and its page of lines to be written next.
///
/// After a write error nothing more is written, so that a full disk leaves a valid log up to that
/// point; the lines that follow are counted as lost.
#[derive(Debug)]
pub(super) struct Output {
    /// Lines as text, or as records of the format.
    pub(super) page: Page,
    /// Lines on the page.
    pub(super) lines: u64,
    pub(super) format: LogFormat,
    body: Body,
    /// First error; nothing is written after it.
    failed: Option<io::Error>,
    lost: u64,
}

#[derive(Debug)]
enum Body {
    Text(Sink),
    Records(Box<dyn RecordFile>),
    /// Could not be started.
    None,
}

impl Output {
    pub(super) fn new(sink: Sink, form: &FileFormat, page_bytes: usize) -> Self {
        let mut failed = None;
        let body = match form.format {
            LogFormat::Text => Body::Text(sink),
            LogFormat::Records(format) => match (format.start)(sink, form) {
                Ok(file) => Body::Records(file),
                Err(error) => {
                    failed = Some(error);
                    Body::None
                }
            },
        };
        Self {
            page: Page::new(page_bytes),
            lines: 0,
            format: form.format,
            body,
            failed,
            lost: 0,
        }
    }

    /// Writes the page, unless a write has failed before; the jobs continue either way.
    pub(super) fn flush(&mut self) {
        let page = self.page.written();
        if self.failed.is_none() && !page.is_empty() {
            let result = match &mut self.body {
                Body::Text(sink) => sink.write_all(page),
                Body::Records(file) => file.write_page(page),
                Body::None => Ok(()),
            };
            self.failed = result.err();
        }
        if self.failed.is_some() {
            self.lost += self.lines;
        }
        self.lines = 0;
        self.page.clear();
    }

    /// Returns the number of lines lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Finishes the file and returns the first error and the sink.
    pub(super) fn into_end(self) -> (Option<io::Error>, Option<Sink>) {
        let (ended, sink) = match self.body {
            Body::Text(sink) => (None, Some(sink)),
            // Also after an error: what was written before it stays readable.
            Body::Records(file) => match file.finish() {
                Ok(sink) => (None, Some(sink)),
                Err(error) => (Some(error), None),
            },
            Body::None => (None, None),
        };
        (self.failed.or(ended), sink)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stream(stream, stop) => Ok(stream.write(bytes, &|| stop.is_asked())?),
            Self::Whole(file) => file.write(bytes),
            Self::Memory(memory) => memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
