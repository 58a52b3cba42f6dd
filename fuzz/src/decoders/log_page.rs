//! Pages of I/O logs.

use std::{fs, io};

use fathom_log::{HistogramSource, LogLineError, LogSource};
use fathom_report::{LogDescription, LogHistogram, LogKind, LogReduction, LogSample, log_page};

use super::log::Folder;
use crate::target::Verdict;

/// Decodes a log of any format and makes its page, of the kind that its length selects; no line
/// may get lost, and no text of the log may become markup.
pub(crate) fn decode(input: &[u8]) -> Result<Verdict, String> {
    let folder = Folder::create()?;
    let path = folder.0.join("page.log");
    fs::write(&path, input).map_err(|error| format!("{}: {error}", path.display()))?;
    let refused = |error: io::Error| match LogLineError::of(&error) {
        Some(at) => Verdict::Refused(format!("{}: {}", at.line, at.why)),
        None => Verdict::Refused(error.to_string()),
    };
    if let Ok(Some(source)) = HistogramSource::recognise(&path) {
        return match histograms(input, &source) {
            Ok(verdict) => verdict,
            Err(error) => Ok(refused(error)),
        };
    }
    let source = match LogSource::open(&path) {
        Ok(source) => source,
        Err(error) => return Ok(refused(error)),
    };
    let kind = LogKind::ALL[input.len() % LogKind::ALL.len()];
    let (kind, kind_source) = LogKind::found(Some(kind), "page.log", source.value_name());
    let shape = source.shape();
    let mut reduction = LogReduction::new();
    reduction.begin(LogDescription {
        name: String::from_utf8_lossy(input).into_owned(),
        kind,
        kind_source,
        format: source.format_name(),
        has_offsets: shape.offset,
        has_priorities: shape.priority,
        has_max: shape.max,
    });
    let mut lines = 0;
    let read = source.read(&mut |row| {
        lines += 1;
        reduction.add(&LogSample {
            time_ms: row.time_ms,
            value: row.value,
            max: row.max.max(row.value),
            direction: row.direction,
            bytes: row.bytes,
            offset: row.offset,
            priority: u16::try_from(row.priority).unwrap_or(u16::MAX),
        });
        Ok(())
    });
    match read {
        Ok(_) => check(&reduction, lines),
        Err(error) => Ok(refused(error)),
    }
}

/// Makes the page of a histogram log, on which each op counts as a line.
fn histograms(input: &[u8], source: &HistogramSource) -> io::Result<Result<Verdict, String>> {
    let mut reduction = LogReduction::new();
    let name = String::from_utf8_lossy(input).into_owned();
    reduction.begin(LogDescription::of_histograms(name, None));
    let mut ops = 0;
    source.read(&mut |row| {
        // A line of no direction counts as one.
        let count = row.counts.iter().sum::<u64>();
        ops += if row.direction < 3 { count } else { 1 };
        reduction.add_histogram(&LogHistogram {
            time_ms: row.time_ms,
            direction: row.direction,
            bytes: row.bytes,
            counts: &row.counts,
            coarseness: source.coarseness(),
        });
        Ok(())
    })?;
    Ok(check(&reduction, ops))
}

fn check(reduction: &LogReduction, lines: u64) -> Result<Verdict, String> {
    if reduction.lines() != lines {
        return Err(format!("{} lines of {lines}", reduction.lines()));
    }
    let page = log_page(reduction, "log");
    let html = page.html();
    if !html.contains(&format!("{lines} line")) {
        return Err("the number of lines is not on the page".to_owned());
    }
    // One policy, one style sheet, and no script but the page's own.
    if html.matches("<style").count() != 1 || html.matches("<script").count() > 1 {
        return Err("text became markup".to_owned());
    }
    for drawing in page.drawings() {
        if drawing.svg.contains("NaN") || drawing.svg.contains("\"inf") {
            return Err(format!("{}: a place that is no number", drawing.name));
        }
    }
    Ok(Verdict::Accepted)
}
