//! Verification of what a run wrote that was killed: every write that it saw complete is there.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;
use std::process::Stdio;

use common::Folder;

const BLOCK: usize = 4096;

/// Runs to kill; `FATHOM_KILLS` sets another number.
fn kills() -> u64 {
    let kills = std::env::var("FATHOM_KILLS").ok();
    kills.and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

/// Kills a run of random writes once its log has this length.
fn kill_at(folder: &Folder, number: u64, log_bytes: u64) {
    let words = format!(
        "run --name=t --filename=data --rw=randwrite --norandommap --bs=4k --size=1m \
         --io_size=100g --verify=crc32c --randseed={} --write_lat_log=t --log_offset=1",
        1000 + number
    );
    let log = folder.path().join("t_lat.1.log");
    // The last run's log is whole until this one begins, and would pass for its own.
    let _may_be_missing = std::fs::remove_file(&log);
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while std::fs::metadata(&log).map_or(0, |log| log.len()) < log_bytes {
        assert!(child.try_wait().unwrap().is_none(), "the run ended");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the number of the last logged write of each block; a line per write, in their order.
fn logged(log: &Path, blocks: usize) -> Vec<Option<u64>> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut last = vec![None; blocks];
    // What follows the last end of line is a part of a line.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (number, line) in (0..).zip(whole.lines()) {
        let offset = line.split(", ").nth(4).unwrap();
        last[offset.parse::<usize>().unwrap() / BLOCK] = Some(number);
    }
    last
}

#[test]
fn logged_writes_of_a_killed_run_are_in_the_file() {
    let folder = Folder::new();
    let all = "run --name=t --filename=data --bs=4k --size=1m --verify=crc32c";
    folder
        .fathom(&format!("{all} --rw=write --do_verify=0"))
        .expect(0);
    let mut seen = 0;
    for number in 0..kills() {
        let path = folder.path().join("data");
        let before = std::fs::read(&path).unwrap();
        kill_at(&folder, number, 1 + number * 7919 % 200_000);
        let after = std::fs::read(&path).unwrap();
        let last = logged(&folder.path().join("t_lat.1.log"), after.len() / BLOCK);
        let blocks = before.chunks(BLOCK).zip(after.chunks(BLOCK)).zip(last);
        for (block, ((before, after), last)) in blocks.enumerate() {
            let Some(last) = last else { continue };
            seen += 1;
            let is_new = before != after;
            assert!(is_new, "block {block}: write {last} is missing");
            let written = u64::from_le_bytes(after[32..40].try_into().unwrap());
            assert!(
                written >= last,
                "block {block}: {written}, and {last} was seen"
            );
        }
        // And no block is torn.
        folder.fathom(&format!("{all} --rw=read")).expect(0);
    }
    assert!(seen > 0, "no write was logged");
}
