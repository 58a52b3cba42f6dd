//! `fathom run --serve`: the page of a run in progress, end to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Stdio};

use crate::common::Folder;
use serde_json::Value;

/// Job that runs until it is stopped.
const JOB: &str = "--name=r --ioengine=null --rw=randread --size=1g --rate_iops=2000 --time_based \
                   --runtime=600 --eta=never";

/// Run that serves its page.
struct Serving {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: String,
}

impl Serving {
    fn start(folder: &Folder, words: &str) -> Self {
        let words = format!("run --serve 127.0.0.1:0 {words}");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.strip_prefix("fathom: serving http://");
        let address = address.and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self {
            child,
            errors,
            address,
        }
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    fn body(&self, path: &str) -> String {
        let mut reply = String::new();
        self.ask(path).read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        body.to_owned()
    }

    /// Asks the run to stop, and returns its exit code, report and messages.
    fn stop(mut self) -> (Option<i32>, String, String) {
        let pid = self.child.id().to_string();
        let killed = std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status();
        assert!(killed.unwrap().success());
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        let output = self.child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            errors,
        )
    }
}

/// Returns the figures of the next event of a stream.
fn event(events: &mut impl BufRead) -> Value {
    loop {
        let mut line = String::new();
        assert!(
            events.read_line(&mut line).unwrap() > 0,
            "the stream has ended"
        );
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[test]
fn the_figures_of_a_run_come_until_it_ends() {
    let folder = Folder::new();
    let run = Serving::start(&folder, JOB);
    let mut events = BufReader::new(run.ask("/events"));
    let mut figures = event(&mut events);
    // The rates of the first snapshots are those of a start.
    while figures["elapsed_ms"].as_u64().unwrap() < 2000 {
        figures = event(&mut events);
    }
    let read = &figures["total"]["directions"][0];
    let iops = read["iops"].as_u64().unwrap();
    // A busy machine makes fewer; what was late follows in a burst, but nothing comes early.
    assert!((200..=4000).contains(&iops), "{figures}");
    let elapsed_ms = figures["elapsed_ms"].as_u64().unwrap();
    assert!(
        read["ios"].as_u64().unwrap() <= 2 * elapsed_ms + 50,
        "{figures}"
    );
    assert_eq!(read["direction"], "read");
    assert!(
        read["last"]["percentiles_ns"][0].as_u64().unwrap() > 0,
        "{figures}"
    );
    assert_eq!(figures["jobs"][0]["name"], "r");
    assert!(
        !figures["tracks"][0]["columns"][0]["heat"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let metrics = run.body("/metrics");
    for want in [
        "# TYPE fathom_ops counter\n",
        "fathom_ops_total{job=\"r\",group=\"0\",direction=\"read\"} ",
        "fathom_resp_seconds_bucket{job=\"r\",group=\"0\",direction=\"read\",le=\"+Inf\"} ",
        "fathom_running 1\n",
        "# EOF\n",
    ] {
        assert!(metrics.contains(want), "no {want} in {metrics}");
    }
    assert!(run.body("/").contains("<script>"));
    let (code, report, errors) = run.stop();
    assert_eq!(code, Some(2), "{errors}");
    assert!(report.contains("read: IOPS="), "{report}");
    let mut last = figures;
    while last["phase"] != "ended" {
        last = event(&mut events);
    }
    let ios = last["total"]["directions"][0]["ios"].as_u64().unwrap();
    assert!(ios > iops, "{last}");
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "\n");
}

#[test]
fn a_port_in_use_ends_the_run_before_a_job_starts() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let words = format!("run --serve {address} --name=t --rw=write --size=1m --filename=made");
    let run = folder.fathom(&words).expect(2);
    assert!(
        run.err
            .contains(&format!("--serve: cannot listen on {address}: ")),
        "{}",
        run.err
    );
    assert!(
        run.err
            .contains("\nhint: choose another port; 0 takes a free one\n"),
        "{}",
        run.err
    );
    assert!(
        run.out.is_empty() && folder.names().is_empty(),
        "{:?}",
        folder.names()
    );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let folder = Folder::new();
    let job = "--name=t --ioengine=null --rw=read --size=1m";
    for (words, message, hint) in [
        (
            "--serve 0.0.0.0:0",
            "other machines may reach 0.0.0.0",
            "--serve-any-host",
        ),
        (
            "--serve example.org:80",
            "`example.org:80` is not an IP address",
            "127.0.0.1:8080",
        ),
        (
            "--serve-any-host",
            "`--serve-any-host` without `--serve`",
            "--serve ADDRESS:PORT",
        ),
        (
            "--serve 0 --machine m.toml",
            "`--serve` shows a run while it is running",
            "--record FILE",
        ),
        (
            "--live --machine m.toml",
            "`--live` shows a run while it is running",
            "--record FILE",
        ),
    ] {
        let run = folder.fathom(&format!("run {words} {job}")).expect(2);
        assert!(
            run.err.contains(message) && run.err.contains(hint),
            "{words}: {}",
            run.err
        );
    }
    let run = folder.fio(&format!("--serve=0 {job}"));
    assert!(
        run.err
            .contains("`--serve` is an option of Fathom, not of fio"),
        "{}",
        run.err
    );
}

#[test]
fn another_address_is_served_with_a_warning() {
    let folder = Folder::new();
    let words = "run --serve 0.0.0.0:0 --serve-any-host --name=t --ioengine=null --rw=read \
                 --size=1m --eta=never";
    let run = folder.fathom(words).expect(0);
    assert!(
        run.err
            .contains("warning: --serve-any-host: whoever reaches"),
        "{}",
        run.err
    );
    assert!(run.out.contains("read: IOPS="), "{}", run.out);
}

#[test]
fn clients_that_do_not_read_do_not_delay_the_run() {
    let folder = Folder::new();
    let run = Serving::start(&folder, JOB);
    let mut events = BufReader::new(run.ask("/events"));
    let silent: Vec<TcpStream> = (0..8).map(|_| run.ask("/events")).collect();
    let first = event(&mut events)["elapsed_ms"].as_u64().unwrap();
    while event(&mut events)["elapsed_ms"].as_u64().unwrap() < first + 1000 {}
    let (code, report, errors) = run.stop();
    assert_eq!(code, Some(2), "{errors}");
    assert!(report.contains("read: IOPS="), "{report}");
    drop(silent);
}
