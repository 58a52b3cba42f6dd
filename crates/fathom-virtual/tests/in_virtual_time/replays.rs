//! Replays of logs in virtual time: every op at its time, and what a slow device makes of it.

use std::path::{Path, PathBuf};

use crate::common::record;

/// Writes a log of `ops` reads, one every `every_us`, and returns its path.
fn log(name: &str, ops: u64, every_us: u64) -> PathBuf {
    let mut text = "fio version 3 iolog\n0 /a add\n0 /a open\n".to_owned();
    for op in 0..ops {
        text += &format!("{} /a read {} 4096\n", op * every_us, op % 64 * 4096);
    }
    text += &format!("{} /a close\n", ops * every_us);
    let name = format!("fathom-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("a log");
    path
}

/// Replays a log on a device of 100 µs: milliseconds, ops, largest lag in µs.
fn replayed(path: &Path, words: &str) -> (u64, u64, Option<u64>) {
    let words = format!("--name=t --read_iolog={} {words}", path.display());
    let record = record(&words);
    let read = &record.jobs[0].directions.read;
    let lag = read.lag.as_ref().map(|lag| lag.summary.max() / 1000);
    (read.runtime_ms, read.ios, lag)
}

#[test]
fn a_replay_does_not_drift() {
    let path = log("replay-kept", 20_000, 500);
    assert_eq!(replayed(&path, ""), (10_000, 20_000, Some(0)));
    let twice = replayed(&path, "--replay_time_scale=200");
    assert_eq!(twice, (5_000, 20_000, Some(0)));
    let half = replayed(&path, "--replay_time_scale=50");
    assert_eq!(half, (20_000, 20_000, Some(0)));
    let hurried = replayed(&path, "--replay_no_stall=1");
    assert_eq!(hurried, (2_000, 20_000, None));
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn a_device_that_is_too_slow_shows_as_lag() {
    let path = log("replay-late", 10_000, 50);
    // Half as fast as the log: the last op is half a second late.
    let (ms, ios, lag) = replayed(&path, "");
    assert_eq!((ms, ios), (1_000, 10_000));
    assert_eq!(lag.map(|us| us / 1000), Some(499));
    // With two ops in flight it keeps up.
    let kept = replayed(&path, "--ioengine=libaio --iodepth=4");
    assert_eq!(kept, (500, 10_000, Some(0)));
    std::fs::remove_file(&path).expect("removed");
}
