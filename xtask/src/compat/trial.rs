//! Execution of both programs, each in its own directory.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::case::{Case, Wanted};
use super::content;

/// Both programs, and their working directory.
pub(crate) struct Programs {
    pub(crate) fio: PathBuf,
    /// Link named `fio` to the program under test.
    pub(crate) ours: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Programs {
    pub(crate) fn new(fio: PathBuf, fathom: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let ours = folder.join("fio");
        symlink(fathom, &ours).context("cannot link the program as `fio`")?;
        Ok(Self {
            fio,
            ours,
            folder: folder.to_owned(),
        })
    }
}

/// Result of one program's run.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramRun {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Names and sizes of the files left behind.
    pub(crate) files: BTreeMap<String, u64>,
    /// Text of the logs, by name.
    pub(crate) logs: BTreeMap<String, String>,
    /// Contents of the files, by name, if the case compares them.
    pub(crate) content: BTreeMap<String, String>,
}

/// Runs fio, then Fathom.
pub(crate) fn both(programs: &Programs, case: &Case) -> Result<[ProgramRun; 2]> {
    let folder = programs.folder.join(case.index.to_string());
    let words = words(case);
    let run = |name: &str, program: &Path| -> Result<ProgramRun> {
        let own = folder.join(name);
        if own.exists() {
            fs::remove_dir_all(&own)?;
        }
        fs::create_dir_all(&own)?;
        for (name, text) in &case.files {
            fs::write(own.join(name), text)?;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut ran = run(program, &own, &words)?;
        ran.files
            .retain(|name, _| case.files.iter().all(|(given, _)| given != name));
        let data = ran
            .files
            .keys()
            .filter(|name| case.content && is_data(name));
        for name in data {
            let held = fs::read(own.join(name))?;
            ran.content.insert(name.clone(), content::kind(&held));
        }
        Ok(ran)
    };
    let theirs = match case.wanted {
        Wanted::Ours => ProgramRun::default(),
        _ => run("theirs", &programs.fio)?,
    };
    Ok([theirs, run("ours", &programs.ours)?])
}

/// Returns the arguments of a case with those of all cases: every report, with rotating layouts.
fn words(case: &Case) -> Vec<String> {
    let mut words = Vec::new();
    if !case.plain {
        let json = ["json", "json+"][case.index % 2];
        words.push("--eta=never".to_owned());
        if !case.formats {
            words.push(format!("--output-format=terse,{json},normal"));
            words.push(format!("--terse-version={}", 2 + case.index % 4));
        }
        let names_a_job = |word: &String| word.trim_start_matches('-').starts_with("name");
        let from_file = case
            .words
            .iter()
            .any(|word| word.ends_with(".fio") || word == "-");
        if !case.words.iter().any(names_a_job) && !from_file {
            words.push("--name=t".to_owned());
        }
    }
    words.extend(case.words.iter().cloned());
    words
}

/// Runs a program in a directory to its end. After a timeout it gets SIGTERM, and SIGKILL only if
/// that does not help: fio's jobs are processes that only their parent can end.
pub(crate) fn run(program: &Path, folder: &Path, words: &[&str]) -> Result<ProgramRun> {
    // Output goes into files: a process that fio leaves behind would hold a pipe open for ever.
    let beside = |ending| folder.with_extension(ending);
    let (said, complained) = (beside("stdout"), beside("stderr"));
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", &LIMIT_S.to_string()])
        .arg(program)
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&said)?)
        .stderr(fs::File::create(&complained)?);
    let status = command.status().context("cannot start `timeout`")?;
    let shown = || format!("{} {}", program.display(), words.join(" "));
    let code = status
        .code()
        .with_context(|| format!("a signal ended `{}`", shown()))?;
    if code == TIMED_OUT {
        bail!("`{}` did not end within {LIMIT_S} s", shown());
    }
    let text = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (files, logs) = listing(folder)?;
    Ok(ProgramRun {
        code,
        stdout: text(said)?,
        stderr: text(complained)?,
        files,
        logs,
        content: BTreeMap::new(),
    })
}

fn is_data(name: &str) -> bool {
    !name.ends_with(['/']) && !name.ends_with(".log") && !name.ends_with(".state")
}

type Listing = (BTreeMap<String, u64>, BTreeMap<String, String>);

/// Lists every file below a directory with its size, and reads the logs among them.
fn listing(folder: &Path) -> Result<Listing> {
    let (mut files, mut logs) = (BTreeMap::new(), BTreeMap::new());
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            let path = entry.path();
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                files.insert(format!("{name}/"), 0);
                folders.push(path);
                continue;
            }
            if name.ends_with(".log") {
                logs.insert(name.clone(), fs::read_to_string(&path)?);
            }
            // The size of a text file of times varies from run to run.
            let has_size = !name.ends_with(".log") && !name.ends_with(".txt");
            let size = if has_size { entry.metadata()?.len() } else { 0 };
            files.insert(name, size);
        }
    }
    Ok((files, logs))
}

/// Timeout of a run: cases end by themselves within a second or two, unless a program hangs.
const LIMIT_S: u32 = 30;

/// Exit code of `timeout` when it had to end the program.
const TIMED_OUT: i32 = 124;
