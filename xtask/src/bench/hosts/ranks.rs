//! Ranks side by side on this machine, started by its launcher.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::figure::Figure;
use super::super::pairs::in_turn;
use super::super::report::{Measured, Row, Setting};
use super::super::scratch::Scratch;
use super::super::statistics::Spread;
use crate::process;

pub(super) const RATE: Row = Row {
    name: "one-rank",
    what: "null, randread 4k, depth 32: `mpirun -n 1 fathom-mpi run` over `fathom run`, IOPS",
    measure: rate,
};

pub(super) const STARTS: Row = Row {
    name: "starts",
    what: "first issue on all ranks, latest after earliest, 50 starts",
    measure: starts,
};

pub(super) const CLOCKS: Row = Row {
    name: "clocks",
    what: "clocks of 16 ranks that are one clock",
    measure: clocks,
};

pub(super) const INTERRUPT: Row = Row {
    name: "interrupt",
    what: "SIGINT to one of 4 ranks, 10 runs",
    measure: interrupt,
};

pub(super) const IDLE: Row = Row {
    name: "idle-rank",
    what: "rank that has no section, beside one that runs",
    measure: idle,
};

/// Returns the start of a command with `count` ranks.
fn mpirun(setting: &Setting, folder: &Path, count: u32) -> Command {
    let mut command = process::tied("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none"]);
    command.args(["-n", &count.to_string()]);
    command.arg(setting.programs.fathom.with_file_name("fathom-mpi"));
    command
        .arg("run")
        .current_dir(folder)
        .stdin(Stdio::null())
        .env(MARK, std::process::id().to_string())
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

fn skipped() -> Option<Measured> {
    let missing = process::find("mpirun").is_none();
    missing.then(|| Measured::Skipped("no MPI".into()))
}

/// Prints the spread of values that a figure gives the middle of.
fn tell(what: &str, spread: &Spread) {
    println!(
        "bench:   {what}: {:.3}, interval {:.3} to {:.3}, extremes {:.3} and {:.3}",
        spread.middle, spread.low, spread.high, spread.smallest, spread.largest
    );
}

#[expect(clippy::cast_precision_loss, reason = "times in ns, far below 2⁵²")]
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn rate(setting: &Setting) -> Result<Measured> {
    if let Some(skipped) = skipped() {
        return Ok(skipped);
    }
    let folder = Scratch::new("ranks")?;
    let job = [
        "--name=bench",
        "--ioengine=null",
        "--rw=randread",
        "--bs=4k",
        "--size=1g",
        "--iodepth=32",
        "--norandommap",
        "--time_based",
        "--runtime=1",
        "--output-format=json",
    ];
    let iops = |command: &mut Command| -> Result<f64> {
        let report: Value = serde_json::from_str(&process::capture(command.args(job))?)?;
        report["jobs"][0]["read"]["iops"]
            .as_f64()
            .context("no IOPS")
    };
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let (alone, ranks) = in_turn(
            pair % 2 == 1,
            || {
                let mut alone = Command::new(&setting.programs.fathom);
                iops(alone.arg("run").current_dir(folder.path()))
            },
            || iops(&mut mpirun(setting, folder.path(), 1)),
        )?;
        pairs.push((ranks, alone));
    }
    let spread = Spread::of_ratios(&pairs);
    tell("ratio", &spread);
    Ok(Measured::Figures(vec![Figure::at_least(
        "ratio",
        spread.middle,
        "",
        0.98,
    )]))
}

/// Runs a short job on `count` ranks, and returns the hosts of its report.
fn hosts(setting: &Setting, folder: &Path, count: u32) -> Result<Vec<Value>> {
    let mut command = mpirun(setting, folder, count);
    command.args([
        "--name=a",
        "--ioengine=null",
        "--size=1g",
        "--thinktime=1ms",
    ]);
    command.args(["--time_based", "--runtime=100ms", "--output-format=json"]);
    let mut report: Value = serde_json::from_str(&process::capture(&mut command)?)?;
    match report["fathom"]["hosts"].take() {
        Value::Array(hosts) if hosts.len() == count as usize => Ok(hosts),
        other => bail!("{count} ranks, but these hosts: {other}"),
    }
}

