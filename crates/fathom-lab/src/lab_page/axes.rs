//! Each metric over an axis, published figures beside ours.

use std::collections::BTreeMap;

use fathom_report::plot::{Axis, IntervalRow, Intervals, Panel, Plot, Point, Scale, Series};
use fathom_report::{Figure, Page, Picture};

use super::{NAME_MAX, View, joined};
use crate::figure::shortened;

/// Draws each metric over the main axis, or by cell if no axis has numbers.
pub(super) fn figures(page: &mut Page, view: &View<'_>) {
    if view.plan.cells.len() < 2 && view.plan.variants.len() < 2 {
        return;
    }
    page.heading(2, "Metrics");
    let across = Across::of(view);
    for (metric, _) in view.metrics() {
        match &across {
            Some(across) => over_axis(page, view, across, metric),
            None => by_cell(page, view, metric),
        }
    }
}

/// Horizontal axis of a lab's figures, and the cells along it.
pub(super) struct Across {
    axis: Axis,
    /// Cells that differ in this axis only, with their places on it, ascending.
    pub(super) lines: Vec<Line>,
}

/// Cells of a line.
pub(super) struct Line {
    /// Settings that the cells share; empty if there are no other axes.
    pub(super) name: String,
    pub(super) cells: Vec<(f64, usize)>,
}

impl Across {
    /// Chooses the axis: that of a curve's loads, or the one with the most numbers.
    pub(super) fn of(view: &View<'_>) -> Option<Self> {
        let plan = view.plan;
        let numeric = |at: usize| {
            let values = &plan.axes[at].values;
            values.len() > 1 && values.iter().all(|value| number(value).is_some())
        };
        let at = match plan.curve {
            Some(_) => plan.axes.len().checked_sub(1),
            None => {
                let axes = (0..plan.axes.len()).filter(|at| numeric(*at));
                // The first of those with equally many values.
                axes.rev().max_by_key(|at| plan.axes[*at].values.len())
            }
        }?;
        let place = |cell: usize| match plan.curve {
            Some(_) => view.outcome.results.cells[cell]
                .asked
                .map(|asked| asked as f64),
            None => number(&plan.axes[at].values[plan.cells[cell].values[at]]),
        };
        let mut lines: BTreeMap<Vec<usize>, Vec<(f64, usize)>> = BTreeMap::new();
        for cell in &plan.cells {
            if let Some(x) = place(cell.number) {
                let mut others = cell.values.clone();
                others.remove(at);
                lines.entry(others).or_default().push((x, cell.number));
            }
        }
        let lines = lines.into_iter().map(|(others, mut cells)| {
            cells.sort_by(|one, other| one.0.total_cmp(&other.0));
            let name = view.setting(at, &others);
            Line { name, cells }
        });
        let lines: Vec<Line> = lines.collect();
        let places = lines.iter().flat_map(|line| &line.cells).map(|(x, _)| *x);
        let places: Vec<f64> = places.collect();
        let label = match plan.curve {
            Some(_) => format!("load asked of all jobs, {}", plan.load_metric().1),
            None => shortened(&plan.axes[at].name, NAME_MAX),
        };
        let is_size = plan.axes[at].values.iter().any(|value| is_size(value));
        Some(Self {
            axis: Axis::new(label, scale(&places, is_size)),
            lines,
        })
    }
}

impl View<'_> {
    /// Returns the values of all axes but one, as a name.
    fn setting(&self, without: usize, values: &[usize]) -> String {
        let axes = self.plan.axes.iter().enumerate();
        let axes = axes.filter(|(at, _)| *at != without).map(|(_, axis)| axis);
        let parts = axes.zip(values);
        let parts = parts.map(|(axis, value)| format!("{}={}", axis.name, axis.values[*value]));
        shortened(&parts.collect::<Vec<_>>().join(", "), NAME_MAX)
    }

    /// Returns the median of a metric, in its unit, with the smallest and the largest repeat.
    pub(super) fn point(&self, x: f64, (cell, variant): (usize, usize), metric: usize) -> Point {
        let results = &self.outcome.results;
        let name = &results.metrics[metric].name;
        let values = results.values.of(cell, variant, metric).iter();
        let values: Vec<f64> = values.map(|(_, value)| name.in_unit(*value)).collect();
        let least = values.iter().copied().reduce(f64::min);
        let most = values.iter().copied().reduce(f64::max);
        Point {
            x,
            y: self.report.median(cell, variant, metric),
            interval: least.zip(most).filter(|(least, most)| least < most),
        }
    }

    /// Returns the series of a metric along a line of cells: ours, and the published ones.
    fn series(&self, line: &Line, metric: usize, style: usize, is_named: bool) -> Vec<Series> {
        let mut all = Vec::new();
        for variant in 0..self.plan.variants.len() {
            let name = match is_named {
                true => joined(&line.name, self.variant(variant)),
                false => self.variant(variant).to_owned(),
            };
            let name = shortened(&name, LEGEND_MAX);
            let style = style + variant;
            let cells = line.cells.iter();
            let points = cells.map(|(x, cell)| self.point(*x, (*cell, variant), metric));
            all.push(Series::measured(name.clone(), style, points));
            let published = self.report.published_of(metric, variant);
            all.extend(published.into_iter().map(|column| {
                let points = line.cells.iter().map(|(x, cell)| {
                    let figure = self.report.published_figure(column, *cell, metric);
                    Point::new(*x, figure)
                });
                Series::published(format!("{name}, published"), style, points)
            }));
        }
        all.retain(Series::has_values);
        all
    }
}

