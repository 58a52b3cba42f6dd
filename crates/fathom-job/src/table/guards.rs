//! Options that limit a job or coordinate it with others: latency targets, flows, steady state.

use fathom_core::{Nanos, PerDirection};

use super::general::{TIMES, U32};
use super::read::{narrow, needless, up_to_three};
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::lifecycle::{SteadyFigure, SteadyState};
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::reading::{self, Reading, Shown};
use crate::time::{self, Bare};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "max_latency",
        "",
        "Fail the job with ETIMEDOUT if an op takes longer",
        "max_latency=100ms",
        ValueKind::Special {
            form: "one to three times, for read,write,trim, in microseconds (opt=10ms)",
            read: max_latency,
        },
    )
    .numeric()
    .stricter(TIMES),
    Row::new(
        "latency_target",
        "",
        "Find the largest queue depth, up to `iodepth`, that meets this latency",
        "latency_target=2ms",
        ValueKind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.lifecycle.latency_target = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "latency_window",
        "",
        "Time to sample each queue depth for `latency_target`",
        "latency_window=1s",
        ValueKind::Time {
            bare: Bare::Microseconds,
            set: |o, v| o.lifecycle.latency_window = v,
        },
    )
    .stricter(TIMES),
    Row::new(
        "latency_percentile",
        "100",
        "Percentage of ops that must meet `latency_target`",
        "latency_percentile=99.9",
        ValueKind::Special {
            form: "number from 0 to 100",
            read: |options, text, findings| {
                let documented = |_: &mut Findings| percent(Piece::new(text));
                let fio = || reading::float(text).filter(|value| (0.0..=100.0).contains(value));
                options.lifecycle.latency_percentile =
                    findings.documented_or_fio_value(documented, fio)?;
                Ok(())
            },
        },
    )
    .stricter(
        "flags lists, of which fio uses the first number; refuses `nan`, which breaks fio's JSON",
    ),
    Row::new(
        "latency_run",
        "0",
        "Keep running, and adapting the depth, once `latency_target` is met",
        "latency_run=1",
        ValueKind::Bool(|o, v| o.lifecycle.latency_run = v),
    ),
    Row::new(
        "flow",
        "",
        "Weight of the job among those with the same `flow_id`",
        "flow=3",
        ValueKind::Special {
            form: "integer value (opt=100); min=0, max=1000",
            read: flow,
        },
    )
    .numeric(),
    Row::new(
        "flow_id",
        "0",
        "Flow to join; jobs of one flow share I/O by weight",
        "flow_id=2",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.lifecycle.flow_id = narrow(v),
        },
    ),
    Row::new(
        "flow_sleep",
        "0",
        "Sleep while the job is ahead of its share, us",
        "flow_sleep=100",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.lifecycle.flow_sleep = Nanos::from_micros(v),
        },
    ),
    Row::new(
        "steadystate",
        "",
        "End the job or group once this is steady over `steadystate_duration`",
        "steadystate=iops_slope:0.3%",
        ValueKind::Special {
            form: "iops, bw, lat, iops_slope, bw_slope or lat_slope, then :limit or :percent%",
            read: steadystate,
        },
    )
    .aliases(&["ss"]),
    Row::new(
        "steadystate_duration",
        "0",
        "Window that must be steady; 0: no steady-state detection",
        "ss_dur=30s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.lifecycle.steady_duration = v,
        },
    )
    .aliases(&["ss_dur"])
    .stricter(TIMES),
    Row::new(
        "steadystate_ramp_time",
        "0",
        "Delay before steady-state sampling",
        "ss_ramp=10s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.lifecycle.steady_ramp = v,
        },
    )
    .aliases(&["ss_ramp"])
    .stricter(TIMES),
    Row::new(
        "steadystate_check_interval",
        "1",
        "Interval between steady-state samples",
        "ss_interval=2s",
        ValueKind::Time {
            bare: Bare::Seconds,
            set: |o, v| o.lifecycle.steady_interval = v,
        },
    )
    .aliases(&["ss_interval"])
    .stricter(TIMES),
];

