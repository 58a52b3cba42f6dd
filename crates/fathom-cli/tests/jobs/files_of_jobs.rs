//! Effects of jobs on their files besides I/O: recreated, locked, synced in part.

use std::process::Command;

use crate::common::{Folder, Run};

/// Returns the system calls of a run whose names start with one of `calls`, without times; `None`
/// if strace is not installed.
fn calls(folder: &Folder, calls: &str, words: &str) -> Option<Vec<String>> {
    let trace = folder.path().join("trace");
    let run = Command::new("strace")
        .args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .args(words.split_whitespace())
        .current_dir(folder.path())
        .output();
    let Ok(run) = run else {
        println!("skipped: no strace");
        return None;
    };
    assert!(run.status.success(), "{run:#?}");
    let text = std::fs::read_to_string(&trace).unwrap();
    let of_call = |line: &str| line.split_once(' ').map(|(_, call)| call.trim().to_owned());
    // Calls that strace does not know by name are shown whatever is asked for.
    let own = |call: &String| call.starts_with(calls);
    Some(text.lines().filter_map(of_call).filter(own).collect())
}

/// As observed of fio 3.33: the smallest range that covers the writes since the last call.
#[test]
fn the_range_that_is_synced_is_what_was_written_since() {
    let folder = Folder::new();
    let job =
        "run --name=t --filename=f --size=64k --rw=write --sync_file_range=write,wait_after:4";
    for engine in ["psync", "libaio", "mmap"] {
        let words = format!("{job} --ioengine={engine}");
        let Some(calls) = calls(&folder, "sync_file_range", &words) else {
            return;
        };
        let ranges: Vec<&str> = calls
            .iter()
            .filter_map(|call| call.split_once(", ")?.1.split_once(", SYNC"))
            .map(|(range, _)| range)
            .collect();
        let want = ["0, 16384", "16384, 16384", "32768, 16384"];
        // mmap makes its pages durable by msync(2).
        assert!(ranges == want || engine == "mmap", "{engine}: {calls:?}");
    }
    let run = folder.fathom(&format!("{job} --ioengine=io_uring --output-format=json"));
    if let Some(why) = run.refused() {
        return println!("skipped: {why}");
    }
    assert_eq!(run.json()["jobs"][0]["sync"]["total_ios"], 3, "{run:#?}");
}

#[test]
fn the_file_system_is_synced_once_at_the_end() {
    let folder = Folder::new();
    let job = "run --name=t --size=64k --nrfiles=4 --rw=write --end_syncfs=1";
    for engine in ["psync", "libaio", "io_uring"] {
        let Some(calls) = calls(&folder, "syncfs", &format!("{job} --ioengine={engine}")) else {
            return;
        };
        assert_eq!(calls.len(), 1, "{engine}: {calls:?}");
    }
}

#[test]
fn files_are_recreated_between_loops() {
    let folder = Folder::new();
    folder.write("f", vec![9; 1 << 20]);
    let job = "run --name=t --filename=f --size=64k --loops=3 --unlink_each_loop=1";
    let wrote = folder.fathom(&format!("{job} --rw=write --output-format=json"));
    assert_eq!(
        wrote.json()["jobs"][0]["write"]["total_ios"],
        48,
        "{wrote:#?}"
    );
    // What was longer is gone with the first loop; the last one's file stays, as with fio.
    assert_eq!(
        std::fs::metadata(folder.path().join("f")).unwrap().len(),
        64 << 10
    );
    // There is nothing to read in the second loop; fio ends with the same error.
    let read = folder.fathom(&format!("{job} --rw=read --output-format=json"));
    let job = &read.json()["jobs"][0];
    assert_eq!(
        (&job["error"], &job["read"]["total_ios"]),
        (&2.into(), &16.into())
    );
    assert!(!folder.path().join("f").exists());
}

#[test]
fn jobs_take_turns_on_a_file_that_they_lock() {
    let folder = Folder::new();
    for engine in [
        "psync",
        "libaio --iodepth=8",
        "io_uring --iodepth=8",
        "mmap",
    ] {
        for lock in ["exclusive", "readwrite"] {
            let words = format!(
                "run --output-format=json --filename=f --size=1m --time_based --runtime=500ms \
                 --ioengine={engine} --lockfile={lock} --name=w --rw=randwrite --name=r \
                 --rw=randread --numjobs=2"
            );
            let run = folder.fathom(&words);
            if let Some(why) = run.refused() {
                println!("skipped: {why}");
                continue;
            }
            let report = run.expect(0).json();
            let done = |job: usize, what: &str| report["jobs"][job][what]["total_ios"].as_u64();
            let ios = [done(0, "write"), done(1, "read"), done(2, "read")];
            // Nobody is left out, whatever the engine and the depth.
            assert!(ios.iter().all(|ios| *ios > Some(0)), "{words}: {ios:?}");
        }
    }
}

/// The lock is held for the duration of each op, so ops of two jobs never overlap in time.
#[test]
fn no_two_ops_overlap_under_an_exclusive_lock() {
    let folder = Folder::new();
    let job = "run --filename=f --size=256k --bs=4k --lockfile=exclusive --name=w --rw=write \
               --numjobs=2";
    let trace = folder.path().join("trace");
    let run = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=pwrite64", "-o"])
        .arg(&trace)
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .args(job.split_whitespace())
        .current_dir(folder.path())
        .output();
    let Ok(run) = run else {
        return println!("skipped: no strace");
    };
    assert!(run.status.success(), "{run:#?}");
    let text = std::fs::read_to_string(&trace).unwrap();
    let writes = text
        .lines()
        .filter(|line| line.contains("pwrite64"))
        .count();
    assert!(writes >= 128, "{writes}");
    // strace cuts a call in two where another comes between its begin and its end.
    assert!(!text.contains("unfinished"), "{text}");
}