fn over_axis(page: &mut Page, view: &View<'_>, across: &Across, metric: usize) {
    let label = view.label(metric);
    let panel = |up: String, series: Vec<Series>| Panel {
        across: across.axis.clone(),
        up: Axis::new(up, Scale::Auto),
        series,
    };
    let variants = view.plan.variants.len();
    let mut panels: Vec<Panel> = match across.lines.len() * variants <= SERIES_MAX {
        true => {
            let lines = across.lines.iter().enumerate();
            let series =
                lines.flat_map(|(at, line)| view.series(line, metric, at * variants, true));
            vec![panel(label.clone(), series.collect())]
        }
        false => {
            let lines = across.lines.iter().take(PANELS_MAX);
            let panels = lines.map(|line| {
                let up = match line.name.as_str() {
                    "" => label.clone(),
                    name => format!("{label}; {name}"),
                };
                panel(up, view.series(line, metric, 0, false))
            });
            panels.collect()
        }
    };
    panels.retain(|panel| panel.series.iter().any(Series::has_values));
    let title = format!("{label}, over {}", across.axis.label);
    let left = across.lines.len().saturating_sub(PANELS_MAX);
    for part in panels.chunks(PANELS_OF_FIGURE) {
        let plot = Plot {
            title: title.clone(),
            panels: part.to_vec(),
        };
        let caption = match left {
            0 => CAPTION.to_owned(),
            left => format!("{CAPTION} {left} more settings are in the table."),
        };
        page.figure(Figure::new(title.clone(), caption, Picture::Plot(plot)));
    }
}

/// Draws a metric with a row for each cell and variant.
fn by_cell(page: &mut Page, view: &View<'_>, metric: usize) {
    let cells = 0..view.plan.cells.len();
    let sides = cells.flat_map(|cell| (0..view.plan.variants.len()).map(move |one| (cell, one)));
    let rows: Vec<IntervalRow> = sides
        .map(|(cell, variant)| {
            let point = view.point(0.0, (cell, variant), metric);
            IntervalRow {
                name: view.name(cell, variant),
                value: point.y,
                interval: point.interval,
                style: variant,
                ..IntervalRow::default()
            }
        })
        .filter(|row| row.value.is_some())
        .collect();
    let title = view.label(metric);
    for part in rows.chunks(ROWS_MAX).take(PANELS_MAX) {
        let picture = Intervals {
            title: title.clone(),
            label: title.clone(),
            zero: None,
            rows: part.to_vec(),
        };
        page.figure(Figure::new(
            title.clone(),
            CAPTION,
            Picture::Intervals(picture),
        ));
    }
}

/// Parses a value of an axis: a number, a share, or a size as jobs have it.
fn number(value: &str) -> Option<f64> {
    let text = value.trim().to_ascii_lowercase();
    let (digits, factor) = match text.strip_suffix('%') {
        Some(digits) => (digits, 1.0),
        None => {
            let end = text.trim_end_matches("ib").trim_end_matches('b');
            let digits = end.trim_end_matches(['k', 'm', 'g', 't']);
            let unit = &end[digits.len()..];
            let power = UNITS.iter().position(|one| *one == unit)?;
            (digits, 1024_f64.powi(i32::try_from(power).ok()?))
        }
    };
    let number: f64 = digits.trim().parse().ok()?;
    number.is_finite().then_some(number * factor)
}

fn is_size(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value.ends_with(['k', 'm', 'g', 't', 'b'])
}

/// Returns the scale for places on an axis: those that double stand at equal distances.
pub(super) fn scale(places: &[f64], is_size: bool) -> Scale {
    let least = places.iter().copied().reduce(f64::min).unwrap_or(0.0);
    let most = places.iter().copied().reduce(f64::max).unwrap_or(0.0);
    match least > 0.0 && most / least >= DOUBLING_SPAN {
        true if is_size => Scale::Bytes,
        true => Scale::Doubling,
        false if is_size => Scale::Bytes,
        false => Scale::Linear,
    }
}

/// Endings of sizes, each 1024 times the one before.
const UNITS: [&str; 5] = ["", "k", "m", "g", "t"];
/// Ratio of the ends of an axis above which its values are taken for powers.
const DOUBLING_SPAN: f64 = 8.0;
/// Most series of a panel, without the published ones: more could not be told apart.
const SERIES_MAX: usize = 6;
/// Most panels of a metric, and of a figure, which is to fit a page of paper.
const PANELS_MAX: usize = 12;
const PANELS_OF_FIGURE: usize = 3;
/// Most rows of a figure.
const ROWS_MAX: usize = 36;
/// Most characters of a name in a legend.
const LEGEND_MAX: usize = 40;
const CAPTION: &str = "Medians of the repeats; bars span the smallest and the largest repeat, and \
                       are not confidence intervals. Whether variants differ is a matter of the \
                       comparisons, not of this figure.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_axes_are_numbers_shares_or_sizes() {
        let numbers = ["4", "0.5", "10%", "4k", "1MiB", "1g", " 2 "].map(number);
        let want = [4.0, 0.5, 10.0, 4096.0, 1_048_576.0, 1_073_741_824.0, 2.0].map(Some);
        assert_eq!(numbers, want);
        for other in ["randread", "", "k", "4x", "inf", "nan", "max"] {
            assert_eq!(number(other), None, "{other}");
        }
        assert_eq!(scale(&[1.0, 16.0], false), Scale::Doubling);
        assert_eq!(scale(&[0.0, 16.0], false), Scale::Linear);
        assert_eq!(scale(&[4096.0, 8192.0], true), Scale::Bytes);
    }
}
