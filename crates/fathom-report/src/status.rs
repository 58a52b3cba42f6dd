//! Status line of a run, as fio prints it on a terminal.

use fathom_core::{Direction, PerDirection};

use crate::number::{Prefix, compact_from};
use crate::rate::Units;

/// Progress of a run, as the status line shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusFigures {
    /// Time since the run started, ms. Until the third second begins only the first part is shown.
    pub elapsed_ms: u64,
    /// Running jobs, including those in their ramp time.
    pub running: u32,
    /// Open files.
    pub open_files: u32,
    /// Sums of `rate_min` and `rate` over the running jobs, bytes per second, if any is set.
    pub rate_bytes: Option<(u64, u64)>,
    /// Sums of `rate_iops_min` and `rate_iops` over the running jobs, if any is set.
    pub rate_iops: Option<(u64, u64)>,
    /// fio's letter for each job's state, in the order of the jobs: `P` not created, `I` setting
    /// up, `C` created, `/` ramping, `R` `W` `M` sequential, `r` `w` `m` random, `D` `d` trim,
    /// `V` verifying, `F` syncing, `f` finishing, `E` exited, `_` reaped, `X` reaped with an error.
    pub states: String,
    /// Progress, percent 0–100; `None` while unknown.
    pub percent: Option<f64>,
    /// Bytes per second since the last line.
    pub bytes_per_s: PerDirection<u64>,
    /// Ops per second since the last line.
    pub ops_per_s: PerDirection<u64>,
    /// Median and 99th percentile of the latencies since the last line, if requested.
    pub p50_and_p99_ns: PerDirection<Option<(u64, u64)>>,
    /// Remaining time; `None` while unknown.
    pub eta_s: Option<u64>,
    /// As in `Display`.
    pub kb_base: u64,
    /// As in `Display`.
    pub unit_base: u64,
}

impl Default for StatusFigures {
    fn default() -> Self {
        Self {
            elapsed_ms: 0,
            running: 0,
            open_files: 0,
            rate_bytes: None,
            rate_iops: None,
            states: String::new(),
            percent: None,
            bytes_per_s: PerDirection::all(0),
            ops_per_s: PerDirection::all(0),
            p50_and_p99_ns: PerDirection::all(None),
            eta_s: None,
            kb_base: 1024,
            unit_base: 0,
        }
    }
}

/// Formats the line without its end; the caller pads it with blanks to the length of the previous
/// line.
#[must_use]
pub fn status_line(status: &StatusFigures) -> String {
    let mut out = format!("Jobs: {} (f={})", status.running, status.open_files);
    let units = Units::new(status.kb_base, status.unit_base, DIGITS);
    if let Some((min, max)) = status.rate_bytes {
        out += &format!(", {}-{}", units.bandwidth(min).0, units.bandwidth(max).0);
    } else if let Some((min, max)) = status.rate_iops {
        out += &format!(", {min}-{max} IOPS");
    }
    if status.elapsed_ms < FULL_LINE_MS {
        return out;
    }
    let percent = match status.percent {
        Some(percent) if percent.is_finite() => format!("{:.1}", percent.clamp(0.0, 100.0)),
        _ => "-.-".to_owned(),
    };
    out += &format!(": [{}][{percent}%]", runs(&status.states));
    out += &bracket(
        status,
        |direction| bandwidth(status, status.bytes_per_s[direction]),
        "",
    );
    out += &bracket(
        status,
        |direction| units.iops(status.ops_per_s[direction]),
        " IOPS",
    );
    if status
        .p50_and_p99_ns
        .iter()
        .any(|(_, shown)| shown.is_some())
    {
        out += &bracket(
            status,
            |direction| latencies(status.p50_and_p99_ns[direction]),
            " p50/p99",
        );
    }
    out += &format!("[eta {}]", eta(status.eta_s));
    out
}

