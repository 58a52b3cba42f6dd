//! Statistics socket: each client gets one snapshot as a line of JSON.
//!
//! ```text
//! fathom target ─ binds ─► FOLDER/target-PID.sock ◄─ connects, reads ─ fathom target stats
//! ```
//!
//! FOLDER belongs to the user and is closed to others. A socket without a target, left behind by a
//! kill, refuses connections and is ignored.

use std::fmt;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_record::TargetRecord;
use fathom_sys::sockets::connect_unix;

use crate::service::{Client, Service, Snapshot};

/// Statistics socket of a target, until it is dropped.
#[derive(Debug)]
pub struct StatsSocket {
    path: SocketPath,
    _service: Service,
}

impl StatsSocket {
    /// Binds the socket at `path`, or at the default place of this user, and serves it.
    ///
    /// # Errors
    /// The system call that failed, or what is at `path`.
    pub fn start(path: Option<&Path>, snapshot: Snapshot) -> Result<Self, StatsError> {
        BoundSocket::bind(path)?.serve(snapshot)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path.0
    }
}

/// Statistics socket whose clients wait until it is served.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    path: SocketPath,
    listener: UnixListener,
}

impl BoundSocket {
    /// As [`StatsSocket::start`], without serving.
    pub(crate) fn bind(path: Option<&Path>) -> Result<Self, StatsError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => {
                let folder = folder();
                prepare(&folder)?;
                sweep(&folder);
                folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()))
            }
        };
        let listener = bind(&path).map_err(|source| match is_other_file(&path) {
            true => StatsError::NotASocket { path: path.clone() },
            false => failed("bind", &path)(source),
        })?;
        let path = SocketPath(path);
        let only_me = Permissions::from_mode(0o600);
        let set = fs::set_permissions(&path.0, only_me);
        set.map_err(failed("set permissions of", &path.0))?;
        let set = listener.set_nonblocking(true);
        set.map_err(failed("listen on", &path.0))?;
        Ok(Self { path, listener })
    }

    /// Answers clients from now on.
    pub(crate) fn serve(self, snapshot: Snapshot) -> Result<StatsSocket, StatsError> {
        let service = Service::start("stats", self.listener, move |stream| {
            // A client that has gone, or is too slow, gets nothing.
            let _gone = answer(stream, &snapshot);
        });
        Ok(StatsSocket {
            _service: service.map_err(failed("serve", &self.path.0))?,
            path: self.path,
        })
    }
}

/// Path of a socket, which is removed when this is dropped.
#[derive(Debug)]
struct SocketPath(PathBuf);

impl Drop for SocketPath {
    fn drop(&mut self) {
        // It may have been removed with its folder.
        let _gone = fs::remove_file(&self.0);
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StatsError {
    let path = path.to_owned();
    move |source| StatsError::File { what, path, source }
}

fn answer(stream: UnixStream, snapshot: &Snapshot) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut json = snapshot().to_json().map_err(io::Error::other)?;
    json.push('\n');
    Client::new(stream).write_all(json.as_bytes())
}

/// Binds, replacing a socket that no process serves any more.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_dead(path) => {
            fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

/// Returns whether `path` is a socket that no process serves. A file of another kind is not
/// removed.
fn is_dead(path: &Path) -> bool {
    // A connection to a regular file is refused, too.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    // One with a full backlog has a process, and is not waited for.
    let refused = connect_unix(path, Duration::from_millis(1)).err();
    refused
        .filter(|_| is_socket)
        .is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Returns whether a file of another kind has the path.
fn is_other_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.file_type().is_socket())
}

/// Removes sockets that killed targets have left in the folder: their process is gone, too, so none
/// that is just being bound is hit.
fn sweep(folder: &Path) {
    for path in sockets_in(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(SUFFIX));
        let is_gone = pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if is_gone && is_dead(&path) {
            // Another target may have been faster.
            let _gone = fs::remove_file(&path);
        }
    }
}

/// Lists the sockets of targets in the folder.
fn sockets_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    })
}

/// Reads a snapshot from the socket at `path`.
///
/// # Errors
/// The system call that failed, or what came instead.
pub fn read_stats(path: &Path) -> Result<TargetRecord, StatsError> {
    read_within(path, REPLY_TIME_MAX)
}

