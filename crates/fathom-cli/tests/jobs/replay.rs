//! Replays of recorded I/O, beside fio's where it is installed.

use crate::common::Folder;
use crate::common::sums::{by_fio, sums};
use serde_json::Value;

/// Two files that are opened one after the other, and all kinds of ops but trims.
const TEXT: &str = "fio version 3 iolog
0 a add
0 b add
10 a open
20 a write 0 8192
30 a read 4096 512
40 a sync 4096 0
50 b open
60 b write 65536 4096
70 a close
80 b datasync 0 0
30000 b read 65536 4096
30010 b close
";

/// Returns ops and bytes by direction, and the number of syncs.
fn sums_and_syncs(report: &Value) -> ([(u64, u64); 3], u64) {
    let syncs = report["jobs"][0]["sync"]["total_ios"].as_u64();
    (sums(report), syncs.expect("a number"))
}

#[track_caller]
fn replay(folder: &Folder, words: &str) -> Value {
    let words = format!("run --name=r --output-format=json {words}");
    folder.fathom(&words).expect(0).json()
}

/// Appends a record of blktrace: time in ns, sector, bytes, action, category.
fn record(log: &mut Vec<u8>, (time, sector): (u64, u64), bytes: u32, action: u32) {
    for word in [0x6561_7407_u32, 1] {
        log.extend(word.to_le_bytes());
    }
    log.extend(time.to_le_bytes());
    log.extend(sector.to_le_bytes());
    for word in [bytes, action, 42, 8 << 20, 0, 0] {
        log.extend(word.to_le_bytes());
    }
}

/// Returns a trace with a depth of two.
fn trace() -> Vec<u8> {
    let (read, write, flush, queue) = (1 << 16, 1 << 17, 1 << 18, 1 << 20);
    let mut log = Vec::new();
    record(&mut log, (5_000_000, 0), 4096, 1 | read | queue);
    record(&mut log, (5_100_000, 16), 8192, 1 | write | queue);
    record(&mut log, (5_200_000, 0), 4096, 8 | read | 1 << 23);
    record(&mut log, (15_000_000, 0), 0, 1 | write | flush | queue);
    record(&mut log, (25_000_000, 64), 512, 1 | read | queue);
    log
}

#[test]
fn text_logs_are_replayed_as_by_fio() {
    let folder = Folder::new();
    folder.write("log", TEXT);
    let ours = replay(&folder, "--read_iolog=log");
    assert_eq!(sums_and_syncs(&ours), ([(2, 4608), (2, 12_288), (0, 0)], 2));
    // Each op is due at its time: the last one after 30 ms.
    assert!(ours["jobs"][0]["read"]["runtime"].as_u64() >= Some(30));
    assert_eq!(folder.names(), ["a", "b", "log"]);
    if let Some(fio) = by_fio(&folder, "--name=r --read_iolog=log") {
        // fio 3.33 calls fdatasync(2), but does not count it.
        assert_eq!(sums_and_syncs(&fio), (sums(&ours), 1));
    }
    let halved = "--read_iolog=log --replay_redirect=c --replay_scale=2 --replay_align=4096";
    let ours = replay(&folder, halved);
    assert_eq!(sums_and_syncs(&ours), ([(2, 4608), (2, 12_288), (0, 0)], 2));
}

#[test]
fn traces_are_replayed_as_by_fio() {
    let folder = Folder::new();
    folder.write("trace", trace());
    let words = "--read_iolog=trace --replay_redirect=disk --replay_skip=write";
    let ours = replay(&folder, words);
    assert_eq!(sums_and_syncs(&ours), ([(2, 4608), (0, 0), (0, 0)], 1));
    if let Some(fio) = by_fio(&folder, &format!("--name=r {words}")) {
        assert_eq!(sums_and_syncs(&fio), sums_and_syncs(&ours));
    }
}

#[test]
fn lag_shows_whether_times_were_kept() {
    let folder = Folder::new();
    folder.write("log", TEXT);
    let ours = replay(&folder, "--read_iolog=log --replay_time_scale=1000");
    let lag = &ours["jobs"][0]["fathom"]["read"]["lag_ns"];
    assert_eq!(lag["N"], 2, "{ours:#}");
    assert!(ours["jobs"][0]["fathom"]["read"]["late_ios"].as_u64() <= Some(2));
    let text = folder.fathom("run --name=r --read_iolog=log").expect(0).out;
    assert!(
        text.contains("     lag (") && text.contains(", late="),
        "{text}"
    );
    let hurried = replay(&folder, "--read_iolog=log --replay_no_stall=1");
    assert!(hurried["jobs"][0]["fathom"]["read"]["lag_ns"].is_null());
}

