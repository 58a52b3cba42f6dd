//! `fathom completions`: scripts for shells.

use clap::{Args, ValueEnum};
use clap_complete::aot::{Shell, generate};

use crate::definition;
use crate::exit::ProgramEnd;
use crate::output;

/// Arguments of `fathom completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// Shell to complete in
    shell: ShellName,
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

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments) -> ProgramEnd {
    output::show(
        &script(arguments.shell),
        "fathom: completions",
        ProgramEnd::Printed,
    )
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
  fathom completions bash > ~/.local/share/bash-completion/completions/fathom
  fathom completions zsh > ~/.zfunc/_fathom
  fathom completions fish > ~/.config/fish/completions/fathom.fish";
