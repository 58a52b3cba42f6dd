//! Table of searches: a row per probe, and notes with the loads that were found.

use fathom_record::MetricName;

use super::{Report, label, notes, number_or_text};
use crate::figure::change;
use crate::lab::{LabResults, Probe, Searching};
use crate::lab_plan::{LabPlan, Limit, Search, SearchCondition};
use crate::table::{Cell, Column, Table, TableHead, with_distinct_keys};

/// Returns the table of a lab's searches; within a search, the probes stand by their load.
pub(super) fn table(report: &Report<'_>, search: &Search) -> Table {
    let searches = &report.outcome.searches;
    let mut probes: Vec<(&Searching, &Probe)> = Vec::new();
    for one in searches {
        let from = probes.len();
        probes.extend(one.probes.iter().map(|probe| (one, probe)));
        probes[from..].sort_by_key(|(_, probe)| probe.load);
    }
    let mut columns = Vec::new();
    let mut rows: Vec<Vec<Cell>> = vec![Vec::new(); probes.len()];
    for (column, of_probe) in all_columns(report.plan, search, &report.outcome.results) {
        columns.push(column);
        for (row, (one, probe)) in rows.iter_mut().zip(&probes) {
            row.push(of_probe(one, probe));
        }
    }
    Table {
        head: TableHead {
            name: report.plan.name.clone(),
            about: report.about(),
            origin: String::new(),
            has_plot: false,
        },
        columns: with_distinct_keys(columns),
        rows,
        notes: all_notes(report, search),
        panels: Vec::new(),
    }
}

/// Column, and its value by probe.
type OfProbe<'a> = (Column, Box<dyn Fn(&Searching, &Probe) -> Cell + 'a>);

fn all_columns<'a>(
    plan: &'a LabPlan,
    search: &'a Search,
    results: &'a LabResults,
) -> Vec<OfProbe<'a>> {
    let mut columns = keys(plan);
    columns.extend(outcome(plan));
    for (at, condition) in search.keep.iter().enumerate() {
        columns.extend(of_condition(at, condition));
    }
    for (at, observed) in results.metrics.iter().enumerate() {
        let key = super::key("", observed).trim_start_matches('_').to_owned();
        let column = Column::figure(key, "longest run").in_group(label(observed));
        let value = move |_: &Searching, probe: &Probe| {
            let value = probe.shown.get(at).copied().flatten();
            value.map_or(Cell::Missing, |value| {
                super::shown(observed, observed.name.in_unit(value))
            })
        };
        columns.push((column, Box::new(value)));
    }
    columns
}

/// Returns the columns that say which probe it is.
fn keys(plan: &LabPlan) -> Vec<OfProbe<'_>> {
    let axes = plan.axes.iter().enumerate().map(|(at, axis)| {
        let column = Column::key(axis.name.clone(), &axis.name);
        let value = move |one: &Searching, _: &Probe| {
            number_or_text(&axis.values[plan.cells[one.cell].values[at]])
        };
        (
            column,
            Box::new(value) as Box<dyn Fn(&Searching, &Probe) -> Cell>,
        )
    });
    let mut keys: Vec<OfProbe<'_>> = axes.collect();
    if plan.variants.len() > 1 {
        let variant =
            |one: &Searching, _: &Probe| Cell::Text(plan.variants[one.variant].name.clone());
        keys.push((Column::key("variant", "variant"), Box::new(variant)));
    }
    let (unit, suffix) = unit(plan);
    let load = |_: &Searching, probe: &Probe| Cell::Count(probe.load);
    let column = Column::key(format!("load_{suffix}"), &format!("load, {unit}"));
    keys.push((column, Box::new(load)));
    keys
}

