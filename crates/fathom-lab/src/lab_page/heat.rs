//! Two axes as a table whose cells are shaded.

use std::collections::BTreeMap;

use fathom_report::{Page, Shaded};

use super::comparisons::words;
use super::{NAME_MAX, View, joined};
use crate::figure::shortened;

/// Writes a table for each metric and variant, and one for each judged comparison, with the two
/// longest axes as rows and columns.
pub(super) fn tables(page: &mut Page, view: &View<'_>) {
    let Some(grid) = Grid::of(view) else {
        return;
    };
    page.heading(2, "Two axes at a time");
    page.paragraph(EXPLANATION);
    let heads: Vec<&str> = grid.heads.iter().map(String::as_str).collect();
    for (metric, _) in view.metrics() {
        for (name, cells) in grid.layers.iter().take(LAYERS_MAX) {
            for variant in 0..view.plan.variants.len() {
                let rows = grid.medians(view, cells, (metric, variant));
                let of = joined(name, view.variant(variant));
                page.shaded_table(&joined(&view.label(metric), &of), &heads, &rows);
                if let Some(rows) = grid.changes(view, cells, (metric, variant)) {
                    let baseline = view.variant(view.plan.judge.baseline);
                    let caption = format!("{}: {of} against {baseline}", view.label(metric));
                    page.shaded_table(&caption, &heads, &rows);
                }
            }
        }
    }
    let left = grid.layers.len().saturating_sub(LAYERS_MAX);
    if left > 0 {
        page.paragraph(&format!(
            "{left} more settings of other axes are in the table of results."
        ));
    }
}

/// Division of the cells into tables.
struct Grid {
    /// Name of the rows' axis and of the columns' axis, then the columns.
    heads: Vec<String>,
    rows: Vec<String>,
    /// Tables: the settings of the other axes, and the cells by row and column.
    layers: Vec<(String, Cells)>,
}

/// Cells by row and column.
type Cells = Vec<Vec<Option<usize>>>;

impl Grid {
    fn of(view: &View<'_>) -> Option<Self> {
        let axes = &view.plan.axes;
        let mut longest: Vec<usize> = (0..axes.len()).collect();
        longest.retain(|at| axes[*at].values.len() > 1);
        longest.sort_by_key(|at| std::cmp::Reverse(axes[*at].values.len()));
        let [down, across] = longest.get(..2)?.try_into().ok()?;
        let size = (axes[down].values.len(), axes[across].values.len());
        if view.plan.search.is_some() {
            return None;
        }
        let mut layers: BTreeMap<Vec<usize>, Cells> = BTreeMap::new();
        for cell in &view.plan.cells {
            let others = cell.values.iter().enumerate();
            let others = others.filter(|(at, _)| ![down, across].contains(at));
            let cells = layers.entry(others.map(|(_, value)| *value).collect());
            let cells = cells.or_insert_with(|| vec![vec![None; size.1]; size.0]);
            cells[cell.values[down]][cell.values[across]] = Some(cell.number);
        }
        let others: Vec<usize> = (0..axes.len())
            .filter(|at| ![down, across].contains(at))
            .collect();
        let name = |values: &[usize]| {
            let parts = others.iter().zip(values);
            let parts =
                parts.map(|(at, value)| format!("{}={}", axes[*at].name, axes[*at].values[*value]));
            shortened(&parts.collect::<Vec<_>>().join(", "), NAME_MAX)
        };
        let corner = format!("{} by {}", axes[down].name, axes[across].name);
        let corner = std::iter::once(corner);
        let columns = axes[across].values.iter().cloned();
        Some(Self {
            heads: corner
                .chain(columns)
                .map(|head| shortened(&head, NAME_MAX))
                .collect(),
            rows: axes[down]
                .values
                .iter()
                .map(|value| shortened(value, NAME_MAX))
                .collect(),
            layers: layers
                .into_iter()
                .map(|(values, cells)| (name(&values), cells))
                .collect(),
        })
    }

    /// Returns the medians, shaded by their place between the smallest and the largest.
    fn medians(
        &self,
        view: &View<'_>,
        cells: &Cells,
        (metric, variant): (usize, usize),
    ) -> Vec<(String, Vec<Shaded>)> {
        let value = |cell: &Option<usize>| view.report.median((*cell)?, variant, metric);
        let all = || cells.iter().flatten().filter_map(value);
        let least = all().reduce(f64::min).unwrap_or(0.0);
        let most = all().reduce(f64::max).unwrap_or(0.0);
        let shade = |value: f64| match least < most {
            true => (value - least) / (most - least),
            false => 0.0,
        };
        let shown = |cell: &Option<usize>| match value(cell) {
            Some(value) => Shaded {
                text: view.report.shown(metric, value),
                shade: shade(value),
            },
            None => Shaded::default(),
        };
        let rows = cells.iter().map(|row| row.iter().map(shown).collect());
        self.rows.iter().cloned().zip(rows).collect()
    }

    /// Returns the comparisons, shaded by the size of the change; `None` if there are none.
    fn changes(
        &self,
        view: &View<'_>,
        cells: &Cells,
        (metric, variant): (usize, usize),
    ) -> Option<Vec<(String, Vec<Shaded>)>> {
        let judgement = |cell: &Option<usize>| view.report.judgement((*cell)?, variant, metric);
        let size = |cell: &Option<usize>| {
            let ratio = judgement(cell)?.ratio?.middle;
            Some(ratio.ln().abs()).filter(|size| size.is_finite())
        };
        let most = cells.iter().flatten().filter_map(size).reduce(f64::max)?;
        let shown = |cell: &Option<usize>| Shaded {
            text: judgement(cell).map(words).unwrap_or_default(),
            shade: size(cell)
                .filter(|_| most > 0.0)
                .map_or(0.0, |size| size / most),
        };
        let rows = cells.iter().map(|row| row.iter().map(shown).collect());
        Some(self.rows.iter().cloned().zip(rows).collect())
    }
}

const EXPLANATION: &str = "Cells of a stronger colour have larger values; in tables of changes, \
                           larger changes, whatever their direction. Each table is shaded by \
                           itself: shades of two tables cannot be compared.";
/// Most settings of other axes that have tables of their own.
const LAYERS_MAX: usize = 4;
