//! Place of the history in the file system.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

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

/// Returns whether a file lies on a network file system.
pub(super) fn is_on_network(path: &Path) -> bool {
    fathom_sys::files::filesystem_type(path).is_ok_and(|kind| NETWORK.contains(&kind))
}

/// Magic numbers of statfs(2) and of the kernel's `magic.h`: NFS, SMB, SMB 2, CIFS, AFS, Coda, NCP,
/// 9P, Ceph, FUSE (sshfs among them: its kind is not known), GPFS, Lustre.
const NETWORK: [u32; 12] = [
    0x6969,
    0x517b,
    0xfe53_4d42,
    0xff53_4d42,
    0x5346_414f,
    0x7375_7245,
    0x564c,
    0x0102_1997,
    0x00c3_6400,
    0x6573_5546,
    0x4750_4653,
    0x0bd0_0bd0,
];

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
