//! Outputs of fio, and records that hold the same numbers.

use fathom_record::{DirectionRecord, DiskRecord, Display, JobRecord, Record, Tolerated};
use fathom_stats::{Histogram, Latency, SampleStats};
use serde_json::{Value, json};

/// One output of `--output-format=json+,normal`.
pub(crate) struct Captured {
    /// The JSON document.
    pub(crate) json: String,
    /// The text after it.
    pub(crate) text: String,
    /// Record from which both could have been printed.
    pub(crate) record: Record,
}

impl Captured {
    pub(crate) fn read(output: &str) -> Self {
        let (start, end) = (line_start(output, "{"), line_start(output, "}") + 2);
        let json = output[start..end].to_owned();
        let text = output[end..].to_owned();
        let document: Value = serde_json::from_str(&json).expect("fio prints JSON");
        let record = record(&document, &text);
        Self { json, text, record }
    }
}

/// Returns the start of the only line that equals `line`.
fn line_start(text: &str, line: &str) -> usize {
    text.find(&format!("\n{line}\n"))
        .expect("the line is there")
        + 1
}

fn record(document: &Value, text: &str) -> Record {
    let globals = options(&document["global options"]);
    let titles: Vec<&str> = text.lines().filter(|l| l.contains(": (groupid=")).collect();
    let shown = document["jobs"].as_array().unwrap();
    assert_eq!(titles.len(), shown.len());
    let mut jobs = Vec::new();
    for (shown, title) in shown.iter().zip(titles) {
        let job = job(shown, &globals, title);
        // The other members of a group ran, but moved nothing.
        let mut idle = JobRecord {
            group_id: job.group_id,
            group_reporting: job.group_reporting,
            options: job.options.clone(),
            ..JobRecord::default()
        };
        idle.directions.read.clat = Some(Latency::new(true));
        let members: usize = between(title, "jobs=", ")").parse().unwrap();
        jobs.push(job);
        jobs.extend(std::iter::repeat_n(idle, members - 1));
    }
    Record {
        version: 1,
        timestamp_ms: document["timestamp_ms"].as_u64().unwrap(),
        time: document["time"].as_str().unwrap().to_owned(),
        elapsed_ms: document["jobs"][0]["elapsed"].as_u64().unwrap() * 1000,
        global_options: globals,
        jobs,
        disks: document["disk_util"]
            .as_array()
            .into_iter()
            .flatten()
            .map(disk)
            .collect(),
        ..Record::default()
    }
}

fn options(object: &Value) -> Vec<(String, String)> {
    let options = object.as_object().into_iter().flatten();
    options
        .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

fn job(shown: &Value, globals: &[(String, String)], title: &str) -> JobRecord {
    let own = options(&shown["job options"]);
    let option = |name: &str| {
        let mut all = own.iter().chain(globals);
        all.find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    };
    let error = uint(shown, "error");
    let tolerated = Tolerated {
        total: shown["total_err"].as_u64().unwrap_or(0),
        first: 0,
    };
    let total_ios: u64 = ["read", "write", "trim"]
        .iter()
        .map(|d| uint(&shown[*d], "total_ios"))
        .sum();
    let mut job = JobRecord {
        name: shown["jobname"].as_str().unwrap().to_owned(),
        description: shown["desc"].as_str().map(str::to_owned),
        group_id: u32::try_from(uint(shown, "groupid")).unwrap(),
        group_reporting: option("group_reporting").is_some() || between(title, "jobs=", ")") != "1",
        pid: between(title, " pid=", ":").parse().unwrap(),
        error: u32::try_from(error).unwrap(),
        error_text: (error != 0).then(|| between(title, " (file:", "):").to_owned()),
        tolerated: shown.get("total_err").map(|_| tolerated),
        asynchronous: ["read", "write", "trim"]
            .iter()
            .any(|d| uint(&shown[*d]["slat_ns"], "N") > 0),
        iodepth: u32::try_from(uint(shown, "latency_depth")).unwrap(),
        runtime_ms: uint(shown, "job_runtime"),
        depth_level: counts(&shown["iodepth_level"], total_ios),
        depth_submit: counts(&shown["iodepth_submit"], BATCHES),
        depth_complete: counts(&shown["iodepth_complete"], BATCHES),
        submissions: BATCHES,
        reapings: BATCHES,
        display: display(shown, option),
        ..JobRecord::default()
    };
    job.error_text = job.error_text.map(|text| format!("file:{text}"));
    job.directions.read = direction(&shown["read"]);
    job.directions.write = direction(&shown["write"]);
    job.directions.trim = direction(&shown["trim"]);
    job.sync.ios = uint(&shown["sync"], "total_ios");
    job.sync.lat = latency(&shown["sync"]["lat_ns"]);
    job.cpu.wall_us = 100_000_000;
    job.cpu.user_us = integer(shown["usr_cpu"].as_f64().unwrap() * 1e6);
    job.cpu.system_us = integer(shown["sys_cpu"].as_f64().unwrap() * 1e6);
    job.cpu.context_switches = uint(shown, "ctx");
    job.cpu.major_faults = uint(shown, "majf");
    job.cpu.minor_faults = uint(shown, "minf");
    job.options = own;
    job
}

fn display<'a>(shown: &Value, option: impl Fn(&str) -> Option<&'a str>) -> Display {
    let spread = |kind: &str| {
        let mut kinds = ["read", "write", "trim"].iter().map(|d| &shown[*d][kind]);
        kinds.any(|latency| latency.get("percentile").is_some())
    };
    let list: Vec<&str> = option("percentile_list")
        .into_iter()
        .flat_map(|l| l.split(':'))
        .collect();
    let decimals = |number: &&str| {
        number
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len())
    };
    let precision = list.iter().map(decimals).max().unwrap_or(2);
    Display {
        kb_base: option("kb_base").map_or(1024, |base| base.parse().unwrap()),
        unit_base: option("unit_base").map_or(0, |base| base.parse().unwrap()),
        percentiles: match list.is_empty() {
            true => Display::default().percentiles,
            false => list.iter().map(|number| number.parse().unwrap()).collect(),
        },
        percentile_precision: u32::try_from(precision).unwrap(),
        slat_percentiles: spread("slat_ns"),
        clat_percentiles: spread("clat_ns"),
        lat_percentiles: spread("lat_ns"),
        ..Display::default()
    }
}