fn read_within(path: &Path, limit: Duration) -> Result<TargetRecord, StatsError> {
    let failed = |what| {
        move |source| StatsError::File {
            what,
            path: path.to_owned(),
            source,
        }
    };
    let silent = || StatsError::Silent {
        path: path.to_owned(),
    };
    let stream = connect_unix(path, limit).map_err(|error| match error.kind() {
        ErrorKind::TimedOut => silent(),
        _ => failed("connect to")(error),
    })?;
    stream
        .set_read_timeout(Some(limit))
        .map_err(failed("read"))?;
    let mut text = String::new();
    let mut limited = stream.take(REPLY_BYTES_MAX);
    limited
        .read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => silent(),
            _ => failed("read")(error),
        })?;
    TargetRecord::from_json(&text).map_err(|error| StatsError::Reply {
        path: path.to_owned(),
        why: error.to_string(),
    })
}

/// Finds the one target of this user.
///
/// # Errors
/// There is none, or there are several, which the error lists.
pub fn find_target() -> Result<PathBuf, StatsError> {
    find_in(&folder())
}

fn find_in(folder: &Path) -> Result<PathBuf, StatsError> {
    let mut alive: Vec<(PathBuf, TargetRecord)> = sockets_in(folder)
        .filter_map(|path| read_stats(&path).ok().map(|record| (path, record)))
        .collect();
    alive.sort_by_key(|(_, record)| record.pid);
    match alive.len() {
        0 => Err(StatsError::NoTarget {
            folder: folder.to_owned(),
        }),
        1 => Ok(alive.remove(0).0),
        _ => Err(StatsError::Several {
            targets: alive
                .into_iter()
                .map(|(path, record)| (path, record.listen.join(", ")))
                .collect(),
        }),
    }
}

/// Returns the folder of this user's sockets.
fn folder() -> PathBuf {
    let user = user();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
    let usual = || Some(PathBuf::from(format!("/run/user/{user}"))).filter(|path| path.is_dir());
    match runtime.or_else(usual) {
        Some(runtime) => runtime.join("fathom"),
        None => PathBuf::from(format!("/tmp/fathom-{user}")),
    }
}

/// Creates the folder, or checks that it belongs to this user alone: in /tmp another user may have
/// created it first.
fn prepare(folder: &Path) -> Result<(), StatsError> {
    let failed = |source| StatsError::File {
        what: "create",
        path: folder.to_owned(),
        source,
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        created => return created.map_err(failed),
    }
    // Not through a link.
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    let is_ours = found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0;
    match is_ours {
        true => Ok(()),
        false => Err(StatsError::NotOurs {
            folder: folder.to_owned(),
        }),
    }
}

/// Returns the user's number: the owner of this process.
fn user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// Failure to serve or read statistics.
#[derive(Debug)]
#[non_exhaustive]
pub enum StatsError {
    /// A system call failed.
    File {
        /// Operation.
        what: &'static str,
        /// Socket or folder.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A file of another kind is where the socket would be.
    NotASocket {
        /// Its path.
        path: PathBuf,
    },
    /// The folder of the sockets belongs to another user, or is open to others.
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },
    /// Something else than a snapshot came.
    Reply {
        /// The socket.
        path: PathBuf,
        /// Description of what came.
        why: String,
    },
    /// The target does not answer.
    Silent {
        /// Path of its socket.
        path: PathBuf,
    },
    /// No target of this user runs.
    NoTarget {
        /// Folder of the sockets.
        folder: PathBuf,
    },
    /// Several targets of this user run.
    Several {
        /// Their sockets and addresses.
        targets: Vec<(PathBuf, String)>,
    },
}

