//! File layout before a run: files that a job reads are written in full, files that it only writes
//! are allocated.
//!
//! Layout follows fio, except that it never destroys data: where a file is too short, fio removes
//! and recreates it; here it keeps its content, and only the missing tail is written or allocated.
//! Neither touches a longer file. Layout is all-or-nothing: on failure everything created is
//! removed and every extended file is truncated to its former length.
//!
//! ```text
//! survey: stat, free space ─► serial jobs, in order ─► parallel jobs, a thread each ─► report
//!   └ fails before any write      └────────── undo log, replayed backwards on failure ──┘
//! ```
//!
//! Cost: one `stat` per file if nothing is missing; otherwise the bandwidth of the disk, with at
//! most 16 MiB of dirty pages per thread. A rejected alternative is to write to temporary names and
//! rename them: two runs that share a file would then each measure a file of their own.

mod error;
mod fill;
mod lanes;
mod ledger;
mod survey;

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use fathom_core::{Nanos, Tick};
use fathom_job::Fallocate;
use fathom_setup::LayoutProgress;
use fathom_sys::clock::Clock;
use fathom_sys::files::{self, Access, Allocation};

pub use self::error::{LayoutError, LayoutErrorKind};
pub use self::fill::FileContent;
use self::fill::{FileSink, FillError, LayoutSink, fill};
pub use self::ledger::LeftBehind;
use self::ledger::{Ledger, shrink};
use self::survey::{Found, LayoutWork, check_room, inspect, is_full, no_room, work};

/// Files that one job needs before it starts.
#[derive(Clone, Debug)]
pub struct LayoutJob {
    /// Index of the job among those of the run.
    pub index: usize,
    /// Name of the job.
    pub name: String,
    /// Files of the job.
    pub files: Vec<LayoutFile>,
    /// Directories of the job, of an engine that works on directories.
    pub directories: Vec<PathBuf>,
    /// Data to write into them.
    pub content: FileContent,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `create_fsync`: sync each file after writing.
    pub fsync: bool,
    /// `allow_file_create`.
    pub may_create: bool,
    /// Keep the written data in the page cache (`invalidate=0` and, as in fio, `create_fsync=0`).
    pub keep_cached: bool,
    /// Lay out in parallel with other such jobs, after the serial ones (`create_serialize=0`).
    pub in_parallel: bool,
}

/// Required state of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutFile {
    /// Path of the file; devices are left untouched.
    pub path: PathBuf,
    /// Minimum length in bytes.
    pub length: u64,
    /// Every byte must have been written (the job reads or trims, or `overwrite=1`); otherwise
    /// allocated space is enough.
    pub written: bool,
}

/// Options of a layout.
#[derive(Clone, Copy)]
pub struct LayoutOptions<'a> {
    /// The run's clock.
    pub clock: Clock,
    /// Returns true to stop the layout; called after each MiB.
    pub stop: &'a dyn Fn() -> bool,
}

/// Event during a layout.
#[derive(Debug)]
#[non_exhaustive]
pub enum LayoutEvent<'a> {
    /// The files of a job are about to be laid out.
    Starting {
        /// Name of the job.
        job: &'a str,
        /// Number of files.
        files: usize,
        /// Total length of the files.
        bytes: u64,
    },
    /// Progress, about ten times a second.
    Progress(LayoutProgress<'a>),
    /// The layout of the job's files has ended, successfully or not.
    Finished,
}

/// Result of a layout.
#[derive(Debug, Default)]
pub struct LayoutReport {
    /// Bytes written.
    pub written_bytes: u64,
    /// Failures that do not prevent the run, for warnings.
    pub notes: Vec<String>,
    ledger: Ledger,
}

impl LayoutReport {
    /// Returns the files that the layout created.
    pub fn created(&self) -> impl Iterator<Item = &Path> {
        self.ledger.files()
    }

    /// Merges the report of a parallel layout.
    fn add(&mut self, other: Self) {
        self.written_bytes += other.written_bytes;
        self.notes.extend(other.notes);
        self.ledger.add(other.ledger);
    }

    /// Undoes the layout, except for files that another process uses, and returns those that stay.
    #[must_use]
    pub fn undo(self) -> Vec<LeftBehind> {
        self.ledger.undo()
    }
}

