//! `cargo xtask bench`: Fathom compared with an installed fio, on the same job and core,
//! alternating; `cargo xtask bench nvme`: its target and initiator compared with bare loops; `cargo
//! xtask bench truth`: its own share of a latency; `cargo xtask bench lab`: the method of its labs;
//! `cargo xtask bench history`: commands on a history of 10,000 runs; `cargo xtask bench report`:
//! trends, pages and views; `cargo xtask bench hosts`: ranks of an MPI job, and merged records;
//! `cargo xtask bench nbd`: the engine `nbd` beside fio's and qemu-img.
//!
//! ```text
//! rows (job, figures) ─► pairs (fio, fathom; fathom, fio; …) ─► outcomes ─► docs/BENCHMARKS.md
//! ```
//!
//! A row's result is the ratio of its pairs after Hodges and Lehmann, with the smallest and largest
//! pair and the interval of the signed-rank test, because a single run proves nothing. Instructions
//! are counted once, because counts repeat.

mod baseline;
mod callgrind;
mod data;
mod figure;
mod history;
mod hosts;
mod jobs;
mod lab;
pub(crate) mod machine;
mod nbd;
mod nvme;
mod outcome;
mod pairs;
pub(crate) mod programs;
mod report;
mod row;
mod rows;
mod run_report;
mod scratch;
mod series;
mod statistics;
mod table;
mod truth;
mod zram;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use baseline::Baseline;
use data::TestFile;
use outcome::{Measured, Outcome, Skipped};
use pairs::Bench;
pub(crate) use pairs::LogFolder;
use programs::Programs;
use row::{Method, On, Row};
use zram::Zram;

/// Runs `cargo xtask bench`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some((first, rest)) = args.split_first() {
        match first.as_str() {
            "lab" => return lab::run(rest),
            "history" => return history::run(rest),
            "report" => return report::run(rest),
            "hosts" => return hosts::run(rest),
            "nbd" => return nbd::run(rest),
            _ => {}
        }
    }
    let options = Options::parse(args)?;
    let all = options.group.rows();
    let rows: Vec<&Row> = all.iter().filter(|row| options.wants(row)).collect();
    if rows.is_empty() {
        bail!(
            "no row's name contains `{}`: --list shows them",
            options.only.unwrap_or_default()
        );
    }
    if options.list {
        list(&rows);
        return Ok(());
    }
    let folder = options.folder()?;
    let mut bench = set_up(&rows, &options, &folder)?;
    let mut outcomes = Vec::new();
    let mut broken = Vec::new();
    for row in rows {
        println!("bench: {}: {}", row.name, row.what);
        // Continue after a failed row, so that it does not cost the minutes of the others.
        let done = measure(&mut bench, row, options.pairs).unwrap_or_else(|error| {
            println!("bench: {} failed: {error:#}", row.name);
            broken.push(row.name);
            skipped(row, "failed")
        });
        outcomes.extend(done);
    }
    print!("\n{}", table::text(&outcomes));
    if options.keep {
        bench.baseline.write()?;
    }
    if options.write {
        let command = options.shown();
        table::write(&outcomes, &bench.programs, options.group, &command, &folder)?;
    }
    let counts = |outcome: &&Outcome<'_>| !options.growth || outcome.is_growth();
    let failed = outcomes
        .iter()
        .filter(counts)
        .filter(|outcome| outcome.is_failure());
    let short: Vec<&str> = failed.map(|outcome| outcome.row.name).collect();
    if !broken.is_empty() {
        bail!("bench: {} failed", broken.join(", "));
    }
    if !short.is_empty() {
        bail!("bench: {} fell short", short.join(", "));
    }
    Ok(())
}

/// Prints the rows and their required figures.
fn list(rows: &[&Row]) {
    for row in rows {
        for check in row.checks {
            let words = check.measure.suffix();
            println!("{:20} {}{words}: {check}", row.name, row.what);
        }
    }
}