#[test]
fn clones_take_logs_in_turn() {
    let folder = Folder::new();
    for (name, bytes) in [("one", 512), ("two", 1024)] {
        let log =
            format!("fio version 3 iolog\n0 f add\n0 f open\n0 f read 0 {bytes}\n0 f close\n");
        folder.write(name, log);
    }
    let ours = replay(&folder, "--read_iolog=one:two --numjobs=3");
    let jobs = ours["jobs"].as_array().expect("jobs");
    let bytes = jobs.iter().map(|job| job["read"]["io_bytes"].as_u64());
    assert_eq!(bytes.flatten().sum::<u64>(), 512 + 1024 + 512);
}

#[test]
fn bad_logs_are_refused_before_anything_is_opened() {
    let folder = Folder::new();
    for (line, want) in [
        ("0 a read 0 -1", "log:4: length `-1` is negative"),
        ("0 a frob 0 1", "log:4: unknown action `frob`"),
        ("0 a read 0 9223372036854775808", "log:4: length exceeds"),
        (
            "0 a write 9223372036854775000 4096",
            "log:4: end of the op exceeds",
        ),
        ("0 b write 0 4096", "log:4: `b` was not added"),
    ] {
        let log = format!("fio version 3 iolog\n0 a add\n0 a open\n{line}\n");
        folder.write("log", log);
        let run = folder.fathom("run --name=r --read_iolog=log").expect(2);
        assert!(run.err.contains(want), "{}", run.err);
        assert!(run.err.contains("hint: "), "{}", run.err);
        assert_eq!(folder.names(), ["log"]);
    }
    let run = folder
        .fathom("run --name=r --read_iolog=/dev/zero")
        .expect(2);
    assert!(run.err.contains("not a regular file"), "{}", run.err);
}

#[test]
fn a_replay_that_writes_is_a_job_that_writes() {
    let folder = Folder::new();
    folder.write("log", TEXT);
    let run = folder.fathom("run --readonly --name=r --rw=read --read_iolog=log");
    assert!(run.expect(2).err.contains("log writes or trims"));
    let forbidden = "fio version 3 iolog\n0 /proc/self/mem add\n0 /proc/self/mem open\n\
        0 /proc/self/mem write 0 512\n";
    folder.write("forbidden", forbidden);
    let run = folder
        .fathom("run --name=r --read_iolog=forbidden")
        .expect(2);
    assert!(run.err.contains("/proc/self/mem"), "{}", run.err);
    let run = folder.fathom("run --name=r --read_iolog=log --replay_redirect=/dev/no-such-disk");
    assert!(run.expect(2).err.contains("no such device"));
    assert_eq!(folder.names(), ["forbidden", "log"]);
}

/// Writing or laying out the data would destroy the log.
#[test]
fn a_log_that_is_a_file_of_data_is_refused() {
    let folder = Folder::new();
    let log = TEXT.replace(" b ", " log ");
    folder.write("log", &log);
    folder.write("other", TEXT);
    std::fs::hard_link(folder.path().join("other"), folder.path().join("hard")).unwrap();
    std::os::unix::fs::symlink("other", folder.path().join("soft")).unwrap();
    for words in [
        "--read_iolog=log",
        "--read_iolog=./log --readonly --replay_skip=write",
        "--read_iolog=other --replay_redirect=other",
        "--read_iolog=other --replay_redirect=hard",
        "--read_iolog=other --replay_redirect=soft",
        "--read_iolog=soft --replay_redirect=hard",
        "--read_iolog=other --name=w --filename=soft --rw=write --size=4k",
    ] {
        let run = folder.fathom(&format!("run --name=r {words}")).expect(2);
        let text = "a job's data are in this file";
        assert!(run.err.contains(text), "{words}: {}", run.err);
        assert_eq!(folder.read("log"), log, "{words}");
        assert_eq!(folder.read("other"), TEXT, "{words}");
        assert_eq!(folder.names(), ["hard", "log", "other", "soft"], "{words}");
    }
}

#[test]
fn a_replay_is_not_verified() {
    let folder = Folder::new();
    folder.write("log", TEXT);
    let run = folder.fathom("run --name=r --read_iolog=log --verify=crc32c");
    let run = run.expect(2);
    assert!(
        run.err
            .contains("a replay cannot be verified: its log has no data"),
        "{}",
        run.err
    );
    assert_eq!(folder.names(), ["log"]);
}

#[test]
fn times_that_go_back_are_noted() {
    let folder = Folder::new();
    let log = "fio version 3 iolog\n0 a add\n0 a open\n900 a read 0 512\n100 a read 512 512\n";
    folder.write("log", log);
    let run = folder
        .fathom("run --name=r --output-format=json --read_iolog=log")
        .expect(0);
    assert!(run.err.contains("times that go back: 1"), "{}", run.err);
}
