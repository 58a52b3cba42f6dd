//! `fathom lab`: experiments in virtual time, from the file to the table and the exit code.

use std::path::Path;

use crate::MACHINE;
use crate::common::{Folder, Run};

const LAB: &str = r#"
[lab]
name = "latencies"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
number_ios = 500
[axes]
iodepth = [1, 2]
[variants]
old = {}
new = { machine = { "device.constant.latency_us" = LATENCY } }
[judge]
baseline = "old"
metrics = { "read.iops" = "2%" }
repeats = { min = 8, max = 8 }
"#;

fn with(latency: &str) -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    folder.write("lab.toml", LAB.replace("LATENCY", latency));
    folder
}

#[test]
fn worse_is_a_failed_check_and_better_is_not() {
    let table = with("110").fathom("lab lab.toml --json").expect(1).json();
    let row = &table["rows"][0];
    assert_eq!(row["iodepth"], 1, "{row}");
    assert_eq!(row["new_read_iops_verdict"], "worse", "{row}");
    let ratio = row["new_read_iops_ratio"].as_f64().unwrap();
    assert!((ratio - 100.0 / 110.0).abs() < 0.01, "{row}");
    let better = with("90").fathom("lab lab.toml").expect(0);
    assert!(better.out.contains("better"), "{}", better.out);
}

#[test]
fn a_lab_needs_no_thread_of_its_own() {
    let folder = with("110");
    let with_threads = folder.fathom("lab lab.toml --json").expect(1).json();
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), "lab lab.toml --json --fresh");
    // More than an address space.
    command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    let without = Run::of(command).expect(1).json();
    assert_eq!(without["rows"], with_threads["rows"]);
}

#[test]
fn without_a_change_there_is_no_claim() {
    let folder = with("110");
    let alarms = folder.fathom("lab lab.toml --a-a 20 --json").expect(0);
    let row = &alarms.json()["rows"][0];
    assert_eq!(row["experiments"], 20);
    assert_eq!(row["comparisons"], 40);
    assert!(row["with_claim"].as_u64().unwrap() <= 3, "{row}");
}

#[test]
fn failed_cells_fail_the_count_of_false_alarms() {
    let folder = with("110");
    let faults = "[device.faults]\nread_errors_ppm = 1000000\n[noise]";
    folder.write("m.toml", MACHINE.replace("[noise]", faults));
    let alarms = folder.fathom("lab lab.toml --a-a 2 --json").expect(1);
    let row = &alarms.json()["rows"][0];
    assert_eq!(
        (&row["failed_cells"], &row["with_claim"]),
        (&4.into(), &0.into()),
        "{row}"
    );
}

#[test]
fn a_machine_without_the_jobs_device_is_refused_before_any_run() {
    let folder = with("110");
    folder.write("m.toml", MACHINE.replace("\"*\"", "\"/dev/other\""));
    let refused = folder.fathom("lab lab.toml").expect(2);
    let want = "lab.toml:8:12: m.toml has no model for `/dev/modelled`";
    assert!(refused.err.contains(want), "{}", refused.err);
    assert!(
        refused.err.contains("no job uses `/dev/other`"),
        "{}",
        refused.err
    );
}

/// A lab of two cells in rounds; the second one has to be steady.
const ROUNDS: &str = r#"
[lab]
name = "rounds"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
number_ios = 5000
[axes]
iodepth = [1, 2]
[rounds]
most = 8
window = 5
range = "RANGE"
metric = "read.iops"
cell = { iodepth = 2 }
"#;

#[test]
fn rounds_end_when_they_are_steady_or_say_that_they_never_were() {
    let folder = with("110");
    folder.write("rounds.toml", ROUNDS.replace("RANGE", "20%"));
    let run = folder.fathom("lab rounds.toml").expect(0);
    let want = "steady after 5 rounds; rounds 1 to 5 count";
    assert!(run.out.contains(want), "{}", run.out);
    // No noise is as small as that.
    folder.write("rounds.toml", ROUNDS.replace("RANGE", "0.07%"));
    let run = folder.fathom("lab rounds.toml --fresh").expect(0);
    assert!(run.out.contains("rounds (not steady)"), "{}", run.out);
    let want = "not steady within 8 rounds: the figures are those of rounds 4 to 8";
    assert!(run.out.contains(want), "{}", run.out);
    let again = folder.fathom("lab rounds.toml").expect(0);
    assert!(
        again.err.contains("continues after 16 runs"),
        "{}",
        again.err
    );
    assert_eq!(again.out, run.out);
}

