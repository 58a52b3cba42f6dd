//! `[[published]]`: figures of others, from CSV files.

use std::collections::HashMap;
use std::ops::Range;

use fathom_job::closest;
use fathom_toml::Fields;

use super::judge::index_of;
use super::metrics;
use super::reader::Reader;
use crate::lab_plan::{LabCell, LabPlan, Published, PublishedColumn, PublishedFigure};

/// Reads all tables of published figures.
pub(super) fn read(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) -> Vec<Published> {
    if !top.has("published") {
        return Vec::new();
    }
    let tables = top.tables("published").into_iter();
    tables
        .filter_map(|table| one(reader, &table, plan))
        .collect()
}

fn one(reader: &Reader<'_>, fields: &Fields<'_>, plan: &LabPlan) -> Option<Published> {
    let file = fields.text("file", false);
    let origin = fields
        .text("origin", true)
        .map(|(origin, _)| origin.to_owned());
    let keys = keys(reader, fields, plan);
    let fixed = pairs(reader, fields, "where");
    let columns = columns(reader, fields, plan);
    fields.finish();
    let (path, span) = file?;
    let path = reader.path(path);
    let text = reader.read(&path, &span)?;
    let csv = Csv::parse(&text);
    let mut published = Published {
        origin: origin.unwrap_or_else(|| csv.origin.clone()),
        file: path,
        keys: keys
            .iter()
            .map(|(key, column, _)| (key.clone(), column.clone()))
            .collect(),
        columns: columns.iter().map(|(column, _)| column.clone()).collect(),
        figures: Vec::new(),
        rows_without_cell: 0,
    };
    let named = keys
        .iter()
        .chain(&fixed)
        .map(|(_, column, span)| (column, span));
    let figures = columns.iter().map(|(column, span)| (&column.column, span));
    let mut complete = true;
    for (column, span) in named.chain(figures) {
        complete &= csv.has(reader, column, span, &published.file);
    }
    if complete {
        fill(&mut published, &csv, &fixed, plan);
    }
    Some(published)
}

/// A name, the column that it goes with, and the place of the latter.
type Pair = (String, String, Range<usize>);

/// Reads `keys = { numjobs = "numjobs" }`: axes or options, each with its column.
fn keys(reader: &Reader<'_>, fields: &Fields<'_>, plan: &LabPlan) -> Vec<Pair> {
    let keys = pairs(reader, fields, "keys");
    for (key, _, span) in &keys {
        let mut known: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        known.extend(
            plan.cells
                .iter()
                .take(1)
                .flat_map(|cell| &cell.settings)
                .map(|one| one.key.as_str()),
        );
        if !known.contains(&key.as_str()) {
            let hint = match closest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("axes here: {}", known.join(", ")),
            };
            reader.refuse(span, format!("there is no axis `{key}`"), hint);
        }
    }
    keys
}

/// Reads a table of texts; for `where` columns and their values, with the name of the column twice.
fn pairs(reader: &Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Vec<Pair> {
    let Some(table) = fields.table(key, true) else {
        return Vec::new();
    };
    let entries = table.entries().into_iter();
    let pair = |entry: fathom_toml::Entry<'_>| {
        let text = reader.scalar(&entry.value, entry.key)?;
        Some(match key {
            "where" => (text, entry.key.to_owned(), entry.key_span),
            _ => (entry.key.to_owned(), text, entry.value.span()),
        })
    };
    entries.filter_map(pair).collect()
}

/// Reads `columns = [{ metric = "write.bw", variant = "plain", column = "plain_mib_s" }]`.
fn columns(
    reader: &Reader<'_>,
    fields: &Fields<'_>,
    plan: &LabPlan,
) -> Vec<(PublishedColumn, Range<usize>)> {
    if !fields.has("columns") {
        reader.refuse(
            &fields.span(),
            "`published` has no `columns`",
            "add `columns = [{ metric = \"write.bw_mib_s\", column = \"COLUMN\" }]`",
        );
        return Vec::new();
    }
    let mut columns = Vec::new();
    for table in fields.tables("columns") {
        let metric = table.text("metric", false);
        let variant = table.text("variant", plan.variants.len() < 2);
        let column = table.text("column", false);
        table.finish();
        let variant = match variant {
            Some((name, span)) => index_of(reader, &plan.variants, name, &span),
            None => Some(0),
        };
        if let Some((metric, span)) = &metric {
            metrics::check_shown(reader, &plan.services, metric, span);
        }
        if let (Some((metric, _)), Some(variant), Some((column, span))) = (metric, variant, column)
        {
            let column = PublishedColumn {
                metric: metric.to_owned(),
                variant,
                column: column.to_owned(),
            };
            columns.push((column, span));
        }
    }
    columns
}

