//! `fathom history check`.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use fathom_lab::{
    History, NEWEST, NewestRuns, PROVED, RECENT, RunSeries, TrendChange, TrendCheck,
    interval_level, printable,
};
use fathom_record::MetricName;
use fathom_stats::RatioInterval;
use serde_json::{Value, json};

use super::CheckArguments;
use super::trends::{LEAST, Told, head, key_json, left_out, series_of};
use crate::history_keep::{reader, with_its_hint};
use crate::metric_name;

/// Returns the text of `fathom history check`, and whether it fails: something changed for the
/// worse, or the newest runs lack a metric.
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
        bail!("history: no matching run has any of the metrics to check");
    }
    let newest = check.newest_runs();
    let (mut findings, mut lacking) = (Vec::new(), Vec::new());
    let mut tested = 0;
    for ((one, trend), newest) in series.into_iter().zip(check.trends()).zip(newest) {
        tested += usize::from(newest.is_some());
        lacking.extend(Lacking::of(&history, &one, &trend.metric)?);
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
        lacking,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&checked.json())? + "\n",
        false => checked.text(),
    };
    Ok((text, checked.fails()))
}

/// Returns the metrics to check: those that were named, or the bandwidth and the 99th percentile of
/// clat of each direction.
fn metrics(history: &History, named: &[MetricName]) -> Result<Vec<MetricName>> {
    metric_name::refuse_repeated(named.iter())?;
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

/// Series that changed for the worse.
struct Finding {
    told: Told,
    change: Option<TrendChange>,
    newest: Option<NewestRuns>,
}

impl Finding {
    /// Returns the ratios that [`text`](Self::text) tells.
    fn ratios(&self) -> impl Iterator<Item = &RatioInterval> {
        let change = self.change.iter().filter_map(|one| one.ratio.as_ref());
        change.chain(self.newest.iter().filter_map(|one| one.ratio.as_ref()))
    }

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
            let p = newest.p;
            text.push_str(&format!(
                "  the newest {NEWEST} runs against those before: {size}, p = {p:.2e}\n"
            ));
        }
        text
    }
}

/// Series of which some runs lack the metric.
struct Lacking {
    metric: String,
    head: String,
    runs: String,
    series: RunSeries,
}

impl Lacking {
    /// Describes a series; `None` if all of its runs have the metric.
    fn of(history: &History, series: &RunSeries, metric: &MetricName) -> Result<Option<Self>> {
        let Some(runs) = left_out(series) else {
            return Ok(None);
        };
        Ok(Some(Self {
            metric: metric.stored_name(),
            head: head(history, series)?,
            runs,
            series: series.clone(),
        }))
    }

    /// Returns whether all newest runs lack the metric: nothing was checked that tells of them.
    const fn fails(&self) -> bool {
        self.series.left_out_last >= NEWEST
    }

    fn text(&self) -> String {
        let unknown = match self.fails() {
            true => ": nothing is known of them",
            false => "",
        };
        format!("{}: {}: {}{unknown}\n", self.metric, self.head, self.runs)
    }

    fn json(&self) -> Value {
        json!({
            "metric": self.metric,
            "series": key_json(&self.series.of),
            "runs": self.series.left_out,
            "newest": self.series.left_out_last,
        })
    }
}

/// Result of a check.
struct Checked {
    series: usize,
    /// Series with enough runs for a test of the newest ones.
    tested: usize,
    findings: Vec<Finding>,
    lacking: Vec<Lacking>,
}

impl Checked {
    fn fails(&self) -> bool {
        !self.findings.is_empty() || self.lacking.iter().any(Lacking::fails)
    }

    fn text(&self) -> String {
        let mut text: String = self.findings.iter().map(Finding::text).collect();
        text.extend(self.lacking.iter().map(Lacking::text));
        if let Some(level) = interval_level(self.findings.iter().flat_map(Finding::ratios)) {
            text.push_str(&format!("{level}\n"));
        }
        let s = if self.series == 1 { "" } else { "s" };
        let worse = match self.findings.len() {
            0 => "none".to_owned(),
            worse => worse.to_string(),
        };
        if self.tested == 0 && self.findings.is_empty() {
            // "None changed" would say more than is known.
            text.push_str(&format!(
                "{} metric{s} of runs, none with {LEAST} runs since its last change: too few to \
                 find a change\n",
                self.series
            ));
            return text;
        }
        text.push_str(&format!(
            "{} metric{s} of runs checked: {worse} changed for the worse among the newest \
             {RECENT} runs\n",
            self.series
        ));
        if self.tested > 0 {
            text.push_str(&format!(
                "expected by chance alone: at most {} of {} (p ≤ {PROVED} each)\n",
                self.by_chance(),
                self.tested
            ));
        }
        if self.tested < self.series {
            let few = self.series - self.tested;
            text.push_str(&format!(
                "not tested: {few}, with fewer than {LEAST} runs since the last change\n"
            ));
        }
        text
    }

    /// Returns the expected number of false alarms, in hundredths.
    fn by_chance(&self) -> f64 {
        (TrendCheck::by_chance(self.tested) * 100.0).round() / 100.0
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
            "by_chance_max": self.by_chance(),
            "worse": findings.collect::<Vec<_>>(),
            "left_out": self.lacking.iter().map(Lacking::json).collect::<Vec<_>>(),
        })
    }
}