#[test]
fn a_rehearsal_takes_another_machine() {
    let folder = with("110");
    folder.write(
        "real.toml",
        LAB.replace("machine = \"m.toml\"\n", "").replace(
            "{ machine = { \"device.constant.latency_us\" = LATENCY } }",
            "{ job = { bs = \"8k\" } }",
        ),
    );
    let run = folder.fathom("lab real.toml --rehearse m.toml").expect(0);
    assert!(run.out.contains("same"), "{}", run.out);
    assert!(run.out.contains("modelled on m.toml"), "{}", run.out);
}

#[test]
fn a_wrong_file_is_refused_with_its_place() {
    let folder = with("110");
    let bad = LAB.replace("LATENCY", "110");
    folder.write("bad.toml", bad.replace("= \"old\"", "= \"odl\""));
    let run = folder.fathom("lab bad.toml").expect(2);
    assert!(run.err.contains("bad.toml:"), "{}", run.err);
    assert!(run.err.contains("odl"), "{}", run.err);
    assert_eq!(run.out, "");
    let run = folder.fathom("lab missing.toml").expect(2);
    assert!(
        run.err.contains("cannot read `missing.toml`"),
        "{}",
        run.err
    );
}

const REAL: &str = r#"
[lab]
name = "null"
[job]
ioengine = "null"
rw = "randread"
size = "1g"
number_ios = 2000
[variants]
small = {}
large = { job = { bs = "64k" } }
[judge]
baseline = "small"
metrics = { "read.bw" = "5%" }
repeats = { min = 6, max = 6 }
"#;

/// Runs a lab with a lock of the test's own.
fn lab(folder: &Folder, words: &str) -> Run {
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.env("TMPDIR", folder.path());
    Run::of(command)
}

#[test]
fn runs_on_this_machine_are_kept_and_not_done_twice() {
    let folder = Folder::new();
    folder.write("real.toml", REAL);
    let first = lab(&folder, "lab real.toml --json").expect(0);
    let row = &first.json()["rows"][0];
    assert_eq!(row["repeats"], 6, "{row}");
    assert_eq!(row["large_read_bw_mib_s_verdict"], "better", "{row}");
    let again = lab(&folder, "lab real.toml --json").expect(0);
    assert!(
        again.err.contains("continues after 12 runs"),
        "{}",
        again.err
    );
    assert_eq!(again.out, first.out);
    let left = folder.names();
    assert_eq!(left, ["data", "real.toml"], "nothing else is left");
}

#[test]
fn a_run_that_fails_again_and_again_is_told_and_fails_the_lab() {
    let folder = Folder::new();
    let missing = REAL.replace(
        "{ job = { bs = \"64k\" } }",
        "{ job = { ioengine = \"psync\", filename = \"/dev/null/file\" } }",
    );
    folder.write("real.toml", &missing);
    let run = lab(&folder, "lab real.toml").expect(1);
    assert_eq!(
        run.err.matches("the repeat is done again").count(),
        2,
        "{}",
        run.err
    );
    assert!(run.out.contains("failed: "), "{}", run.out);
    assert!(run.out.contains("/dev/null/file"), "{}", run.out);
}

const PEAK: &str = r#"
[lab]
name = "peak"
[peak]
target = "blocks"
engine = "sync"
buffered = true
latency = true
seconds = 0.05
[axes]
sequential = [false, true]
[variants]
small = { block = "sector" }
large = { block = "64k" }
[judge]
baseline = "small"
metrics = { "read.bw" = "5%" }
show = ["read.lat_p50"]
repeats = { min = 8, max = 8 }
"#;

#[test]
fn runs_of_peak_are_compared_and_not_done_twice() {
    let folder = Folder::new();
    folder.write("peak.toml", PEAK);
    folder.write("blocks", vec![7; 1 << 20]);
    let plan = lab(&folder, "lab peak.toml --plan").expect(0);
    assert!(plan.out.contains("32 runs\n"), "{}", plan.out);
    assert!(plan.out.contains("time      2 s\n"), "{}", plan.out);
    let first = lab(&folder, "lab peak.toml --json").expect(0);
    let rows = first.json()["rows"].clone();
    for row in rows.as_array().unwrap() {
        assert_eq!(row["large_read_bw_mib_s_verdict"], "better", "{row}");
        let merged = row["small_read_lat_p50_us_of_all_ops"].as_f64();
        assert!(merged.is_some_and(|us| us > 0.0), "{row}");
    }
    let again = lab(&folder, "lab peak.toml --json").expect(0);
    assert!(again.err.contains("after 32 runs"), "{}", again.err);
    assert_eq!(again.out, first.out);
    let modelled = "lab peak.toml --rehearse peak.toml";
    let refused = lab(&folder, modelled).expect(2);
    assert!(
        refused
            .err
            .contains("`fathom peak` has no modelled machine"),
        "{}",
        refused.err
    );
}

