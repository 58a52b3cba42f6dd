//! Reader of text logs: large chunks, of which whole lines are parsed in place.
//!
//! ```text
//! buffer   │ line ⏎ line ⏎ line ⏎ part of a line │ room for the next read │
//!            parsed ───────────►   moved to the front
//! ```
//!
//! A `String` per line was rejected: copying lines and checking their UTF-8 takes longer than
//! parsing them.

use std::fmt;
use std::io::{self, Read};

use super::numbers::{LineError, Numbers, common_numbers, numbers};
use super::parse::TextLayout;
use super::row::LogRow;

/// Returns the layout consistent with the lines, as far as they have to be read: to the first one
/// that leaves one layout.
///
/// # Errors
/// A line that no layout has, as a [`LineProblem`]; errors of reading.
pub(super) fn detect(from: impl Read) -> io::Result<TextLayout> {
    let mut lines = Lines::new(from, 1);
    let Some(first) = lines.next()? else {
        return plain();
    };
    let numbers = first.numbers.clone().map_err(|why| first.problem(why))?;
    let mut left = TextLayout::all(&numbers);
    if left.is_empty() {
        return Err(first.problem(wrong_count(&numbers)).into());
    }
    let mut line = first;
    loop {
        match fitting(&left, &line) {
            Ok(fitting) => left = fitting,
            // A last line that was cut proves nothing.
            Err(_) if line.number > 1 && !line.is_whole => break,
            Err(why) => return Err(line.problem(why).into()),
        }
        match lines.next()? {
            Some(next) if left.len() > 1 => line = next,
            _ => break,
        }
    }
    Ok(left.swap_remove(0))
}

/// Returns the layouts that fit a line, or why none does.
fn fitting(layouts: &[TextLayout], line: &Line) -> Result<Vec<TextLayout>, LineError> {
    let numbers = line.numbers.clone()?;
    let mut why = LineError::TooLarge;
    let mut fits = |layout: &&TextLayout| layout.row(&numbers).map_err(|no| why = no).is_ok();
    let fitting: Vec<TextLayout> = layouts.iter().filter(|one| fits(one)).cloned().collect();
    match fitting.is_empty() {
        true => Err(why),
        false => Ok(fitting),
    }
}

/// Returns the layout of a log without lines: any would do.
fn plain() -> io::Result<TextLayout> {
    let numbers = Numbers {
        count: 5,
        ..Numbers::default()
    };
    let mut layouts = TextLayout::all(&numbers);
    Ok(layouts.swap_remove(0))
}

const fn wrong_count(numbers: &Numbers) -> LineError {
    match numbers.count {
        0..5 => LineError::TooFewColumns,
        count => LineError::TooManyColumns(count),
    }
}

/// Passes each row of a log to `each`.
///
/// # Errors
/// The first line that is not one of a log, as a [`LineProblem`]; errors of `from` and of `each`.
pub(super) fn read_rows(
    from: impl Read,
    layout: &TextLayout,
    cut: CutLine,
    each: &mut dyn FnMut(&LogRow) -> io::Result<()>,
) -> io::Result<TextEnd> {
    let mut lines = Lines::new(from, 1);
    if layout.has_header {
        let _names = lines.next()?;
    }
    let mut end = TextEnd::Whole;
    let mut rows = 0_u64;
    while let Some(line) = lines.next()? {
        let row = match &line.numbers {
            Ok(numbers) => layout.row(numbers),
            Err(why) => Err(why.clone()),
        };
        match row {
            Ok(row) => each(&row)?,
            Err(_) if cut == CutLine::Skip && rows > 0 && lines.may_be_cut(&line) => {
                return Ok(TextEnd::Cut);
            }
            Err(why) => return Err(line.problem(why).into()),
        }
        rows += 1;
        if !line.is_whole {
            end = TextEnd::NoLineEnd;
        }
    }
    Ok(end)
}

/// Treatment of a last line that was cut: its writer was killed, or is still at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutLine {
    /// An error, as any other line that is not one of a log.
    Refuse,
    /// Left out.
    Skip,
}

/// End of a text log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextEnd {
    /// After a line end, or there are no lines.
    Whole,
    /// After a line without a line end.
    NoLineEnd,
    /// Within a line, which was left out.
    Cut,
}

