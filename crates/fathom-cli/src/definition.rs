//! Whole definition of the command line, with the switches and job options of `fathom run` and
//! `fathom lint`, which are not parsed by clap: the source of completions and manual pages.

use std::collections::BTreeSet;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, ValueHint};
use fathom_job::{OptionReference, Reference, SwitchReference};

use crate::commands;
use crate::engines;

/// Returns the reference of the job language, with this program's engines.
pub(crate) fn job_reference() -> Reference {
    Reference::new(engines::registry().infos())
}

/// Returns the definition, with the job options if `job_options` is set.
pub(crate) fn whole(reference: &Reference, job_options: bool) -> Command {
    let mut whole = commands::definition().disable_help_subcommand(true);
    for name in ["run", "lint"] {
        whole = whole.mut_subcommand(name, |command| with_jobs(command, reference, job_options));
    }
    whole
}

/// Adds switches and job options to a command that takes jobs.
fn with_jobs(command: Command, reference: &Reference, job_options: bool) -> Command {
    let command = command.mut_arg("words", |words| {
        words
            .trailing_var_arg(false)
            .allow_hyphen_values(false)
            .value_name("JOB FILE")
            .help("Job files; `-` is standard input")
            .value_hint(ValueHint::FilePath)
    });
    // A command's own options come first; clap adds `--help` to all but `run`.
    let own = command.get_arguments().filter_map(Arg::get_long);
    let mut taken: BTreeSet<String> = own.map(str::to_owned).collect();
    if !command.is_disable_help_flag_set() {
        taken.insert("help".to_owned());
    }
    let is_run = command.is_disable_help_flag_set();
    let switches = reference.switches.iter();
    let switches = switches.filter(|switch| taken.insert(switch.name.to_owned()));
    let mut command = command.args(switches.map(|one| switch(one, is_run)).collect::<Vec<_>>());
    for option in reference.options().filter(|_| job_options) {
        if let Some(option) = job_option(option, &mut taken) {
            command = command.arg(option);
        }
    }
    command
}

/// Defines a switch, with its letter if `letters` is set.
fn switch(switch: &SwitchReference, letters: bool) -> Arg {
    let arg = Arg::new(switch.name).long(switch.name).help(switch.help);
    let arg = match switch.short {
        Some(letter) if letters => arg.short(letter),
        _ => arg,
    };
    let arg = match switch.argument {
        None => return arg.action(ArgAction::SetTrue),
        Some(name) => arg.value_name(name).action(ArgAction::Append),
    };
    let arg = match switch.optional {
        true => arg.num_args(0..=1).require_equals(true),
        false => arg,
    };
    match switch.argument {
        Some("file") => arg.value_hint(ValueHint::FilePath),
        _ => arg,
    }
}

/// Defines a job option by those of its names that are free; `None` if there is none.
fn job_option(option: &OptionReference, taken: &mut BTreeSet<String>) -> Option<Arg> {
    let names = option.names.iter().copied();
    let mut free = names.filter(|name| taken.insert((*name).to_owned()));
    let name = free.next()?;
    let arg = Arg::new(name)
        .long(name)
        .visible_aliases(free)
        .help(option.help)
        .value_name("VALUE")
        .action(ArgAction::Append);
    let arg = match option.is_flag {
        true => arg.num_args(0..=1).require_equals(true),
        false => arg,
    };
    let words = option.choices.iter();
    let words = words.map(|(word, help)| PossibleValue::new(*word).help(help.to_string()));
    let words: Vec<PossibleValue> = words.collect();
    Some(match option.names[0] {
        _ if !words.is_empty() => arg.value_parser(words),
        "filename" | "directory" | "opendir" | "read_iolog" | "write_iolog" => {
            arg.value_hint(ValueHint::AnyPath)
        }
        _ => arg,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_definition_is_consistent() {
        let reference = job_reference();
        for job_options in [false, true] {
            whole(&reference, job_options).debug_assert();
        }
        let mut whole = whole(&reference, true);
        whole.build();
        let run = whole.find_subcommand("run").unwrap();
        let longs: Vec<&str> = run.get_arguments().filter_map(Arg::get_long).collect();
        assert!(
            longs.contains(&"rw") && longs.contains(&"output-format"),
            "{longs:?}"
        );
    }
}
