//! `fathom target`: serving, statistics, metrics, logs, refusals, and the end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::common::{Folder, Run};
use crate::serving::{self, Serving};
use serde_json::Value;

#[track_caller]
fn check_refused(folder: &Folder, words: &str, want: &[&str]) {
    let run = folder.fathom(&format!("target {words}")).expect(2);
    for want in want {
        assert!(run.err.contains(want), "{want}\n{run:#?}");
    }
    assert_eq!(run.out, "", "{run:#?}");
}

#[test]
fn a_namespace_is_announced_served_and_summed_up() {
    let folder = Folder::new();
    let target = Serving::start(&folder, "--null 8G --threads 1");
    let want = format!(
        "nqn nqn.2026-01.io.fathom:target traddr 127.0.0.1 trsvcid {} ns 1 8 GiB null\n",
        target.port()
    );
    assert_eq!(target.announced, want);
    let run = target.load(
        &folder,
        1,
        "--rw=randread --bs=4k --number_ios=200 --iodepth=8",
    );
    run.expect(0);
    let stats = target.stats(&folder);
    assert_eq!(stats["version"], 1);
    assert_eq!(stats["commands"]["reads"], 200, "{stats:#}");
    assert_eq!(stats["commands"]["read_bytes"], 200 * 4096);
    // The connections are over, or about to be; their bytes count.
    assert!(stats["sent_bytes"].as_u64() > Some(200 * 4096), "{stats:#}");
    assert!(
        stats["received_bytes"].as_u64() > Some(200 * 72),
        "{stats:#}"
    );
    assert_eq!(stats["namespaces"][0]["device"], "8 GiB null");
    // An admin queue and an I/O queue, and whatever the initiator looks up before.
    assert!(
        stats["events"]["connected"].as_u64() >= Some(2),
        "{stats:#}"
    );
    assert_eq!(stats["buffers"]["in_use"], 0);
    let run = target.stop("INT").expect(0);
    assert!(
        run.err
            .contains(": 200 reads, 0.8 MiB; 0 writes, 0.0 MiB; 0 others"),
        "{run:#?}"
    );
    assert!(run.err.contains("0 buffers still in use"), "{run:#?}");
    let gone = folder.fathom("target stats --socket stats.sock").expect(2);
    assert!(
        gone.err.contains("cannot connect to stats.sock"),
        "{gone:#?}"
    );
}

#[test]
fn data_of_files_and_memory_survive_their_hosts() {
    let folder = Folder::new();
    let verified = "--rw=randwrite --bs=16k --verify=crc32c --number_ios=64 --iodepth=4";
    let again = "--rw=read --bs=16k --verify=crc32c --iodepth=4";
    let file = "--file disk.img --size 4M --threads 2";
    for device in ["--memory 4M --threads 2", file] {
        let target = Serving::start(&folder, device);
        target.load(&folder, 1, verified).expect(0);
        target.load(&folder, 1, again).expect(0);
        target.stop("TERM").expect(0);
    }
    // The file outlives the target.
    let target = Serving::start(&folder, file);
    target.load(&folder, 1, again).expect(0);
    // Meanwhile no other target serves it.
    check_refused(
        &folder,
        "--file disk.img --listen 127.0.0.1:0",
        &["in use by another process"],
    );
    target.stop("INT").expect(0);
    let target = Serving::start(&folder, "--file disk.img --read-only --threads 1");
    target.load(&folder, 1, "--rw=read --bs=64k").expect(0);
    let refused = target.load(&folder, 1, "--rw=write --bs=4k --number_ios=1");
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    target.stop("INT").expect(0);
}

#[test]
fn read_only_holds_for_every_namespace() {
    let folder = Folder::new();
    folder.write("disk.img", "x".repeat(1 << 20));
    folder.write(
        "two.toml",
        r#"
        [[device]]
        name = "disk"
        kind = "file"
        path = "disk.img"
        [[device]]
        name = "memory"
        kind = "memory"
        size = "1m"
        [[subsystem]]
        nqn = "nqn.2026-01.org.example:two"
        [[subsystem.namespace]]
        device = "disk"
        [[subsystem.namespace]]
        device = "memory"
        "#,
    );
    for (device, count) in [("two.toml", 2), ("--memory 1m", 1), ("--null 1m", 1)] {
        let target = Serving::start(&folder, &format!("{device} --read-only --threads 1"));
        for ns in 1..=count {
            let write = target.load(&folder, ns, "--rw=write --bs=4k --number_ios=1");
            assert_ne!(write.code, Some(0), "{device} {ns}: {write:#?}");
            target.load(&folder, ns, "--rw=read --bs=64k").expect(0);
        }
        target.stop("INT").expect(0);
    }
    assert_eq!(folder.read("disk.img"), "x".repeat(1 << 20));
}