/// Returns the columns of outcome and cost.
fn outcome(plan: &LabPlan) -> Vec<OfProbe<'_>> {
    let result = |_: &Searching, probe: &Probe| match probe.decision {
        None => Cell::Text("open".into()),
        Some(decision) => {
            let word = if decision.passed { "passed" } else { "failed" };
            let name = match decision.by_estimate {
                false => word.to_owned(),
                true => format!("{word}, by estimate"),
            };
            Cell::Named { word, name }
        }
    };
    let decided_by = |_: &Searching, probe: &Probe| match probe.decision {
        None => Cell::Missing,
        Some(decision) if decision.by_estimate => Cell::Text("estimate".into()),
        Some(_) => Cell::Text("interval".into()),
    };
    let bound = |one: &Searching, probe: &Probe| match Some(probe.load) {
        load if load == one.passed() => Cell::Text("highest passed".into()),
        load if load == one.failed() => Cell::Text("lowest failed".into()),
        _ => Cell::Missing,
    };
    let (_, suffix) = unit(plan);
    let of_search = |name: &str, of: fn(&Searching) -> Option<u64>| -> OfProbe<'_> {
        let value = move |one: &Searching, _: &Probe| of(one).map_or(Cell::Missing, Cell::Count);
        (Column::hidden(format!("{name}_{suffix}")), Box::new(value))
    };
    let maximum = |one: &Searching, _: &Probe| one.maximum.map_or(Cell::Missing, Cell::Rate);
    vec![
        (Column::figure("result", "result"), Box::new(result)),
        (Column::hidden("decided_by"), Box::new(decided_by)),
        (Column::figure("bound", "bound"), Box::new(bound)),
        (
            Column::figure("runs", "runs"),
            Box::new(|_, probe| Cell::Count(probe.runs.into())),
        ),
        (
            Column::figure("time_s", "time, s"),
            Box::new(|_, probe| Cell::Tenths(probe.time.as_millis() as f64 / 1e3)),
        ),
        of_search("highest_passed", Searching::passed),
        of_search("lowest_failed", Searching::failed),
        (
            Column::hidden(format!("maximum_{suffix}")),
            Box::new(maximum),
        ),
    ]
}

/// Returns the columns of a condition: for people the estimate and its interval, for programs a
/// number each.
fn of_condition(at: usize, condition: &SearchCondition) -> Vec<OfProbe<'_>> {
    let shown = Shown::of(condition);
    let key = shown.key.clone();
    let estimate = move |probe: &Probe| probe.estimates.get(at).copied().flatten();
    let (value, interval, low, high) = (shown.clone(), shown.clone(), shown.clone(), shown.clone());
    let ends = move |probe: &Probe| estimate(probe).and_then(|one| one.interval);
    let number = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Exact);
    vec![
        (
            Column::figure(key.clone(), "estimate").in_group(shown.heading.clone()),
            Box::new(move |_, probe| {
                let found = estimate(probe).map(|one| value.number(one.value));
                found.map_or(Cell::Missing, |found| value.cell(found))
            }),
        ),
        (
            Column::figure(format!("{key}_interval"), "95 %").in_group(shown.heading),
            Box::new(move |_, probe| match ends(probe) {
                None => Cell::Missing,
                Some(ends) => Cell::Text(interval.range(ends.low, ends.high)),
            }),
        ),
        (
            Column::hidden(format!("{key}_low")),
            Box::new(move |_, probe| number(ends(probe).map(|ends| low.number(ends.low)))),
        ),
        (
            Column::hidden(format!("{key}_high")),
            Box::new(move |_, probe| number(ends(probe).map(|ends| high.number(ends.high)))),
        ),
    ]
}

/// Unit and names of a condition's figures.
#[derive(Clone, Debug)]
struct Shown {
    heading: String,
    key: String,
    name: Option<MetricName>,
    /// Shares of the load, as percentages.
    of_asked: bool,
}

impl Shown {
    fn of(condition: &SearchCondition) -> Self {
        let name = MetricName::parse(&condition.metric).ok();
        let name = name.map(MetricName::in_usual_unit);
        let of_asked = matches!(condition.limit, Limit::OfAsked(_));
        let unit = match &name {
            _ if of_asked => "% of asked",
            Some(name) => name.unit(),
            None => "",
        };
        let text = name.as_ref().map_or(String::new(), ToString::to_string);
        let key = text.replace(['.', '/'], "_");
        Self {
            heading: match unit {
                "" => condition.text.clone(),
                unit => format!("{}, {unit}", condition.text),
            },
            key: match (of_asked, unit) {
                (true, _) => format!("{key}_percent_of_asked"),
                (false, "ns") => format!("{key}_ns"),
                (false, "B/s") => format!("{key}_bytes_s"),
                _ => key,
            },
            name,
            of_asked,
        }
    }