#[test]
fn ops_that_would_wait_fail_at_once() {
    let folder = Folder::new();
    folder.write("f", vec![1; 4 << 20]);
    let job = "--filename=f --size=4m --rw=randread --bs=4k --nowait=1 --ignore_error=EAGAIN";
    for engine in ["pvsync2", "libaio", "io_uring"] {
        let run = folder.fathom(&format!(
            "run --output-format=json --name=t --ioengine={engine} {job}"
        ));
        let (code, report) = (run.code, run.json());
        let job = &report["jobs"][0];
        // What is cached is read; what is not would wait for the disk.
        let (done, failed) = (&job["read"]["total_ios"], &job["total_err"]);
        let all = done.as_u64().unwrap_or(0) + failed.as_u64().unwrap_or(0);
        let refused = job["error"].as_u64().is_some_and(|error| error != 0);
        assert!(all == 1024 || refused, "{engine}: {code:?} {report:#}");
    }
}

#[test]
fn ops_of_libaio_can_be_vectors() {
    let folder = Folder::new();
    let words = "run --name=t --filename=f --size=64k --rw=write --verify=crc32c --ioengine=libaio \
                 --iodepth=4 --libaio_vectored=1 --output-format=json";
    let run = folder.fathom(words);
    if let Some(why) = run.refused() {
        return println!("skipped: {why}");
    }
    let report = run.expect(0).json();
    assert_eq!(report["jobs"][0]["read"]["total_ios"], 16);
    // Among what the engine made use of.
    let own = report["fathom"].to_string();
    assert!(own.contains("vectors"), "{own}");
}

/// As observed of fio 3.33: files and clones are named after the section, the first clone's reports
/// and logs after the `name` inside it.
#[test]
fn files_are_named_after_the_section() {
    let job = "[job-1]\nname=wal\nrw=write\nsize=8k\nnumjobs=2\nwrite_bw_log\n\
               exec_prerun=true\n[/dev/null]\nname=other\nrw=write\nsize=8k\n";
    let words = "j.fio --output-format=json";
    for as_fio in [false, true] {
        let folder = Folder::new();
        folder.write("j.fio", job);
        let run = match as_fio {
            false => folder.fathom(&format!("run {words}")),
            true => folder.fio(words),
        };
        let run = run.expect(0);
        let jobs = run.json()["jobs"].clone();
        let names: Vec<_> = (0..3).map(|job| jobs[job]["jobname"].clone()).collect();
        assert_eq!(names, ["wal", "job-1", "other"]);
        let mut names = folder.names();
        names.retain(|name| name != "bin");
        let want = [
            "j.fio",
            "job-1.0.0",
            "job-1.1.0",
            "job-1.prerun.txt",
            "job-1_bw.2.log",
            "wal.prerun.txt",
            "wal_bw.1.log",
        ];
        assert_eq!(names, want);
    }
}

#[test]
fn files_smaller_than_a_block_are_skipped() {
    let folder = Folder::new();
    folder.write("small", vec![1; 4096]);
    folder.write("large", vec![1; 64 << 10]);
    for rw in ["read", "randread"] {
        let words = format!("--name=t --filename=small:large --bs=16k --rw={rw}");
        let run = folder.fathom(&format!("run --output-format=json {words}"));
        let report = run.expect(0).json();
        assert_eq!(report["jobs"][0]["read"]["total_ios"], 4, "{rw}");
        let warnings = report["fathom"]["warnings"].to_string();
        assert!(warnings.contains("files_too_small"), "{warnings}");
    }
}

#[test]
fn a_file_that_cannot_be_removed_is_told() {
    let folder = Folder::new();
    let job = "[t]\nfilename=data\nsize=4k\nrw=write\nunlink=1\n";
    folder.write("plain", job);
    let run = folder.fathom("run plain").expect(0);
    assert!(!run.err.contains("cannot remove"), "{}", run.err);
    folder.write(
        "replaced",
        format!("{job}exec_postrun=rm data && mkdir data\n"),
    );
    let run = folder.fathom("run replaced").expect(0);
    let want = "cannot remove data: Is a directory";
    assert!([run.out, run.err].concat().contains(want));
    assert!(folder.path().join("data").is_dir());
}

#[test]
fn a_file_that_became_a_pipe_fails_its_job_and_does_not_hold_it() {
    let folder = Folder::new();
    for rw in ["read", "write"] {
        let mut command = folder.command("timeout", "-s KILL 60");
        command.arg(env!("CARGO_BIN_EXE_fathom")).args([
            "run",
            "--output-format=json",
            "--filename=data",
            "--size=64k",
            "--name=first",
            "--rw=write",
            "--exec_postrun=rm data; mkfifo data",
            "--name=second",
            "--stonewall",
            &format!("--rw={rw}"),
        ]);
        let run = Run::of(command).expect(1);
        assert_eq!(run.json()["jobs"][1]["error"], 29, "{run:#?}");
        assert!(run.err.contains("was replaced by a pipe"), "{run:#?}");
        std::fs::remove_file(folder.path().join("data")).unwrap();
    }
}