#[test]
fn peak_writes_through_no_link_to_a_device_without_leave() {
    let folder = Folder::new();
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten();
    let mut devices = devices
        .flatten()
        .map(|one| Path::new("/dev").join(one.file_name()));
    let Some(device) = devices.find(|device| device.exists()) else {
        return println!("skipped: no block device");
    };
    std::os::unix::fs::symlink(device, folder.path().join("link")).unwrap();
    // No op is done either way: the engine takes no batch of 8 at depth 1.
    let text = "[lab]\nname = \"w\"\n[peak]\ntarget = \"link\"\nwrite = true\nbatch = 8\n\
                depth = 1\n[judge]\nrepeats = { min = 1, max = 1 }\n";
    folder.write("w.toml", text);
    for words in ["lab w.toml", "lab w.toml --plan"] {
        let run = lab(&folder, words).expect(2);
        let told = "no name in `writes` leads to it";
        assert!(run.err.contains(told), "{}", run.err);
        assert_eq!(run.out, "");
    }
}

#[test]
fn commands_of_a_lab_are_refused_on_request() {
    let folder = Folder::new();
    folder.write(
        "real.toml",
        format!("{REAL}[run]\nbefore = [\"touch ran\"]\n"),
    );
    let run = lab(&folder, "lab real.toml --no-exec").expect(2);
    assert!(run.err.contains("touch ran"), "{}", run.err);
    assert_eq!(folder.names(), ["real.toml"]);
}

#[test]
fn settings_and_files_are_compared_without_a_lab_file() {
    let folder = Folder::new();
    let job = "[j]\nioengine=null\nrw=randread\nsize=1g\nnumber_ios=2000\n";
    folder.write("a.fio", job);
    folder.write("b.fio", job.replace("randread", "read"));
    let run = lab(
        &folder,
        "ab a.fio --set bs=4k,64k --repeats 6 --judge read.bw=5% --json",
    );
    let row = &run.expect(0).json()["rows"][0];
    assert_eq!(row["bs=64k_read_bw_mib_s_verdict"], "better", "{row}");
    let run = lab(
        &folder,
        "ab a.fio b.fio --repeats 6 --judge all.iops=90% --csv",
    );
    assert_eq!(run.out.lines().count(), 2, "{run:?}");
    assert!(run.out.contains("b.fio_all_iops_verdict"), "{run:?}");
    lab(&folder, "ab a.fio --set bs=4k,8k --save ab.toml").expect(0);
    let plan = lab(&folder, "lab ab.toml --plan").expect(0);
    assert!(plan.out.contains("12 repeats"), "{}", plan.out);
    let nothing = lab(&folder, "ab a.fio").expect(2);
    assert!(
        nothing.err.contains("nothing to compare"),
        "{}",
        nothing.err
    );
}

/// Returns the example of SNIA's rounds with two mixes, two block sizes and short runs.
fn short_snia() -> String {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/lab/snia-iops.toml"
    );
    let mut text = std::fs::read_to_string(file).unwrap();
    for (long, short) in [
        ("[100, 95, 65, 50, 35, 5, 0]", "[100, 0]"),
        (
            "[\"1024k\", \"128k\", \"64k\", \"32k\", \"16k\", \"8k\", \"4k\", \"512\"]",
            "[\"8k\", \"4k\"]",
        ),
        ("runtime = 60", "runtime = \"100ms\""),
        ("most = 25", "most = 5"),
        // Other load on the machine of the test must not decide its end.
        ("range = \"20%\"", "range = \"1000%\""),
        ("slope = \"10%\"", "slope = \"1000%\""),
    ] {
        assert!(text.contains(long), "{long}");
        text = text.replace(long, short);
    }
    text
}