    fn number(&self, stored: f64) -> f64 {
        match &self.name {
            _ if self.of_asked => stored * 100.0,
            Some(name) => name.in_unit(stored),
            None => stored,
        }
    }

    fn cell(&self, number: f64) -> Cell {
        let unit = self.name.as_ref().map_or("", MetricName::unit);
        match unit {
            "IOPS" | "B/s" | "ns" if !self.of_asked => Cell::Rate(number),
            _ => Cell::Tenths(number),
        }
    }

    fn range(&self, low: f64, high: f64) -> String {
        let text = |stored: f64| self.cell(self.number(stored)).text();
        format!("[{}, {}]", text(low), text(high))
    }
}

fn all_notes(report: &Report<'_>, search: &Search) -> Vec<String> {
    let plan = report.plan;
    let mut all = vec![
        format!(
            "{}; loads are asked of all jobs together, in an open loop; seed {}",
            plan.place(),
            plan.seed
        ),
        format!(
            "a probe passes if the 95 % interval of each metric is within its limit, fails if one \
             is beyond, and otherwise runs on, up to {} s; then its estimate decides",
            search.probe_most.as_millis() as f64 / 1e3
        ),
    ];
    all.extend(report.outcome.searches.iter().map(|one| found(plan, one)));
    all.extend(side_by_side(report));
    all.extend(notes::failures(report));
    all.extend(notes::disturbances(report));
    if report.outcome.is_interrupted {
        all.push(notes::interrupted(report));
    }
    all
}

/// Returns the note on the loads that a search found.
fn found(plan: &LabPlan, one: &Searching) -> String {
    let (unit, _) = unit(plan);
    let load = |load: Option<u64>| load.map_or("none".into(), |load| format!("{load} {unit}"));
    let maximum = one
        .maximum
        .map_or("unknown".into(), |rate| format!("{rate:.0} {unit}"));
    let runs: u32 = one.probes.iter().map(|probe| probe.runs).sum();
    let times = one.probes.iter().map(|probe| probe.time.get());
    let time = times.fold(0, u64::saturating_add) as f64 / 1e9;
    let name = name(plan, one);
    format!(
        "{name}highest load that passed: {}; lowest that failed: {}; closed-loop maximum: \
         {maximum}; {} probes, {runs} runs of {time:.1} s",
        load(one.passed()),
        load(one.failed()),
        one.probes.len()
    )
}

/// Returns the cell and variant of a search, for the begin of a note.
fn name(plan: &LabPlan, one: &Searching) -> String {
    let mut name = plan.cells[one.cell].label.clone();
    if plan.variants.len() > 1 {
        if !name.is_empty() {
            name.push_str(", ");
        }
        name.push_str(&plan.variants[one.variant].name);
    }
    if !name.is_empty() {
        name.push_str(": ");
    }
    name
}

/// Returns the loads of the variants beside that of the baseline.
fn side_by_side(report: &Report<'_>) -> Vec<String> {
    let (plan, searches) = (report.plan, &report.outcome.searches);
    let baseline = plan.judge.baseline;
    let mut notes = Vec::new();
    for one in searches.iter().filter(|one| one.variant != baseline) {
        let mut all = searches.iter();
        let other = all.find(|other| other.cell == one.cell && other.variant == baseline);
        let loads = one.passed().zip(other.and_then(Searching::passed));
        if let Some((load, of_baseline)) = loads {
            notes.push(format!(
                "{}{} against {}",
                name(plan, one),
                change(load as f64 / of_baseline as f64),
                plan.variants[baseline].name
            ));
        }
    }
    if !notes.is_empty() {
        notes.push(
            "single searches: what differs from search to search is not known, so no verdict is \
             drawn; judge runs at one load, in a lab with repeats"
                .into(),
        );
    }
    notes
}

/// Returns the unit of loads, for people and in keys.
pub(super) fn unit(plan: &LabPlan) -> (&'static str, &'static str) {
    match plan.load_metric() {
        (_, "B/s") => ("B/s", "bytes_s"),
        (_, unit) => (unit, "iops"),
    }
}
