//! Finished histogram logs (`write_hist_log`), to be read line by line.
//!
//! A line is `time, direction, bytes, count, count, …`: the ops of each bucket of latency since the
//! line before of its direction. The number of counts shows how many neighbouring buckets were
//! merged (`log_hist_coarseness`).

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use fathom_stats::Histogram;

use super::numbers::LineError;
use super::source::LogEnd;
use super::text::LineProblem;

/// Histogram log, recognised by its first line.
#[derive(Clone, Debug)]
pub struct HistogramSource {
    path: PathBuf,
    coarseness: u8,
}

/// Line of a histogram log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramRow {
    /// Time since the start of the job, or since the epoch.
    pub time_ms: u64,
    /// fio's number of the direction.
    pub direction: u32,
    /// Length of the op that ended the interval.
    pub bytes: u64,
    /// Ops of each bucket, from the shortest latencies on.
    pub counts: Vec<u64>,
}

impl HistogramSource {
    /// Recognises a histogram log; `None` if the file's first line is not one of it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn recognise(path: &Path) -> io::Result<Option<Self>> {
        let mut first = Vec::new();
        let file = File::open(path)?.take(LINE_BYTES_MAX);
        BufReader::new(file).read_until(b'\n', &mut first)?;
        let columns = first.split(|byte| *byte == b',').count();
        let coarseness = (0..=COARSENESS_MAX).find(|coarseness| columns == width(*coarseness));
        Ok(coarseness
            .filter(|_| row(&first, columns).is_ok())
            .map(|coarseness| Self {
                path: path.to_owned(),
                coarseness,
            }))
    }

    /// Returns how many times neighbouring buckets were merged in pairs.
    #[must_use]
    pub const fn coarseness(&self) -> u8 {
        self.coarseness
    }

    /// Passes each line to `each`. A last line that was cut is left out.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is not one of a histogram log; the error that
    /// `each` returns.
    pub fn read(
        &self,
        each: &mut dyn FnMut(&HistogramRow) -> io::Result<()>,
    ) -> io::Result<LogEnd> {
        let mut from = BufReader::with_capacity(BUFFER_BYTES, File::open(&self.path)?);
        let mut line = Vec::new();
        let mut ops = 0_u64;
        for number in 1.. {
            line.clear();
            let length = (&mut from)
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)?;
            if length == 0 {
                break;
            }
            let is_whole = line.ends_with(b"\n");
            let row = match row(&line, width(self.coarseness)) {
                Ok(row) => row,
                Err(_) if !is_whole && number > 1 && is_beginning(&line) => {
                    return Ok(LogEnd::Cut("it breaks off within a line".into()));
                }
                Err(why) => return Err(LineProblem { line: number, why }.into()),
            };
            // Sums stay far below 2⁶⁴: of a row the first check, of all rows the second.
            ops += row.counts.iter().sum::<u64>();
            if ops > OPS_MAX {
                let why = LineError::TooLarge;
                return Err(LineProblem { line: number, why }.into());
            }
            each(&row)?;
            if !is_whole {
                return Ok(LogEnd::NoLineEnd);
            }
        }
        Ok(LogEnd::Whole)
    }
}

/// Returns the number of columns of a line.
const fn width(coarseness: u8) -> usize {
    HEAD + (Histogram::FIO_BUCKETS >> coarseness)
}

/// Parses a line of `columns` columns.
fn row(line: &[u8], columns: usize) -> Result<HistogramRow, LineError> {
    if line.len() as u64 == LINE_BYTES_MAX {
        return Err(LineError::TooLong);
    }
    let line = std::str::from_utf8(line).map_err(|_| LineError::NotText)?;
    if line.trim().is_empty() {
        return Err(LineError::Empty);
    }
    let found = line.split(',').count();
    if found != columns {
        return Err(LineError::OtherCount(found));
    }
    let mut numbers = line
        .split(',')
        .map(|column| LineError::number(column.trim()));
    let mut next = || numbers.next().unwrap_or(Err(LineError::TooFewColumns));
    let (time_ms, direction, bytes) = (next()?, next()?, next()?);
    let counts: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    if counts.iter().any(|count| *count > COUNT_MAX) {
        return Err(LineError::TooLarge);
    }
    Ok(HistogramRow {
        time_ms,
        direction: u32::try_from(direction).map_err(|_| LineError::TooLarge)?,
        bytes,
        counts,
    })
}

