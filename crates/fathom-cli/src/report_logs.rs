//! Pages of I/O logs: reading, and messages about files that are not logs.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use fathom_log::{HistogramSource, LogEnd, LogLineError, LogRow, LogSource};
use fathom_report::{
    LogDescription, LogHistogram, LogKind, LogReduction, LogSample, Page, log_page,
};

use crate::failure::with_hint;

/// Parses the value of `--kind`.
pub(crate) fn kind(word: &str) -> Result<LogKind, String> {
    LogKind::of_word(word).ok_or_else(|| {
        let words = LogKind::ALL.map(LogKind::word).join(", ");
        format!("one of {words}")
    })
}

/// Returns whether a file is to be read as a log: its content is that of one, or its name is and it
/// is not JSON.
fn is_log(word: &str) -> bool {
    let path = Path::new(word);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_named = ENDS.iter().any(|end| name.ends_with(end));
    let is_histogram = || HistogramSource::recognise(path).is_ok_and(|found| found.is_some());
    // Nothing is a log of no lines, but a record that could not be written is empty, too.
    let has_content = path.metadata().is_ok_and(|file| file.len() > 0);
    let is_known = || has_content && (LogSource::open(path).is_ok() || is_histogram());
    path.is_file() && (is_known() || is_named && !has_object(path))
}

/// Returns whether a line near the start of a file begins an object of JSON; fio prints notes
/// before it.
fn has_object(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PEEK_BYTES).read_to_end(&mut first));
    let mut lines = first.split(|byte| *byte == b'\n');
    read.is_ok() && lines.any(|line| line.trim_ascii_start().starts_with(b"{"))
}

/// Splits words into those that name logs and the others, in order: none, or a run.
///
/// # Errors
/// There are logs and several other words, or one that does not exist; `kind` is given, which
/// only logs have.
pub(crate) fn split(words: &[String], kind: Option<LogKind>) -> Result<(Vec<String>, Vec<String>)> {
    let (logs, others): (Vec<String>, Vec<String>) =
        words.iter().cloned().partition(|word| is_log(word));
    match others.as_slice() {
        [other, ..] if logs.is_empty() && kind.is_some() => {
            let why = format!("--kind: {other}: only I/O logs have a kind");
            Err(with_hint(why, Some("leave it out")))
        }
        [_, other, ..] if !logs.is_empty() => {
            // Tells a name that does not exist by the system's own words.
            Path::new(other).metadata().with_context(|| other.clone())?;
            let why = format!("{other}: not a log; a page of logs shows one run beside them");
            Err(with_hint(why, Some("write a page of its own")))
        }
        _ => Ok((logs, others)),
    }
}

/// Returns the page of logs. `kind` overrides what the names of the files say.
///
/// A signal ends the process meanwhile: nothing has been written yet.
pub(crate) fn page(words: &[String], kind: Option<LogKind>) -> Result<Page> {
    let reduction = read(words, kind)?;
    let name = |word: &String| {
        Path::new(word)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let title = match words {
        [only] => name(only).unwrap_or_else(|| only.clone()),
        [first, rest @ ..] => format!(
            "{} and {} more",
            name(first).unwrap_or_else(|| first.clone()),
            rest.len()
        ),
        [] => String::new(),
    };
    Ok(log_page(&reduction, &title))
}

/// Reads logs.
pub(crate) fn read(paths: &[String], kind: Option<LogKind>) -> Result<LogReduction> {
    if paths.len() > LogReduction::LOGS_MAX {
        let why = format!(
            "{} logs; a page takes {}",
            paths.len(),
            LogReduction::LOGS_MAX
        );
        return Err(with_hint(
            why,
            Some("write several pages, as one for each kind of logs"),
        ));
    }
    let mut reduction = LogReduction::new();
    for path in paths {
        read_one(path, kind, &mut reduction).map_err(|error| refused(path, &error))?;
    }
    Ok(reduction)
}

fn read_one(name: &str, kind: Option<LogKind>, reduction: &mut LogReduction) -> io::Result<()> {
    let path = Path::new(name);
    // A FIFO would block, and a log is opened more than once.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if let Some(source) = HistogramSource::recognise(path)? {
        return read_histograms(path, &source, kind, reduction);
    }
    let source = LogSource::open(path)?;
    let shape = source.shape();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if source.format_name() == "compressed" && file.contains("_hist.") {
        // As observed in files of fio 3.33.
        return Err(io::Error::other(LostHistograms));
    }
    let (kind, kind_source) = LogKind::found(kind, &file, source.value_name());
    reduction.begin(LogDescription {
        name: file.into_owned(),
        kind,
        kind_source,
        format: source.format_name(),
        has_offsets: shape.offset,
        has_priorities: shape.priority,
        has_max: shape.max,
    });
    let end = source.read(&mut |row| {
        reduction.add(&sample(row, shape.max));
        Ok(())
    })?;
    reduction.end(notes(end));
    Ok(())
}

