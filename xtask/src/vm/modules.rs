//! Kernel modules and the order in which they can be loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Modules of a kernel by name, with `_` for `-`.
#[derive(Debug)]
pub(crate) struct Modules(BTreeMap<String, PathBuf>);

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Modules {
    /// Finds the modules below a folder.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(name) = name_of(&path) {
                    found.insert(name, path);
                }
            }
        }
        Ok(Self(found))
    }

    /// Returns these modules and all that they need, in the order of loading. Names without a file
    /// are part of the kernel.
    pub(crate) fn in_order(&self, names: &[&str]) -> Result<Vec<Module>> {
        let mut order = Vec::new();
        for name in names {
            self.add(&plain(name), &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<Module>) -> Result<()> {
        let Some(path) = self.0.get(name) else {
            return Ok(());
        };
        if order.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let bytes = read(path).with_context(|| path.display().to_string())?;
        for below in needed(&bytes) {
            self.add(&below, order)?;
        }
        let name = name.to_owned();
        order.push(Module { name, bytes });
        Ok(())
    }
}

/// Returns the name of the module in a file; `None` if it is another kind of file.
fn name_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_string_lossy();
    let plain_file = file.strip_suffix(COMPRESSED).unwrap_or(&file);
    plain_file.strip_suffix(".ko").map(plain)
}

/// Reads a module, which Debian compresses since its release 13.
fn read(path: &Path) -> Result<Vec<u8>> {
    if !path.to_string_lossy().ends_with(COMPRESSED) {
        return Ok(fs::read(path)?);
    }
    let mut command = Command::new("xz");
    let output = command
        .args(["--decompress", "--stdout"])
        .arg(path)
        .output();
    let output = output.context("no `xz`: install xz-utils")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

/// End of the name of a compressed module.
const COMPRESSED: &str = ".xz";

/// Returns what the section `.modinfo` says of a module's dependencies. Read from there, because
/// the package has no table of them: that is made when it is installed.
fn needed(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|bytes| bytes == KEY) else {
        return Vec::new();
    };
    let value = module[at + KEY.len()..].split(|&byte| byte == 0).next();
    let list = String::from_utf8_lossy(value.unwrap_or_default());
    let names = list.split(',').filter(|name| !name.is_empty());
    names.map(plain).collect()
}

/// The kernel takes `-` and `_` in names as equal.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_from_other_files() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("a/nvme-core.ko").as_deref(), Some("nvme_core"));
        assert_eq!(name("a/nvme-core.ko.xz").as_deref(), Some("nvme_core"));
        assert_eq!((name("a/README.xz"), name("a/x.ko.txt")), (None, None));
    }

    #[test]
    fn dependencies_are_read_from_the_section() {
        let module = b"ELF\0license=GPL\0depends=nvme-fabrics,configfs\0name=x\0";
        assert_eq!(needed(module), ["nvme_fabrics", "configfs"]);
        assert!(needed(b"ELF\0depends=\0name=x\0").is_empty());
        assert!(needed(b"ELF").is_empty());
    }
}
