//! `fathom peak` and `fathom table`, the whole program on files in a folder of their own.

use crate::common::{Folder, Run};
use serde_json::Value;

/// Creates a directory with a file of 1 MiB, few enough blocks that every one is read.
fn with_file() -> Folder {
    let folder = Folder::new();
    folder.write("data", vec![7_u8; 1 << 20]);
    folder
}

/// Returns the only point of a measurement; `None` if this kernel lacks the engine.
#[track_caller]
fn point(folder: &Folder, words: &str) -> Option<Value> {
    let run = folder.fathom(&format!("peak --json --repeats 2 --seconds 0.2 {words}"));
    if let Some(why) = run.refused() {
        println!("skipped: {why}");
        return None;
    }
    let record = run.expect(0).json();
    assert_eq!(record["points"].as_array().unwrap().len(), 1, "{record}");
    Some(record["points"][0].clone())
}

#[track_caller]
fn check_refused(run: Run, wants: &[&str]) {
    let run = run.expect(2);
    assert_eq!(run.out, "");
    for want in wants {
        assert!(run.err.contains(want), "`{want}` is not in {}", run.err);
    }
}

#[test]
fn every_engine_counts_its_ops_and_calls() {
    let folder = with_file();
    for (words, per_call) in [
        (
            "--buffered --engine io_uring --depth 8 --submit 4 data",
            4.0,
        ),
        ("--buffered --engine libaio --depth 8 --submit 4 data", 4.0),
        ("--buffered --engine sync data", 1.0),
        ("--nop --depth 16 --submit 8", 8.0),
        (
            "--buffered --no-fixed --no-register --no-register-ring --depth 4 data",
            4.0,
        ),
        ("--buffered --sequential --threads 2 --depth 4 data", 4.0),
    ] {
        let Some(point) = point(&folder, words) else {
            continue;
        };
        let ops = point["ops"].as_f64().unwrap();
        let calls = point["calls"].as_f64().unwrap();
        assert!(
            ops > 0.0 && ops / calls <= per_call + 0.01,
            "{words}: {point}"
        );
        assert!(
            point["iops_max"].as_f64() >= point["iops_mean"].as_f64(),
            "{point}"
        );
        let bytes = if words.contains("--nop") {
            0.0
        } else {
            ops * 4096.0
        };
        assert!(
            (point["moved_bytes"].as_f64().unwrap() - bytes).abs() < 0.5,
            "{point}"
        );
        assert_eq!(point["lat"], Value::Null);
        assert_eq!(point["repeats"].as_array().unwrap().len(), 2, "{point}");
    }
}

#[test]
fn each_op_has_one_latency() {
    let folder = with_file();
    let words = "--buffered --latency --depth 8 --submit 2 --block 512 data";
    let Some(point) = point(&folder, words) else {
        return;
    };
    let percentiles = point["lat"]["percentiles"].as_array().unwrap();
    assert_eq!(percentiles.len(), 17);
    let at: Vec<_> = percentiles
        .iter()
        .map(|one| one["lat_ns"].as_u64().unwrap())
        .collect();
    assert!(at.is_sorted() && at[0] > 0, "{at:?}");
    let buckets = point["lat"]["all"]["histogram"].as_array().unwrap();
    let kept: u64 = buckets
        .iter()
        .map(|bucket| bucket[1].as_u64().unwrap())
        .sum();
    // A last batch may be recorded after the watcher has read the count.
    let ops = point["ops"].as_u64().unwrap();
    assert!(kept >= ops, "{kept} of {ops}");
}

#[test]
fn writes_change_the_file_and_nothing_else() {
    let folder = with_file();
    if point(&folder, "--buffered --write --depth 4 data").is_none() {
        return;
    }
    let data = std::fs::read(folder.path().join("data")).unwrap();
    assert_eq!(data.len(), 1 << 20);
    assert!(data.iter().any(|&byte| byte != 7));
    assert_eq!(folder.names(), ["data"]);
}

#[test]
fn once_a_second_and_the_maximum() {
    let folder = with_file();
    let words = "peak --repeats 1 --seconds 1.2 --engine sync --buffered --latency data";
    let run = folder.fathom(words).expect(0);
    assert!(
        run.out.contains("1 s: ") && run.out.contains(" 1.2 s: ") && run.out.contains("maximum: "),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("1.0 ops per call") && run.out.contains("p99.99"),
        "{}",
        run.out
    );
    assert!(run.err.contains("psync"), "{}", run.err);
}

