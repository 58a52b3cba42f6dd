//! Output files named by the user: only regular files are replaced, nothing is touched before the
//! plan can run, and no result is lost.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::{Folder, Run};

const FATHOM: &str = env!("CARGO_BIN_EXE_fathom");
const NULL: &str = "--name=t --ioengine=null --rw=read --size=64k";
const LOG: &str = "1, 2, 0, 4096, 0\n2, 3, 0, 4096, 0\n";

fn text(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

/// Creates a FIFO; returns whether that was possible.
fn fifo(folder: &Folder, name: &str) -> bool {
    let made = Command::new("mkfifo")
        .arg(folder.path().join(name))
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped: no mkfifo");
        return false;
    }
    true
}

#[test]
fn a_fifo_is_no_record_and_no_log() {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("out")).unwrap();
    if !fifo(&folder, "pipe") || !fifo(&folder, "out/rank-0000.json") {
        return;
    }
    for words in [
        "merge pipe",
        "merge out",
        "run --name=a --ioengine=null --read_iolog=pipe",
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains("not a regular file"), "{words}: {run:#?}");
    }
}

/// Holds a lease on a file: to open it for reading takes 45 s.
const LEASE: &str = "\
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: open('asked', 'w').close())
held = os.open('slow.json', os.O_WRONLY | os.O_CREAT)
try:
    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError as error:
    sys.exit(str(error))
open('held', 'w').close()
while True:
    signal.pause()";

#[test]
fn an_interrupt_ends_the_wait_for_a_record() {
    let folder = Folder::new();
    let mut holder = folder.command("python3", "-c");
    holder.arg(LEASE).stderr(Stdio::piped());
    let Ok(holder) = holder.spawn() else {
        println!("skipped: no python3");
        return;
    };
    let mut holder = Guard(Some(holder));
    let begun = folder.path().join("held");
    while !begun.exists() {
        let child = holder.0.as_mut().unwrap();
        if child.try_wait().unwrap().is_some() {
            println!("skipped: no lease");
            return;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    let run = interrupted(&folder, "merge slow.json", "asked");
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.out, "");
}

/// Starts the program, waits until the file `begun` exists, interrupts the program once, and
/// returns the files it left. Kills it, and fails the test, if it misses a generous deadline.
fn interrupted(folder: &Folder, words: &str, begun: &str) -> Run {
    let mut command = folder.command(FATHOM, words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Guard(Some(command.spawn().unwrap()));
    let id = child.0.as_ref().unwrap().id().to_string();
    let begun = folder.path().join(begun);
    for _ in 0..3000 {
        if begun.exists() {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    assert!(begun.exists(), "{words}: never began");
    let kill = |signal: &str| Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(kill("-INT").success());
    let ended = child.0.take().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(ended.wait_with_output()));
    match receiver.recv_timeout(Duration::from_secs(20)) {
        Ok(output) => Run::from(output.unwrap()),
        Err(_) => {
            kill("-KILL");
            panic!("{words}: still waiting");
        }
    }
}

/// Child process, killed if the test fails.
struct Guard(Option<Child>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _gone = child.kill();
            let _status = child.wait();
        }
    }
}

#[test]
fn failed_conversion_keeps_what_was_there() {
    let folder = Folder::new();
    folder.write("good_lat.1.log", LOG);
    folder.write("bad.log", "1, 2, 0, 4096, 0\n1, 2, x, 4096, 0\n");
    folder.write("kept.csv", "earlier");
    symlink("/dev/full", folder.path().join("full.csv")).unwrap();
    symlink("kept.csv", folder.path().join("link.csv")).unwrap();
    for (from, to) in [
        ("bad.log", "kept.csv"),
        ("bad.log", "link.csv"),
        ("good_lat.1.log", "full.csv"),
    ] {
        folder.fathom(&format!("log convert {from} {to}")).expect(2);
        assert_eq!(text(&folder, "kept.csv"), "earlier");
    }
    let names = [
        "bad.log",
        "full.csv",
        "good_lat.1.log",
        "kept.csv",
        "link.csv",
    ];
    assert_eq!(folder.names(), names);
    assert!(Path::new("/dev/full").exists());
    // A link is followed: it stays, and what it leads to is written.
    folder
        .fathom("log convert good_lat.1.log link.csv")
        .expect(0);
    assert!(folder.path().join("link.csv").is_symlink());
    assert!(text(&folder, "kept.csv").starts_with("time_ms,lat_ns,"));
}

#[test]
fn device_node_is_written_and_stays() {
    let folder = Folder::new();
    folder.write("good_lat.1.log", LOG);
    // As /dev/full, but nobody misses this one.
    let node = folder.path().join("full.csv");
    let made = Command::new("mknod")
        .arg(&node)
        .args(["c", "1", "7"])
        .output();
    let full = fs::OpenOptions::new().write(true).open(&node);
    if !made.is_ok_and(|made| made.status.success()) || full.is_err() {
        println!("skipped: no device node can be made here");
        return;
    }
    let stays = || {
        assert!(
            fs::symlink_metadata(&node)
                .unwrap()
                .file_type()
                .is_char_device()
        )
    };
    folder
        .fathom("log convert good_lat.1.log full.csv")
        .expect(2);
    stays();
    folder.fathom("table hdd-single --svg full.csv").expect(2);
    stays();
    folder
        .fathom(&format!("run {NULL} --output=full.csv"))
        .expect(2);
    stays();
    let words = format!("run {NULL} --save-distribution=full.csv");
    folder.fathom(&words).expect(2);
    stays();
}

#[test]
fn block_device_is_no_output_file() {
    let folder = Folder::new();
    folder.write("good_lat.1.log", LOG);
    let node = folder.path().join("disk");
    // A number that no driver has: nothing can be lost.
    let made = Command::new("mknod")
        .arg(&node)
        .args(["b", "240", "99"])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: no device node can be made here");
        return;
    }
    symlink("disk", folder.path().join("p_lat.1.log")).unwrap();
    for words in [
        format!("run {NULL} --output=disk"),
        format!("run {NULL} --save-distribution=disk"),
        format!("run {NULL} --write_lat_log=p"),
        "log convert good_lat.1.log disk".to_owned(),
        "table hdd-single --svg disk".to_owned(),
    ] {
        let run = folder.fathom(&words).expect(2);
        assert!(run.err.contains("is a block device"), "{words}: {run:#?}");
    }
}

