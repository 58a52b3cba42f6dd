//! Mismatches of verified data, as a job reports them at its end: warnings for those that it
//! tolerated, and files with the blocks (`verify_dump`).
//!
//! The files have fio's names, in the current directory or below `--aux-path`:
//! `FILE.OFFSET.received` and `FILE.OFFSET.expected`, or `FILE.OFFSET.hdr_fail` for a block
//! whose header is not the expected one. FILE is the name without its folders, or the path with
//! `_` for `/` if blocks of another file of that name may be saved, too. A file that cannot be
//! written is a warning: the report matters more.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_record::Warning;
use fathom_setup::translate::JobSetup;
use fathom_workload::{DumpedBlock, Mismatches, Results};

use crate::create_anew::create_anew;

/// Names of a job and of its files.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerifiedFiles {
    job: String,
    paths: Vec<String>,
    /// Folder of saved blocks; empty: the current one.
    folder: PathBuf,
    shared: SharedNames,
    /// The job has the state of an earlier run (`verify_state_load`).
    has_state: bool,
}

/// Names that files in different folders share, among those whose blocks may be saved.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedNames(Arc<HashSet<String>>);

impl SharedNames {
    /// Returns the names that files of these jobs share.
    pub(crate) fn of(setups: &[JobSetup]) -> Self {
        let saves = |setup: &&JobSetup| setup.job.options.verification.dumps;
        let files = setups.iter().filter(saves).flat_map(|setup| &setup.files);
        Self::among(files.map(|file| file.path.as_str()))
    }

    fn among<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        let (mut first, mut shared) = (HashMap::new(), HashSet::new());
        for path in paths {
            let name = base(path);
            if *first.entry(name.clone()).or_insert(path) != path {
                shared.insert(name);
            }
        }
        Self(Arc::new(shared))
    }

    /// Returns the name under which blocks of a file are saved.
    fn name(&self, path: &str) -> String {
        let name = base(path);
        match self.0.contains(&name) {
            true => path.trim_start_matches("./").replace('/', "_"),
            false => name,
        }
    }
}

