//! I/O priorities of single ops, and their statistics, on a device of 100 µs per op, whatever its
//! priority.

use fathom_core::{IoPriority, OutputFormat};
use fathom_record::{DirectionRecord, Record};
use fathom_report::render;

use crate::common::record;

/// Returns `class/level/hint:ops` of each priority with statistics.
fn spelled(direction: &DirectionRecord) -> Vec<(String, u64)> {
    let entries = direction.priorities.iter().map(|entry| {
        let IoPriority { class, level, hint } = IoPriority::from_raw(entry.priority);
        let ops = entry.latency.summary.count();
        (format!("{class}/{level}/{hint}"), ops)
    });
    entries.collect()
}

/// Runs 4096 ops of `WORDS` and checks the approximate number of ops with each priority.
#[track_caller]
fn check_direction(
    words: &str,
    pick: fn(&Record) -> &DirectionRecord,
    want: &[(&str, u64)],
) -> Record {
    let words = format!("--name=t --size=16m --iodepth=8 {words}");
    let record = record(&words);
    let got = spelled(pick(&record));
    let names: Vec<&str> = got.iter().map(|(name, _)| name.as_str()).collect();
    let wanted: Vec<&str> = want.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, wanted, "{words}");
    for ((name, got), (_, want)) in got.iter().zip(want) {
        assert!(
            got.abs_diff(*want) <= 130,
            "{words}: {name}: {got}, not about {want}"
        );
    }
    let total: u64 = got.iter().map(|(_, ops)| ops).sum();
    if !got.is_empty() {
        assert_eq!(total, pick(&record).ios, "{words}");
    }
    record
}

#[track_caller]
fn check(words: &str, want: &[(&str, u64)]) -> Record {
    check_direction(words, |record| &record.jobs[0].directions.read, want)
}

#[test]
fn a_share_of_the_ops_gets_a_priority() {
    for engine in ["libaio", "io_uring"] {
        let words = format!("--rw=randread --ioengine={engine}");
        let check = |more: &str, want: &[(&str, u64)]| check(&format!("{words} {more}"), want);
        check("", &[]);
        check("--cmdprio_class=1 --cmdprio=3", &[]);
        check("--cmdprio_percentage=0", &[]);
        check(
            "--cmdprio_percentage=30",
            &[("0/0/0", 2867), ("1/0/0", 1229)],
        );
        check("--cmdprio_percentage=100", &[("0/0/0", 0), ("1/0/0", 4096)]);
        check(
            "--cmdprio_percentage=50 --cmdprio_class=2 --cmdprio=3 --cmdprio_hint=5",
            &[("0/0/0", 2048), ("2/3/5", 2048)],
        );
    }
}

#[test]
fn other_ops_have_the_threads_priority() {
    let words = "--rw=randread --ioengine=libaio --cmdprio_percentage=50";
    let check = |more: &str, want: &[(&str, u64)]| check(&format!("{words} {more}"), want);
    check("--prio=3", &[("2/3/0", 2048), ("1/0/0", 2048)]);
    check("--prio=0", &[("2/0/0", 2048), ("1/0/0", 2048)]);
    check("--prioclass=3", &[("3/0/0", 2048), ("1/0/0", 2048)]);
    check(
        "--prioclass=2 --prio=4 --priohint=1",
        &[("2/4/1", 2048), ("1/0/0", 2048)],
    );
    check("--prioclass=1", &[("1/0/0", 4096)]);
}

#[test]
fn each_direction_has_its_own() {
    let words = "--rw=randrw --ioengine=libaio --cmdprio_percentage=30,60 --cmdprio_class=1,3";
    let record = check(words, &[("0/0/0", 1434), ("1/0/0", 614)]);
    let write = spelled(&record.jobs[0].directions.write);
    assert_eq!(write[1].0, "3/0/0");
    assert!(write[1].1.abs_diff(1229) <= 130, "{write:?}");
    let trims = "--rw=randtrim --ioengine=io_uring --cmdprio_percentage=50";
    check_direction(trims, |record| &record.jobs[0].directions.trim, &[]);
    let reads_only = "--rw=randread --ioengine=libaio --cmdprio_percentage=0,50";
    check(reads_only, &[]);
}

#[test]
fn sizes_have_their_own_shares() {
    let words = "--rw=randread --ioengine=libaio --cmdprio_bssplit";
    let check = |more: &str, want: &[(&str, u64)]| check(&format!("{words}={more}"), want);
    check("4k/50", &[("0/0/0", 2048), ("1/0/0", 2048)]);
    check("8k/50", &[("0/0/0", 4096), ("1/0/0", 0)]);
    check("4k/0", &[]);
    check(",4k/50", &[]);
    check(
        "4k/50/3/3:4k/30/2/1/7",
        &[("0/0/0", 819), ("3/3/0", 2048), ("2/1/7", 1229)],
    );
    // About 1024 ops of 4 KiB and as many of 8 KiB.
    check(
        "4k/50/2/3:8k/40 --cmdprio_class=3 --cmdprio=5 --bssplit=4k/50:8k/50 \
         --io_size=12m --norandommap",
        &[("0/0/0", 1126), ("2/3/0", 512), ("3/5/0", 410)],
    );
}