/// Reads a weight. fio turns negative ones, which once had a meaning, into unreachably large
/// weights.
fn flow(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let documented = |findings: &mut Findings| {
        number::counted(Piece::new(text), kb_base, 0, WEIGHT_MAX, findings)
    };
    let fio = || {
        let Reading::Value(weight) = reading::signed(text, kb_base, (i64::MIN, 1000))? else {
            return Some(Reading::Nothing);
        };
        Some(Reading::Value(u64::try_from(weight).unwrap_or(0)))
    };
    if let Some(weight) = findings.documented_or_fio(documented, fio)? {
        options.lifecycle.flow = narrow(weight);
    }
    Ok(())
}

fn max_latency(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let documented = |_: &mut Findings| {
        up_to_three(text, "times", |piece| time::time(piece, Bare::Microseconds))
    };
    let fio = || reading::per_direction(text, |text| reading::moment(text, Bare::Microseconds));
    let bounds = findings
        .documented_or_fio(documented, fio)?
        .unwrap_or_default();
    let own = &mut options.lifecycle.max_latency;
    *own = PerDirection::from_fn(|direction| match bounds[direction] {
        Some(bound) => Some(bound).filter(|bound| !bound.is_zero()),
        None => own[direction],
    });
    Ok(())
}

fn percent(piece: Piece<'_>) -> Result<f64, Problem> {
    match number_of(piece.trim()) {
        Some(value) if value <= 100.0 => Ok(value),
        _ => Err(Problem::new(
            "bad-percentage",
            piece.range(),
            format!("`{}` is not a number from 0 to 100", piece.text),
        )),
    }
}

/// Reads digits with an optional fraction.
fn number_of(piece: Piece<'_>) -> Option<f64> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let value = piece.text.bytes().all(plain).then(|| piece.text.parse())?;
    value.ok()
}

fn steadystate(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::new(text);
    if let Some(comma) = text.find(',') {
        // fio compares the text before a comma with its words, and there is a limit in it.
        let why = "a steady-state criterion has no second value";
        return Err(Problem::new("bad-value", comma..text.len(), why)
            .fix("write it like `steadystate=iops:5%`"));
    }
    let (word, limit) = match text.split_once(':') {
        Some((word, _)) => (word, whole.part(word.len() + 1..text.len()).trim()),
        None => (text, whole.part(text.len()..text.len())),
    };
    let (figure, slope) = match word.trim() {
        "iops" => (SteadyFigure::Iops, false),
        "iops_slope" => (SteadyFigure::Iops, true),
        "bw" => (SteadyFigure::Bandwidth, false),
        "bw_slope" => (SteadyFigure::Bandwidth, true),
        "lat" => (SteadyFigure::Latency, false),
        "lat_slope" => (SteadyFigure::Latency, true),
        _ => {
            let why = format!("`{word}` is not a steady-state criterion");
            return Err(Problem::new("bad-value", 0..word.len(), why)
                .fix("choose one of iops, bw, lat, iops_slope, bw_slope, lat_slope"));
        }
    };
    let percent = limit.text.contains('%');
    let end = limit.text.find('%').unwrap_or(limit.text.len());
    let digits = limit.part(0..end).trim();
    if percent && end + 1 < limit.text.len() {
        findings.misread(needless(limit, &limit.text[..=end]), &limit.text[..=end])?;
    }
    let limit = match (figure, percent) {
        (_, true) | (SteadyFigure::Iops, false) => number_of(digits),
        (SteadyFigure::Bandwidth, false) => {
            let bytes = number::read_part(digits, options.kb_base, 0, u64::MAX, findings)?;
            Some(bytes as f64)
        }
        (SteadyFigure::Latency, false) => {
            Some(time::read_part(digits, Bare::Microseconds, findings)?.get() as f64)
        }
    };
    let limit = match (limit, reading::float(digits.text)) {
        (None, Some(value)) => {
            let why = format!("`{}` is not a number", digits.text);
            let problem = Problem::new("bad-value", digits.range(), why)
                .fix("write it like `steadystate=iops:5%`");
            findings.misread(problem, value.shown())?;
            Some(value)
        }
        (limit, _) => limit,
    };
    let Some(limit) = limit else {
        let why = format!("`{text}` has no numeric limit");
        return Err(Problem::new("bad-value", 0..text.len(), why)
            .fix("write it like `steadystate=iops:5%`"));
    };
    options.lifecycle.steady = Some(SteadyState {
        figure,
        slope,
        limit,
        percent,
    });
    Ok(())
}

/// fio's limit.
const WEIGHT_MAX: u64 = 1000;