#[test]
fn a_file_describes_many_subsystems() {
    let folder = Folder::new();
    let example = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/targets/many-devices.toml"
    );
    let target = Serving::start(&folder, &format!("{example} --threads 2"));
    let lines: Vec<&str> = target.announced.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].ends_with(" ns 1 256 MiB part of pool"),
        "{lines:?}"
    );
    assert!(
        lines[1].ends_with(" ns 2 8 GiB null ns 7 8 GiB null + delay"),
        "{lines:?}"
    );
    let shared = "nqn.2026-01.org.example:shared";
    for ns in [1, 2, 7] {
        let run = target.load_of(&folder, shared, ns, "--rw=randread --bs=4k --number_ios=20");
        run.expect(0);
    }
    // The other one is for a host that this is not.
    let private = "nqn.2026-01.org.example:private";
    let refused = target.load_of(&folder, private, 1, "--rw=read --bs=4k --number_ios=1");
    assert_ne!(refused.code, Some(0), "{refused:#?}");
    let stats = target.stats(&folder);
    let reads: Vec<&Value> = (0..4)
        .map(|at| &stats["namespaces"][at]["commands"]["reads"])
        .collect();
    assert_eq!(reads, [0, 20, 20, 20]);
    assert_eq!(stats["events"]["refused"], 1, "{stats:#}");
    let run = target.stop("INT").expect(0);
    let logged = "refused peer=127.0.0.1:";
    let line = run.err.lines().find(|line| line.contains(logged)).unwrap();
    assert!(
        line.contains("reason=\"Connect Invalid Host\" status_type=1 status_code=132"),
        "{line}"
    );
}

#[test]
fn statistics_are_shown_as_text_and_to_prometheus() {
    let folder = Folder::new();
    let target = Serving::start(
        &folder,
        "--null 1G --threads 1 --buffers 8 --metrics 0 --log json",
    );
    target
        .load(&folder, 1, "--rw=randread --bs=4k --number_ios=50")
        .expect(0);
    let text = folder
        .fathom("target stats --socket stats.sock")
        .expect(0)
        .out;
    assert!(
        text.contains("buffers: 0 of 8 in use, 128 KiB each, pacing buffers"),
        "{text}"
    );
    let line = target.log_line("metrics at http://");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(
        page.contains("namespace=\"1\",kind=\"read\"} 50\n"),
        "{page}"
    );
    let watched = folder.command(
        env!("CARGO_BIN_EXE_fathom"),
        "target stats --watch --json --socket stats.sock",
    );
    let mut watching = serving::spawn(watched);
    let first: Value = serde_json::from_str(&watching.next_line()).unwrap();
    assert_eq!(first["commands"]["reads"], 50);
    let second: Value = serde_json::from_str(&watching.next_line()).unwrap();
    assert!(second["uptime_ns"].as_u64() > first["uptime_ns"].as_u64());
    let run = target.stop("INT").expect(0);
    let logged = run.err.lines().filter(|line| line.starts_with('{'));
    let events: Vec<Value> = logged
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    let [listening, connected, ended] = ["listening", "connected", "ended"].map(count);
    assert!(
        listening == 1 && connected >= 2 && ended == connected,
        "{events:?}"
    );
    // A watcher ends with its target.
    let ended = watching.finish().expect(0);
    assert!(ended.err.contains("it has ended"), "{ended:#?}");
}