fn starts(setting: &Setting) -> Result<Measured> {
    if let Some(skipped) = skipped() {
        return Ok(skipped);
    }
    let folder = Scratch::new("ranks")?;
    let mut figures = Vec::new();
    for (count, median, most) in START_RANKS {
        let mut spreads = Vec::new();
        for _ in 0..STARTS_EACH {
            let hosts = hosts(setting, folder.path(), count)?;
            let starts = hosts.iter().map(|host| host["start_ns"].as_u64());
            let starts: Vec<u64> = starts.collect::<Option<_>>().context("no start")?;
            let earliest = starts.iter().min().context("no host")?;
            let latest = starts.iter().max().context("no host")?;
            spreads.push(ms(latest - earliest));
        }
        tell(median, &Spread::of(&spreads));
        spreads.sort_by(f64::total_cmp);
        let at = |tenths: usize| spreads[spreads.len() * tenths / 10 - 1];
        figures.push(Figure::at_most(median, at(5), "ms", 0.1));
        figures.push(Figure::at_most(most, at(9), "ms", 1.0));
    }
    Ok(Measured::Figures(figures))
}

fn clocks(setting: &Setting) -> Result<Measured> {
    if let Some(skipped) = skipped() {
        return Ok(skipped);
    }
    let folder = Scratch::new("ranks")?;
    let (mut errors, mut bounds, mut outside) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..CLOCK_RUNS {
        for host in hosts(setting, folder.path(), 16)?.iter().skip(1) {
            let clock = &host["clock"];
            let offset = clock["offset_ns"].as_i64().context("no offset")?;
            let bound = clock["bound_ns"].as_u64().context("no bound")?;
            if offset.unsigned_abs() > bound {
                outside += 1.0;
            }
            errors.push(ms(offset.unsigned_abs()) * 1e3);
            bounds.push(ms(bound) * 1e3);
        }
    }
    tell("error, µs", &Spread::of(&errors));
    tell("bound, µs", &Spread::of(&bounds));
    Ok(Measured::Figures(vec![Figure::at_most(
        "outside of their bound",
        outside,
        "of 150",
        0.0,
    )]))
}

fn interrupt(setting: &Setting) -> Result<Measured> {
    if let Some(skipped) = skipped() {
        return Ok(skipped);
    }
    let mut latest = Vec::new();
    for _ in 0..INTERRUPTS {
        let folder = Scratch::new("ranks")?;
        let mut command = mpirun(setting, folder.path(), 4);
        command.args([
            "--name=w",
            "--filename=f.$rank",
            "--rw=write",
            "--bs=4k",
            "--size=16m",
        ]);
        command.args([
            "--rate_iops=100",
            "--ioengine=psync",
            "--time_based",
            "--runtime=600",
        ]);
        command.args([
            "--output=report",
            "--output-format=json",
            "--fallocate=none",
        ]);
        let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = silent.spawn().context("mpirun")?;
        let start = process::now();
        // Blocks come with the first ops, a length before them.
        let runs = |rank: u32| {
            let file = folder.path().join(format!("f.{rank}"));
            fs::metadata(file).is_ok_and(|file| file.blocks() > 0)
        };
        while !(0..4).all(runs) {
            if child.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                bail!("the ranks do not run");
            }
            process::pause(Duration::from_millis(20));
        }
        let pid = rank_of(2).context("no rank 2")?;
        let mark = folder.path().join("mark");
        fs::write(&mark, "")?;
        process::run(Command::new("kill").args(["-INT", &pid.to_string()]))?;
        let asked = fs::metadata(&mark)?.modified()?;
        child.wait()?;
        let report = fs::read_to_string(folder.path().join("report"))?;
        let report: Value = serde_json::from_str(&report)?;
        let hosts = report["fathom"]["hosts"].as_array().context("no hosts")?;
        let ends = hosts.iter().filter_map(|host| host["end_ns"].as_u64());
        let end = ends.max().context("no end")?;
        let asked = asked.duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        latest.push(ms(end.saturating_sub(u64::try_from(asked)?)) / 1e3);
    }
    let spread = Spread::of(&latest);
    tell("last end, s", &spread);
    Ok(Measured::Figures(vec![Figure::at_most(
        "all stopped",
        spread.largest,
        "s",
        0.25,
    )]))
}

