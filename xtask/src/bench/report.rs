//! `cargo xtask bench report`: trends, pages and views, as `docs/REPORTS.md` describes them.
//!
//! ```text
//! rows (a file of this folder each) ─► figures with bounds ─► a table
//! ```
//!
//! A row may be skipped with a reason. A figure that falls short fails the command after the last
//! row.

mod change_points;
mod lab_page;
mod live;
mod logs;
mod trend;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::figure::Figure;
use super::programs::{self, Programs};

/// Rows, in the order in which they are measured.
const ROWS: &[Row] = &[
    change_points::FLAT,
    change_points::STEP,
    trend::ROW,
    logs::ROW,
    lab_page::ROW,
    lab_page::SHOWN,
    live::SERVE_IOPS,
    live::LIVE_IOPS,
    live::SERVE_COST,
    live::LIVE_COST,
];

/// Something to measure.
pub(super) struct Row {
    /// Name, for `--only`.
    pub(super) name: &'static str,
    /// Description, for the reader.
    pub(super) what: &'static str,
    pub(super) measure: fn(&Setting) -> Result<Measured>,
}

/// Result of a row.
#[derive(Debug)]
pub(super) enum Measured {
    Figures(Vec<Figure>),
    /// Not measured on this machine, with the reason.
    Skipped(String),
}

/// Programs and sizes that rows share.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) programs: Programs,
    /// Runs of a large history.
    runs: u32,
}

/// Runs `cargo xtask bench report`.
pub(super) fn run(args: &[String]) -> Result<()> {
    run_rows("report", ROWS, args, programs::build)
}

/// Measures the rows of `bench NAME` that the arguments choose. `build`: builds the program, unless
/// one is given.
pub(super) fn run_rows(
    name: &str,
    rows: &'static [Row],
    args: &[String],
    build: fn() -> Result<PathBuf>,
) -> Result<()> {
    let options = Options::parse(name, args)?;
    let rows = rows.iter().filter(|row| options.wants(row));
    let rows: Vec<&Row> = rows.collect();
    if rows.is_empty() {
        bail!("no row's name contains the word of --only: --list shows them");
    }
    if options.list {
        for row in rows {
            println!("{:20} {}", row.name, row.what);
        }
        return Ok(());
    }
    let fathom = options.fathom.map_or_else(build, Ok)?;
    let setting = Setting {
        programs: Programs::find(Some(&fathom), None, false)?,
        runs: options.runs,
    };
    let mut done = Vec::new();
    for row in rows {
        println!("bench: {}: {}", row.name, row.what);
        // Continue after a failed row, so that it does not cost the minutes of the others.
        let measured = (row.measure)(&setting);
        for line in lines(&measured) {
            println!("bench:   {line}");
        }
        done.push((row, measured));
    }
    print!("\n{}", table(&done));
    let short: Vec<&str> = done
        .iter()
        .filter(|(_, measured)| fell_short(measured))
        .map(|(row, _)| row.name)
        .collect();
    match short.is_empty() {
        true => Ok(()),
        false => bail!("bench {name}: fell short or failed: {}", short.join(", ")),
    }
}

fn fell_short(measured: &Result<Measured>) -> bool {
    match measured {
        Ok(Measured::Figures(figures)) => !figures.iter().all(Figure::is_met),
        Ok(Measured::Skipped(_)) => false,
        Err(_) => true,
    }
}

fn lines(measured: &Result<Measured>) -> Vec<String> {
    match measured {
        Ok(Measured::Figures(figures)) => figures.iter().map(Figure::to_string).collect(),
        Ok(Measured::Skipped(why)) => vec![format!("skipped: {why}")],
        Err(error) => vec![format!("failed: {error:#}")],
    }
}

/// Formats the rows as a table of Markdown.
fn table(done: &[(&Row, Result<Measured>)]) -> String {
    let mut text = String::from("| what | measured | figure | |\n|---|--:|--:|---|\n");
    for (row, measured) in done {
        let what = row.what;
        match measured {
            Ok(Measured::Figures(figures)) => text.extend(figures.iter().map(|figure| {
                let word = if figure.is_met() {
                    "reached"
                } else {
                    "falls short"
                };
                let (value, bound) = (figure.value_text(), figure.bound_text());
                format!("| {what}: {} | {value} | {bound} | {word} |\n", figure.what)
            })),
            Ok(Measured::Skipped(why)) => {
                text.push_str(&format!("| {what} | | | skipped: {why} |\n"));
            }
            Err(_) => text.push_str(&format!("| {what} | | | failed |\n")),
        }
    }
    text
}

/// Options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Program to measure instead of building one.
    fathom: Option<PathBuf>,
    only: Option<String>,
    runs: u32,
    list: bool,
}

impl Options {
    fn parse(name: &str, args: &[String]) -> Result<Self> {
        let mut options = Self {
            fathom: None,
            only: None,
            runs: 10_000,
            list: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--fathom" => options.fathom = Some(value()?.into()),
                "--only" => options.only = Some(value()?.clone()),
                "--runs" => options.runs = super::number(arg, value()?)?,
                "--list" => options.list = true,
                _ => bail!(
                    "bench {name} has no option `{arg}`: --fathom PROGRAM, --only NAME, --runs N, \
                     --list"
                ),
            }
        }
        Ok(options)
    }

    fn wants(&self, row: &Row) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|part| row.name.contains(part.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_refused() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse("report", &words)
        };
        let options = parse("--only trend --runs 20 --fathom f").expect("good options");
        assert!(options.wants(&trend::ROW) && !options.wants(&change_points::FLAT));
        assert_eq!(options.runs, 20);
        for bad in ["--runs 0", "--only", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_row_fails_by_its_figures_only() {
        let figures = |value| {
            Ok(Measured::Figures(vec![Figure::at_most(
                "a", value, "ms", 1.0,
            )]))
        };
        assert!(!fell_short(&figures(1.0)) && fell_short(&figures(2.0)));
        let skipped = Ok(Measured::Skipped("no chromium".into()));
        assert!(!fell_short(&skipped));
        assert!(fell_short(&Err(anyhow::anyhow!("no"))));
        let done = [
            (&trend::ROW, figures(2.0)),
            (&trend::ROW, skipped),
            (&trend::ROW, Err(anyhow::anyhow!("no"))),
        ];
        let table = table(&done);
        for word in ["falls short", "skipped: no chromium", "failed"] {
            assert!(table.contains(word), "{table}");
        }
        assert!(table.lines().all(|line| line.matches('|').count() == 5));
    }
}
