//! States that runs save and later runs load, and the folder of both (`--aux-path`).

use crate::common::namespace::after;
use crate::common::{Folder, Run};

/// Returns a folder with a written file.
fn written() -> Folder {
    let folder = Folder::new();
    folder.fathom(&format!("run {JOB} --rw=write")).expect(0);
    folder
}

/// Writes the first half of the file under a state.
fn half_written() -> Folder {
    let folder = written();
    let words = "--rw=write --number_ios=8 --verify_state_save=1 --do_verify=0";
    folder.fathom(&format!("run {JOB} {words}")).expect(0);
    assert_eq!(folder.names(), ["data", "local-t-0-verify.state"]);
    folder
}

#[test]
fn a_state_tells_what_was_written() {
    let folder = half_written();
    let read = format!("run {JOB} --rw=read --verify_state_load=1");
    folder.fathom(&read).expect(0);
    let path = folder.path().join("data");
    let good = std::fs::read(&path).unwrap();
    // The other half was not written by that run: anything may be there.
    let mut data = good.clone();
    data[9 * 4096] ^= 1;
    std::fs::write(&path, &data).unwrap();
    folder.fathom(&read).expect(0);
    data[3 * 4096 + 99] ^= 1;
    std::fs::write(&path, &data).unwrap();
    folder.fathom(&read).expect(1);
}

/// Jobs whose writes are not those of all blocks.
#[test]
fn a_state_tells_what_mixes_wrote_and_trims_cut_out() {
    let trims = "--rw=randwrite --trim_percentage=50 --trim_backlog=4";
    for words in ["--rw=randrw", trims, "--rw=randwrite --norandommap"] {
        let folder = written();
        let save = format!("run {JOB} {words} --verify_state_save=1 --output-format=json");
        let run = folder.fathom(&save).expect(0).json();
        let written = run["jobs"][0]["write"]["total_ios"].as_u64().unwrap();
        let read = format!("run {JOB} --rw=read --verify_state_load=1 --output-format=json");
        let read = format!("{read} --continue_on_error=verify");
        folder.fathom(&read).expect(0);
        folder.write("data", [0xa5; 64 << 10]);
        let run = folder.fathom(&read).expect(1).json();
        let found = run["jobs"][0]["fathom"]["verify"]["mismatches"].as_u64();
        let found = found.unwrap();
        match words.contains("norandommap") {
            // Some blocks were written twice, others never.
            true => assert!(found > 0 && found < written, "{words}: {found}"),
            false => assert_eq!(found, written, "{words}"),
        }
    }
}

/// A block that is valid by itself, but of an earlier run: its write was lost.
#[test]
fn a_state_finds_outdated_blocks() {
    let folder = written();
    let path = folder.path().join("data");
    let earlier = std::fs::read(&path).unwrap();
    let write = format!("run {JOB} --rw=write --verify_state_save=1");
    folder.fathom(&write).expect(0);
    let mut data = std::fs::read(&path).unwrap();
    data[5 * 4096..6 * 4096].copy_from_slice(&earlier[5 * 4096..6 * 4096]);
    std::fs::write(&path, data).unwrap();
    folder.fathom(&format!("run {JOB} --rw=read")).expect(0);
    let run = folder.fathom(&format!("run {JOB} --rw=read --verify_state_load=1"));
    let run = run.expect(1);
    assert!(run.err.contains("outdated"), "{run:#?}");
    assert!(run.err.contains("offset 20480"), "{run:#?}");
}

#[test]
fn a_state_of_other_data_is_refused() {
    let folder = half_written();
    let state = folder.path().join("local-t-0-verify.state");
    let bytes = std::fs::read(&state).unwrap();
    let refused = |words: &str, why: &str| {
        let run = folder.fathom(&format!("run {words} --rw=read --verify_state_load=1"));
        let run = run.expect(2);
        assert!(run.err.contains(why), "{why}: {run:#?}");
    };
    let other = JOB.replace("--filename=data", "--filename=other");
    refused(&other, "it has no file `other`");
    refused(
        &JOB.replace("--name=t", "--name=u"),
        "local-u-0-verify.state",
    );
    folder.write("local-u-0-verify.state", &bytes);
    refused(&JOB.replace("--name=t", "--name=u"), "it is of job `t`");
    let mut newer = bytes.clone();
    newer[20] = 9;
    folder.write("local-t-0-verify.state", newer);
    refused(JOB, "verify state of version 9");
    folder.write("local-t-0-verify.state", &bytes[..bytes.len() - 1]);
    refused(JOB, "incomplete or damaged");
    folder.write("local-t-0-verify.state", [7; 88]);
    refused(JOB, "not a verify state of fathom");
}