/// Returns fio's message: `NAME: Laying out IO file (1 file / 256MiB)`.
#[must_use]
pub fn announcement(job: &str, files: usize, bytes: u64) -> String {
    let mib = bytes >> 20;
    if files == 1 {
        format!("{job}: Laying out IO file (1 file / {mib}MiB)")
    } else {
        format!("{job}: Laying out IO files ({files} files / total {mib}MiB)")
    }
}

/// Lays out the files of the serial jobs, in order, and then those of the parallel jobs. If several
/// jobs use one file, each starts from the state that the previous one left.
///
/// # Errors
/// The first failure. Everything created is removed; if the space is known to be insufficient,
/// nothing is created in the first place.
pub fn lay_out(
    jobs: &[LayoutJob],
    options: &LayoutOptions<'_>,
    tell: &mut dyn FnMut(&LayoutEvent<'_>),
) -> Result<LayoutReport, LayoutError> {
    lay_out_through(jobs, options, tell, &open_sink)
}

/// Factory of the sinks through which files are written.
type OpenSink<'a> = &'a (dyn Fn(File, bool) -> Box<dyn LayoutSink> + Sync);

fn open_sink(file: File, keep_cached: bool) -> Box<dyn LayoutSink> {
    Box::new(FileSink { file, keep_cached })
}

fn lay_out_through(
    jobs: &[LayoutJob],
    options: &LayoutOptions<'_>,
    tell: &mut dyn FnMut(&LayoutEvent<'_>),
    open: OpenSink<'_>,
) -> Result<LayoutReport, LayoutError> {
    check_room(jobs)?;
    let (parallel, serial): (Vec<_>, Vec<_>) = jobs.iter().partition(|job| job.in_parallel);
    let mut layout = Layout {
        options,
        tell: &mut *tell,
        open,
        report: LayoutReport::default(),
    };
    let mut result = serial.iter().try_for_each(|job| layout.job(job));
    let mut report = layout.report;
    if result.is_ok() && !parallel.is_empty() {
        let (more, ended) = lanes::lay_out(&parallel, options, tell, open);
        report.add(more);
        result = ended;
    }
    match result {
        Ok(()) => Ok(report),
        Err(mut error) => {
            error.left_behind = report.undo();
            Err(error)
        }
    }
}

/// Layout in progress, on one thread.
struct Layout<'a> {
    options: &'a LayoutOptions<'a>,
    tell: &'a mut dyn FnMut(&LayoutEvent<'_>),
    open: OpenSink<'a>,
    report: LayoutReport,
}

/// Progress of the job whose files are being laid out.
struct Current<'a> {
    job: &'a LayoutJob,
    done_bytes: u64,
    total_bytes: u64,
    begun: Tick,
    told: Tick,
}

