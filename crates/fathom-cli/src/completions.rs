//! `fathom completions`: scripts for shells.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use clap_complete::aot::{Shell, generate};
use fathom_host::output_file::{self, Stop};

use crate::definition;
use crate::exit::ProgramEnd;
use crate::output::{self, StandardStream};

/// Arguments of `fathom completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete in
    shell: ShellName,
    /// Write the script into DIR, by the name under which the shell looks for it
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Shell with a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShellName {
    /// Bourne-again shell
    Bash,
    /// Z shell
    Zsh,
    /// Friendly interactive shell
    Fish,
}

/// Prints the script, or writes it.
pub(crate) fn run(arguments: &CompletionsArguments) -> ProgramEnd {
    let script = script(arguments.shell);
    let Some(folder) = &arguments.dir else {
        return output::show(&script, "fathom: completions", ProgramEnd::Printed);
    };
    match write(&script, folder, file_name(arguments.shell)) {
        Ok(()) => ProgramEnd::Printed,
        Err(error) => {
            let text = format!("fathom: completions: {error:#}\n");
            output::print(StandardStream::Error, &text);
            ProgramEnd::Refused
        }
    }
}

fn write(script: &str, folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("--dir: {}", folder.display()))?;
    let file = folder.join(name);
    output_file::write(&file, script.as_bytes(), &Stop::never())
        .with_context(|| format!("--dir: {}", file.display()))
}

const fn file_name(shell: ShellName) -> &'static str {
    match shell {
        ShellName::Bash => "fathom",
        ShellName::Zsh => "_fathom",
        ShellName::Fish => "fathom.fish",
    }
}

fn script(shell: ShellName) -> String {
    let shell = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut whole = definition::whole(&definition::job_reference(), true);
    let mut script = Vec::new();
    generate(shell, &mut whole, "fathom", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

const EXAMPLES: &str = "\
Examples:
  fathom completions bash --dir ~/.local/share/bash-completion/completions
  fathom completions zsh --dir ~/.zfunc
  fathom completions fish --dir ~/.config/fish/completions";
