//! fio's example job files: each is accepted, or refused for hardware or options it needs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::trial::{self, ProgramRun, Programs};
use crate::process;

/// Parses every example, and returns true if each is accepted or refused by the stated name.
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
        match verdict(stated.iter().find(|one| one.file == name), &ran) {
            Ok(verdict) => counts[verdict as usize] += 1,
            Err(why) => {
                wrong.insert(format!("{name}: {why}"));
            }
        }
    }
    let [read, hardware, later] = counts;
    println!(
        "compat: fio-examples: {read} are understood, {hardware} need special hardware or a \
         cluster, {later} something that is not there yet"
    );
    wrong
        .iter()
        .for_each(|line| println!("compat: fio-examples: {line}"));
    Ok(wrong.is_empty())
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
    /// `D`: special hardware or a cluster; `later`: not implemented yet.
    why: Verdict,
    /// Engine or option named in the refusal.
    name: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Understood = 0,
    Hardware = 1,
    Later = 2,
}

fn read(line: &str) -> Option<Stated<'_>> {
    let mut fields = line.split('\t');
    let file = fields.next().filter(|file| !file.starts_with('#'))?;
    let why = match fields.next()? {
        "D" => Verdict::Hardware,
        _ => Verdict::Later,
    };
    Some(Stated {
        file,
        why,
        name: fields.next()?,
    })
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
