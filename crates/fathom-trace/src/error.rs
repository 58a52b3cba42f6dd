//! Errors of a trace.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fathom_sys::files::DeviceNumber;

/// Reason why nothing was traced, or not to the end.
///
/// `Display` is the whole message, its cause included; [`hint`](Self::hint) is what helps.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The device's node cannot be examined.
    Missing {
        /// The path as given.
        path: PathBuf,
        /// Error of `stat`.
        source: io::Error,
    },
    /// The path does not name a block device.
    NotABlockDevice {
        /// The path as given.
        path: PathBuf,
        /// The disk that holds the file, without `/dev/`.
        disk: Option<String>,
    },
    /// The node has a number under which the kernel has no block device.
    UnknownDevice {
        /// The path as given.
        path: PathBuf,
        /// The node's number.
        number: DeviceNumber,
    },
    /// The device passes on what it is given and has no requests of its own: RAID, device mapper.
    NoQueue {
        /// The device, without `/dev/`.
        disk: String,
        /// Devices that it is made of.
        slaves: Vec<String>,
    },
    /// The place of a file's bytes on a device cannot be known.
    Unmapped {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// No process has this number.
    NoProcess {
        /// The number as given.
        pid: u32,
        /// The process's folder of tasks.
        folder: PathBuf,
        /// Error of reading it.
        source: io::Error,
    },
    /// tracefs is reserved to root, or mounted read-only.
    NotPermitted {
        /// The file or folder of tracefs.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// The thread that reads the rings cannot be started.
    Thread {
        /// The error.
        source: io::Error,
    },
    /// A trace in the background ended before it recorded anything.
    NotBegun,
    /// tracefs is not mounted and cannot be mounted.
    NoTracefs {
        /// Error of the mount.
        source: io::Error,
    },
    /// The kernel has no memory for the rings.
    NoMemory {
        /// The file that sets their size.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// A file of tracefs cannot be read or written.
    Tracefs {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The kernel lacks an event.
    NotOffered {
        /// The events, any of which would do.
        events: String,
        /// Kernels that have it: `Linux 5.19 or later, built with CONFIG_IO_URING`.
        offered_by: &'static str,
    },
    /// The kernel's records of an event lack a field.
    MissingField {
        /// The event.
        event: String,
        /// The field.
        field: String,
    },
    /// A description of records cannot be parsed.
    UnknownLayout {
        /// The file of tracefs.
        path: PathBuf,
    },
}

impl TraceError {
    /// Classifies an error of a file of tracefs.
    pub(crate) fn tracefs(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            // Containers have it mounted for reading only, if at all.
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Self::NotPermitted { path, source }
            }
            ErrorKind::OutOfMemory => Self::NoMemory { path, source },
            _ => Self::Tracefs { path, source },
        }
    }

    pub(crate) fn missing_field(event: &str, field: &str) -> Self {
        Self::MissingField {
            event: event.to_owned(),
            field: field.to_owned(),
        }
    }

    /// Returns the remedy, in the imperative, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotABlockDevice {
                disk: Some(disk), ..
            } => {
                format!("it lies on /dev/{disk}: trace that")
            }
            Self::Missing { .. } | Self::NotABlockDevice { .. } => {
                "name a block device: `lsblk` lists them".into()
            }
            Self::NoQueue { slaves, .. } if slaves.is_empty() => {
                "trace a disk: `lsblk` lists them".into()
            }
            Self::NoQueue { slaves, .. } => {
                let slaves: Vec<_> = slaves.iter().map(|name| format!("/dev/{name}")).collect();
                format!("trace its components: {}", slaves.join(", "))
            }
            Self::Unmapped { .. } => {
                "trace a job on a block device, or on files of ext4 or xfs on one disk".into()
            }
            Self::NoProcess { .. } => {
                "name a process that runs, or leave it out to trace all of them".into()
            }
            Self::NotPermitted { .. } => {
                "run it as root, outside of containers: the kernel lets only root trace".into()
            }
            Self::NoTracefs { .. } => "trace on a kernel that has it (CONFIG_TRACING), or mount \
                                       it: `mount -t tracefs tracefs /sys/kernel/tracing`"
                .into(),
            Self::NoMemory { .. } => {
                "take smaller rings: `--buffer 1` is 1 MiB for each processor".into()
            }
            Self::NotOffered { offered_by, .. } => format!("trace on {offered_by}"),
            Self::UnknownDevice { .. }
            | Self::Thread { .. }
            | Self::NotBegun
            | Self::Tracefs { .. }
            | Self::MissingField { .. }
            | Self::UnknownLayout { .. } => return None,
        })
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { path, source }
            | Self::NotPermitted { path, source }
            | Self::NoMemory { path, source }
            | Self::Tracefs { path, source } => write!(f, "{}: {source}", path.display()),
            Self::NotABlockDevice { path, .. } => {
                write!(f, "{}: not a block device", path.display())
            }
            Self::UnknownDevice { path, number } => {
                let path = path.display();
                write!(f, "{path}: the kernel has no block device {number}")
            }
            Self::NoQueue { disk, .. } => {
                write!(f, "/dev/{disk}: has no queue of requests to trace")
            }
            Self::Unmapped { path, why } => {
                write!(
                    f,
                    "{}: cannot find its blocks on a disk: {why}",
                    path.display()
                )
            }
            Self::NoProcess {
                pid,
                folder,
                source,
            } => {
                write!(f, "--pid {pid}: {}: {source}", folder.display())
            }
            Self::Thread { source } => {
                write!(f, "the thread that reads the trace cannot start: {source}")
            }
            Self::NotBegun => f.write_str("the trace ended before it began"),
            Self::NoTracefs { source } => {
                write!(f, "tracefs: not mounted, and cannot be: {source}")
            }
            Self::NotOffered { events, .. } => write!(f, "{events}: not available in this kernel"),
            Self::MissingField { event, field } => {
                write!(f, "{event}: this kernel's records lack the field `{field}`")
            }
            Self::UnknownLayout { path } => {
                write!(f, "{}: unknown record layout", path.display())
            }
        }
    }
}

impl Error for TraceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Missing { source, .. }
            | Self::NoProcess { source, .. }
            | Self::NotPermitted { source, .. }
            | Self::NoTracefs { source }
            | Self::Thread { source }
            | Self::NoMemory { source, .. }
            | Self::Tracefs { source, .. } => Some(source),
            Self::NotABlockDevice { .. }
            | Self::UnknownDevice { .. }
            | Self::NoQueue { .. }
            | Self::Unmapped { .. }
            | Self::NotBegun
            | Self::NotOffered { .. }
            | Self::MissingField { .. }
            | Self::UnknownLayout { .. } => None,
        }
    }
}
