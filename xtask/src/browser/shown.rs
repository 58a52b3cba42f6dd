//! The time in which the browser shows a page.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Tools;
use crate::bench::programs::target_folder;
use crate::process;

/// Returns the milliseconds from the navigation to a page until it is shown in whole, of several
/// loads with a fresh browser each; the inner error says what is not installed.
pub(crate) fn times_ms(page: &Path, loads: u32) -> Result<Result<Vec<f64>, String>> {
    let tools = match Tools::find(&target_folder()?.join("browser"))? {
        Ok(tools) => tools,
        Err(why) => return Ok(Err(why)),
    };
    let mut command = Command::new(&tools.node);
    command.current_dir(&tools.scripts).arg("shown.mjs");
    command.arg(&tools.chromium);
    command.arg(format!("file://{}", page.display()));
    command.arg(loads.to_string());
    let output = command.output().context("node")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {why}", process::shown(&command));
    }
    let times = text.lines().map(|line| line.parse().context("no number"));
    Ok(Ok(times.collect::<Result<_>>()?))
}