/// Blocks of another size, or at other places, could not be checked, and would pass.
#[test]
fn a_job_reads_the_blocks_that_its_state_knows() {
    let folder = half_written();
    folder.write("data", [0xa5; 64 << 10]);
    let read = |words: &str| {
        folder.fathom(&format!(
            "run {JOB} --rw=read --verify_state_load=1 {words}"
        ))
    };
    let differ = "the verified blocks of `data` have 4096 B, and the job reads blocks of";
    let begin = "the blocks of `data` begin every 4096 B from 0 on, and the job's at";
    for (words, why) in [
        ("--bs=512", differ),
        ("--bs=8k", differ),
        ("--bs=64k", differ),
        ("--verify_interval=1k", differ),
        ("--offset=2k --size=32k", begin),
    ] {
        let run = read(words).expect(2);
        assert!(run.err.contains(why), "{words}: {run:#?}");
    }
    read("--bs=8k --verify_interval=4k").expect(1);
    read("--offset=4k --size=60k").expect(1);
    // Without `verify` nothing would be compared.
    let bare = JOB.replace("--verify=crc32c", "");
    let run = folder.fathom(&format!("run {bare} --rw=read --verify_state_load=1"));
    let run = run.expect(2);
    assert!(
        run.err.contains("a verify state needs `verify`"),
        "{run:#?}"
    );
}

#[test]
fn a_report_says_how_many_blocks_were_compared() {
    let folder = half_written();
    let read = |words: &str| {
        let run = format!("run {JOB} --rw=read --verify_state_load=1 --output-format=json {words}");
        folder.fathom(&run).expect(0).json()
    };
    let counts = |run: &serde_json::Value| {
        let verify = &run["jobs"][0]["fathom"]["verify"];
        ["compared", "unknown"].map(|key| verify[key].as_u64().unwrap())
    };
    assert_eq!(counts(&read("")), [8, 8]);
    assert_eq!(counts(&read("--verify_async=2")), [8, 8]);
    let none = read("--offset=32k --size=32k");
    assert_eq!(counts(&none), [0, 8]);
    let told = none["fathom"]["warnings"].to_string();
    let want = "nothing was verified: the verify state knows none of the 8 blocks";
    assert!(told.contains(want), "{told}");
    let text = folder.fathom(&format!("run {JOB} --rw=read --verify_state_load=1"));
    let want = "     verify    : blocks compared=8, unknown=8; reads that differ=0\n";
    assert!(text.out.contains(want), "{text:#?}");
}

#[test]
fn a_state_is_of_a_file_by_whatever_path() {
    let folder = half_written();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    folder.write("sub/other", b"");
    std::os::unix::fs::symlink("data", folder.path().join("link")).unwrap();
    let absolute = folder.path().join("data").display().to_string();
    let loads = |words: &str, file: &str| {
        let job = JOB.replace("--filename=data", &format!("--filename={file}"));
        folder.fathom(&format!(
            "run {job} --rw=read --verify_state_load=1 {words}"
        ))
    };
    for same in ["./data", "sub/../data", "link", &absolute] {
        loads("", same).expect(0);
    }
    // From another directory, beside the state.
    std::fs::create_dir(folder.path().join("moved")).unwrap();
    for name in ["data", "local-t-0-verify.state"] {
        std::fs::rename(
            folder.path().join(name),
            folder.path().join("moved").join(name),
        )
        .unwrap();
    }
    loads("--aux-path=moved", "moved/data").expect(0);
    let other = loads("--aux-path=moved", "sub/other").expect(2);
    assert!(
        other.err.contains("it has no file `sub/other`"),
        "{other:#?}"
    );
}

/// The jobs have one file; the second one goes on when the first has ended.
#[test]
fn states_of_jobs_on_one_file_tell_what_the_last_one_wrote() {
    let folder = Folder::new();
    let jobs = |words: &str, second: &str| {
        let other = JOB.replace("--name=t", "--name=u");
        format!("run {JOB} {words} {other} {words} {second}")
    };
    let write = "--rw=randwrite --norandommap --verify_state_save=1 --do_verify=0";
    let run = jobs(write, "--stonewall");
    folder.fathom(&run).expect(0);
    assert_eq!(
        folder.names(),
        ["data", "local-t-0-verify.state", "local-u-1-verify.state"]
    );
    let read = "--rw=read --verify_state_load=1";
    folder.fathom(&jobs(read, "")).expect(0);
    // And one of them may write again meanwhile.
    folder
        .fathom(&jobs("--rw=randrw --norandommap --verify_state_load=1", ""))
        .expect(0);
    let writer = "--name=u --bs=4k --size=64k --filename=data --verify=crc32c --rw=randwrite";
    folder.fathom(&run).expect(0);
    let reads = format!("run {JOB} {read} --loops=20 {writer} --loops=20");
    folder.fathom(&reads).expect(0);
}

