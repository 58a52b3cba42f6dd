//! Values of I/O log options, accepted and refused.

use crate::world::{file, job, refuse};
use fathom_job::{LogFull, LogOptions, LogValue};

/// Checks a job with these options.
#[track_caller]
fn check(options: &str, has: impl FnOnce(&LogOptions) -> bool) {
    let logs = job(options).options.logs;
    assert!(has(&logs), "{options}: {logs:?}");
}

#[test]
fn files() {
    check("--size=1m", |logs| !logs.any() && logs.per_job);
    check("--write_bw_log=a", |l| l.bandwidth.as_deref() == Some("a"));
    check("--write_lat_log=a", |l| l.latency.as_deref() == Some("a"));
    check("--write_iops_log=a", |l| l.iops.as_deref() == Some("a"));
    check("--write_hist_log=a", |l| {
        l.histogram.as_deref() == Some("a")
    });
    check("--write_resp_log=a --rate_iops=100", |l| {
        l.response.as_deref() == Some("a")
    });
    refuse("--write_resp_log=a", "no-schedule");
    // The rate of a direction that the job does not have.
    refuse("--write_resp_log=a --rate=,1m", "no-schedule");
    check("--per_job_logs=0", |logs| !logs.per_job);
    for text in ["write_bw_log", "write_bw_log="] {
        let jobs = file(&format!("[a]\n{text}\n")).plan("j.fio").jobs;
        let prefix = jobs[0].options.logs.bandwidth.as_deref();
        assert_eq!(prefix, Some(""), "{text}: the job's name");
    }
}

#[test]
fn windows() {
    check("--log_avg_msec=250", |logs| logs.average_ms == 250);
    check("--log_hist_msec=250", |logs| logs.histogram_ms == 250);
    check("--log_hist_coarseness=6", |logs| logs.coarseness == 6);
    refuse("--log_hist_coarseness=7", "out-of-range");
    check("--bwavgtime=250", |logs| logs.bandwidth_ms == Some(250));
    check("--iopsavgtime=250", |logs| logs.iops_ms == Some(250));
    check("--log_window_value=both", |l| l.value == LogValue::Both);
    check("--log_max_value=1", |logs| logs.value == LogValue::Max);
    check("--log_max_value=0", |logs| logs.value == LogValue::Average);
    refuse("--log_window_value=most", "bad-value");
}

#[test]
fn columns() {
    check("--log_offset=1", |logs| logs.offset && !logs.priority);
    check("--log_prio=1", |logs| logs.priority && !logs.offset);
    check("--log_offset=1 --log_issue_time=1", |logs| logs.issue_time);
    check("--log_unix_epoch=1", |logs| {
        logs.epoch && logs.epoch_clock == 0
    });
    check(
        "--log_alternate_epoch=1 --log_alternate_epoch_clock_id=1",
        |l| l.epoch && l.epoch_clock == 1,
    );
}

#[test]
fn memory() {
    check("--log_entries=65536", |logs| logs.entries == 65_536);
    refuse("--log_entries=1023", "out-of-range");
    refuse("--log_entries=1048577", "out-of-range");
    // As fio, which loses no line; the program under its own name does not pause a job unasked.
    check("--log_offset=1", |logs| {
        logs.when_full == Some(LogFull::Wait)
    });
    check("--log_full=wait", |logs| {
        logs.when_full == Some(LogFull::Wait)
    });
    check("--log_full=drop", |logs| {
        logs.when_full == Some(LogFull::Drop)
    });
    refuse("--log_full=stop", "bad-value");
    check("--log_compression_cpus=0,2-3", |logs| {
        logs.cpus.as_deref() == Some(&[0, 2, 3])
    });
    refuse("--log_compression=1", "out-of-range");
}

#[test]
fn compressed() {
    check("--log_format=parquet", |l| l.format == "parquet");
    check("--log-format=text", |l| l.format == "text");
    refuse(
        "--log_format=parquet --log_store_compressed=1",
        "contradiction",
    );
    check("--log_compression=1m", |logs| !logs.stored);
    check("--log_store_compressed=1", |logs| logs.stored);
    check("--log_store_compressed=1 --log_max_value=1", |l| l.stored);
    for other in ["log_window_value=both", "log_issue_time=1 --log_offset=1"] {
        refuse(&format!("--log_store_compressed=1 --{other}"), "no-column");
    }
}
