//! `cargo xtask compat`: Fathom, linked as `fio`, compared with an installed fio.
//!
//! ```text
//! xtask/compat/*.cases ─► trial (fio, ours; a folder each) ─► compare ─► what no case states
//!                     └─► coverage of the option table
//! fio-examples ─► run, scaled down, or refused by a name that is stated
//! a number ─► random plan of a mixed job ─► totals within what chance allows
//! ```
//!
//! A case is a command line with its files. Both programs get the same arguments, and everything
//! that the job determines must agree: acceptance, exit code, form of the reports, counts, files
//! left behind. Intended differences are stated in the case with a reason; a stated difference that
//! does not occur fails as well.

mod case;
mod compare;
mod content;
mod counts;
mod coverage;
mod difference;
mod example_runs;
mod examples;
mod json;
mod logs;
mod plans;
mod sample;
mod terse;
mod text;
mod trial;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use crate::bench::programs::{build, target_folder};
use crate::concurrent::each;
use crate::process;
use case::Case;
use trial::Programs;

/// Runs `cargo xtask compat`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let cases = case::read_all(&process::root()?.join("xtask/compat"))?;
    let wanted: Vec<&Case> = cases.iter().filter(|case| options.wants(case)).collect();
    if wanted.is_empty() && !options.wants_plans() {
        bail!(
            "no case's name contains `{}`: --list shows them",
            options.only.unwrap_or_default(),
        );
    }
    if options.list {
        wanted.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    let Some(fio) = process::find_fio() else {
        println!("compat: skipped: no fio");
        return Ok(());
    };
    let plans = options.wants_plans().then(|| options.plans());
    let fathom = match options.fathom {
        Some(path) => path.canonicalize().context("--fathom")?,
        None => build()?,
    };
    let folder = target_folder()?.join(format!("compat-{}", std::process::id()));
    let programs = Programs::new(fio, &fathom, &folder)?;
    let done = all_of_it(&programs, &wanted, &cases, options.only.is_none());
    let plans = plans.map_or(Ok(()), |count| run_plans(&programs, count));
    if options.keep {
        println!("compat: kept {}", folder.display());
    } else {
        std::fs::remove_dir_all(&folder).context("cannot remove the cases' folder")?;
    }
    done.and(plans)
}

/// Runs random plans, two at a time, and checks them together for a bias.
fn run_plans(programs: &Programs, count: u64) -> Result<()> {
    let plans: Vec<plans::Plan> = (0..count).map(plans::Plan::new).collect();
    let scores = Mutex::new(Vec::new());
    let failed = run_concurrently(&plans, |plan| {
        let found = match plan.run(programs) {
            Err(error) => vec![format!("{error:#}")],
            Ok((found, score)) => {
                scores.lock().expect("no thread panics").push(score);
                found
            }
        };
        (
            format!("plans/{}: {}", plan.number, plan.words.join(" ")),
            found,
        )
    });
    let bias = plans::bias(&scores.into_inner().unwrap_or_default());
    bias.iter()
        .for_each(|line| println!("compat: plans: {line}"));
    println!(
        "compat: {} of {count} random plans agree with fio",
        count - failed as u64
    );
    if failed > 0 || !bias.is_empty() {
        bail!("compat: {failed} random plans differ from fio beyond chance, or all together do");
    }
    Ok(())
}

fn all_of_it(programs: &Programs, wanted: &[&Case], cases: &[Case], whole: bool) -> Result<()> {
    let taken = coverage::taken(programs)?;
    let (now, later): (Vec<&Case>, Vec<&Case>) = wanted
        .iter()
        .partition(|case| case.once.as_ref().is_none_or(|name| taken.contains(name)));
    let failed = run_cases(programs, &now);
    println!(
        "compat: {} of {} cases agree with fio",
        now.len() - failed,
        now.len()
    );
    if !later.is_empty() {
        println!(
            "compat: {} cases skipped: their options are not implemented yet",
            later.len()
        );
    }
    let mut complete = true;
    if whole {
        complete = coverage::check(programs, cases, &taken)?;
        complete &= examples::check(programs)?;
    }
    if failed > 0 || !complete {
        bail!("compat: {failed} cases failed, or an option or an example is not covered");
    }
    Ok(())
}

/// Runs the cases and returns the number of failed ones.
fn run_cases(programs: &Programs, cases: &[&Case]) -> usize {
    run_concurrently(cases, |case| (case.name.clone(), one(programs, case)))
}

/// Tries all of them, some at a time, prints the findings under their names, and returns the number
/// of failed ones.
fn run_concurrently<T: Sync>(
    all: &[T],
    try_one: impl Fn(&T) -> (String, Vec<String>) + Sync,
) -> usize {
    let printing = Mutex::new(());
    let failed = each(CONCURRENT_CASES, all.len(), |_, at| {
        let (name, found) = try_one(&all[at]);
        if !found.is_empty() {
            let _held = printing.lock();
            println!("compat: {name}: failed");
            found.iter().for_each(|line| println!("    {line}"));
        }
        !found.is_empty()
    });
    failed.into_iter().filter(|failed| *failed).count()
}

/// Returns the differences that a case does not state; none if it passes.
fn one(programs: &Programs, case: &Case) -> Vec<String> {
    if case.as_root && !is_root() {
        println!("compat: {}: skipped: not root", case.name);
        return Vec::new();
    }
    let tries = if case.is_timed() { ATTEMPTS_MAX } else { 1 };
    let mut found = Vec::new();
    for _ in 0..tries {
        found = match trial::both(programs, case) {
            Err(error) => vec![format!("{error:#}")],
            Ok([fio, ours]) => difference::unstated(case, compare::compare(case, &fio, &ours)),
        };
        if found.is_empty() {
            break;
        }
    }
    found
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Options of the command line.
#[derive(Default)]
struct Options {
    only: Option<String>,
    fathom: Option<PathBuf>,
    keep: bool,
    list: bool,
    plans: Option<u64>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--only" => options.only = Some(value()?.clone()),
                "--fathom" => options.fathom = Some(Path::new(value()?).to_owned()),
                "--keep" => options.keep = true,
                "--list" => options.list = true,
                "--plans" => options.plans = Some(value()?.parse().context("--plans")?),
                other => bail!("compat has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        Ok(options)
    }

    /// Returns true if random plans are to run: `--only` selects them by the name `plans`.
    fn wants_plans(&self) -> bool {
        let only = self.only.as_ref();
        self.plans.is_some() || only.is_none_or(|only| only == "plans")
    }

    fn plans(&self) -> u64 {
        self.plans.unwrap_or(plans::PLANS)
    }

    fn wants(&self, case: &Case) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| case.name.contains(only))
    }
}

/// Cases that run at a time: twice the processors of the smallest machines, because cases mostly
/// wait.
const CONCURRENT_CASES: usize = 4;

/// Attempts of a case that depends on time: a busy machine may disturb either program.
const ATTEMPTS_MAX: usize = 3;
