//! `ioengine=http` as a user runs it, on a WebDAV server of the test's own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Folder, Run};

type Objects = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Starts a server of objects in memory, which ends with the process.
fn serve() -> (u16, Objects) {
    serve_with(AtomicU64::new(0))
}

fn serve_with(busy: AtomicU64) -> (u16, Objects) {
    let busy = Arc::new(busy);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let objects = Objects::default();
    let shared = Arc::clone(&objects);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (objects, busy) = (Arc::clone(&shared), Arc::clone(&busy));
            thread::spawn(move || while answer(&stream, &objects, &busy).is_some() {});
        }
    });
    (port, objects)
}

/// Starts a server that refuses this number of requests, and then takes all.
fn serve_busy(requests: u64) -> u16 {
    let (port, _objects) = serve_with(AtomicU64::new(requests));
    port
}

/// Answers a request; `None` at the end of the connection.
fn answer(mut stream: &TcpStream, objects: &Objects, busy: &AtomicU64) -> Option<()> {
    // A new one for each request: this client sends the next one only after the answer.
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|&count| count > 0)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let fewer = |left: u64| left.checked_sub(1);
    if busy.fetch_update(Relaxed, Relaxed, fewer).is_ok() {
        let head = "HTTP/1.1 503 x\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
        return stream.write_all(head.as_bytes()).ok();
    }
    let mut objects = objects.lock().unwrap();
    let (status, body) = match method.as_str() {
        "PUT" => (
            objects.insert(path, body).map_or(201, |_old| 200),
            Vec::new(),
        ),
        "DELETE" => (objects.remove(&path).map_or(404, |_old| 200), Vec::new()),
        _ => match objects.get(&path) {
            Some(object) => (200, object.clone()),
            None => (404, Vec::new()),
        },
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).ok()
}

fn run(folder: &Folder, port: u16, words: &str) -> Run {
    folder.fathom(&format!(
        "run --name=x --ioengine=http --http_host=127.0.0.1:{port} --filename=/dav/x {words}"
    ))
}

#[test]
fn data_are_verified_and_deleted() {
    let (folder, (port, objects)) = (Folder::new(), serve());
    let words = "--rw=randwrite --bs=4k --size=256k --verify=crc32c --output-format=json";
    let report = run(&folder, port, words).expect(0).json();
    let job = &report["jobs"][0];
    assert_eq!(job["write"]["io_bytes"], 256 << 10, "{report}");
    assert_eq!(job["read"]["io_bytes"], 256 << 10, "{report}");
    {
        let mut objects = objects.lock().unwrap();
        assert_eq!(objects.len(), 64);
        objects.get_mut("/dav/x_8192_4096").unwrap()[100] ^= 1;
    }
    let words = "--rw=read --bs=4k --size=256k --verify=crc32c";
    let run_again = run(&folder, port, words);
    assert!(run_again.err.contains("verify"), "{run_again:#?}");
    run(&folder, port, "--rw=trim --bs=4k --size=256k").expect(0);
    assert!(objects.lock().unwrap().is_empty());
    assert_eq!(
        folder.names(),
        [""; 0],
        "no file is made of the objects' names"
    );
}

#[test]
fn workers_have_connections_of_their_own() {
    let (folder, (port, objects)) = (Folder::new(), serve());
    let words = "--rw=write --bs=4k --size=256k --iodepth=4 --io_submit_mode=offload";
    run(&folder, port, words).expect(0);
    assert_eq!(objects.lock().unwrap().len(), 64);
}

#[test]
fn repetitions_are_counted() {
    for (words, requests) in [
        ("", 0),
        ("--http_retries=9", 7),
        ("--http_retries=9 --iodepth=4 --io_submit_mode=offload", 7),
        ("--http_retries=9 --numjobs=2 --group_reporting", 7),
    ] {
        let folder = Folder::new();
        let port = serve_busy(requests);
        let job = format!("--rw=write --bs=4k --size=64k {words}");
        let both = format!("{job} --output-format=json,normal --record=r.json");
        let run = run(&folder, port, &both).expect(0);
        let counted = format!("repeated  : requests={requests},");
        assert_eq!(
            run.out.contains(&counted),
            requests > 0,
            "{words}: {run:#?}"
        );
        let record: serde_json::Value = serde_json::from_str(&folder.read("r.json")).unwrap();
        let all = record["jobs"].as_array().unwrap().iter();
        let sum: u64 = all
            .filter_map(|job| job["repeated_requests"].as_u64())
            .sum();
        assert_eq!(sum, requests, "{words}: {record:#}");
        let in_json = format!("\"repeated_requests\" : {requests}");
        assert_eq!(
            run.out.contains(&in_json),
            requests > 0,
            "{words}: {run:#?}"
        );
    }
}

