//! The installed fio, to compare with.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::output;

/// Program fio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledFio {
    pub(crate) path: PathBuf,
    /// Version, as it prints it.
    pub(crate) version: String,
}

impl InstalledFio {
    /// Finds the first fio of PATH that is not Fathom: a link of that name leads scripts to it.
    ///
    /// # Errors
    /// There is none, or it does not run.
    pub(crate) fn find(fathom: &Path, stops: &dyn Fn() -> u32) -> Result<Self, String> {
        Self::find_in(&env::var_os("PATH").unwrap_or_default(), fathom, stops)
    }

    fn find_in(search: &OsStr, fathom: &Path, stops: &dyn Fn() -> u32) -> Result<Self, String> {
        let own = fs::canonicalize(fathom).ok();
        let candidates = env::split_paths(search).map(|folder| folder.join(FIO));
        let mut is_linked = false;
        for path in candidates.filter(|path| path.is_file()) {
            let version = version(&path, stops).map_err(|why| format!("{}: {why}", path.display()));
            let is_own = own.is_some() && fs::canonicalize(&path).ok() == own;
            if is_own
                || version
                    .as_ref()
                    .is_ok_and(|version| version.contains(OF_FATHOM))
            {
                is_linked = true;
                continue;
            }
            let version = version?;
            return Ok(Self { path, version });
        }
        Err(match is_linked {
            true => "no fio in PATH but Fathom under that name".into(),
            false => "no fio in PATH".into(),
        })
    }
}

/// Returns the version that a program prints.
pub(crate) fn version(program: &Path, stops: &dyn Fn() -> u32) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version");
    let printed = output(command, stops).map_err(|error| error.to_string())?;
    Ok(printed.lines().next().unwrap_or("of no version").to_owned())
}

const FIO: &str = "fio";
/// Part of the version that Fathom prints under the name fio.
const OF_FATHOM: &str = "-fathom-";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::work_folder::WorkFolder;

    /// Puts a program `fio` with this version into a folder.
    fn install(folder: &Path, version: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(FIO);
        fs::write(&path, format!("#!/bin/sh\necho {version}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn fathom_under_the_name_of_fio_is_skipped() {
        let place = WorkFolder::new("fathom-installed-fio-").unwrap();
        let [other, own, real] = ["other", "own", "real"].map(|name| place.path().join(name));
        install(&other, "fio-3.42-fathom-0.2.0");
        let fathom = install(&own, "fathom 0.2.0");
        let path = install(&real, "fio-3.33");
        let find = |folders: &[&PathBuf]| {
            let search = env::join_paths(folders).unwrap();
            InstalledFio::find_in(&search, &fathom, &|| 0)
        };
        let version = "fio-3.33".to_owned();
        assert_eq!(
            find(&[&other, &own, &real]),
            Ok(InstalledFio { path, version })
        );
        let none = find(&[&other, &own]).unwrap_err();
        assert_eq!(none, "no fio in PATH but Fathom under that name");
        assert_eq!(find(&[]).unwrap_err(), "no fio in PATH");
    }
}
