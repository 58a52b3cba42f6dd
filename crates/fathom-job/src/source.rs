//! Places in job files and on the command line, for error messages.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::{secrets, url_passwords};

/// Place of an option, section or problem in a job file or on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The job file, or `command line` or `standard input`.
    pub file: String,
    /// Line, from 1; 0 on the command line.
    pub line: u32,
    /// Column in characters, from 1; on the command line the number of the argument.
    pub column: u32,
    /// The line and the range in it, for messages.
    pub(crate) spot: Option<Box<Spot>>,
}

impl Origin {
    /// Returns the place of these bytes of `text`, the content of `file`, cut at the end of the
    /// line.
    #[must_use]
    pub fn in_text(file: &str, text: &str, range: Range<usize>) -> Self {
        let from = boundary(text, range.start.min(text.len()));
        let start = text[..from].rfind('\n').map_or(0, |at| at + 1);
        let end = text[from..].find('\n').map_or(text.len(), |at| from + at);
        let number = text[..start].matches('\n').count() + 1;
        let spot = Spot {
            range: from - start..boundary(text, range.end.clamp(from, end)) - start,
            line: Arc::new(Line::new(
                Arc::from(file),
                u32::try_from(number).unwrap_or(u32::MAX),
                &text[start..end],
            )),
            argument: None,
        };
        spot.origin()
    }

    /// Returns the text at this place; empty if it was not kept.
    #[must_use]
    pub fn text(&self) -> &str {
        self.spot.as_deref().map_or("", Spot::text)
    }

    /// Returns whether both are the same place of the same file or command line.
    pub(crate) fn is_placed_as(&self, other: &Self) -> bool {
        let place = |origin: &Self| (origin.file.clone(), origin.line, origin.column);
        !self.file.is_empty() && place(self) == place(other)
    }
}

/// A line of a job file, or the whole command line. Each option that was given keeps its line, so
/// it is small.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) file: Arc<str>,
    /// Line number, from 1; 0 for the command line.
    pub(crate) number: u32,
    pub(crate) text: Box<str>,
    /// Ranges of the arguments, on the command line.
    pub(crate) arguments: Box<[Range<usize>]>,
    /// Text to show, once a message has asked for it: a long command line may have many messages.
    masked: OnceLock<Box<str>>,
}

impl Line {
    pub(crate) fn new(file: Arc<str>, number: u32, text: impl Into<Box<str>>) -> Self {
        Self {
            file,
            number,
            text: text.into(),
            arguments: Box::default(),
            masked: OnceLock::new(),
        }
    }

    /// Creates that of the command line.
    pub(crate) fn of_command(arguments: &[String]) -> Self {
        let mut ranges = Vec::with_capacity(arguments.len());
        let mut end = 0;
        for argument in arguments {
            ranges.push(end..end + argument.len());
            end += argument.len() + 1;
        }
        Self {
            arguments: ranges.into(),
            ..Self::new(Arc::from("command line"), 0, arguments.join(" "))
        }
    }

    /// Returns the text with as many stars as the bytes of secrets in it.
    fn masked(&self) -> &str {
        self.masked.get_or_init(|| {
            let options = match self.number {
                0 => secrets::masked_command(&self.text, &self.arguments),
                _ => secrets::masked(&self.text),
            };
            url_passwords::masked(&options).into()
        })
    }
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, self.number, &self.text) == (&other.file, other.number, &other.text)
    }
}

impl Eq for Line {}

/// Range of bytes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) line: Arc<Line>,
    pub(crate) range: Range<usize>,
    /// Number of the argument, on the command line.
    pub(crate) argument: Option<u32>,
}

impl Spot {
    /// Returns the text in the range.
    pub(crate) fn text(&self) -> &str {
        self.line.text.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns the text in the range, without secrets.
    pub(crate) fn shown(&self) -> String {
        let line = self.line.masked();
        line.get(self.range.clone()).unwrap_or_default().to_owned()
    }

    /// Returns a part of this spot, with `range` relative to its text; all of it if that is out of
    /// range or splits a character.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        let part = self.range.start + range.start..self.range.start + range.end;
        let fits = part.end <= self.range.end && self.line.text.get(part.clone()).is_some();
        Self {
            range: if fits { part } else { self.range.clone() },
            ..self.clone()
        }
    }

    /// Returns the place as the plan keeps it.
    pub(crate) fn origin(&self) -> Origin {
        // Only for lines of files: counting characters up to each argument of a long command line
        // would be quadratic.
        let column = || {
            let before = self.line.text.get(..self.range.start).unwrap_or_default();
            u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX)
        };
        Origin {
            file: self.line.file.to_string(),
            line: self.line.number,
            column: self.argument.unwrap_or_else(column),
            spot: Some(Box::new(self.clone())),
        }
    }

    /// Returns the part of the line around the spot that a message shows.
    pub(crate) fn window(&self) -> Window {
        // Before it is cut: secrets are found by what stands before them.
        let text = self.line.masked();
        let near = |index: usize| index.saturating_sub(WINDOW);
        let from = boundary(text, near(self.range.start));
        let to = boundary(text, (self.range.start + WINDOW).min(text.len()));
        let start = printable(&text[from..self.range.start]).len();
        let end = boundary(text, self.range.end.min(to));
        let marked = printable(&text[self.range.start..end.max(self.range.start)]).len();
        Window {
            text: printable(&text[from..to.max(end)]),
            marked: start..start + marked,
        }
    }
}

/// Part of a line, without control characters.
pub(crate) struct Window {
    pub(crate) text: String,
    /// Range of the spot in `text`.
    pub(crate) marked: Range<usize>,
}

/// Returns the last character boundary at or before `index`.
pub(crate) fn boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Replaces control characters, with which a job file could control the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\t' => ' ',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

/// Bytes passed to the renderer on each side of a spot; it shows what fits the screen.
const WINDOW: usize = 4000;
