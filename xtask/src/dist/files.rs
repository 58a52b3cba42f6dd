//! The files of a release: the program, and what it prints for its users.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::process;

/// Places of files below a folder.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) manual: &'static str,
    pub(super) bash: &'static str,
    pub(super) zsh: &'static str,
    pub(super) fish: &'static str,
    pub(super) documents: &'static str,
    /// Pages of the manual are compressed.
    packs_manual: bool,
}

impl Layout {
    /// Places in which Debian's shells and man look.
    pub(super) const DEBIAN: Self = Self {
        manual: "usr/share/man",
        bash: "usr/share/bash-completion/completions/fathom",
        zsh: "usr/share/zsh/vendor-completions/_fathom",
        fish: "usr/share/fish/vendor_completions.d/fathom.fish",
        documents: "usr/share/doc/fathom-storage",
        packs_manual: true,
    };

    /// To be unpacked into a prefix such as /usr/local.
    pub(super) const ARCHIVE: Self = Self {
        manual: "share/man",
        bash: "share/bash-completion/completions/fathom",
        zsh: "share/zsh/site-functions/_fathom",
        fish: "share/fish/vendor_completions.d/fathom.fish",
        documents: "share/doc/fathom",
        packs_manual: false,
    };
}

/// The program in its place in a folder to be packed.
#[derive(Debug)]
pub(super) struct Programs {
    fathom: PathBuf,
}

impl Programs {
    /// Copies the program without its debug information. The names of functions stay: a report of a
    /// bug has them.
    pub(super) fn new(built: &Path, folder: &Path) -> Result<Self> {
        make_folder(folder)?;
        let fathom = folder.join("fathom");
        let mut strip = Command::new("strip");
        strip.args(["--strip-debug", "-o"]).arg(&fathom).arg(built);
        process::run(&mut strip)?;
        set_mode(&fathom, 0o755)?;
        Ok(Self { fathom })
    }

    /// Writes everything but the program.
    pub(super) fn stage(&self, root: &Path, layout: &Layout) -> Result<()> {
        self.write_manual(&root.join(layout.manual), layout.packs_manual)?;
        let shells = [
            ("bash", layout.bash),
            ("zsh", layout.zsh),
            ("fish", layout.fish),
        ];
        for (shell, place) in shells {
            let script = process::capture(Command::new(&self.fathom).args(["completions", shell]))?;
            write(&root.join(place), script.as_bytes())?;
        }
        copy_documents(&root.join(layout.documents))
    }

    fn write_manual(&self, folder: &Path, packs: bool) -> Result<()> {
        let mut man = Command::new(&self.fathom);
        process::capture(man.args(["man", "--dir"]).arg(folder))?;
        for page in files_below(folder)? {
            set_mode(&page, 0o644)?;
            if packs {
                process::run(Command::new("gzip").args(["-9", "--no-name"]).arg(page))?;
            }
        }
        Ok(())
    }
}

/// Copies the documents and examples that are in the repository, links as what they lead to.
fn copy_documents(to: &Path) -> Result<()> {
    let root = process::root()?;
    let mut list = Command::new("git");
    list.args(["ls-files", "-z", "--"]).args(DOCUMENTS);
    let names = process::capture(list.current_dir(&root))?;
    make_folder(to)?;
    let mut copy = Command::new("cp");
    copy.args([
        "--recursive",
        "--dereference",
        "--parents",
        "--target-directory",
    ])
    .arg(to)
    .args(names.split_terminator('\0'));
    process::run(copy.current_dir(&root))?;
    let mut mode = Command::new("chmod");
    process::run(mode.args(["--recursive", "u=rwX,go=rX"]).arg(to))
}

/// Returns the files in a folder and in those below it.
pub(super) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => folders.push(entry.path()),
                false => found.push(entry.path()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file that everybody may read, in a folder that is made where needed.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    fs::write(path, content).with_context(|| path.display().to_string())?;
    set_mode(path, 0o644)
}

/// Compresses without the time, so that equal content has equal bytes.
pub(super) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "--no-name", "--stdout"]);
    let mut child = gzip.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().context("gzip has no input")?;
    let content = content.to_owned();
    // From a thread: what is read and what is written would wait for each other.
    let writer = std::thread::spawn(move || input.write_all(&content));
    let output = child.wait_with_output()?;
    anyhow::ensure!(output.status.success(), "gzip failed: {}", output.status);
    let written = writer.join();
    written.map_err(|_| anyhow::anyhow!("the writer of gzip panicked"))??;
    Ok(output.stdout)
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Sets the mode: that of a new file depends on the user's mask.
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| path.display().to_string())
}

const DOCUMENTS: [&str; 7] = [
    "README.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/*.md",
    "docs/*.json",
    "examples",
];
