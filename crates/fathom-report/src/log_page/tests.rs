//! Pages of made-up logs.

use super::*;

/// Returns what is known of a text log of this name.
pub(super) fn description(name: &str) -> LogDescription {
    let (kind, kind_source) = LogKind::found(None, name, None);
    LogDescription {
        name: name.into(),
        kind,
        kind_source,
        format: "text",
        has_offsets: false,
        has_priorities: false,
        has_max: false,
    }
}

/// Returns a reduction of logs with these lines.
fn reduced(logs: &[(LogDescription, Vec<LogSample>)]) -> LogReduction {
    let mut reduction = LogReduction::new();
    for (description, samples) in logs {
        reduction.begin(description.clone());
        samples.iter().for_each(|sample| reduction.add(sample));
        reduction.end(Vec::new());
    }
    reduction
}

/// Returns reads, one each millisecond, whose values ascend.
fn reads(lines: u64) -> Vec<LogSample> {
    (0..lines)
        .map(|line| LogSample {
            time_ms: line,
            value: 10_000 + line,
            max: 10_000 + line,
            bytes: 4096,
            offset: line * 8192 % (1 << 30),
            ..LogSample::default()
        })
        .collect()
}

#[track_caller]
fn html(logs: &[(LogDescription, Vec<LogSample>)]) -> String {
    let page = log_page(&reduced(logs), "logs");
    for drawing in page.drawings() {
        let faults = crate::plot::faults(&drawing.svg);
        assert_eq!(faults, [""; 0], "{}: {}", drawing.name, drawing.svg);
        assert!(!drawing.svg.contains("NaN"), "{}", drawing.svg);
    }
    page.html()
}

fn names(logs: &[(LogDescription, Vec<LogSample>)]) -> Vec<String> {
    let page = log_page(&reduced(logs), "logs");
    let drawings = page.drawings().into_iter();
    drawings.map(|drawing| drawing.name).collect()
}

