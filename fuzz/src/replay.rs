//! Replays inputs: the corpus, or the files named on the command line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::say;
use crate::target::{TARGETS, Target};
use crate::watchdog::Watchdog;

/// Replays what the command line names. Exit codes: 0 all passed, 1 a rule is broken, 2 an input
/// could not be read.
pub(crate) fn run() -> ExitCode {
    match replay() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            say(&format!("fuzz: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Returns whether every input passed.
fn replay() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The oracle reports panics; their own message would only repeat it.
    std::panic::set_hook(Box::new(|_| {}));
    let watchdog = Watchdog::start();
    let mut passed = true;
    match arguments.split_first() {
        None => {
            for target in TARGETS {
                for file in seeds(target)? {
                    passed &= try_file(target, &file, &watchdog)?;
                }
            }
        }
        Some((name, files)) => {
            let target = named(name)?;
            if files.is_empty() {
                bail!("no input: `fathom-fuzz {name} FILE...`");
            }
            for file in files {
                passed &= try_file(target, Path::new(file), &watchdog)?;
            }
        }
    }
    Ok(passed)
}

fn named(name: &str) -> Result<&'static Target> {
    Target::named(name).with_context(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        format!("no target `{name}`: targets are {}", names.join(", "))
    })
}

fn try_file(target: &Target, file: &Path, watchdog: &Watchdog) -> Result<bool> {
    let input = std::fs::read(file).with_context(|| file.display().to_string())?;
    let tried = target.try_with(&input, watchdog);
    let (passed, outcome) = match &tried {
        Ok(verdict) => (true, verdict.to_string()),
        Err(breach) => (false, breach.clone()),
    };
    say(&format!("{}: {}: {outcome}", target.name, file.display()));
    Ok(passed)
}

/// Returns the target's seeds, sorted by name.
fn seeds(target: &Target) -> Result<Vec<PathBuf>> {
    let folder = target.corpus();
    let context = || folder.display().to_string();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(context)? {
        files.push(entry.with_context(context)?.path());
    }
    files.sort();
    Ok(files)
}
