//! Output files: the only way in which the program writes a file that its user named.
//!
//! | the name refers to | the output |
//! |---|---|
//! | nothing, or a regular file | goes to a temporary file beside it, which is renamed |
//! | a regular file that a rename would alter | the same, but is then copied into the file |
//! | a regular file in a directory that is not writable | is written in place |
//! | a regular file through `/proc/PID/fd` | is written in place |
//! | a pipe or a character device | is written to it; it is never removed or replaced |
//! | a directory, a block device, a socket, an SQLite database | is refused |
//!
//! A rename would alter a file that has another owner or other hard links, or is a mount point.
//! Symbolic links are followed and kept. Until [`OutputFile::place`], readers see the earlier
//! content; output that was never placed leaves nothing behind. Logs of a run are written in place
//! instead, because they are read while they grow.

mod destination;
mod stream;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use destination::Destination;
pub use stream::OutputStream;

use crate::error::HostError;
use crate::file_identity::FileIdentity;

/// An output file under construction.
///
/// Create it with [`create`](Self::create), write to it, and publish it with
/// [`finish`](Self::finish). If it is dropped before, the earlier file is unchanged, except where
/// the file had to be written in place.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    mode: OutputMode,
    stop: Stop,
}

#[derive(Debug)]
enum OutputMode {
    /// A temporary file, to be renamed to the target's name.
    Beside {
        part: TemporaryFile,
        target: ReplacedFile,
    },
    /// The target itself, written from its start.
    Direct(File),
    /// A pipe or a device.
    Stream(OutputStream),
}

/// The regular file to be replaced.
#[derive(Debug)]
struct ReplacedFile {
    path: PathBuf,
    /// A rename would alter more than the content.
    must_stay: bool,
}

impl OutputFile {
    /// Starts an output file. Waits for the reader of a FIFO, unless asked to stop.
    ///
    /// # Errors
    /// The error that prevents writing; nothing was changed.
    pub fn create(path: &Path, stop: &Stop) -> Result<Self, HostError> {
        let mode = match Destination::of(path)? {
            Destination::Missing(target) => OutputMode::Beside {
                part: TemporaryFile::beside(&target)?,
                target: ReplacedFile {
                    path: target,
                    must_stay: false,
                },
            },
            Destination::Regular(target, metadata) => beside_or_in(target, &metadata)?,
            Destination::Descriptor => OutputMode::Direct(open_there(path)?),
            Destination::Stream => {
                OutputMode::Stream(OutputStream::open(path, &|| stop.is_asked())?)
            }
        };
        Ok(Self {
            path: path.to_owned(),
            mode,
            stop: stop.clone(),
        })
    }

    /// Publishes everything written so far; later writes append to it in place.
    ///
    /// # Errors
    /// The error of the failed system call. The earlier content is kept unless it had to be
    /// overwritten.
    pub fn place(&mut self, durably: bool) -> io::Result<()> {
        if let OutputMode::Beside { part, target } = &mut self.mode {
            if durably {
                part.file.sync_all()?;
            }
            self.mode = OutputMode::Direct(part.replace(target)?);
        }
        if let OutputMode::Direct(file) = &mut self.mode {
            let length = file.stream_position()?;
            file.set_len(length)?;
            if durably {
                file.sync_all()?;
            }
        }
        Ok(())
    }

    /// Publishes the whole file durably (`fsync`).
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn finish(mut self) -> io::Result<()> {
        self.place(true)
    }