/// Formats `[r=1024KiB/s,w=2048KiB/s]` without idle directions; empty while progress is unknown,
/// that is during ramp time.
fn bracket(status: &StatusFigures, text: impl Fn(Direction) -> String, unit: &str) -> String {
    let moves = |d: &Direction| status.bytes_per_s[*d] > 0 || status.ops_per_s[*d] > 0;
    let cells: Vec<String> = Direction::ALL
        .into_iter()
        .filter(moves)
        .map(|direction| format!("{}={}", &direction.name()[..1], text(direction)))
        .collect();
    if cells.is_empty() || status.percent.is_none() {
        return String::new();
    }
    format!("[{}{unit}]", cells.join(","))
}

/// Formats `85us/1.2ms`, or `-` if no op has completed.
fn latencies(shown: Option<(u64, u64)>) -> String {
    let Some((p50, p99)) = shown else {
        return "-".to_owned();
    };
    format!("{}/{}", short_time(p50), short_time(p99))
}

/// Formats a latency with two digits or more: `850ns`, `8.5us`, `85us`.
fn short_time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let unit = units.into_iter().find(|(unit, _)| ns >= *unit);
    let Some((unit, name)) = unit else {
        return format!("{ns}ns");
    };
    let tenths = (ns + unit / 20) / (unit / 10);
    match tenths {
        0..100 => format!("{}.{}{name}", tenths / 10, tenths % 10),
        _ => format!("{}{name}", (ns + unit / 2) / unit),
    }
}

/// Formats a bandwidth in whole KiB (or kB), as fio does here.
fn bandwidth(status: &StatusFigures, bytes_per_s: u64) -> String {
    let prefix = Prefix::of_base(status.kb_base);
    let step = if prefix == Prefix::Decimal {
        1000
    } else {
        1024
    };
    let (value, unit) = if status.unit_base == 1 {
        (bytes_per_s.saturating_mul(8), "bit/s")
    } else {
        (bytes_per_s, "B/s")
    };
    compact_from(value / step, DIGITS, prefix, 1) + unit
}

/// Formats `P(2),w(1)`: each letter with the length of its run.
fn runs(states: &str) -> String {
    let mut runs: Vec<(char, u32)> = Vec::new();
    for state in states.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == state => *count += 1,
            _ => runs.push((state, 1)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(state, count)| format!("{state}({count})"))
        .collect();
    runs.join(",")
}

/// Formats `00m:05s`, with hours and days if there are any.
fn eta(seconds: Option<u64>) -> String {
    let Some(seconds) = seconds else {
        return "--".to_owned();
    };
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let mut out = String::new();
    if days > 0 {
        out += &format!("{days:02}d:");
    }
    if days > 0 || hours > 0 {
        out += &format!("{hours:02}h:");
    }
    out + &format!("{:02}m:{:02}s", seconds / 60 % 60, seconds % 60)
}

/// Time from which the whole line is shown; earlier, rates would be those of the start.
const FULL_LINE_MS: u64 = 2001;