impl StatsError {
    /// Returns the remedy, in the imperative; may be empty.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::Reply { .. } => "",
            Self::NotASocket { .. } => "choose another `--socket`",
            Self::Silent { .. } => "see whether it is stopped, or its machine overloaded",
            Self::NotOurs { .. } => "remove it, or set `--socket`",
            Self::NoTarget { .. } => {
                "start one with `fathom target`, or name its socket with `--socket`"
            }
            Self::Several { .. } => "choose one with `--socket`",
        }
    }
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { what, path, source } => {
                write!(f, "cannot {what} {}: {source}", path.display())
            }
            Self::NotASocket { path } => {
                write!(f, "{} exists and is not a socket", path.display())
            }
            Self::NotOurs { folder } => write!(
                f,
                "cannot use {}: it belongs to another user, or is open to others",
                folder.display()
            ),
            Self::Reply { path, why } => write!(f, "{}: {why}", path.display()),
            Self::Silent { path } => {
                let seconds = REPLY_TIME_MAX.as_secs();
                write!(f, "{}: no answer within {seconds} s", path.display())
            }
            Self::NoTarget { folder } => {
                write!(
                    f,
                    "no running target: no socket in {} answers",
                    folder.display()
                )
            }
            Self::Several { targets } => {
                write!(f, "{} targets run:", targets.len())?;
                for (path, listen) in targets {
                    write!(f, "\n  --socket {}  ({listen})", path.display())?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for StatsError {}

const PREFIX: &str = "target-";
const SUFFIX: &str = ".sock";
/// Longer than a target takes to answer those in front.
const REPLY_TIME_MAX: Duration = Duration::from_secs(5);
/// Ten thousand connections with long names have less.
const REPLY_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fathom_record::TARGET_VERSION;

    use super::*;

    fn folder_of(test: &str) -> PathBuf {
        let name = format!("fathom-stats-{test}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        prepare(&folder).unwrap();
        folder
    }

    fn target(path: &Path, pid: u32) -> StatsSocket {
        let snapshot = move || TargetRecord {
            version: TARGET_VERSION,
            pid,
            listen: vec![format!("127.0.0.1:{pid}")],
            ..TargetRecord::default()
        };
        StatsSocket::start(Some(path), Arc::new(snapshot)).unwrap()
    }

    #[test]
    fn a_snapshot_is_read_from_the_one_target() {
        let folder = folder_of("one");
        assert!(matches!(find_in(&folder), Err(StatsError::NoTarget { .. })));
        let path = folder.join("target-1.sock");
        let first = target(&path, 1);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(find_in(&folder).unwrap(), path);
        assert_eq!(read_stats(&path).unwrap().pid, 1);
        let second = target(&folder.join("target-2.sock"), 2);
        let several = find_in(&folder).unwrap_err().to_string();
        let listed = [
            "2 targets run:",
            "target-1.sock  (127.0.0.1:1)",
            "target-2.sock",
        ];
        assert!(
            listed.iter().all(|part| several.contains(part)),
            "{several}"
        );
        drop(second);
        assert_eq!(find_in(&folder).unwrap(), path);
        drop(first);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let folder = folder_of("dead");
        let path = folder.join("target-1.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(matches!(find_in(&folder), Err(StatsError::NoTarget { .. })));
        let alive = target(&path, 7);
        let again = StatsSocket::start(Some(&path), Arc::new(TargetRecord::default));
        assert!(
            again
                .unwrap_err()
                .to_string()
                .contains("Address already in use")
        );
        assert_eq!(read_stats(&path).unwrap().pid, 7);
        sweep(&folder);
        assert!(path.exists());
        drop(alive);
        let left = folder.join("target-4294967295.sock");
        drop(UnixListener::bind(&left).unwrap());
        sweep(&folder);
        assert!(!left.exists());
        fs::write(&path, "a file").unwrap();
        let over = StatsSocket::start(Some(&path), Arc::new(TargetRecord::default));
        assert!(
            matches!(over, Err(StatsError::NotASocket { .. })),
            "{over:?}"
        );
        assert_eq!(fs::read(&path).unwrap(), b"a file");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_target_that_does_not_answer_has_not_ended() {
        let folder = folder_of("silent");
        let path = folder.join("target-1.sock");
        let _stopped = UnixListener::bind(&path).unwrap();
        let read = read_within(&path, Duration::from_millis(1));
        assert!(matches!(read, Err(StatsError::Silent { .. })), "{read:?}");
        // Nor has one whose backlog is full.
        let wait = Duration::from_millis(1);
        let waiting: Vec<_> = std::iter::from_fn(|| connect_unix(&path, wait).ok()).collect();
        assert!(!waiting.is_empty() && !is_dead(&path));
        let read = read_within(&path, wait);
        assert!(matches!(read, Err(StatsError::Silent { .. })), "{read:?}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_open_to_others_is_not_used() {
        let folder = folder_of("open");
        assert!(prepare(&folder).is_ok());
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(prepare(&folder), Err(StatsError::NotOurs { .. })));
        let link = folder.join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(matches!(prepare(&link), Err(StatsError::NotOurs { .. })));
        fs::remove_dir_all(&folder).unwrap();
    }
}
