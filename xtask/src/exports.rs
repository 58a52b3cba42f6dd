//! `cargo xtask exports`: what `fathom history export` writes, read by the programs it is for.
//!
//! The readers are Python packages, pinned in `tests/exports/requirements.txt` and installed into a
//! virtual environment in the target directory; it is kept until the pins change.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::programs::target_folder;
use crate::{process, python};

/// Runs `cargo xtask exports`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let program = parse(args)?;
    let pins = process::root()?.join("tests/exports/requirements.txt");
    let pins = fs::read_to_string(&pins).with_context(|| pins.display().to_string())?;
    let python = match python::environment("exports-python", &pins)? {
        Ok(programs) => programs.join("python3"),
        Err(why) => {
            println!("exports: skipped: {why}");
            return Ok(());
        }
    };
    let program = match program {
        Some(program) => program,
        None => build()?,
    };
    let folder = target_folder()?.join("exports");
    // What an interrupted check left would be added to.
    let _none = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let script = process::root()?.join("tests/exports/check.py");
    let done = process::run(Command::new(python).arg(script).arg(program).arg(&folder));
    fs::remove_dir_all(&folder)?;
    done
}

fn parse(args: &[String]) -> Result<Option<PathBuf>> {
    match args {
        [] => Ok(None),
        [option, program] if option == "--fathom" => Ok(Some(program.into())),
        _ => bail!("exports has these options: --fathom PROGRAM"),
    }
}

/// Builds the program, without optimisations.
fn build() -> Result<PathBuf> {
    let mut command = process::cargo();
    command.args(["build", "--package", "fathom-cli", "--bin", "fathom"]);
    process::run(command.current_dir(process::root()?))?;
    Ok(target_folder()?.join("debug/fathom"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_refused() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            parse(&words)
        };
        assert_eq!(parse("").expect("no options"), None);
        assert_eq!(parse("--fathom f").expect("a program"), Some("f".into()));
        assert!(parse("--fathom").is_err() && parse("--fast").is_err());
    }
}