/// Line that is not one of a log.
#[derive(Clone, Debug)]
pub(super) struct LineProblem {
    /// Number of the line, from 1.
    pub(super) line: u64,
    pub(super) why: LineError,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for LineProblem {}

impl From<LineProblem> for io::Error {
    fn from(problem: LineProblem) -> Self {
        Self::new(io::ErrorKind::InvalidData, problem)
    }
}

/// Lines of a file, one after the other.
struct Lines<R> {
    from: R,
    buffer: Box<[u8]>,
    /// Start of the next line.
    at: usize,
    /// End of the last whole line in the buffer.
    whole: usize,
    /// End of what was read.
    filled: usize,
    /// Number of the next line.
    number: u64,
    is_over: bool,
}

/// A line's numbers, or why it has none.
struct Line {
    numbers: Result<Numbers, LineError>,
    number: u64,
    /// It ends with a line end.
    is_whole: bool,
}

impl Line {
    const fn problem(&self, why: LineError) -> LineProblem {
        LineProblem {
            line: self.number,
            why,
        }
    }
}

impl<R: Read> Lines<R> {
    fn new(from: R, number: u64) -> Self {
        Self {
            from,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            at: 0,
            whole: 0,
            filled: 0,
            number,
            is_over: false,
        }
    }

    /// Returns the next line; `None` at the end of the file.
    #[inline]
    fn next(&mut self) -> io::Result<Option<Line>> {
        if self.at == self.whole && !self.refill()? {
            return self.last();
        }
        let bytes = &self.buffer[self.at..self.whole];
        let (numbers, length) = match common_numbers(bytes) {
            Some((numbers, length)) => (Ok(numbers), length),
            None => uncommon(bytes),
        };
        self.at += length;
        self.number += 1;
        Ok(Some(Line {
            numbers,
            number: self.number - 1,
            is_whole: true,
        }))
    }

    /// Returns the last line if it has no line end.
    fn last(&mut self) -> io::Result<Option<Line>> {
        if self.at == self.filled {
            return Ok(None);
        }
        let is_too_long = !self.is_over;
        let numbers = match is_too_long {
            true => Err(LineError::TooLong),
            false => numbers(&self.buffer[self.at..self.filled]),
        };
        let line = Line {
            numbers,
            number: self.number,
            is_whole: is_too_long,
        };
        self.at = self.filled;
        self.whole = self.filled;
        self.number += 1;
        Ok(Some(line))
    }

    /// Returns whether the last line read is the beginning of one of a log.
    fn may_be_cut(&self, line: &Line) -> bool {
        let is_of_line = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b',' | b' ' | b'x');
        let start = self.buffer[..self.filled]
            .iter()
            .rposition(|byte| *byte == b'\n');
        let start = start.map_or(0, |at| at + 1);
        !line.is_whole && self.buffer[start..self.filled].iter().all(is_of_line)
    }

    /// Reads until there is a whole line; returns false if there will be none.
    #[cold]
    fn refill(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        (self.at, self.whole) = (0, 0);
        while !self.is_over && self.filled < self.buffer.len() {
            let got = match self.from.read(&mut self.buffer[self.filled..]) {
                Ok(got) => got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let new = &self.buffer[self.filled..self.filled + got];
            let end = new.iter().rposition(|byte| *byte == b'\n');
            self.is_over = got == 0;
            if let Some(end) = end {
                self.whole = self.filled + end + 1;
            }
            self.filled += got;
            if self.whole > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Parses a line that is not of the common form, and returns its length too.
#[cold]
fn uncommon(bytes: &[u8]) -> (Result<Numbers, LineError>, usize) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let length = end.map_or(bytes.len(), |end| end + 1);
    (numbers(&bytes[..length]), length)
}

/// Bytes read at a time: enough to make system calls rare, and few enough for a second-level cache.
/// Longer lines are none of a log.
const BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads as a file does that returns a few bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(to.len());
            self.0.read(&mut to[..length])
        }
    }

    /// Returns the rows of a log, and its end or the error.
    fn rows(text: &[u8], piece: usize, cut: CutLine) -> (Vec<LogRow>, Result<TextEnd, String>) {
        let mut rows = Vec::new();
        let end = detect(Pieces(text, piece)).and_then(|layout| {
            read_rows(Pieces(text, piece), &layout, cut, &mut |row| {
                rows.push(*row);
                Ok(())
            })
        });
        (rows, end.map_err(|error| error.to_string()))
    }

