//! Ranks of an MPI job on this machine, started by its launcher, or by that which `FATHOM_MPIRUN`
//! names: it must be of the MPI that this was built with.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

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

/// Runs jobs on clients that are this host.
fn clients(folder: &Folder, as_fio: bool, words: &str) -> Run {
    match as_fio {
        true => folder.fio(words),
        false => folder.fathom(&format!("run {words}")),
    }
}

#[test]
fn clients_run_what_is_sent_to_them() {
    let folder = Folder::new();
    folder.write("hosts.list", "# twice\nlocalhost\nlocalhost,9000\n");
    folder.write("job.fio", "[a]\ninclude more.fio\nrw=read\n");
    folder.write("more.fio", "ioengine=null\nsize=4m\n");
    for as_fio in [false, true] {
        let words = "--client=hosts.list --output-format=json --output=report job.fio";
        let run = clients(&folder, as_fio, words).expect(0);
        assert_eq!(run.out, "");
        let report: Value = serde_json::from_str(&folder.read("report")).unwrap();
        let stats = report["client_stats"].as_array().unwrap();
        let of = |at: usize| {
            (
                stats[at]["port"].as_u64(),
                stats[at]["read"]["total_ios"].as_u64(),
            )
        };
        assert_eq!(of(0), (Some(8765), Some(1024)), "{report:#}");
        assert_eq!(of(1), (Some(9000), Some(1024)), "{report:#}");
        assert_eq!(stats[2]["jobname"], "All clients");
        assert_eq!(of(2).1, Some(2048), "{report:#}");
        assert_eq!(stats.len(), 3);
    }
    // Nothing else was left.
    assert_eq!(
        folder.names(),
        ["bin", "hosts.list", "job.fio", "more.fio", "report"]
    );
}

#[test]
fn the_logs_of_clients_have_their_names_and_the_line_their_sum() {
    let folder = Folder::new();
    let words = "--client=localhost --client=localhost --name=a --ioengine=null --rw=read \
                 --rate_iops=1000 --time_based --runtime=8 --size=1m --write_bw_log=P --eta=always";
    let run = clients(&folder, false, words).expect(0);
    assert_eq!(
        folder.names(),
        ["P_bw.1.log.localhost", "P_bw.1.log.localhost.1"]
    );
    // A line is whole from its third second on.
    let mut drawn = run.err.split('\r');
    let line = drawn.rfind(|line| line.contains(": [R(2)]["));
    let line = line.unwrap_or_else(|| panic!("{run:#?}"));
    let iops = line
        .rsplit_once(" IOPS]")
        .and_then(|(before, _)| before.rsplit_once("[r="));
    let iops: f64 = iops.unwrap().1.parse().unwrap();
    // More than those of one client.
    assert!(iops > 1000.0, "{line}");
}

