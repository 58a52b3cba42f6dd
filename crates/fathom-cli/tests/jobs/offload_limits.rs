//! `io_submit_mode=offload` at a limit: of threads, and of a disk's size.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, Run};
use serde_json::Value;

const FATHOM: &str = env!("CARGO_BIN_EXE_fathom");

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs a line of shell in this directory.
fn shell(folder: &Folder, script: &str) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(folder.path());
    Run::of(command)
}

/// Control group with a limit on the number of threads.
struct Few(PathBuf);

impl Few {
    fn new(threads: u32) -> Option<Self> {
        let name = format!("fathom-few-{}-{threads}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/pids").join(name);
        std::fs::create_dir(&group).ok()?;
        let few = Self(group);
        std::fs::write(few.0.join("pids.max"), threads.to_string()).ok()?;
        Some(few)
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir(&self.0);
    }
}

/// Returns a job that asks for a second worker as soon as the first is busy.
fn job(folder: &Folder, engine: &str) -> String {
    format!(
        "{FATHOM} run --name=t --io_submit_mode=offload --ioengine={engine} --rw=randread \
         --size=1m --iodepth=16 --filename={}/data --output-format=json",
        folder.path().display()
    )
}

/// Two threads are the program's and the job's. If a worker can start, it does all the work; if
/// none can, the job fails.
#[track_caller]
fn check(run: Run, engine: &str, threads: u32) {
    let has_a_worker = threads > 2;
    let run = run.expect(i32::from(!has_a_worker));
    let said = &run.err;
    assert!(said.contains("ulimit -u"), "{engine}: {said}");
    assert!(said.contains("pids.max"), "{engine}: {said}");
    assert!(
        said.contains("Resource temporarily unavailable"),
        "{engine}: {said}"
    );
    let report = run.json();
    let job = &report["jobs"][0];
    assert_eq!(job["error"] == 0, has_a_worker, "{engine}: {job}");
    let ios = if has_a_worker { 256 } else { 0 };
    assert_eq!(job["read"]["total_ios"], ios, "{engine}");
    let warnings = report["fathom"]["warnings"].as_array().unwrap();
    let told = warnings.iter().find_map(|warning| {
        let is_it = warning["code"] == "offload_workers_refused";
        is_it.then(|| warning["message"].as_str().unwrap_or_default())
    });
    match threads {
        3 => assert!(told.unwrap().contains("only 1 worker could"), "{told:?}"),
        4 => assert!(told.unwrap().contains("only 2 workers could"), "{told:?}"),
        _ => assert_eq!(told, None, "{engine}: told twice"),
    }
}

#[test]
fn a_pids_limit_of_a_cgroup_is_reported_and_not_fatal() {
    let folder = Folder::new();
    shell(&folder, "truncate -s 1m data").expect(0);
    for (engine, threads) in [("psync", 3), ("libaio", 3), ("null", 3), ("psync", 2)] {
        let Some(few) = Few::new(threads) else {
            return println!("skipped: needs root and the pids control group of version 1");
        };
        let (group, job) = (few.0.display(), job(&folder, engine));
        let run = shell(
            &folder,
            &format!("echo $$ > {group}/cgroup.procs && exec {job}"),
        );
        check(run, engine, threads);
    }
}

/// The limit counts all processes of a user, so the test uses one that runs nothing else.
#[test]
fn a_thread_limit_of_the_user_is_reported_and_not_fatal() {
    let folder = Folder::new();
    shell(&folder, "truncate -s 1m data; chmod 777 . data").expect(0);
    let who = "setpriv --reuid=65531 --regid=65531 --clear-groups";
    let can = format!(
        "{who} test -x {FATHOM} -a -r {}/data",
        folder.path().display()
    );
    if !is_root() || shell(&folder, &can).code != Some(0) {
        return println!("skipped: needs root, setpriv and a way to the folder");
    }
    for (engine, threads) in [("psync", 3), ("io_uring", 3), ("psync", 2)] {
        let job = job(&folder, engine);
        // The one of dash, the other of all other shells.
        let limit = format!("ulimit -p {threads} 2>/dev/null || ulimit -u {threads}");
        let run = shell(&folder, &format!("exec {who} sh -c '{limit}; exec {job}'"));
        if let Some(why) = run.refused() {
            println!("skipped: {why}");
            continue;
        }
        check(run, engine, threads);
    }
}