fn idle(setting: &Setting) -> Result<Measured> {
    if let Some(skipped) = skipped() {
        return Ok(skipped);
    }
    let folder = Scratch::new("ranks")?;
    let job = [
        "--name=a",
        "--ioengine=null",
        "--size=1g",
        "--thinktime=1ms",
        "--time_based",
        "--runtime=6",
        "--output=report",
    ];
    let mut alone = Command::new(&setting.programs.fathom);
    alone.arg("run").args(job).current_dir(folder.path());
    let mut alone = alone.stdin(Stdio::null()).spawn()?;
    process::pause(Duration::from_secs(2));
    let own = Usage::of(alone.id())?;
    alone.wait()?;
    let mut ranks = mpirun(setting, folder.path(), 2);
    let mut ranks = ranks.args(job).arg("--ranks=0").spawn().context("mpirun")?;
    process::pause(Duration::from_secs(2));
    let pid = rank_of(1).context("no rank 1")?;
    let before = Usage::of(pid)?;
    process::pause(Duration::from_secs(2));
    let after = Usage::of(pid)?;
    ranks.wait()?;
    // The kernel counts 100 ticks per second.
    let share = (after.ticks - before.ticks) / 2.0;
    Ok(Measured::Figures(vec![
        Figure::at_most("of a core", share, "%", 1.0),
        Figure::at_most(
            "resident, more than a run alone",
            after.resident_mib - own.resident_mib,
            "MiB",
            16.0,
        ),
        Figure::at_most("threads", after.threads, "", 3.0),
    ]))
}

/// Usage of a process.
struct Usage {
    /// Processor time, hundredths of a second.
    ticks: f64,
    resident_mib: f64,
    threads: f64,
}

impl Usage {
    fn of(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, rest) = stat.rsplit_once(')').context("no name in stat")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let of = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            Ok(word.with_context(|| format!("no {name}"))?.parse()?)
        };
        Ok(Self {
            ticks: fields[11].parse::<f64>()? + fields[12].parse::<f64>()?,
            resident_mib: of("VmRSS:")? / 1024.0,
            threads: of("Threads:")?,
        })
    }
}

/// Finds the process of a rank that this program has started.
fn rank_of(rank: u32) -> Option<u32> {
    let own = format!("{MARK}={}", std::process::id());
    let place = format!("OMPI_COMM_WORLD_RANK={rank}");
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| {
        let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let has = |want: &str| {
            variables
                .split(|&byte| byte == 0)
                .any(|it| it == want.as_bytes())
        };
        has(&own) && has(&place)
    })
}

/// Variable by which ranks of this program are found.
const MARK: &str = "FATHOM_BENCH";
const PAIRS: usize = 15;
/// Ranks, with the names of both figures.
const START_RANKS: [(u32, &str, &str); 3] = [
    (2, "2 ranks, half of the starts", "2 ranks, 9 of 10"),
    (4, "4 ranks, half of the starts", "4 ranks, 9 of 10"),
    (8, "8 ranks, half of the starts", "8 ranks, 9 of 10"),
];
const STARTS_EACH: usize = 50;
const CLOCK_RUNS: usize = 10;
const INTERRUPTS: usize = 10;
/// Far more than a start takes.
const PATIENCE: Duration = Duration::from_secs(60);
