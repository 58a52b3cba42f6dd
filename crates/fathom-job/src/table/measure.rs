//! What is counted and how it is shown.

use super::general::choice;
use super::read::narrow;
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::plan::{ContinueOnError, Options};
use crate::problem::{Piece, Problem};
use crate::reading::{self, Shown};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "group_reporting",
        "0",
        "Report the jobs of a group as one",
        "group_reporting",
        Kind::Flag(|o, v| o.group_reporting = v),
    ),
    Row::new(
        "stats",
        "1",
        "Whether the job stands in the report at all",
        "stats=0",
        Kind::Bool(|o, v| o.stats = v),
    ),
    Row::new(
        "clat_percentiles",
        "1",
        "Report percentiles of the completion latency",
        "clat_percentiles=0",
        Kind::Bool(|o, v| o.clat_percentiles = v),
    ),
    Row::new(
        "lat_percentiles",
        "0",
        "Report percentiles of the total latency",
        "lat_percentiles=1",
        Kind::Bool(|o, v| o.lat_percentiles = v),
    ),
    Row::new(
        "slat_percentiles",
        "0",
        "Report percentiles of the submission latency",
        "slat_percentiles=1",
        Kind::Bool(|o, v| o.slat_percentiles = v),
    ),
    Row::new(
        "percentile_list",
        "1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99",
        "The percentiles to report, at most 20",
        "percentile_list=50:99:99.9",
        Kind::Special {
            form: "numbers from 0 to 100 with colons between them",
            read: percentile_list,
        },
    )
    .stricter(
        "what is not a number; fio reads the list up to there, and refuses one that begins so",
    ),
    Row::new(
        "significant_figures",
        "4",
        "Digits of the numbers in the text report",
        "significant_figures=6",
        Kind::Int {
            min: 1,
            max: 10,
            set: |o, v| o.significant_figures = narrow(v),
        },
    ),
    Row::new(
        "disk_util",
        "1",
        "Report how busy the disks were",
        "disk_util=0",
        Kind::Bool(|o, v| o.disk_util = v),
    ),
    Row::new(
        "disable_lat",
        "0",
        "Do not measure the total latency",
        "disable_lat=1",
        Kind::Bool(|o, v| o.disable_lat = v),
    ),
    Row::new(
        "disable_clat",
        "0",
        "Do not measure the completion latency",
        "disable_clat=1",
        Kind::Bool(|o, v| o.disable_clat = v),
    ),
    Row::new(
        "disable_slat",
        "0",
        "Do not measure the submission latency",
        "disable_slat=1",
        Kind::Bool(|o, v| o.disable_slat = v),
    ),
    Row::new(
        "disable_bw_measurement",
        "0",
        "Do not log the bandwidth of single ops",
        "disable_bw_measurement=1",
        Kind::Bool(|o, v| o.disable_bw = v),
    )
    .aliases(&["disable_bw"]),
    Row::new(
        "gtod_reduce",
        "0",
        "Read the clock as seldom as possible: no latencies, no logs of single ops",
        "gtod_reduce=1",
        Kind::Bool(gtod_reduce),
    ),
    Row::new(
        "continue_on_error",
        "none",
        "After which errors (EIO, EILSEQ) a job goes on",
        "continue_on_error=io",
        Kind::Choice(&[
            choice("none", "after none", |o| set_errors(o, false, false, false)),
            choice("read", "errors of reads", |o| {
                set_errors(o, true, false, false)
            }),
            choice("write", "errors of writes", |o| {
                set_errors(o, false, true, false)
            }),
            choice("io", "errors of reads and writes", |o| {
                set_errors(o, true, true, false)
            }),
            choice("verify", "content that differs", |o| {
                set_errors(o, false, false, true)
            }),
            choice("all", "all of these", |o| set_errors(o, true, true, true)),
            choice("0", "as `none`", |o| set_errors(o, false, false, false)),
            choice("1", "as `all`", |o| set_errors(o, true, true, true)),
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
    let pieces = Piece::whole(text).split(&[':']);
    let mut list = Vec::with_capacity(pieces.len().min(PERCENTILES_MAX));
    let mut decimals = 0;
    for piece in pieces {
        let piece = piece.trim();
        let (read, problem) = percentile(piece, list.len());
        let Some(problem) = problem else {
            let fraction = piece.text.split_once('.').map_or(0, |(_, part)| part.len());
            decimals = decimals.max(fraction);
            list.extend(read);
            continue;
        };
        // fio reads the list up to here; without a number at its head it refuses it.
        if list.is_empty() && read.is_none() {
            return Err(problem);
        }
        list.extend(read);
        findings.misread(
            problem,
            list.iter().map(Shown::shown).collect::<Vec<_>>().join(":"),
        )?;
        if read.is_none() {
            break;
        }
    }
    list.sort_by(f64::total_cmp);
    options.percentile_list = list;
    options.percentile_precision = u32::try_from(decimals.min(DECIMALS_MAX)).unwrap_or_default();
    Ok(())
}

/// A percentile, or what fio takes it for and what is wrong with it; `before` are in the list.
fn percentile(piece: Piece<'_>, before: usize) -> (Option<f64>, Option<Problem>) {
    if before >= PERCENTILES_MAX {
        let why = format!("there are {PERCENTILES_MAX} percentiles at most");
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
        .fix("write them with colons between them, as in `50:99:99.9`");
    (reading::float(piece.text).filter(within), Some(problem))
}

/// fio's limit.
const PERCENTILES_MAX: usize = 20;

/// More cannot be told apart in a histogram anyway.
const DECIMALS_MAX: usize = 12;
