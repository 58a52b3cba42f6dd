//! `fathom lab` on this machine: services beside runs, fio, faults of the runs, interruptions.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Folder, Run};

/// Returns a command with a machine lock and temporary files of the test's own.
fn command(folder: &Folder, words: &str) -> Command {
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.env("TMPDIR", folder.path());
    command
}

fn lab(folder: &Folder, words: &str) -> Run {
    Run::of(command(folder, words))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Waits for an event of another process: half a minute at most.
#[track_caller]
fn wait_for<T>(what: &str, mut event: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = event() {
            return found;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("waited in vain for {what}");
}

fn is_alive(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// Returns a text without its line breaks.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has_fio() -> bool {
    let version = Command::new("fio").arg("--version").output();
    // A link of that name may lead to Fathom.
    let is_fio = |version: &[u8]| !String::from_utf8_lossy(version).contains("-fathom-");
    let has_fio = version.is_ok_and(|output| output.status.success() && is_fio(&output.stdout));
    if !has_fio {
        println!("skipped: needs fio");
    }
    has_fio
}

/// A job that ends at once, followed by what a test adds.
const JOB: &str = r#"
[lab]
name = "real"
[job]
ioengine = "null"
rw = "randread"
size = "1g"
number_ios = 200
"#;

const TWO_RUNS: &str = "[judge]\nrepeats = { min = 2, max = 2 }\nshow = [\"read.iops\"]\n";

#[test]
fn a_target_is_started_beside_each_run_and_tells_its_numbers() {
    let folder = Folder::new();
    let port = free_port();
    folder.write(
        "target.toml",
        format!(
            r#"
[lab]
name = "target"
[service.target]
command = """fathom target --null 1G --threads 1 --listen 127.0.0.1:{port} --socket t.sock \
             --buffers ${{buffers}}"""
ready = {port}
stats = "fathom target stats --json --socket t.sock"
arguments = {{ buffers = 8 }}
[job]
ioengine = "nvme_tcp"
filename = """trtype=tcp adrfam=ipv4 traddr=127.0.0.1 trsvcid={port} \
              subnqn=nqn.2026-01.io.fathom:target ns=1"""
rw = "randread"
bs = "128k"
number_ios = 50
thread = true
[variants]
few = {{}}
many = {{ service = {{ target = {{ buffers = 16 }} }} }}
[judge]
baseline = "few"
repeats = {{ min = 6, max = 6 }}
metrics = {{ "service.target.threads.0.commands.reads" = {{ tolerance = "5%", better = "less" }} }}
show = ["service.target.threads.0.granted"]
"#
        ),
    );
    let run = lab(&folder, "lab target.toml --json");
    let table = run.expect(0).json();
    let row = &table["rows"][0];
    let of = |variant: &str, key: &str| &row[format!("{variant}_service_target_threads_0_{key}")];
    assert_eq!(*of("few", "commands_reads"), 50.0, "{row}");
    assert_eq!(*of("many", "commands_reads_verdict"), "same", "{row}");
}

#[test]
fn a_service_that_ends_fails_the_run_with_its_last_words() {
    let folder = Folder::new();
    let service = "[service.disk]\nready = \"up\"\n\
                   command = \"sh -c 'echo up; sleep 0.1; echo disk is gone; exit 4'\"\n";
    let hangs = JOB.replace("number_ios = 200", "time_based = true\nruntime = 1000");
    folder.write("dies.toml", format!("{hangs}{TWO_RUNS}{service}"));
    let run = lab(&folder, "lab dies.toml").expect(1);
    let want = "service `disk` ended during the run with exit status: 4; its last lines: up / disk \
                is gone";
    assert_eq!(run.err.matches(want).count(), 3, "{}", run.err);
    assert!(unwrapped(&run.out).contains(want), "{}", run.out);
    let never = "[service.disk]\ncommand = \"no-such-program --x\"\n";
    folder.write(
        "never.toml",
        format!("{JOB}{TWO_RUNS}{never}ready = \"up\"\n"),
    );
    let run = lab(&folder, "lab never.toml").expect(1);
    assert!(run.err.contains("ended before it was ready"), "{}", run.err);
    assert!(run.err.contains("no-such-program"), "{}", run.err);
}

#[test]
fn services_have_no_part_in_virtual_time() {
    let folder = Folder::new();
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                   [device.constant]\nlatency_us = 100\n";
    folder.write("m.toml", machine);
    folder.write(
        "real.toml",
        format!("{JOB}{TWO_RUNS}[service.s]\ncommand = \"touch ran\"\n"),
    );
    let run = lab(&folder, "lab real.toml --rehearse m.toml").expect(2);
    assert!(
        run.err.contains("a service runs in real time"),
        "{}",
        run.err
    );
    assert!(run.err.contains("real.toml:12:"), "{}", run.err);
    let run = lab(&folder, "lab real.toml --no-exec").expect(2);
    assert!(run.err.contains("touch ran"), "{}", run.err);
    assert_eq!(folder.names(), ["m.toml", "real.toml"]);
}

#[test]
fn commands_clean_up_whatever_happened_before() {
    let folder = Folder::new();
    let run = "[run]\nbefore = [\"false\"]\n\
               after = [\"echo one >> after\", \"false\", \"echo two >> after\"]\n";
    folder.write("fails.toml", format!("{JOB}{TWO_RUNS}{run}"));
    let failed = lab(&folder, "lab fails.toml").expect(1);
    assert!(failed.out.contains("`false` failed"), "{}", failed.out);
    // Of three attempts.
    assert_eq!(folder.read("after"), "one\ntwo\n".repeat(3));
    // What a command leaves in the background holds nothing up.
    let run =
        "[run]\nbefore = \"sleep 1000 & echo $! > sleeper\"\nafter = \"kill $(cat sleeper)\"\n";
    folder.write("daemon.toml", format!("{JOB}{TWO_RUNS}{run}"));
    lab(&folder, "lab daemon.toml").expect(0);
    assert!(!is_alive(folder.read("sleeper").trim()));
}

/// A run that hangs until there is a file `go`, and says its process's number before.
const HANGS: &str =
    "exec_prerun = \"test -e go || (echo $PPID > new && mv new begun && sleep 1000)\"\n";

#[test]
fn a_run_that_hangs_is_ended() {
    let folder = Folder::new();
    let run = "[run]\ntimeout = \"300ms\"\n";
    folder.write("hangs.toml", format!("{JOB}{HANGS}{TWO_RUNS}{run}"));
    let run = lab(&folder, "lab hangs.toml").expect(1);
    assert!(
        unwrapped(&run.out).contains("the run did not end within `timeout`"),
        "{}",
        run.out
    );
}

/// Starts a lab whose run hangs; returns it and the process of the run.
fn begun(folder: &Folder) -> (Child, String) {
    let mut command = command(folder, "lab hangs.toml");
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let begun = folder.path().join("begun");
    let process = wait_for("the run", || std::fs::read_to_string(&begun).ok());
    std::fs::remove_file(begun).unwrap();
    (child.unwrap(), process.trim().to_owned())
}

fn send(signal: &str, process: u32) {
    let process = process.to_string();
    let sent = Command::new("kill").args(["-s", signal, &process]).status();
    assert!(sent.unwrap().success());
}

fn states(folder: &Folder) -> String {
    let query = "history sql SELECT~state,count(*)~FROM~run~GROUP~BY~state --json";
    let mut command = command(folder, "history sql");
    command.arg(query.split(' ').nth(2).unwrap().replace('~', " "));
    Run::of(command).expect(0).out
}

/// Ends a lab during its first run by a signal, and lets it go on.
fn goes_on(program: &str, signal: &str) {
    let folder = Folder::new();
    let text = format!("{JOB}{HANGS}{TWO_RUNS}[run]\nprogram = \"{program}\"\n");
    folder.write("hangs.toml", text);
    let (mut lab_process, process) = begun(&folder);
    assert!(is_alive(&process));
    send(signal, lab_process.id());
    let status = lab_process.wait().unwrap();
    assert_eq!(status.code(), (signal == "INT").then_some(2));
    wait_for("the end of the run", || (!is_alive(&process)).then_some(()));
    folder.write("go", "");
    lab(&folder, "lab hangs.toml").expect(0);
    let states = states(&folder);
    assert!(states.contains("cut"), "{states}");
    assert!(states.contains("done"), "{states}");
}

#[test]
fn an_interrupted_run_ends_and_the_lab_goes_on() {
    goes_on(env!("CARGO_BIN_EXE_fathom"), "INT");
    goes_on(env!("CARGO_BIN_EXE_fathom"), "KILL");
}

#[test]
fn the_jobs_of_fio_end_with_a_killed_lab() {
    if has_fio() {
        goes_on("fio", "INT");
        goes_on("fio", "KILL");
    }
}

#[test]
fn services_end_with_a_killed_lab() {
    let folder = Folder::new();
    // Deaf, and in the background of its shell.
    let service = r#"
[service.s]
command = """sh -c 'trap "" TERM; sleep 1000 & echo $! > sleeper; echo up; wait'"""
ready = "up"
"#;
    folder.write("hangs.toml", format!("{JOB}{HANGS}{TWO_RUNS}{service}"));
    let (mut lab_process, _) = begun(&folder);
    let sleeper = folder.read("sleeper").trim().to_owned();
    assert!(is_alive(&sleeper));
    send("KILL", lab_process.id());
    lab_process.wait().unwrap();
    wait_for("the end of the service", || {
        (!is_alive(&sleeper)).then_some(())
    });
}

#[test]
fn fio_is_run_and_read() {
    if !has_fio() {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("data.bin", vec![0; 1 << 20]);
    let job = JOB.replace("\"null\"", "\"psync\"").replace(
        "size = \"1g\"",
        &format!("size = \"1m\"\nfilename = \"{}\"", file.display()),
    );
    let run = "[run]\nprogram = \"fio\"\ncpus = \"0\"\nenv = { LC_ALL = \"C\" }\n";
    let metrics = TWO_RUNS.replace("\"read.iops\"", "\"read.iops\", \"read.clat_p99\"");
    folder.write("fio.toml", format!("{job}{metrics}{run}"));
    let table = lab(&folder, "lab fio.toml --json").expect(0).json();
    let row = &table["rows"][0];
    assert!(
        row["read_iops"]
            .as_f64()
            .or(row["_read_iops"].as_f64())
            .unwrap()
            > 0.0,
        "{row}"
    );
    // fio's own message is the reason.
    let job = job.replace(&file.display().to_string(), "/proc/none/file");
    folder.write("fio.toml", format!("{job}{metrics}{run}"));
    let failed = lab(&folder, "lab fio.toml --fresh").expect(1);
    assert!(failed.out.contains("/proc/none"), "{}", failed.out);
}

/// Returns whether this process may do what needs root.
fn is_root(path: &str) -> bool {
    let may = std::fs::OpenOptions::new().write(true).open(path).is_ok();
    if !may {
        println!("skipped: {path} cannot be written");
    }
    may
}

#[test]
fn a_disk_is_held_to_its_rate() {
    if !is_root("/sys/fs/cgroup/blkio/cgroup.procs") {
        return;
    }
    let folder = Folder::new();
    // Not there yet: the limit is that of the disk under its directory.
    let file = folder.path().join("laid-out");
    let job = format!(
        "[lab]\nname = \"held\"\n[job]\nioengine = \"psync\"\ndirect = true\nrw = \"randread\"\n\
         size = \"1m\"\nfilename = \"{}\"\ntime_based = true\nruntime = 1\n",
        file.display()
    );
    let run = "[run]\nthrottle_iops = 50\n[axes]\nbs = [\"4k\"]\n";
    folder.write("held.toml", format!("{job}{TWO_RUNS}{run}"));
    let run = lab(&folder, "lab held.toml --json");
    if run.err.contains("throttle_iops") {
        return println!("skipped: {}", run.err);
    }
    let table = run.expect(0).json();
    let row = table["rows"][0].as_object().unwrap();
    let iops = row.iter().find(|(key, _)| key.contains("iops")).unwrap().1;
    assert!(iops.as_f64().unwrap() < 75.0, "{row:?}");
    let left = std::fs::read_dir("/sys/fs/cgroup/blkio").unwrap();
    let mine = format!("-{}", std::process::id());
    let left = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(&mine)
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn the_page_cache_is_emptied_before_each_run() {
    if !is_root("/proc/sys/vm/drop_caches") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("cached", vec![1; 1 << 20]);
    let cached = |file: &Path| {
        let mut command = Command::new("fincore");
        let output = command
            .args(["-n", "-o", "PAGES"])
            .arg(file)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        text.trim().parse::<u32>().ok()
    };
    match cached(&file) {
        Some(1..) => {}
        other => return println!("skipped: fincore says {other:?}"),
    }
    folder.write(
        "drop.toml",
        format!("{JOB}{TWO_RUNS}[run]\ndrop_caches = true\n"),
    );
    lab(&folder, "lab drop.toml").expect(0);
    assert_eq!(cached(&file), Some(0));
}