/// Finds the programs and creates the targets of the rows, which are removed when the result is
/// dropped.
fn set_up(rows: &[&Row], options: &Options, folder: &Path) -> Result<Bench> {
    let needs = |on: &[On]| rows.iter().any(|row| on.contains(&row.on));
    let nvme = options.group == Group::Nvme;
    let programs = Programs::find(options.fathom.as_deref(), options.fio.as_deref(), nvme)?;
    let file = needs(&[On::File, On::CachedFile]).then(|| TestFile::make(folder));
    let verified = needs(&[On::VerifiedFile]).then(|| TestFile::make_verified(folder, &programs));
    let zram = (needs(&[On::Zram]) && Zram::obstacle().is_none()).then(Zram::set_up);
    // `--keep` replaces the baseline, so it may be missing.
    let baseline = match Baseline::read() {
        Err(_) if options.keep => Baseline::default(),
        read => read?,
    };
    Ok(Bench {
        programs,
        seconds: options.seconds,
        device: options.device.clone(),
        file: file.transpose()?,
        verified: verified.transpose()?,
        zram: zram.transpose()?,
        baseline,
        keep: options.keep,
        best: nvme::Choice::default(),
    })
}

/// Measures one row and returns an outcome per check.
fn measure<'a>(bench: &mut Bench, row: &'a Row, pairs: usize) -> Result<Vec<Outcome<'a>>> {
    let outcomes: Vec<Outcome<'a>> = if let Some(why) = obstacle(bench, row) {
        skipped(row, &why)
    } else {
        let lines = bench.pairs(row, pairs)?;
        let measured = |(check, line): (&'a row::Check, Vec<pairs::Pair>)| Outcome {
            row,
            check,
            result: Ok(Measured::new(&line)),
        };
        row.checks.iter().zip(lines).map(measured).collect()
    };
    for outcome in &outcomes {
        println!("bench: {}", outcome.line());
    }
    Ok(outcomes)
}

/// Returns the outcomes of a row that was not measured.
fn skipped<'a>(row: &'a Row, why: &str) -> Vec<Outcome<'a>> {
    let skipped = |check| Outcome {
        row,
        check,
        result: Err(Skipped(why.to_owned())),
    };
    row.checks.iter().map(skipped).collect()
}

/// Returns the reason why a row cannot be measured on this machine, if any.
fn obstacle(bench: &Bench, row: &Row) -> Option<String> {
    let programs = &bench.programs;
    let missing = match row.method {
        Method::Fio | Method::Truth(_) if programs.fio.is_none() => Some("no fio"),
        Method::Truth(_) => (programs.cores.len() < 2).then_some("needs two cores"),
        Method::ManyJobs if !programs.can_pin() => Some("no taskset"),
        Method::ManyJobs => (programs.cores.len() < 2).then_some("needs two cores"),
        Method::Counted | Method::CountedWith(_) => {
            programs.valgrind.is_none().then_some("no valgrind")
        }
        Method::RingLoop(..) => programs.ring_loop.is_none().then_some(
            "no t_io_uring in the path (build it with `make t/io_uring` in fio's sources)",
        ),
        Method::With(_) | Method::Nvme(_) if !programs.can_pin() => Some("no taskset"),
        Method::With(_) | Method::Nvme(_) => {
            (programs.cores.len() < 2).then_some("needs two cores")
        }
        Method::Fio | Method::HalfRate | Method::Peak(_) | Method::Modelled(_) => None,
    };
    let no_zram = || (row.on == On::Zram && bench.zram.is_none()).then(Zram::obstacle);
    missing.map(str::to_owned).or_else(|| no_zram().flatten())
}

/// Rows that are measured and published together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Jobs beside fio.
    Job,
    /// Target and initiator of NVMe/TCP beside bare loops.
    Nvme,
    /// The program's own share of what it measures, beside fio's.
    Truth,
}

impl Group {
    fn rows(self) -> &'static [Row] {
        match self {
            Self::Job => rows::ROWS,
            Self::Nvme => nvme::ROWS,
            Self::Truth => truth::ROWS,
        }
    }

    /// Lines of `docs/BENCHMARKS.md` around the table.
    fn marks(self) -> [&'static str; 2] {
        match self {
            Self::Job => ["<!-- bench: begin -->", "<!-- bench: end -->"],
            Self::Nvme => ["<!-- bench nvme: begin -->", "<!-- bench nvme: end -->"],
            Self::Truth => ["<!-- bench truth: begin -->", "<!-- bench truth: end -->"],
        }
    }
}

