//! Own share of the latencies: logged latencies minus the device's time, op by op.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use fathom_core::Direction;
use fathom_trace::{DeviceSpans, DiskMap, Joined, trace_spans};

use super::super::pairs::{Bench, LogFolder};
use super::super::programs::Program;
use super::super::row::{Measure, Row};
use super::{per_mille, percentile};
use crate::process;

/// Runs the job once, traced, and returns a value in ns per check.
pub(crate) fn values(bench: &Bench, row: &Row, program: Program) -> Result<Vec<f64>> {
    let map = DiskMap::of(bench.target(row)?).map_err(|error| traced(&error))?;
    let folder = LogFolder::new()?;
    let prefix = folder.path().join("log");
    let mut command = bench.job(program, row, &bench.two_cores()?, bench.seconds)?;
    // At most: it ends when each offset was read once.
    command
        .arg(format!("--runtime={}s", bench.seconds))
        .arg(format!("--write_lat_log={}", prefix.display()))
        .args(["--log_offset=1"]);
    let trace = trace_spans(std::slice::from_ref(&map), &[], 0).map_err(|error| traced(&error))?;
    process::capture(&mut command)?;
    let requests = trace.finish().map_err(|error| traced(&error))?;
    let spans = requests.of(&map).context("the device was not traced")?;
    let shares = |log: &str| -> Result<Vec<i64>> {
        let shares = Shares::of(&read(&prefix, log)?, spans, &map)?;
        shares.complete(requests.lost_events + requests.dropped)
    };
    let (clat, lat) = (shares("clat")?, shares("lat")?);
    let value = |measure| {
        let sorted = match measure {
            Measure::ShareOfLat(_) => &lat,
            _ => &clat,
        };
        #[expect(clippy::cast_precision_loss, reason = "latencies are far below 2⁵² ns")]
        percentile(sorted, per_mille(measure)).map(|ns| ns as f64)
    };
    row.checks
        .iter()
        .map(|check| value(check.measure))
        .collect()
}

/// Differences between logged latencies and device times.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shares {
    /// Sorted. Negative where the program took its first time after the device's.
    ns: Vec<i64>,
    /// Logged ops.
    ops: usize,
}

impl Shares {
    /// Joins the lines of a log with the requests.
    fn of(log: &str, spans: &DeviceSpans, map: &DiskMap) -> Result<Self> {
        let mut shares = Self::default();
        for line in log.lines() {
            let op =
                LoggedOp::parse(line).with_context(|| format!("not a line of a log: {line}"))?;
            shares.ops += 1;
            let Some(sectors) = map.sectors(op.offset, op.bytes) else {
                continue;
            };
            if let Joined::Device(time) = spans.join(Direction::Read, &sectors, 0..u64::MAX) {
                let device = time.completed_ns.saturating_sub(time.issued_ns);
                shares.ns.push(op.latency_ns - i64::try_from(device)?);
            }
        }
        shares.ns.sort_unstable();
        Ok(shares)
    }

    /// Returns the differences if nearly all ops were joined; otherwise they might be a selection.
    fn complete(self, lost: u64) -> Result<Vec<i64>> {
        let joined = self.ns.len();
        if joined * 100 < self.ops * JOINED_PERCENT_MIN {
            bail!(
                "{joined} of {} ops were joined with requests of the device ({lost} events lost)",
                self.ops
            );
        }
        Ok(self.ns)
    }
}

/// Line of a latency log with offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoggedOp {
    latency_ns: i64,
    bytes: u64,
    offset: u64,
}

impl LoggedOp {
    /// Parses `time, latency, direction, bytes, offset, priority`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(',').map(str::trim);
        let _time_ms = words.next()?;
        let latency_ns = words.next()?.parse().ok()?;
        let _direction = words.next()?;
        Some(Self {
            latency_ns,
            bytes: words.next()?.parse().ok()?,
            offset: words.next()?.parse().ok()?,
        })
    }
}

fn read(prefix: &Path, log: &str) -> Result<String> {
    let path = format!("{}_{log}.1.log", prefix.display());
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// Returns a trace's error with its hint.
pub(super) fn traced(error: &fathom_trace::TraceError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow::anyhow!("{error} ({hint})"),
        None => anyhow::anyhow!("{error}"),
    }
}

/// Ops at the ends of a run may lack an event, others not.
const JOINED_PERCENT_MIN: usize = 98;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_latency_length_and_offset() {
        let want = LoggedOp {
            latency_ns: 101_273,
            bytes: 4096,
            offset: 4_046_848,
        };
        assert_eq!(
            LoggedOp::parse("0, 101273, 0, 4096, 4046848, 0"),
            Some(want)
        );
        for line in ["", "0, 1, 0, 4096", "0, x, 0, 4096, 0, 0"] {
            assert_eq!(LoggedOp::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_selection_of_the_ops_is_refused() {
        let shares = |joined| Shares {
            ns: vec![1; joined],
            ops: 100,
        };
        assert_eq!(shares(98).complete(0).expect("enough").len(), 98);
        assert!(shares(97).complete(5).is_err());
    }
}
