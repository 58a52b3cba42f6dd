//! Check of a target before it is measured.

use std::io;
use std::path::Path;

use fathom_sys::files::FileKind;

use crate::error::LabError;

/// Checks that a target can be read. A pipe is not opened: that would block.
pub(crate) fn check(target: &Path) -> Result<(), LabError> {
    let opened = std::fs::metadata(target).and_then(|metadata| match FileKind::of(&metadata) {
        FileKind::Regular | FileKind::Block => std::fs::File::open(target).map(drop),
        _ => {
            let why = "neither a regular file nor a block device";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    });
    opened.map_err(|source| LabError::TargetNotReadable {
        target: target.to_owned(),
        source,
    })
}
