//! The programs `fathom` and `fathom-mpi`: arguments, terminal, exit codes.
#![forbid(unsafe_code)]

mod ab;
mod ab_lab;
mod bug;
mod client_hosts;
mod client_start;
mod clients;
mod commands;
mod compare;
mod compare_sides;
mod completions;
mod definition;
#[cfg(test)]
mod documents;
mod engines;
mod environment;
mod exit;
mod external_requests;
mod failure;
mod held_output;
mod history;
mod history_keep;
#[cfg(feature = "history")]
mod history_text;
mod keep;
mod kept_output;
mod lab;
mod lab_journal;
mod lab_problems;
mod latency_profile;
mod launcher_voice;
mod layout_bar;
mod lint;
mod live;
mod log;
mod manual;
mod manual_jobs;
mod merge;
mod metric_name;
mod metrics_file;
mod micro;
mod mpi_launcher;
mod output;
mod peak;
mod peak_against;
mod peak_arguments;
mod rank_voice;
#[cfg(feature = "mpi")]
mod ranks;
mod record_so_far;
mod report;
mod report_history;
mod report_logs;
mod report_output;
mod report_page;
mod report_subject;
mod run_command;
mod saved_runs;
mod screen;
mod self_test;
mod serve;
mod simulate;
mod spared_inputs;
mod standard_stream;
mod status;
mod table;
mod table_format;
mod table_hdd;
mod table_pacing;
mod target;
mod target_stats;
mod target_values;
mod text_width;
mod trace;
mod version;
mod views;
mod words;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use fathom_job::Dialect;
use fathom_sys::kept_mappings::KeptMappings;

use crate::exit::ProgramEnd;

/// Runs the program `fathom` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    program(commands::run)
}

/// Runs the program `fathom-mpi`, one rank of a run, with the arguments of this process.
#[cfg(feature = "mpi")]
#[must_use]
pub fn main_of_rank() -> ExitCode {
    program(ranks::run)
}

/// Runs a program, and reports a panic as a bug.
fn program(run: impl FnOnce(&[OsString], Dialect) -> ProgramEnd) -> ExitCode {
    bug::install_hook();
    fathom_sys::signals::restore_default_stop();
    fathom_sys::signals::report_file_size_limit();
    let words: Vec<_> = std::env::args_os().collect();
    let dialect = commands::dialect(words.first());
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| run(&words, dialect)));
    // The hook has reported the panic to the user.
    let end = ended.unwrap_or(ProgramEnd::Bug);
    warn_of_kept_mappings();
    ExitCode::from(exit::code(dialect, end))
}

/// Warns of mappings that the kernel did not release during the run.
fn warn_of_kept_mappings() {
    let Some(kept) = KeptMappings::so_far() else {
        return;
    };
    let error = std::io::Error::from_raw_os_error(kept.errno);
    let text = format!(
        "fathom: warning: failed munmap calls: {}, the last: {error}; the memory is released now, \
         and no result is affected\n",
        kept.count
    );
    output::print(output::StandardStream::Error, &text);
}
