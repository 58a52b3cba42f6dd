//! Formats of log files whose lines are records: the table of them, and what each has to bring.
//!
//! To add one, write its file with a [`RecordFormat`] and add a row to [`RECORD_FORMATS`]; give
//! `log_format` of the job language its word.

use std::fmt;
use std::fs::File;
use std::io;

use super::format::Page;
use super::output::{FileFormat, Sink};
use super::row::{LogRow, Shape};
use super::{compressed, parquet};

/// Format of a log file other than text.
///
/// A line is encoded by a call through a pointer, a few nanoseconds beside the compression of its
/// record. Text, the format for every op of fast jobs, therefore has a path of its own.
pub(super) struct RecordFormat {
    /// Word of `log_format` that selects it.
    pub(super) name: &'static str,
    /// End of the names of its files.
    pub(super) extension: &'static str,
    /// First bytes of its files.
    pub(super) magic: &'static [u8],
    /// Largest page, in bytes: what is written at once.
    pub(super) page_bytes_max: usize,
    /// Lines can be added to a complete file.
    pub(super) can_append: bool,
    /// Reason why this program cannot write it, if it cannot.
    pub(super) unavailable: Option<&'static str>,
    /// Returns a part of a shape that it has no column for.
    pub(super) lacks: fn(Shape) -> Option<&'static str>,
    /// Appends a line to a page.
    pub(super) encode: fn(&LogRow, Shape, &mut Page),
    /// Starts a file.
    pub(super) start: fn(Sink, &FileFormat) -> io::Result<Box<dyn RecordFile>>,
    /// Passes each row of a file to a visitor. A file that breaks off is an `UnexpectedEof`.
    pub(super) read: fn(File, RowVisitor<'_>) -> io::Result<()>,
    /// Returns the name of the value's column, if files have names.
    pub(super) value_name: fn(File) -> io::Result<Option<String>>,
}

/// Callback for each row; an error ends the reading.
pub(super) type RowVisitor<'a> = &'a mut dyn FnMut(&LogRow, Shape) -> io::Result<()>;

/// File of records being written.
pub(super) trait RecordFile: fmt::Debug + Send {
    /// Writes a page of encoded lines.
    fn write_page(&mut self, records: &[u8]) -> io::Result<()>;

    /// Completes the file, also after an error of `write_page`, and returns its sink.
    fn finish(self: Box<Self>) -> io::Result<Sink>;
}

impl RecordFormat {
    /// Returns the format that `log_format` selects by this word; `None` for text.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        let mut formats = RECORD_FORMATS.iter().copied();
        formats.find(|format| format.name == name)
    }

    /// Returns the format of files whose names end in this extension.
    pub(super) fn of_extension(extension: &str) -> Option<&'static Self> {
        let last = |format: &&Self| format.extension.rsplit('.').next() == Some(extension);
        RECORD_FORMATS.iter().copied().find(last)
    }

    /// Returns the format of a file that begins with these bytes.
    pub(super) fn of_content(first: &[u8]) -> Option<&'static Self> {
        let mut formats = RECORD_FORMATS.iter().copied();
        formats.find(|format| first.starts_with(format.magic))
    }
}

impl fmt::Debug for RecordFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Formats are equal if their names are: these are unique, and function pointers cannot be compared
/// reliably.
impl PartialEq for RecordFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for RecordFormat {}

/// All formats but text.
static RECORD_FORMATS: [&RecordFormat; 2] = [&compressed::FORMAT, &parquet::FORMAT];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_found_by_name_extension_and_content() {
        for format in RECORD_FORMATS {
            assert_eq!(RecordFormat::find(format.name), Some(format));
            let extension = format.extension.rsplit('.').next().expect("a part");
            assert_eq!(RecordFormat::of_extension(extension), Some(format));
            assert_eq!(RecordFormat::of_content(format.magic), Some(format));
        }
        assert_eq!(RecordFormat::find("text"), None);
        assert_eq!(RecordFormat::of_extension("log"), None);
        assert_eq!(RecordFormat::of_content(b"0, 1, 0, 4096, 0"), None);
    }
}
