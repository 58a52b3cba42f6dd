//! Overview of an experiment before it runs: cells, order, time, what is written, what it can find.

mod beforehand;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_core::Nanos;
use fathom_job::Environment;
use fathom_stats::{repeats_to_prove, smallest_effect};

use super::cost::{RunCost, Written};
use super::{LabPlan, Stop, Subject, job_plan};
use crate::counted::counted;
use crate::lab::{EarlierRun, observed};
use crate::order::Part;

impl LabPlan {
    /// Returns the text of `--plan`. Nothing is opened but the files that jobs name. `earlier` are
    /// runs of this lab that there are already.
    #[must_use]
    pub fn overview(&self, environment: &dyn Environment, earlier: &[EarlierRun]) -> String {
        let mut text = String::new();
        self.write_size(&mut text);
        self.write_cells(&mut text);
        self.write_order(&mut text);
        self.write_cost(&mut text, environment);
        self.write_commands(&mut text);
        self.write_power(&mut text);
        self.write_levels(&mut text, earlier);
        text
    }

    fn write_size(&self, text: &mut String) {
        let counts = self.counts();
        let cells = counted(self.cells.len() as u64, "cell");
        let variants = counted(self.variants.len() as u64, "variant");
        line(text, "lab", &self.name);
        line(text, "runs", &format!("{cells} × {variants}, {counts}"));
        let machine = self
            .machine
            .as_ref()
            .map(|machine| format!("{}, in virtual time", machine.path));
        line(text, "machine", machine.as_deref().unwrap_or("this one"));
        for metric in &self.judge.metrics {
            let baseline = &self.variants[self.judge.baseline].name;
            let tolerance = metric.tolerance * 100.0;
            let what = format!(
                "{} against baseline `{baseline}`; changes within ±{tolerance} % are ignored",
                metric.metric
            );
            line(text, "judged", &what);
        }
        self.write_shown(text);
        if let Some(rounds) = &self.rounds {
            let label = match self.cells[rounds.cell].label.as_str() {
                "" => String::new(),
                label => format!(" in {label}"),
            };
            let what = format!(
                "at most {}, until {}{label} is steady in the last {}: range {} %, slope {} % of \
                 the mean",
                rounds.most,
                rounds.metric,
                rounds.window,
                rounds.range_percent(),
                rounds.slope_percent()
            );
            line(text, "rounds", &what);
        }
        if let Some(search) = &self.search {
            self.write_searches(text, search);
        }
        for variant in &self.variants {
            for requirement in &variant.requires {
                let what = format!(
                    "{}: {} {}",
                    variant.name, requirement.fact, requirement.pattern
                );
                line(text, "requires", &what);
            }
        }
    }

    /// Writes the metrics that the table shows without a verdict, also those of a file without any.
    fn write_shown(&self, text: &mut String) {
        // Names that no run has were refused when the file was read.
        let observed = observed(self).unwrap_or_default();
        let shown = observed.iter().filter(|one| one.rule.is_none());
        let names: Vec<_> = shown.map(|one| one.name.stored_name()).collect();
        if names.is_empty() {
            return;
        }
        let why = match self.judge.metrics.is_empty() && self.judge.show.is_empty() {
            true => "; the file names no metric",
            false => "",
        };
        line(text, "shown", &format!("{}{why}", names.join(", ")));
    }

    /// Returns the numbers of repeats and runs, for people.
    fn counts(&self) -> String {
        let range = |[least, most]: [u64; 2]| match least == most {
            true => counted(most, "run"),
            false => format!("{least} to {most} runs"),
        };
        if let Some(cost) = self.search_cost() {
            let searches = self.cells.len() * self.variants.len();
            let es = if searches == 1 { "" } else { "es" };
            return format!("{searches} search{es}: {}", range(cost.runs));
        }
        let repeats = self.judge.repeats;
        let runs = range([repeats.min, repeats.max].map(|repeats| self.runs(repeats)));
        match repeats.min == repeats.max {
            true => format!("{}: {runs}", counted(repeats.min, "repeat")),
            false => format!("{} to {} repeats: {runs}", repeats.min, repeats.max),
        }
    }

    /// Returns the number of runs with `repeats` repeats.
    pub(crate) fn runs(&self, repeats: u32) -> u64 {
        (self.cells.len() * self.variants.len()) as u64 * u64::from(repeats)
    }

