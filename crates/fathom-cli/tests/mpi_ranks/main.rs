//! Ranks of an MPI job on this machine, started by its launcher, or by that which `FATHOM_MPIRUN`
//! names: it must be of the MPI that this was built with.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod clients;
#[path = "../common/mod.rs"]
mod common;

use std::fs;
use std::process::Command;

use common::{Folder, Run};
use serde_json::Value;

/// Starts `count` ranks of `fathom-mpi run` with these words.
fn ranks(folder: &Folder, count: u32, words: &str) -> Run {
    Run::of(launcher(folder, count, words))
}

fn launcher(folder: &Folder, count: u32, words: &str) -> Command {
    let mut command = mpirun(folder, count);
    command.args([env!("CARGO_BIN_EXE_fathom-mpi"), "run"]);
    command.args(words.split_whitespace());
    command
}

fn mpirun(folder: &Folder, count: u32) -> Command {
    let named = std::env::var("FATHOM_MPIRUN").unwrap_or_default();
    let launcher = match &*named {
        "" => "mpirun",
        named => named,
    };
    let version = Command::new(launcher).arg("--version").output();
    let version = String::from_utf8(version.unwrap().stdout).unwrap();
    // MPICH needs no switches.
    let switches = match version.contains("Open MPI") || version.contains("PRRTE") {
        true => "--oversubscribe --bind-to none",
        false => "",
    };
    let mut command = folder.command(launcher, switches);
    command.args(["-n", &count.to_string()]);
    as_root(&mut command);
    command
}

/// CI is root in a container; harmless for others.
fn as_root(command: &mut Command) {
    let allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];
    command.envs(allowed.map(|name| (name, "1")));
}

/// Returns the hosts of a report, which say which ranks it adds up.
fn hosts(report: &Value) -> &[Value] {
    report["fathom"]["hosts"].as_array().unwrap()
}

fn ios(report: &Value, job: usize, direction: &str) -> u64 {
    report["jobs"][job][direction]["total_ios"]
        .as_u64()
        .unwrap()
}

#[test]
fn records_of_all_ranks_are_one_report() {
    for count in [1, 2, 5, 16] {
        let folder = Folder::new();
        let job = "--name=a --ioengine=null --size=4m --rw=randread --output-format=json";
        let run = ranks(&folder, count, job).expect(0);
        let report = run.json();
        assert_eq!(ios(&report, 0, "read"), u64::from(count) * 1024, "{run:#?}");
        let all = hosts(&report)
            .iter()
            .map(|host| host["rank"].as_u64().unwrap());
        assert_eq!(
            all.collect::<Vec<_>>(),
            (0..u64::from(count)).collect::<Vec<_>>()
        );
        // Their records were copies: nothing was lost.
        assert_eq!(folder.names(), [""; 0], "{run:#?}");
    }
}

#[test]
fn a_named_folder_keeps_the_records() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --size=4m --numjobs=2 --record=out --output=report \
               --output-format=json";
    let run = ranks(&folder, 3, job).expect(0);
    assert_eq!(run.out, "");
    let report: Value = serde_json::from_str(&folder.read("report")).unwrap();
    let merged = folder
        .fathom("merge out --output-format=json")
        .expect(0)
        .json();
    assert_eq!(report["jobs"], merged["jobs"]);
    let names = fs::read_dir(folder.path().join("out")).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        ["rank-0000.json", "rank-0001.json", "rank-0002.json"]
    );
}

/// Each of four ranks writes its share of one file or of four; afterwards no block is left out.
#[track_caller]
fn patterns(options: &str, files: &[&str], blocks: usize) {
    let folder = Folder::new();
    let job = format!(
        "--name=w --rw=write --bs=64k --ioengine=psync --buffer_pattern=0x5a --output-format=json \
         --fallocate=none --overwrite=0 {options}"
    );
    let report = ranks(&folder, 4, &job).expect(0).json();
    assert_eq!(ios(&report, 0, "write"), 64, "{options}");
    assert_eq!(folder.names(), files, "{options}");
    for file in files {
        let content = fs::read(folder.path().join(file)).unwrap();
        assert_eq!(content.len(), blocks * 65_536, "{options}");
        assert!(
            content.iter().all(|&byte| byte == 0x5a),
            "{options}: {file}"
        );
    }
}

