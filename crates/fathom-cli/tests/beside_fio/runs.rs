//! Runs both programs, each in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// What one of the two did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Names and sizes.
    pub(crate) files: BTreeMap<String, u64>,
}

impl Ran {
    /// The JSON document, from the line `{` to the line `}`.
    pub(crate) fn report(&self) -> Option<Value> {
        let lines: Vec<&str> = self
            .stdout
            .lines()
            .skip_while(|line| *line != "{")
            .collect();
        let last = lines.iter().rposition(|line| *line == "}")?;
        serde_json::from_str(&lines[..=last].join("\n")).ok()
    }
}

/// Runs fio and the program for JSON, in folders of their own, first filled with `files`; none
/// where there is no fio.
pub(crate) fn both(line: &str, files: &[(&str, &str)]) -> Option<[Ran; 2]> {
    let named = if line.starts_with("--") {
        "--name=t "
    } else {
        ""
    };
    both_as_it_stands(
        &format!("--output-format=json --eta=never {named}{line}"),
        files,
    )
}

/// The same, with nothing put before the line.
pub(crate) fn both_as_it_stands(line: &str, files: &[(&str, &str)]) -> Option<[Ran; 2]> {
    let Some(fio) = find_fio() else {
        eprintln!("skipped: no fio");
        return None;
    };
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("beside-fio-{number}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let ours = folder.join("fio");
    symlink(env!("CARGO_BIN_EXE_fathom"), &ours).expect("a link can be made");
    let ran = [("theirs", fio), ("ours", ours)].map(|(name, program)| {
        let own = folder.join(name);
        fs::create_dir(&own).expect("a folder can be made");
        for (name, text) in files {
            fs::write(own.join(name), text).expect("a file can be written");
        }
        run(&program, &own, line, files)
    });
    fs::remove_dir_all(&folder).expect("a temporary folder can be removed");
    Some(ran)
}

/// Folders are told apart by it: tests run side by side.
static NUMBER: AtomicU32 = AtomicU32::new(0);

fn run(program: &Path, folder: &Path, line: &str, files: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    let output = command
        .args(line.split(' '))
        .output()
        .expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        files: listing(folder, files),
    }
}

/// Names and sizes of what a run left; fio's own saved state, and what was there before, left out.
fn listing(folder: &Path, before: &[(&str, &str)]) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(folder).expect("a folder can be listed");
    entries
        .map(|entry| entry.expect("a folder can be listed"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry))
        .filter(|(name, _)| !name.ends_with(".state"))
        .filter(|(name, _)| before.iter().all(|(given, _)| given != name))
        .map(|(name, entry)| (name, entry.metadata().expect("a file has a size").len()))
        .collect()
}

fn find_fio() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join("fio"))
        .find(|fio| fio.is_file())
}
