//! `fathom history trend` and `fathom history check`.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use fathom_lab::{
    History, NEWEST, NewestRuns, RECENT, RunSeries, SeriesKey, SeriesSelection, Trend, TrendChange,
    TrendCheck, TrendSeries, aligned, changed_facts, figure, printable, shortened, trend_page,
};
use fathom_record::MetricName;
use fathom_report::Page;
use serde_json::{Value, json};

use super::{CheckArguments, SeriesArguments, TrendArguments};
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
    Ok(texts.join("\n"))
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
        bail!(
            "history: no run that it selects has `{}`\nhint: measured: {}",
            metric.stored_name(),
            known.join(", ")
        );
    }
    Ok(series)
}

/// Returns the text of `fathom history check`, and whether something changed for the worse.
pub(super) fn check(arguments: &CheckArguments) -> Result<(String, bool)> {
    let history = reader()?;
    let mut check = TrendCheck::new(arguments.tolerance);
    let mut series = Vec::new();
    for metric in metrics(&history, &arguments.metrics)? {
        for one in series_of(&history, &metric, arguments.series.selection())? {
            let values = one.points.iter().map(|point| point.value).collect();
            check.add(metric.clone().in_usual_unit(), values);
            series.push(one);
        }
    }
    if series.is_empty() {
        bail!("history: no run that it selects has a metric to check");
    }
    let newest = check.newest_runs();
    let mut findings = Vec::new();
    let mut tested = 0;
    for ((one, trend), newest) in series.into_iter().zip(check.trends()).zip(newest) {
        tested += usize::from(newest.is_some());
        let change = check.recent_change(trend).cloned();
        let newest = newest.filter(|runs| runs.is_worse);
        if change.is_some() || newest.is_some() {
            let told = Told::of(&history, one, trend.clone())?;
            findings.push(Finding {
                told,
                change,
                newest,
            });
        }
    }
    let checked = Checked {
        series: check.trends().len(),
        tested,
        findings,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&checked.json())? + "\n",
        false => checked.text(),
    };
    Ok((text, !checked.findings.is_empty()))
}

impl SeriesArguments {
    const fn selection(self) -> SeriesSelection {
        SeriesSelection {
            plan: self.plan,
            machine: self.machine,
        }
    }
}

fn series_of(
    history: &History,
    metric: &MetricName,
    selection: SeriesSelection,
) -> Result<Vec<RunSeries>> {
    history.series(metric, selection).map_err(with_its_hint)
}

/// Returns the metrics to check: those that were named, or the bandwidth and the 99th percentile of
/// clat of each direction.
fn metrics(history: &History, named: &[MetricName]) -> Result<Vec<MetricName>> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let measured = history.measured_metrics().map_err(with_its_hint)?;
    let measured: BTreeSet<String> = measured.into_iter().collect();
    let directions = ["read", "write", "trim"].into_iter();
    let usual = directions.flat_map(|one| [format!("{one}.bw"), format!("{one}.clat_p99")]);
    let present = usual.filter(|name| measured.contains(name));
    present
        .map(|name| MetricName::parse(&name).map_err(|error| anyhow!(error.message)))
        .collect()
}

/// Trend of a series, with what is told of it.
struct Told {
    series: RunSeries,
    trend: Trend,
    /// Plan and machine, in a few words.
    head: String,
    /// Time when the first run of each level began.
    begun: Vec<String>,
    /// Facts that changed, by change.
    facts: Vec<Vec<String>>,
}

