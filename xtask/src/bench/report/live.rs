//! Cost of the views of a run in progress: what they take from its jobs, and of a processor.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::figure::Figure;
use super::super::jobs;
use super::super::scratch::Scratch;
use super::super::statistics::Spread;
use super::{Measured, Row, Setting};
use crate::process;

/// Ops of a job that has a view, over those of one without.
pub(super) const SERVE_IOPS: Row = Row {
    name: "serve-iops",
    what: "`--serve` with a reader, null engine, over the plain run",
    measure: |setting| iops(setting, View::Serve),
};

/// The same of the terminal view.
pub(super) const LIVE_IOPS: Row = Row {
    name: "live-iops",
    what: "`--live`, null engine, over the plain run",
    measure: |setting| iops(setting, View::Live),
};

/// Processor time of the threads that are not jobs.
pub(super) const SERVE_COST: Row = Row {
    name: "serve-cost",
    what: "processor time of `--serve` with a reader, 10 jobs",
    measure: |setting| cost(setting, View::Serve),
};

/// The same of the terminal view.
pub(super) const LIVE_COST: Row = Row {
    name: "live-cost",
    what: "processor time of `--live`, 10 jobs",
    measure: |setting| cost(setting, View::Live),
};

/// View of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Plain,
    /// The page, with a reader of its events.
    Serve,
    /// The terminal: that of script(1).
    Live,
}

/// Figures that a run printed.
struct Told {
    iops: f64,
    /// Processor time by name of thread, s.
    threads: BTreeMap<String, f64>,
}

fn iops(setting: &Setting, view: View) -> Result<Measured> {
    if let Some(why) = missing(setting, view)? {
        return Ok(Measured::Skipped(why));
    }
    let seconds = format!("--runtime={IOPS_SECONDS}");
    let mut job = vec!["--name=job", "--time_based", &seconds];
    job.extend_from_slice(jobs::NULL);
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        // In turn, so that drift favours neither.
        let order = match pair % 2 {
            0 => [View::Plain, view],
            _ => [view, View::Plain],
        };
        let mut found = BTreeMap::new();
        for one in order {
            found.insert(one == view, run(setting, one, &job)?.iops);
        }
        pairs.push((found[&true], found[&false]));
    }
    let ratio = Spread::of_ratios(&pairs).middle;
    let figure = Figure::at_least("IOPS over those of the plain run", ratio, "", 0.98);
    Ok(Measured::Figures(vec![figure]))
}

fn cost(setting: &Setting, view: View) -> Result<Measured> {
    if let Some(why) = missing(setting, view)? {
        return Ok(Measured::Skipped(why));
    }
    let seconds = format!("--runtime={COST_SECONDS}");
    let mut job = vec![
        "--name=job",
        "--numjobs=10",
        "--time_based",
        &seconds,
        "--rate_iops=1000",
    ];
    job.extend_from_slice(jobs::NULL);
    let besides = |told: &Told| -> f64 {
        let threads = told.threads.iter();
        threads
            .filter(|(name, _)| *name != "job")
            .map(|(_, seconds)| seconds)
            .sum()
    };
    let plain = besides(&run(setting, View::Plain, &job)?);
    let viewed = besides(&run(setting, view, &job)?);
    let percent = (viewed - plain) / f64::from(COST_SECONDS) * 100.0;
    let figure = Figure::at_most("more than the plain run's, of one core", percent, "%", 1.0);
    Ok(Measured::Figures(vec![figure]))
}

/// Returns why a view cannot be measured.
fn missing(setting: &Setting, view: View) -> Result<Option<String>> {
    if view != View::Live {
        return Ok(None);
    }
    if process::find("script").is_none() {
        return Ok(Some("no script(1), whose terminal is used".to_owned()));
    }
    let mut command = Command::new(&setting.programs.fathom);
    command.args([
        "run",
        "--live",
        "--name=t",
        "--ioengine=null",
        "--rw=read",
        "--size=4k",
    ]);
    let output = command.stdin(Stdio::null()).output()?;
    let built_without = String::from_utf8_lossy(&output.stderr).contains("built without it");
    let why = "the program has no feature `live`; name one that has by --fathom";
    Ok(built_without.then(|| why.to_owned()))
}

