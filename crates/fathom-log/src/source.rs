//! Finished logs of any format, to be read row by row.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::parse::{TextLayout, header, names};
use super::record_format::{RecordFormat, RowVisitor};
use super::row::{LogRow, Shape};
use super::text::{CutLine, LineProblem, TextEnd, detect, read_rows};

/// Log of ours or of fio's, whose format was recognised by its content.
#[derive(Clone, Debug)]
pub struct LogSource {
    path: PathBuf,
    format: SourceFormat,
    shape: Shape,
    /// Name of the value's column, where the file has one.
    value: Option<String>,
}

/// Format of a source file.
#[derive(Clone, Debug)]
enum SourceFormat {
    Text(TextLayout),
    Records(&'static RecordFormat),
}

/// End of a log that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// The log is whole, as far as one can tell.
    Whole,
    /// The last line has no line end, and may have been cut.
    NoLineEnd,
    /// The file breaks off within a line or a record, which was left out; with the reason.
    Cut(String),
}

/// Place of an error in a text log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLineError {
    /// Number of the line, from 1.
    pub line: u64,
    /// Reason.
    pub why: String,
}

impl LogSource {
    /// Recognises the format of a regular file, and the columns of its lines.
    ///
    /// # Errors
    /// The file cannot be read, or is not a log.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (format, value) = recognise(path)?;
        let shape = match &format {
            SourceFormat::Text(layout) => layout.shape,
            SourceFormat::Records(format) => shape_of_records(format, path)?,
        };
        Ok(Self {
            path: path.to_owned(),
            format,
            shape,
            value,
        })
    }

    /// Returns the optional columns that the lines have.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the name of the format.
    #[must_use]
    pub const fn format_name(&self) -> &'static str {
        match &self.format {
            SourceFormat::Text(layout) if layout.has_header => "CSV",
            SourceFormat::Text(_) => "text",
            SourceFormat::Records(format) => format.name,
        }
    }

    /// Returns the name of the value's column, if the file has names: `clat_ns`.
    #[must_use]
    pub fn value_name(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Passes each row to `each`. A last line that was cut is left out.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is not one of a log; the error that `each`
    /// returns.
    pub fn read(&self, each: &mut dyn FnMut(&LogRow) -> io::Result<()>) -> io::Result<LogEnd> {
        match &self.format {
            SourceFormat::Text(layout) => {
                let file = File::open(&self.path)?;
                let end = read_rows(file, layout, CutLine::Skip, each)?;
                Ok(match end {
                    TextEnd::Whole => LogEnd::Whole,
                    TextEnd::NoLineEnd => LogEnd::NoLineEnd,
                    TextEnd::Cut => LogEnd::Cut("it breaks off within a line".to_owned()),
                })
            }
            SourceFormat::Records(_) => {
                let mut rows = 0_u64;
                let read = self.rows(&mut |row, _| {
                    rows += 1;
                    each(row)
                });
                match read {
                    Ok(()) => Ok(LogEnd::Whole),
                    Err(error) if rows > 0 && error.kind() == ErrorKind::UnexpectedEof => {
                        Ok(LogEnd::Cut(error.to_string()))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Passes each row to `each`, and refuses a last line that was cut.
    pub(super) fn rows(&self, each: RowVisitor<'_>) -> io::Result<()> {
        let file = File::open(&self.path)?;
        match &self.format {
            SourceFormat::Records(format) => (format.read)(file, each),
            SourceFormat::Text(layout) => {
                let shape = layout.shape;
                let each = &mut |row: &LogRow| each(row, shape);
                read_rows(file, layout, CutLine::Refuse, each).map(|_| ())
            }
        }
    }
}

impl LogLineError {
    /// Returns the line of an error of [`LogSource::open`] or [`LogSource::read`], if it has one.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        let problem = error.get_ref()?.downcast_ref::<LineProblem>()?;
        Some(Self {
            line: problem.line,
            why: problem.why.to_string(),
        })
    }
}

/// Returns the format of a file, and the name of the value's column if the file has one.
fn recognise(path: &Path) -> io::Result<(SourceFormat, Option<String>)> {
    let mut file = File::open(path)?;
    let mut first = Vec::new();
    file.by_ref().take(PEEK_BYTES).read_to_end(&mut first)?;
    if let Some(format) = RecordFormat::of_content(&first) {
        let value = (format.value_name)(File::open(path)?)?;
        return Ok((SourceFormat::Records(format), value));
    }
    if first.starts_with(b"time_ms") {
        let line = first.split(|&byte| byte == b'\n').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default());
        let value = Shape::value_name(names(&line));
        return Ok((SourceFormat::Text(header(&line)?), value));
    }
    let layout = detect(File::open(path)?)?;
    Ok((SourceFormat::Text(layout), None))
}

/// Returns the shape of all rows: that of the first.
fn shape_of_records(format: &RecordFormat, path: &Path) -> io::Result<Shape> {
    let mut first = None;
    let found = (format.read)(File::open(path)?, &mut |_, shape| {
        first = Some(shape);
        Err(io::Error::other("seen enough"))
    });
    match (first, found) {
        (Some(shape), _) => Ok(shape),
        (None, found) => found.map(|()| Shape::default()),
    }
}

/// Bytes read to recognise the format.
const PEEK_BYTES: u64 = 512;
