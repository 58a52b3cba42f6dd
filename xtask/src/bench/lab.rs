//! `cargo xtask bench lab`: the method of `fathom lab`, on modelled machines whose noise is known.
//!
//! ```text
//! A/A    nothing differs: how many experiments claim a change, how many p values are ≤ 0.05
//! power  one variant is 3 % slower: how many experiments find it, how many intervals hold it
//! search a queue whose answer is known: how many searches end near it
//! costs  a window of a timeline, the time between two runs, and with --build that of the history
//! ```
//!
//! All but the costs runs in virtual time by the program itself, so the figures are the same on
//! every host; only their duration is not.

mod costs;
mod machines;
mod search;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::programs::{self, Programs};
use crate::concurrent::each;
use crate::process;
use machines::{NOISES, Noise, lab, machine};

/// Runs `cargo xtask bench lab`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = Options::parse(args)?;
    let programs = Programs::find(options.fathom.as_deref(), None, false)?;
    let folder = programs::target_folder()?.join("bench-lab");
    // What an interrupted benchmark left would be continued.
    let _none = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let bench = Bench {
        // A process on one core starts no threads for its runs.
        cores: match programs.can_pin() {
            true => programs.cores.clone(),
            false => vec![0; 2],
        },
        programs,
        folder,
    };
    let started = process::now();
    let figures = bench.figures(&options);
    let seconds = started.elapsed().as_secs_f64();
    let costs = bench.costs(options.build);
    fs::remove_dir_all(&bench.folder)?;
    let (figures, costs) = (figures?, costs?);
    println!("\n{}\n{}", table(&figures), costs::table(&costs));
    println!("all but costs in {seconds:.0} s");
    let figures = figures.iter().filter(|figure| !figure.is_met());
    let costs = costs.iter().filter(|cost| !cost.is_met());
    let short: Vec<&str> = figures
        .map(|figure| figure.name.as_str())
        .chain(costs.map(|cost| cost.name))
        .collect();
    // The bounds are for all experiments: a part of them scatters more.
    if short.is_empty() || options.percent < 100 {
        return Ok(());
    }
    bail!("bench lab: fell short: {}", short.join("; "))
}

/// Options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Program to measure instead of building one.
    fathom: Option<PathBuf>,
    /// Part of the experiments to run, percent.
    percent: u32,
    /// Build with and without the history, which takes minutes.
    build: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            fathom: None,
            percent: 100,
            build: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--fathom" => options.fathom = Some(value()?.into()),
                "--percent" => options.percent = super::number(arg, value()?)?,
                "--build" => options.build = true,
                other => bail!("bench lab has no option `{other}`: `cargo xtask help` lists them"),
            }
        }
        Ok(options)
    }

    /// Returns the number of experiments to run instead of all.
    fn part(&self, all: u32) -> u32 {
        (all * self.percent / 100).max(10)
    }
}

/// One figure and its bounds, percent.
#[derive(Debug)]
struct Figure {
    name: String,
    count: u32,
    of: u32,
    bounds: [f64; 2],
}

impl Figure {
    fn percent(&self) -> f64 {
        100.0 * f64::from(self.count) / f64::from(self.of.max(1))
    }

    fn is_met(&self) -> bool {
        (self.bounds[0]..=self.bounds[1]).contains(&self.percent())
    }
}

/// Program and working folder.
struct Bench {
    programs: Programs,
    /// Core of each experiment at once.
    cores: Vec<u32>,
    folder: PathBuf,
}

impl Bench {
    fn figures(&self, options: &Options) -> Result<Vec<Figure>> {
        let started = process::now();
        let mut figures = Vec::new();
        let count = options.part(EXPERIMENTS);
        let claims = |core: usize, at: usize| self.claims(core, &NOISES[at], count);
        for done in each(self.cores.len(), NOISES.len(), claims) {
            figures.push(done?);
        }
        let count = options.part(WITHOUT_TOLERANCE);
        let p_values = |core: usize, at: usize| self.p_values(core, &NOISES[at], count);
        for done in each(self.cores.len(), NOISES.len(), p_values) {
            figures.push(done?);
        }
        let seconds = started.elapsed().as_secs_f64();
        println!("bench: A/A in {seconds:.0} s (goal on two idle cores: {SECONDS_GOAL})");
        figures.extend(self.power(options.part(POWER))?);
        figures.extend(self.searches(options.part(SEARCHES))?);
        Ok(figures)
    }

    /// Counts experiments without a change that claim one.
    fn claims(&self, core: usize, noise: &Noise, count: u32) -> Result<Figure> {
        let row = self.a_a(core, noise, "narrow", 40, count)?;
        Ok(Figure {
            name: format!("A/A, {}: experiments with a claim", noise.name),
            count: whole(&row, "with_claim")?,
            of: whole(&row, "experiments")?,
            bounds: [0.0, 5.0],
        })
    }

    /// Counts p values of at most 0.05 in experiments without a change, of a fixed length.
    fn p_values(&self, core: usize, noise: &Noise, count: u32) -> Result<Figure> {
        let row = self.a_a(core, noise, "never", 12, count)?;
        Ok(Figure {
            name: format!("A/A, {}: p ≤ 0.05", noise.name),
            count: whole(&row, "p_below_5_percent")?,
            of: whole(&row, "comparisons")?,
            bounds: [2.5, 6.0],
        })
    }