#[test]
fn a_short_measurement_is_not_a_second() {
    let run = Folder::new().fathom("peak --nop --repeats 1 --seconds 0.05");
    if let Some(why) = run.refused() {
        println!("skipped: {why}");
        return;
    }
    let out = run.expect(0).out;
    assert!(
        out.contains(" 0.05 s: ") && !out.contains(" 1 s: "),
        "{out}"
    );
}

/// Returns the rows of a comparison for `side`, split into cells.
fn rows<'a>(text: &'a str, side: &str) -> Vec<Vec<&'a str>> {
    let rows = text.lines().map(|line| line.split_whitespace().collect());
    rows.filter(|row: &Vec<&str>| row.first() == Some(&side) || row.get(2) == Some(&side))
        .collect()
}

#[test]
fn a_sweep_is_compared_with_a_saved_one() {
    let folder = Folder::new();
    let run = folder.fathom("peak --sweep --nop --seconds 0.05 --json");
    if let Some(why) = run.refused() {
        println!("skipped: {why}");
        return;
    }
    folder.write("saved.json", run.expect(0).out);
    let run = folder
        .fathom("peak --sweep --nop --seconds 0.05 --against saved.json")
        .expect(0);
    let now = rows(&run.out, "now");
    let steps: Vec<_> = now.iter().map(|row| (row[0], row[1])).collect();
    let want = [
        ("1", "1"),
        ("2", "1"),
        ("4", "1"),
        ("8", "2"),
        ("16", "4"),
        ("32", "8"),
        ("64", "16"),
    ];
    assert_eq!(steps, want, "{}", run.out);
    assert_eq!(rows(&run.out, "saved").len(), 7, "{}", run.out);
    let changes = rows(&run.out, "change");
    assert!(changes.iter().all(|row| row.contains(&"×")), "{changes:?}");
    assert!(run.out.contains("96 % interval"), "{}", run.out);
    assert!(
        run.out.contains("changed: nothing that is recorded"),
        "{}",
        run.out
    );
    assert!(
        run.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        run.out
    );
}

