//! What is counted and how it is shown.

use super::general::choice;
use super::read::{Findings, narrow};
use super::row::{Kind, Row};
use crate::plan::{ContinueOnError, Options};
use crate::problem::{Piece, Problem};

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
    .stricter("what is not a number is refused; fio reads the list up to there"),
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

fn percentile_list(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let pieces = Piece::whole(text).split(&[':']);
    if pieces.len() > PERCENTILES_MAX {
        return Err(Problem::new(
            "too-many-values",
            pieces[PERCENTILES_MAX].range(),
            format!("there are {PERCENTILES_MAX} percentiles at most"),
        ));
    }
    let mut list = Vec::with_capacity(pieces.len());
    let mut decimals = 0;
    for piece in pieces {
        let piece = piece.trim();
        let plain = piece
            .text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        match piece.text.parse::<f64>() {
            Ok(value) if plain && (0.0..=100.0).contains(&value) => list.push(value),
            _ => {
                return Err(Problem::new(
                    "bad-percentile",
                    piece.range(),
                    format!("`{}` is not a number from 0 to 100", piece.text),
                )
                .fix("write them with colons between them, as in `50:99:99.9`"));
            }
        }
        let fraction = piece.text.split_once('.').map_or(0, |(_, part)| part.len());
        decimals = decimals.max(fraction);
    }
    list.sort_by(f64::total_cmp);
    options.percentile_list = list;
    options.percentile_precision = u32::try_from(decimals.min(DECIMALS_MAX)).unwrap_or_default();
    Ok(())
}

/// fio's limit.
const PERCENTILES_MAX: usize = 20;

/// More cannot be told apart in a histogram anyway.
const DECIMALS_MAX: usize = 12;