    #[track_caller]
    fn check(text: &str, columns: &[&str]) {
        let layout = detect(text.as_bytes()).expect(text);
        let names = layout.shape.columns("v");
        let names: Vec<_> = names.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, columns, "{text}");
        for piece in [1, 7, usize::MAX] {
            let (rows, end) = rows(text.as_bytes(), piece, CutLine::Refuse);
            end.expect(text);
            let mut printed = Vec::new();
            for row in rows {
                row.print(layout.shape, &mut printed).expect("memory");
            }
            assert_eq!(String::from_utf8_lossy(&printed).trim_end(), text);
        }
    }

    #[test]
    fn layouts_are_told_apart_by_the_lines() {
        let (time, bytes, offset) = ("time_ms", "bytes", "offset_bytes");
        let plain = [time, "v", "direction", bytes, "realtime"];
        check("", &plain);
        check("1, 700, 0, 4096, 0\n2, 3, 2, 512, 1", &plain);
        check(
            "1, 700, 0, 4096, 0x2003",
            &[time, "v", "direction", bytes, "priority"],
        );
        let with_offset = [time, "v", "direction", bytes, offset, "realtime"];
        check("1, 700, 0, 4096, 8192, 0\n1, 700, 1, 2, 0, 0", &with_offset);
        // The first line alone is ambiguous.
        let with_max = [time, "v", "v_max", "direction", bytes, "realtime"];
        check("1, 0, 0, 0, 0, 0\n2, 5, 9, 1, 0, 0", &with_max);
        let both = [time, "v", "v_max", "direction", bytes, offset, "priority"];
        check("1, 700, 800, 1, 4096, 8192, 0x0000", &both);
        let issued = [
            time,
            "v",
            "direction",
            bytes,
            offset,
            "realtime",
            "issued_ns",
        ];
        check("1, 700, 1, 4096, 8192, 0, 123456", &issued);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let histogram = "1, 0, 4096, ".to_owned() + &["0"; 58].join(", ");
        let endless = "1".repeat(BUFFER_BYTES + 1);
        for (text, why) in [
            ("hello", "line 1: `hello` is not a number"),
            ("1, 2, 0", "line 1: it has too few columns"),
            (
                "1, 2, 0, 4096, 0\n1, 2, 7, 4096, 0\n",
                "line 2: direction 7 is unknown: 0 is a read, 1 a write, 2 a trim",
            ),
            (
                "1, 2, 0, 4096, 0\n1, 2, 0, 4096, 9\n",
                "line 2: a number is too large",
            ),
            ("1, 2, 0, 4096, 0\n\n", "line 2: it is empty"),
            (
                "1, 2, 0, 4096, 0\n1, 2, 0, 4096, 0, 0\n",
                "line 2: it has too many",
            ),
            (
                "1, 5, 9, 1, 0, 0\n1, 5, 4, 1, 0, 0\n",
                "line 2: its maximum is below",
            ),
            (&histogram, "61 columns: histograms have no rows"),
            (&endless, "line 1: it is too long"),
        ] {
            for cut in [CutLine::Refuse, CutLine::Skip] {
                let error = rows(text.as_bytes(), usize::MAX, cut).1.expect_err(text);
                assert!(error.contains(why), "{error}");
            }
        }
        let text = "1, 2, 0, 4096, 0\n1,\u{1b}[2J,0,4096,0\n";
        let error = rows(text.as_bytes(), 9, CutLine::Skip)
            .1
            .expect_err("no number");
        assert!(
            !error.contains('\u{1b}'),
            "{error:?} would reach a terminal"
        );
    }

    #[test]
    fn the_last_line_may_be_cut() {
        let text = b"1, 2, 0, 4096, 0\n2, 3, 0, 40";
        let (found, end) = rows(text, 5, CutLine::Skip);
        assert_eq!((found.len(), end), (1, Ok(TextEnd::Cut)));
        let error = rows(text, 5, CutLine::Refuse).1.expect_err("cut");
        assert_eq!(error, "line 2: it has too few columns");
        // Neither a line within the log nor other text was cut.
        for text in [
            "1, 2, 0, 4096, 0\n2, 3\n3, 4",
            "1, 2, 0, 4096, 0\nend of log",
        ] {
            let error = rows(text.as_bytes(), 5, CutLine::Skip).1.expect_err(text);
            assert!(error.starts_with("line 2"), "{error}");
        }
        let whole = rows(b"1, 2, 0, 4096, 0\n2, 3, 0, 4096, 0", 5, CutLine::Skip);
        assert_eq!((whole.0.len(), whole.1), (2, Ok(TextEnd::NoLineEnd)));
        assert_eq!(
            rows(b"1, 2, 0, 4096, 0\r\n", 5, CutLine::Skip).1,
            Ok(TextEnd::Whole)
        );
    }
}
