//! Folder in which the ranks of a run leave their records.

use std::path::Path;

use fathom_sys::clock;

/// Returns the folder of the records where the user has named none.
pub(crate) fn default_folder() -> String {
    format!("fathom-ranks-{}", clock::wall_ms() / 1000)
}

/// Removes the record of a rank, if rank 0 has it, from a folder that the user has not named, and
/// the folder with the last one.
pub(crate) fn clear(folder: &str, place: fathom_job::Rank, is_fetched: bool) {
    let folder = Path::new(folder);
    if is_fetched {
        let name = place.record_name();
        // Under `--client`, rank 0 has none.
        let _gone = std::fs::remove_file(folder.join(name));
    }
    // Others may have theirs in it.
    let _used = std::fs::remove_dir(folder);
}
