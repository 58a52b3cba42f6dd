//! Programs that an experiment runs.

use std::process::Command;

use fathom_sys::child::{Ended, output_unless};

use crate::error::CommandError;

/// Runs a program and returns its output, or the first line of its error. The program ends with
/// this process, and on an interrupt.
pub(crate) fn output(
    mut command: Command,
    stops: &dyn Fn() -> u32,
) -> Result<String, CommandError> {
    let ended = output_unless(&mut command, &|| stops() > 0).map_err(CommandError::System)?;
    let Ended::ByItself(output) = ended else {
        return Err(CommandError::Interrupted);
    };
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let line = error.lines().next().unwrap_or("exited with an error");
        return Err(CommandError::Failed(line.to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