    fn write_cells(&self, text: &mut String) {
        let shown = self.cells.iter().take(SHOWN);
        for cell in shown.filter(|cell| !cell.label.is_empty()) {
            line(text, "cell", &format!("{}: {}", cell.number, cell.label));
        }
        more(text, "cell", self.cells.len());
    }

    fn write_order(&self, text: &mut String) {
        let parts = Part::of(self).iter();
        let slots: Vec<_> = parts.flat_map(|part| part.order(self, 0)).collect();
        let repeats: Vec<_> = slots.chunks(self.variants.len()).collect();
        for slots in repeats.iter().take(SHOWN) {
            let names: Vec<&str> = slots
                .iter()
                .map(|slot| self.variants[slot.variant].name.as_str())
                .collect();
            line(
                text,
                "order",
                format!("cell {}: {}", slots[0].cell, names.join(", "))
                    .trim_end_matches([':', ' ']),
            );
        }
        more(text, "order", repeats.len());
        let seed = self.seed;
        line(
            text,
            "",
            &format!("the first round; each draws a new one, from seed {seed}"),
        );
    }

    /// Writes time and bytes, of all runs or, where there are many, as of the first ones.
    fn write_cost(&self, text: &mut String, environment: &dyn Environment) {
        let Subject::Job(job) = &self.subject else {
            return self.write_peak_cost(text);
        };
        let (mut time, mut open_end, mut counted_runs) = (0_u128, false, 0_u128);
        let mut writes: BTreeMap<String, Written> = BTreeMap::new();
        for (cell, variant) in self.first_runs() {
            let file = self.run_of(cell, variant, 0).job.unwrap_or_default();
            let Ok(plan) = job_plan(environment, &job.file, &file) else {
                continue;
            };
            let cost = RunCost::of(&plan);
            time += u128::from(cost.time.get()) + u128::from(self.run.pause.get());
            open_end |= cost.open_end;
            counted_runs += 1;
            for (name, written) in cost.writes {
                let known = writes.entry(name).or_insert(Written::AtMost(0));
                *known = known.plus(written);
            }
        }
        let of_round =
            time * (self.cells.len() * self.variants.len()) as u128 / counted_runs.max(1);
        self.write_time(text, u64::try_from(of_round).unwrap_or(u64::MAX), open_end);
        self.write_writes(text, &writes);
    }