impl Layout<'_> {
    fn job(&mut self, job: &LayoutJob) -> Result<(), LayoutError> {
        for directory in &job.directories {
            self.directory(job, directory)?;
        }
        let mut pending = Vec::new();
        for file in &job.files {
            let found = inspect(&file.path)?;
            if let Some(work) = work(file, found, job.fallocate) {
                pending.push((file, found, work));
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        (self.tell)(&LayoutEvent::Starting {
            job: &job.name,
            files: pending.len(),
            bytes: pending.iter().map(|(file, ..)| file.length).sum(),
        });
        let now = self.options.clock.now();
        let mut current = Current {
            job,
            done_bytes: 0,
            total_bytes: pending
                .iter()
                .map(|(file, found, work)| work.bytes(file, *found))
                .sum(),
            begun: now,
            told: now,
        };
        let mut files = pending.iter();
        let laid_out = files.try_for_each(|(file, ..)| self.file(&mut current, file));
        (self.tell)(&LayoutEvent::Finished);
        laid_out
    }

    fn file(&mut self, current: &mut Current<'_>, file: &LayoutFile) -> Result<(), LayoutError> {
        if (self.options.stop)() {
            return Err(LayoutError::new(&file.path, LayoutErrorKind::Interrupted));
        }
        // Examined again: the job may list a file twice.
        let found = inspect(&file.path)?;
        let Some(work) = work(file, found, current.job.fallocate) else {
            return Ok(());
        };
        let (found, handle) = self.open(file, found, current.job.may_create)?;
        let ended = self.work(current, file, found.bytes(), &handle, work);
        self.report.ledger.left(&handle);
        ended
    }

    fn work(
        &mut self,
        current: &mut Current<'_>,
        file: &LayoutFile,
        from: u64,
        handle: &File,
        work: LayoutWork,
    ) -> Result<(), LayoutError> {
        match work {
            // Another run has extended the file in the meantime.
            _ if from >= file.length => Ok(()),
            LayoutWork::Create => Ok(()),
            LayoutWork::Fill => self.fill(current, file, from, handle),
            LayoutWork::Size => {
                let sized = match i64::try_from(file.length) {
                    Ok(_) => handle.set_len(file.length),
                    // The standard library's error would be that of a failed conversion.
                    Err(_) => Err(ErrorKind::FileTooLarge.into()),
                };
                sized.map_err(|error| LayoutError::system(&file.path, "ftruncate", error))
            }
            LayoutWork::Allocate(how) => self.allocate(current.job, file, from, handle, how),
        }
    }

    /// Opens the file for writing, creating it and its directories if missing, and returns its
    /// former state.
    fn open(
        &mut self,
        file: &LayoutFile,
        mut found: Found,
        may_create: bool,
    ) -> Result<(Found, File), LayoutError> {
        let failed = |error| LayoutError::system(&file.path, "open", error);
        for tried in 1.. {
            let (path, from, access) = match found {
                Found::File { bytes } => (file.path.clone(), Some(bytes), FOR_WRITING),
                Found::Device => break,
                Found::Missing if !may_create => {
                    let kind = LayoutErrorKind::CreationForbidden;
                    return Err(LayoutError::new(&file.path, kind));
                }
                Found::Missing => {
                    let path = files::creation_path(&file.path).map_err(failed)?;
                    if path == file.path {
                        self.make_folders(&path)?;
                    }
                    (path, None, FOR_CREATION)
                }
            };
            match files::open(&path, access) {
                Ok(handle) => {
                    let entered = self.report.ledger.file(&path, &handle, from, file.length);
                    entered.map_err(|error| LayoutError::system(&path, "fstat", error))?;
                    return Ok((found, handle));
                }
                // Another run that lays out the same file has just created it, or has failed and
                // removed it: start over from its current state.
                Err(error) if tried < OPEN_TRIES && has_changed(found, &error) => {
                    found = inspect(&file.path)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(LayoutError::new(&file.path, LayoutErrorKind::NotAFile))
    }

    /// Creates a directory of the job, if it is missing.
    fn directory(&mut self, job: &LayoutJob, path: &Path) -> Result<(), LayoutError> {
        if (self.options.stop)() {
            return Err(LayoutError::new(path, LayoutErrorKind::Interrupted));
        }
        if path.is_dir() {
            return Ok(());
        }
        if !job.may_create {
            return Err(LayoutError::new(path, LayoutErrorKind::CreationForbidden));
        }
        self.make_missing(path.ancestors())
    }

    /// Creates the missing directories above a file.
    fn make_folders(&mut self, path: &Path) -> Result<(), LayoutError> {
        self.make_missing(path.ancestors().skip(1))
    }

    /// Creates missing directories, given inner before outer, with mode 0700, as fio does.
    fn make_missing<'p>(
        &mut self,
        folders: impl Iterator<Item = &'p Path>,
    ) -> Result<(), LayoutError> {
        let missing: Vec<&Path> = folders
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => self.report.ledger.folder(folder),
                // A parallel lane has just created it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(LayoutError::system(folder, "mkdir", error)),
            }
        }
        Ok(())
    }

    fn fill(
        &mut self,
        current: &mut Current<'_>,
        file: &LayoutFile,
        from: u64,
        handle: &File,
    ) -> Result<(), LayoutError> {
        let left = current.total_bytes.saturating_sub(current.done_bytes);
        if !matches!(current.job.fallocate, Fallocate::None | Fallocate::Truncate) {
            set_aside(file, from, handle, left)?;
        }
        let job = current.job;
        let before = current.done_bytes;
        let handle = handle.try_clone();
        let handle = handle.map_err(|error| LayoutError::system(&file.path, "dup", error))?;
        let mut sink = (self.open)(handle, job.keep_cached);
        let content = seeded_for(&job.content, &file.path);
        let mut watch = |written: u64| {
            current.done_bytes = before + written;
            self.report_progress(current);
            match (self.options.stop)() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let filled = fill(
            &mut *sink,
            &content,
            from..file.length,
            job.fsync,
            &mut watch,
        );
        self.report.written_bytes += file.length - from;
        filled.map_err(|error| match error {
            FillError::Interrupted => LayoutError::new(&file.path, LayoutErrorKind::Interrupted),
            FillError::Failed {
                written, source, ..
            } if is_full(&source) => no_room(&file.path, left.saturating_sub(written), true),
            FillError::Failed { what, source, .. } => LayoutError::system(&file.path, what, source),
        })
    }

    fn report_progress(&mut self, current: &mut Current<'_>) {
        let now = self.options.clock.now();
        if now - current.told < TELL_EVERY {
            return;
        }
        current.told = now;
        let progress = LayoutProgress {
            job: &current.job.name,
            done_bytes: current.done_bytes,
            total_bytes: current.total_bytes,
            elapsed: now - current.begun,
        };
        (self.tell)(&LayoutEvent::Progress(progress));
    }

    /// Allocates space for a file that the job will write itself. Only with `fallocate=keep` is a
    /// failure an error, as in fio.
    fn allocate(
        &mut self,
        job: &LayoutJob,
        file: &LayoutFile,
        from: u64,
        handle: &File,
        how: Allocation,
    ) -> Result<(), LayoutError> {
        let Err(error) = files::allocate(handle, how, from, file.length - from) else {
            return Ok(());
        };
        // Free what the file system may have allocated before it failed, so that the job can use
        // it.
        let given_back = shrink(handle, from, file.length);
        given_back.map_err(|error| LayoutError::system(&file.path, "ftruncate", error))?;
        let full = is_full(&error);
        match how {
            Allocation::KeepSize if full => Err(no_room(&file.path, file.length - from, true)),
            Allocation::KeepSize => Err(LayoutError::system(&file.path, "fallocate", error)),
            Allocation::Native if !full => Ok(()),
            Allocation::Native | Allocation::Posix => {
                let path = file.path.display();
                let note = format!("{}: cannot preallocate {path}: {error}", job.name);
                self.report.notes.push(note);
                Ok(())
            }
        }
    }
}

/// Returns true if `error` shows that a file changed after the survey `found` it.
fn has_changed(found: Found, error: &io::Error) -> bool {
    match found {
        Found::Missing => error.kind() == ErrorKind::AlreadyExists,
        Found::File { .. } | Found::Device => error.kind() == ErrorKind::NotFound,
    }
}

/// Allocates the space before writing, so that a full disk fails at once and the file is
/// contiguous. File systems that cannot preallocate do without.
fn set_aside(file: &LayoutFile, from: u64, handle: &File, left: u64) -> Result<(), LayoutError> {
    match files::allocate(handle, Allocation::KeepSize, from, file.length - from) {
        Err(error) if is_full(&error) => {
            // Freed first, or the partial allocation would be counted as missing.
            let _missing_would_be_too_large = shrink(handle, from, file.length);
            Err(no_room(&file.path, left, true))
        }
        _ => Ok(()),
    }
}

/// Derives content that differs per file, or a deduplicating disk would store it once.
fn seeded_for(content: &FileContent, path: &Path) -> FileContent {
    match content {
        FileContent::Random { seed } => {
            let path = path.as_os_str().as_encoded_bytes();
            let seed = path.iter().fold(*seed, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
            });
            FileContent::Random { seed }
        }
        other => other.clone(),
    }
}

/// Attempts to open a file that other runs keep creating and removing.
const OPEN_TRIES: u32 = 100;

const FOR_WRITING: Access = Access {
    write_only: true,
    ..Access::READING
};

/// Exclusive, so that undo never removes a file that another process created meanwhile.
const FOR_CREATION: Access = Access {
    create: true,
    exclusive: true,
    ..FOR_WRITING
};

/// Interval between progress events.
const TELL_EVERY: Nanos = Nanos::from_millis(100);

/// The multiplier of the 64-bit FNV-1a hash.
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests;
