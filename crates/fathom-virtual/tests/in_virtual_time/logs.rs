//! I/O logs against the record of the same run: they agree, and logging changes no result.

use std::collections::BTreeMap;

use fathom_core::Nanos;
use fathom_record::Record;
use fathom_sim::Constant;
use fathom_stats::SampleStats;
use fathom_virtual::{simulate, simulate_logged};
use proptest::prelude::*;

use crate::common::plan;

/// Record, and the rows of each log file as numbers.
struct Logged {
    record: Record,
    files: BTreeMap<String, Vec<Vec<u64>>>,
}

#[track_caller]
fn logged(words: &str, device: &Constant) -> Logged {
    let (record, files) = simulate_logged(&plan(words), device).expect(words);
    let files = files.into_iter().map(|(name, bytes)| {
        let text = String::from_utf8(bytes).expect("logs are text");
        let rows = text.lines().map(|line| {
            let columns = line
                .split(", ")
                .map(|column| match column.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).expect(line),
                    None => column.parse().expect(line),
                });
            columns.collect()
        });
        (name, rows.collect())
    });
    Logged {
        record,
        files: files.collect(),
    }
}

impl Logged {
    fn column(&self, file: &str, direction: u64, column: usize, place: usize) -> Vec<u64> {
        let rows = self.files[file].iter();
        let rows = rows.filter(|row| row[place] == direction);
        rows.map(|row| row[column]).collect()
    }
}

#[test]
fn a_log_leaves_no_trace_in_the_record() {
    let device = Constant::new(Nanos::from_micros(70));
    let words = "--name=t --size=4m --rw=randrw --iodepth=4 --ioengine=libaio --ramp_time=5ms \
                 --name=u --size=1m --rw=write --rate_iops=3000 --numjobs=2";
    let bare = plan(words);
    for (average, histogram) in [(0, 10), (20, 0)] {
        let mut with = bare.clone();
        for job in &mut with.jobs {
            // Set here and not in words: words are part of the record.
            let logs = &mut job.options.logs;
            logs.latency = Some("p".into());
            logs.bandwidth = Some("p".into());
            logs.iops = Some("p".into());
            logs.histogram = Some("p".into());
            (logs.average_ms, logs.histogram_ms) = (average, histogram);
            // The report's samples follow the logs' windows.
            (logs.bandwidth_ms, logs.iops_ms) = (Some(500), Some(500));
        }
        let text = |record: &Record| serde_json::to_string(record).expect("a record");
        let (record, files) = simulate_logged(&with, &device).expect("a run");
        assert!(files.iter().any(|(_, bytes)| !bytes.is_empty()));
        let unlogged = simulate(&bare, &device).expect("a run");
        assert_eq!(text(&record), text(&unlogged));
    }
}

#[test]
fn names_are_fios() {
    let device = Constant::new(Nanos::from_micros(70));
    let words = "--name=t --size=64k --rw=read --numjobs=2 --write_lat_log=p --write_bw_log=q \
                 --name=u --size=64k --write_hist_log=h --log_hist_msec=1 --per_job_logs=0";
    let run = logged(words, &device);
    let names: Vec<_> = run.files.keys().map(String::as_str).collect();
    let want = [
        "h_clat_hist.log",
        "p_clat.1.log",
        "p_clat.2.log",
        "p_lat.1.log",
        "p_lat.2.log",
        "p_slat.1.log",
        "p_slat.2.log",
        "q_bw.1.log",
        "q_bw.2.log",
    ];
    assert_eq!(names, want);
}

#[test]
fn empty_windows_are_zeros_on_the_grid() {
    let device = Constant::new(Nanos::from_micros(100));
    let words = "--name=t --rw=read --size=12k --rate_iops=1 --write_iops_log=p --log_avg_msec=250";
    let run = logged(words, &device);
    let rows: Vec<_> = run.files["p_iops.1.log"]
        .iter()
        .map(|row| (row[0], row[1]))
        .collect();
    let want = [
        (250, 4),
        (500, 0),
        (750, 0),
        (1000, 0),
        (1250, 4),
        (1500, 0),
        (1750, 0),
        (2000, 0),
    ];
    assert_eq!(rows[..8], want);
}

/// Checks that the samples of a job's reads are the windows of its logs that are not empty.
#[track_caller]
fn check_samples(words: &str, latency: Nanos, windows: u64) {
    let words = format!("{words} --write_bw_log=p --write_iops_log=p --log_avg_msec=500");
    let run = logged(&words, &Constant::new(latency));
    let read = &run.record.jobs[0].directions.read;
    for (file, samples) in [("p_bw", &read.bandwidth), ("p_iops", &read.iops)] {
        let mut want = SampleStats::default();
        let values = run.column(&format!("{file}.1.log"), 0, 1, 2);
        let values = values.into_iter().filter(|value| *value > 0);
        values.for_each(|value| want.record(value));
        assert_eq!(*samples, want, "{words}");
        assert_eq!(samples.count(), windows, "{words}");
    }
}

#[test]
fn samples_are_the_windows_of_the_log() {
    let pauses = "--name=t --rw=read --size=64m --bs=64k --ioengine=psync --time_based \
                  --runtime=4 --thinktime=1900ms --thinktime_blocks=64";
    check_samples(pauses, Nanos::from_micros(70), 3);
    let waits = "--name=t --rw=randread --size=10g --bs=1m --ioengine=libaio --iodepth=256 \
                 --time_based --runtime=200";
    check_samples(waits, Nanos::from_secs(30), 6);
    let blocks = "--name=t --rw=randread --size=1g --ioengine=psync --time_based --runtime=9";
    check_samples(blocks, Nanos::from_millis(1300), 6);
}