    fn a_a(
        &self,
        core: usize,
        noise: &Noise,
        stop: &str,
        repeats_max: u32,
        count: u32,
    ) -> Result<Value> {
        let name = format!("{}-{stop}", noise.name.replace(' ', "-"));
        let file = self.write(&name, &machine(noise, 1), &lab(&name, stop, repeats_max, 1))?;
        let answer = self.lab(core, &file, &["--a-a", &count.to_string()])?;
        let row = answer["rows"][0].clone();
        if whole(&row, "failed_cells")? > 0 || whole(&row, "experiments")? != count {
            bail!("{name}: experiments failed: {row}");
        }
        println!("bench: {name}: {row}");
        Ok(row)
    }

    /// Counts experiments that find a variant slower by 3 %, and intervals that hold it.
    fn power(&self, count: u32) -> Result<[Figure; 2]> {
        let Some(noise) = NOISES.iter().find(|noise| noise.name == "drift") else {
            bail!("no noise `drift`");
        };
        let (found, held, seeds) = (AtomicU32::new(0), AtomicU32::new(0), count as usize);
        let of_found = count.min(FOUND_OF);
        // Relaxed: sums that are read after the threads have ended.
        let experiment = |core: usize, at: usize| -> Result<()> {
            let seed = u32::try_from(at)? + 1;
            let name = format!("power-{seed}");
            let file = self.write(
                &name,
                &machine(noise, seed),
                &lab(&name, "narrow", 40, seed),
            )?;
            let row = self.lab(core, &file, &[])?["rows"][0].clone();
            let ends = ["other_read_iops_ratio_low", "other_read_iops_ratio_high"];
            let [Some(low), Some(high)] = ends.map(|key| row[key].as_f64()) else {
                bail!("{name}: no interval: {row}");
            };
            if (low..=high).contains(&RATIO) {
                held.fetch_add(1, Ordering::Relaxed);
            }
            if seed <= of_found && row["other_read_iops_verdict"] == "worse" {
                found.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        each(self.cores.len(), seeds, experiment)
            .into_iter()
            .collect::<Result<Vec<()>>>()?;
        Ok([
            Figure {
                name: "3 % slower, 2 % between runs, drift: found".into(),
                count: found.into_inner(),
                of: of_found,
                bounds: [90.0, 100.0],
            },
            Figure {
                name: "the same: intervals that hold 3 %".into(),
                count: held.into_inner(),
                of: count,
                bounds: [92.0, 100.0],
            },
        ])
    }

    /// Writes a lab file and its machine; returns the path of the former.
    fn write(&self, name: &str, machine: &str, lab: &str) -> Result<PathBuf> {
        fs::write(self.folder.join(format!("{name}-machine.toml")), machine)?;
        let file = self.folder.join(format!("{name}.toml"));
        fs::write(&file, lab)?;
        Ok(file)
    }

    /// Runs an experiment without a history, on one of the cores, and returns its table.
    fn lab(&self, core: usize, file: &Path, words: &[&str]) -> Result<Value> {
        let mut command = self.programs.fathom_on(self.cores[core]);
        command.arg("lab").arg(file).args(words).arg("--json");
        command.env("FATHOM_HISTORY", self.folder.join("history.db"));
        let output = command.output()?;
        serde_json::from_slice(&output.stdout).with_context(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            format!("{}: no table: {error}", file.display())
        })
    }
}

fn whole(row: &Value, key: &str) -> Result<u32> {
    let number = row[key].as_u64().and_then(|number| number.try_into().ok());
    number.with_context(|| format!("no `{key}` in {row}"))
}

fn table(figures: &[Figure]) -> String {
    let mut text = String::from("| figure | found | required |\n|---|--:|--:|\n");
    for figure in figures {
        let [low, high] = figure.bounds;
        text += &format!(
            "| {} | {} of {} ({:.1} %) | {low} to {high} %{} |\n",
            figure.name,
            figure.count,
            figure.of,
            figure.percent(),
            if figure.is_met() { "" } else { ": short" }
        );
    }
    text
}

/// Experiments without a change, of each noise.
const EXPERIMENTS: u32 = 200;
/// Experiments of a fixed length without a change, of each noise; three p values each.
const WITHOUT_TOLERANCE: u32 = 1_000;
/// Experiments with a change, and those of them that must find it.
const POWER: u32 = 1_000;
const FOUND_OF: u32 = 100;
/// Searches, each with seeds of its own.
const SEARCHES: u32 = 100;
/// Rate of the slower variant over that of the baseline.
const RATIO: f64 = 0.97;
/// Most seconds of the experiments without a change.
const SECONDS_GOAL: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_scale_the_experiments() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words)
        };
        assert_eq!(parse("").expect("no options").part(200), 200);
        let short = parse("--percent 20 --fathom f").expect("options");
        assert_eq!((short.part(200), short.part(20)), (40, 10));
        assert!(parse("--build").expect("options").build && !short.build);
        assert!(parse("--percent 0").is_err() && parse("--fast").is_err());
    }
}
