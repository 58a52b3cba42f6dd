//! Errors of decoding, each with its place, its reason and a remedy.

use std::fmt;

/// Error in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IologError {
    /// Name of the log, as the caller gave it.
    pub log: String,
    /// Place in the log.
    pub place: Place,
    /// Reason.
    pub kind: IologErrorKind,
}

impl fmt::Display for IologError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Line(line) => write!(f, "{}:{line}: {}", self.log, self.kind),
            Place::Byte(byte) => write!(f, "{}: byte {byte}: {}", self.log, self.kind),
        }
    }
}

impl std::error::Error for IologError {}

/// Place in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Line of a text, from 1.
    Line(u64),
    /// Byte offset of a binary record, from 0.
    Byte(u64),
}

/// Reason of an [`IologError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IologErrorKind {
    /// The first bytes are those of no known format.
    UnknownFormat,
    /// An I/O log of a version that is not supported.
    Version(String),
    /// A header after the first line: several recordings in one file.
    SecondHeader,
    /// A line that ends before the log does is longer than any line of a log.
    LongLine,
    /// A line with a wrong number of fields.
    Fields(usize),
    /// A name that is not UTF-8.
    Encoding,
    /// A field that is not a whole number: its name and text.
    NotANumber(&'static str, String),
    /// A negative number: the field's name and text.
    Negative(&'static str, String),
    /// A number beyond its limit: the field's name, and the limit.
    TooLarge(&'static str, u64),
    /// An action that is not known.
    UnknownAction(String),
    /// `wait` in a log whose lines have times.
    Wait,
    /// An op of no bytes.
    Empty,
    /// A file that was not added before.
    NotAdded(String),
    /// An op on a file that is not open, or a close of it.
    NotOpen(String),
    /// A file opened twice.
    AlreadyOpen(String),
    /// Too many files, or names too long in sum.
    TooManyNames,
    /// A trace record without its magic number.
    Magic(u32),
    /// A trace of a version that is not supported.
    TraceVersion(u8),
    /// A log that is not a trace, where only traces are accepted.
    NotATrace,
    /// No op in the whole log.
    NoOps,
}

impl IologErrorKind {
    /// Returns the remedy, an imperative.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::UnknownFormat => {
                "give a log of `write_iolog`, or a binary trace (`blkparse -d`, or `blktrace -o -`)"
            }
            Self::Version(_) => "record it again with fio 1.17 or later, or with `write_iolog`",
            Self::SecondHeader => {
                "split the log before this line: fio appended another recording to it"
            }
            Self::NotAdded(_) => "insert a line `FILE add` before it",
            Self::NotOpen(_) => "insert a line `FILE open` before it",
            Self::AlreadyOpen(_) => "insert a line `FILE close` before it, or remove it",
            Self::Wait => "use the times at the start of each line, or make it a version 2 log",
            Self::UnknownAction(_) => {
                "use add, open, close, read, write, trim, sync or datasync, and wait in version 2"
            }
            Self::Magic(_) => "cut the trace there, or record it again: the rest is not readable",
            Self::TraceVersion(_) => "record it with a Linux kernel's blktrace",
            Self::NotATrace => {
                "give binary traces (`blkparse -d`, or `blktrace -o -`), which alone can be merged"
            }
            Self::NoOps => "record a job that does I/O, or skip less of it",
            Self::LongLine
            | Self::Fields(_)
            | Self::Encoding
            | Self::NotANumber(..)
            | Self::Negative(..)
            | Self::TooLarge(..)
            | Self::Empty
            | Self::TooManyNames => "correct or remove it",
        }
    }
}

impl fmt::Display for IologErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownFormat => f.write_str("neither an I/O log of fio nor a binary blktrace"),
            Self::Version(version) => {
                write!(f, "version `{version}` of I/O logs is not supported")
            }
            Self::SecondHeader => f.write_str("second header: the log holds several recordings"),
            Self::LongLine => f.write_str("line too long for an I/O log"),
            Self::Fields(count) => write!(f, "{count} fields, which no action has"),
            Self::Encoding => f.write_str("not UTF-8"),
            Self::NotANumber(field, text) => {
                write!(f, "{field} `{text}` is not a whole number")
            }
            Self::Negative(field, text) => write!(f, "{field} `{text}` is negative"),
            Self::TooLarge(field, limit) => write!(f, "{field} exceeds {limit}"),
            Self::UnknownAction(action) => write!(f, "unknown action `{action}`"),
            Self::Wait => f.write_str("`wait` is an action of version 2 only"),
            Self::Empty => f.write_str("an op of 0 bytes"),
            Self::NotAdded(name) => write!(f, "`{name}` was not added"),
            Self::NotOpen(name) => write!(f, "`{name}` is not open"),
            Self::AlreadyOpen(name) => write!(f, "`{name}` is already open"),
            Self::TooManyNames => f.write_str("too many files"),
            Self::Magic(magic) => {
                write!(
                    f,
                    "not a trace record: {magic:#010x} in place of its magic number"
                )
            }
            Self::TraceVersion(version) => {
                write!(f, "version {version} of the trace format is not supported")
            }
            Self::NotATrace => f.write_str("not a binary blktrace"),
            Self::NoOps => f.write_str("no op to replay"),
        }
    }
}

/// Returns `text` fit for a message: printable and short.
pub(crate) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]);
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Bytes of a log's text that a message repeats.
const SHOWN_MAX: usize = 64;
