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
mod concurrent;
mod dist;
mod exports;
mod features;
mod fuzz;
mod gallery;
mod hosts;
mod lines;
mod miri;
mod pauses;
mod process;
mod python;
mod readme;
mod static_build;
mod tidy;
mod vm;

use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", args),
    };
    let done = match command {
        "tidy" => tidy::run(rest),
        "bench" => bench::run(rest),
        "browser" => browser::run(rest),
        "compat" => compat::run(rest),
        "ci" => ci::run(rest),
        "dist" => dist::run(rest),
        "exports" => exports::run(rest),
        "fuzz" => fuzz::run(rest),
        "gallery" => gallery::run(rest),
        "hosts" => hosts::run(rest),
        "miri" => miri::run(rest),
        "pauses" => pauses::run(rest),
        "qemu" => vm::run_tests(rest),
        "static" => static_build::run(rest),
        // Its exit code is that of the script in the machine.
        "vm" => return vm::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => bail!("no command `{other}`: `cargo xtask help` lists them"),
    };
    done.map(|()| ExitCode::SUCCESS)
}

const HELP: &str = "\
cargo xtask tidy     check the rules that rustc, rustfmt and clippy cannot check
cargo xtask ci       run what continuous integration runs, cheapest step first
    --long           longer fuzzing, more random test cases, and all benchmarks
    --from STEP      go on from this step: those before it have passed
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
    hosts            measure ranks of an MPI job and merged records instead (needs an MPI)
    nbd              compare the engine nbd with fio's and qemu-img instead (needs nbdkit)
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
    --faults         also start often, cut hosts off, and stop, kill and interrupt ranks
    --only NAME      only the tests whose name contains NAME
    --fathom FILE    test this program, with fathom-mpi beside it, instead of building one
    --list           list the tests and exit
cargo xtask qemu     run the tests of tests/vm, each in a machine that QEMU emulates
    --only NAME      only the tests whose name contains NAME
    --long           also those that take minutes
    --qemu FILE      emulate by this program
    --kernel FOLDER  boot this kernel (see vm)
    --fathom FILE    test this program instead of building one
    --list           list the tests and exit
cargo xtask vm       boot a machine with a stock Debian kernel and fathom: a shell
    SCRIPT           run this script instead (a file, or a name of tests/vm) in the machine that it
                     describes; its exit code is that of the command
    --nvme [K=V,…]   a namespace of nvme0: zoned, ms=8, pi=1, size=64M, as QEMU's nvme-ns
    --null-blk [K=V,…]  a device of null_blk: zoned=1,zone_size=4, as in its folder of configfs
    --scsi-debug [K=V,…]  a SCSI disk: dev_size_mb=64, as the module's parameters
    --dm delay|flakey[,K=V,…]  a device that is slow (ms=100) or fails in turns (up=5,down=2)
    --network        a network card, and the port of this machine that leads to the guest's 4420
    --module NAME    load a module of the kernel, and what it needs
    --nvme-module P  parameter of the module nvme, such as poll_queues=2
    --program NAME   take an installed program of this machine along, such as fio
    --test NAME      take an integration test along, as NAME-tests
    --qemu FILE      emulate by this program (default: qemu-system-x86_64 in the path)
    --kernel FOLDER  boot the kernel of a Debian package unpacked there (dpkg-deb --extract)
    --memory MIB     memory of the machine (default 1024)
    --limit S        stop a script that has not ended after so long (default 180)
    --dev            take a build of fathom without optimisations
    --fathom FILE    take this program instead of building one
cargo xtask static   build the program without shared libraries (with musl, else glibc), and run it
    --release        with optimisations
cargo xtask dist     make a static program in an archive, and a Debian package, in target/dist
    --try            also install and run both in clean root folders (root, debootstrap)
cargo xtask pauses   show the tasks that preempt a job with I/O logs (root, perf)
    --runs N         runs without and with a log (default 10)
    --fathom FILE    trace this program instead of target/release/fathom
";