    /// Returns whether the name still refers to the published file, which may have been rotated or
    /// removed.
    #[must_use]
    pub fn is_there(&self) -> bool {
        match &self.mode {
            OutputMode::Stream(_) => true,
            OutputMode::Beside { .. } => false,
            OutputMode::Direct(file) => {
                let there = fs::metadata(&self.path);
                let own = file.metadata();
                there
                    .and_then(|there| own.map(|own| is_same(&there, &own)))
                    .unwrap_or(false)
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.mode {
            OutputMode::Beside { part, .. } => part.file.write(bytes),
            OutputMode::Direct(file) => file.write(bytes),
            OutputMode::Stream(stream) => Ok(stream.write(bytes, &|| self.stop.is_asked())?),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a whole output file.
///
/// # Errors
/// As [`OutputFile::create`] and [`OutputFile::place`], and those of writing.
pub fn write(path: &Path, bytes: &[u8], stop: &Stop) -> Result<(), HostError> {
    let mut file = OutputFile::create(path, stop)?;
    file.write_all(bytes)?;
    Ok(file.finish()?)
}

/// Checks before a long run that an output file can be written after it. Changes nothing; a pipe
/// or a device is not opened, because its reader would notice.
///
/// # Errors
/// The error that would prevent writing.
pub fn check(path: &Path) -> Result<(), HostError> {
    let checked = match Destination::of(path)? {
        Destination::Missing(target) => TemporaryFile::beside(&target).map(drop),
        Destination::Regular(target, _) => open_there(&target).map(drop),
        Destination::Descriptor => open_there(path).map(drop),
        Destination::Stream => Ok(()),
    };
    Ok(checked?)
}

/// Returns whether two paths refer to the same file, links followed, or would once it is created.
#[must_use]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    FileIdentity::of(a) == FileIdentity::of(b)
}

/// A request to stop, which ends a wait for the other end of a pipe.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Creates a request that never comes: signals keep their default action.
    #[must_use]
    pub fn never() -> Self {
        Self::when(|| false)
    }

    /// Creates a request that is pending once `is_asked` returns true.
    pub fn when(is_asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_asked))
    }

    /// Returns whether the stop was requested.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        (self.0)()
    }
}

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Stop").field(&self.is_asked()).finish()
    }
}

/// A temporary file, removed on drop unless it was renamed.
#[derive(Debug)]
struct TemporaryFile {
    file: File,
    /// `None` once it was renamed.
    path: Option<PathBuf>,
}

impl TemporaryFile {
    /// Creates a temporary file in the directory of `target`.
    fn beside(target: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            // Relaxed: only uniqueness is needed. The loop skips files left by a killed process of
            // the same PID. The name is short because the target's may already have NAME_MAX bytes.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".fathom-{}-{number}.part", std::process::id());
            let path = target.with_file_name(name);
            let mut options = File::options();
            match options.read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    return Ok(Self {
                        file,
                        path: Some(path),
                    });
                }
            }
        }
    }

    /// Copies owner and mode of the earlier file while this one is still empty.
    fn adopt(&self, earlier: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
            let (uid, gid) = (Some(earlier.uid()), Some(earlier.gid()));
            std::os::unix::fs::fchown(&self.file, uid, gid)?;
        }
        let mode = Permissions::from_mode(earlier.mode() & 0o7777);
        self.file.set_permissions(mode)
    }

    /// Renames the file to the target, or copies it there. Returns the target's current file,
    /// positioned at its end.
    fn replace(&mut self, target: &ReplacedFile) -> io::Result<File> {
        if !target.must_stay
            && let Some(path) = &self.path
        {
            match fs::rename(path, &target.path) {
                Ok(()) => {
                    self.path = None;
                    return self.file.try_clone();
                }
                // A mount point cannot be replaced (EBUSY): copy. Any other error recurs below.
                Err(error) if fs::metadata(&target.path).is_err() => return Err(error),
                Err(_) => {}
            }
        }
        let mut there = open_there(&target.path)?;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, &mut there)?;
        Ok(there)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If it cannot be removed there is nothing else to try.
            let _left = fs::remove_file(path);
        }
    }
}

/// Creates a temporary file beside a regular one, or opens that one if its directory is not
/// writable.
fn beside_or_in(target: PathBuf, metadata: &Metadata) -> io::Result<OutputMode> {
    // A read-only file must not be replaced either.
    let there = open_there(&target)?;
    let Ok(part) = TemporaryFile::beside(&target) else {
        return Ok(OutputMode::Direct(there));
    };
    let must_stay = metadata.nlink() > 1 || part.adopt(metadata).is_err();
    let target = ReplacedFile {
        path: target,
        must_stay,
    };
    Ok(OutputMode::Beside { part, target })
}

/// Opens an existing regular file without truncating it.
fn open_there(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests;