#[test]
fn the_latency_kept_is_the_one_that_is_shown() {
    let words =
        "--name=t --size=1m --rw=randread --ioengine=libaio --iodepth=1 --cmdprio_percentage=50";
    let means = |more: &str| -> Vec<String> {
        let record = record(&format!("{words} {more}"));
        let entries = record.jobs[0].directions.read.priorities.iter();
        let means = entries.map(|entry| format!("{:.0}", entry.latency.summary.mean()));
        means.collect()
    };
    assert_eq!(means(""), ["100000", "100000"]);
    assert_eq!(means("--lat_percentiles=1"), ["100000", "100000"]);
    assert_eq!(means("--disable_clat=1"), ["0", "0"]);
    assert_eq!(
        means("--disable_clat=1 --lat_percentiles=1"),
        ["100000", "100000"]
    );
    assert_eq!(
        means("--disable_lat=1 --lat_percentiles=1"),
        ["100000", "100000"]
    );
    assert_eq!(means("--gtod_reduce=1"), ["0", "0"]);
}

#[test]
fn the_ramp_is_left_out() {
    let words = "--name=t --size=64m --rw=randread --ioengine=libaio --iodepth=1 --time_based \
                 --runtime=100ms --ramp_time=100ms --cmdprio_percentage=50";
    let read = &record(words).jobs[0].directions.read;
    let ops: u64 = spelled(read).iter().map(|(_, ops)| ops).sum();
    assert_eq!(ops, read.ios);
    assert!((995..=1005).contains(&ops), "{ops}");
}

#[test]
fn priorities_do_not_change_what_is_done() {
    let words = "--name=t --size=16m --rw=randrw --ioengine=libaio --iodepth=8 --rate_iops=5000";
    let offsets = |more: &str| {
        let record = record(&format!("{words} {more}"));
        let read = &record.jobs[0].directions.read;
        let write = &record.jobs[0].directions.write;
        (read.ios, write.ios, read.runtime_ms, write.runtime_ms)
    };
    assert_eq!(offsets(""), offsets("--cmdprio_percentage=30"));
}

#[test]
fn the_report_tells_priorities_apart() {
    let words = "--name=t --size=16m --rw=randread --ioengine=libaio --iodepth=8 \
                 --cmdprio_percentage=30";
    let told = record(words);
    let text = render(&told, OutputFormat::Normal, 0);
    for line in [
        "    clat prio 0/0/0 (nsec): min=100000, max=100000, avg=100000.00, stdev= 0.00\n",
        "    clat prio 1/0/0 (nsec): min=100000, max=100000, avg=100000.00, stdev= 0.00\n",
        "    clat prio 0/0/0 (71.19% of IOs) percentiles (nsec):\n",
        "    clat prio 1/0/0 (28.81% of IOs) percentiles (nsec):\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let json = render(&told, OutputFormat::Json, 0);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let prios = &json["jobs"][0]["read"]["prios"];
    assert_eq!(prios[0]["prioclass"], 0);
    assert_eq!(prios[1]["prioclass"], 1);
    assert_eq!(prios[1]["priohint"], 0);
    let counts = [0, 1].map(|index| prios[index]["clat_ns"]["N"].as_u64().unwrap_or(0));
    assert_eq!(counts[0] + counts[1], 4096);
    assert!(prios[0]["clat_ns"]["percentile"]["99.000000"].is_u64());
    assert!(json["jobs"][0]["write"]["prios"].is_null());

    // One priority alone is nothing to tell.
    let text = render(
        &record(&format!("{words} --cmdprio_percentage=100")),
        OutputFormat::Normal,
        0,
    );
    assert!(!text.contains("prio"), "{text}");
}

#[test]
fn a_group_of_several_priorities_is_told_apart() {
    let words = "--group_reporting --size=1m --rw=read --ioengine=sync --name=a --prioclass=2 \
                 --name=b --prioclass=1 --prio=3";
    let text = render(&record(words), OutputFormat::Normal, 0);
    assert!(
        text.contains("    clat prio 2/0/0 (50.00% of IOs) percentiles"),
        "{text}"
    );
    assert!(
        text.contains("    clat prio 1/3/0 (50.00% of IOs) percentiles"),
        "{text}"
    );
}