/// Returns whether a line may be the beginning of one of a log.
fn is_beginning(line: &[u8]) -> bool {
    let is_of_line = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b' ');
    (line.len() as u64) < LINE_BYTES_MAX && line.iter().all(is_of_line)
}

/// Columns before the counts.
const HEAD: usize = 3;

/// Largest `log_hist_coarseness`.
const COARSENESS_MAX: u8 = 6;

/// Longest line: 1859 numbers of 20 digits, with commas and spaces, have 41 KB.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Largest count of a bucket.
const COUNT_MAX: u64 = 1 << 40;

/// Most ops of a log: of 256 logs they are 2⁵⁶.
const OPS_MAX: u64 = 1 << 48;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a line with `counts` in the first buckets, of a coarseness.
    fn line(time: u64, counts: &[u64], coarseness: u8) -> String {
        let mut all = vec![0; Histogram::FIO_BUCKETS >> coarseness];
        all[..counts.len()].copy_from_slice(counts);
        let counts: Vec<String> = all.iter().map(u64::to_string).collect();
        format!("{time}, 1, 4096, {}\n", counts.join(", "))
    }

    /// Returns the rows of a log, and its end or error; `None` if it is not a histogram log.
    fn read(name: &str, text: &str) -> Option<(Vec<HistogramRow>, Result<LogEnd, String>)> {
        let path = std::env::temp_dir().join(format!("fathom-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("a temporary file");
        let source = HistogramSource::recognise(&path).expect("a file");
        let read = source.map(|source| {
            let mut rows = Vec::new();
            let end = source.read(&mut |row| {
                rows.push(row.clone());
                Ok(())
            });
            (rows, end.map_err(|error| error.to_string()))
        });
        std::fs::remove_file(&path).expect("a temporary file");
        read
    }

    #[test]
    fn lines_of_every_coarseness_are_read() {
        for coarseness in 0..=COARSENESS_MAX {
            let text = line(1, &[3, 4], coarseness) + &line(2, &[5], coarseness);
            let (rows, end) = read("whole", &text).expect("a histogram log");
            assert_eq!(end, Ok(LogEnd::Whole));
            let head = (rows[0].time_ms, rows[0].direction, rows[0].bytes);
            assert_eq!(head, (1, 1, 4096));
            assert_eq!(&rows[0].counts[..3], [3, 4, 0]);
            assert_eq!(rows[1].counts.len(), Histogram::FIO_BUCKETS >> coarseness);
        }
    }

    #[test]
    fn other_files_are_none() {
        for text in ["", "1, 2, 0, 4096, 0\n", "hello\n", "1, 0, 4096, 0\n"] {
            assert_eq!(read("other", text), None, "{text}");
        }
        assert_eq!(read("words", &line(1, &[], 6).replace("4096", "x")), None);
    }

    #[test]
    fn bad_lines_are_refused_and_cut_ones_left_out() {
        let good = line(1, &[3], 6);
        let check = |rest: &str, rows: usize, want: Result<LogEnd, &str>| {
            let (found, end) = read("bad", &(good.clone() + rest)).expect("a histogram log");
            let start = &rest[..rest.len().min(40)];
            assert_eq!(found.len(), rows, "{start}");
            assert_eq!(end, want.map_err(str::to_owned), "{start}");
        };
        check(good.trim_end(), 2, Ok(LogEnd::NoLineEnd));
        let cut = LogEnd::Cut("it breaks off within a line".into());
        check("2, 1, 40", 1, Ok(cut));
        check(
            "2, 1, 40\n",
            1,
            Err("line 2: it has 3 columns, the first line another number"),
        );
        check(
            &line(1, &[1 << 41], 6),
            1,
            Err("line 2: a number is too large"),
        );
        check(
            &line(1, &[1 << 40; 29], 6).repeat(9),
            9,
            Err("line 10: a number is too large"),
        );
        check(&"1".repeat(70_000), 1, Err("line 2: it is too long"));
        check("\n", 1, Err("line 2: it is empty"));
    }
}
