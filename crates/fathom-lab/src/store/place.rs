//! Place of the history in the file system.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fathom_sys::files::{self, FileId};

use super::error::{HistoryError, HistoryProblem};

/// Returns the path of the history: `$FATHOM_HISTORY`, else `fathom/history.db` in
/// `$XDG_DATA_HOME`, which is `~/.local/share` if it is not set.
///
/// # Errors
/// None of the variables is set.
pub fn default_path(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, HistoryError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = set("FATHOM_HISTORY") {
        return Ok(path.into());
    }
    // The XDG base directory specification: a relative path is to be ignored.
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|path| path.is_absolute());
    let home = || set("HOME").map(|home| Path::new(&home).join(".local/share"));
    match data.or_else(home) {
        Some(folder) => Ok(folder.join("fathom/history.db")),
        None => Err(HistoryError::new(Path::new(""), HistoryProblem::NoPlace)),
    }
}

/// Returns the path under which SQLite opens a file and nothing else: it takes `:memory:` and names
/// that begin with `file:` for databases of another kind.
pub(super) fn plain(path: &Path) -> Result<PathBuf, HistoryError> {
    let absolute = std::path::absolute(path);
    absolute.map_err(|error| HistoryError::new(path, HistoryProblem::Folder(error)))
}

/// Returns the identity of a file; `None` if there is none.
pub(super) fn identity(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|found| FileId::of(&found))
}

/// Returns whether a file lies on a network file system.
pub(super) fn is_on_network(path: &Path) -> bool {
    files::filesystem_type(path).is_ok_and(files::is_network)
}

/// Returns whether a database is on a file system that is mounted read-only.
pub(super) fn is_on_read_only(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Returns the path of a file without links. SQLite, too, follows them, and has the write-ahead log
/// beside the file itself.
pub(super) fn without_links(path: &Path) -> Result<PathBuf, HistoryError> {
    fs::canonicalize(path).map_err(|error| HistoryError::new(path, HistoryProblem::Folder(error)))
}

/// Returns whether the write-ahead log of a database has a frame after its header. The path has no
/// links.
pub(super) fn has_logged(path: &Path) -> bool {
    const HEADER_BYTES: u64 = 32;
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    fs::metadata(name).is_ok_and(|log| log.len() > HEADER_BYTES)
}

/// Returns the name under which SQLite opens a file as one that does not change: it needs no lock
/// then, and nothing beside it. The path is absolute.
pub(super) fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri + "?immutable=1"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], want: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        assert_eq!(default_path(&variable).ok(), want.map(PathBuf::from));
    }

    #[test]
    fn names_are_quoted_for_sqlite() {
        let uri = immutable_uri(Path::new("/a b/%?#\u{e4}.db"));
        assert_eq!(uri, "file:/a%20b/%25%3f%23%c3%a4.db?immutable=1");
    }

    #[test]
    fn the_variable_of_its_own_comes_first() {
        let home = ("HOME", "/home/u");
        let data = ("XDG_DATA_HOME", "/data");
        check(&[home, data, ("FATHOM_HISTORY", "h.db")], Some("h.db"));
        check(&[home, data], Some("/data/fathom/history.db"));
        check(&[home], Some("/home/u/.local/share/fathom/history.db"));
        check(
            &[home, ("XDG_DATA_HOME", "data"), ("FATHOM_HISTORY", "")],
            Some("/home/u/.local/share/fathom/history.db"),
        );
        check(&[], None);
    }
}