#[test]
fn a_log_of_ops_has_all_figures() {
    let with_offsets = LogDescription {
        has_offsets: true,
        ..description("a_clat.1.log")
    };
    let logs = [(with_offsets, reads(20_000))];
    let want = [
        "clat-by-percentile",
        "clat-shares",
        "clat-over-time",
        "clat-heat-map-read",
        "throughput",
        "offsets-read",
        "seek-distances",
    ];
    assert_eq!(names(&logs), want);
    let text = html(&logs);
    for part in [
        "1 log, 20000 lines.",
        "Nothing is odd",
        "Completion latency (clat)",
        "<th scope=\"row\">a_clat.1.log, read</th><td>20000</td><td>10.00</td><td>20.00</td>",
        "from the file's name",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn averages_are_not_taken_for_ops() {
    let averages = reads(100).into_iter().map(|sample| LogSample {
        bytes: 0,
        time_ms: sample.time_ms * 1000,
        ..sample
    });
    let averages: Vec<LogSample> = averages.collect();
    let latency = [(description("a_lat.1.log"), averages.clone())];
    let text = html(&latency);
    assert!(text.contains("say nothing of single ops"), "{text}");
    assert!(!text.contains("a second or more without"), "{text}");
    assert!(!names(&latency).contains(&"throughput".to_owned()));
    let text = html(&[(description("a_bw.1.log"), averages)]);
    assert!(text.contains("bw of windows, KiB/s"), "{text}");
}

#[test]
fn odd_logs_are_told() {
    let text = html(&[(description("mystery.log"), reads(3))]);
    assert!(text.contains("guessed: nothing states the kind"), "{text}");
    assert!(text.contains("Hint: state it, as in --kind clat"), "{text}");
    let mut back = reads(5000);
    back[300].time_ms = 7;
    back.iter_mut()
        .skip(4000)
        .for_each(|sample| sample.time_ms += 3_600_000);
    let text = html(&[(description("a_clat.1.log"), back)]);
    assert!(text.contains("go back once, by up to 0.292 s"), "{text}");
    assert!(
        text.contains("the longest begins at 3.999 s and takes 3600.001 s"),
        "{text}"
    );
}

#[test]
fn short_and_empty_logs_have_pages() {
    let empty = html(&[(description("a_clat.1.log"), Vec::new())]);
    assert!(empty.contains("it has no line") && empty.contains("No line was logged."));
    for lines in [1, 2, 30] {
        html(&[(description("a_clat.1.log"), reads(lines))]);
    }
    let far = LogSample {
        time_ms: u64::MAX,
        value: u64::MAX,
        max: u64::MAX,
        bytes: u64::MAX,
        offset: u64::MAX,
        priority: u16::MAX,
        direction: 2,
    };
    let everything = LogDescription {
        has_offsets: true,
        has_priorities: true,
        ..description("a_slat.1.log")
    };
    let samples = [reads(50), vec![far; 50], reads(2)].concat();
    html(&[(everything, samples)]);
}

#[test]
fn logs_of_several_jobs_lie_over_each_other() {
    let logs: Vec<_> = (1..=3_u64)
        .map(|job| (description(&format!("a_clat.{job}.log")), reads(job * 1000)))
        .collect();
    let text = html(&logs);
    for part in [
        "a_clat.2.log, read",
        "all logs, read",
        "jobs that did not begin together are shifted",
        "Largest clat by log",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let many: Vec<_> = (1..=9_u64)
        .map(|job| (description(&format!("a_clat.{job}.log")), reads(100)))
        .collect();
    assert!(html(&many).contains("9 logs cannot be told apart in a figure"));
}

#[test]
fn logs_of_the_same_ops_are_told() {
    let check = |names: [&str; 2], want: bool| {
        let text = html(&names.map(|name| (description(name), reads(100))));
        assert_eq!(text.contains("are of the same ops"), want, "{names:?}");
    };
    check(["a_clat.1.log", "a_clat_hist.1.log"], true);
    check(["a_clat_hist.log", "a_clat.log.fz"], true);
    check(["v1.2_clat_hist.3.log", "v1.2_clat.3.parquet"], true);
    check(["a_clat.1.log", "a_clat_hist.2.log"], false);
    check(["a_lat.1.log", "a_clat_hist.1.log"], false);
    check(["a_clat_hist.1.log", "b_clat.1.log"], false);
    check(["_hist.log", ".log"], true);
}

#[test]
fn priorities_stand_apart() {
    let mut mixed = reads(1000);
    mixed
        .iter_mut()
        .step_by(3)
        .for_each(|sample| sample.priority = 1 << 13);
    let text = html(&[(description("a_clat.1.log"), mixed.clone())]);
    for part in [
        "clat by priority, µs",
        "read, real time",
        "read, not real time",
    ] {
        assert!(text.contains(part), "{part}");
    }
    let whole = LogDescription {
        has_priorities: true,
        ..description("a_clat.1.log")
    };
    let text = html(&[(whole, mixed)]);
    assert!(text.contains("read, real time, level 0 (0x2000)"), "{text}");
    assert!(text.contains("clat by percentile and priority"), "{text}");
}

#[test]
fn one_of_each_op_says_nothing_of_iops() {
    let ones = reads(1000).into_iter().map(|sample| LogSample {
        value: 1,
        max: 1,
        ..sample
    });
    let logs = [(description("a_iops.1.log"), ones.collect())];
    assert_eq!(names(&logs), ["throughput"]);
}

#[test]
fn times_from_the_epoch_count_from_the_first_line() {
    let epoch = reads(1000).into_iter().map(|sample| LogSample {
        time_ms: sample.time_ms + 1_800_000_000_000,
        ..sample
    });
    let text = html(&[(description("a_clat.1.log"), epoch.collect())]);
    assert!(text.contains("time since the first line, s"), "{text}");
    assert!(!text.contains("time since the start of the job"), "{text}");
}
