//! Survey of a layout: the state of each file, the work it needs, and the free space. Read-only.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_host::safety::kernel_filesystem;
use fathom_host::storage::nearest_existing;
use fathom_job::Fallocate;
use fathom_sys::files::{self, Allocation, FileKind};

use super::{FileContent, LayoutError, LayoutErrorKind, LayoutFile, LayoutJob};

/// State of a file before layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Missing,
    File { bytes: u64 },
    Device,
}

impl Found {
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::File { bytes } => bytes,
            Self::Missing | Self::Device => 0,
        }
    }
}

/// Returns the state of the file at `path`.
pub(super) fn inspect(path: &Path) -> Result<Found, LayoutError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(error) => return Err(LayoutError::system(path, "stat", error)),
    };
    match FileKind::of(&metadata) {
        FileKind::Regular => Ok(Found::File {
            bytes: metadata.len(),
        }),
        FileKind::Block | FileKind::Character | FileKind::Other => Ok(Found::Device),
        FileKind::Directory => Err(LayoutError::new(path, LayoutErrorKind::NotAFile)),
    }
}

/// Work that a file needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutWork {
    /// Create it, empty.
    Create,
    /// Write the missing bytes.
    Fill,
    /// Set its length, leaving holes.
    Size,
    /// Preallocate space.
    Allocate(Allocation),
}

impl LayoutWork {
    /// Returns the number of bytes to write.
    pub(super) fn bytes(self, file: &LayoutFile, found: Found) -> u64 {
        match self {
            Self::Fill => file.length.saturating_sub(found.bytes()),
            Self::Create | Self::Size | Self::Allocate(_) => 0,
        }
    }

    /// Returns the length of the file afterwards.
    fn length_after(self, file: &LayoutFile, found: Found) -> u64 {
        match self {
            Self::Create | Self::Allocate(Allocation::KeepSize) => found.bytes(),
            Self::Fill | Self::Size | Self::Allocate(_) => file.length,
        }
    }
}

/// Returns the work that a file in the state `found` needs; `None` if it is ready.
pub(super) fn work(file: &LayoutFile, found: Found, fallocate: Fallocate) -> Option<LayoutWork> {
    match found {
        Found::Device => return None,
        Found::File { bytes } if bytes >= file.length => return None,
        Found::Missing if file.length == 0 => return Some(LayoutWork::Create),
        Found::Missing | Found::File { .. } => {}
    }
    if file.written {
        return Some(LayoutWork::Fill);
    }
    match fallocate {
        Fallocate::None => (found == Found::Missing).then_some(LayoutWork::Create),
        Fallocate::Truncate => Some(LayoutWork::Size),
        Fallocate::Native => Some(LayoutWork::Allocate(Allocation::Native)),
        Fallocate::Posix => Some(LayoutWork::Allocate(Allocation::Posix)),
        Fallocate::Keep => Some(LayoutWork::Allocate(Allocation::KeepSize)),
    }
}

/// Returns true if `error` means that the disk or a quota is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Rejects, before the first write, layouts that cannot fit and files on kernel interfaces. Only
/// files that layout writes in full count towards the space: a job that writes its file itself may
/// end before the disk is full.
pub(super) fn check_room(jobs: &[LayoutJob]) -> Result<(), LayoutError> {
    let mut lengths: HashMap<&Path, Found> = HashMap::new();
    let mut needs: HashMap<u64, (u64, &Path)> = HashMap::new();
    for job in jobs {
        for file in &job.files {
            let found = match lengths.get(&*file.path) {
                Some(&found) => found,
                None => inspect(&file.path)?,
            };
            let Some(work) = work(file, found, job.fallocate) else {
                continue;
            };
            if found == Found::Missing && !job.may_create {
                return Err(LayoutError::new(
                    &file.path,
                    LayoutErrorKind::CreationForbidden,
                ));
            }
            if let Some(file_system) = interface_under(&file.path) {
                let kind = LayoutErrorKind::KernelInterface(file_system);
                return Err(LayoutError::new(&file.path, kind));
            }
            let bytes = work.length_after(file, found);
            lengths.insert(&file.path, Found::File { bytes });
            // Compressible content is not counted: a compressing file system may fit it.
            if matches!(job.content, FileContent::Random { .. })
                && let Some(device) = file_system_of(&file.path)
            {
                let need = needs.entry(device).or_insert((0, &file.path));
                need.0 = need.0.saturating_add(work.bytes(file, found));
            }
        }
    }
    for (needed, path) in needs.into_values() {
        // A size of 0 means that the file system does not report one.
        let room = room_for(path).filter(|room| room.total_bytes > 0);
        if room.is_some_and(|room| room.available_bytes < needed) {
            return Err(no_room(path, needed, false));
        }
    }
    Ok(())
}

/// Returns the kernel interface (such as sysfs) that contains `path` or would, if any. Checked
/// again after the plan, since a link may have changed in between.
fn interface_under(path: &Path) -> Option<&'static str> {
    if path.exists() {
        return kernel_filesystem(path);
    }
    let created = files::creation_path(path).ok()?;
    kernel_filesystem(&nearest_existing(&created)?)
}

fn file_system_of(path: &Path) -> Option<u64> {
    Some(fs::metadata(nearest_existing(path)?).ok()?.dev())
}

fn room_for(path: &Path) -> Option<files::Space> {
    files::space(&nearest_existing(path)?).ok()
}

/// Builds the error for a full disk, with the number of missing bytes.
pub(super) fn no_room(path: &Path, needed_bytes: u64, begun: bool) -> LayoutError {
    let available = room_for(path).map_or(0, |room| room.available_bytes);
    let kind = LayoutErrorKind::NoRoom {
        needed_bytes,
        // Free space may be unusable (quota, metadata blocks): then everything is missing.
        missing_bytes: match needed_bytes.saturating_sub(available) {
            0 => needed_bytes,
            missing => missing,
        },
        begun,
    };
    LayoutError::new(path, kind)
}