/// Runs a job with a view.
fn run(setting: &Setting, view: View, job: &[&str]) -> Result<Told> {
    let folder = Scratch::new("views")?;
    let report = folder.path().join("report.json");
    let fathom = &setting.programs.fathom;
    let mut words: Vec<String> = vec!["run".into(), "--eta=never".into()];
    words.extend([
        "--output-format=json".into(),
        format!("--output={}", report.display()),
    ]);
    words.extend(job.iter().map(|word| (*word).to_owned()));
    let mut command = match view {
        View::Plain | View::Serve => Command::new(fathom),
        View::Live => {
            let mut command = Command::new("script");
            let line = format!("exec '{}' --live {}", fathom.display(), words.join(" "));
            let line = line.replace(" --live run ", " run --live ");
            command
                .args(["-qec", &line, "/dev/null"])
                .env("TERM", "xterm");
            command
        }
    };
    match view {
        View::Plain => {
            command.args(&words).stderr(Stdio::null());
        }
        View::Serve => {
            command
                .args(&words)
                .args(["--serve", "0"])
                .stderr(Stdio::piped());
        }
        View::Live => {
            command.stderr(Stdio::null());
        }
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let reader = match view {
        View::Serve => Some(read_events(&mut child)?),
        View::Plain | View::Live => None,
    };
    let threads = watch(&mut child)?;
    if let Some(reader) = reader {
        let read = reader
            .join()
            .map_err(|_| anyhow::anyhow!("the reader of /events has panicked"))?;
        if read == 0 {
            bail!("/events was empty");
        }
    }
    let report: Value = serde_json::from_slice(&fs::read(&report).context("the report")?)?;
    let jobs = report["jobs"].as_array().context("jobs of the report")?;
    let iops = jobs
        .iter()
        .filter_map(|job| job["read"]["iops"].as_f64())
        .sum();
    Ok(Told { iops, threads })
}

/// Reads the events of a run's page on a thread, which returns their bytes.
fn read_events(child: &mut Child) -> Result<std::thread::JoinHandle<usize>> {
    let mut errors = BufReader::new(child.stderr.take().context("standard error")?);
    let mut line = String::new();
    errors.read_line(&mut line)?;
    let address = line.strip_prefix("fathom: serving http://");
    let address = address.and_then(|rest| rest.split('/').next());
    let address = address.with_context(|| format!("no address in `{line}`"))?;
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    Ok(std::thread::spawn(move || {
        // Both end with the program; `errors` is kept, or a message would end it.
        let mut piece = vec![0; 1 << 16];
        let mut total = 0;
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            total += count;
        }
        let _rest = errors.read_to_end(&mut piece);
        total
    }))
}

/// Waits for a run, and returns the processor time of its threads, as last seen.
fn watch(child: &mut Child) -> Result<BTreeMap<String, f64>> {
    let mut seen: BTreeMap<u32, (String, f64)> = BTreeMap::new();
    loop {
        for (id, name, seconds) in threads_of(child.id()) {
            seen.insert(id, (name, seconds));
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("the run failed: {status}");
            }
            break;
        }
        process::pause(Duration::from_millis(100));
    }
    let mut sums = BTreeMap::new();
    for (name, seconds) in seen.into_values() {
        *sums.entry(name).or_default() += seconds;
    }
    Ok(sums)
}

/// Returns id, name and processor time of each thread of a program: of its child, if it is
/// script(1), which executes it on its terminal.
fn threads_of(process: u32) -> Vec<(u32, String, f64)> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(children).unwrap_or_default();
    let program = children.trim().parse().unwrap_or(process);
    let tasks = fs::read_dir(format!("/proc/{program}/task"));
    let tasks = tasks.into_iter().flatten().filter_map(Result::ok);
    tasks
        .filter_map(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).ok()?;
            let (id, rest) = stat.split_once(" (")?;
            let (name, fields) = rest.rsplit_once(") ")?;
            // utime and stime are the 14th and 15th field, and this begins with the third.
            let fields: Vec<&str> = fields.split(' ').collect();
            let ticks: f64 =
                fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
            Some((id.parse().ok()?, name.to_owned(), ticks / TICKS_PER_S))
        })
        .collect()
}

/// Pairs of runs: fewer have no interval.
const PAIRS: usize = 6;
const IOPS_SECONDS: u32 = 5;
const COST_SECONDS: u32 = 20;
/// USER_HZ, on every Linux architecture that Rust supports.
const TICKS_PER_S: f64 = 100.0;
