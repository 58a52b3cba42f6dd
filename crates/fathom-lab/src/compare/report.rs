//! A comparison as Markdown or JSON, and what is common to all formats.

use serde_json::{Value, json};

use super::{ComparedMetric, ComparedVerdict, Comparison, SideOrder, SideValues, middle};
use crate::figure::{change, figure, printable};

impl Comparison {
    /// Formats the comparison as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells = cells.iter().map(|cell| escaped(cell.trim()));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let rows = self.table();
        let mut text = format!("{}\n\n", escaped(&self.heading()));
        for (at, row) in rows.iter().enumerate() {
            text.push_str(&line(row));
            if at == 0 {
                let rule = row.iter().map(|cell| match cell.starts_with(' ') {
                    true => "---:",
                    false => "---",
                });
                text.push_str(&format!("|{}|\n", rule.collect::<Vec<_>>().join("|")));
            }
        }
        if let Some(line) = self.apart() {
            text.push_str(&format!("\n{line}\n"));
        }
        let notes = self
            .notes
            .iter()
            .map(|note| format!("\n{}\n", escaped(note)));
        text.extend(notes);
        text
    }

    /// Returns the comparison as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "version": JSON_VERSION,
            "before": {"name": self.before.name, "runs": self.before.runs.len()},
            "after": {"name": self.after.name, "runs": self.after.runs.len()},
            "apart_ms": self.apart_ms(),
            "metrics": self.rows.iter().map(row_json).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }

    /// Returns the names of the sides, and their numbers of runs.
    pub(crate) fn heading(&self) -> String {
        let side = |side: &super::CompareSide| {
            let runs = side.runs.len();
            let plural = if runs == 1 { "" } else { "s" };
            format!("{} ({runs} run{plural})", printable(&side.name))
        };
        format!("{} → {}", side(&self.before), side(&self.after))
    }

    /// Returns the verdicts as rows below their headings; those of numbers begin with a blank.
    pub(crate) fn table(&self) -> Vec<Vec<String>> {
        let has_groups = self.rows.iter().any(|row| !row.group.is_empty());
        let heading = [
            "metric", " before", " after", " change", "interval", " p", "verdict",
        ];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().map(cells));
        if has_groups {
            rows[0].insert(0, "jobs".into());
            for (row, of) in rows[1..].iter_mut().zip(&self.rows) {
                row.insert(0, of.group.clone());
            }
        }
        rows
    }

    /// Returns the time between the sides, ms, if one was measured after the other.
    const fn apart_ms(&self) -> Option<u64> {
        match self.order {
            SideOrder::Apart(ms) => Some(ms),
            SideOrder::InTurn | SideOrder::Overlapping | SideOrder::Unknown => None,
        }
    }

    /// States that one side was measured after the other, and how long after it.
    pub(crate) fn in_turn(&self) -> Option<String> {
        let apart = duration(self.apart_ms()?);
        Some(format!(
            "one side was measured after the other, {apart} apart: verdicts take for granted that \
             nothing drifted in between"
        ))
    }

    /// States in which order the sides were measured, if that is a reason for a verdict.
    pub(crate) fn apart(&self) -> Option<String> {
        let withheld = [ComparedVerdict::NotInterleaved, ComparedVerdict::NotDrawn];
        let mut verdicts = self.rows.iter().map(|row| row.verdict);
        let verdict = verdicts.find(|verdict| withheld.contains(verdict))?;
        let (order, effect) = match self.order {
            SideOrder::Apart(ms) => (
                format!("{} between the sides", duration(ms)),
                "drift in that time",
            ),
            SideOrder::InTurn => (
                "the runs were taken in turn".into(),
                "what follows the same rhythm",
            ),
            SideOrder::Overlapping => ("their runs overlap in time".into(), "drift"),
            SideOrder::Unknown => ("when the runs were taken is not known".into(), "drift"),
        };
        let hint = match self.order {
            SideOrder::InTurn => "let `fathom ab` draw the order",
            _ => "measure them in turn with `fathom ab`",
        };
        Some(format!(
            "{}: {order}\n\
             {effect} would look like a change\n\
             hint: {hint}, or accept it: --accept-drift",
            verdict.words()
        ))
    }
}

fn cells(row: &ComparedMetric) -> Vec<String> {
    let interval = row
        .ratio
        .map(|ratio| format!("{} to {}", change(ratio.low), change(ratio.high)));
    let ratio = row.ratio.map(|ratio| ratio.middle).or_else(|| {
        let (before, after) = (middle(&row.before)?, middle(&row.after)?);
        (before > 0.0).then_some(after / before)
    });
    vec![
        row.name.to_string(),
        side(&row.before, row),
        side(&row.after, row),
        ratio.map(change).unwrap_or_default(),
        interval.unwrap_or_default(),
        row.p_holm.map(probability).unwrap_or_default(),
        row.verdict.words().to_owned(),
    ]
}

/// Formats the median of a side, and of a single run the interval within it.
fn side(values: &SideValues, row: &ComparedMetric) -> String {
    let unit = row.name.row.unit;
    let Some(value) = middle(values) else {
        return "-".into();
    };
    match values.interval {
        Some((low, high)) => format!(
            "{} ({} to {})",
            figure(value, unit),
            figure(low, unit),
            figure(high, unit)
        ),
        None => figure(value, unit),
    }
}

fn row_json(row: &ComparedMetric) -> Value {
    let side = |values: &SideValues| {
        json!({
            "median": middle(values),
            "values": values.values,
            "low": values.interval.map(|(low, _)| low),
            "high": values.interval.map(|(_, high)| high),
            "left_out": values.left_out,
        })
    };
    let (verdict, is_interleaved) = match row.verdict {
        ComparedVerdict::Judged(verdict) => (Some(verdict.word()), None),
        ComparedVerdict::NotInterleaved => (Some("unclear"), Some(false)),
        ComparedVerdict::NotDrawn => (Some("unclear"), Some(true)),
        ComparedVerdict::LeftOut => (Some("unclear"), None),
        ComparedVerdict::OneRun => (None, None),
    };
    json!({
        "group": row.group,
        "metric": row.name.to_string(),
        "unit": row.name.row.unit,
        "tolerance": row.tolerance,
        "before": side(&row.before),
        "after": side(&row.after),
        "ratio": row.ratio.map(|ratio| ratio.middle),
        "low": row.ratio.map(|ratio| ratio.low),
        "high": row.ratio.map(|ratio| ratio.high),
        "coverage": row.ratio.map(|ratio| ratio.coverage),
        "p": row.p,
        "p_holm": row.p_holm,
        "verdict": verdict,
        "settled_by": row.settled_by.filter(|&runs| runs as usize <= row.counted_max),
        "interleaved": is_interleaved,
        "words": row.verdict.words(),
    })
}

fn probability(p: f64) -> String {
    match p < 0.001 {
        true => "<0.001".into(),
        false => format!("{p:.3}"),
    }
}

/// Formats a time in its two largest units.
fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut parts = Vec::new();
    let mut rest = seconds;
    for (size, symbol) in units {
        if rest >= size {
            parts.push(format!("{} {symbol}", rest / size));
            rest %= size;
        }
    }
    parts.truncate(2);
    match parts.is_empty() {
        true => "less than 1 s".into(),
        false => parts.join(" "),
    }
}

/// Makes a text harmless within a table of Markdown, also one that is shown as HTML.
fn escaped(text: &str) -> String {
    let text = printable(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('|', "\\|")
}

/// Version of the JSON document.
const JSON_VERSION: u64 = 1;
