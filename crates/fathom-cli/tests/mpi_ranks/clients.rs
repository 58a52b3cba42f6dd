//! Ranks that `--client` starts on hosts, which are this one.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::as_root;
use crate::common::{Folder, Run};

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