fn direction(shown: &Value) -> DirectionRecord {
    DirectionRecord {
        bytes: uint(shown, "io_bytes"),
        ios: uint(shown, "total_ios"),
        short_ios: uint(shown, "short_ios"),
        dropped_ios: uint(shown, "drop_ios"),
        runtime_ms: uint(shown, "runtime"),
        slat: Some(latency(&shown["slat_ns"])),
        clat: Some(latency(&shown["clat_ns"])),
        lat: Some(latency(&shown["lat_ns"])),
        priorities: Vec::new(),
        lag: None,
        resp: None,
        queued: None,
        bandwidth: samples(
            shown,
            ["bw_min", "bw_max", "bw_mean", "bw_dev", "bw_samples"],
        ),
        iops: samples(
            shown,
            [
                "iops_min",
                "iops_max",
                "iops_mean",
                "iops_stddev",
                "iops_samples",
            ],
        ),
    }
}

/// Returns sums that give the printed mean and deviation.
fn latency(shown: &Value) -> Latency {
    let count = uint(shown, "N");
    let n = u128::from(count.max(1));
    let sum = u128::from(integer(shown["mean"].as_f64().unwrap() * count as f64));
    let spread = shown["stddev"].as_f64().unwrap().powi(2) * count.saturating_sub(1) as f64;
    let fraction = (sum * sum % n) as f64 / n as f64;
    let squares = sum * sum / n + u128::from(integer(spread + fraction));
    let halves = |wide: u128| {
        [
            u64::try_from(wide >> 64).unwrap(),
            u64::try_from(wide & u128::from(u64::MAX)).unwrap(),
        ]
    };
    let bins = shown.get("bins").and_then(Value::as_object);
    let pairs = bins.map(|bins| {
        let index = |ns: &String| Histogram::index_of(ns.parse().unwrap());
        bins.iter()
            .map(|(ns, count)| (index(ns), count.clone()))
            .collect::<Vec<_>>()
    });
    let latency = json!({
        "summary": {
            "count": count, "min": uint(shown, "min"), "max": uint(shown, "max"),
            "sum": halves(sum), "sum_of_squares": halves(squares),
        },
        "histogram": pairs,
    });
    serde_json::from_value(latency).unwrap()
}

fn samples(shown: &Value, [min, max, mean, deviation, count]: [&str; 5]) -> SampleStats {
    let deviation = shown[deviation].as_f64().unwrap();
    let n = uint(shown, count);
    let samples = json!({
        "count": n, "min": shown[min], "max": shown[max], "mean": shown[mean],
        "squares": deviation.powi(2) * n.saturating_sub(1) as f64,
    });
    serde_json::from_value(samples).unwrap()
}

fn disk(shown: &Value) -> DiskRecord {
    DiskRecord {
        name: shown["name"].as_str().unwrap().to_owned(),
        read_ios: uint(shown, "read_ios"),
        write_ios: uint(shown, "write_ios"),
        read_merges: uint(shown, "read_merges"),
        write_merges: uint(shown, "write_merges"),
        read_ticks_ms: uint(shown, "read_ticks"),
        write_ticks_ms: uint(shown, "write_ticks"),
        in_queue_ms: uint(shown, "in_queue"),
        util_percent: shown["util"].as_f64().unwrap(),
        ..DiskRecord::default()
    }
}

/// Returns counts that give the printed shares of `total`. The smallest one that is printed may
/// stand for a single op.
fn counts(shares: &Value, total: u64) -> [u64; 7] {
    let shares: Vec<f64> = shares
        .as_object()
        .unwrap()
        .values()
        .map(|s| s.as_f64().unwrap())
        .collect();
    let is_floor = |share: f64| (share - 0.1).abs() < 1e-9;
    std::array::from_fn(|index| match shares[index] {
        share if is_floor(share) => 1,
        share => integer(share * total as f64 / 100.0),
    })
}

fn uint(object: &Value, key: &str) -> u64 {
    object[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {object}"))
}

#[expect(clippy::cast_possible_truncation, reason = "tests use small numbers")]
fn integer(value: f64) -> u64 {
    value.round() as u64
}

/// Returns the text between `start` and the next `end`.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("no `{start}` in {text}"));
    rest.split_once(end)
        .unwrap_or_else(|| panic!("no `{end}` in {rest}"))
        .0
}

/// Submissions and reaps: enough for six decimals of their shares.
const BATCHES: u64 = 100_000_000;