#[test]
fn ranks_share_the_work_as_the_job_says() {
    patterns(
        "--filename=f.$rank --size=1m",
        &["f.0", "f.1", "f.2", "f.3"],
        16,
    );
    patterns("--filename=f --offset=($rank*1m) --size=1m", &["f"], 64);
    let segments = "--filename=f --offset=($rank*256k) --zonemode=strided --zonerange=256k \
                    --zonesize=256k --zoneskip=(($ranks-1)*256k) --io_size=1m --filesize=4m";
    patterns(segments, &["f"], 64);
}

#[test]
fn a_plan_that_one_rank_refuses_makes_no_file_anywhere() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("d.0")).unwrap();
    fs::create_dir(folder.path().join("d.1")).unwrap();
    let job = "--name=w --rw=write --size=1m --directory=d.$rank";
    let run = ranks(&folder, 3, job);
    assert_eq!((run.code, &*run.out), (Some(2), ""), "{run:#?}");
    assert!(run.err.contains("d.2"), "{run:#?}");
    assert_eq!(folder.names(), ["d.0", "d.1"]);
    for name in ["d.0", "d.1"] {
        let left = fs::read_dir(folder.path().join(name)).unwrap();
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn what_no_rank_can_read_is_told_once() {
    let folder = Folder::new();
    let run = ranks(&folder, 4, "--name=w --rw=wirte --size=1m");
    assert_eq!((run.code, &*run.out), (Some(2), ""), "{run:#?}");
    assert_eq!(run.err.matches("is not a value").count(), 1, "{run:#?}");
    for (switch, why) in [
        ("--rank=0/4", "the launcher has started this as rank 0 of 2"),
        ("--live", "it would show one rank"),
        ("--status-interval=1", "it would show one rank"),
        ("--machine=m.toml", "modelled ranks need no launcher"),
        ("--parse-only", "these arguments run no jobs"),
    ] {
        let run = ranks(
            &folder,
            2,
            &format!("--name=w --ioengine=null --size=1m {switch}"),
        );
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{run:#?}");
        assert!(run.err.contains(why), "{switch}: {run:#?}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told_once() {
    let folder = Folder::new();
    folder.write("taken", "a file");
    let job = "--name=a --ioengine=null --size=4k --record=taken";
    for count in [1, 3] {
        let run = ranks(&folder, count, job);
        assert_eq!((run.code, &*run.out), (Some(2), ""), "{run:#?}");
        assert_eq!(run.err.matches("--record: taken").count(), 1, "{run:#?}");
    }
}

#[test]
fn a_failed_job_of_one_rank_is_the_code_of_all() {
    let folder = Folder::new();
    for rank in 0..3 {
        folder.write(&format!("f.{rank}"), [0; 4096]);
    }
    // A file that verifies, and two that do not.
    let job = "--name=v --size=4k --filename=f.$rank --verify=pattern --verify_pattern=0x00 \
               --rw=read --output-format=json";
    ranks(&folder, 3, job).expect(0);
    folder.write("f.1", [1; 4096]);
    let run = ranks(&folder, 3, job).expect(1);
    let report = run.json();
    assert_eq!(hosts(&report).len(), 3, "{run:#?}");
    assert!(report["jobs"][0]["error"].as_u64() > Some(0), "{run:#?}");
}

/// Runs a job on four ranks that would take ten minutes, but for what a command on rank 2 does.
#[track_caller]
fn ended_by(command: &str, options: &str, code: i32) -> (Run, Folder) {
    let folder = Folder::new();
    let job = format!(
        "[global]\nioengine=null\nsize=1g\ntime_based\nruntime=600\nthinktime=10ms\n{options}\n\
         [a]\nexec_prerun=test $rank != 2 || {command}\n"
    );
    folder.write("job.fio", job);
    let run = ranks(&folder, 4, "job.fio --output-format=json --record=out");
    assert_eq!(run.code, Some(code), "{run:#?}");
    (run, folder)
}

#[test]
fn a_signal_to_one_rank_stops_all() {
    let (run, _folder) = ended_by("kill -INT $PPID", "", 2);
    assert_eq!(hosts(&run.json()).len(), 4, "{run:#?}");
}

#[test]
fn exitall_reaches_all_ranks() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --size=1g --thinktime=10ms --time_based \
               --runtime=(1+$rank*600) --exitall --output-format=json";
    let report = ranks(&folder, 3, job).expect(0).json();
    assert_eq!(hosts(&report).len(), 3);
}

#[test]
fn a_process_of_another_launcher_is_refused() {
    let folder = Folder::new();
    let words = "run --name=a --ioengine=null --size=1m";
    let mut alone = folder.command(env!("CARGO_BIN_EXE_fathom-mpi"), words);
    alone.env("SLURM_STEP_NUM_TASKS", "4");
    as_root(&mut alone);
    let run = Run::of(alone).expect(2);
    let named = run.err.contains("4 processes (`SLURM_STEP_NUM_TASKS`)");
    assert!(named && run.err.contains("rank 0 of 1"), "{run:#?}");
    // The program without MPI, by this machine's launcher.
    let mut plain = mpirun(&folder, 2);
    plain.args([
        env!("CARGO_BIN_EXE_fathom"),
        "run",
        "--name=a",
        "--ioengine=null",
        "--size=1m",
    ]);
    let run = Run::of(plain);
    assert_eq!((run.code, &*run.out), (Some(2), ""), "{run:#?}");
    assert!(run.err.contains("fathom-mpi run"), "{run:#?}");
}

#[test]
fn names_say_which_rank_it_is() {
    let folder = Folder::new();
    let job = "--name=w --ioengine=psync --rw=write --size=64k --bs=64k --output-format=json";
    let named = "--filename=f.$rank.$hostrank.$hostname";
    ranks(&folder, 2, &format!("{job} {named}")).expect(0);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim();
    assert_eq!(
        folder.names(),
        [format!("f.0.0.{host}"), format!("f.1.1.{host}")]
    );
    // All ranks are here.
    let run = ranks(&folder, 2, &format!("{job} --filename=g --rank_shift=node"));
    assert_eq!(run.code, Some(2), "{run:#?}");
    assert!(run.err.contains("all ranks are on one host"), "{run:#?}");
    let shifted = format!("{job} --filename=s.$rank --rank_shift=1 --ranks=0");
    ranks(&folder, 2, &shifted).expect(0);
    assert!(folder.names().contains(&"s.1".to_owned()));
}

#[test]
fn a_rank_keeps_what_it_has_so_far() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --size=1g --rate_iops=1000 --time_based --runtime=600 \
               --record=out --record-every=20ms";
    let mut command = launcher(&folder, 2, job);
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let has = |rank: u32| {
        let path = folder.path().join(format!("out/rank-000{rank}.json"));
        let text = fs::read_to_string(path).unwrap_or_default();
        let record = serde_json::from_str::<Value>(&text).unwrap_or_default();
        record["jobs"][0]["directions"]["read"]["ios"].as_u64() > Some(0)
    };
    while !(has(0) && has(1)) {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on for minutes");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let merged = folder.fathom("merge out");
    assert!(
        merged.code == Some(0) || merged.code == Some(1),
        "{merged:#?}"
    );
    assert!(merged.out.contains("a: (groupid=0"), "{merged:#?}");
}