/// Finds the cell of each row.
fn fill(published: &mut Published, csv: &Csv<'_>, fixed: &[Pair], plan: &LabPlan) {
    let of_key = |cell: &LabCell, key: &str| -> String {
        let axis = plan.axes.iter().position(|axis| axis.name == key);
        let of_axis = axis.map(|axis| plan.axes[axis].values[cell.values[axis]].clone());
        let setting = || cell.settings.iter().find(|setting| setting.key == key);
        of_axis
            .or_else(|| Some(setting()?.value.clone()))
            .unwrap_or_default()
    };
    let mut cells: HashMap<Vec<String>, usize> = HashMap::new();
    for cell in &plan.cells {
        let values = published.keys.iter();
        let values = values.map(|(key, column)| normal(&of_key(cell, key), column));
        cells.entry(values.collect()).or_insert(cell.number);
    }
    for row in &csv.rows {
        let value = |column: &str| csv.value(row, column).unwrap_or_default();
        if !fixed.iter().all(|(want, column, _)| value(column) == want) {
            continue;
        }
        let keys = published.keys.iter();
        let keys: Vec<String> = keys
            .map(|(_, column)| normal(value(column), column))
            .collect();
        let Some(&cell) = cells.get(&keys) else {
            published.rows_without_cell += 1;
            continue;
        };
        for (index, column) in published.columns.iter().enumerate() {
            let figure = value(&column.column).parse::<f64>().ok();
            if let Some(figure) = figure.filter(|figure| figure.is_finite()) {
                published.figures.push(PublishedFigure {
                    cell,
                    column: index,
                    value: figure,
                });
            }
        }
    }
}

/// Returns a value in a form in which equal ones are equal texts: `128k` of an axis is `128` of a
/// column that is called `bs_kib`.
fn normal(value: &str, column: &str) -> String {
    let unit: u64 = match column {
        column if column.ends_with("_kib") => 1 << 10,
        column if column.ends_with("_mib") => 1 << 20,
        _ => 1,
    };
    let lower = value.to_ascii_lowercase();
    let size = |suffix: &str, factor: u64| {
        let number: u64 = lower.strip_suffix(suffix)?.parse().ok()?;
        Some(number.checked_mul(factor)? / unit)
    };
    let size = size("k", 1 << 10)
        .or_else(|| size("m", 1 << 20))
        .or_else(|| size("g", 1 << 30));
    match size {
        Some(number) => number.to_string(),
        None => lower
            .parse::<f64>()
            .map_or(lower, |number| number.to_string()),
    }
}

/// Table of a CSV file without quotes, as published figures are kept.
struct Csv<'a> {
    /// Lines that begin with `#`.
    origin: String,
    heading: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Csv<'a> {
    fn parse(text: &'a str) -> Self {
        let comments = text.lines().filter_map(|line| line.strip_prefix('#'));
        let origin: Vec<&str> = comments.map(str::trim).collect();
        let lines = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let mut rows = lines.map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
        Self {
            origin: origin.join(" "),
            heading: rows.next().unwrap_or_default(),
            rows: rows.collect(),
        }
    }

    fn value(&self, row: &[&'a str], column: &str) -> Option<&'a str> {
        let place = self.heading.iter().position(|name| *name == column)?;
        row.get(place).copied()
    }

    /// Returns whether there is such a column; notes it otherwise.
    fn has(&self, reader: &Reader<'_>, column: &str, span: &Range<usize>, file: &str) -> bool {
        let found = self.heading.contains(&column);
        if !found {
            let hint = match closest(column, self.heading.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its columns: {}", self.heading.join(", ")),
            };
            reader.refuse(span, format!("{file} has no column `{column}`"), hint);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_equal_in_any_unit() {
        for (axis, row, column) in [
            ("128k", "128", "bs_kib"),
            ("1m", "1024", "bs_kib"),
            ("4", "4.0", "depth"),
            ("4k", "4096", "bs"),
            ("randread", "randread", "rw"),
        ] {
            let in_row = match column {
                "bs_kib" => row.to_owned(),
                _ => normal(row, column),
            };
            assert_eq!(normal(axis, column), in_row, "{axis} {row}");
        }
    }
}