#[test]
fn log_is_not_converted_onto_itself() {
    let folder = Folder::new();
    let source = folder.write("good_lat.1.log", LOG);
    fs::hard_link(&source, folder.path().join("hard.csv")).unwrap();
    symlink("good_lat.1.log", folder.path().join("soft.csv")).unwrap();
    for to in ["good_lat.1.log", "hard.csv", "soft.csv"] {
        let run = folder
            .fathom(&format!("log convert good_lat.1.log {to}"))
            .expect(2);
        assert!(run.err.contains("replaced by itself"), "{run:#?}");
        assert_eq!(text(&folder, "good_lat.1.log"), LOG);
    }
    if fifo(&folder, "pipe") {
        let run = folder.fathom("log convert pipe out.csv").expect(2);
        assert!(run.err.contains("pipe: is not a regular file"), "{run:#?}");
    }
}

#[test]
fn plot_follows_links() {
    let folder = Folder::new();
    symlink("plot.svg", folder.path().join("link.svg")).unwrap();
    for _ in 0..2 {
        folder.fathom("table hdd-single --svg link.svg").expect(0);
        assert!(folder.path().join("link.svg").is_symlink());
        assert!(text(&folder, "plot.svg").contains("<svg"));
    }
    assert_eq!(folder.names(), ["link.svg", "plot.svg"]);
}

#[test]
fn report_that_cannot_be_written_goes_to_standard_output() {
    let folder = Folder::new();
    symlink("/dev/full", folder.path().join("full")).unwrap();
    let words = format!("{NULL} --output-format=json --output=full");
    for (run, code) in [
        (folder.fathom(&format!("run {words}")), 2),
        (folder.fio(&words), 1),
    ] {
        let run = run.expect(code);
        assert_eq!(run.json()["jobs"][0]["read"]["total_ios"], 16);
        let why = "--output: full: No space left on device";
        assert!(run.err.contains(why), "{run:#?}");
        assert!(run.err.contains("on standard output instead"), "{run:#?}");
    }
    assert!(folder.path().join("full").is_symlink());
}