#[test]
fn no_output_shows_a_secret() {
    let (folder, (port, _objects)) = (Folder::new(), serve());
    let job = "[global]\nioengine=http\nhttp_user=me\nhttp_pass=GLOBALHUSH\nfilename=/dav/x\n\
               rw=write\nbs=4k\nsize=16k\n[one]\n[two]\nstonewall\nhttp_pass=OWNHUSH\n";
    folder.write("job.fio", job);
    let host = format!("--http_host=127.0.0.1:{port}");
    for words in [
        "--output-format=json",
        "--output-format=json+ --record=record.json",
        "--showcmd",
        "--debug=parse",
        "--http_verbose=2",
    ] {
        let run = folder.fathom(&format!("run {host} {words} job.fio"));
        let all = format!("{}{}", run.out, run.err);
        assert!(!all.contains("HUSH"), "{words}: {all}");
    }
    for words in [
        "--http_s3_key=HUSH --http_s3_keyy=HUSH --bs=4kk",
        "--http_pass HUSH --nonsense=1",
        "--http_host=me:HUSH@127.0.0.1",
        "--http_pass=HUSH --http_mode=s3",
    ] {
        let words = format!("--name=x --ioengine=http --filename=/b/x --size=4k {words}");
        let run = folder.fathom(&format!("run {words}")).expect(2);
        let all = format!("{}{}", run.out, run.err);
        assert!(
            !all.contains("HUSH") && all.contains("**"),
            "{words}: {all}"
        );
    }
    for line in ["http_pass HUSH", "http_pas=HUSH", "http_s3_token=HUSH"] {
        folder.write(
            "wrong.fio",
            format!("[x]\nioengine=http\nfilename=/b/x\n{line}\n"),
        );
        for command in [
            "run wrong.fio",
            "lint wrong.fio",
            "lint --format=json wrong.fio",
        ] {
            let run = folder.fathom(command);
            let all = format!("{}{}", run.out, run.err);
            assert!(
                !all.contains("HUSH") && all.contains("**"),
                "{command}: {all}"
            );
        }
    }
    if let Ok(record) = std::fs::read_to_string(folder.path().join("record.json")) {
        assert!(!record.contains("HUSH"), "{record}");
    }
}

#[test]
fn missing_credentials_are_named_before_the_run() {
    let folder = Folder::new();
    let mut command = folder.command(
        env!("CARGO_BIN_EXE_fathom"),
        "run --name=x --ioengine=http --http_mode=s3 --filename=/b/x --rw=read --size=4k",
    );
    for variable in [
        "AWS_ACCESS_KEY_ID",
        "AWS_HUSH_ACCESS_KEY",
        "AWS_SHARED_CREDENTIALS_FILE",
    ] {
        command.env_remove(variable);
    }
    command.env("HOME", folder.path());
    let run = Run::of(command).expect(2);
    assert!(run.err.contains("http_s3_keyid: not given"), "{run:#?}");
    assert!(run.err.contains("AWS_ACCESS_KEY_ID"), "{run:#?}");
}

#[test]
fn certificate_files_are_checked() {
    let folder = Folder::new();
    folder.write("empty.pem", "");
    let words = "run --name=x --ioengine=http --https=on --filename=/b/x --rw=read --size=4k";
    for (file, want) in [
        ("empty.pem", "no certificate in"),
        ("none.pem", "cannot read"),
        ("", "not a regular file"),
        ("/dev/zero", "not a regular file"),
    ] {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
        command.env("SSL_CERT_FILE", folder.path().join(file));
        let run = Run::of(command).expect(2);
        assert!(run.err.contains(want), "{run:#?}");
    }
}
