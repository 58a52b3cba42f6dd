//! File of `dp_scheme`: which ranges of a file a device keeps apart.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::sync::Arc;

use fathom_core::PlacementRange;
use fathom_job::{Job, StreamChoice};

use crate::check::wants_streams;
use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Schemes by path, each read once however many clones use it.
#[derive(Default)]
pub(super) struct Schemes(HashMap<String, Arc<[PlacementRange]>>);

impl Schemes {
    /// Returns the ranges of a job with `plid_select=scheme`; none for others.
    pub(super) fn of(&mut self, job: &Job) -> Result<Arc<[PlacementRange]>, RunProblem> {
        let device = &job.options.device;
        let by_scheme = device.stream_choice == StreamChoice::Scheme && wants_streams(&job.options);
        let Some(path) = device.scheme.as_ref().filter(|_| by_scheme) else {
            return Ok(Arc::default());
        };
        if let Some(known) = self.0.get(path) {
            return Ok(Arc::clone(known));
        }
        let ranges: Arc<[_]> = load(job, path)?.into();
        self.0.insert(path.clone(), Arc::clone(&ranges));
        Ok(ranges)
    }
}

fn load(job: &Job, path: &str) -> Result<Vec<PlacementRange>, RunProblem> {
    let problem = |message: String| {
        RunProblem::new(ProblemKind::PlacementScheme, message).at(job, "dp_scheme")
    };
    let text = read(path).map_err(|error| problem(format!("cannot read {path}: {error}")))?;
    let ranges = parse(&text).map_err(|(line, why)| {
        problem(format!("{path}:{line}: {why}"))
            .hint("write lines like `0,1073741824,1`: first byte, end, placement identifier")
    })?;
    match ranges.is_empty() {
        true => Err(problem(format!("{path} has no line"))),
        false => Ok(ranges),
    }
}

fn read(path: &str) -> io::Result<String> {
    // Not asked of the open file: opening a FIFO would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        let why = "not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut text = String::new();
    File::open(path)?
        .take(BYTES_MAX + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        let why = format!("more than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(text)
}

/// Returns the ranges of a file's text, or the number of a wrong line and what is wrong with it.
fn parse(text: &str) -> Result<Vec<PlacementRange>, (usize, String)> {
    let mut ranges = Vec::new();
    let lines = text.lines().map(str::trim).enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
        // The line itself is not shown: any file may have been named.
        let wrong = |why: &str| (index + 1, why.to_owned());
        let range = range(line).ok_or_else(|| wrong("expected `start,end,identifier`"))?;
        if range.bytes.is_empty() {
            return Err(wrong("the range ends before it begins"));
        }
        if ranges.len() == RANGES_MAX {
            return Err(wrong(&format!("more than {RANGES_MAX} ranges")));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

fn range(line: &str) -> Option<PlacementRange> {
    let mut fields = line.split(',').map(str::trim);
    let range = PlacementRange {
        bytes: fields.next()?.parse().ok()?..fields.next()?.parse().ok()?,
        identifier: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(range)
}

/// Limit of ranges, which are searched one by one for each write.
const RANGES_MAX: usize = 1024;
/// Limit of the file's length: ranges of the longest numbers fit.
const BYTES_MAX: u64 = RANGES_MAX as u64 * 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ranges_and_identifiers() {
        let got = parse("0,4096,1\n\n 4096 , 18446744073709551615 ,65535\n").unwrap();
        let range = |bytes, identifier| PlacementRange { bytes, identifier };
        assert_eq!(got, [range(0..4096, 1), range(4096..u64::MAX, 65535)]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for line in [
            "x",
            "0,1",
            "0,1,2,3",
            "0;1;2",
            "-1,1,1",
            "0,1,65536",
            "5,5,1",
            "6,5,1",
            "0,4k,1",
            "0,18446744073709551616,1",
        ] {
            let text = format!("0,1,1\n{line}\n");
            assert_eq!(parse(&text).unwrap_err().0, 2, "{line}");
        }
        let many = "0,1,1\n".repeat(RANGES_MAX);
        assert!(parse(&many).is_ok());
        assert_eq!(parse(&(many + "0,1,1")).unwrap_err().0, RANGES_MAX + 1);
    }
}
