//! `fathom history trend`, and the description of a series.

use std::ops::Range;

use anyhow::{Result, bail};
use fathom_lab::{
    FACT_RUNS_MAX, History, RunRow, RunSelection, RunSeries, SeriesKey, SeriesSelection, Trend,
    TrendChange, TrendCheck, TrendSeries, aligned, changed_facts, figure, interval_level,
    job_names, printable, shortened, trend_page,
};
use fathom_record::MetricName;
use fathom_report::Page;
use serde_json::{Value, json};

use super::{SeriesArguments, TrendArguments};
use crate::history_keep::{reader, with_its_hint};

/// Returns the text of `fathom history trend`.
pub(super) fn trend(arguments: &TrendArguments) -> Result<String> {
    let history = reader()?;
    let series = selected(&history, &arguments.metric, arguments.series)?;
    let mut trends = Vec::new();
    for one in series {
        let values = one.points.iter().map(|point| point.value).collect();
        let trend = Trend::of(arguments.metric.clone().in_usual_unit(), values);
        trends.push(Told::of(&history, one, trend)?);
    }
    if arguments.json {
        let all: Vec<Value> = trends.iter().map(Told::json).collect();
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    let texts: Vec<String> = trends.iter().map(Told::text).collect();
    let level = interval_level(trends.iter().flat_map(|told| told.trend.ratios()));
    Ok(texts.join("\n") + &level.map_or(String::new(), |level| level + "\n"))
}

/// Returns the page of a metric's trends, with the check of the newest runs of each.
pub(crate) fn trend_page_of(metric: &MetricName, series: SeriesArguments) -> Result<Page> {
    let history = reader()?;
    let series = selected(&history, metric, series)?;
    let mut check = TrendCheck::new(TOLERANCE);
    for one in &series {
        let values = one.points.iter().map(|point| point.value).collect();
        check.add(metric.clone().in_usual_unit(), values);
    }
    let mut all = Vec::new();
    let newest = check.newest_runs().into_iter();
    for ((one, trend), newest) in series.into_iter().zip(check.trends()).zip(newest) {
        let recent = check.recent_change(trend).cloned();
        let told = Told::of(&history, one, trend.clone())?;
        all.push(TrendSeries {
            left_out: left_out(&told.series),
            json: told.json(),
            head: told.head,
            trend: told.trend,
            runs: told.series.points.iter().map(|point| point.run.0).collect(),
            begun: told.begun,
            facts: told.facts,
            newest,
            recent,
        });
    }
    // Those that can show something come first.
    all.sort_by_key(|one| std::cmp::Reverse(one.runs.len()));
    Ok(trend_page(&metric.stored_name(), &all))
}

/// Returns the series of a metric that have values.
fn selected(
    history: &History,
    metric: &MetricName,
    arguments: SeriesArguments,
) -> Result<Vec<RunSeries>> {
    let series = series_of(history, metric, arguments.selection())?;
    if series.is_empty() {
        let known = history.measured_metrics().map_err(with_its_hint)?;
        let why = format!(
            "history: no run that it selects has `{}`",
            metric.stored_name()
        );
        if known.is_empty() {
            bail!("{why}");
        }
        bail!("{why}\nhint: measured: {}", printable(&known.join(", ")));
    }
    Ok(series)
}

impl SeriesArguments {
    pub(super) const fn selection(self) -> SeriesSelection {
        SeriesSelection {
            plan: self.plan,
            machine: self.machine,
        }
    }
}

pub(super) fn series_of(
    history: &History,
    metric: &MetricName,
    selection: SeriesSelection,
) -> Result<Vec<RunSeries>> {
    history.series(metric, selection).map_err(with_its_hint)
}

/// Trend of a series, with its description.
pub(super) struct Told {
    pub(super) series: RunSeries,
    pub(super) trend: Trend,
    /// Plan and machine, in a few words.
    pub(super) head: String,
    /// Time when the first run of each level began.
    begun: Vec<String>,
    /// Facts that changed, by change.
    pub(super) facts: Vec<Vec<String>>,
}

impl Told {
    pub(super) fn of(history: &History, series: RunSeries, trend: Trend) -> Result<Self> {
        let mut facts = Vec::new();
        let levels = trend.levels();
        let starts = levels.iter().map(|(at, _)| *at);
        let starts: Vec<usize> = starts.chain([trend.values.len()]).collect();
        for level in starts.windows(3) {
            facts.push(facts_at(history, &series, (level[0], level[1], level[2]))?);
        }
        let mut begun = Vec::new();
        for (at, _) in trend.levels() {
            let run = history.show(series.points[at].run).map_err(with_its_hint)?;
            begun.push(run.begun.unwrap_or_default());
        }
        Ok(Self {
            head: head(history, &series)?,
            series,
            trend,
            begun,
            facts,
        })
    }

    fn text(&self) -> String {
        let unit = self.trend.metric.unit();
        let mut text = format!("{}, {unit}: {}\n", self.trend.metric, self.head);
        let mut rows = vec![vec![
            " from run".into(),
            "begun (UTC)".into(),
            " runs".into(),
            " level".into(),
            "change".into(),
        ]];
        let levels = self.trend.levels();
        let ends = levels.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([self.trend.values.len()]);
        for ((index, &(at, level)), end) in levels.iter().enumerate().zip(ends) {
            let change = index.checked_sub(1).map(|index| &self.trend.changes[index]);
            rows.push(vec![
                self.series.points[at].run.0.to_string(),
                self.begun[index].clone(),
                (end - at).to_string(),
                self.shown(level),
                change.map(TrendChange::size).unwrap_or_default(),
            ]);
        }
        text.push_str(&aligned(&rows));
        for (change, facts) in self.trend.changes.iter().zip(&self.facts) {
            let run = self.series.points[change.at].run.0;
            let facts = match facts.is_empty() {
                true => "no recorded fact".to_owned(),
                false => printable(&facts.join(", ")),
            };
            text.push_str(&format!("changed before run {run}: {facts}\n"));
        }
        if let Some(left_out) = left_out(&self.series) {
            text.push_str(&format!("note: {left_out}\n"));
        }
        if self.trend.values.len() < LEAST {
            text.push_str(&format!("fewer than {LEAST} runs cannot show a change\n"));
        }
        text
    }

    fn shown(&self, value: f64) -> String {
        figure(value, self.trend.metric.row.unit)
    }

    fn json(&self) -> Value {
        let changes = self.trend.changes.iter().zip(&self.facts);
        let changes = changes.map(|(change, facts)| self.change_json(change, facts));
        json!({
            "metric": self.trend.metric.stored_name(),
            "unit": self.trend.metric.row.unit,
            "series": key_json(&self.series.of),
            "runs": self.series.points.iter().map(|point| json!({
                "run": point.run.0,
                "begun_ms": point.begun_ms,
                "value": point.value,
            })).collect::<Vec<_>>(),
            "changes": changes.collect::<Vec<_>>(),
            "left_out": self.series.left_out,
            "left_out_last": self.series.left_out_last,
        })
    }

    pub(super) fn change_json(&self, change: &TrendChange, facts: &[String]) -> Value {
        json!({
            "run": self.series.points[change.at].run.0,
            "p": change.p,
            "before": change.before,
            "after": change.after,
            "ratio": change.ratio_json(),
            "worse": change.is_worse,
            "changed": facts,
        })
    }
}

/// Returns the facts that changed between the level before a change and the one after it; the
/// levels begin at `from` and `at`, and the last ends at `to`.
fn facts_at(
    history: &History,
    series: &RunSeries,
    (from, at, to): (usize, usize, usize),
) -> Result<Vec<String>> {
    let from = from.max(at.saturating_sub(FACT_RUNS_MAX));
    let to = to.min(at + FACT_RUNS_MAX);
    let (before, after) = (
        circumstances(history, series, from..at)?,
        circumstances(history, series, at..to)?,
    );
    let subjects = |side: &[RunRow]| -> Vec<String> {
        let subject = |run: &RunRow| run.subject.clone().unwrap_or_default();
        side.iter().map(subject).collect()
    };
    let mut facts = changed_facts(&subjects(&before), &subjects(&after));
    let tags =
        |side: &[RunRow]| -> Vec<String> { side.iter().map(|run| run.tags.clone()).collect() };
    facts.extend(changed_facts(&tags(&before), &tags(&after)));
    Ok(facts)
}

/// Returns some of the runs of a series, in its order.
fn circumstances(
    history: &History,
    series: &RunSeries,
    range: Range<usize>,
) -> Result<Vec<RunRow>> {
    let points = &series.points[range];
    let place = |run: &RunRow| points.iter().position(|point| point.run == run.id);
    let selection = RunSelection {
        runs: points.iter().map(|point| point.run).collect(),
        ..RunSelection::default()
    };
    let mut runs = history.list(&selection).map_err(with_its_hint)?;
    runs.sort_by_key(place);
    Ok(runs)
}

/// States how many runs of a series have no value of its metric, and why.
pub(super) fn left_out(series: &RunSeries) -> Option<String> {
    let all = series.left_out + series.points.len();
    let last = match series.left_out_last {
        0 => String::new(),
        1 => ", the newest among them".to_owned(),
        last => format!(", the newest {last} among them"),
    };
    let left_out = series.left_out;
    let what = match series.not_done {
        0 => "do not have this metric",
        not_done if not_done == left_out => "failed or were cut",
        _ => "failed, were cut or do not have this metric",
    };
    (left_out > 0).then(|| format!("{left_out} of {all} runs {what}{last}"))
}

/// Returns the circumstances of a series in a few words.
pub(super) fn head(history: &History, series: &RunSeries) -> Result<String> {
    let of = &series.of;
    let runs = match series.points.len() {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let what = match &of.lab {
        Some((name, axes, variant)) => {
            let parts = [name.as_str(), axes, variant];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("lab {}", parts.join(" "))
        }
        None => {
            let text = history.plan_text(of.plan).map_err(with_its_hint)?;
            format!("plan {} ({})", of.plan, job_names(&text).join(", "))
        }
    };
    let what = shortened(&printable(&what), HEAD_WIDTH);
    Ok(format!("{what}, machine {}, {runs}", of.machine))
}

pub(super) fn key_json(key: &SeriesKey) -> Value {
    let lab = key.lab.as_ref().map(|(name, axes, variant)| {
        let axes = serde_json::from_str::<Value>(axes).unwrap_or(Value::Null);
        json!({ "name": name, "axes": axes, "variant": variant })
    });
    json!({ "plan": key.plan, "machine": key.machine, "lab": lab })
}

/// Change of the newest runs that is too small to count on a page.
const TOLERANCE: f64 = 0.02;

/// Fewest runs that can show a change: 5 before and 5 after it.
pub(super) const LEAST: usize = 10;

/// Most characters of a series' name.
const HEAD_WIDTH: usize = 60;