#[test]
fn samples_of_a_low_rate_have_its_mean() {
    let words = "--name=t --rw=read --size=1g --rate_iops=3 --time_based --runtime=4";
    let run = logged(words, &Constant::new(Nanos::from_micros(70)));
    let read = &run.record.jobs[0].directions.read;
    assert_eq!((read.iops.min(), read.iops.max()), (2, 4));
    assert_eq!((read.iops.mean(), read.bandwidth.mean()), (3.0, 12.0));
}

/// Generates jobs with their rates and windows, and the device's latency.
fn jobs() -> impl Strategy<Value = (String, u64)> {
    let rw = prop::sample::select(vec!["randread", "randwrite", "randrw", "rw"]);
    let bs = prop::sample::select(vec!["bs=4k", "bs=8k,16k", "bsrange=4k-32k"]);
    let engine = prop::sample::select(vec!["psync", "libaio"]);
    (
        rw,
        bs,
        engine,
        1..9_u32,
        50..200_000_u64,
        1..8_u64,
        0..2_u64,
    )
        .prop_map(|(rw, bs, engine, depth, iops, mib, ramp)| {
            let words = format!(
                "--name=t --size={mib}m --rw={rw} --{bs} --ioengine={engine} --iodepth={depth} \
                 --rate_iops={iops} --ramp_time={}ms --time_based --runtime=1",
                ramp * 37
            );
            (words, 5 + iops % 300)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Every op has its line, and the lines add up to what the record says.
    #[test]
    fn single_ops_add_up((words, micros) in jobs()) {
        let device = Constant::new(Nanos::from_micros(micros));
        let words = format!(
            "{words} --write_bw_log=p --write_lat_log=p --write_iops_log=p --log_offset=1 \
             --write_hist_log=p --log_hist_msec=100 --write_resp_log=p"
        );
        let run = logged(&words, &device);
        for (direction, totals) in (0..).zip(run.record.jobs[0].directions.each()) {
            let sum = |file, column| run.column(file, direction, column, 2).iter().sum::<u64>();
            prop_assert_eq!(sum("p_bw.1.log", 3), totals.bytes);
            prop_assert_eq!(sum("p_iops.1.log", 1), totals.ios);
            for (file, latency) in [
                ("p_lat.1.log", &totals.lat),
                ("p_clat.1.log", &totals.clat),
                ("p_slat.1.log", &totals.slat),
                ("p_resp.1.log", &totals.resp),
            ] {
                let Some(latency) = latency else { continue };
                let values = run.column(file, direction, 1, 2);
                let summary = latency.summary;
                prop_assert_eq!(values.len() as u64, summary.count(), "{}", file);
                let mean = values.iter().sum::<u64>() as f64 / (values.len().max(1)) as f64;
                prop_assert!((mean - summary.mean()).abs() < 1e-3, "{}: {}", file, mean);
                if summary.count() > 0 {
                    prop_assert_eq!(values.iter().copied().max(), Some(summary.max()));
                }
            }
            let histograms = &run.files["p_clat_hist.1.log"];
            let own = histograms.iter().filter(|row| row[1] == direction);
            let counted: u64 = own.flat_map(|row| &row[3..]).sum();
            let written = histograms.last().map_or(0, |row| row[0]);
            let times = run.column("p_clat.1.log", direction, 0, 2);
            let before = times.iter().filter(|&&time| time < written).count();
            prop_assert_eq!(counted, before as u64);
            let last = run.files["p_clat.1.log"].last().map_or(0, |row| row[0]);
            prop_assert!(last >= written && last < written + 100, "{} {}", last, written);
            prop_assert!(histograms.iter().all(|row| row.len() == 3 + 1856));
        }
    }

    /// The lines of windows are what the lines of single ops make them.
    #[test]
    fn windows_match_single_ops((words, micros) in jobs(), window in 1..500_u64) {
        let device = Constant::new(Nanos::from_micros(micros));
        let words = format!(
            "{words} --write_bw_log=p --write_iops_log=p --write_lat_log=p --write_resp_log=p"
        );
        let single = logged(&words, &device);
        let run = logged(&format!("{words} --log_avg_msec={window}"), &device);
        for direction in 0..2 {
            for file in ["p_bw.1.log", "p_iops.1.log"] {
                let whole = run.column(file, direction, 0, 2);
                let grid = (1..=whole.len() as u64).map(|index| index * window);
                prop_assert!(whole.iter().copied().eq(grid), "{}: {:?}", file, whole);
                let (unit, column) = if file == "p_bw.1.log" { (1024, 3) } else { (1, 1) };
                let ops = single.files[file].iter().filter(|row| row[2] == direction);
                let mut sums = vec![0; whole.len() + 1];
                for op in ops {
                    let window = usize::try_from(op[0] / window).expect("few windows");
                    prop_assert!(window <= whole.len(), "only the last, short window has no line");
                    sums[window] += op[column];
                }
                for (rate, sum) in run.column(file, direction, 1, 2).into_iter().zip(sums) {
                    prop_assert!(rate.abs_diff(sum * 1000 / window / unit) <= 1, "{rate} {sum}");
                }
            }
            for file in ["p_lat.1.log", "p_clat.1.log", "p_slat.1.log", "p_resp.1.log"] {
                let Some(lines) = run.files.get(file) else { continue };
                let ops = single.files[file].iter().filter(|row| row[2] == direction);
                let slowest = ops.map(|row| row[1]).max().unwrap_or(0);
                let times = run.column(file, direction, 0, 2);
                prop_assert!(times.windows(2).all(|two| two[0] < two[1]), "{}: {:?}", file, times);
                prop_assert!(lines.iter().all(|row| row[2] != direction || row[1] <= slowest));
            }
        }
    }
}
