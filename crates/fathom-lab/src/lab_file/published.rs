//! `[[published]]`: figures of others, from CSV files.

use std::collections::HashMap;
use std::ops::Range;

use fathom_job::closest;
use fathom_toml::Fields;

use super::judge::index_of;
use super::reader::Reader;
use super::{loads, metrics};
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
    let origin = fields.text("origin", true);
    let keys = keys(reader, fields, plan);
    let rows = pairs(reader, fields, "where");
    let cells = fields.value("cell");
    let cells = cells.map(|value| loads::values_of(reader, plan, &value));
    let columns = columns(reader, fields, plan);
    fields.finish();
    let (path, span) = file?;
    let path = reader.path(path);
    let text = reader.read_aside(&path, &span)?;
    let csv = Csv::parse(&text);
    let pairs = keys
        .iter()
        .map(|(key, column, _)| (key.clone(), column.clone()));
    let mut published = Published {
        origin: origin.map_or_else(|| csv.origin.clone(), |(origin, _)| origin.to_owned()),
        file: path,
        keys: pairs.collect(),
        columns: columns
            .iter()
            .map(|column| column.figures.clone())
            .collect(),
        figures: Vec::new(),
        rows_without_cell: 0,
    };
    let of_rows = columns.iter().flat_map(|column| &column.rows);
    let named = keys.iter().chain(&rows).chain(of_rows);
    let named = named.map(|(_, column, span)| (column, span));
    let figures = columns
        .iter()
        .map(|column| (&column.figures.column, &column.span));
    let mut complete = true;
    for (column, span) in named.chain(figures) {
        complete &= csv.has(reader, column, span, &published.file);
    }
    let cells = match cells {
        Some(values) => values?,
        None => vec![None; plan.axes.len()],
    };
    complete &= keys.iter().all(|(key, _, _)| knows(plan, key));
    if complete {
        let by_keys = cells_by_keys(reader, fields, plan, &published, &cells);
        fill(&mut published, &csv, &rows, &columns, &by_keys);
    }
    Some(published)
}

/// Column with the rows that it is read from.
struct Column {
    figures: PublishedColumn,
    span: Range<usize>,
    rows: Vec<Pair>,
}

/// A name, the column that it goes with, and the place of the latter.
type Pair = (String, String, Range<usize>);

/// Reads `keys = { numjobs = "numjobs" }`: axes or options, each with its column.
fn keys(reader: &Reader<'_>, fields: &Fields<'_>, plan: &LabPlan) -> Vec<Pair> {
    let keys = pairs(reader, fields, "keys");
    for (key, _, span) in &keys {
        if knows(plan, key) {
            continue;
        }
        let names: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        let hint = match closest(key, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("axes here: {}", names.join(", ")),
        };
        reader.refuse(span, format!("there is no axis `{key}`"), hint);
    }
    keys
}

/// Returns whether cells differ in this axis or option.
fn knows(plan: &LabPlan, key: &str) -> bool {
    let settings = plan.cells.iter().take(1).flat_map(|cell| cell.settings());
    let mut options = settings.map(|setting| setting.key.as_str());
    plan.axes.iter().any(|axis| axis.name == key) || options.any(|option| option == key)
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
fn columns(reader: &Reader<'_>, fields: &Fields<'_>, plan: &LabPlan) -> Vec<Column> {
    if !fields.has("columns") {
        reader.refuse(
            &fields.span(),
            "`published` has no `columns`",
            "add `columns = [{ metric = \"write.bw_mib_s\", column = \"COLUMN\" }]`",
        );
        return Vec::new();
    }
    let tables = fields.tables("columns").into_iter();
    tables
        .filter_map(|table| column(reader, &table, plan))
        .collect()
}

fn column(reader: &Reader<'_>, table: &Fields<'_>, plan: &LabPlan) -> Option<Column> {
    let metric = table.text("metric", false);
    let variant = table.text("variant", plan.variants.len() < 2);
    let column = table.text("column", false);
    let rows = pairs(reader, table, "where");
    table.finish();
    let variant = match variant {
        Some((name, span)) => index_of(reader, &plan.variants, name, &span),
        None => Some(0),
    };
    if let Some((metric, span)) = &metric {
        metrics::read_of_lab(reader, &plan.services, metric, span);
    }
    let (metric, _) = metric?;
    let (name, span) = column?;
    Some(Column {
        figures: PublishedColumn {
            metric: metric.to_owned(),
            variant: variant?,
            column: name.to_owned(),
        },
        span,
        rows,
    })
}

/// Returns the cell of each combination of the keys' values, among the cells with these values of
/// their axes. Notes keys that several cells share.
fn cells_by_keys(
    reader: &Reader<'_>,
    fields: &Fields<'_>,
    plan: &LabPlan,
    published: &Published,
    wanted: &[Option<usize>],
) -> HashMap<Vec<String>, usize> {
    let mut by_keys = HashMap::new();
    let mut shared = false;
    let cells = plan.cells.iter().filter(|cell| cell.has(wanted));
    for cell in cells {
        let keys = published.keys.iter();
        let keys = keys.map(|(key, column)| normal(&value_of(plan, cell, key), column));
        shared |= by_keys.insert(keys.collect(), cell.number).is_some();
    }
    if shared {
        let why = "a row of the published figures fits several cells";
        let hint = "name further axes in `keys`, or the cells as `cell = { AXIS = VALUE }`";
        reader.refuse(&fields.span(), why, hint);
    }
    by_keys
}

/// Returns the value of an axis or an option in a cell.
fn value_of(plan: &LabPlan, cell: &LabCell, key: &str) -> String {
    let axis = plan.axes.iter().position(|axis| axis.name == key);
    if let Some(axis) = axis {
        return plan.axes[axis].values[cell.values[axis]].clone();
    }
    let setting = cell.settings().find(|setting| setting.key == key);
    setting.map_or_else(String::new, |setting| setting.value.clone())
}

/// Finds the cell of each row, and takes its figures.
fn fill(
    published: &mut Published,
    csv: &Csv<'_>,
    rows: &[Pair],
    columns: &[Column],
    cells: &HashMap<Vec<String>, usize>,
) {
    for row in &csv.rows {
        let value = |column: &str| csv.value(row, column).unwrap_or_default();
        let fits = |pairs: &[Pair]| pairs.iter().all(|(want, column, _)| value(column) == want);
        if !fits(rows) {
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
        for (index, column) in columns
            .iter()
            .enumerate()
            .filter(|(_, one)| fits(&one.rows))
        {
            let figure = value(&column.figures.column).parse::<f64>().ok();
            if let Some(value) = figure.filter(|figure| figure.is_finite()) {
                let column = index;
                published.figures.push(PublishedFigure {
                    cell,
                    column,
                    value,
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
