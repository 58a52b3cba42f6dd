//! `cargo xtask bench`: fathom beside an installed fio, same job, same core, turn about.
//!
//! ```text
//! rows (what, job, figure) ─► pairs (fio, fathom; fathom, fio; …) ─► verdict ─► docs/BENCHMARKS.md
//! ```
//!
//! A row's result is the median over its pairs, with the smallest and largest pair and a bootstrap
//! interval of the median beside it, because one run of anything proves nothing.

mod machine;
mod pairs;
mod programs;
mod rows;
mod statistics;
mod table;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process;
use programs::{Programs, TestFile};
use rows::{ROWS, Row};
use table::Outcome;

/// `cargo xtask bench`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let rows: Vec<&Row> = ROWS.iter().filter(|row| options.wants(row)).collect();
    if rows.is_empty() {
        bail!(
            "no row's name contains `{}`: --list shows them",
            options.only.unwrap_or_default()
        );
    }
    if options.list {
        for row in rows {
            println!("{:20} {} — {}", row.name, row.what, row.figure);
        }
        return Ok(());
    }
    let Some(fio) = process::find("fio") else {
        println!("bench: skipped: no fio");
        return Ok(());
    };
    let programs = Programs::build(fio)?;
    let folder = options.folder()?;
    let outcomes = measure_all(&programs, &rows, &options, &folder)?;
    print!("\n{}", table::text(&outcomes));
    if options.write {
        table::write(&outcomes, &programs, &options.shown(), &folder)?;
    }
    let short: Vec<&str> = outcomes
        .iter()
        .filter(|o| o.verdict().is_failure())
        .map(|o| o.row.name)
        .collect();
    if !short.is_empty() {
        bail!("bench: {} fell short", short.join(", "));
    }
    Ok(())
}

fn measure_all<'a>(
    programs: &Programs,
    rows: &[&'a Row],
    options: &Options,
    folder: &Path,
) -> Result<Vec<Outcome<'a>>> {
    // Kept until the last row is done.
    let needed = rows.iter().any(|row| row.needs_file());
    let _made = needed.then(|| TestFile::make(folder)).transpose()?;
    let file = TestFile::place(folder);
    let mut outcomes = Vec::new();
    for row in rows {
        println!("bench: {}: {}", row.name, row.what);
        let pairs = pairs::measure(programs, row, options, &file)
            .with_context(|| format!("bench: {} failed", row.name))?;
        let outcome = Outcome::new(row, pairs);
        println!("bench: {}", outcome.line());
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Pairs of runs per row.
    pub(crate) pairs: usize,
    /// Measured seconds of each run.
    pub(crate) seconds: u32,
    only: Option<String>,
    directory: Option<PathBuf>,
    list: bool,
    write: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            pairs: DEFAULT_PAIRS,
            seconds: DEFAULT_SECONDS,
            only: None,
            directory: None,
            list: false,
            write: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--pairs" => options.pairs = number(arg, value()?)?,
                "--seconds" => options.seconds = number(arg, value()?)?,
                "--only" => options.only = Some(value()?.clone()),
                "--directory" => options.directory = Some(value()?.into()),
                "--list" => options.list = true,
                "--write" => options.write = true,
                other => bail!("bench has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        if options.write && (options.only.is_some() || options.pairs < DEFAULT_PAIRS) {
            bail!(
                "--write needs all rows and at least {DEFAULT_PAIRS} pairs: it replaces the table"
            );
        }
        Ok(options)
    }

    fn wants(&self, row: &Row) -> bool {
        self.only
            .as_ref()
            .is_none_or(|part| row.name.contains(part.as_str()))
    }

    /// Where the test file goes.
    fn folder(&self) -> Result<PathBuf> {
        match &self.directory {
            Some(folder) => Ok(folder.clone()),
            None => programs::target_folder(),
        }
    }

    /// The command that repeats this.
    fn shown(&self) -> String {
        format!(
            "cargo xtask bench --pairs {} --seconds {}",
            self.pairs, self.seconds
        )
    }
}

fn number<T: std::str::FromStr + PartialOrd + From<u8>>(option: &str, text: &str) -> Result<T> {
    match text.parse::<T>() {
        Ok(value) if value >= T::from(1) => Ok(value),
        _ => bail!("{option} takes a whole number from 1, not `{text}`"),
    }
}

/// The least that gives a median and an interval.
const DEFAULT_PAIRS: usize = 5;
/// Long enough for millions of ops, short enough for the whole table in a few minutes.
const DEFAULT_SECONDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_read_and_nonsense_refused() {
        let options = parse("--pairs 7 --seconds 2 --only null").expect("good options");
        assert_eq!((options.pairs, options.seconds), (7, 2));
        assert!(ROWS.iter().any(|row| options.wants(row)));
        for bad in [
            "--pairs",
            "--pairs 0",
            "--pairs x",
            "--fast",
            "--write --only null",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