impl Told {
    fn of(history: &History, series: RunSeries, trend: Trend) -> Result<Self> {
        let mut facts = Vec::new();
        for change in &trend.changes {
            facts.push(facts_at(history, &series, change.at)?);
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
        })
    }

    fn change_json(&self, change: &TrendChange, facts: &[String]) -> Value {
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

/// Series that changed for the worse.
struct Finding {
    told: Told,
    change: Option<TrendChange>,
    newest: Option<NewestRuns>,
}

impl Finding {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.told.trend.metric, self.told.head);
        if let Some(change) = &self.change {
            let run = self.told.series.points[change.at].run.0;
            let last = self
                .told
                .facts
                .last()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let facts = match last.is_empty() {
                true => String::new(),
                false => format!("; changed there: {}", printable(&last.join(", "))),
            };
            text.push_str(&format!("  from run {run} on: {}{facts}\n", change.size()));
        }
        if let Some(newest) = &self.newest {
            let size = newest.size();
            let p = newest.p_holm;
            text.push_str(&format!(
                "  the newest {NEWEST} runs against those before: {size}, p = {p:.2e}\n"
            ));
        }
        text
    }
}

/// Result of a check.
struct Checked {
    series: usize,
    /// Series with enough runs for a test of the newest ones.
    tested: usize,
    findings: Vec<Finding>,
}

impl Checked {
    fn text(&self) -> String {
        let mut text: String = self.findings.iter().map(Finding::text).collect();
        let s = if self.series == 1 { "" } else { "s" };
        let worse = match self.findings.len() {
            0 => "none".to_owned(),
            worse => worse.to_string(),
        };
        text.push_str(&format!(
            "{} metric{s} of runs checked: {worse} changed for the worse among the newest \
             {RECENT} runs\n",
            self.series
        ));
        if self.tested < self.series {
            let few = self.series - self.tested;
            text.push_str(&format!(
                "not tested: {few}, with fewer than {LEAST} runs since the last change\n"
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            let change = finding.change.as_ref().map(|change| {
                let facts = finding.told.facts.last().map(Vec::as_slice);
                finding.told.change_json(change, facts.unwrap_or_default())
            });
            json!({
                "metric": finding.told.trend.metric.stored_name(),
                "series": key_json(&finding.told.series.of),
                "change": change,
                "newest": finding.newest.map(|newest| json!({
                    "runs": NEWEST,
                    "p": newest.p,
                    "p_holm": newest.p_holm,
                    "ratio": newest.ratio_json(),
                })),
            })
        });
        json!({
            "checked": self.series,
            "tested": self.tested,
            "worse": findings.collect::<Vec<_>>(),
        })
    }
}

/// Returns the facts that differ between the runs on both sides of a change.
fn facts_at(history: &History, series: &RunSeries, at: usize) -> Result<Vec<String>> {
    let row = |at: usize| history.show(series.points[at].run).map_err(with_its_hint);
    let (before, after) = (row(at - 1)?, row(at)?);
    let text = |json: Option<String>| json.unwrap_or_default();
    let mut facts = changed_facts(&text(before.subject), &text(after.subject));
    facts.extend(changed_facts(&before.tags, &after.tags));
    Ok(facts)
}

/// Returns the circumstances of a series in a few words.
fn head(history: &History, series: &RunSeries) -> Result<String> {
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
            format!("plan {} ({})", of.plan, jobs(&text))
        }
    };
    let what = shortened(&printable(&what), HEAD_WIDTH);
    Ok(format!("{what}, machine {}, {runs}", of.machine))
}

/// Returns the names of a plan's jobs.
fn jobs(plan: &str) -> String {
    let sections = plan.lines();
    let names = sections.filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let names: Vec<&str> = names.filter(|name| *name != "global").collect();
    names.join(", ")
}

fn key_json(key: &SeriesKey) -> Value {
    let lab = key.lab.as_ref().map(|(name, axes, variant)| {
        let axes = serde_json::from_str::<Value>(axes).unwrap_or(Value::Null);
        json!({ "name": name, "axes": axes, "variant": variant })
    });
    json!({ "plan": key.plan, "machine": key.machine, "lab": lab })
}

/// Change of the newest runs that is too small to count on a page.
const TOLERANCE: f64 = 0.02;

/// Fewest runs that can show a change: 5 before and 5 after it.
const LEAST: usize = 10;

/// Most characters of a series' name.
const HEAD_WIDTH: usize = 60;
