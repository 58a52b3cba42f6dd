//! fio's example job files: each runs, scaled down, or is refused for hardware or options that it
//! needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::example_runs;
use super::trial::{self, ProgramRun, Programs};
use crate::process;

/// Parses every example and runs those that are accepted; returns true if each runs, or is refused
/// or fails by the stated name.
pub(crate) fn check(programs: &Programs) -> Result<bool> {
    if !Path::new(FOLDER).is_dir() {
        println!("compat: skipped: no fio-examples");
        return Ok(true);
    }
    let stated = process::root()?.join("xtask/compat/examples.tsv");
    let stated =
        fs::read_to_string(&stated).with_context(|| format!("cannot read {}", stated.display()))?;
    let stated: Vec<Stated<'_>> = stated.lines().filter_map(read).collect();
    let scratch = programs.folder.join("examples");
    fs::create_dir_all(&scratch)?;
    let mut counts = [0; 3];
    let mut wrong = BTreeSet::new();
    let mut understood = Vec::new();
    for path in examples()? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let file = path.to_string_lossy();
        let ours = programs.ours.to_string_lossy();
        let words: Vec<&str> = VARIABLES
            .iter()
            .copied()
            .chain([&*ours, "--parse-only", &*file])
            .collect();
        let ran = trial::run(Path::new("env"), &scratch, &words)?;
        let own = stated.iter().find(|one| one.file == name);
        match verdict(own.filter(|one| one.why != Verdict::Fails), &ran) {
            Ok(verdict) => {
                counts[verdict as usize] += 1;
                // One whose statement is out of date was never tried.
                let tried = own.is_none_or(|one| one.why == Verdict::Fails);
                if verdict == Verdict::Understood && tried {
                    understood.push((path, own));
                }
            }
            Err(why) => {
                wrong.insert(format!("{name}: {why}"));
            }
        }
    }
    let failed = super::run_concurrently(&understood, |(path, stated)| {
        let found = match example_runs::run(programs, path, VARIABLES) {
            Err(error) => Some(format!("{error:#}")),
            Ok(ran) => run_fault(stated.filter(|one| one.why == Verdict::Fails), &ran),
        };
        (path.display().to_string(), found.into_iter().collect())
    });
    let [read, hardware, later] = counts;
    println!(
        "compat: fio-examples: {read} are understood, of which {} run, {hardware} need special \
         hardware or a cluster, {later} something that is not there yet",
        understood.len() - failed
    );
    wrong
        .iter()
        .for_each(|line| println!("compat: fio-examples: {line}"));
    Ok(wrong.is_empty() && failed == 0)
}

fn examples() -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(FOLDER).with_context(|| format!("cannot list {FOLDER}"))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "fio"));
    Ok(paths)
}

/// Stated reason why an example is refused.
struct Stated<'a> {
    file: &'a str,
    /// `D`: special hardware or a cluster; `later`: not implemented yet; `fails`: is understood,
    /// but cannot run everywhere.
    why: Verdict,
    /// Engine or option named in the refusal, or a part of the message.
    name: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Understood = 0,
    Hardware = 1,
    Later = 2,
    Fails = 3,
}

fn read(line: &str) -> Option<Stated<'_>> {
    let mut fields = line.split('\t');
    let file = fields.next().filter(|file| !file.starts_with('#'))?;
    let why = match fields.next()? {
        "D" => Verdict::Hardware,
        "fails" => Verdict::Fails,
        _ => Verdict::Later,
    };
    Some(Stated {
        file,
        why,
        name: fields.next()?,
    })
}

/// Returns the fault of a run that neither did its work nor failed as stated.
fn run_fault(stated: Option<&Stated<'_>>, ran: &ProgramRun) -> Option<String> {
    let first = ran.stderr.lines().find(|line| !line.contains("warning"));
    match stated {
        // It may run on a better machine.
        _ if ran.code == 0 => None,
        Some(stated) if ran.stderr.contains(stated.name) => None,
        _ => Some(format!(
            "ends with {}: {}",
            ran.code,
            first.unwrap_or_default()
        )),
    }
}

fn verdict(stated: Option<&Stated<'_>>, ran: &ProgramRun) -> Result<Verdict, String> {
    match (stated, ran.code) {
        (None, 0) => Ok(Verdict::Understood),
        (Some(stated), 0) if stated.why == Verdict::Hardware => {
            Err("is accepted now: remove its line from examples.tsv".into())
        }
        // Implemented meanwhile: the statement is out of date.
        (Some(_), 0) => Ok(Verdict::Understood),
        (None, _) => {
            let said = ran.stderr.lines().find(|line| !line.contains("warning"));
            Err(format!("is refused: {}", said.unwrap_or_default()))
        }
        (Some(stated), 1) if ran.stderr.contains(&format!("`{}", stated.name)) => Ok(stated.why),
        (Some(stated), code) => Err(format!(
            "ends with {code} and does not name `{}`",
            stated.name
        )),
    }
}

/// Environment variables that some examples read.
const VARIABLES: &[&str] = &[
    "FIO_DIR=.",
    "FIO_RW=randread",
    "FIO_IODEPTH=1",
    "FIO_BS=4k",
    "POOL=pool",
    "CONT=cont",
    "unixsocket=socket",
    "S3_ID=id",
    "S3_KEY=key",
    "SSE_KEY=key",
    "STORAGE_CLASS=STANDARD",
    "SWIFT_id=token",
];

/// Directory of the examples in Debian's package.
const FOLDER: &str = "/usr/share/doc/fio/examples";

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, said: &str) -> ProgramRun {
        ProgramRun {
            code,
            stderr: said.into(),
            ..ProgramRun::default()
        }
    }

    #[test]
    fn a_run_that_fails_must_be_stated() {
        let line = read("x.fio\tfails\tNUMA node").unwrap();
        let named = ran(1, "fio: no such NUMA node: 1");
        assert_eq!(run_fault(Some(&line), &named), None);
        assert_eq!(run_fault(Some(&line), &ran(0, "")), None);
        assert_eq!(run_fault(None, &ran(0, "")), None);
        assert!(run_fault(None, &named).is_some());
        assert!(run_fault(Some(&line), &ran(1, "no size")).is_some());
    }

    #[test]
    fn what_is_refused_must_be_stated_and_named() {
        let line = read("x.fio\tD\trbd").unwrap();
        let named = ran(1, "the engine `rbd` needs librbd");
        assert_eq!(verdict(Some(&line), &named), Ok(Verdict::Hardware));
        assert_eq!(verdict(None, &ran(0, "")), Ok(Verdict::Understood));
        assert!(verdict(None, &named).is_err());
        assert!(verdict(Some(&line), &ran(0, "")).is_err());
        let later = read("x.fio\tlater\texec").unwrap();
        assert_eq!(verdict(Some(&later), &ran(0, "")), Ok(Verdict::Understood));
        assert!(verdict(Some(&line), &ran(1, "no size")).is_err());
        assert!(verdict(Some(&line), &ran(2, "the engine `rbd` needs librbd")).is_err());
    }
}
