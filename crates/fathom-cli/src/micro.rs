//! `fathom micro`: Fathom's own data structures compared with plain implementations.

use clap::{Args, ValueEnum};
use fathom_lab::{Micro, Table, check_threads, generation_map, micro_experiments, tags, task_list};
use fathom_sys::clock::Clock;
use fathom_sys::thread;

use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};
use crate::table_format::TableFormat;
use crate::text_width::fitted_sentences;

/// Arguments of `fathom micro`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MicroArguments {
    /// Benchmark to run; without it, list them
    name: Option<Name>,
    #[command(flatten)]
    format: TableFormat,
    /// Largest number of threads [default: number of CPUs, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Runs of each implementation [default: 21]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// Completion list: several threads push, one pops
    TaskList,
    /// Tag set: get and put tags
    Tags,
    /// Generation map of verification: track the latest write of each block
    GenerationMap,
}

/// Runs the benchmark and prints its table.
pub(crate) fn run(arguments: &MicroArguments) -> ProgramEnd {
    let Some(name) = arguments.name else {
        if let Some(option) = given(arguments) {
            let text = format!(
                "fathom: micro: {option}: no benchmark to apply it to\n\
                 hint: name one; `fathom micro` lists them\n"
            );
            output::print(StandardStream::Error, &text);
            return ProgramEnd::Refused;
        }
        let one = |known: &fathom_lab::Experiment| format!("{}\n    {}\n", known.name, known.about);
        let list: String = micro_experiments().iter().map(one).collect();
        return output::show(
            &fitted_sentences(&list),
            "fathom: micro",
            ProgramEnd::Printed,
        );
    };
    let measure = match name {
        Name::TaskList => task_list,
        Name::Tags => tags,
        Name::GenerationMap => generation_map,
    };
    let threads = arguments.threads.unwrap_or_else(usable_cpus);
    if let Err(error) = check_threads(threads) {
        let text = format!(
            "fathom: micro: cannot start {threads} threads: {error}\n\
             hint: lower --threads, or raise `ulimit -u`\n"
        );
        output::print(StandardStream::Error, &text);
        return ProgramEnd::Refused;
    }
    let table = measured(threads, arguments.repeats.unwrap_or(REPEATS), measure);
    let text = arguments.format.render(&table);
    output::show(&text, "fathom: micro", ProgramEnd::Printed)
}

/// Returns an option that was given, if there is one.
fn given(arguments: &MicroArguments) -> Option<&'static str> {
    let threads = arguments.threads.map(|_| "--threads");
    let repeats = arguments.repeats.map(|_| "--repeats");
    arguments.format.given().or(threads).or(repeats)
}

/// Runs a benchmark with the real clock.
pub(crate) fn measured(threads: u32, repeats: u32, measure: fn(&Micro<'_>) -> Table) -> Table {
    let clock = Clock::calibrated();
    let begun = clock.now();
    measure(&Micro {
        threads,
        repeats,
        now_ns: &|| (clock.now() - begun).get(),
    })
}

/// Returns the number of CPUs in the affinity mask, at most 8.
pub(crate) fn usable_cpus() -> u32 {
    let count = thread::allowed_cpus().map_or(1, |cpus| cpus.len());
    u32::try_from(count).unwrap_or(8).clamp(1, 8)
}

/// Default runs of each implementation.
const REPEATS: u32 = 21;

const EXAMPLES: &str = "\
Examples:
  fathom micro
  fathom micro task-list
  fathom micro tags --threads 2 --repeats 51 --json";
