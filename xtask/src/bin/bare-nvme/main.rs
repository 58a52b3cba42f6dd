//! `bare-nvme`: both ends of NVMe/TCP as bare loops, for `cargo xtask bench nvme`.
//!
//! ```text
//! serve: the floor. Exchanges the bytes of a target, and does nothing else: no command is checked,
//!        no namespace is read, nothing is counted.
//! load:  a host that only keeps a queue full. The same loop drives the floor and a real target,
//!        so that their ratio is that of the targets alone.
//! hold:  many connections that do nothing.
//! join:  times one connection, up to its first read.
//! ```
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for developers: its output is the point"
)]

mod batch;
mod floor;
mod host;
mod intake;
mod join;
mod load;
mod options;
mod shape;
mod wait;

use std::process::ExitCode;

use anyhow::{Result, bail};

use options::Options;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bare-nvme: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    let options = Options::parse(rest)?;
    match command.as_str() {
        "serve" => floor::serve(&options),
        "load" => load::run(&options),
        "hold" => join::hold(&options),
        "join" => join::time(&options),
        other => bail!("no command `{other}`: serve, load, hold or join"),
    }
}

const HELP: &str = "\
bare-nvme serve [--busy]   answer commands as the floor; prints its address; ends with its input
bare-nvme load ADDRESS     keep queues full and print a line of JSON
bare-nvme hold ADDRESS     open connections and keep them until the input ends
bare-nvme join ADDRESS     print the milliseconds from the first packet to the first read
    --shape SHAPE          read, capsule (write, data in the capsule) or r2t (write) [default: read]
    --bytes N              bytes of each command [default: 4096]
    --depth N              commands in flight on each queue [default: 32]
    --queues N             queues, one connection each [default: 1]
    --seconds S            seconds of load [default: 1]
    --warm-up S            seconds of load before these [default: 0.1]
    --wait WAY             block (in reads and writes), epoll or poll [default: block]
    --busy                 the same as --wait poll
    --nqn NQN              NQN of the subsystem; without it the peer is the floor, which has none
    --connections N        connections of `hold` [default: 1000]
";
