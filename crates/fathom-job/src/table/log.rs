//! I/O logs.

use super::general::{U32, choice, cpus_allowed};
use super::read::{byte, narrow};
use super::row::{EmptyValue, Row, ValueKind};
use crate::findings::Findings;
use crate::logs::{LogFull, LogValue};
use crate::plan::Options;
use crate::problem::Problem;

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "write_bw_log",
        "",
        "Log bandwidth to PREFIX_bw.N.log; without a value the prefix is the job name",
        "write_bw_log=run1",
        ValueKind::OptionalText(|o, text| o.logs.bandwidth = Some(text.to_owned())),
    )
    .different(PER_OP),
    Row::new(
        "write_iops_log",
        "",
        "Log IOPS to PREFIX_iops.N.log",
        "write_iops_log=run1",
        ValueKind::OptionalText(|o, text| o.logs.iops = Some(text.to_owned())),
    )
    .different(PER_OP),
    Row::new(
        "write_lat_log",
        "",
        "Log latencies to PREFIX_lat.N.log, PREFIX_slat.N.log and PREFIX_clat.N.log",
        "write_lat_log=run1",
        ValueKind::OptionalText(|o, text| o.logs.latency = Some(text.to_owned())),
    )
    .different(NOT_CREATED),
    Row::new(
        "write_resp_log",
        "",
        "Log response times, from when ops were due, to PREFIX_resp.N.log; needs a rate",
        "write_resp_log=run1",
        ValueKind::OptionalText(|o, text| o.logs.response = Some(text.to_owned())),
    )
    .different("Fathom extension; a timed replay has response times, too"),
    Row::new(
        "write_hist_log",
        "",
        "Log completion latency histograms to PREFIX_clat_hist.N.log; needs log_hist_msec",
        "write_hist_log=run1",
        ValueKind::OptionalText(|o, text| o.logs.histogram = Some(text.to_owned())),
    )
    .different(NOT_CREATED),
    Row::new(
        "log_avg_msec",
        "0",
        "Averaging window of logs, ms; 0: log every op",
        "log_avg_msec=1000",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.average_ms = narrow(v),
        },
    )
    .different(
        "windows are on a fixed grid from the start of measurement, and empty ones are written as \
         zeros; fio's drift and leave gaps",
    ),
    Row::new(
        "log_hist_msec",
        "0",
        "Interval of histogram logs, ms; 0: none",
        "log_hist_msec=1000",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.histogram_ms = narrow(v),
        },
    )
    .different("intervals are on a fixed grid; fio's start when the previous one was written"),
    Row::new(
        "log_hist_coarseness",
        "0",
        "Number of times adjacent histogram buckets are merged in pairs",
        "log_hist_coarseness=2",
        ValueKind::Int {
            min: 0,
            max: 6,
            set: |o, v| o.logs.coarseness = byte(v),
        },
    ),
    Row::new(
        "log_window_value",
        "avg",
        "Value logged per averaging window",
        "log_window_value=both",
        ValueKind::Choice(&[
            choice("avg", "mean", |o| {
                o.logs.value = LogValue::Average;
            }),
            choice("max", "maximum", |o| o.logs.value = LogValue::Max),
            choice("both", "mean and maximum, in two columns", |o| {
                o.logs.value = LogValue::Both;
            }),
            choice("0", "same as `avg`", |o| o.logs.value = LogValue::Average),
            choice("1", "same as `max`", |o| o.logs.value = LogValue::Max),
        ]),
    )
    .aliases(&["log_max_value"]),
    Row::new(
        "log_offset",
        "0",
        "Add a column with the offset of each op, bytes",
        "log_offset=1",
        ValueKind::Bool(|o, v| o.logs.offset = v),
    ),
    Row::new(
        "log_prio",
        "0",
        "Log the full I/O priority instead of 1 (real-time) or 0 (other)",
        "log_prio=1",
        ValueKind::Bool(|o, v| o.logs.priority = v),
    ),
    Row::new(
        "log_issue_time",
        "0",
        "Add a column with the issue time of each op, ns; needs log_offset=1",
        "log_issue_time=1",
        ValueKind::Bool(|o, v| o.logs.issue_time = v),
    ),
    Row::new(
        "log_alternate_epoch",
        "0",
        "Log absolute times of log_alternate_epoch_clock_id, not times since the start",
        "log_alternate_epoch=1",
        ValueKind::Bool(|o, v| o.logs.epoch = v),
    )
    .aliases(&["log_unix_epoch"])
    .different("all jobs of a run share one epoch; fio reads the clock once per job"),
    Row::new(
        "log_alternate_epoch_clock_id",
        "0",
        "Clock for log_alternate_epoch, as a clock_gettime(2) ID",
        "log_alternate_epoch_clock_id=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.epoch_clock = narrow(v),
        },
    ),
    Row::new(
        "log_entries",
        "1024",
        "Log entries per chunk passed to the log writer",
        "log_entries=4096",
        ValueKind::Int {
            min: 1024,
            max: 1_048_576,
            set: |o, v| o.logs.entries = narrow(v),
        },
    )
    .different(
        "the chunk size, within 64 MiB for all jobs together; fio pauses the job to allocate this \
         many more entries",
    ),
    Row::new(
        "log_full",
        "drop",
        "Policy when the log writer cannot keep up",
        "log_full=wait",
        ValueKind::Choice(&[
            choice("drop", "drop entries and count them", |o| {
                o.logs.when_full = Some(LogFull::Drop);
            }),
            choice("wait", "block the job", |o| {
                o.logs.when_full = Some(LogFull::Wait);
            }),
        ]),
    )
    .different(
        "Fathom extension; the default is `wait` under the name `fio`, whose logs lose nothing",
    ),
    Row::new(
        "log_format",
        "text",
        "Format of log files",
        "log_format=parquet",
        ValueKind::Choice(&[
            choice("text", "fio's text format", |o| {
                o.logs.format = "text";
            }),
            choice(
                "parquet",
                "tables with the same columns, PREFIX_TYPE.N.parquet",
                |o| {
                    o.logs.format = "parquet";
                },
            ),
        ]),
    )
    .aliases(&["log-format"])
    .different(
        "Fathom extension, unless built without the feature `parquet`. Histograms remain text; \
         with per_job_logs=0 an existing table is replaced",
    ),
    Row::new(
        "log_compression",
        "0",
        "Bytes of log entries to compress at a time; see log_store_compressed",
        "log_compression=1m",
        ValueKind::Int {
            min: 1024,
            max: 536_870_912,
            set: |_, _| {},
        },
    )
    .different(
        "a dedicated thread writes logs while the job runs, and all logs together buffer at most \
         64 MiB whatever the value; fio keeps the compressed log in memory and writes it at the \
         end. The files are the same",
    ),
    Row::new(
        "log_store_compressed",
        "0",
        "Write compressed logs to PREFIX_TYPE.N.log.fz; --inflate-log prints them",
        "log_store_compressed=1",
        ValueKind::Bool(|o, v| o.logs.stored = v),
    )
    .different(
        "fio's format, in streams of at most 256 KiB of records. Histograms are written as text, \
         where fio stores memory addresses. The format has no columns for `log_window_value=both` \
         and `log_issue_time`, which are refused together with it",
    ),
    Row::new(
        "log_compression_cpus",
        "",
        "CPUs the log writer may run on",
        "log_compression_cpus=0",
        ValueKind::Special {
            form: "list of CPUs (opt=0-3,5)",
            read: writer_cpus,
        },
    )
    .empty(EmptyValue::Ignored),
    Row::new(
        "per_job_logs",
        "1",
        "Write one log file per job; 0: append all jobs to PREFIX_TYPE.log",
        "per_job_logs=0",
        ValueKind::Bool(|o, v| o.logs.per_job = v),
    ),
    Row::new(
        "bwavgtime",
        "500",
        "Averaging window of bandwidth samples and logs, ms",
        "bwavgtime=1000",
        ValueKind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.logs.bandwidth_ms = Some(narrow(v).max(1)),
        },
    )
    .fio(0, U32)
    .stricter("flags 0, and uses 1"),
    Row::new(
        "iopsavgtime",
        "500",
        "Averaging window of IOPS samples and logs, ms",
        "iopsavgtime=1000",
        ValueKind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.logs.iops_ms = Some(narrow(v).max(1)),
        },
    )
    .fio(0, U32)
    .stricter("flags 0, and uses 1"),
];

fn writer_cpus(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let mut scratch = Options::default();
    cpus_allowed(&mut scratch, text, findings)?;
    options.logs.cpus = scratch.cpus_allowed.filter(|cpus| !cpus.is_empty());
    Ok(())
}

/// Difference of the options that name logs.
const PER_OP: &str = "a log that cannot be created is refused before the run, which loses nothing; \
                      fio runs all jobs and leaves the log out. Samples of `bw` and `iops` in \
                      reports are of windows of half a second with a log of each op, too; fio's \
                      are then of single ops";
const NOT_CREATED: &str = "a log that cannot be created is refused before the run, which loses \
                           nothing; fio runs all jobs and leaves the log out";