#[test]
fn a_record_that_cannot_be_written_is_kept_elsewhere() {
    let folder = Folder::new();
    symlink("/dev/full", folder.path().join("full")).unwrap();
    let run = folder
        .fathom(&format!("run {NULL} --record=full"))
        .expect(2);
    let kept = run.err.split("the record was kept as ").nth(1);
    let kept = kept.unwrap_or_else(|| panic!("{run:#?}"));
    let kept = fs::read_to_string(folder.path().join(kept.lines().next().unwrap())).unwrap();
    let record: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(record["jobs"].as_array().unwrap().len(), 1);
}

/// A report is not lost because another output cannot be saved.
#[test]
fn the_report_is_written_though_another_file_fails() {
    let folder = Folder::new();
    symlink("/dev/full", folder.path().join("full")).unwrap();
    let words =
        format!("run {NULL} --output-format=json --output=report.json --save-distribution=full");
    let run = folder.fathom(&words).expect(2);
    assert!(run.err.contains("--save-distribution: full: "), "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&text(&folder, "report.json")).unwrap();
    assert_eq!(report["jobs"][0]["read"]["total_ios"], 16);
}

#[test]
fn interrupt_ends_the_wait_for_a_reader() {
    let folder = Folder::new();
    if !fifo(&folder, "pipe") {
        return;
    }
    // The job is over, or about to be, when its file is there.
    let words = "run --name=t --filename=data --rw=write --size=64k --output-format=json \
                 --output=pipe";
    let run = interrupted(&folder, words, "data").expect(2);
    assert!(run.json()["jobs"][0]["write"]["total_ios"].is_u64());
    assert!(run.err.contains("no process reads it"), "{run:#?}");
    let pipe = fs::symlink_metadata(folder.path().join("pipe")).unwrap();
    assert!(pipe.file_type().is_fifo());
}

#[test]
fn interrupt_ends_the_wait_for_a_reader_of_a_log() {
    let folder = Folder::new();
    for name in ["b_iops.1.log", "agg-write_bw.log"] {
        if !fifo(&folder, name) {
            return;
        }
    }
    // The log before it has been opened.
    let words = "run --name=t --filename=data --rw=write --size=64k --write_bw_log=a \
                 --write_iops_log=b --output=report";
    let run = interrupted(&folder, words, "a_bw.1.log").expect(2);
    assert!(run.err.contains("no process reads it"), "{run:#?}");
    let words = "run --name=t --filename=data --rw=write --size=64k --bandwidth-log=agg";
    let run = interrupted(&folder, words, "agg-read_bw.log").expect(2);
    assert!(run.err.contains("no process reads it"), "{run:#?}");
    assert_eq!(folder.names(), ["agg-write_bw.log", "b_iops.1.log"]);
}

#[test]
fn interrupt_ends_the_wait_for_a_job_file() {
    let folder = Folder::new();
    if !fifo(&folder, "pipe") {
        return;
    }
    folder.write("job.fio", "[t]\nioengine=null\nsize=64k\ninclude pipe\n");
    for words in [
        "run job.fio",
        "run pipe",
        "run --machine=pipe --name=t --size=1m",
        "lint pipe",
        "peak --against pipe job.fio",
    ] {
        // As a shell makes commands of a script that end with `&` ignore the interrupt.
        let script = format!("trap '' INT; exec {FATHOM} {words}");
        let mut command = folder.command("sh", "-c");
        let mut child = Guard(Some(command.arg(script).spawn().unwrap()));
        let child = child.0.as_mut().unwrap();
        let ended = (0..1000).find_map(|_| {
            let id = child.id().to_string();
            // One that comes before the program has begun is lost.
            Command::new("kill").args(["-INT", &id]).status().unwrap();
            std::thread::park_timeout(Duration::from_millis(20));
            child.try_wait().unwrap()
        });
        let signal = ended.and_then(|status| status.signal());
        assert_eq!(signal, Some(2), "{words}: {ended:?}");
    }
}

#[test]
fn pipe_for_the_output_of_a_command_is_not_waited_for() {
    let folder = Folder::new();
    for name in ["t.prerun.txt", "t.postrun.txt"] {
        if !fifo(&folder, name) {
            return;
        }
    }
    let words = format!("30 {FATHOM} run {NULL} --exec_prerun=true --exec_postrun=true");
    Run::from(folder.command("timeout", &words).output().unwrap()).expect(0);
}

#[test]
fn pipe_is_not_measured() {
    let folder = Folder::new();
    if !fifo(&folder, "pipe") {
        return;
    }
    let words = format!("30 {FATHOM} table log-entries pipe");
    let run = Run::from(folder.command("timeout", &words).output().unwrap()).expect(2);
    assert!(run.err.contains("neither a regular file"), "{run:#?}");
}

#[test]
fn trigger_that_is_no_regular_file_stays() {
    let folder = Folder::new();
    symlink("/dev/null", folder.path().join("link")).unwrap();
    folder.write("file", "");
    for (name, stays) in [("link", true), ("file", false)] {
        let words = "run --name=t --ioengine=null --rw=read --size=1g --rate_iops=10";
        folder
            .fathom(&format!("{words} --trigger-file={name}"))
            .expect(0);
        assert_eq!(folder.path().join(name).is_symlink(), stays);
    }
    assert_eq!(folder.names(), ["link"]);
}

#[test]
fn failed_layout_touches_no_earlier_file() {
    let folder = Folder::new();
    let earlier = [
        "l_bw.1.log",
        "l.dropped.json",
        "agg-read_bw.log",
        "report",
        "saved.toml",
    ];
    for name in earlier {
        folder.write(name, "earlier");
    }
    symlink("nowhere", folder.path().join("agg-trim_bw.log")).unwrap();
    let words = "run --name=t --filename=data --rw=read --size=4m --write_bw_log=l \
                 --write_iops_log=l --bandwidth-log=agg --output=report \
                 --save-distribution=saved.toml";
    // Laid out, the file would be too large.
    let script = format!("ulimit -f 64; exec {FATHOM} {words}");
    let mut command = folder.command("sh", "-c");
    let run = Run::from(command.arg(script).output().unwrap()).expect(2);
    assert!(run.err.contains("data"), "{run:#?}");
    for name in earlier {
        assert_eq!(text(&folder, name), "earlier", "{name}: {run:#?}");
    }
    let mut names = [earlier.as_slice(), &["agg-trim_bw.log"]].concat();
    names.sort_unstable();
    assert_eq!(folder.names(), names, "{run:#?}");
}

#[test]
fn files_that_only_are_laid_out_leave_logs_alone() {
    let folder = Folder::new();
    folder.write("l_bw.1.log", "earlier");
    let words = "run --name=t --filename=data --rw=read --size=64k --create_only=1 \
                 --write_bw_log=l --write_iops_log=l";
    folder.fathom(words).expect(0);
    assert_eq!(text(&folder, "l_bw.1.log"), "earlier");
    assert_eq!(folder.names(), ["data", "l_bw.1.log"]);
}

#[test]
fn many_logs_are_opened_up_to_the_hard_limit() {
    let folder = Folder::new();
    let limited = |limit: &str| {
        let words = format!("{NULL} --numjobs=32 --write_lat_log=l --write_bw_log=l");
        let script = format!("ulimit {limit}; exec {FATHOM} run {words} --output=report");
        let mut command = folder.command("sh", "-c");
        Run::from(command.arg(script).output().unwrap())
    };
    // Of 32 jobs with four files each.
    let run = limited("-n 64").expect(2);
    assert!(
        run.err
            .contains("too many open files (this process may open 64 at once)")
    );
    assert!(run.err.contains("hint: raise the hard limit"), "{run:#?}");
    assert_eq!(
        run.err.matches("too many open files").count(),
        1,
        "{run:#?}"
    );
    assert_eq!(folder.names(), Vec::<String>::new(), "{run:#?}");
    limited("-S -n 64").expect(0);
    assert_eq!(folder.names().len(), 32 * 4 + 1);
}

/// fio writes errors to the file of `--output`, unless the switch follows the first error; a
/// refused command line leaves such a file only where fio does.
#[test]
fn refused_command_line_leaves_no_report() {
    let folder = Folder::new();
    folder.write("bad.fio", "[t]\nrw=read\nsize=1m\nbadopt=1\n");
    folder.write("nosize.fio", "[t]\nrw=read\nfilename=data\n");
    let names = folder.names();
    let there = |words: &str| {
        let file = folder.path().join("report");
        let there = file.exists();
        let _may_be_missing = fs::remove_file(file);
        let names: Vec<_> = folder
            .names()
            .into_iter()
            .filter(|name| name != "bin")
            .collect();
        assert_eq!(names, ["bad.fio", "nosize.fio"], "{words}");
        there
    };
    assert_eq!(names.len(), 2);
    for (words, in_fio) in [
        ("--output=report --name=t --nonsense=1", true),
        ("--name=t --nonsense=1 --output=report", false),
        ("--output=report --output-format=nope bad.fio", true),
        ("--output-format=nope --output=report bad.fio", false),
        ("--bogus --output=report bad.fio", false),
        ("bad.fio --output=report", true),
        ("--output=report missing.fio", true),
        ("--output=report nosize.fio", true),
        (
            "--output=report --name=t --rw=read --size=1m --filename=.",
            true,
        ),
        (
            "--output=report --name=t --rw=read --size=1m --write_bw_log=no/where",
            true,
        ),
        (
            "--output=report --name=t --rw=read --size=1m --bandwidth-log=no/where",
            true,
        ),
    ] {
        let run = folder.fathom(&format!("run {words}")).expect(2);
        assert!(!there(words) && !run.err.is_empty(), "{words}: {run:#?}");
        let run = folder.fio(words).expect(1);
        assert_eq!(there(words), in_fio, "{words}: {run:#?}");
        assert!(!run.err.is_empty(), "{words}: {run:#?}");
    }
    // One that was there stays as it was.
    folder.write("report", "earlier");
    folder.fathom("run --output=report nosize.fio").expect(2);
    assert_eq!(text(&folder, "report"), "earlier");
}

/// As in fio, except that fio's JSON shows no error, and ours the job's.
#[test]
fn job_whose_file_must_not_be_made_fails_alone_under_fio_s_name() {
    let folder = Folder::new();
    let words = "--output-format=json --name=a --rw=read --size=64k --filename=missing \
                 --allow_file_create=0 --numjobs=2 --name=b --ioengine=null --size=64k";
    let run = folder.fio(words).expect(2);
    let jobs = run.json()["jobs"].as_array().unwrap().clone();
    let ops: Vec<_> = jobs
        .iter()
        .map(|job| (job["error"].as_i64(), job["read"]["total_ios"].as_u64()))
        .collect();
    let (failed, done) = ((Some(2), Some(0)), (Some(0), Some(16)));
    assert_eq!(ops, [failed, failed, done]);
    assert!(run.err.contains("missing: No such file"), "{run:#?}");
    let made = words.replace("rw=read", "rw=write --create_on_open=1");
    folder.fio(&made).expect(2);
    assert_eq!(folder.names(), ["bin"]);
    let run = folder.fathom(&format!("run {words}")).expect(2);
    assert!(
        run.err.contains("allow_file_create=0 forbids creating it"),
        "{run:#?}"
    );
    assert_eq!(run.out.matches("{").count(), 0);
}

#[test]
fn report_keeps_owner_and_other_names_of_its_file() {
    let folder = Folder::new();
    let report = folder.write("report", "earlier, and longer ".repeat(1000));
    fs::hard_link(&report, folder.path().join("other")).unwrap();
    folder
        .fathom(&format!("run {NULL} --output=report"))
        .expect(0);
    assert_eq!(text(&folder, "report"), text(&folder, "other"));
    assert_eq!(fs::metadata(&report).unwrap().nlink(), 2);
    assert_eq!(folder.names(), ["other", "report"]);
}
