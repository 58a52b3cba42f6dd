//! State of a run that has not ended: a file that is mapped, and holds the generation maps.
//!
//! ```text
//! local-JOB-0-verify.state.unfinished ─┐  (links)   head │ entries of a file │ entries of …
//! local-JOB-1-verify.state.unfinished ─┴────────►        └── GenerationMap ──┘
//! ```
//!
//! The page cache keeps what a killed process has stored, so the file then has the entries as they
//! were: those of acknowledged writes, and those of writes in flight, which are unknown when the
//! file is loaded. It costs a run nothing but the memory of its page cache, and the kernel's
//! writing it out. A crash of the host leaves some of its pages as they were earlier, beside later
//! data, so that a state of another boot is refused.
//!
//! All jobs that save a state have one file, because they share maps.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_record::Warning;
use fathom_setup::translate::JobSetup;
use fathom_sys::files::{Allocation, FileId, allocate};
use fathom_sys::shared_words::SharedWords;
use fathom_workload::{EntryMemory, FileState, GenerationMap, KeptMemory, VerifyState};

use super::{boot, path_of, saves, unfinished_of};

/// Names of the file, which are removed when it is dropped.
#[derive(Debug, Default)]
pub(super) struct UnfinishedState {
    names: Vec<PathBuf>,
    /// The file, once it is there: another run may put its own under the same names.
    file: Option<FileId>,
}

impl UnfinishedState {
    /// Creates the file for all jobs that save a state, and moves their maps to it; returns a
    /// warning if that fails.
    pub(super) fn begin(setups: &mut [JobSetup], folder: &Path) -> (Self, Option<Warning>) {
        let saving: Vec<&JobSetup> = setups.iter().filter(|setup| saves(setup)).collect();
        let kept = KeptMaps::of(&saving);
        if kept.files.is_empty() {
            return (Self::default(), None);
        }
        let names = saving
            .iter()
            .map(|setup| unfinished_of(&path_of(setup, folder)));
        let mut state = Self {
            names: names.collect(),
            file: None,
        };
        let moved = state.create(&kept);
        match moved {
            Ok(maps) => {
                replace(setups, &kept, &maps);
                (state, None)
            }
            Err(error) => {
                let name = state.names.first().map(|name| name.display().to_string());
                let name = name.unwrap_or_default();
                // If this run is killed, a state of an earlier one would describe data that it has
                // overwritten.
                for setup in setups.iter().filter(|setup| saves(setup)) {
                    let _none = fs::remove_file(path_of(setup, folder));
                }
                state = Self::default();
                (state, Some(warning(format!("{name}: {error}"))))
            }
        }
    }

    /// Leaves the file of the job whose state has this path.
    pub(super) fn leave(&mut self, path: &Path) {
        let name = unfinished_of(path);
        self.names.retain(|kept| *kept != name);
    }

    /// Creates the file under all names, and returns the maps in it.
    fn create(&mut self, kept: &KeptMaps) -> io::Result<Vec<Arc<GenerationMap>>> {
        // Those of a run that was killed: its data is about to be overwritten.
        for name in &self.names {
            let _none = fs::remove_file(name);
        }
        let Some((first, others)) = self.names.split_first() else {
            return Ok(Vec::new());
        };
        let head = kept.state().encode_head();
        let total = kept.files.iter().map(|(_, map)| map.memory_bytes());
        let total = head.len() as u64 + total.sum::<u64>();
        let mut file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(first)?;
        self.file = Some(FileId::of(&file.metadata()?));
        file.write_all(&head)?;
        // A store to a block that a full file system cannot allocate would end the process.
        allocate(&file, Allocation::Posix, 0, total)?;
        for name in others {
            fs::hard_link(first, name)?;
        }
        let words = usize::try_from(total / 4).unwrap_or(usize::MAX);
        let words = Arc::new(SharedWords::new(file.as_fd(), words)?);
        Ok(kept.move_to(&words, head.len() / 4))
    }
}

