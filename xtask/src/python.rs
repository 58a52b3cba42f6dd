//! Virtual environments of Python, kept in the target directory until their packages change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::programs::target_folder;
use crate::process;

/// Returns the folder of programs of the environment of this name, with the packages of a
/// requirements file installed; the inner error is the reason why it cannot be had here.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<Result<PathBuf, String>> {
    let folder = target_folder()?.join(name);
    let (programs, installed) = (folder.join("bin"), folder.join("installed.txt"));
    if fs::read_to_string(&installed).is_ok_and(|text| text == requirements) {
        return Ok(Ok(programs));
    }
    if let Err(why) = install(&folder, requirements)? {
        return Ok(Err(why));
    }
    fs::write(&installed, requirements).with_context(|| installed.display().to_string())?;
    Ok(Ok(programs))
}

fn install(folder: &Path, requirements: &str) -> Result<Result<(), String>> {
    let Some(system) = process::find("python3") else {
        return Ok(Err("no python3".into()));
    };
    let _none = fs::remove_dir_all(folder);
    let mut create = Command::new(system);
    if let Err(error) = process::capture(create.args(["-m", "venv"]).arg(folder)) {
        return Ok(Err(format!(
            "no virtual environment: {}",
            last_line(&error)
        )));
    }
    println!("python: installing into {}", folder.display());
    let pins = folder.join("requirements.txt");
    fs::write(&pins, requirements).with_context(|| pins.display().to_string())?;
    let mut install = Command::new(folder.join("bin/python3"));
    install.args(["-m", "pip", "install", "--quiet"]);
    install.args(["--disable-pip-version-check", "--only-binary=:all:", "-r"]);
    let installed = process::capture(install.arg(pins));
    Ok(installed
        .map(drop)
        .map_err(|error| format!("pip cannot install: {}", last_line(&error))))
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
    fn the_reason_of_a_failure_is_its_last_line() {
        let error = anyhow::anyhow!("`pip` failed\nERROR: one\n\nERROR: no route\n");
        assert_eq!(last_line(&error), "ERROR: no route");
    }
}
