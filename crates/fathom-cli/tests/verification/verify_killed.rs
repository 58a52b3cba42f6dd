//! Verification of what a run wrote that was killed or interrupted: every write that it saw
//! complete is there, and the state that is left reports those that are not.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Folder;

const BLOCK: usize = 4096;

/// Runs to kill; `FATHOM_KILLS` sets another number.
fn kills() -> u64 {
    let kills = std::env::var("FATHOM_KILLS").ok();
    kills.and_then(|kills| kills.parse().ok()).unwrap_or(5)
}

/// Sends a run of random writes this signal once its log has this length.
fn end_at(folder: &Folder, signal: &str, with: &str, number: u64, log_bytes: u64) {
    let words = format!(
        "run {JOB} --rw=randwrite --norandommap --io_size=100g --randseed={} --write_lat_log=t \
         --log_offset=1 --verify_state_save=1 {with}",
        1000 + number
    );
    let log = folder.path().join(LOG);
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
    let id = child.id().to_string();
    let sent = Command::new("kill").args(["-s", signal, &id]).status();
    assert!(sent.unwrap().success());
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

/// Returns the number of the write that a block is from.
fn number_in(block: &[u8]) -> u64 {
    u64::from_le_bytes(block[32..40].try_into().unwrap())
}

/// Contents of the file before and after a run, and the last logged write of each block.
struct Ended {
    before: Vec<u8>,
    after: Vec<u8>,
    last: Vec<Option<u64>>,
}

impl Ended {
    /// Ends a run with these options by a signal.
    fn by(folder: &Folder, signal: &str, with: &str, number: u64) -> Self {
        let path = folder.path().join("data");
        let before = std::fs::read(&path).unwrap();
        end_at(folder, signal, with, number, 1 + number * 7919 % 200_000);
        let after = std::fs::read(&path).unwrap();
        let last = logged(&folder.path().join(LOG), after.len() / BLOCK);
        Self {
            before,
            after,
            last,
        }
    }

    /// Checks that logged writes are in the file; returns the number of their blocks.
    fn check_blocks(&self) -> u64 {
        let contents = self.before.chunks(BLOCK).zip(self.after.chunks(BLOCK));
        let mut seen = 0;
        for (block, ((before, after), last)) in contents.zip(&self.last).enumerate() {
            let Some(last) = *last else { continue };
            seen += 1;
            let is_new = before != after;
            assert!(is_new, "block {block}: write {last} is missing");
            let written = number_in(after);
            assert!(
                written >= last,
                "block {block}: {written}, and {last} was seen"
            );
        }
        seen
    }

    /// Returns the numbers of the writes whose blocks are in the file.
    fn last_in_file(&self) -> Vec<u64> {
        let contents = self.before.chunks(BLOCK).zip(self.after.chunks(BLOCK));
        let changed = contents.filter(|(before, after)| before != after);
        changed.map(|(_, after)| number_in(after)).collect()
    }

    /// Checks that the state of the run agrees with the file, and reports each logged write that is
    /// taken from it, but for the one that may have been in flight again.
    fn check_state(&self, folder: &Folder, seen: u64) {
        let read = format!("run {JOB} --rw=read --verify_state_load=1 --continue_on_error=verify");
        folder.fathom(&read).expect(0);
        let mut lost = self.after.clone();
        for (block, _) in self
            .last
            .iter()
            .enumerate()
            .filter(|(_, last)| last.is_some())
        {
            let range = block * BLOCK..(block + 1) * BLOCK;
            lost[range.clone()].copy_from_slice(&self.before[range]);
        }
        folder.write("data", lost);
        let run = folder.fathom(&format!("{read} --output-format=json"));
        let found = &run.json()["jobs"][0]["fathom"]["verify"]["mismatches"];
        let found = found.as_u64().unwrap_or(0);
        assert!(found + 1 >= seen && found <= seen, "{found} of {seen}");
        folder.write("data", &self.after);
    }
}

/// Returns a folder with a written file.
fn written() -> Folder {
    let folder = Folder::new();
    folder
        .fathom(&format!("run {JOB} --rw=write --do_verify=0"))
        .expect(0);
    folder
}

#[test]
fn logged_writes_of_a_killed_run_are_there_or_reported() {
    let folder = written();
    let mut all = 0;
    for number in 0..kills() {
        let ended = Ended::by(&folder, "KILL", "", number);
        let seen = ended.check_blocks();
        ended.check_state(&folder, seen);
        all += seen;
        // And no block is torn.
        folder.fathom(&format!("run {JOB} --rw=read")).expect(0);
    }
    assert!(all > 0, "no write was logged");
}

#[test]
fn logged_writes_of_an_interrupted_run_are_there_or_reported() {
    let folder = written();
    for (number, signal) in (0..).zip(["INT", "TERM"]) {
        let ended = Ended::by(&folder, signal, "", 1 + number);
        let seen = ended.check_blocks();
        assert!(seen > 0, "no write was logged");
        ended.check_state(&folder, seen);
        let mut names = folder.names();
        names.retain(|name| name.contains("verify"));
        assert_eq!(names, ["local-t-0-verify.state"]);
    }
}

/// Writes before the last fsync that was logged must be there, and those after the last one that
/// may have ended need not.
#[test]
fn synced_writes_of_a_killed_run_are_there_or_reported() {
    const EVERY: u64 = 16;
    let folder = written();
    let read = format!(
        "run {JOB} --rw=read --verify_state_load=1 --verify_policy=fsynced \
         --continue_on_error=verify --output-format=json"
    );
    let mut all = 0;
    for number in 0..kills() {
        let with = format!("--fsync={EVERY} --verify_policy=fsynced");
        let ended = Ended::by(&folder, "KILL", &with, number);
        folder.fathom(&read).expect(0);
        folder.write("data", &ended.before);
        let run = folder.fathom(&read).json();
        let found = &run["jobs"][0]["fathom"]["verify"]["mismatches"];
        let found = found.as_u64().unwrap_or(0);
        // From the file: the log is written by a thread that may lag behind.
        let last = ended.last_in_file();
        let writes = last.iter().max().map_or(0, |last| last + 1);
        let before = |end: u64| last.iter().filter(|last| **last < end).count() as u64;
        // The last sync may not have ended, and a block may have been in flight again.
        let least = before((writes / EVERY).saturating_sub(1) * EVERY).saturating_sub(1);
        // The sync after the last write may have ended.
        let most = before((writes / EVERY + 1) * EVERY);
        assert!((least..=most).contains(&found), "{least} {found} {most}");
        folder.write("data", &ended.after);
        all += found;
    }
    assert!(all > 0, "no write was synced");
}

/// The state of a run that was killed lies in the page cache: another boot has only those of its
/// pages that had been written out, which are older than the data.
#[test]
fn a_state_that_was_cut_off_with_its_host_is_refused() {
    let folder = written();
    end_at(&folder, "KILL", "", 1, 1);
    let read = format!("run {JOB} --rw=read --verify_state_load=1");
    folder.fathom(&read).expect(0);
    let path = folder.path().join("local-t-0-verify.state.unfinished");
    let mut state = std::fs::read(&path).unwrap();
    of_another_boot(&mut state);
    std::fs::write(&path, state).unwrap();
    let run = folder.fathom(&read).expect(2);
    assert!(
        run.err.contains("the run was cut off with its host"),
        "{}",
        run.err
    );
    assert!(
        run.err.contains("hint: verify without `verify_state_load`"),
        "{}",
        run.err
    );
}

/// Replaces the boot in the description of a state, whose checksum covers it.
fn of_another_boot(state: &mut [u8]) {
    let number = |at: usize| u64::from_le_bytes(state[at..at + 8].try_into().unwrap());
    let (summed, described) = (32, usize::try_from(number(32)).unwrap());
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(state[44..80], boot[..36]);
    state[44..80].copy_from_slice(b"00000000-0000-4000-8000-000000000000");
    let head = summed..summed + 8 + described.next_multiple_of(4);
    let sum = fathom_checksum::crc32c(&state[head]);
    state[summed - 4..summed].copy_from_slice(&sum.to_le_bytes());
}

const JOB: &str = "--name=t --filename=data --bs=4k --size=1m --verify=crc32c";
const LOG: &str = "t_lat.1.log";