impl Drop for UnfinishedState {
    fn drop(&mut self) {
        for name in &self.names {
            let found = fs::symlink_metadata(name).map(|found| FileId::of(&found));
            if found.ok() == self.file {
                let _gone = fs::remove_file(name);
            }
        }
    }
}

/// Maps of the jobs that save a state, each once, and their files.
struct KeptMaps {
    jobs: Vec<String>,
    files: Vec<(String, Arc<GenerationMap>)>,
}

impl KeptMaps {
    fn of(saving: &[&JobSetup]) -> Self {
        let mut jobs: Vec<String> = Vec::new();
        let mut files: Vec<(String, Arc<GenerationMap>)> = Vec::new();
        for setup in saving {
            if !jobs.contains(&setup.name) {
                jobs.push(setup.name.clone());
            }
            for (file, map) in setup.files.iter().zip(&setup.worker.generations) {
                let Some(map) = map else { continue };
                if !files.iter().any(|(_, other)| Arc::ptr_eq(other, map)) {
                    files.push((file.path.clone(), Arc::clone(map)));
                }
            }
        }
        Self { jobs, files }
    }

    /// Returns the state without its entries.
    fn state(&self) -> VerifyState {
        let file = |(path, map): &(String, Arc<GenerationMap>)| FileState {
            path: path.clone(),
            layout: map.layout(),
            by_sync: map.sync_words() > 0,
            entries: Vec::new(),
        };
        VerifyState {
            is_complete: false,
            boot: boot(),
            jobs: self.jobs.clone(),
            files: self.files.iter().map(file).collect(),
        }
    }

    /// Returns the maps, each with its part of `words`, the first of which begins at `start`.
    fn move_to(&self, words: &Arc<SharedWords>, mut start: usize) -> Vec<Arc<GenerationMap>> {
        let mut part = |count: u64| {
            let part = Part::new(words, start, count);
            start += part.count;
            part
        };
        let each = self.files.iter().map(|(_, map)| {
            let entries = part(map.layout().blocks());
            let syncs = Some(part(map.sync_words())).filter(|part| part.count > 0);
            match map.is_uniform() {
                true => Arc::new(map.kept_in(KeptMemory {
                    entries: Box::new(entries),
                    syncs: syncs.map(|part| Box::new(part) as Box<dyn EntryMemory>),
                })),
                false => {
                    entries.fill(FileState::UNKNOWN);
                    Arc::clone(map)
                }
            }
        });
        each.collect()
    }
}

/// Entries of one file, or their syncs.
#[derive(Debug)]
struct Part {
    words: Arc<SharedWords>,
    start: usize,
    count: usize,
}

impl Part {
    fn new(words: &Arc<SharedWords>, start: usize, count: u64) -> Self {
        Self {
            words: Arc::clone(words),
            start,
            count: usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    fn fill(&self, entry: u32) {
        // Relaxed: no job has begun.
        let words = self.as_ref().iter();
        words.for_each(|word| word.store(entry, Ordering::Relaxed));
    }
}

impl AsRef<[AtomicU32]> for Part {
    #[inline]
    fn as_ref(&self) -> &[AtomicU32] {
        &(*self.words).as_ref()[self.start..self.start + self.count]
    }
}

/// Gives all jobs the maps in place of the earlier ones.
fn replace(setups: &mut [JobSetup], kept: &KeptMaps, maps: &[Arc<GenerationMap>]) {
    for map in setups
        .iter_mut()
        .flat_map(|setup| &mut setup.worker.generations)
    {
        let Some(map) = map else { continue };
        let moved = kept.files.iter().zip(maps);
        let mut moved = moved.filter(|((_, earlier), _)| Arc::ptr_eq(earlier, map));
        if let Some((_, moved)) = moved.next() {
            *map = Arc::clone(moved);
        }
    }
}

fn warning(why: String) -> Warning {
    Warning {
        code: "verify_state".into(),
        job: String::new(),
        message: format!("no verify state would be left if the run was killed: {why}"),
        hint: "name a directory on a local file system with `--aux-path`".into(),
    }
}
