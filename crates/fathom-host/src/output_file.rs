//! Output files: the one way in which the program writes a file that its user named.
//!
//! | the name leads to | the output |
//! |---|---|
//! | nothing, or a regular file | goes into a new file beside it, which is renamed |
//! | a regular file that renaming would change | the same, then is copied into the file |
//! | a regular file whose directory takes no new one | is written in place |
//! | a regular file by way of `/proc/PID/fd` | is written in place |
//! | a pipe or a character device | goes into it; it is never removed or replaced |
//! | a directory, a block device, a socket | is refused |
//!
//! Renaming would change a file of another owner, with other hard links, or mounted by itself.
//! Symbolic links are followed and stay. Until [`OutputFile::place`], readers see the earlier
//! content, or none; what was not placed leaves nothing behind. Logs of a run are written in place
//! instead (`logs/open.rs`), as they are read while they grow.

mod destination;
mod stream;

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

pub use destination::Destination;
pub use stream::Stream;

/// An output file that is being written.
///
/// Create it with [`create`](Self::create), write it, and put it in place with
/// [`finish`](Self::finish). If it is dropped before, the name leads to what it led to before,
/// except where the file had to be written in place.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    place: Place,
    stop: Stop,
}

#[derive(Debug)]
enum Place {
    /// A new file, to be given the target's name.
    Beside { part: Part, target: Target },
    /// The file itself, written from its beginning.
    Direct(File),
    /// A pipe or a device.
    Stream(Stream),
}

/// The regular file that a new one takes the place of.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    /// Renaming would change more than the content.
    must_stay: bool,
}

impl OutputFile {
    /// Begins an output file; waits for the reader of a pipe, unless asked to stop.
    ///
    /// # Errors
    /// Why the file cannot be written; then nothing was changed.
    pub fn create(path: &Path, stop: &Stop) -> io::Result<Self> {
        let place = match Destination::of(path)? {
            Destination::Missing(target) => Place::Beside {
                part: Part::beside(&target)?,
                target: Target {
                    path: target,
                    must_stay: false,
                },
            },
            Destination::Regular(target, metadata) => beside_or_in(target, &metadata)?,
            Destination::Descriptor => Place::Direct(open_there(path)?),
            Destination::Stream => Place::Stream(Stream::open(path, &|| stop.is_asked())?),
        };
        Ok(Self {
            path: path.to_owned(),
            place,
            stop: stop.clone(),
        })
    }

    /// Puts what was written so far in place; what is written after this is added to it there.
    ///
    /// # Errors
    /// The failed system call's. The earlier content is kept unless it had to be overwritten.
    pub fn place(&mut self, durably: bool) -> io::Result<()> {
        if let Place::Beside { part, target } = &mut self.place {
            if durably {
                part.file.sync_all()?;
            }
            self.place = Place::Direct(part.replace(target)?);
        }
        if let Place::Direct(file) = &mut self.place {
            let length = file.stream_position()?;
            file.set_len(length)?;
            if durably {
                file.sync_all()?;
            }
        }
        Ok(())
    }

    /// Puts all of it in place, durably.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn finish(mut self) -> io::Result<()> {
        self.place(true)
    }

    /// Returns whether the name still leads to what was put in place: files are rotated and
    /// removed.
    #[must_use]
    pub fn is_there(&self) -> bool {
        match &self.place {
            Place::Stream(_) => true,
            Place::Beside { .. } => false,
            Place::Direct(file) => {
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
        match &mut self.place {
            Place::Beside { part, .. } => part.file.write(bytes),
            Place::Direct(file) => file.write(bytes),
            Place::Stream(stream) => stream.write(bytes, &|| self.stop.is_asked()),
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
pub fn write(path: &Path, bytes: &[u8], stop: &Stop) -> io::Result<()> {
    let mut file = OutputFile::create(path, stop)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Finds out before a long run whether an output file can be written after it. Changes nothing;
/// a pipe or a device is not opened, which its reader would notice.
///
/// # Errors
/// Why the file cannot be written.
pub fn check(path: &Path) -> io::Result<()> {
    match Destination::of(path)? {
        Destination::Missing(target) => Part::beside(&target).map(drop),
        Destination::Regular(target, _) => open_there(&target).map(drop),
        Destination::Descriptor => open_there(path).map(drop),
        Destination::Stream => Ok(()),
    }
}

/// Returns whether two names lead to one file, whatever links lie between.
#[must_use]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let found = fs::metadata(a).ok().zip(fs::metadata(b).ok());
    found.is_some_and(|(a, b)| is_same(&a, &b))
}

/// A request to stop, which ends the wait for the other end of a pipe.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Never asked: signals end the process by themselves.
    #[must_use]
    pub fn never() -> Self {
        Self::when(|| false)
    }

    /// Asked for as soon as `is_asked` says so.
    pub fn when(is_asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_asked))
    }

    /// Returns whether to stop.
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

/// A file under a name of its own, removed unless it is renamed.
#[derive(Debug)]
struct Part {
    file: File,
    /// `None` once it was renamed.
    path: Option<PathBuf>,
}

impl Part {
    /// A new file in the directory of `target`.
    fn beside(target: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            // Relaxed: a number of its own is all that is wanted. A killed process of the same
            // number may have left one behind; short, as the target's name may be the longest.
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

    /// Takes over owner and rights of an earlier file, before there is anything to read.
    fn adopt(&self, earlier: &Metadata) -> io::Result<()> {
        let own = self.file.metadata()?;
        if (own.uid(), own.gid()) != (earlier.uid(), earlier.gid()) {
            let (uid, gid) = (Some(earlier.uid()), Some(earlier.gid()));
            std::os::unix::fs::fchown(&self.file, uid, gid)?;
        }
        let mode = Permissions::from_mode(earlier.mode() & 0o7777);
        self.file.set_permissions(mode)
    }

    /// Gives the file the target's name, or the target its content; returns the file that the
    /// name leads to now, at its end.
    fn replace(&mut self, target: &Target) -> io::Result<File> {
        if !target.must_stay
            && let Some(path) = &self.path
        {
            match fs::rename(path, &target.path) {
                Ok(()) => {
                    self.path = None;
                    return self.file.try_clone();
                }
                // A mount point is no name to be taken over; whatever else it is will come again.
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

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Its name is ours alone; if it cannot be removed there is nothing else to try.
            let _left = fs::remove_file(path);
        }
    }
}

/// A new file beside a regular one, or that one itself where the directory takes no new file.
fn beside_or_in(target: PathBuf, metadata: &Metadata) -> io::Result<Place> {
    // A file that may not be written is not to be replaced either.
    let there = open_there(&target)?;
    let Ok(part) = Part::beside(&target) else {
        return Ok(Place::Direct(there));
    };
    let must_stay = metadata.nlink() > 1 || part.adopt(metadata).is_err();
    let target = Target {
        path: target,
        must_stay,
    };
    Ok(Place::Beside { part, target })
}

/// Opens a regular file where it is, with what it holds.
fn open_there(path: &Path) -> io::Result<File> {
    File::options().write(true).open(path)
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(test)]
mod tests;