#[test]
fn rounds_of_snia_write_a_drive_and_run_until_it_is_steady() {
    let folder = Folder::new();
    folder.write("snia.toml", short_snia());
    // The device goes with the last process that has it open.
    let script = format!(
        "{{ truncate --size=16m image && device=$(losetup --find --show image) && \
         exec 3<$device && losetup --detach $device; }} >&2 || exit 77\n\
         exec '{}' lab snia.toml DEV=$device",
        env!("CARGO_BIN_EXE_fathom"),
    );
    let mut command = folder.command("sh", "-c");
    command.arg(script).env("TMPDIR", folder.path());
    let run = Run::of(command);
    if run.code == Some(77) {
        return println!("skipped: no loop device: {}", run.err.trim());
    }
    if run.err.contains("io_uring") {
        return println!("skipped: {}", run.err.trim());
    }
    let run = run.expect(0);
    for pass in ["whole, pass 1 of 2", "whole, pass 2 of 2"] {
        assert!(run.err.contains(pass), "{}", run.err);
    }
    let want = "steady after 5 rounds; rounds 1 to 5 count";
    assert!(run.out.contains(want), "{}", run.out);
    let image = std::fs::read(folder.path().join("image")).unwrap();
    let blocks = image.chunks(4096);
    let written = blocks.filter(|block| block.iter().any(|byte| *byte != 0));
    assert_eq!(written.count(), 4096, "the whole device was written");
}

#[test]
fn rounds_of_snia_are_rehearsed_and_devices_need_leave() {
    let folder = with("110");
    folder.write("snia.toml", short_snia());
    let words = "lab snia.toml DEV=/dev/modelled --rehearse m.toml";
    let run = folder.fathom(words).expect(0);
    assert!(run.out.contains("steady after 5 rounds"), "{}", run.out);
    let plan = folder.fathom("lab snia.toml DEV=/dev/modelled --plan");
    let want = "/dev/modelled: whole, 2 times, before the first run";
    assert!(plan.expect(0).out.contains(want));
    let other = short_snia().replace("\"${DEV}\"]", "\"/dev/other\"]");
    folder.write("other.toml", other);
    let run = folder.fathom("lab other.toml DEV=/dev/modelled").expect(2);
    let want = "`/dev/modelled` would be written, and `writes` does not name it";
    assert!(run.err.contains(want), "{}", run.err);
}

const SEARCH: &str = r#"
[lab]
name = "search"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
ioengine = "libaio"
iodepth = 1
runtime = 3
time_based = true
[search]
keep = ["read.resp_p90 <= 1ms", "read.iops >= 99% of asked"]
precision = "10%"
probe_most = "3s"
"#;

#[test]
fn a_search_is_kept_and_prints_the_same_again() {
    let folder = with("110");
    folder.write("search.toml", SEARCH);
    let first = lab(&folder, "lab search.toml --json").expect(0);
    let json = first.json();
    let row = &json["rows"][0];
    let bounds = ["highest_passed_iops", "lowest_failed_iops"];
    let [passed, failed] = bounds.map(|key| row[key].as_u64().unwrap());
    // Ops of 100 µs, one at a time: 10,000 IOPS.
    assert!((7_000..10_500).contains(&passed), "{row}");
    assert!(failed > passed && failed <= passed + passed / 10, "{row}");
    let again = lab(&folder, "lab search.toml --json").expect(0);
    assert!(again.err.contains("continues after"), "{}", again.err);
    assert_eq!(again.out, first.out);
    let refused = folder.fathom("lab search.toml --a-a 5").expect(2);
    assert!(refused.err.contains("judges nothing"), "{}", refused.err);
}

const CURVE: &str = r#"
[lab]
name = "curve"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/modelled"
ioengine = "libaio"
iodepth = 1
runtime = 1
time_based = true
[variants]
one = {}
other = { machine = { "device.constant.latency_us" = 110 } }
[curve]
loads = ["30%", "60%"]
[judge]
baseline = "one"
metrics = { "read.iops" = "5%" }
repeats = { min = 9, max = 9 }
"#;

#[test]
fn a_curve_asks_shares_of_its_maximum_and_prints_the_same_again() {
    let folder = with("110");
    folder.write("curve.toml", CURVE);
    let first = lab(&folder, "lab curve.toml --json").expect(1);
    let json = first.json();
    let rows = json["rows"].as_array().unwrap();
    let loads: Vec<&str> = rows.iter().filter_map(|row| row["load"].as_str()).collect();
    assert_eq!(loads, ["max", "30%", "60%"]);
    let verdicts = rows
        .iter()
        .map(|row| row["other_read_iops_verdict"] == "worse");
    // Slower devices do the same under a load that they can serve.
    assert_eq!(verdicts.collect::<Vec<_>>(), [true, false, false]);
    let maximum = rows[0]["one_read_iops"].as_f64().unwrap();
    for (row, share) in rows.iter().skip(1).zip([0.3, 0.6]) {
        let asked = row["asked_iops"].as_f64().unwrap();
        // Both are whole numbers.
        assert!((asked - maximum * share).abs() <= 1.0, "{row}");
        let done = row["one_read_iops"].as_f64().unwrap();
        assert!((done / asked - 1.0).abs() < 0.1, "{row}");
    }
    let again = lab(&folder, "lab curve.toml --json").expect(1);
    let want = "continues after 54 runs";
    assert!(again.err.contains(want), "{}", again.err);
    assert_eq!(again.out, first.out);
    let rehearsal = folder.fathom("lab curve.toml --rehearse m.toml --json");
    assert_eq!(rehearsal.expect(1).out, first.out);
    let alarms = folder.fathom("lab curve.toml --a-a 3 --json").expect(0);
    assert_eq!(alarms.json()["rows"][0]["comparisons"], 9);
}

