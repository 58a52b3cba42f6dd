//! Options on measurement, reports and error tolerance.

use super::general::choice;
use super::read::narrow;
use super::row::{Row, ValueKind};
use crate::findings::Findings;
use crate::plan::{ContinueOnError, Options};
use crate::problem::{Piece, Problem};
use crate::reading::{self, Shown};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "group_reporting",
        "0",
        "Report the jobs of a group as one aggregate",
        "group_reporting",
        ValueKind::Flag(|o, v| o.group_reporting = v),
    ),
    Row::new(
        "stats",
        "1",
        "Include the job in the report",
        "stats=0",
        ValueKind::Bool(|o, v| o.stats = v),
    ),
    Row::new(
        "clat_percentiles",
        "1",
        "Report completion latency percentiles",
        "clat_percentiles=0",
        ValueKind::Bool(|o, v| o.clat_percentiles = v),
    ),
    Row::new(
        "lat_percentiles",
        "0",
        "Report total latency percentiles",
        "lat_percentiles=1",
        ValueKind::Bool(|o, v| o.lat_percentiles = v),
    ),
    Row::new(
        "slat_percentiles",
        "0",
        "Report submission latency percentiles",
        "slat_percentiles=1",
        ValueKind::Bool(|o, v| o.slat_percentiles = v),
    ),
    Row::new(
        "percentile_list",
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "Percentiles to report; at most 20",
        "percentile_list=50:99:99.9",
        ValueKind::Special {
            form: "colon-separated numbers from 0 to 100",
            read: percentile_list,
        },
    )
    .stricter(
        "flags entries that are not percentiles, and 0; fio ignores the list from there on. \
         `fathom run` prints a percentile of 0",
    ),
    Row::new(
        "significant_figures",
        "4",
        "Significant digits in the text report",
        "significant_figures=6",
        ValueKind::Int {
            min: 1,
            max: 10,
            set: |o, v| o.significant_figures = narrow(v),
        },
    ),
    Row::new(
        "disk_util",
        "1",
        "Report disk utilization",
        "disk_util=0",
        ValueKind::Bool(|o, v| o.disk_util = v),
    ),
    Row::new(
        "disable_lat",
        "0",
        "Disable total latency measurement",
        "disable_lat=1",
        ValueKind::Bool(|o, v| o.disable_lat = v),
    ),
    Row::new(
        "disable_clat",
        "0",
        "Disable completion latency measurement",
        "disable_clat=1",
        ValueKind::Bool(|o, v| o.disable_clat = v),
    ),
    Row::new(
        "disable_slat",
        "0",
        "Disable submission latency measurement",
        "disable_slat=1",
        ValueKind::Bool(|o, v| o.disable_slat = v),
    ),
    Row::new(
        "disable_bw_measurement",
        "0",
        "Disable bandwidth samples of single ops",
        "disable_bw_measurement=1",
        ValueKind::Bool(|o, v| o.disable_bw = v),
    )
    .aliases(&["disable_bw"]),
    Row::new(
        "gtod_reduce",
        "0",
        "Minimize clock reads; disables latencies and per-op logs",
        "gtod_reduce=1",
        ValueKind::Bool(gtod_reduce),
    ),
    Row::new(
        "continue_on_error",
        "none",
        "Errors (EIO, EILSEQ) that do not end the job",
        "continue_on_error=io",
        ValueKind::Choice(&[
            choice("none", "every error ends the job", |o| {
                set_errors(o, false, false, false)
            }),
            choice("read", "read errors", |o| set_errors(o, true, false, false)),
            choice("write", "write errors", |o| {
                set_errors(o, false, true, false)
            }),
            choice("io", "read and write errors", |o| {
                set_errors(o, true, true, false)
            }),
            choice("verify", "verification errors", |o| {
                set_errors(o, false, false, true)
            }),
            choice("all", "all of these", |o| set_errors(o, true, true, true)),
            choice("0", "same as `none`", |o| {
                set_errors(o, false, false, false)
            }),
            choice("1", "same as `all`", |o| set_errors(o, true, true, true)),
        ]),
    ),
];

fn gtod_reduce(options: &mut Options, on: bool) {
    options.gtod_reduce = on;
    if on {
        options.disable_lat = true;
        options.disable_clat = true;
        options.disable_slat = true;
        options.disable_bw = true;
        options.clat_percentiles = false;
        options.lat_percentiles = false;
        options.slat_percentiles = false;
    }
}

fn set_errors(options: &mut Options, read: bool, write: bool, verify: bool) {
    options.continue_on_error = ContinueOnError {
        read,
        write,
        verify,
    };
}

fn percentile_list(
    options: &mut Options,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Problem> {
    let pieces = Piece::new(text).split(&[':']);
    let mut list = Vec::with_capacity(pieces.len().min(PERCENTILES_MAX));
    let mut decimals = 0;
    // fio refuses a list without any percentile.
    let is_one = |value: f64| value.is_nan() || (0.0..=100.0).contains(&value);
    let is_number = |piece: &Piece<'_>| reading::float(piece.text).is_some_and(is_one);
    let any = pieces.iter().any(is_number);
    for piece in pieces {
        let piece = piece.trim();
        let (read, problem) = match percentile(piece, list.len()) {
            (Some(0.0), _) if findings.reads_as_fio() => (None, Some(zero_percentile(piece))),
            read => read,
        };
        let Some(problem) = problem else {
            let fraction = piece.text.split_once('.').map_or(0, |(_, part)| part.len());
            decimals = decimals.max(fraction);
            list.extend(read);
            continue;
        };
        if !any {
            return Err(problem);
        }
        list.extend(read);
        // The list ends before the first entry that is not a percentile to fio.
        let shown = list.iter().map(Shown::shown).collect::<Vec<_>>().join(":");
        let shown = if list.is_empty() {
            "no percentiles".to_owned()
        } else {
            shown
        };
        findings.misread(problem, shown)?;
        if read.is_none() {
            break;
        }
    }
    list.sort_by(f64::total_cmp);
    options.percentile_list = list;
    options.percentile_precision = u32::try_from(decimals.min(DECIMALS_MAX)).unwrap_or_default();
    Ok(())
}

/// Reads a percentile, or fio's reading with the problem; `before` is the number of entries so far.
fn percentile(piece: Piece<'_>, before: usize) -> (Option<f64>, Option<Problem>) {
    if before >= PERCENTILES_MAX {
        let why = format!("more than {PERCENTILES_MAX} percentiles");
        return (
            None,
            Some(Problem::new("too-many-values", piece.range(), why)),
        );
    }
    let within = |value: &f64| (0.0..=100.0).contains(value);
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let whole = piece
        .text
        .bytes()
        .all(plain)
        .then(|| piece.text.parse().ok());
    if let Some(value) = whole.flatten().filter(within) {
        return (Some(value), None);
    }
    let why = format!("`{}` is not a number from 0 to 100", piece.text);
    let problem = Problem::new("bad-percentile", piece.range(), why)
        .fix("separate them by colons, as in `50:99:99.9`");
    (reading::float(piece.text).filter(within), Some(problem))
}

/// Returns the problem of a 0 under the name of fio, whose list ends with it.
fn zero_percentile(piece: Piece<'_>) -> Problem {
    let why = "a percentile of 0 ends the list in fio";
    Problem::new("zero-percentile", piece.range(), why).fix("leave it out: `min` is the minimum")
}

/// fio's limit.
const PERCENTILES_MAX: usize = 20;

/// A histogram cannot resolve more.
const DECIMALS_MAX: usize = 12;