#[test]
fn requests_that_cannot_be_served_are_refused() {
    let folder = Folder::new();
    check_refused(
        &folder,
        "",
        &["no namespace", "hint: name one with `--null 8G`"],
    );
    check_refused(&folder, "--null 0", &["the size must be above 0"]);
    check_refused(&folder, "--null 1X", &["expected a size in bytes"]);
    // Of 512 bytes, the file would have another size at the next start.
    check_refused(&folder, "--file new --size 700", &["a multiple of 512 B"]);
    check_refused(
        &folder,
        "--memory 1000T",
        &["--memory: ", "more than this machine's memory"],
    );
    check_refused(&folder, "--null 1G --memory 1G", &["cannot be used with"]);
    check_refused(
        &folder,
        "--null 1G --nqn disk",
        &["it does not begin with `nqn.`"],
    );
    check_refused(
        &folder,
        "--null 1G --listen here",
        &["expected an IP address with a port"],
    );
    check_refused(&folder, "--null 1G --threads 0", &["0 is not in 1..=1024"]);
    for device in ["--null 1G", "--memory 1G", "disk.toml"] {
        let words = format!("{device} --size 1G");
        check_refused(&folder, &words, &["--size <SIZE>", "cannot be used with"]);
    }
}

#[test]
fn contradictions_and_missing_files_are_refused() {
    let folder = Folder::new();
    check_refused(
        &folder,
        "--null 1G --threads 1 --cpus 1023 --listen 127.0.0.1:0",
        &["cannot bind thread 0: CPU 1023: ", "hint: choose CPUs"],
    );
    check_refused(
        &folder,
        "--null 1G --threads 2 --cpus 0",
        &[
            "--cpus: 1 CPUs for 2 threads",
            "hint: name one for each thread",
        ],
    );
    check_refused(
        &folder,
        "--null 1G --pacing buffers",
        &["the pool has no limit", "--buffers 32"],
    );
    check_refused(
        &folder,
        "--null 1G --period 5",
        &["--period: no policy that has one"],
    );
    check_refused(
        &folder,
        "--file nothing",
        &["nothing: no such file", "give a size"],
    );
    check_refused(&folder, "--file .", &["neither a file nor a block device"]);
    check_refused(
        &folder,
        "nothing.toml",
        &["cannot read target file `nothing.toml`"],
    );
    folder.write("bad.toml", "threads = 'many'\n[[subsystem]]\n");
    check_refused(
        &folder,
        "bad.toml",
        &[
            "bad.toml:1:11: `threads` must be",
            "bad.toml:2:1: `subsystem` has no `nqn`",
            "hint: ",
        ],
    );
    check_refused(
        &folder,
        "stats --socket nothing",
        &["cannot connect to nothing"],
    );
    check_refused(&folder, "stats --interval 2", &["--watch"]);
    let run = folder.fathom("target --null 1G --listen 127.0.0.1:0 --socket bad.toml");
    let want =
        "fathom: target: bad.toml exists and is not a socket\nhint: choose another `--socket`\n";
    assert_eq!(run.expect(2).err, want);
    assert_eq!(folder.names(), ["bad.toml"]);
}

/// Returns a shell's command that starts a target within a limit.
fn limited(folder: &Folder, limit: &str, words: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_fathom");
    let script = format!("{limit}; exec {program} target {words} --listen 127.0.0.1:0");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path());
    command
}

