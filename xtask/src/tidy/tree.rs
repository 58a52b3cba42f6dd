//! The text files of the workspace, read once.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::lexer;

/// The workspace's text files.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Text files, sorted by path.
    pub(crate) files: Vec<File>,
    /// Paths of all files and folders, text or not.
    pub(crate) paths: Vec<String>,
}

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Path from the workspace's root, with `/`.
    pub(crate) path: String,
    /// Unmodified text.
    pub(crate) text: String,
    /// For Rust files: the text with comments and literals blanked, line for line; otherwise empty.
    pub(crate) code: String,
}

impl Tree {
    /// Reads everything below `root` except `.git`, build output and binary files.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        tree.paths.sort();
        Ok(tree)
    }

    fn read_folder(&mut self, root: &Path, folder: &str) -> Result<()> {
        let place = root.join(folder);
        let entries =
            fs::read_dir(&place).with_context(|| format!("cannot list {}", place.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() {
                name.clone()
            } else {
                format!("{folder}/{name}")
            };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                // A crate may have a module `target`.
                let is_built = name == "target" || name.starts_with("target-");
                let ours = name != ".git" && !(is_built && folder.is_empty());
                if ours {
                    self.read_folder(root, &path)?;
                    self.paths.push(path);
                }
            } else if kind.is_file() {
                if is_text(&name)
                    && let Ok(text) = fs::read_to_string(entry.path())
                {
                    self.files.push(File::new(&path, &text));
                }
                self.paths.push(path);
            }
        }
        Ok(())
    }

    /// Iterates over the Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// Returns a file by its path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl File {
    /// Creates a file with this path and text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let code = if is_rust(path) {
            lexer::blank(text)
        } else {
            String::new()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    fn is_rust(&self) -> bool {
        is_rust(&self.path)
    }

    /// Returns the directory name of the crate, for files below `crates/`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

fn is_rust(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// Returns true for text files, by extension; also for files without one.
fn is_text(name: &str) -> bool {
    match Path::new(name)
        .extension()
        .and_then(|extension| extension.to_str())
    {
        Some(extension) => TEXT_EXTENSIONS.contains(&extension),
        None => PLAIN_NAMES.contains(&name),
    }
}

const TEXT_EXTENSIONS: [&str; 11] = [
    "rs", "md", "toml", "fio", "sh", "txt", "tsv", "csv", "json", "yml", "yaml",
];
const PLAIN_NAMES: [&str; 4] = ["run", "LICENSE-MIT", "LICENSE-APACHE", ".gitignore"];
