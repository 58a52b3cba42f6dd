//! Runs that cannot be added to the history, as on a full disk: a file each, to be imported later.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fathom_sys::clock;

use crate::finished::FinishedRun;
use crate::import::exported;

/// Writes a run beside the history, or else into the working directory, in the form that
/// `fathom history import` reads. Nothing is replaced.
///
/// # Errors
/// The error of the working directory.
pub(super) fn rescue(history: &Path, run: &FinishedRun) -> io::Result<PathBuf> {
    let now_ms = clock::wall_ms();
    let begun_ms = now_ms.saturating_sub(run.wall_ms);
    let text = exported::to_value(None, Some(begun_ms), run).to_string();
    let name = format!("fathom-run-{now_ms}-{}.json", std::process::id());
    let beside = history.with_file_name(&name);
    match write(&beside, &text) {
        Ok(()) => Ok(beside),
        Err(_also_full) => write(Path::new(&name), &text).map(|()| name.into()),
    }
}

/// Writes a new file whole, or none.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        // Half a document is of no use.
        let _partial = fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::import;

    #[test]
    fn a_rescued_run_can_be_imported() {
        let folder = std::env::temp_dir().join(format!("fathom-rescue-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run = FinishedRun {
            plan: "[j]\n".into(),
            machine: "{}".into(),
            subject: "{}".into(),
            tags: vec![("lab".into(), "a".into())],
            ..FinishedRun::default()
        };
        let file = rescue(&folder.join("history.db"), &run).unwrap();
        assert_eq!(file.parent(), Some(&*folder));
        let read = import(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(read[0].run, run);
        assert!(write(&file, "").is_err(), "replaced");
        fs::remove_dir_all(&folder).unwrap();
    }
}
