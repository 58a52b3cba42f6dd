//! Programs that a table runs.

use std::process::Command;

use fathom_sys::child::{Ended, output_unless};

/// Returns what a program prints, or else the first line of its complaint. The program ends with
/// this process, and once the user has asked to stop.
pub(crate) fn output(mut command: Command, stops: &dyn Fn() -> u32) -> Result<String, String> {
    let ended = output_unless(&mut command, &|| stops() > 0).map_err(|error| error.to_string())?;
    let Ended::ByItself(output) = ended else {
        return Err("interrupted".into());
    };
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(error.lines().next().unwrap_or("it failed").to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