    /// Returns cell and variant of the runs whose jobs are read.
    fn first_runs(&self) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let variants = 0..self.variants.len();
        let runs = self.cells.iter().flat_map(move |cell| {
            let number = cell.number;
            variants.clone().map(move |variant| (number, variant))
        });
        runs.take(COUNTED)
    }

    fn write_peak_cost(&self, text: &mut String) {
        let mut writes = BTreeMap::new();
        let mut of_run = |cell: usize, variant: usize| {
            let arguments = self.run_of(cell, variant, 0).peak.unwrap_or_default();
            let seconds = arguments.value("seconds").and_then(super::duration_of);
            if arguments.writes() {
                let target = arguments.value("target").unwrap_or_default();
                writes.insert(target.to_owned(), Written::AnyAmount);
            }
            seconds.map_or(1_000_000_000, Nanos::get)
        };
        let runs = self.first_runs();
        let time = runs.map(|(cell, variant)| of_run(cell, variant) + self.run.pause.get());
        self.write_time(text, time.sum(), false);
        self.write_writes(text, &writes);
    }

    fn write_time(&self, text: &mut String, of_round_ns: u64, open_end: bool) {
        let repeats = [self.judge.repeats.min, self.judge.repeats.max];
        let times = repeats.map(|repeats| of_round_ns.saturating_mul(repeats.into()));
        let times = self.search_cost().map_or(times, |cost| cost.time_ns);
        let [least, most] = times.map(duration);
        let mut what = match least == most {
            true => most,
            false if open_end => least,
            false => format!("{least} to {most}"),
        };
        if open_end {
            what =
                format!("at least {what}: jobs without a runtime take as long as their size needs");
        }
        if self.machine.is_some() {
            what.push_str(", in virtual time, which takes far less real time");
        }
        line(text, "time", &what);
    }

    fn write_writes(&self, text: &mut String, writes: &BTreeMap<String, Written>) {
        if self.machine.is_some() {
            return line(text, "written", "nothing: the machine is modelled");
        }
        let repeats = match self.search_cost() {
            Some(cost) => cost.runs_of_one,
            None => self.judge.repeats.max.into(),
        };
        for (name, written) in writes {
            let bound = match written.times(repeats) {
                Written::AtMost(bytes) => format!("at most {} in all", size(bytes)),
                Written::AnyAmount => "as much as it takes in the time of its runs".to_owned(),
            };
            line(text, "written", &format!("{name}: {bound}"));
        }
        if writes.is_empty() {
            line(
                text,
                "written",
                "only files that do not exist yet, laid out once before they are read",
            );
        }
        if let Some(precondition) = &self.precondition {
            let times = counted(precondition.times_capacity, "time");
            for file in &precondition.files {
                let whole = file.bytes.map_or_else(|| "whole".into(), size);
                let what = format!("{}: {whole}, {times}, before the first run", file.name);
                line(text, "written", &what);
            }
        }
    }

    fn write_commands(&self, text: &mut String) {
        if let Some(program) = &self.run.program {
            line(text, "program", program);
        }
        for command in &self.run.before {
            line(text, "before", command);
        }
        for command in &self.run.after {
            line(text, "after", command);
        }
        for service in self.services.iter().map(super::Service::with_arguments) {
            line(
                text,
                "service",
                &format!("{}: {}", service.name, service.command),
            );
            if let Some(stats) = &service.stats {
                line(text, "stats", &format!("{}: {stats}", service.name));
            }
        }
    }

    /// Writes the comparisons, and the changes that would be found.
    fn write_power(&self, text: &mut String) {
        let comparisons = self.comparisons();
        if comparisons == 0 {
            return line(text, "judged", "nothing: there is nothing to compare");
        }
        let needed = repeats_to_prove(comparisons);
        let what = format!("{comparisons}; fewer than {needed} repeats could prove nothing");
        line(text, "compared", &what);
        let repeats = self.judge.repeats;
        let mut shown = vec![repeats.min, repeats.max];
        if self.rounds.is_some() {
            // The rounds before the window do not count.
            shown.truncate(1);
        }
        shown.dedup();
        for repeats in shown {
            if let Some(effect) = smallest_effect(repeats, comparisons) {
                let what = format!(
                    "9 times out of 10 with {repeats} repeats: a change of {effect:.1} × the \
                     deviation from run to run"
                );
                line(text, "found", &what);
            }
        }
        if repeats.stop == Stop::Narrow && repeats.min < repeats.max {
            line(
                text,
                "stop",
                "a cell stops once each interval is at most half its tolerance wide to each side",
            );
        }
    }
}

fn line(text: &mut String, title: &str, what: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{title:<9} {}", printable(what));
}

fn more(text: &mut String, title: &str, count: usize) {
    if count > SHOWN {
        line(text, title, &format!("and {} more", count - SHOWN));
    }
}

/// Replaces control characters, which a command may have.
fn printable(text: &str) -> String {
    let plain = |letter: char| {
        if letter.is_control() {
            '\u{fffd}'
        } else {
            letter
        }
    };
    text.chars().map(plain).collect()
}

/// Returns a duration in the two largest units that fit.
pub(crate) fn duration(ns: u64) -> String {
    let seconds = ns.div_ceil(1_000_000_000);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Returns a size in the largest unit that leaves a number above 1, rounded up.
fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let found = units.into_iter().find(|(shift, _)| bytes >> shift > 0);
    found.map_or_else(
        || format!("{bytes} B"),
        |(shift, unit)| format!("{} {unit}", bytes.div_ceil(1 << shift)),
    )
}

/// Cells and repeats that are listed one by one.
const SHOWN: usize = 20;
/// Runs whose jobs are read for time and bytes.
const COUNTED: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!(duration(90_000_000_000), "1 min 30 s");
        assert_eq!(duration(86_400_000_000_000), "1 d 0 h");
        assert_eq!(duration(1), "1 s");
        assert_eq!(size(1), "1 B");
        assert_eq!(size((1 << 30) + 1), "2 GiB");
    }
}
