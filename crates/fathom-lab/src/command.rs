//! Programs that an experiment runs.

use std::process::Command;

use fathom_sys::child::{Ended, output_unless};

/// Runs a program and returns its output, or the first line of its error. The program ends with
/// this process, and on an interrupt.
pub(crate) fn output(mut command: Command, stops: &dyn Fn() -> u32) -> Result<String, String> {
    let ended = output_unless(&mut command, &|| stops() > 0).map_err(|error| error.to_string())?;
    let Ended::ByItself(output) = ended else {
        return Err("interrupted".into());
    };
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(error
            .lines()
            .next()
            .unwrap_or("exited with an error")
            .to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
