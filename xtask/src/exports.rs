//! `cargo xtask exports`: what `fathom history export` writes, read by the programs it is for.
//!
//! The readers are Python packages, pinned in `tests/exports/requirements.txt` and installed into a
//! virtual environment in the target directory; it is kept until the pins change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::bench::programs::target_folder;
use crate::process;

/// Runs `cargo xtask exports`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let program = parse(args)?;
    let Some(python) = environment()? else {
        return Ok(());
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

/// Returns the interpreter of an environment that has the readers; tells why there is none.
fn environment() -> Result<Option<PathBuf>> {
    let pins = process::root()?.join("tests/exports/requirements.txt");
    let wanted = fs::read_to_string(&pins).with_context(|| pins.display().to_string())?;
    let folder = target_folder()?.join("exports-python");
    let (python, installed) = (folder.join("bin/python3"), folder.join("installed.txt"));
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(Some(python));
    }
    if let Some(why) = install(&folder, &python, &pins)? {
        println!("exports: skipped: {why}");
        return Ok(None);
    }
    fs::write(&installed, wanted).with_context(|| installed.display().to_string())?;
    Ok(Some(python))
}

/// Installs the readers; returns why they cannot be had, if they cannot.
fn install(folder: &Path, python: &Path, pins: &Path) -> Result<Option<String>> {
    let Some(system) = process::find("python3") else {
        return Ok(Some("no python3".into()));
    };
    let _none = fs::remove_dir_all(folder);
    let mut create = Command::new(system);
    if let Err(error) = process::capture(create.args(["-m", "venv"]).arg(folder)) {
        return Ok(Some(format!(
            "no virtual environment: {}",
            last_line(&error)
        )));
    }
    println!("exports: installing the readers into {}", folder.display());
    let mut install = Command::new(python);
    install.args(["-m", "pip", "install", "--quiet"]);
    install.args(["--disable-pip-version-check", "--only-binary=:all:", "-r"]);
    match process::capture(install.arg(pins)) {
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(format!(
            "pip cannot install the readers: {}",
            last_line(&error)
        ))),
    }
}

/// Returns the last line of a failed command's output, which names the reason.
fn last_line(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next_back().unwrap_or_default().trim().to_owned()
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

    #[test]
    fn the_reason_of_a_failure_is_its_last_line() {
        let error = anyhow::anyhow!("`pip` failed\nERROR: one\n\nERROR: no route\n");
        assert_eq!(last_line(&error), "ERROR: no route");
    }
}
