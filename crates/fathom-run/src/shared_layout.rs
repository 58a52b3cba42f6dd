//! Agreement with the other ranks before the jobs: the plan, and the files to lay out.
//!
//! A file that several ranks name is laid out by the lowest of them. The others wait until the
//! files of all ranks are laid out and look again: what is missing even so, such as on a host with
//! storage of its own under the same path, they lay out then.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use fathom_host::storage_identity;
use fathom_hosts::{Checks, FILES_MAX, FileKey, Verdict};
use fathom_setup::RunError;

use crate::layout::LayoutJob;
use crate::peer_access::{PeerAccess, never_began};

/// Files to lay out: those of this rank, and those that another rank lays out.
#[derive(Debug, Default)]
pub(crate) struct LayoutShare {
    pub(crate) own: Vec<LayoutJob>,
    pub(crate) others: Vec<LayoutJob>,
}

/// Reports the result of this rank's checks to the others, which is its files to lay out, waits for
/// theirs, and returns which of the files are this rank's share.
///
/// # Errors
/// This rank or another one refused the plan, or all are to stop.
pub(crate) fn agree(
    checked: Result<Vec<LayoutJob>, RunError>,
    peers: &PeerAccess<'_>,
    stops: &dyn Fn() -> u32,
) -> Result<LayoutShare, RunError> {
    if peers.is_alone() {
        return Ok(LayoutShare {
            own: checked?,
            others: Vec::new(),
        });
    }
    let named = NamedFiles::of(checked.as_deref().unwrap_or_default());
    let reasons = checked.as_ref().err().map(reasons).unwrap_or_default();
    let checks = Checks::new(&reasons, named.keys.clone());
    peers.get().checked(checks.expect("as many files as fit"));
    peers.wait(stops, |peers| peers.verdict().is_some());
    let jobs = checked?;
    let (verdict, stop) = (peers.see().verdict(), peers.see().stop());
    match verdict {
        Some(Verdict::Sound { others }) => Ok(named.divide(jobs, &others)),
        Some(Verdict::Refused) => Err(never_began(None)),
        None => Err(never_began(stop)),
    }
}

/// Returns the problems of a plan as lines for the user of rank 0.
fn reasons(refusal: &RunError) -> Vec<String> {
    let told = refusal.problems.iter().map(|problem| {
        let job = match problem.job.as_str() {
            "" => String::new(),
            job => format!("job `{job}`: "),
        };
        let hint = problem.hint.as_ref().map(|hint| format!("\nhint: {hint}"));
        format!("{job}{}{}", problem.message, hint.unwrap_or_default())
    });
    told.collect()
}

/// Files of all jobs, as announced to the other ranks.
struct NamedFiles {
    keys: Vec<FileKey>,
    unit: Unit,
}

/// Unit of which there is a key.
enum Unit {
    /// Each file, with the index of its key.
    File(HashMap<PathBuf, u16>),
    /// All files of a job: there are too many files for a message.
    Job,
    /// All files of the plan: there are too many jobs, too.
    Plan,
}

impl NamedFiles {
    fn of(jobs: &[LayoutJob]) -> Self {
        let files: BTreeSet<&Path> = jobs.iter().flat_map(paths).collect();
        if files.len() <= FILES_MAX {
            let index = files.iter().map(|path| path.to_path_buf()).zip(0..);
            return Self {
                unit: Unit::File(index.collect()),
                keys: files.into_iter().map(key).collect(),
            };
        }
        if jobs.len() <= FILES_MAX {
            return Self {
                keys: jobs.iter().map(key_of_job).collect(),
                unit: Unit::Job,
            };
        }
        Self {
            keys: vec![FileKey::new(0)],
            unit: Unit::Plan,
        }
    }

    /// Divides the jobs; `others` has the indexes of the keys that are others', rising.
    fn divide(&self, jobs: Vec<LayoutJob>, others: &[u16]) -> LayoutShare {
        let mut share = LayoutShare::default();
        for (number, job) in (0..).zip(jobs) {
            let is_others = |path: &Path| match &self.unit {
                Unit::File(index) => index.get(path).is_some_and(|at| is_in(others, *at)),
                Unit::Job => is_in(others, number),
                Unit::Plan => !others.is_empty(),
            };
            let part = |of_others: bool| {
                let mut part = job.clone();
                part.files.retain(|file| is_others(&file.path) == of_others);
                part.directories.retain(|path| is_others(path) == of_others);
                Some(part).filter(|part| paths(part).next().is_some())
            };
            share.own.extend(part(false));
            share.others.extend(part(true));
        }
        share
    }
}

fn is_in(indexes: &[u16], index: u16) -> bool {
    indexes.binary_search(&index).is_ok()
}

fn paths(job: &LayoutJob) -> impl Iterator<Item = &Path> {
    let files = job.files.iter().map(|file| &*file.path);
    files.chain(job.directories.iter().map(|path| &**path))
}

fn key(path: &Path) -> FileKey {
    FileKey::new(storage_identity(path))
}

/// Returns the key of a job's files: equal for jobs with the same ones.
fn key_of_job(job: &LayoutJob) -> FileKey {
    let mut keys: Vec<u64> = paths(job).map(storage_identity).collect();
    keys.sort_unstable();
    let all = keys.iter().fold(0u64, |all, key| all.rotate_left(7) ^ key);
    FileKey::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepare::layout_jobs;
    use fathom_host::target_kind::HostFileSystem;

    fn jobs(words: &str) -> Vec<LayoutJob> {
        let plan = crate::testing::plan(words);
        let setups = fathom_setup::translate::translate(&plan, &HostFileSystem, &mut || 0).setups;
        layout_jobs(&setups, &[])
    }

    fn files(jobs: &[LayoutJob]) -> Vec<String> {
        let all = jobs.iter().flat_map(paths);
        all.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_file_of_several_jobs_has_one_key() {
        let jobs = jobs("--size=1m --name=a --filename=/tmp/x:/tmp/y --name=b --filename=/tmp/x");
        let named = NamedFiles::of(&jobs);
        assert_eq!(named.keys.len(), 2);
        let share = named.divide(jobs, &[0]);
        assert_eq!(files(&share.own), ["/tmp/y"]);
        assert_eq!(files(&share.others), ["/tmp/x", "/tmp/x"]);
    }

    #[test]
    fn many_files_are_told_by_job() {
        let lists = "--size=1m --name=a --nrfiles=5000 --name=b --nrfiles=2";
        let all = jobs(lists);
        let named = NamedFiles::of(&all);
        assert_eq!(named.keys.len(), 2);
        assert_eq!(named.keys, NamedFiles::of(&jobs(lists)).keys);
        let share = named.divide(all, &[1]);
        assert_eq!(
            (files(&share.own).len(), files(&share.others).len()),
            (5000, 2)
        );
    }
}