/// An entry of the map does not tell in which of two formats a block is.
#[test]
fn a_state_of_a_file_in_two_formats_expects_nothing() {
    let folder = Folder::new();
    let other = JOB.replace("--name=t", "--name=u").replace("crc32c", "md5");
    let write = "--rw=randwrite --norandommap --verify_state_save=1";
    folder
        .fathom(&format!("run {JOB} {write} {other} {write}"))
        .expect(0);
    for job in [
        JOB,
        &format!("--name=t --size=4k --filename=x --rw=read {other}"),
    ] {
        folder
            .fathom(&format!("run {job} --rw=read --verify_state_load=1"))
            .expect(0);
    }
}

/// Writes beyond the limit of a file's size fail.
#[test]
fn a_job_that_failed_leaves_a_state() {
    let folder = written();
    let program = env!("CARGO_BIN_EXE_fathom");
    let path = folder.path().join("data");
    for tolerates in ["", "--continue_on_error=write"] {
        let earlier = std::fs::read(&path).unwrap();
        let write = format!("run {JOB} --rw=write --verify_state_save=1 {tolerates}");
        let mut command = folder.command("sh", "-c");
        command.arg(format!("ulimit -f 64; exec {program} {write}"));
        Run::of(command).expect(1);
        let read = format!("run {JOB} --rw=read --verify_state_load=1 --output-format=json");
        let read = format!("{read} --continue_on_error=verify");
        folder.fathom(&read).expect(0);
        // What was written is missing, and the rest is unknown.
        folder.write("data", earlier);
        let run = folder.fathom(&read).expect(1);
        let found = &run.json()["jobs"][0]["fathom"]["verify"]["mismatches"];
        assert_eq!(found, 8, "{run:#?}");
        folder.fathom(&format!("run {JOB} --rw=write")).expect(0);
    }
}

#[test]
fn states_and_blocks_are_saved_below_aux_path() {
    let folder = Folder::new();
    let aux = folder.path().join("aux");
    let words = |words: &str| format!("run --aux-path=aux {JOB} {words}");
    let refused = folder.fathom(&words("--rw=write --verify_state_save=1"));
    let refused = refused.expect(2);
    assert!(refused.err.contains("aux: not a directory"), "{refused:#?}");
    assert!(folder.names().is_empty());

    std::fs::create_dir(&aux).unwrap();
    folder
        .fathom(&words("--rw=write --verify_state_save=1"))
        .expect(0);
    assert_eq!(folder.names(), ["aux", "data"]);
    let mut data = std::fs::read(folder.path().join("data")).unwrap();
    data[5000] ^= 1;
    folder.write("data", data);
    folder
        .fathom(&words("--rw=read --verify_state_load=1 --verify_dump=1"))
        .expect(1);
    assert_eq!(folder.names(), ["aux", "data"]);
    let mut names: Vec<_> = std::fs::read_dir(&aux)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "data.4096.expected",
            "data.4096.received",
            "local-t-0-verify.state"
        ]
    );
}

/// Runs the program with a full disk of two pages as `--aux-path`.
fn on_full_disk(folder: &Folder, words: &str) -> Option<Run> {
    let _may_exist = std::fs::create_dir(folder.path().join("aux"));
    let script = "mount -t tmpfs -o size=8k full aux && head -c 4096 /dev/zero > aux/fill";
    let job = JOB.trim_start_matches("--name=t");
    let words = format!("--aux-path=aux {job} {words}");
    after(folder, script, &words)
}

#[test]
fn blocks_that_a_full_disk_does_not_take_are_a_warning() {
    let folder = written();
    let mut data = std::fs::read(folder.path().join("data")).unwrap();
    for block in 0..3 {
        data[block * 4096 + 77] ^= 1;
    }
    folder.write("data", data);
    let words = "--rw=read --continue_on_error=verify --verify_dump=1 --output-format=json";
    let Some(run) = on_full_disk(&folder, words) else {
        return;
    };
    let run = run.expect(1);
    let text = "cannot save a block: aux/data.0.expected: No space left on device";
    assert!(run.err.contains(text), "{run:#?}");
    assert_eq!(
        run.json()["jobs"][0]["fathom"]["verify"]["mismatches"],
        3,
        "the report is whole"
    );
}

#[test]
fn a_state_that_a_full_disk_does_not_take_is_a_warning() {
    let folder = Folder::new();
    let words = "--rw=write --size=16m --verify_state_save=1";
    let Some(run) = on_full_disk(&folder, words) else {
        return;
    };
    let run = run.expect(0);
    for text in [
        "no verify state would be left if the run was killed: \
         aux/local-t-0-verify.state.unfinished: No space left on device",
        "cannot save the verify state: aux/local-t-0-verify.state: No space left on device",
    ] {
        assert!(run.err.contains(text), "{text}: {run:#?}");
    }
}

