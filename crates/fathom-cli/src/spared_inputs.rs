//! Outputs of commands that read files: none may replace what it is made from.

use std::path::Path;

use anyhow::{Result, bail};
use fathom_host::output_file::is_same_file;

/// Refuses an output that would replace one of the inputs, by whatever name. Inputs that are not
/// files do not count.
pub(crate) fn check<P: AsRef<Path>>(
    option: &str,
    output: &Path,
    inputs: impl IntoIterator<Item = P>,
) -> Result<()> {
    let mut inputs = inputs.into_iter();
    match inputs.find(|input| is_same_file(output, input.as_ref())) {
        Some(input) if output.exists() => {
            let input = input.as_ref().display();
            bail!("{option} would replace `{input}`, which it is made from")
        }
        _ => Ok(()),
    }
}
