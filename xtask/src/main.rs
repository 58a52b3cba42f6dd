//! House rules, benchmarks and continuous integration: `cargo xtask help`.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for developers: its output is the point"
)]

mod bench;
mod ci;
mod compat;
mod fuzz;
mod pauses;
mod process;
mod readme;
mod tidy;

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
        "compat" => compat::run(rest),
        "ci" => ci::run(rest),
        "fuzz" => fuzz::run(rest),
        "pauses" => pauses::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!("no command `{other}`: `cargo xtask help` lists them"),
    }
}

const HELP: &str = "\
cargo xtask tidy     hold the tree against the house rules
cargo xtask bench    run fathom beside an installed fio and compare
    --pairs N        pairs of runs per row (default 15)
    --seconds S      measured seconds of each run (default 1)
    --only NAME      only the rows whose name contains NAME
    --directory DIR  where the test file goes (default: the target directory)
    --fathom FILE    measure this program instead of building one
    --keep           hold later counts of instructions against those measured now
    --growth         fail only where a count has grown by more than 5 %
    --list           list the rows and stop
    --write          put the table into docs/BENCHMARKS.md
cargo xtask compat   run cases and examples beside an installed fio: all must agree
    --only NAME      only the cases whose name contains NAME; `plans`: only random plans
    --plans N        so many random plans (default 50)
    --fathom FILE    try this program instead of building one
    --keep           leave the cases' folders behind
    --list           list the cases and stop
cargo xtask ci       what continuous integration runs
    --long           also the benchmark and many more random test cases
cargo xtask fuzz     fuzz the decoders, guided by coverage (needs a C++ compiler)
    TARGET...        only these targets, which are the folders of fuzz/corpus (default: all)
    --seconds S      time for all targets together (default 60)
    --seed N         seed of libFuzzer (default 1)
    --self-test      check that a planted bug is found
cargo xtask pauses   who takes the processor from a job with I/O logs (root, perf)
    --runs N         runs without and with a log (default 10)
    --fathom FILE    trace this program instead of target/release/fathom
";
