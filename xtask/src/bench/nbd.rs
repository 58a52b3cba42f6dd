//! `cargo xtask bench nbd`: the engine `nbd` beside fio with libnbd and qemu-img, on a server with
//! memory on the loopback address.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::figure::Figure;
use super::pairs::in_turn;
use super::programs;
use super::report::{self, Measured, Row, Setting};
use super::scratch::Scratch;
use super::statistics::Spread;
use crate::process;

/// Rows, in the order in which they are measured.
const ROWS: &[Row] = &[
    Row {
        name: "fio",
        what: "randread 4k, depth 32, one connection: `fathom run` over fio with libnbd, IOPS",
        measure: beside_fio,
    },
    Row {
        name: "simple",
        what: "the same with `replies=simple`, IOPS",
        measure: with_simple_replies,
    },
    Row {
        name: "qemu-img",
        what: "read 4k, depth 32, one connection: `fathom run` over `qemu-img bench`, IOPS",
        measure: beside_qemu,
    },
];

/// Runs `cargo xtask bench nbd`.
pub(super) fn run(args: &[String]) -> Result<()> {
    report::run_rows("nbd", ROWS, args, programs::build)
}

/// nbdkit with 1 GiB of memory, ended on drop.
struct Server {
    folder: Scratch,
    port: u16,
}

impl Server {
    /// Starts it; it goes to the background once it listens.
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (folder, port) = (Scratch::new("nbd")?, listener.local_addr()?.port());
        drop(listener);
        let mut command = Command::new("nbdkit");
        command.args(["-i", "127.0.0.1", "-p", &port.to_string()]);
        command.arg("-P").arg(folder.path().join("pid"));
        command.args(["memory", "1G"]);
        // Captured output would stay open until the server ends.
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
        let status = silent.stderr(Stdio::null()).status().context("nbdkit")?;
        match status.success() {
            true => Ok(Self { folder, port }),
            false => bail!("nbdkit: {status}"),
        }
    }

    fn uri(&self) -> String {
        format!("nbd://127.0.0.1:{}/", self.port)
    }

    /// Returns the IOPS of a job, of fathom or fio.
    fn job(&self, mut command: Command, words: &[&str]) -> Result<f64> {
        command.args(["--name=bench", "--ioengine=nbd", "--bs=4k", "--iodepth=32"]);
        command.arg(format!("--uri={}", self.uri()));
        command.args(words);
        command.args(["--norandommap", "--time_based", "--output-format=json"]);
        command.arg(format!("--runtime={SECONDS}"));
        command.current_dir(self.folder.path());
        let text = process::capture(&mut command)?;
        // fio's engine says that it has connected, on standard output.
        let begin = text.find('{').context("no JSON")?;
        let report: Value = serde_json::from_str(&text[begin..])?;
        report["jobs"][0]["read"]["iops"]
            .as_f64()
            .context("no IOPS")
    }

    fn fathom(&self, setting: &Setting, words: &[&str]) -> Result<f64> {
        let mut command = Command::new(&setting.programs.fathom);
        command.arg("run");
        self.job(command, words)
    }

    /// Returns the IOPS of `qemu-img bench`.
    fn qemu_img(&self) -> Result<f64> {
        let mut command = Command::new("qemu-img");
        command.args(["bench", "-f", "raw", "-d", "32", "-s", "4096"]);
        command.args(["-c", &QEMU_OPS.to_string(), &self.uri()]);
        let text = process::capture(&mut command)?;
        let after = text.split("completed in ").nth(1).context("no time")?;
        let seconds = after.split_whitespace().next().context("no time")?;
        Ok(f64::from(QEMU_OPS) / seconds.parse::<f64>()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(pid) = fs::read_to_string(self.folder.path().join("pid")) {
            let _ended = Command::new("kill").arg(pid.trim()).status();
        }
    }
}

fn beside_fio(setting: &Setting) -> Result<Measured> {
    random_reads(setting, &["--rw=randread"])
}

fn with_simple_replies(setting: &Setting) -> Result<Measured> {
    random_reads(setting, &["--rw=randread", "--replies=simple"])
}

/// Measures a job beside fio's random reads.
fn random_reads(setting: &Setting, words: &[&str]) -> Result<Measured> {
    let Some(fio) = &setting.programs.fio else {
        return Ok(Measured::Skipped("no fio".into()));
    };
    measure(setting, words, 1.2, |server| {
        server.job(Command::new(fio), &["--rw=randread"])
    })
}

fn beside_qemu(setting: &Setting) -> Result<Measured> {
    if process::find("qemu-img").is_none() {
        return Ok(Measured::Skipped("no qemu-img".into()));
    }
    measure(setting, &["--rw=read"], 1.0, Server::qemu_img)
}

/// Measures pairs of fathom and another program, which take turns in being first.
fn measure(
    setting: &Setting,
    words: &[&str],
    bound: f64,
    other: impl Fn(&Server) -> Result<f64>,
) -> Result<Measured> {
    if process::find("nbdkit").is_none() {
        return Ok(Measured::Skipped("no nbdkit".into()));
    }
    let server = Server::start()?;
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let (other, fathom) = in_turn(
            pair % 2 == 1,
            || other(&server),
            || server.fathom(setting, words),
        )?;
        println!("bench:   {fathom:.0} over {other:.0} IOPS");
        pairs.push((fathom, other));
    }
    let ratio = Spread::of_ratios(&pairs).middle;
    Ok(Measured::Figures(vec![Figure::at_least(
        "ratio", ratio, "", bound,
    )]))
}

const PAIRS: usize = 7;
/// Seconds of a run of fathom and fio.
const SECONDS: u32 = 3;
/// Reads of a run of qemu-img.
const QEMU_OPS: u32 = 200_000;