/// Returns the report of a write job on a disk with space for a quarter of it.
fn fill(folder: &Folder, words: &str) -> Option<Run> {
    // In a namespace of its own, so that nothing is left mounted whatever happens.
    let script = format!(
        "mount -t tmpfs -o size=256k none small 2>&1 || exit 99; \
         exec {FATHOM} run --name=t --rw=write --bs=4k --size=1m --fallocate=none \
         --create_on_open=1 --filename=small/data --output-format=json {words}"
    );
    let mut command = folder.command("unshare", "--mount sh -c");
    let run = Run::from(command.arg(&script).output().ok()?);
    let is_held = run.code == Some(99) || run.err.contains("unshare failed");
    (!is_held).then_some(run)
}

#[test]
fn a_disk_that_is_full_fails_the_same_ops_as_without_workers() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("small")).unwrap();
    // The first op that finds no room ends the job; or each of them counts and it goes on.
    let cases = [("", Value::Null), ("--ignore_error=,ENOSPC", 192.into())];
    for engine in ["psync", "libaio", "io_uring"] {
        for (errors, failed) in &cases {
            for mode in ["inline", "offload"] {
                let case = format!("--ioengine={engine} --io_submit_mode={mode} {errors}");
                let words = format!("{case} --iodepth=8 --iodepth_batch=4");
                let Some(run) = fill(&folder, &words) else {
                    return println!("skipped: needs root, to mount a disk in memory");
                };
                if let Some(why) = run.refused() {
                    println!("skipped: {why}");
                    continue;
                }
                let job = &run.expect(1).json()["jobs"][0];
                assert_eq!(job["error"], ENOSPC, "{case}: {job}");
                assert_eq!(job["write"]["io_bytes"], 256 << 10, "{case}: {job}");
                assert_eq!(job["total_err"], *failed, "{case}: {job}");
            }
        }
    }
}

const ENOSPC: u32 = 28;

/// Returns the number of workers that a warning names.
#[track_caller]
fn workers_told(run: &Run) -> u32 {
    let (_, after) = run.err.split_once("io_submit_mode=offload: only ").unwrap();
    after.split(' ').next().unwrap().parse().unwrap()
}

/// A worker that cannot open the job's files takes no op, and so fails none: a job that can run at
/// all runs with any number of further files that the process may open.
#[test]
fn a_limit_on_open_files_is_reported_and_not_fatal() {
    for engine in ["psync", "io_uring"] {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --rw=randread --size=1m --nrfiles=4 --iodepth=16 --ioengine={engine} \
             --io_submit_mode=offload --output-format=json"
        );
        if let Some(why) = folder.fathom(&words).refused() {
            println!("skipped: {why}");
            continue;
        }
        let mut done = false;
        let mut told = 0;
        for limit in 8..28 {
            let run = shell(
                &folder,
                &format!("ulimit -n {limit}; exec {FATHOM} {words}"),
            );
            if done {
                assert_eq!(run.code, Some(0), "{engine}, {limit} files: {run:#?}");
            } else {
                assert!(
                    run.code == Some(0) || run.err.contains("open files"),
                    "{run:#?}"
                );
            }
            done = run.code == Some(0);
            if run.err.contains("could be started: Too many open files") {
                assert!(run.err.contains("raise `ulimit -n`"), "{run:#?}");
                told += 1;
                // Whoever did ops had the job's four files open, as the job has itself.
                let open = 3 + 4 * (1 + workers_told(&run));
                assert!(!done || open <= limit, "{engine}, {limit} files: {run:#?}");
            }
        }
        assert!(
            done && told > 0,
            "{engine}: no limit let some workers be, and not all"
        );
    }
}

/// A job that starts late has its descriptors reserved from the start: workers of other jobs leave
/// them free.
#[test]
fn the_first_worker_of_a_job_has_its_files_before_any_other_job_begins() {
    let folder = Folder::new();
    let options = "--rw=randread --size=1m --nrfiles=4 --iodepth=16 --ioengine=psync --direct=1 \
                   --io_submit_mode=offload --time_based";
    let words = format!(
        "run --output-format=json --name=a {options} --runtime=900ms --name=b {options} \
         --startdelay=500ms --runtime=200ms"
    );
    let run = shell(&folder, &format!("ulimit -n 40; exec {FATHOM} {words}"));
    if run.err.contains("direct I/O") {
        return println!("skipped: {}", run.err);
    }
    assert_eq!(run.code, Some(0), "{run:#?}");
}
