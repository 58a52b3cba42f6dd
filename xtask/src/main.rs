//! Developer tasks: house rules, fuzzing, benchmarks, comparison with fio, continuous integration.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for developers: its output is the point"
)]

mod bench;
mod browser;
mod ci;
mod compat;
mod exports;
mod fuzz;
mod gallery;
mod hosts;
mod lines;
mod miri;
mod pauses;
mod process;
mod qemu;
mod readme;
mod static_build;
mod tidy;
mod vm;

use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    match command {
        "tidy" => tidy::run(rest),
        "bench" => bench::run(rest),
        "browser" => browser::run(rest),
        "compat" => compat::run(rest),
        "ci" => ci::run(rest),
        "exports" => exports::run(rest),
        "fuzz" => fuzz::run(rest),
        "gallery" => gallery::run(rest),
        "hosts" => hosts::run(rest),
        "miri" => miri::run(rest),
        "pauses" => pauses::run(rest),
        "qemu" => qemu::run(rest),
        "static" => static_build::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!("no command `{other}`: `cargo xtask help` lists them"),
    }
}

const HELP: &str = "\
cargo xtask tidy     check the rules that rustc, rustfmt and clippy cannot check
cargo xtask ci       run what continuous integration runs, cheapest step first
    --long           longer fuzzing, more random test cases, and all benchmarks
cargo xtask fuzz     fuzz the decoders, guided by coverage (needs a C++ compiler)
    TARGET...        only these targets, which are the folders of fuzz/corpus (default: all)
    --seconds S      time for all targets together (default 60)
    --seed N         seed of libFuzzer (default 1)
    --self-test      check that a planted bug is found
cargo xtask miri     run the tests of fathom-sys that need no kernel under Miri (needs nightly)
cargo xtask bench    compare Fathom's cost with an installed fio
    nvme             compare the target and the initiator of NVMe/TCP with bare loops instead
    truth            compare the tools' own share of latencies and schedules instead (root)
    lab              count the false alarms of labs on modelled machines, and what they find
    history          time the commands on a history of 10,000 runs
    report           measure trends, pages and views instead
    --runs N         history, report: runs of the history (default 10000)
    --percent N      lab: run only this part of the experiments (default 100)
    --build          lab: also measure what the history adds to a build, which takes minutes
    --pairs N        pairs of runs per row (default 15)
    --seconds S      measured seconds of each run (default 1)
    --only NAME      only the rows whose name contains NAME
    --directory DIR  directory of the test file (default: the target directory)
    --device DEV     truth: read this device instead of the test file
    --fathom FILE    measure this program instead of building one
    --fio FILE       compare with this fio instead of the one in the path
    --keep           replace the kept instruction counts with those measured now
    --growth         fail only if a count has grown by more than 5 %
    --list           list the rows and exit
    --write          write the table into docs/BENCHMARKS.md
cargo xtask compat   compare cases, examples and random plans with an installed fio
    --only NAME      only the cases whose name contains NAME; `plans`: only random plans
    --plans N        number of random plans (default 50)
    --fathom FILE    test this program instead of building one
    --keep           keep the directories of the cases
    --list           list the cases and exit
cargo xtask browser  check the program's pages in Chromium (needs node and npm)
    --only NAME      only the pages whose name contains NAME
    --self-test      check that each check finds what was broken on purpose
    --fathom FILE    test this program instead of building one
    --list           list the pages and exit
cargo xtask exports  read exported runs with pyarrow, promtool, the OTLP definitions and Otava
    --fathom FILE    test this program instead of building one
cargo xtask gallery  draw the pictures of docs/GALLERY.md anew, by the commands that stand there
    --only NAME      only the pictures whose name contains NAME
    --modelled       only those in virtual time
    --fathom FILE    draw with this program instead of building one
    --list           list pictures and commands and exit
cargo xtask hosts    run ranks on three hosts of this machine: namespaces with an sshd each (root)
    --faults         also cut hosts off, and stop, kill and interrupt ranks
    --only NAME      only the tests whose name contains NAME
    --fathom FILE    test this program, with fathom-mpi beside it, instead of building one
    --list           list the tests and exit
cargo xtask qemu     test NVMe/TCP with the Linux kernel's host and target, in QEMU
    --only NAME      only the tests whose name contains NAME
    --fathom FILE    test this program instead of building one
    --list           list the tests and exit
cargo xtask static   build the program without shared libraries (musl), and run it
    --release        with optimisations
cargo xtask pauses   show the tasks that preempt a job with I/O logs (root, perf)
    --runs N         runs without and with a log (default 10)
    --fathom FILE    trace this program instead of target/release/fathom
";
