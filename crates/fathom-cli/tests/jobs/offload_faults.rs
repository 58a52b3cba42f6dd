//! `io_submit_mode=offload` under adverse conditions: a stalling disk, interrupted system calls, an
//! unprivileged user.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{self, Folder};
use serde_json::Value;

/// Runs a line of shell and returns whether it succeeded.
fn shell(script: &str) -> bool {
    Command::new("sh")
        .args(["-c", script])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Starts the program in this directory, with a JSON report.
fn started(folder: &Folder, words: &str) -> Child {
    let words = format!("run --name=t --io_submit_mode=offload --output-format=json {words}");
    folder
        .command(env!("CARGO_BIN_EXE_fathom"), &words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the exit code, the report's first job, and everything on both streams.
fn ended(child: Child) -> (Option<i32>, Value, String) {
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = format!("{out}{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&out).unwrap_or_default();
    (output.status.code(), report["jobs"][0].clone(), said)
}

/// Control group that limits reads of the disk below a file.
struct Held(PathBuf);

impl Held {
    fn new(file: &Path, iops: u32) -> Option<Self> {
        let device = std::fs::metadata(file).ok()?.dev();
        let (major, minor) = (device >> 8 & 0xfff, device & 0xff);
        let name = format!("fathom-stalled-{}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&group).ok()?;
        let held = Self(group);
        let limit = held.0.join("blkio.throttle.read_iops_device");
        std::fs::write(limit, format!("{major}:{minor} {iops}\n")).ok()?;
        Some(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir(&self.0);
    }
}

/// At four reads per second the job and its workers wait for the disk nearly all the time.
#[test]
fn a_disk_that_stalls_does_not_hold_up_an_interrupt() {
    for engine in ["psync", "libaio", "io_uring"] {
        let folder = Folder::new();
        folder
            .fathom("run --name=l --rw=write --size=4m --end_fsync=1 --filename=data")
            .expect(0);
        let Some(held) = Held::new(&folder.path().join("data"), 4) else {
            println!("skipped: needs root, blkio of cgroup v1 and a file on a disk");
            return;
        };
        let child = started(
            &folder,
            &format!(
                "--ioengine={engine} --rw=randread --direct=1 --size=4m --iodepth=4 \
                 --filename=data --time_based --runtime=60"
            ),
        );
        let pid = child.id();
        let group = held.0.join("cgroup.procs");
        assert!(shell(&format!(
            "echo {pid} > {} && sleep 1.5 && kill -INT {pid}",
            group.display()
        )));
        let (_, job, said) = ended(child);
        let ios = job["read"]["total_ios"].as_u64();
        // Four in flight take a second; a busy machine some more.
        let took_ms = job["job_runtime"].as_u64();
        assert!(took_ms < Some(30_000), "{engine}: {took_ms:?}");
        assert!(ios > Some(0), "{engine}: {said}");
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}

/// SIGSTOP and SIGCONT interrupt the calls in which workers wait (EINTR).
#[test]
fn calls_that_are_interrupted_fail_no_op() {
    for engine in ["psync", "pvsync2", "libaio", "io_uring"] {
        let folder = Folder::new();
        let child = started(
            &folder,
            &format!(
                "--ioengine={engine} --rw=randrw --direct=1 --size=4m --iodepth=8 \
                 --iodepth_batch=4 --filename=data --time_based --runtime=1"
            ),
        );
        let pid = child.id();
        let stops = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do";
        shell(&format!(
            "{stops} kill -STOP {pid}; kill -CONT {pid}; kill -WINCH {pid}; sleep 0.04; done"
        ));
        let (code, job, said) = ended(child);
        if said.contains("EINVAL") || said.contains("Invalid argument") {
            println!("skipped: {engine}: no direct I/O here");
            continue;
        }
        assert_eq!(code, Some(0), "{engine}: {said}");
        assert_eq!(job["error"], 0, "{engine}: {said}");
        assert!(job["read"]["total_ios"].as_u64() > Some(0), "{engine}");
    }
}

/// Returns the name of every thread of a process, and the answer to a query about it.
fn threads(pid: u32, ask: impl Fn(u32) -> Option<String>) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let ids = tasks.into_iter().flatten().flatten();
    ids.filter_map(|task| {
        let id = task.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        Some((name.trim().to_owned(), ask(id)?))
    })
    .collect()
}

/// Each worker has the job's credentials and priority.
#[test]
fn workers_have_the_credentials_and_the_priority_of_their_job() {
    let folder = Folder::new();
    folder
        .fathom("run --name=l --rw=write --size=1m --filename=data")
        .expect(0);
    let who = match is_root() {
        true => "--uid=65533 --gid=65532",
        false => "",
    };
    let mut child = started(
        &folder,
        &format!(
            "--ioengine=psync --rw=randread --size=1m --iodepth=8 --filename=data --thread \
             --time_based --runtime=20 --prioclass=2 --prio=6 {who}"
        ),
    );
    let pid = child.id();
    shell("sleep 1");
    let uid_and_gid = |id: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{id}/status")).ok()?;
        let lines = text.lines();
        let own = lines.filter(|line| line.starts_with("Uid:") || line.starts_with("Gid:"));
        Some(own.collect::<Vec<_>>().join(" "))
    };
    let priority = |id: u32| {
        let id = id.to_string();
        let asked = Command::new("ionice").args(["-p", &id]).output().ok()?;
        Some(String::from_utf8_lossy(&asked.stdout).trim().to_owned())
    };
    let (ids, priorities) = (threads(pid, uid_and_gid), threads(pid, priority));
    child.kill().unwrap();
    child.wait().unwrap();
    let workers = |all: &[(String, String)]| -> Vec<String> {
        let workers = all.iter().filter(|(name, _)| name.starts_with("offload-"));
        workers.map(|(_, said)| said.clone()).collect()
    };
    let said = workers(&ids);
    assert!(!said.is_empty(), "no worker is there: {ids:?}");
    if is_root() {
        let all_are = |id: &str| said.iter().all(|line| line.matches(id).count() == 4);
        assert!(all_are("65533") && all_are("65532"), "{said:?}");
    }
    let urgent = workers(&priorities);
    if urgent.is_empty() {
        println!("skipped: no ionice");
    }
    assert!(
        urgent.iter().all(|said| said == "best-effort: prio 6"),
        "{urgent:?}"
    );
}

/// A user with no privileges but access to its own file.
#[test]
fn an_ordinary_user_needs_nothing_special() {
    let folder = Folder::new();
    shell(&format!("chmod 777 {}", folder.path().display()));
    for engine in ["psync", "libaio", "io_uring"] {
        let words = format!(
            "{} run --name=t --io_submit_mode=offload --ioengine={engine} --rw=randrw --size=1m \
             --iodepth=16 --iodepth_batch=4 --filename={}/data-{engine} --output-format=json",
            env!("CARGO_BIN_EXE_fathom"),
            folder.path().display()
        );
        let who = "setpriv --reuid=65533 --regid=65533 --clear-groups";
        let ready = format!("{who} test -x {}", env!("CARGO_BIN_EXE_fathom"));
        let (program, words) = match is_root() && shell(&ready) {
            true => ("sh", format!("exec {who} {words}")),
            false if is_root() => {
                return println!("skipped: needs setpriv and a way to the folder");
            }
            false => ("sh", format!("exec {words}")),
        };
        let mut command = Command::new(program);
        command.args(["-c", &words]).current_dir(folder.path());
        let run = common::Run::of(command);
        if run.err.contains("io_uring_setup") {
            println!("skipped: {}", run.err);
            continue;
        }
        let job = run.expect(0).json()["jobs"][0].clone();
        assert_eq!(job["error"], 0, "{engine}: {job}");
        let ios = |direction: &str| job[direction]["total_ios"].as_u64().unwrap_or(0);
        assert_eq!(ios("read") + ios("write"), 256, "{engine}");
    }
}
