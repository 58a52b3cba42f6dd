//! `merge --client-stats` beside the JSON of fio's client and servers on the loopback address.

use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::common::{Folder, Run};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// JSON value whose objects keep the order of their keys.
enum Ordered {
    Object(Vec<(String, Self)>),
    List(Vec<Self>),
    Text(String),
    Integer,
    Float,
    Other,
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = Ordered;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<Ordered, A::Error> {
        let mut all = Vec::new();
        while let Some(pair) = keys.next_entry()? {
            all.push(pair);
        }
        Ok(Ordered::Object(all))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Ordered, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Ordered::List(all))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Ordered, E> {
        Ok(Ordered::Text(text.to_owned()))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Ordered, E> {
        Ok(Ordered::Integer)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Ordered, E> {
        Ok(Ordered::Float)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Ordered, E> {
        Ok(Ordered::Other)
    }
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        text.deserialize_any(OrderedVisitor)
    }
}

/// Adds each path with its type, in order, except what later versions of fio and Fathom add.
fn shape(value: &Ordered, path: &str, out: &mut Vec<String>) {
    let kind = match value {
        Ordered::Object(keys) => {
            let is_all = |(key, value): &(String, Ordered)| {
                key == "jobname" && matches!(value, Ordered::Text(name) if name == "All clients")
            };
            let start = out.len();
            for (key, value) in keys {
                if !NEWER.contains(&key.as_str()) {
                    shape(value, &format!("{path}/{key}"), out);
                }
            }
            if keys.iter().any(is_all) {
                // fio has no percentiles of the sum.
                let sum = out.split_off(start);
                let same = sum
                    .into_iter()
                    .filter(|line| !line.contains("/percentile/"));
                out.extend(same);
            }
            return;
        }
        Ordered::List(items) => {
            out.push(format!("{path}: list of {}", items.len()));
            for item in items {
                shape(item, path, out);
            }
            return;
        }
        Ordered::Text(_) => "text",
        Ordered::Integer => "integer",
        Ordered::Float => "float",
        Ordered::Other => "other",
    };
    out.push(format!("{path}: {kind}"));
}

/// Keys that fio 3.33 does not have.
const NEWER: [&str; 4] = [
    "job_start",
    "latency_target_ns",
    "latency_window_us",
    "fathom",
];

/// Returns the shape of the document in a report; fio prints notes before it.
fn shape_of(report: &str) -> Vec<String> {
    let start = report.find("{\n").unwrap_or_else(|| panic!("{report}"));
    let document: Ordered = serde_json::from_str(&report[start..]).unwrap();
    let mut out = Vec::new();
    shape(&document, "", &mut out);
    out
}

/// Server of fio, ended with its value.
struct Server(Child, u16);

impl Server {
    fn start(folder: &Folder) -> Self {
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut command = folder.command("fio", &format!("--server=127.0.0.1,{port}"));
            let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut server = Self(server.unwrap(), port);
            if server.listens() {
                return server;
            }
            // Another process has taken the port meanwhile.
        }
    }

    /// Waits until it listens; false if it has ended.
    fn listens(&mut self) -> bool {
        while TcpStream::connect(("127.0.0.1", self.1)).is_err() {
            if self.0.try_wait().unwrap().is_some() {
                return false;
            }
            std::thread::yield_now();
        }
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn has_fio() -> bool {
    let version = Command::new("fio").arg("--version").output();
    let version = version.map(|found| String::from_utf8_lossy(&found.stdout).trim().to_owned());
    match version.as_deref() {
        Ok("fio-3.33") => true,
        Ok(other) => {
            println!("skipped: {other} was not looked at");
            false
        }
        Err(_) => {
            println!("skipped: no fio");
            false
        }
    }
}

/// Returns the lines of each job. Those of several hosts come to fio as they end, in any order but
/// for their sum, which is last.
fn by_job(shape: &[String]) -> Vec<&[String]> {
    let is_next = |_: &String, next: &String| next != "/client_stats/jobname: text";
    let mut jobs: Vec<&[String]> = shape.chunk_by(is_next).collect();
    let last = jobs.len() - 1;
    jobs[1..last].sort();
    jobs
}

/// Compares the reports of a job file on one host and on two.
#[track_caller]
fn check(job: &str) {
    if !has_fio() {
        return;
    }
    let folder = Folder::new();
    folder.write("j.fio", job);
    let servers = [Server::start(&folder), Server::start(&folder)];
    for hosts in [1, 2] {
        let clients = servers[..hosts].iter().map(|server| server.1);
        let clients = clients.map(|port| format!("--client=127.0.0.1,{port} j.fio"));
        let clients = clients.collect::<Vec<_>>().join(" ");
        let words = format!("20 fio --output-format=json {clients}");
        let theirs = Run::of(folder.command("timeout", &words)).expect(0);
        for rank in 0..hosts {
            let words = format!("run --rank={rank}/{hosts} --record=out{hosts} j.fio");
            folder.fathom(&words).expect(0);
        }
        let words = format!("merge --client-stats --output-format=json out{hosts}");
        let ours = folder.fathom(&words).expect(0);
        assert!(ours.out.starts_with("{\n"), "{}", ours.out);
        let shapes = [&theirs.out, &ours.out].map(|report| {
            let mut shape = shape_of(report);
            // fio 3.33 merges those of two clients into one object, with each key twice.
            shape.retain(|line| hosts == 1 || !line.starts_with("/global options"));
            shape
        });
        let [theirs, ours] = shapes.each_ref().map(|shape| by_job(shape));
        assert_eq!(theirs, ours, "{hosts} hosts");
    }
}

#[test]
fn one_section_is_reported_as_by_fios_client() {
    check("[global]\nioengine=null\nsize=64k\nbs=4k\n[a]\nrw=read\n");
}

#[test]
fn two_sections_are_reported_as_by_fios_client() {
    check("[global]\nioengine=null\nsize=64k\n[a]\nrw=read\n[b]\nrw=write\nnumjobs=2\n");
}

#[test]
fn hosts_come_in_order_with_their_sum_at_last() {
    let folder = Folder::new();
    for rank in [0, 1] {
        let job =
            "--direct=1 --name=a --ioengine=null --size=64k --name=b --ioengine=null --size=4k";
        let words = format!("run --rank={rank}/2 --record=out {job}");
        folder.fathom(&words).expect(0);
    }
    let merge = "merge --client-stats --output-format";
    let report = folder.fathom(&format!("{merge}=json out")).expect(0).json();
    let stats = report["client_stats"].as_array().unwrap();
    let seen = stats.iter().map(|job| {
        let ios = job["read"]["total_ios"].as_u64().unwrap();
        (job["jobname"].as_str().unwrap(), ios)
    });
    let want = [
        ("a", 16),
        ("b", 1),
        ("a", 16),
        ("b", 1),
        ("All clients", 34),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), want);
    assert_eq!(stats[4]["fathom"]["members"], 4);
    assert!(
        stats
            .iter()
            .all(|job| job["hostname"].is_string() && job["port"] == 8765)
    );
    let global = report["global options"].as_array().unwrap();
    assert_eq!((global.len(), &global[1]["direct"]), (2, &Value::from("1")));
    assert!(global[1]["hostname"].is_string());

    // The other formats are as without, and histograms come with the format that has them.
    let both = folder.fathom(&format!("{merge}=normal,json out")).expect(0);
    assert!(both.out.contains("\nHosts: 2\n") && both.out.contains("client_stats"));
    let document = folder.fathom(&format!("{merge}=json+ out")).expect(0);
    let document = document.json();
    let bins = |job: usize| document["client_stats"][job]["read"]["clat_ns"]["bins"].clone();
    assert!(bins(0).is_object() && bins(4).is_object());
    let refused = folder.fathom("merge --client-stats out").expect(2);
    assert!(refused.err.contains("--client-stats is about JSON"));
}
