//! `fathom target stats`: the state of a running target.

use std::io::{IsTerminal as _, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use fathom_core::Nanos;
use fathom_record::TargetRecord;
use fathom_report::target_state;
use fathom_sys::clock;
use fathom_sys::signals::Interrupts;
use fathom_target::{StatsError, find_target, read_stats};

use crate::exit::ProgramEnd;
use crate::output::{self, Data, StandardStream};
use crate::target::explained;

/// Arguments of `fathom target stats`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArguments {
    /// Repeat until interrupted, with the rates of each interval
    #[arg(long)]
    watch: bool,
    /// Seconds between two states
    #[arg(long, value_name = "N", default_value_t = 1, requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    interval: u32,
    /// Print JSON, a line per state
    #[arg(long)]
    json: bool,
    /// Path of the target's statistics socket [default: that of the only target of this user]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Prints the state, once or until interrupted.
pub(crate) fn show(arguments: &StatsArguments) -> Result<ProgramEnd> {
    let path = match &arguments.socket {
        Some(path) => path.clone(),
        None => find_target().map_err(|error| failure(&error))?,
    };
    let interrupts = Interrupts::install().context("signals")?;
    let mut earlier: Option<TargetRecord> = None;
    loop {
        let record = match (read_stats(&path), &earlier) {
            (Ok(record), _) => record,
            (Err(error @ StatsError::Silent { .. }), _) | (Err(error), None) => {
                return Err(failure(&error));
            }
            (Err(_gone), Some(_)) => {
                output::print(StandardStream::Error, "fathom: target: it has ended\n");
                return Ok(ProgramEnd::Printed);
            }
        };
        print(arguments, &record, earlier.as_ref())?;
        if !arguments.watch {
            return Ok(ProgramEnd::Printed);
        }
        earlier = Some(record);
        for _ in 0..arguments.interval * CHECKS_PER_S {
            if interrupts.count() > 0 {
                return Ok(ProgramEnd::Printed);
            }
            clock::sleep(SIGNAL_CHECK);
        }
    }
}

fn print(
    arguments: &StatsArguments,
    record: &TargetRecord,
    earlier: Option<&TargetRecord>,
) -> Result<()> {
    if arguments.json {
        return Data::Stdout.add(&format!("{}\n", record.to_json()?));
    }
    let text = target_state(record, earlier);
    Data::Stdout.add(&match (arguments.watch, stdout().is_terminal()) {
        (false, _) => text,
        (true, true) => format!("{CLEAR}{text}"),
        (true, false) => format!("{text}\n"),
    })
}

fn failure(error: &StatsError) -> anyhow::Error {
    explained(error, error.hint())
}

const EXAMPLES: &str = "\
Examples:
  fathom target stats
  fathom target stats --watch --interval 5
  fathom target stats --json --socket /tmp/a.sock

Counters count from the start of the target.
Exit codes: 0 done; 2 no target, or several.";
/// Cursor to the top left, and clear below.
const CLEAR: &str = "\x1b[H\x1b[J";
const SIGNAL_CHECK: Nanos = Nanos::from_millis(50);
const CHECKS_PER_S: u32 = 20;
