//! Errors of a layout.

use std::fmt;
use std::io;
use std::path::PathBuf;

use fathom_core::Errno;
use fathom_setup::ProblemKind;

use super::LeftBehind;

/// Error of a layout. Everything created has been removed again, except `left_behind`.
#[derive(Debug)]
pub struct LayoutError {
    /// File that failed.
    pub path: PathBuf,
    /// Kind of failure.
    pub kind: LayoutErrorKind,
    /// Files that were created and could not be removed.
    pub left_behind: Vec<LeftBehind>,
}

/// Kind of a layout failure.
#[derive(Debug)]
#[non_exhaustive]
pub enum LayoutErrorKind {
    /// The file system or a quota is full.
    NoRoom {
        /// Bytes to be written to the file system.
        needed_bytes: u64,
        /// Bytes short of that.
        missing_bytes: u64,
        /// Writing had started: the shortage was not foreseeable.
        begun: bool,
    },
    /// The file is missing and `allow_file_create=0` forbids creating it.
    CreationForbidden,
    /// The path names something other than a regular file.
    NotAFile,
    /// The file is on this file system, a kernel interface that stores no data.
    KernelInterface(&'static str),
    /// A system call failed.
    System {
        /// Name of the call: `open`, `write`…
        what: &'static str,
        /// Error it returned.
        source: io::Error,
    },
    /// The user stopped the run.
    Interrupted,
}

impl LayoutError {
    pub(super) fn system(path: &std::path::Path, what: &'static str, source: io::Error) -> Self {
        Self::new(path, LayoutErrorKind::System { what, source })
    }

    pub(super) fn new(path: &std::path::Path, kind: LayoutErrorKind) -> Self {
        Self {
            path: path.to_path_buf(),
            kind,
            left_behind: Vec::new(),
        }
    }

    /// Returns the kind of problem that it is for the run.
    pub(crate) const fn problem_kind(&self) -> ProblemKind {
        match self.kind {
            LayoutErrorKind::NoRoom { .. } => ProblemKind::NoRoom,
            LayoutErrorKind::CreationForbidden => ProblemKind::FileCreateForbidden,
            LayoutErrorKind::NotAFile => ProblemKind::NotAFile,
            LayoutErrorKind::KernelInterface(_) => ProblemKind::KernelInterface,
            LayoutErrorKind::System { .. } => ProblemKind::LayoutFailed,
            LayoutErrorKind::Interrupted => ProblemKind::LayoutInterrupted,
        }
    }

    /// Returns the errno of the failed system call.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match &self.kind {
            LayoutErrorKind::NoRoom { .. } => Some(Errno::ENOSPC),
            LayoutErrorKind::System { source, .. } => Errno::of(source),
            _ => None,
        }
    }

    /// Returns a remedy, in the imperative; empty if none is known.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.kind {
            LayoutErrorKind::NoRoom { .. } => "reduce `size`, or choose another `directory=`",
            LayoutErrorKind::CreationForbidden => "create the file, or set allow_file_create=1",
            LayoutErrorKind::NotAFile => "name a file in it, or use `directory=`",
            LayoutErrorKind::KernelInterface(_) => "choose a file on a disk",
            LayoutErrorKind::System { ref source, .. } if is_too_large(source) => {
                "reduce `size`, or raise the limit with `ulimit -f`"
            }
            LayoutErrorKind::System { .. } | LayoutErrorKind::Interrupted => "",
        }
    }
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot lay out {}: ", self.path.display())?;
        match &self.kind {
            LayoutErrorKind::NoRoom {
                needed_bytes,
                missing_bytes,
                begun,
            } => {
                let (needed, missing) = (Amount(*needed_bytes), Amount(*missing_bytes));
                write!(f, "not enough space: {needed} needed, {missing} short")?;
                if !begun {
                    f.write_str("; nothing was written")?;
                } else if self.left_behind.is_empty() {
                    f.write_str("; files laid out so far were removed")?;
                }
            }
            LayoutErrorKind::CreationForbidden => {
                f.write_str("file creation disallowed by allow_file_create=0")?;
            }
            LayoutErrorKind::NotAFile => f.write_str("not a regular file")?,
            LayoutErrorKind::KernelInterface(file_system) => {
                write!(f, "{file_system} is a kernel interface")?;
            }
            LayoutErrorKind::System { what, source } => write!(f, "{what}: {source}")?,
            LayoutErrorKind::Interrupted if self.left_behind.is_empty() => {
                f.write_str("interrupted; files laid out so far were removed")?;
            }
            LayoutErrorKind::Interrupted => f.write_str("interrupted")?,
        }
        for LeftBehind { path, in_use } in &self.left_behind {
            let path = path.display();
            match in_use {
                true => write!(f, "; kept {path}, which another process uses")?,
                false => write!(f, "; could not restore {path}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for LayoutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            LayoutErrorKind::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Returns true if a file would exceed the limit of the file system or the process.
fn is_too_large(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

/// Human-readable byte count: `512 B`, `3.4 GiB`.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut shift, mut unit) = (0, "B");
        for (next, name) in [
            (10, "KiB"),
            (20, "MiB"),
            (30, "GiB"),
            (40, "TiB"),
            (50, "PiB"),
        ] {
            if self.0 >> next > 0 {
                (shift, unit) = (next, name);
            }
        }
        let whole = self.0 >> shift;
        match shift {
            0 => write!(f, "{whole} {unit}"),
            _ => {
                let tenths = ((u128::from(self.0) * 10) >> shift) % 10;
                write!(f, "{whole}.{tenths} {unit}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn amounts_are_short() {
        for (bytes, want) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            ((48 << 20) + (1 << 19), "48.5 MiB"),
            ((2 << 30) - 1, "1.9 GiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(Amount(bytes).to_string(), want);
        }
    }

    #[test]
    fn full_disk_names_the_shortage_and_the_outcome() {
        let room = |begun| LayoutErrorKind::NoRoom {
            needed_bytes: 64 << 20,
            missing_bytes: 48 << 20,
            begun,
        };
        let mut error = LayoutError::new(Path::new("/x"), room(true));
        let what = "cannot lay out /x: not enough space: 64.0 MiB needed, 48.0 MiB short";
        assert_eq!(
            error.to_string(),
            format!("{what}; files laid out so far were removed")
        );
        assert_eq!(error.errno(), Some(Errno::ENOSPC));
        let left = |path: &str, in_use| LeftBehind {
            path: path.into(),
            in_use,
        };
        error.left_behind = vec![left("/y", false), left("/z", true)];
        assert_eq!(
            error.to_string(),
            format!("{what}; could not restore /y; kept /z, which another process uses")
        );
        error = LayoutError::new(Path::new("/x"), room(false));
        assert_eq!(error.to_string(), format!("{what}; nothing was written"));
    }
}
