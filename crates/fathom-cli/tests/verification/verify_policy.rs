//! States of the writes that a completed fsync covers (`verify_policy=fsynced`).

use crate::common::Folder;

const JOB: &str = "--name=t --bs=4k --size=64k --filename=data --verify=crc32c";
/// Blocks of the job.
const BLOCKS: u64 = 16;

/// Returns the number of blocks that a state misses in data that hold none of them.
fn known_after(words: &str) -> u64 {
    let folder = Folder::new();
    let save = format!("run {JOB} {words} --verify_state_save=1 --verify_policy=fsynced");
    folder.fathom(&save).expect(0);
    let read = format!(
        "run {JOB} --rw=read --verify_state_load=1 --verify_policy=fsynced \
         --continue_on_error=verify --output-format=json"
    );
    folder.fathom(&read).expect(0);
    folder.write("data", [0xa5; 64 << 10]);
    let run = folder.fathom(&read).json();
    let found = &run["jobs"][0]["fathom"]["verify"]["mismatches"];
    found.as_u64().unwrap_or(0)
}

#[test]
fn a_state_has_the_writes_before_the_last_sync() {
    assert_eq!(known_after("--rw=write"), 0);
    assert_eq!(known_after("--rw=write --fsync=5"), 15);
    assert_eq!(known_after("--rw=write --fdatasync=6"), 12);
    assert_eq!(known_after("--rw=write --sync_file_range=wait_after:1"), 0);
    for words in [
        "--end_fsync=1",
        "--fsync_on_close=1",
        "--sync=1",
        "--sync=dsync",
    ] {
        assert_eq!(
            known_after(&format!("--rw=write {words}")),
            BLOCKS,
            "{words}"
        );
    }
}

#[test]
fn syncs_in_flight_cover_what_had_ended_before() {
    for engine in ["io_uring", "libaio"] {
        let queue = format!("--ioengine={engine} --iodepth=4 --rw=randwrite --fsync=5");
        let known = known_after(&queue);
        // The last write may wait for no sync, nor up to three that were in flight beside one.
        assert!((4..BLOCKS).contains(&known), "{engine}: {known}");
    }
}

/// The second pass makes its blocks unknown until they are synced again.
#[test]
fn a_block_that_is_written_again_waits_for_the_next_sync() {
    let half = "--rw=write --loops=2 --fsync=16 --do_verify=0";
    // One sync is made, after the first pass: at its end the job goes on.
    assert_eq!(known_after(half), 0);
    assert_eq!(
        known_after("--rw=write --loops=2 --fsync=8 --do_verify=0"),
        8
    );
}

#[test]
fn jobs_on_one_file_share_its_syncs() {
    let folder = Folder::new();
    let other = JOB.replace("--name=t", "--name=u");
    let policy = "--verify_state_save=1 --verify_policy=fsynced --do_verify=0";
    let jobs =
        |first: &str, second: &str| folder.fathom(&format!("run {JOB} {first} {other} {second}"));
    let read = "--rw=read --verify_state_load=1 --verify_policy=fsynced --continue_on_error=verify";
    jobs(
        &format!("--rw=write {policy}"),
        &format!("--stonewall --rw=write --end_fsync=1 --number_ios=1 {policy}"),
    )
    .expect(0);
    folder.write("data", [0xa5; 64 << 10]);
    let run = jobs(read, &format!("{read} --output-format=json")).json();
    let found = &run["jobs"][0]["fathom"]["verify"]["mismatches"];
    assert_eq!(found.as_u64(), Some(BLOCKS), "{run}");
}

#[test]
fn a_state_of_another_policy_is_refused() {
    let folder = Folder::new();
    let save = format!("run {JOB} --rw=write --fsync=4 --verify_state_save=1");
    folder.fathom(&save).expect(0);
    let read = format!("run {JOB} --rw=read --verify_state_load=1");
    let run = folder.fathom(&format!("{read} --verify_policy=fsynced"));
    let run = run.expect(2);
    assert!(
        run.err.contains("not those that an fsync covers"),
        "{run:#?}"
    );
    folder
        .fathom(&format!("{save} --verify_policy=fsynced"))
        .expect(0);
    folder.fathom(&read).expect(0);
}

#[test]
fn a_policy_without_syncs_or_states_is_noted() {
    let folder = Folder::new();
    let noted = |words: &str, why: &str| {
        let run = folder.fathom(&format!(
            "run {JOB} --rw=write --verify_policy=fsynced {words}"
        ));
        let run = run.expect(0);
        assert!(run.err.contains(why), "{run:#?}");
    };
    noted("", "no effect without a verify state");
    noted("--verify_state_save=1", "the job makes no fsync");
}