#[test]
fn a_saved_result_without_repeats_has_no_interval() {
    let folder = with_file();
    let words = "peak --engine sync --buffered --seconds 0.05";
    let mut saved = folder
        .fathom(&format!("{words} --json data"))
        .expect(0)
        .json();
    saved["points"][0]
        .as_object_mut()
        .unwrap()
        .remove("repeats");
    saved["machine"].as_object_mut().unwrap().remove("governor");
    saved["machine"]["kernel"] = "1.0".into();
    folder.write("saved.json", saved.to_string());
    let run = folder
        .fathom(&format!("{words} --against saved.json data"))
        .expect(0);
    assert_eq!(
        rows(&run.out, "change"),
        [["change", "unknown"]],
        "{}",
        run.out
    );
    assert!(
        run.out.contains("unknown: no interval without repeats"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("changed: kernel: 1.0, now "),
        "{}",
        run.out
    );
}

#[test]
fn options_are_compared_in_turn() {
    let folder = with_file();
    let against = |options: &str, more: &str| {
        let words = format!("peak --engine sync --buffered --seconds 0.05 {more}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        command.args(["--against", options, "data"]);
        Run::of(command)
    };
    let json = against("--sequential --block 512", "--json")
        .expect(0)
        .json();
    let comparison = &json["comparison"];
    assert_eq!(comparison["alternating"], true, "{json}");
    let changes = [
        "block size: 512, now 4096",
        "settings: --sequential --buffered, now --buffered",
    ];
    assert_eq!(comparison["changes"], serde_json::json!(changes));
    let point = &comparison["points"][0];
    assert_eq!(point["against_iops"].as_array().unwrap().len(), 5);
    let (low, high) = (&point["iops"]["low"], &point["iops"]["high"]);
    assert!(low.as_f64().unwrap() <= high.as_f64().unwrap(), "{point}");
    let text = against("--threads 2", "").expect(0);
    assert!(
        text.out.contains("now 5: ") && text.out.contains("other 5: "),
        "{}",
        text.out
    );
    assert!(
        text.out
            .contains("other: measured in turn, with `--threads 2`"),
        "{}",
        text.out
    );
    check_refused(against("--depth 1,2", ""), &["2 points to compare with 1"]);
    let wants = ["--against: ", "--nonsense", "hint: name options"];
    check_refused(against("--nonsense", ""), &wants);
}

#[test]
fn depths_and_batches_make_a_table() {
    let folder = with_file();
    let words = "peak --buffered --engine libaio --depth 1,8 --batch 1,8 --seconds 0.05 data";
    let run = folder.fathom(words);
    if let Some(why) = run.refused() {
        println!("skipped: {why}");
        return;
    }
    let run = run.expect(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(
        lines[..2],
        ["IOPS, median of the repeats", "depth  batch 1  batch 8"]
    );
    assert_eq!(lines.len(), 4, "{}", run.out);
    assert!(run.err.contains("depth 1/8, submit 1/8"), "{}", run.err);
}

#[test]
fn bad_targets_are_named() {
    let folder = with_file();
    folder.write("small", "x");
    let peak = |words: &str| folder.fathom(&format!("peak --seconds 0.1 {words}"));
    check_refused(peak("missing"), &["missing: No such file"]);
    check_refused(peak("/dev/no-such-disk"), &["/dev/no-such-disk", "lsblk"]);
    check_refused(peak("."), &[".: is a directory", "hint: "]);
    check_refused(
        peak("small"),
        &["small: 1 B, smaller than a block of 4096 B", "--block"],
    );
    check_refused(peak("/dev/null"), &["neither a file nor a block device"]);
    check_refused(peak(""), &["no target", "--nop"]);
    check_refused(peak("--nop data"), &["--nop: takes no target"]);
    check_refused(
        peak("--block 100 data"),
        &["not a multiple of the", "hint: set --block"],
    );
}

#[test]
fn bad_numbers_say_their_limit() {
    let folder = with_file();
    let peak = |words: &str| folder.fathom(&format!("peak --seconds 0.1 {words}"));
    check_refused(
        peak("--depth 40000 data"),
        &["32768", "IORING_MAX_ENTRIES", "hint: lower it"],
    );
    check_refused(
        peak("--depth 20000 data"),
        &["16384", "IORING_MAX_REG_BUFFERS", "--no-fixed"],
    );
    check_refused(
        peak("--depth 4 --submit 8 data"),
        &["8 is more than --depth 4", "or lower --submit or --batch"],
    );
    check_refused(peak("--depth 0 data"), &["--depth: must be at least 1"]);
    check_refused(peak("--engine sync --depth 4 data"), &["one op at a time"]);
    check_refused(peak("--cpu 8000 data"), &["CPU 8000", "choose among"]);
    check_refused(
        peak("--cpu 4294967295 --threads 2 data"),
        &["CPU 4294967295", "choose among"],
    );
    check_refused(peak("--block 4q data"), &["--block"]);
    check_refused(peak("--repeats 0 data"), &["--repeats"]);
    check_refused(peak("--repeats 65 data"), &["--repeats", "1..=64"]);
    check_refused(peak("--batch 1,x data"), &["--batch", "1,8,32"]);
    check_refused(peak("--batch 4 --submit 4 data"), &["--submit"]);
    check_refused(peak("--batch 0 data"), &["--batch: must be at least 1"]);
    check_refused(peak("--block 0 data"), &["--block: must be at least 1"]);
    check_refused(peak("--threads 0 data"), &["--threads: must be at least 1"]);
    check_refused(peak("--threads 5000 data"), &["5000 is more than 4096"]);
    check_refused(peak("--nop --engine libaio"), &["libaio has no such op"]);
    check_refused(peak("--nop --polled"), &["no device to poll"]);
    for option in ["--write", "--buffered", "--sequential", "--block 512"] {
        let (name, _) = option.split_once(' ').unwrap_or((option, ""));
        check_refused(
            peak(&format!("--nop {option}")),
            &["'--nop' cannot be", name],
        );
    }
    for words in ["--batch 1,64 --depth 8", "--batch 64 --depth 1,8"] {
        let run = peak(&format!("{words} data"));
        check_refused(run, &["--submit or --batch: 64 is more than --depth"]);
    }
    check_refused(peak("--sweep --batch 1,128 data"), &["128 is more than"]);
    for words in [
        "--depth 0",
        "--depth 1,0",
        "--threads 0",
        "--block 0",
        "--batch 0",
    ] {
        let run = peak(&format!("{words} data"));
        assert!(
            run.err.starts_with("fathom: peak: --"),
            "{words}: {}",
            run.err
        );
        check_refused(run, &["must be at least 1"]);
    }
    check_refused(
        peak("--polled --buffered data"),
        &["--polled: the page cache"],
    );
    check_refused(
        peak("--engine libaio --polled data"),
        &["libaio does not poll"],
    );
    check_refused(peak("--sweep --depth 4 data"), &["--depth"]);
}

#[test]
fn more_than_fs_aio_max_nr_allows_says_so() {
    let folder = with_file();
    let limit = std::fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap_or_default();
    let Ok(limit) = limit.trim().parse::<u64>() else {
        println!("skipped: no fs.aio-max-nr");
        return;
    };
    if limit > 1 << 24 {
        println!("skipped: fs.aio-max-nr is {limit}");
        return;
    }
    let words = format!(
        "peak --seconds 1 --engine libaio --block 512 --depth {} data",
        limit * 2
    );
    let run = folder.fathom(&words).expect(2);
    assert!(run.err.contains("io_setup"), "{}", run.err);
    assert!(run.err.contains("--depth"), "{}", run.err);
}

#[test]
fn a_mounted_device_is_not_written() {
    let folder = Folder::new();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let devices = mounts.lines().filter_map(|line| line.split(' ').next());
    let mut devices = devices.filter(|device| device.starts_with("/dev/"));
    let Some(device) = devices.find(|device| std::path::Path::new(device).exists()) else {
        println!("skipped: no device is mounted");
        return;
    };
    let run = folder.fathom(&format!("peak --write --seconds 1 {device}"));
    check_refused(run, &["will not be written", "leave out --write"]);
}

#[test]
fn polling_a_device_without_poll_queues_names_the_setting() {
    let folder = with_file();
    let run = folder.fathom("peak --seconds 1 --polled --depth 4 data");
    if run.code == Some(0) || !run.err.contains("poll") {
        println!("skipped: {}", run.err);
        return;
    }
    check_refused(run, &["poll_queues"]);
}

#[test]
fn an_unprinted_measurement_is_a_failure() {
    let folder = with_file();
    let shell = format!(
        "{} peak --seconds 0.1 --engine sync --buffered --json data > /dev/full",
        env!("CARGO_BIN_EXE_fathom")
    );
    let ran = folder.command("sh", "-c").arg(shell).output().unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{err}");
    assert!(err.contains("peak: standard output: "), "{err}");
}

#[test]
fn files_of_other_programs_are_refused() {
    let folder = Folder::new();
    folder.write("other.json", "{}");
    let run = folder.fathom("peak --nop --seconds 1 --against other.json");
    check_refused(run, &["--against: other.json", "fathom peak --json"]);
    folder.write("cut.json", "{\"version\": 1");
    let cut = folder.fathom("peak --nop --seconds 1 --against cut.json");
    assert_eq!(cut.err.matches("EOF while").count(), 1, "{}", cut.err);
    check_refused(cut, &["--against: cut.json"]);
    let long = folder.fathom("peak --nop --seconds 1e300");
    check_refused(long, &["expected seconds from 0.01 to 1000000"]);
    let endless = folder.fathom("peak --nop --seconds 1 --against /dev/zero");
    check_refused(endless, &["--against: /dev/zero: more than"]);
}

#[test]
fn nops_have_no_bandwidth_and_differing_settings_are_reported() {
    let folder = Folder::new();
    let saved = folder.fathom("peak --nop --seconds 0.1 --depth 8 --threads 2 --json");
    if let Some(why) = saved.refused() {
        println!("skipped: {why}");
        return;
    }
    folder.write("saved.json", saved.expect(0).out);
    let run = folder.fathom("peak --nop --seconds 0.1 --depth 8 --against saved.json");
    let run = run.expect(0);
    assert!(!run.out.contains("MiB/s"), "{}", run.out);
    assert!(run.out.contains("saved: "), "{}", run.out);
    assert!(
        run.err
            .contains("--against: the saved result differs in threads\n"),
        "{}",
        run.err
    );
    assert!(run.err.contains("kernel features used: "), "{}", run.err);
}

#[test]
fn the_table_of_logs_has_both_classes_and_leaves_the_scheduler() {
    let folder = Folder::new();
    let run = folder.fathom("table log-entries --seconds 1 nothing-there");
    check_refused(run, &["nothing-there"]);
    // It sets the scheduler of the disk under the temporary folder: no test run does that unasked.
    if std::env::var_os("FATHOM_DEVICE_TESTS").is_none() {
        println!("skipped: set FATHOM_DEVICE_TESTS=1 to let it change a disk's scheduler");
        return;
    }
    folder.write("data", vec![7; 64 << 20]);
    let run = folder.fathom("table log-entries --seconds 1 --repeats 2 --json --svg plot.svg data");
    if run.code == Some(2) {
        println!("skipped: {}", run.err);
        return;
    }
    let rows = run.json()["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 2 * 17);
    assert!(rows.iter().all(|row| row["fathom_us"].is_u64()), "{rows:?}");
    assert!(folder.path().join("plot.svg").exists());
}

#[test]
fn durations_of_tables_have_a_range() {
    let folder = with_file();
    for table in [
        "io-pacing --depth 1 --devices null --pacing none --repeats 1",
        "uring-irq data",
        "log-entries data",
        "aio-submit .",
    ] {
        for seconds in ["0", "1000001", "4294967295"] {
            let run = folder.fathom(&format!("table {table} --seconds {seconds}"));
            check_refused(run, &["--seconds", "1..=1000000"]);
        }
    }
    assert_eq!(folder.names(), ["data"]);
}

#[test]
fn the_list_of_tables_takes_no_options() {
    let folder = Folder::new();
    for option in [
        "--json",
        "--csv",
        "--markdown",
        "--svg x.svg",
        "--seconds 1",
        "--repeats 2",
        "--cpu 0",
        "--policy fair",
        "--depth 1",
    ] {
        let (name, _) = option.split_once(' ').unwrap_or((option, ""));
        let want = format!("{name}: no table to apply it to");
        check_refused(
            folder.fathom(&format!("table {option}")),
            &[&want, "hint: "],
        );
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn tables_are_listed_and_drawn() {
    let folder = with_file();
    let list = folder.fathom("table").expect(0).out;
    assert!(
        list.contains("uring-irq") && list.contains("published: "),
        "{list}"
    );
    check_refused(folder.fathom("table nonsense data"), &["no such table"]);
    check_refused(folder.fathom("table uring-irq"), &["no target"]);
    check_refused(
        folder.fathom("table uring-irq --svg /no/such/x.svg data"),
        &["--svg"],
    );
    let before = std::fs::read(folder.path().join("data")).unwrap();
    std::os::unix::fs::symlink("data", folder.path().join("link")).unwrap();
    for name in ["uring-irq", "log-entries"] {
        for svg in ["data", "link"] {
            let words = format!("table {name} --seconds 1 --svg {svg} data");
            check_refused(folder.fathom(&words), &["--svg would replace `data`"]);
        }
    }
    assert_eq!(std::fs::read(folder.path().join("data")).unwrap(), before);
    std::fs::remove_file(folder.path().join("link")).unwrap();
    let run = folder.fathom("table uring-irq --seconds 1 --json --svg plot.svg data");
    if run.code != Some(0) {
        // A kernel without io_uring, or a file system without direct I/O.
        println!("skipped: {}", run.err);
        return;
    }
    let rows = run.json()["rows"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 21);
    let measured = rows.iter().filter(|row| row["source"] == "measured");
    assert_eq!(measured.clone().count(), 7);
    // A disk may stall for the second of one depth, not for all seven.
    let rates = measured.map(|row| row["iops"].as_f64().unwrap());
    assert!(rates.sum::<f64>() > 0.0, "{rows:?}");
    // Of a slow disk, fewer than ten ops of a second lie beyond p99.99.
    let is_figure = |cell: &Value| cell.is_u64() || cell.is_null();
    assert!(
        rows.iter().all(|row| is_figure(&row["p99_99_ns"])),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row["p1_ns"].is_u64()), "{rows:?}");
    let picture = std::fs::read_to_string(folder.path().join("plot.svg")).unwrap();
    assert_eq!(picture.matches("<polyline").count(), 9);
    assert_eq!(folder.names(), ["data", "plot.svg"]);
}
