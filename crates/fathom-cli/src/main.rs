//! The program `fathom`; under the name `fio` it takes fio's arguments directly.
#![forbid(unsafe_code)]

mod ab;
mod bug;
mod commands;
mod compare;
mod compare_sides;
mod completions;
mod definition;
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
mod layout_bar;
mod lint;
mod live;
mod log;
mod manual;
mod manual_jobs;
mod merge;
mod metrics_file;
mod micro;
mod output;
mod peak;
mod peak_against;
mod peak_arguments;
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

use std::process::ExitCode;

use crate::exit::ProgramEnd;

fn main() -> ExitCode {
    bug::install_hook();
    fathom_sys::signals::restore_default_stop();
    let words: Vec<_> = std::env::args_os().collect();
    let dialect = commands::dialect(words.first());
    let ended = std::panic::catch_unwind(|| commands::run(&words, dialect));
    // The hook has reported the panic to the user.
    let end = ended.unwrap_or(ProgramEnd::Bug);
    ExitCode::from(exit::code(dialect, end))
}
