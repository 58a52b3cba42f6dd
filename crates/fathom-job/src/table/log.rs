//! I/O logs.

use super::general::{U32, choice, cpus_allowed};
use super::read::{byte, narrow};
use super::row::{Kind, Row};
use crate::findings::Findings;
use crate::logs::{LogFileFormat, LogFull, LogValue};
use crate::plan::Options;
use crate::problem::Problem;

// tidy: long: one row an option
pub(super) const ROWS: &[Row] = &[
    Row::new(
        "write_bw_log",
        "",
        "Log the bandwidth to PREFIX_bw.N.log; the prefix is the job's name if none is given",
        "write_bw_log=run1",
        Kind::OptionalText(|o, text| o.logs.bandwidth = Some(text.to_owned())),
    ),
    Row::new(
        "write_iops_log",
        "",
        "Log the IOPS to PREFIX_iops.N.log",
        "write_iops_log=run1",
        Kind::OptionalText(|o, text| o.logs.iops = Some(text.to_owned())),
    ),
    Row::new(
        "write_lat_log",
        "",
        "Log the latencies to PREFIX_lat.N.log, PREFIX_slat.N.log and PREFIX_clat.N.log",
        "write_lat_log=run1",
        Kind::OptionalText(|o, text| o.logs.latency = Some(text.to_owned())),
    ),
    Row::new(
        "write_hist_log",
        "",
        "Log histograms of clat to PREFIX_clat_hist.N.log; see log_hist_msec",
        "write_hist_log=run1",
        Kind::OptionalText(|o, text| o.logs.histogram = Some(text.to_owned())),
    ),
    Row::new(
        "log_avg_msec",
        "0",
        "Log averages over windows so long; 0 logs each op",
        "log_avg_msec=1000",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.average_ms = narrow(v),
        },
    )
    .different(
        "windows lie on a fixed grid from the start of measurement, and empty ones are written as \
         zeros; fio's drift and leave gaps",
    ),
    Row::new(
        "log_hist_msec",
        "0",
        "Log a histogram so often; 0 for none",
        "log_hist_msec=1000",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.histogram_ms = narrow(v),
        },
    )
    .different("on a fixed grid; fio's windows begin where the last one was written"),
    Row::new(
        "log_hist_coarseness",
        "0",
        "Merge two buckets of the logged histograms so often",
        "log_hist_coarseness=2",
        Kind::Int {
            min: 0,
            max: 6,
            set: |o, v| o.logs.coarseness = byte(v),
        },
    ),
    Row::new(
        "log_window_value",
        "avg",
        "What a line of an averaged log holds",
        "log_window_value=both",
        Kind::Choice(&[
            choice("avg", "the mean of the window", |o| {
                o.logs.value = LogValue::Average;
            }),
            choice("max", "its maximum", |o| o.logs.value = LogValue::Max),
            choice("both", "both, in columns of their own", |o| {
                o.logs.value = LogValue::Both;
            }),
            choice("0", "as `avg`", |o| o.logs.value = LogValue::Average),
            choice("1", "as `max`", |o| o.logs.value = LogValue::Max),
        ]),
    )
    .aliases(&["log_max_value"]),
    Row::new(
        "log_offset",
        "0",
        "Add a column with the op's byte offset",
        "log_offset=1",
        Kind::Bool(|o, v| o.logs.offset = v),
    ),
    Row::new(
        "log_prio",
        "0",
        "Log the whole I/O priority in place of 1 for real time and 0 for others",
        "log_prio=1",
        Kind::Bool(|o, v| o.logs.priority = v),
    ),
    Row::new(
        "log_issue_time",
        "0",
        "Add a column with the time the op was issued, ns; needs log_offset=1",
        "log_issue_time=1",
        Kind::Bool(|o, v| o.logs.issue_time = v),
    ),
    Row::new(
        "log_alternate_epoch",
        "0",
        "Count times from the epoch of a clock (1970 for the time of day), and not from the start",
        "log_alternate_epoch=1",
        Kind::Bool(|o, v| o.logs.epoch = v),
    )
    .aliases(&["log_unix_epoch"])
    .different("one epoch for all jobs of a run; fio looks at the clock once for each"),
    Row::new(
        "log_alternate_epoch_clock_id",
        "0",
        "The clock of log_alternate_epoch: clock_gettime's number",
        "log_alternate_epoch_clock_id=1",
        Kind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.logs.epoch_clock = narrow(v),
        },
    ),
    Row::new(
        "log_entries",
        "1024",
        "Entries that are handed to the writer at once",
        "log_entries=4096",
        Kind::Int {
            min: 1024,
            max: 1_048_576,
            set: |o, v| o.logs.entries = narrow(v),
        },
    )
    .different(
        "the size of a chunk; all jobs together have 64 MiB. fio pauses the job to make room for \
         so many more",
    ),
    Row::new(
        "log_full",
        "drop",
        "What happens when the log's writer cannot keep up",
        "log_full=wait",
        Kind::Choice(&[
            choice("drop", "entries are dropped and counted", |o| {
                o.logs.when_full = Some(LogFull::Drop);
            }),
            choice("wait", "the job waits", |o| {
                o.logs.when_full = Some(LogFull::Wait);
            }),
        ]),
    )
    .different("Fathom's own; `wait` where the program is called fio, whose logs lose nothing"),
    Row::new(
        "log_format",
        "text",
        "What the files of logs are",
        "log_format=parquet",
        Kind::Choice(&[
            choice("text", "fio's lines", |o| {
                o.logs.format = LogFileFormat::Text;
            }),
            choice(
                "parquet",
                "tables with the same columns: PREFIX_TYPE.N.parquet",
                |o| {
                    o.logs.format = LogFileFormat::Parquet;
                },
            ),
        ]),
    )
    .aliases(&["log-format"])
    .different(
        "Fathom's own, where it was built with the feature `parquet`. Histograms stay text; with \
         per_job_logs=0 a table is begun anew",
    ),
    Row::new(
        "log_compression",
        "0",
        "Compress what is logged so many bytes at a time; see log_store_compressed",
        "log_compression=1m",
        Kind::Int {
            min: 1024,
            max: 536_870_912,
            set: |_, _| {},
        },
    )
    .different(
        "fio keeps the log in memory, compressed, and writes it at the end. Here it is written \
         while the job runs, by a thread of its own, and all logs together keep 64 MiB whatever \
         is given; the files are the same",
    ),
    Row::new(
        "log_store_compressed",
        "0",
        "Write the log compressed, to PREFIX_TYPE.N.log.fz; --inflate-log prints it",
        "log_store_compressed=1",
        Kind::Bool(|o, v| o.logs.stored = v),
    )
    .different(
        "fio's format, in streams of at most 256 KiB of records. Histograms are written as text, \
         where fio stores addresses of its memory; there is no column for \
         `log_window_value=both` and `log_issue_time`, which are refused beside it",
    ),
    Row::new(
        "log_compression_cpus",
        "",
        "The processors that the log's writer may run on",
        "log_compression_cpus=0",
        Kind::Special {
            form: "list of processors (opt=0-3,5)",
            read: writer_cpus,
        },
    ),
    Row::new(
        "per_job_logs",
        "1",
        "A file for each job; 0 appends the logs of all jobs to PREFIX_TYPE.log",
        "per_job_logs=0",
        Kind::Bool(|o, v| o.logs.per_job = v),
    ),
    Row::new(
        "bwavgtime",
        "500",
        "Window of the bandwidth's samples and log, ms",
        "bwavgtime=1000",
        Kind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.logs.bandwidth_ms = Some(narrow(v).max(1)),
        },
    )
    .fio(0, U32)
    .stricter("0: 1 is taken"),
    Row::new(
        "iopsavgtime",
        "500",
        "Window of the IOPS samples and log, ms",
        "iopsavgtime=1000",
        Kind::Int {
            min: 1,
            max: U32,
            set: |o, v| o.logs.iops_ms = Some(narrow(v).max(1)),
        },
    )
    .fio(0, U32)
    .stricter("0: 1 is taken"),
];

fn writer_cpus(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let mut scratch = Options::default();
    cpus_allowed(&mut scratch, text, findings)?;
    options.logs.cpus = scratch.cpus_allowed;
    Ok(())
}