/// Digits of rates in the line.
const DIGITS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &StatusFigures, want: &str) {
        assert_eq!(status_line(status), want);
    }

    fn late() -> StatusFigures {
        StatusFigures {
            elapsed_ms: 2001,
            running: 1,
            open_files: 1,
            states: "R".to_owned(),
            percent: Some(75.0),
            eta_s: Some(1),
            ..StatusFigures::default()
        }
    }

    // The lines are those of fio 3.33 for jobs with these rates and states.
    #[test]
    fn early_lines_are_short() {
        let early = StatusFigures {
            elapsed_ms: 2000,
            ..late()
        };
        check(&early, "Jobs: 1 (f=1)");
        let rate_iops = Some((0, 10_500));
        check(
            &StatusFigures {
                rate_iops,
                ..early.clone()
            },
            "Jobs: 1 (f=1), 0-10500 IOPS",
        );
        let rate_bytes = Some((204_800, 3 << 20));
        check(
            &StatusFigures {
                rate_bytes,
                ..early.clone()
            },
            "Jobs: 1 (f=1), 200KiB/s-3072KiB/s",
        );
        let rate_bytes = Some((0, 10_240));
        check(
            &StatusFigures {
                rate_bytes,
                ..early
            },
            "Jobs: 1 (f=1), 0B/s-10.0KiB/s",
        );
    }

    #[test]
    fn percentiles_are_shown_on_request() {
        let mut status = StatusFigures {
            bytes_per_s: PerDirection::new(4 << 20, 1 << 20, 0),
            ops_per_s: PerDirection::new(1024, 256, 0),
            ..late()
        };
        status.p50_and_p99_ns.read = Some((850, 1_240_000));
        check(
            &status,
            "Jobs: 1 (f=1): [R(1)][75.0%][r=4096KiB/s,w=1024KiB/s][r=1024,w=256 IOPS]\
             [r=850ns/1.2ms,w=- p50/p99][eta 00m:01s]",
        );
    }

    #[test]
    fn short_times_have_two_digits() {
        let shown = [0, 999, 1_000, 9_940, 9_951, 85_400, 999_600, 12_345_678_901];
        let want = [
            "0ns", "999ns", "1.0us", "9.9us", "10us", "85us", "1000us", "12s",
        ];
        assert_eq!(shown.map(short_time), want);
    }

    #[test]
    fn full_lines() {
        let mut status = StatusFigures {
            running: 3,
            open_files: 3,
            rate_bytes: Some((204_800, 3 << 20)),
            states: "mDD".to_owned(),
            percent: Some(60.0),
            eta_s: Some(2),
            bytes_per_s: PerDirection::new(1 << 20, 2 << 20, 7872 << 10),
            ops_per_s: PerDirection::new(256, 512, 1968),
            ..late()
        };
        check(
            &status,
            "Jobs: 3 (f=3), 200KiB/s-3072KiB/s: [m(1),D(2)][60.0%]\
             [r=1024KiB/s,w=2048KiB/s,t=7872KiB/s][r=256,w=512,t=1968 IOPS][eta 00m:02s]",
        );
        status.rate_bytes = None;
        status.bytes_per_s = PerDirection::new(40_040 << 10, 2000 << 10, 0);
        status.ops_per_s = PerDirection::new(10_010, 500, 0);
        status.states = "m__".to_owned();
        check(
            &status,
            "Jobs: 3 (f=3): [m(1),_(2)][60.0%][r=39.1MiB/s,w=2000KiB/s]\
             [r=10.0k,w=500 IOPS][eta 00m:02s]",
        );
    }

    #[test]
    fn a_slow_direction_is_in_both_brackets() {
        let bytes_per_s = PerDirection::new(1365, 0, 0);
        check(
            &StatusFigures {
                bytes_per_s,
                ..late()
            },
            "Jobs: 1 (f=1): [R(1)][75.0%][r=1KiB/s][r=0 IOPS][eta 00m:01s]",
        );
    }

    #[test]
    fn unknown_values_are_left_out() {
        let status = StatusFigures {
            open_files: 0,
            states: "/".to_owned(),
            percent: None,
            eta_s: Some(5),
            ops_per_s: PerDirection::all(9),
            ..late()
        };
        check(&status, "Jobs: 1 (f=0): [/(1)][-.-%][eta 00m:05s]");
        check(
            &StatusFigures {
                eta_s: None,
                ..status
            },
            "Jobs: 1 (f=0): [/(1)][-.-%][eta --]",
        );
        check(
            &StatusFigures {
                percent: Some(f64::NAN),
                ..late()
            },
            "Jobs: 1 (f=1): [R(1)][-.-%][eta 00m:01s]",
        );
    }

    #[test]
    fn long_times_have_hours_and_days() {
        assert_eq!(eta(Some(3599)), "59m:59s");
        assert_eq!(eta(Some(3600)), "01h:00m:00s");
        assert_eq!(eta(Some(90_061)), "01d:01h:01m:01s");
        assert_eq!(eta(Some(86_400)), "01d:00h:00m:00s");
    }
}