#[test]
fn a_file_that_cannot_have_its_size_is_not_left() {
    let folder = Folder::new();
    let run = Run::of(limited(&folder, "ulimit -f 8", "--file new --size 1G")).expect(2);
    assert!(run.err.contains("cannot extend new: "), "{run:#?}");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn memory_that_runs_out_fails_writes_alone() {
    let folder = Folder::new();
    let words = "--memory 4G --threads 1 --socket stats.sock";
    let mut target = serving::spawn(limited(&folder, "ulimit -v 400000", words));
    let announced = target.next_line();
    let port = announced.split(' ').nth(5).expect("an announcement");
    let job = |words: &str| {
        let words = format!("run --name=t --ioengine=nvme_tcp --size=400m --bs=128k {words}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let at = format!("adrfam=ipv4 traddr=127.0.0.1 trsvcid={port}");
        let nqn = serving::NQN;
        command.arg(format!("--filename=trtype=tcp {at} subnqn={nqn} ns=1"));
        Run::of(command)
    };
    let full = job("--rw=write").expect(1);
    assert!(full.err.contains("No space left"), "{full:#?}");
    job("--rw=read --number_ios=100").expect(0);
    target.signal("INT");
    target.finish().expect(0);
}

/// Each attempt fails until a connection ends.
#[test]
fn failures_to_accept_are_logged_once_a_second() {
    let folder = Folder::new();
    let words = "--null 1G --threads 1 --log json --socket stats.sock";
    let mut target = serving::spawn(limited(&folder, "ulimit -n 32", words));
    let announced = target.next_line();
    let port: u16 = announced.split(' ').nth(5).unwrap().parse().unwrap();
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).unwrap();
    let _crowd: Vec<TcpStream> = (0..32).map(connect).collect();
    let [first, second] = [(); 2].map(|()| {
        let line = target.next_log_line("accept failed");
        let line: Value = serde_json::from_str(&line).unwrap();
        line["timestamp_ms"].as_u64().unwrap()
    });
    assert!(second - first >= 900, "{first} {second}");
}

/// More lines than a pipe holds.
#[test]
fn a_target_whose_log_is_not_read_stops_at_the_first_signal() {
    let folder = Folder::new();
    let words = "target --null 1G --threads 1 --listen 127.0.0.1:0 --socket stats.sock";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    let mut target = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut announced = String::new();
    let mut out = BufReader::new(target.stdout.take().unwrap());
    out.read_line(&mut announced).unwrap();
    let port: u16 = announced.split(' ').nth(5).unwrap().parse().unwrap();
    for _ in 0..2000 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(&[0xff; 200]).unwrap();
        // Until the target terminates the connection, which it logs.
        let _reset = stream.read(&mut [0]);
    }
    let mut kill = Command::new("kill");
    kill.args(["-INT", &target.id().to_string()]);
    assert!(kill.status().unwrap().success());
    // The pipe stays unread until the target has ended.
    let status = target.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let mut log = String::new();
    let mut err = target.stderr.take().unwrap();
    err.read_to_string(&mut log).unwrap();
    assert!(log.len() > 60_000, "{} B", log.len());
}

#[test]
fn other_machines_are_let_in_only_on_request() {
    let folder = Folder::new();
    let open = "--null 1G --listen 0.0.0.0:0";
    check_refused(
        &folder,
        open,
        &[
            "would be open to every host that reaches 0.0.0.0:0",
            "hint: name hosts with `--host NQN`",
        ],
    );
    let small = "listen = '0.0.0.0:0'\n[[device]]\nname = 'd'\nkind = 'null'\nsize = '1G'\n\
                 [[subsystem]]\nnqn = 'nqn.2026-01.org.example:a'\n\
                 [[subsystem.namespace]]\ndevice = 'd'\n";
    folder.write("open.toml", small);
    check_refused(
        &folder,
        "open.toml",
        &["open.toml:6:1: ", "hint: write `allowed_hosts"],
    );
    let file = "open.toml --allow-any-host --listen 127.0.0.1:0";
    for words in [&format!("{open} --allow-any-host"), file] {
        let target = Serving::start_as_is(&folder, words);
        target
            .load(&folder, 1, "--rw=read --bs=4k --number_ios=1")
            .expect(0);
        target.stop("INT").expect(0);
    }
    let listed = format!("{open} --host nqn.2026-01.org.example:h");
    let target = Serving::start_as_is(&folder, &listed);
    let job = "--rw=read --bs=4k --number_ios=1";
    assert_ne!(target.load(&folder, 1, job).code, Some(0));
    let known = format!("{job} --hostnqn=nqn.2026-01.org.example:h");
    target.load(&folder, 1, &known).expect(0);
    target.stop("INT").expect(0);
}

#[test]
fn an_address_has_one_target() {
    let folder = Folder::new();
    let target = Serving::start(&folder, "--null 1G --threads 1");
    let port = target.port();
    check_refused(
        &folder,
        &format!("--null 1G --listen 127.0.0.1:{port} --socket other.sock"),
        &["cannot listen: 127.0.0.1:", "hint: choose another port"],
    );
    check_refused(
        &folder,
        "--null 1G --listen 127.0.0.1:0 --socket stats.sock",
        &["cannot bind stats.sock"],
    );
    assert_eq!(target.stats(&folder)["version"], 1);
    target.stop("INT").expect(0);
}
