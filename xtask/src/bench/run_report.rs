//! Figures from a program's own report.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Figures of one run over all its jobs, reads and writes together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunReport {
    /// Ops.
    pub(crate) ops: f64,
    /// Sum of the jobs' ops per second, each over its own runtime.
    pub(crate) iops: f64,
    /// User CPU time of all jobs, ns per op.
    pub(crate) user_ns_per_op: f64,
    /// Sum of the jobs' log lines written per second, each over its own runtime.
    pub(crate) kept_lines_per_s: f64,
    /// Lines of I/O logs dropped.
    pub(crate) dropped_lines: f64,
    /// 99.9th percentile of the reads' clat, the maximum over the jobs; 0 if there is none.
    pub(crate) clat_ns: f64,
    /// 99.99th percentile of the reads' lag, the same.
    pub(crate) lag_ns: f64,
    /// Mean of lat over all ops.
    pub(crate) lat_ns_mean: f64,
}

impl RunReport {
    /// Parses the output of `--output-format=json`, which notes may precede.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let report = document(text)?;
        let jobs = report["jobs"]
            .as_array()
            .context("the report has no jobs")?;
        let mut sums = Self {
            ops: 0.0,
            iops: 0.0,
            user_ns_per_op: 0.0,
            kept_lines_per_s: 0.0,
            dropped_lines: 0.0,
            clat_ns: 0.0,
            lag_ns: 0.0,
            lat_ns_mean: 0.0,
        };
        let mut user_ns = 0.0;
        for job in jobs {
            if job["error"] != 0 {
                bail!("a job ended with error {}", job["error"]);
            }
            for direction in ["read", "write"] {
                let ops = number(&job[direction], "total_ios")?;
                sums.ops += ops;
                let lat = job[direction]["lat_ns"]["mean"].as_f64();
                sums.lat_ns_mean += lat.unwrap_or(0.0) * ops;
                sums.iops += number(&job[direction], "iops")?;
            }
            let clat = &job["read"]["clat_ns"]["percentile"]["99.900000"];
            let lag = &job["fathom"]["read"]["lag_ns"]["percentile"]["99.990000"];
            sums.clat_ns = clat.as_f64().unwrap_or(0.0).max(sums.clat_ns);
            sums.lag_ns = lag.as_f64().unwrap_or(0.0).max(sums.lag_ns);
            // Percent of the job's time, which is in ms: 1 % of 1 ms is 10,000 ns.
            let log = &job["fathom"]["log"];
            if log.is_object() {
                let seconds = number(job, "job_runtime")? / 1e3;
                sums.kept_lines_per_s += number(log, "lines_kept")? / seconds.max(1e-3);
                sums.dropped_lines += number(log, "lines_dropped")?;
            }
            user_ns += number(job, "usr_cpu")? * number(job, "job_runtime")? * 1e4;
        }
        if sums.ops <= 0.0 {
            bail!("the report has no ops");
        }
        sums.user_ns_per_op = user_ns / sums.ops;
        sums.lat_ns_mean /= sums.ops;
        Ok(sums)
    }
}

/// Parses the IOPS from the output of `fathom peak --json`.
pub(crate) fn peak_iops(text: &str) -> Result<f64> {
    number(&document(text)?["points"][0], "iops_mean")
}

/// Parses the IOPS from the output of `t/io_uring`: the mean over its seconds.
pub(crate) fn ring_loop_iops(text: &str) -> Result<f64> {
    let mut sum = 0.0;
    let mut seconds = 0_u32;
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("IOPS=") else {
            continue;
        };
        let word = rest.split(',').next().unwrap_or(rest);
        let (digits, unit) = match word.chars().last() {
            Some('K') => (word.trim_end_matches('K'), 1e3),
            Some('M') => (word.trim_end_matches('M'), 1e6),
            _ => (word, 1.0),
        };
        let value: f64 = digits
            .parse()
            .with_context(|| format!("not a rate: `{line}`"))?;
        sum += value * unit;
        seconds += 1;
    }
    if seconds == 0 || sum <= 0.0 {
        bail!("t/io_uring printed no rate:\n{text}");
    }
    Ok(sum / f64::from(seconds))
}