fn read_histograms(
    path: &Path,
    source: &HistogramSource,
    kind: Option<LogKind>,
    reduction: &mut LogReduction,
) -> io::Result<()> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    reduction.begin(LogDescription::of_histograms(file.into_owned(), kind));
    let coarseness = source.coarseness();
    let mut lines = 0_u64;
    let end = source.read(&mut |row| {
        lines += 1;
        reduction.add_histogram(&LogHistogram {
            time_ms: row.time_ms,
            direction: row.direction,
            bytes: row.bytes,
            counts: &row.counts,
            coarseness,
        });
        Ok(())
    })?;
    let error = LogHistogram::error(coarseness) * 100.0;
    let mut all = vec![format!(
        "its {lines} lines are histograms of the ops since the line before: each op counts as a \
         line with the time and the block size of its histogram, and with the middle of its \
         bucket, which is off by up to {error:.1} % of the latency"
    )];
    all.extend(notes(end));
    reduction.end(all);
    Ok(())
}

#[inline]
fn sample(row: &LogRow, has_max: bool) -> LogSample {
    LogSample {
        time_ms: row.time_ms,
        value: row.value,
        max: if has_max { row.max } else { row.value },
        direction: row.direction,
        bytes: row.bytes,
        offset: row.offset,
        // Its 16 bits are all that a log has of it.
        priority: u16::try_from(row.priority).unwrap_or(u16::MAX),
    }
}

/// Returns the notes about the end of a log.
fn notes(end: LogEnd) -> Vec<String> {
    match end {
        LogEnd::NoLineEnd => vec![
            "its last line has no line end: it may have been cut, and its last number may be \
             wrong"
                .to_owned(),
        ],
        LogEnd::Cut(why) => vec![format!(
            "{why}: the writer was killed, or is still at work; what came before is shown"
        )],
        _ => Vec::new(),
    }
}

/// Returns the error of a file, with the line if it has one.
fn refused(path: &str, error: &io::Error) -> anyhow::Error {
    if let Some(LogLineError { line, why, .. }) = LogLineError::of(error) {
        let hint = if why.contains("histograms") {
            "a histogram log has 1856 counts in a line, or half as many for each \
             log_hist_coarseness"
        } else {
            "a log has lines as `12, 4711, 0, 4096, 0`: time in ms, value, direction, bytes, \
             priority"
        };
        return with_hint(
            format!("{path}:{line}: not a line of a log: {why}"),
            Some(hint),
        );
    }
    let hint = match error.kind() {
        ErrorKind::NotFound => None,
        _ if error
            .get_ref()
            .is_some_and(|why| why.is::<LostHistograms>()) =>
        {
            Some("run the job again without log_store_compressed and log_compression")
        }
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
            Some("give a log of fio or fathom: text, compressed (.fz), CSV or Parquet")
        }
        _ => None,
    };
    with_hint(format!("{path}: {error}"), hint)
}

/// Error of a compressed histogram log of fio: nothing in it can be shown.
#[derive(Debug)]
struct LostHistograms;

impl fmt::Display for LostHistograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fio stores addresses of its memory in a compressed histogram log, not counts")
    }
}

impl std::error::Error for LostHistograms {}

/// Ends of the names of logs.
const ENDS: [&str; 4] = [".log", ".fz", ".csv", ".parquet"];

/// Bytes in which an object of JSON is looked for.
const PEEK_BYTES: u64 = 64 << 10;