/// Options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    group: Group,
    /// Pairs of runs per row.
    pairs: usize,
    /// Measured seconds of each run.
    seconds: u32,
    only: Option<String>,
    directory: Option<PathBuf>,
    /// Device to read instead of a file.
    device: Option<PathBuf>,
    /// Program to measure instead of building one.
    fathom: Option<PathBuf>,
    /// Program to compare with instead of the fio in the path.
    fio: Option<PathBuf>,
    /// Replace the counts kept in the tree with those measured.
    keep: bool,
    /// Fail only if counts have grown.
    growth: bool,
    list: bool,
    write: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            group: Group::Job,
            pairs: DEFAULT_PAIRS,
            seconds: DEFAULT_SECONDS,
            only: None,
            directory: None,
            device: None,
            fathom: None,
            fio: None,
            keep: false,
            growth: false,
            list: false,
            write: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "nvme" => options.group = Group::Nvme,
                "truth" => options.group = Group::Truth,
                "--device" => options.device = Some(value()?.into()),
                "--pairs" => options.pairs = number(arg, value()?)?,
                "--seconds" => options.seconds = number(arg, value()?)?,
                "--only" => options.only = Some(value()?.clone()),
                "--directory" => options.directory = Some(value()?.into()),
                "--fathom" => options.fathom = Some(value()?.into()),
                "--fio" => options.fio = Some(value()?.into()),
                "--keep" => options.keep = true,
                "--growth" => options.growth = true,
                "--list" => options.list = true,
                "--write" => options.write = true,
                other => bail!("bench has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        if options.device.is_some() && options.group != Group::Truth {
            bail!("--device is for `bench truth`: the other rows have targets of their own");
        }
        let partial = options.only.is_some() || options.pairs < PUBLISHED_PAIRS_MIN;
        if options.write && (partial || options.fathom.is_some()) {
            bail!(
                "--write replaces the table: it needs all rows, {PUBLISHED_PAIRS_MIN} pairs or \
                 more, and fathom as it is in the tree"
            );
        }
        Ok(options)
    }

    fn wants(&self, row: &Row) -> bool {
        self.only
            .as_ref()
            .is_none_or(|part| row.name.contains(part.as_str()))
    }

    /// Returns the directory of the test file.
    fn folder(&self) -> Result<PathBuf> {
        match &self.directory {
            Some(folder) => Ok(folder.clone()),
            None => programs::target_folder(),
        }
    }

    /// Returns the command that repeats this benchmark.
    fn shown(&self) -> String {
        let group = match self.group {
            Group::Job => "",
            Group::Nvme => " nvme",
            Group::Truth => " truth",
        };
        let device = self.device.iter();
        let device: String = device
            .map(|path| format!(" --device {}", path.display()))
            .collect();
        format!(
            "cargo xtask bench{group} --pairs {} --seconds {}{device}",
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

/// Enough pairs for a confidence interval worth publishing.
const DEFAULT_PAIRS: usize = 15;
/// Fewest pairs that `--write` accepts: fewer say nothing about the spread.
const PUBLISHED_PAIRS_MIN: usize = 5;
/// Seconds per run. Short, because a core's speed may change by half within seconds and the two
/// runs of a pair must see the same speed.
const DEFAULT_SECONDS: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_read_and_nonsense_refused() {
        let options =
            parse("--pairs 7 --seconds 2 --only null --fio /opt/fio").expect("good options");
        assert_eq!(options.fio, Some("/opt/fio".into()));
        assert_eq!((options.pairs, options.seconds), (7, 2));
        assert!(rows::ROWS.iter().any(|row| options.wants(row)));
        assert_eq!(parse("nvme --list").expect("a group").group, Group::Nvme);
        let truth = parse("truth --device /dev/vdb").expect("a group with a device");
        assert!(truth.shown().ends_with(" --device /dev/vdb"));
        for bad in [
            "--pairs",
            "--pairs 0",
            "--pairs x",
            "--fast",
            "--write --only null",
            "--device /dev/vdb",
            "--write --pairs 4",
            "--write --fathom /bin/true",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
