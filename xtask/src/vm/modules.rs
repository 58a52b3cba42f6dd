//! Kernel modules and the order in which they can be loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Modules of a kernel by name, with `_` for `-`.
#[derive(Debug)]
pub(crate) struct Modules(BTreeMap<String, PathBuf>);

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
                } else if path.extension().is_some_and(|end| end == "ko") {
                    found.insert(Self::name_of(&path), path);
                }
            }
        }
        Ok(Self(found))
    }

    /// Returns the files of these modules and of all that they need, in the order of loading. Names
    /// without a file are part of the kernel.
    pub(crate) fn in_order(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let mut order = Vec::new();
        for name in names {
            self.add(&plain(name), &mut order)?;
        }
        Ok(order)
    }

    /// Returns the name of the module in a file.
    pub(crate) fn name_of(path: &Path) -> String {
        plain(&path.file_stem().unwrap_or_default().to_string_lossy())
    }

    fn add(&self, name: &str, order: &mut Vec<PathBuf>) -> Result<()> {
        let Some(path) = self.0.get(name) else {
            return Ok(());
        };
        if order.contains(path) {
            return Ok(());
        }
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        for below in needed(&bytes) {
            self.add(&below, order)?;
        }
        order.push(path.clone());
        Ok(())
    }
}

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
    fn dependencies_are_read_from_the_section() {
        let module = b"ELF\0license=GPL\0depends=nvme-fabrics,configfs\0name=x\0";
        assert_eq!(needed(module), ["nvme_fabrics", "configfs"]);
        assert!(needed(b"ELF\0depends=\0name=x\0").is_empty());
        assert!(needed(b"ELF").is_empty());
    }
}