fn document(text: &str) -> Result<Value> {
    let open = text.find('{').context("the report holds no JSON")?;
    serde_json::from_str(&text[open..]).context("cannot read the report")
}

fn number(object: &Value, key: &str) -> Result<f64> {
    let value = object[key].as_f64();
    value.with_context(|| format!("the report has no number `{key}` where it should be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(errors: &[u32]) -> String {
        let job = |error: &u32| {
            format!(
                r#"{{"error": {error}, "usr_cpu": 25.0, "job_runtime": 2000,
                "read": {{"total_ios": 4000, "iops": 2000.5}},
                "write": {{"total_ios": 1000, "iops": 500}}}}"#
            )
        };
        let jobs: Vec<String> = errors.iter().map(job).collect();
        format!("a note\n{{\n\"jobs\": [{}]\n}}\n", jobs.join(","))
    }

    #[test]
    fn jobs_and_directions_are_summed() {
        let want = RunReport {
            ops: 10_000.0,
            iops: 5001.0,
            // Twice a quarter of two seconds, over 10,000 ops.
            user_ns_per_op: 100_000.0,
            kept_lines_per_s: 0.0,
            dropped_lines: 0.0,
            clat_ns: 0.0,
            lag_ns: 0.0,
            lat_ns_mean: 0.0,
        };
        assert_eq!(RunReport::parse(&report(&[0, 0])).ok(), Some(want));
    }

    #[test]
    fn lines_of_logs_are_summed() {
        let job = |lines: u32| {
            format!(
                "{{\"error\": 0, \"job_runtime\": 500, \"usr_cpu\": 1.0, \
                 \"read\": {{\"total_ios\": 1, \"iops\": 1.0}}, \
                 \"write\": {{\"total_ios\": 0, \"iops\": 0.0}}, \
                 \"fathom\": {{\"log\": {{\"lines_kept\": {lines}, \"lines_dropped\": 7}}}}}}"
            )
        };
        let text = format!("{{\n\"jobs\": [{}, {}]\n}}\n", job(10), job(20));
        let report = RunReport::parse(&text).expect("a good report");
        assert!((report.kept_lines_per_s - 60.0).abs() < 1e-9);
        assert!((report.dropped_lines - 14.0).abs() < 1e-9);
    }

    #[test]
    fn errors_and_gaps_are_not_swallowed() {
        let no_cpu = report(&[0]).replace("usr_cpu", "other");
        let no_ops = report(&[0]).replace("4000", "0").replace("1000", "0");
        for text in [&report(&[0, 5]), &no_cpu, &no_ops, "nothing", "{}"] {
            assert!(RunReport::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_seconds_of_a_ring_loop_are_averaged() {
        let text = "submitter=0, tid=1\nIOPS=157.5K, BW=616MiB/s, IOS/call=8/7\n\
                    IOPS=0.2425M, IOS/call=8/8\nExiting on timeout\nMaximum IOPS=9M\n";
        assert_eq!(ring_loop_iops(text).ok(), Some(200_000.0));
        assert_eq!(ring_loop_iops("IOPS=7\n").ok(), Some(7.0));
        assert!(ring_loop_iops("Maximum IOPS=9M\n").is_err());
        assert!(ring_loop_iops("IOPS=many\n").is_err());
    }

    #[test]
    fn the_first_depth_of_a_peak_counts() {
        let text = r#"{"points": [{"depth": 32, "iops_mean": 7.5}]}"#;
        assert_eq!(peak_iops(text).ok(), Some(7.5));
        assert!(peak_iops(r#"{"points": []}"#).is_err());
    }
}