#[test]
fn jobs_that_write_what_another_verifies_are_warned_of() {
    let folder = Folder::new();
    let run = folder.fathom(&format!("run {JOB} --rw=randwrite --numjobs=2"));
    let run = run.expect(0);
    let text = "its clones write the same bytes of data at the same time: a block is checked \
                against its latest write";
    assert!(run.err.contains(text), "{run:#?}");
}

/// Loading is not to wait for a pipe's writer, nor to read a device to the end of memory.
#[test]
fn a_state_that_is_no_file_is_refused() {
    let folder = written();
    let state = folder.path().join("local-t-0-verify.state");
    let read = format!("run {JOB} --rw=read --verify_state_load=1");
    let refused = || {
        let run = folder.fathom(&read).expect(2);
        assert!(run.err.contains("it is not a regular file"), "{run:#?}");
        std::fs::remove_file(&state).unwrap();
    };
    std::os::unix::fs::symlink("/dev/zero", &state).unwrap();
    refused();
    match mkfifo(&state) {
        true => refused(),
        false => println!("skipped: no mkfifo"),
    }
    // More than any memory holds, and no state.
    std::fs::File::create(&state)
        .and_then(|file| file.set_len(1 << 43))
        .unwrap();
    let run = folder.fathom(&read).expect(2);
    assert!(run.err.contains("not a verify state of fathom"), "{run:#?}");
}

/// Files that the program names itself are created, not opened: a pipe would wait for its reader,
/// and a link leads to a file of something else.
#[test]
fn pipes_and_links_under_the_names_of_states_and_blocks_are_replaced() {
    let names = [
        "local-t-0-verify.state.part",
        "data.0.received",
        "data.0.expected",
    ];
    for kind in ["link", "pipe"] {
        let folder = written();
        folder.write("precious", "content");
        for name in names {
            let path = folder.path().join(name);
            match kind {
                "link" => std::os::unix::fs::symlink("precious", &path).unwrap(),
                _ if mkfifo(&path) => {}
                _ => return println!("skipped: no mkfifo"),
            }
        }
        folder
            .fathom(&format!("run {JOB} --rw=write --verify_state_save=1"))
            .expect(0);
        let path = folder.path().join("data");
        let mut data = std::fs::read(&path).unwrap();
        data[100] ^= 1;
        std::fs::write(&path, &data).unwrap();
        folder
            .fathom(&format!("run {JOB} --rw=read --verify_dump=1"))
            .expect(1);
        assert_eq!(folder.read("precious"), "content", "{kind}");
        let found = std::fs::read(folder.path().join(names[1])).unwrap();
        assert_eq!(found, data[..4096], "{kind}");
    }
}

/// If such a run is killed, nothing describes its data.
#[test]
fn a_run_without_an_unfinished_state_leaves_no_earlier_one() {
    let folder = half_written();
    std::fs::create_dir(folder.path().join("local-t-0-verify.state.unfinished")).unwrap();
    let write = "--rw=write --verify_state_save=1 --thinktime=4s";
    let words = format!("run {JOB} {write}");
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
    command.stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let state = folder.path().join("local-t-0-verify.state");
    // The job ends after a minute in any case.
    while state.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let is_there = state.exists();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!is_there, "the state of the run before is left");
}

/// As in fio, which saves the states of writers alone.
#[test]
fn a_job_that_only_reads_leaves_the_state_of_the_one_that_wrote() {
    let folder = half_written();
    let state = folder.path().join("local-t-0-verify.state");
    let earlier = std::fs::read(&state).unwrap();
    let read = format!("run {JOB} --rw=read --verify_state_save=1");
    folder.fathom(&read).expect(0);
    assert_eq!(std::fs::read(&state).unwrap(), earlier);
}

/// Otherwise a kill of the other one leaves a state that reports what it wrote.
#[test]
fn a_run_does_not_remove_the_state_of_another_one_that_is_not_through() {
    let folder = written();
    let name = "local-t-0-verify.state.unfinished";
    let write = format!("run {JOB} --rw=write --verify_state_save=1 --thinktime=4s");
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &write);
    command.stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let unfinished = folder.path().join(name);
    while !unfinished.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    // As the other run does.
    std::fs::remove_file(&unfinished).unwrap();
    folder.write(name, "of another run");
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    child.wait().unwrap();
    assert_eq!(folder.read(name), "of another run");
}

/// Creates a pipe, and returns whether the system has a tool for it.
fn mkfifo(path: &std::path::Path) -> bool {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    made.is_ok_and(|status| status.success())
}

const JOB: &str = "--name=t --bs=4k --size=64k --filename=data --verify=crc32c";
