//! `fathom run --save-distribution`: latencies of one run, drawn again by another.

use crate::common::Folder;
use serde_json::Value;

const DISK: &str = "
[[device]]
names = [\"*\"]
model = \"hdd\"
capacity_gib = 64
[device.hdd]
rpm = 7200
outer_mb_per_s = 200
inner_mb_per_s = 100
settle_ms = 1
seek_root_ms = 4
seek_linear_ms = 3
looks_at = 1
";

/// Returns percentiles of a direction's clat in a report, ns.
fn percentiles(report: &Value, direction: &str) -> [f64; 4] {
    let clat = &report["jobs"][0][direction]["clat_ns"];
    let at = |percent: &str| clat["percentile"][percent].as_f64().unwrap();
    ["10.000000", "50.000000", "90.000000", "99.000000"].map(at)
}

#[track_caller]
fn check_close(first: &Value, again: &Value, direction: &str) {
    let pairs = percentiles(first, direction).into_iter();
    for (was, is) in pairs.zip(percentiles(again, direction)) {
        assert!((is / was - 1.0).abs() < 0.02, "{direction}: {was} {is}");
    }
}

#[test]
fn a_saved_run_has_the_percentiles_that_were_recorded() {
    let folder = Folder::new();
    folder.write("disk.toml", DISK);
    let job = "--name=j --ioengine=libaio --direct=1 --filename=/dev/d --rw=randrw --bs=64k \
               --iodepth=4 --number_ios=20000 --norandommap --output-format=json";
    let first = format!("run --machine disk.toml --save-distribution saved.toml {job}");
    let first = folder.fathom(&first).expect(0).json();
    let saved = std::fs::read_to_string(folder.path().join("saved.toml")).unwrap();
    for want in [
        "# modelled, virtual time: disk.toml\n",
        "# 1 × job `j`: randrw, read 65536 B, write 65536 B; libaio, iodepth 4\n",
        "Not for another depth",
        "capacity_gib = 64\n",
        "[device.distribution.read]    # ",
    ] {
        assert!(saved.contains(want), "{want}: {saved}");
    }
    assert!(
        saved.lines().all(|line| line.chars().count() <= 100),
        "{saved}"
    );
    let again = format!("run --machine saved.toml {job} --randrepeat=0");
    let again = folder.fathom(&again).expect(0).json();
    check_close(&first, &again, "read");
    check_close(&first, &again, "write");
    // It has no trims, and says so.
    let trim = format!("run --machine saved.toml {job}").replace("randrw", "randtrim");
    let refused = folder.fathom(&trim).expect(2);
    assert!(
        refused
            .err
            .contains("saved.toml has no latencies of a trim"),
        "{}",
        refused.err
    );
}

#[test]
fn a_real_run_can_be_saved() {
    let folder = Folder::new();
    let job = "--name=j --ioengine=psync --rw=randread --bs=4k --size=4m --numjobs=2 --norandommap \
               --number_ios=1000 --lat_percentiles=1 --output-format=json";
    let first = folder.fathom(&format!("run --save-distribution saved.toml {job}"));
    let first = first.expect(0).json();
    let saved = std::fs::read_to_string(folder.path().join("saved.toml")).unwrap();
    assert!(
        saved.contains("# 2 × job `j`: randread, read 4096 B; psync, iodepth 1\n"),
        "{saved}"
    );
    assert!(saved.contains("# 2000 ops: "), "{saved}");
    let again = folder.fathom(&format!("run --machine saved.toml {job}"));
    let again = again.expect(0).json();
    assert_eq!(again["jobs"][1]["read"]["total_ios"], 1000);
    // Half of the ops are faster than this: what was saved is of both jobs, so it lies between
    // theirs, and a thousand draws stray a little.
    let at = |report: &Value, job: usize, percent: &str| {
        let lat = &report["jobs"][job]["read"]["lat_ns"]["percentile"];
        lat[percent].as_f64().unwrap()
    };
    let both = |percent: &str| [0, 1].map(|job| at(&first, job, percent));
    let (low, high) = (both("40.000000"), both("60.000000"));
    let half = at(&again, 0, "50.000000");
    assert!(
        low[0].min(low[1]) <= half && half <= high[0].max(high[1]),
        "{low:?} {half} {high:?}"
    );
}

#[test]
fn an_earlier_file_stays_until_it_is_replaced() {
    let folder = Folder::new();
    folder.write("disk.toml", DISK);
    let saved = folder.write("saved.toml", "old");
    let words = "run --machine disk.toml --save-distribution saved.toml --name=j --direct=1 \
                 --filename=/dev/d --number_ios=10";
    for nothing in ["--rw=readread", "--gtod_reduce=1", "--disable_clat=1"] {
        folder.fathom(&format!("{words} {nothing}")).expect(2);
        assert_eq!(std::fs::read_to_string(&saved).unwrap(), "old", "{nothing}");
    }
    folder.fathom(words).expect(0);
    let text = std::fs::read_to_string(&saved).unwrap();
    assert!(text.starts_with("# Latencies that"), "{text}");
}

/// The record, the history and the last metrics are written nevertheless.
#[test]
fn a_file_that_cannot_be_written_keeps_no_other_from_it() {
    let job = "run --machine disk.toml --name=k --filename=/dev/d --direct=1 --number_ios=10 \
               --record r.json --metrics-file m.prom --history";
    for (words, want) in [
        (
            "--save-distribution s.toml --ramp_time=1h",
            "fathom: there are no latencies to save: no job completed an op",
        ),
        (
            "--write_lat_log=no/where",
            "fathom: cannot write log no/where",
        ),
    ] {
        let folder = Folder::new();
        folder.write("disk.toml", DISK);
        let run = folder.fathom(&format!("{job} {words}")).expect(2);
        assert!(run.err.contains(want), "{}", run.err);
        assert!(run.out.contains("k: (groupid=0"), "{}", run.out);
        let metrics = folder.read("m.prom");
        assert!(metrics.contains("\nfathom_running 0\n"), "{metrics}");
        assert!(folder.read("r.json").contains("\"jobs\""), "{words}");
        let listed = folder.fathom("history list --json").expect(0).json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{words}");
    }
}

/// A job that keeps no latencies is refused before it writes or measures anything.
#[test]
fn a_run_without_latencies_does_not_begin() {
    let folder = Folder::new();
    for words in ["--gtod_reduce=1", "--disable_clat=1"] {
        let run = folder.fathom(&format!(
            "run --save-distribution s.toml --record r.json --name=k --ioengine=psync --rw=write \
             --size=4k {words}"
        ));
        let run = run.expect(2);
        assert!(
            run.err.contains("its latencies are not kept"),
            "{}",
            run.err
        );
        assert!(run.out.is_empty(), "{}", run.out);
        assert!(folder.names().is_empty(), "{:?}", folder.names());
    }
}

#[track_caller]
fn check_refused(words: &str, wants: &[&str]) {
    let folder = Folder::new();
    folder.write("disk.toml", DISK);
    folder.write(
        "j.fio",
        "[j]\nfilename=/dev/d\nrw=randread\ndirect=1\nnumber_ios=10\n",
    );
    let run = folder
        .fathom(&format!("run --machine disk.toml {words}"))
        .expect(2);
    for want in wants {
        assert!(run.err.contains(want), "`{want}` is not in {}", run.err);
    }
    assert_eq!(folder.names(), ["disk.toml", "j.fio"], "nothing was made");
}

#[test]
fn failure_to_save_is_reported() {
    check_refused(
        "--save-distribution no/where.toml j.fio",
        &["--save-distribution: no/where"],
    );
    check_refused(
        "--save-distribution . j.fio",
        &["--save-distribution: .: is a directory"],
    );
    check_refused(
        "--save-distribution ./j.fio j.fio",
        &[
            "`--save-distribution` would replace the job file `j.fio`",
            "hint: ",
        ],
    );
    check_refused(
        "--save-distribution disk.toml j.fio",
        &["`--save-distribution` would replace the machine file `disk.toml`"],
    );
    check_refused(
        "--save-distribution s.toml j.fio --name=k --gtod_reduce=1 --filename=/dev/d --direct=1 \
         --number_ios=10",
        &[
            "job `k`: its latencies are not kept",
            "hint: leave out `gtod_reduce=1`",
        ],
    );
    check_refused(
        "--save-distribution s.toml --name=k --filename=/dev/d --direct=1 --ramp_time=1h \
         --number_ios=10",
        &["there are no latencies to save"],
    );
}