#[test]
fn runs_on_modelled_machines_are_removed_by_the_age_of_their_lab() {
    let folder = with("90");
    folder.fathom("lab lab.toml").expect(0);
    let run = folder.fathom("history prune --older-than 0 --dry-run");
    let run = run.expect(0);
    assert!(run.err.contains("32 runs would be removed"), "{}", run.err);
    let run = folder.fathom("history prune --older-than 1 --dry-run");
    assert!(run.expect(0).err.contains("0 runs would be removed"));
}

#[test]
fn tolerances_are_percentages_everywhere() {
    let folder = Folder::new();
    folder.write("a.fio", "[a]\nioengine=null\nsize=4k\nrw=read\n");
    folder
        .fathom("ab a.fio --set bs=1k,4k --judge read.clat_p99=5 --save saved.toml")
        .expect(0);
    let plan = folder.fathom("lab saved.toml --plan").expect(0);
    assert!(plan.out.contains("changes within ±5 %"), "{}", plan.out);
    for words in [
        "ab a.fio --set bs=1k,4k --judge read.iops=101%",
        "compare a b --metric read.iops=101",
        "history check --tolerance 101%",
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains("up to 100"), "{words}: {}", run.err);
    }
}

#[test]
fn problems_of_a_comparison_are_told_at_its_arguments() {
    let folder = Folder::new();
    folder.write("a.fio", "[a]\nioengine=null\nsize=4k\nrw=read\n");
    for (words, want) in [
        (
            "ab a.fio --set fixedbuf=0,1",
            "fathom: ab: --set fixedbuf=0,1: unknown option `fixedbuf`\n\
             hint: did you mean `fixedbufs`?\n",
        ),
        ("ab b.fio --set bs=1k,4k", "fathom: ab: cannot read b.fio: "),
        (
            "ab a.fio --set bs=1k,4k --repeats 3",
            "at least 6 repeats: fewer prove nothing",
        ),
        (
            "ab a.fio --set bs=1k,2k,4k --repeats 6",
            "fathom: ab: --repeats 6: fewer than 7 repeats prove nothing with 2 comparisons\n\
             hint: use `--repeats 7` or more\n",
        ),
        (
            "ab a.fio --set bs=1k,4k --judge read.iop=2%",
            "did you mean `read.iops`?",
        ),
        (
            "ab a.fio --set bs=1k,4k --judge read.clat_p99=1%",
            "fathom: ab: --judge read.clat_p99=1%: the tolerance of `read.clat_p99` is below",
        ),
        ("ab a.fio --set bs=1k,4k --judge read.iops", "no tolerance"),
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains(want), "{words}: {}", run.err);
        // No excerpt of a file that nobody wrote.
        assert!(!run.err.contains("  |"), "{words}: {}", run.err);
    }
}

#[test]
fn settings_are_compared_on_a_modelled_machine() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let job = "[a]\nfilename=/dev/modelled\nrw=randread\nbs=4k\nnumber_ios=500\n";
    folder.write("a.fio", job);
    let words = "ab a.fio --set iodepth=1,2 --repeats 6 --machine m.toml";
    let run = folder.fathom(words).expect(0);
    assert!(run.out.contains("ab: iodepth=1, iodepth=2"), "{}", run.out);
}

#[test]
fn sides_of_one_name_are_refused() {
    let folder = Folder::new();
    folder.write("a.fio", "[a]\nioengine=null\nsize=4k\n");
    for (words, side) in [
        ("ab a.fio a.fio", "a.fio"),
        ("ab a.fio --set bs=4k,4k", "bs=4k"),
    ] {
        let run = folder.fathom(words).expect(2);
        let want = format!("fathom: ab: two sides are `{side}`");
        assert!(run.err.contains(&want), "{words}: {run:#?}");
    }
}