/// Returns the name of a file without its folders.
fn base(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl VerifiedFiles {
    /// Returns the names of a job that verifies; empty for others.
    pub(crate) fn of(setup: &JobSetup, folder: &Path, shared: &SharedNames) -> Self {
        if setup.worker.verify.is_none() {
            return Self::default();
        }
        let paths = setup.files.iter().map(|file| file.path.clone());
        Self {
            job: setup.job.clone_name(setup.place.clone).to_owned(),
            paths: paths.collect(),
            folder: folder.to_owned(),
            shared: shared.clone(),
            has_state: setup.job.options.verification.loads_state,
        }
    }

    /// Saves the blocks of all mismatches, and returns warnings about them.
    pub(crate) fn report(&self, results: &Results) -> Vec<Warning> {
        let mut warnings = self.tolerated(results);
        warnings.extend(self.nothing_compared(results));
        warnings.extend(self.dump(&results.mismatches, &self.folder));
        warnings
    }

    /// Returns a warning if a job with a verify state read none of the blocks that it knows.
    fn nothing_compared(&self, results: &Results) -> Option<Warning> {
        let checked = results.mismatches.checked;
        (self.has_state && checked.compared == 0 && checked.unknown > 0).then(|| {
            let blocks = checked.unknown;
            let message = format!(
                "nothing was verified: the verify state knows none of the {blocks} blocks that \
                 were read"
            );
            let hint = "read with the `bs`, `verify_interval` and `offset` of the job that wrote";
            self.warning("nothing_verified", message, hint)
        })
    }

    /// Returns a warning per mismatch that did not end the job.
    fn tolerated(&self, results: &Results) -> Vec<Warning> {
        let found = &results.mismatches;
        if results.tolerated.is_none() {
            return Vec::new();
        }
        let shown = found.kept.iter().map(|one| {
            let path = self.path(one.file.index());
            self.warning("verify_mismatch", format!("{path}: {}", one.error), "")
        });
        let mut warnings: Vec<_> = shown.collect();
        let more = found.total - found.kept.len() as u64;
        if more > 0 {
            let total = found.total;
            let message =
                format!("{more} more reads, {total} in all, did not find what was written");
            warnings.push(self.warning("verify_mismatch", message, ""));
        }
        warnings
    }

    /// Saves blocks in `folder`, and returns a warning if not all could be.
    fn dump(&self, mismatches: &Mismatches, folder: &Path) -> Option<Warning> {
        let failed = mismatches.dumps.iter().find_map(|block| {
            let name = self.shared.name(self.path(block.file.index()));
            let saved = save(block, &name, folder);
            saved.err()
        });
        let hint = "make room in the current directory";
        if let Some(why) = failed {
            return Some(self.warning("verify_dump", format!("cannot save a block: {why}"), hint));
        }
        if mismatches.not_dumped > 0 {
            let (limit, more) = (Mismatches::DUMP_BYTES_MAX >> 20, mismatches.not_dumped);
            let message = format!("{more} blocks beyond {limit} MiB were not saved");
            return Some(self.warning("verify_dump", message, "read less in one run"));
        }
        None
    }

    fn path(&self, file: usize) -> &str {
        self.paths.get(file).map_or("", String::as_str)
    }

    fn warning(&self, code: &str, message: String, hint: &str) -> Warning {
        Warning {
            code: code.into(),
            job: self.job.clone(),
            message,
            hint: hint.into(),
        }
    }
}

/// Saves what was read, and what was written.
fn save(block: &DumpedBlock, file: &str, folder: &Path) -> Result<(), String> {
    let write = |what: &str, bytes: &[u8]| {
        let name = folder.join(format!("{file}.{}.{what}", block.offset));
        let written = create_anew(&name).and_then(|mut file| file.write_all(bytes));
        written.map_err(|error| {
            // No half of a block that looks like one.
            let _gone = fs::remove_file(&name);
            format!("{}: {error}", name.display())
        })
    };
    if block.is_header {
        return write("hdr_fail", &block.received);
    }
    write("received", &block.received)?;
    match &block.expected {
        Some(expected) => write("expected", expected),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::FileIndex;

    use super::*;

    fn block(is_header: bool) -> DumpedBlock {
        DumpedBlock {
            file: FileIndex::new(0),
            offset: 8192,
            is_header,
            received: vec![1; 512],
            expected: (!is_header).then(|| vec![2; 512]),
        }
    }

    fn files() -> VerifiedFiles {
        VerifiedFiles {
            job: "t".into(),
            paths: vec!["/somewhere/data".into()],
            folder: PathBuf::new(),
            shared: SharedNames::default(),
            has_state: false,
        }
    }

    #[test]
    fn files_of_one_name_are_saved_under_their_paths() {
        let paths = ["a/data", "./b/data", "/b/data", "/c/other", "a/data"];
        let names = SharedNames::among(paths.into_iter());
        let want = ["a_data", "b_data", "_b_data", "other", "a_data"];
        assert_eq!(paths.map(|path| names.name(path)), want);
    }

    #[test]
    fn a_full_disk_is_a_warning() {
        let mut mismatches = Mismatches::default();
        mismatches.dumps.push(block(true));
        // Files cannot be created in a file.
        let warning = files().dump(&mismatches, Path::new("/dev/null"));
        let warning = warning.expect("a warning");
        assert_eq!(
            (warning.code.as_str(), warning.job.as_str()),
            ("verify_dump", "t")
        );
        assert!(
            warning.message.contains("data.8192.hdr_fail"),
            "{warning:?}"
        );
    }

    #[test]
    fn blocks_beyond_the_limit_are_counted() {
        let mut mismatches = Mismatches::default();
        mismatches.not_dumped += 3;
        let warning = files().dump(&mismatches, Path::new("/dev/null"));
        assert!(warning.expect("a warning").message.starts_with("3 blocks"));
    }
}