#[test]
fn clients_may_have_a_job_file_each() {
    let folder = Folder::new();
    folder.write("a.fio", "[a]\nioengine=null\nsize=4m\nrw=read\n");
    folder.write(
        "b.fio",
        "[b]\nioengine=null\nsize=2m\nrw=write\n[c]\nstonewall\nioengine=null\nsize=1m\n",
    );
    let words = "--client=localhost a.fio --client=localhost b.fio --output-format=json,normal";
    let run = clients(&folder, false, words).expect(0);
    let text = run
        .out
        .split_once("\n{")
        .map_or(&*run.out, |(_, json)| json);
    let end = text.rfind("\n}").unwrap();
    let json = format!("{{{}", &text.trim_start_matches('{')[..end + 1]);
    let report: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{run:#?}"));
    let stats = report["client_stats"].as_array().unwrap();
    let names: Vec<_> = stats.iter().map(|job| &job["jobname"]).collect();
    assert_eq!(names, ["a", "b", "c", "All clients"]);
    assert_eq!(stats[3]["write"]["total_ios"], 512);
    for name in ["a: (", "b: (", "c: ("] {
        assert!(run.out.contains(name), "{run:#?}");
    }
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
fn files_of_clients_begin_with_their_names() {
    for (as_fio, unique, name) in [
        (true, "", "localhost.w.0.0"),
        (false, "--unique_filename=0", "w.0.0"),
    ] {
        let folder = Folder::new();
        let words = format!(
            "--client=localhost --name=w --directory={} --rw=write --size=64k --bs=64k {unique}",
            folder.path().display()
        );
        clients(&folder, as_fio, &words).expect(0);
        let names = folder.names();
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
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

/// Signals the user's program of a run of clients that would take ten minutes, once its jobs run,
/// and waits for it.
fn signalled(folder: &Folder, signal: &str) -> (Option<i32>, String) {
    signalled_at(folder, signal, |child| child.to_string())
}

/// As [`signalled`], but for the process, given that of the user's program.
fn signalled_at(
    folder: &Folder,
    signal: &str,
    whom: impl Fn(u32) -> String,
) -> (Option<i32>, String) {
    let words = "run --client=localhost --name=a --ioengine=null --size=1g --thinktime=10ms \
                 --time_based --runtime=600 --exec_prerun=touch\\ $PWD/runs --output=report";
    let words = words.replace("$PWD", folder.path().to_str().unwrap());
    let mut command = folder.command("sh", "-c");
    // Under `nohup` everything that a test starts would ignore SIGHUP.
    let program = format!("env --default-signal=HUP {}", env!("CARGO_BIN_EXE_fathom"));
    command.arg(format!("exec {program} {words}"));
    command.env("TMPDIR", folder.path());
    as_root(&mut command);
    let mut child = command.spawn().unwrap();
    while !folder.path().join("runs").exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on for minutes");
        std::thread::yield_now();
    }
    let id = whom(child.id());
    let sent = Command::new("kill").args(["-s", signal, &id]).status();
    assert!(sent.unwrap().success());
    let code = child.wait().unwrap().code();
    // The launcher may go on for a while.
    let begun = fathom_sys::clock::wall_ms();
    let is_there =
        || fs::read_to_string(folder.path().join("report")).is_ok_and(|text| !text.is_empty());
    while !is_there() && fathom_sys::clock::wall_ms() - begun < 60_000 {
        std::thread::yield_now();
    }
    (
        code,
        fs::read_to_string(folder.path().join("report")).unwrap_or_default(),
    )
}

#[test]
fn clients_that_were_stopped_are_not_done() {
    for signal in ["INT", "TERM"] {
        let (code, report) = signalled(&Folder::new(), signal);
        assert_eq!(code, Some(2), "{report}");
        assert!(report.contains("a: (groupid=0"), "{report}");
    }
}

/// As a launcher does if it has lost a rank.
#[test]
fn a_signal_to_rank_0_of_clients_stops_all() {
    let folder = Folder::new();
    let here = folder.path().to_str().unwrap();
    let rank_0 = |_| {
        let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap());
        let is_rank_0 = |entry: &fs::DirEntry| {
            let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let mut words = line.split('\0');
            let program = words
                .next()
                .is_some_and(|word| word.ends_with("fathom-mpi"));
            program && words.next() == Some("conduct") && line.contains(here)
        };
        let found = processes.into_iter().find(is_rank_0).expect("rank 0");
        found.file_name().into_string().unwrap()
    };
    let (code, report) = signalled_at(&folder, "TERM", rank_0);
    assert_eq!(code, Some(2), "{report}");
    assert!(report.contains("a: (groupid=0"), "{report}");
}

#[test]
fn clients_stop_when_the_users_program_is_killed() {
    for signal in ["KILL", "HUP"] {
        let folder = Folder::new();
        let (code, report) = signalled(&folder, signal);
        assert_eq!(code, None);
        assert!(report.contains("a: (groupid=0"), "{report}");
        let begun = fathom_sys::clock::wall_ms();
        let left = || {
            folder
                .names()
                .iter()
                .any(|name| name.starts_with("fathom-client"))
        };
        while left() && fathom_sys::clock::wall_ms() - begun < 60_000 {
            std::thread::yield_now();
        }
        assert!(!left(), "{:?}", folder.names());
    }
}

/// Puts programs of their own into a folder: this one, and ranks of which some do something else.
fn with_odd_ranks(folder: &Folder, script: &str) {
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    // A link of another kind would lead back to the folder of the program.
    let there = fs::hard_link(env!("CARGO_BIN_EXE_fathom"), own.join("fathom"));
    if there.is_err() {
        fs::copy(env!("CARGO_BIN_EXE_fathom"), own.join("fathom")).unwrap();
    }
    let rank = env!("CARGO_BIN_EXE_fathom-mpi");
    let script = format!("#!/bin/sh\n{script}\nexec {rank} \"$@\"\n");
    fs::write(own.join("fathom-mpi"), script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(own.join("fathom-mpi"), mode).unwrap();
}

#[test]
fn a_host_that_does_not_start_is_named() {
    let folder = Folder::new();
    let rank = "test ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} != 2 || sleep 600";
    with_odd_ranks(&folder, rank);
    let program = folder.path().join("own/fathom");
    let words = "run --client=localhost --client=127.0.0.1 --client=localhost --name=a \
                 --ioengine=null --size=1m";
    let mut command = folder.command(program.to_str().unwrap(), words);
    command.env("FATHOM_CLIENT_PATIENCE", "5");
    as_root(&mut command);
    let begun = fathom_sys::clock::wall_ms();
    let run = Run::of(command).expect(2);
    assert_eq!(run.out, "");
    let named = "--client: gave up after 5 s: no rank has started on 127.0.0.1\nhint: ";
    assert!(run.err.contains(named), "{run:#?}");
    // The launcher has two seconds to end.
    assert!(fathom_sys::clock::wall_ms() - begun < 60_000, "{run:#?}");
    assert!(!run.err.contains('\u{1e}'), "{run:#?}");
}

#[test]
fn a_launcher_that_reaches_no_host_is_ended() {
    let folder = Folder::new();
    let words = "run --client=localhost --client=b --name=a --ioengine=null --size=1m";
    for (script, want) in [
        (
            "sleep 600",
            "gave up after 1 s: the launcher has started no rank: localhost, b\n",
        ),
        (
            "echo there >&2; sleep 600",
            "there\nfathom: --client: gave up",
        ),
    ] {
        let script = format!(
            "#!/bin/sh\ntest $1 = --version && echo mpirun '(Open MPI)' 4 && exit\n{script}\n"
        );
        folder.write("launcher", script);
        let launcher = folder.path().join("launcher");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&launcher, mode).unwrap();
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
        command.env("FATHOM_MPIRUN", &launcher);
        command.env("FATHOM_CLIENT_PATIENCE", "1");
        let run = Run::of(command).expect(2);
        assert!(run.err.contains(want), "{run:#?}");
    }
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.env("FATHOM_CLIENT_PATIENCE", "0");
    let run = Run::of(command).expect(2);
    assert!(run.err.contains("FATHOM_CLIENT_PATIENCE"), "{run:#?}");
}

#[test]
fn a_launcher_that_never_tells_its_version_is_ended() {
    let folder = Folder::new();
    folder.write("launcher", "#!/bin/sh\nyes\n");
    let launcher = folder.path().join("launcher");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&launcher, mode).unwrap();
    let words = "run --client=localhost --name=a --ioengine=null --size=1m";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.env("FATHOM_MPIRUN", &launcher);
    let run = Run::of(command).expect(2);
    assert!(run.err.contains("no answer for 20 s\nhint: "), "{run:#?}");
}

#[test]
fn a_report_of_clients_that_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    let line = format!(
        "exec {} run --client=localhost --name=a --ioengine=null --size=1m >/dev/full",
        env!("CARGO_BIN_EXE_fathom")
    );
    let mut command = folder.command("sh", "-c");
    command.arg(line);
    as_root(&mut command);
    let run = Run::of(command).expect(2);
    assert!(
        run.err.contains("standard output: No space left"),
        "{run:#?}"
    );
}

#[test]
fn clients_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("empty", "# nobody\n");
    folder.write("j.fio", "[a]\nioengine=null\nsize=1m\n");
    for (words, why) in [
        ("--client=-oProxyCommand=x j.fio", "is not a host name"),
        ("--client=empty j.fio", "the list names no host"),
        ("--client=sock:/tmp/s j.fio", "not a socket"),
        ("--client=a none.fio", "none.fio"),
        ("--client=a j.fio --rank=0/2", "the launcher gives the rank"),
        ("--server", "no server is needed"),
    ] {
        let run = clients(&folder, false, words).expect(2);
        assert!(run.err.contains(why), "{words}: {run:#?}");
    }
}
