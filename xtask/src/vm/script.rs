//! Scripts that run in a machine, and the comments by which they describe it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fathom_sys::kernel_version::KernelVersion;

use super::spec::Spec;
use crate::process;

/// Script of a guest.
///
/// Comments of the form `# KEY: TEXT` at the start of a line describe it:
///
/// ```text
/// # test: one line about what it tests; `cargo xtask qemu` runs scripts that have this
/// # long: why only a long run has it
/// # qemu: 8, and the reason
/// # kernel: 6.16, and the reason
/// # vm: --nvme ms=8,pi=1 --network
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Subject of the test; none if the script is not part of the tests.
    pub(crate) test: Option<String>,
    /// Only a long run has it.
    pub(crate) is_long: bool,
    /// Oldest major version of QEMU that has its devices.
    pub(crate) qemu_min: u32,
    /// Oldest kernel that has its features.
    pub(crate) kernel_min: KernelVersion,
    /// Machine that it needs.
    pub(crate) spec: Spec,
}

impl Script {
    /// Reads a script, given by its path or by its name among those of `tests/vm`.
    pub(crate) fn find(word: &str) -> Result<Self> {
        let own = folder()?.join(format!("{word}.sh"));
        let given = PathBuf::from(word);
        match (own.is_file(), given.is_file()) {
            (true, _) => Self::read(&own),
            (false, true) => Self::read(&given),
            (false, false) => bail!("no script `{word}`, neither a file nor in tests/vm"),
        }
    }

    /// Returns the scripts of `tests/vm`, by name.
    pub(crate) fn all() -> Result<Vec<Self>> {
        let mut scripts = Vec::new();
        for entry in fs::read_dir(folder()?)? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "sh") {
                scripts.push(Self::read(&path)?);
            }
        }
        scripts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(scripts)
    }

    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        Self::parse(path, text).with_context(|| path.display().to_string())
    }

    fn parse(path: &Path, text: String) -> Result<Self> {
        let mut script = Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path: path.to_owned(),
            test: None,
            is_long: false,
            qemu_min: 0,
            kernel_min: KernelVersion::default(),
            spec: Spec::default(),
            text: String::new(),
        };
        for line in text.lines() {
            let comment = line
                .strip_prefix("# ")
                .and_then(|line| line.split_once(": "));
            match comment {
                Some(("test", what)) => script.test = Some(what.trim().to_owned()),
                Some(("long", _)) => script.is_long = true,
                Some(("qemu", version)) => {
                    let number = version.split(',').next().unwrap_or_default();
                    script.qemu_min = number.parse().context("# qemu: needs a version")?;
                }
                Some(("kernel", version)) => {
                    let version = KernelVersion::of_release(version);
                    script.kernel_min = version.context("# kernel: needs a version")?;
                }
                Some(("vm", words)) => script.spec.take_line(words)?,
                _ => {}
            }
        }
        script.text = text;
        Ok(script)
    }
}

/// Returns the files that every guest has: what it runs first, and functions for scripts.
pub(crate) fn library() -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder()?.join("lib"))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        files.push((
            name,
            fs::read(&path).with_context(|| path.display().to_string())?,
        ));
    }
    Ok(files)
}

fn folder() -> Result<PathBuf> {
    Ok(process::root()?.join("tests/vm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_describe_the_machine() {
        let text = "# Prose: with a colon.\n# test: zones\n# vm: --nvme zoned\n# vm: --limit 9\n";
        let script = Script::parse(Path::new("a/zones.sh"), text.to_owned()).expect("a script");
        assert_eq!(script.name, "zones");
        assert_eq!(script.test.as_deref(), Some("zones"));
        assert_eq!((script.is_long, script.spec.devices.len()), (false, 1));
        assert_eq!(script.spec.limit.as_secs(), 9);
        for wrong in ["# vm: --floppy\n", "# kernel: 6\n", "# qemu: new\n"] {
            assert!(Script::parse(Path::new("x.sh"), wrong.to_owned()).is_err());
        }
        let text = "# kernel: 6.16, the first\n".to_owned();
        let script = Script::parse(Path::new("x.sh"), text).expect("a script");
        assert_eq!(script.kernel_min, KernelVersion::new(6, 16));
    }

    #[test]
    fn the_tests_of_this_repository_can_be_read() {
        let scripts = Script::all().expect("scripts");
        assert!(
            scripts
                .iter()
                .filter(|script| script.test.is_some())
                .count()
                >= 3
        );
        let names: Vec<String> = library()
            .expect("files")
            .into_iter()
            .map(|file| file.0)
            .collect();
        assert!(names.contains(&"init.sh".to_owned()), "{names:?}");
    }
}
