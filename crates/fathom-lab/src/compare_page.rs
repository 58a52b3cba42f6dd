//! The page of a comparison.
//!
//! From top to bottom: what to know, the verdicts as `fathom compare` prints them, intervals with
//! the tolerance shaded, the values of each run, all numbers as JSON.

use fathom_report::plot::{Axis, IntervalRow, Intervals, Panel, Plot, Point, Scale, Series, Shape};
use fathom_report::{Figure, Page, Picture};

use crate::compare::{ComparedMetric, ComparedVerdict, Comparison};
use crate::figure::shortened;
use crate::lab_page::{band, style};

/// Returns the page of a comparison.
#[must_use]
pub fn compare_page(comparison: &Comparison) -> Page {
    let heading = comparison.heading();
    let mut page = Page::new(&shortened(&heading, TITLE_MAX));
    page.heading(2, "What to know about these numbers");
    let apart = comparison.apart().map(|text| text.replace('\n', "; "));
    let apart = apart.or_else(|| comparison.in_turn());
    let notes: Vec<String> = apart.into_iter().chain(comparison.notes.clone()).collect();
    match notes.is_empty() {
        true => page.paragraph("The sides do not differ in jobs, machine or subject."),
        false => page.list("caveats", &notes),
    }
    verdicts(&mut page, comparison);
    intervals(&mut page, comparison);
    values(&mut page, comparison);
    page.heading(2, "How this was compared");
    page.list("facts", &facts(comparison));
    let json = format!("{:#}", comparison.json());
    page.details("All numbers, as JSON", &json);
    page
}

fn verdicts(page: &mut Page, comparison: &Comparison) {
    page.heading(2, "Verdicts");
    let mut rows = comparison.table().into_iter();
    let heads = rows.next().unwrap_or_default();
    let heads: Vec<&str> = heads.iter().map(|head| head.trim()).collect();
    let rows: Vec<Vec<String>> = rows.collect();
    page.table("Medians, and the change of the second side", &heads, &rows);
}

/// Draws the changes with their intervals.
fn intervals(page: &mut Page, comparison: &Comparison) {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let rows = comparison.rows.iter().filter_map(|row| {
        let ratio = row.ratio.as_ref()?;
        Some(IntervalRow {
            name: name(row),
            note: row.verdict.words().to_owned(),
            value: Some(percent(ratio.middle)),
            interval: Some((percent(ratio.low), percent(ratio.high))),
            band: Some(band(row.tolerance)),
            style: match row.verdict {
                ComparedVerdict::Judged(verdict) => style(verdict),
                ComparedVerdict::NotInterleaved
                | ComparedVerdict::NotDrawn
                | ComparedVerdict::LeftOut
                | ComparedVerdict::OneRun => UNJUDGED,
            },
        })
    });
    let rows: Vec<IntervalRow> = rows.collect();
    if rows.is_empty() {
        return;
    }
    page.heading(2, "Changes");
    for part in rows.chunks(ROWS_MAX) {
        let picture = Intervals {
            title: "Change from the first side to the second".into(),
            label: "change, %".into(),
            zero: Some(0.0),
            rows: part.to_vec(),
        };
        page.figure(Figure::new("changes", CHANGES, Picture::Intervals(picture)));
    }
}

/// Draws the values of each run.
fn values(page: &mut Page, comparison: &Comparison) {
    let panels: Vec<Panel> = comparison.rows.iter().filter_map(panel).collect();
    if panels.is_empty() {
        return;
    }
    page.heading(2, "Values of each run");
    for part in panels.chunks(PANELS_OF_FIGURE).take(FIGURES_MAX) {
        let plot = Plot {
            title: "Values of each run, in the order of each side".into(),
            panels: part.to_vec(),
        };
        page.figure(Figure::new("values", VALUES, Picture::Plot(plot)));
    }
    let left = panels.len().saturating_sub(PANELS_OF_FIGURE * FIGURES_MAX);
    if left > 0 {
        page.paragraph(&format!("{left} more metrics are in the numbers below."));
    }
}

fn panel(row: &ComparedMetric) -> Option<Panel> {
    let metric = row.name.clone().in_usual_unit();
    let sides = [("before", &row.before), ("after", &row.after)];
    let series = sides.iter().enumerate().map(|(style, (side, values))| {
        let numbers = (1_u32..).map(f64::from);
        let points = numbers
            .zip(&values.values)
            .map(|(number, value)| Point::new(number, Some(metric.in_unit(*value))));
        Series {
            shape: Shape::Scatter,
            ..Series::measured(*side, style, points)
        }
    });
    let series: Vec<Series> = series.filter(Series::has_values).collect();
    let up = match metric.unit() {
        "" => name(row),
        unit => format!("{}, {unit}", name(row)),
    };
    (!series.is_empty()).then(|| Panel {
        across: Axis::new("number of the run on its side", Scale::Linear),
        up: Axis::new(up, Scale::Auto),
        series,
    })
}

/// Returns the name of a row: its group of runs and its metric.
fn name(row: &ComparedMetric) -> String {
    let metric = row.name.stored_name();
    let name = match row.group.as_str() {
        "" => metric,
        group => format!("{group}: {metric}"),
    };
    shortened(&name, NAME_MAX)
}

fn facts(comparison: &Comparison) -> Vec<String> {
    let sides = [("before", &comparison.before), ("after", &comparison.after)];
    let sides = sides.map(|(word, side)| {
        let runs = side.runs.len();
        let s = if runs == 1 { "" } else { "s" };
        format!("{word}: {}, {runs} run{s}", side.name)
    });
    let tolerances = comparison.rows.iter().map(|row| {
        let percent = row.tolerance * 100.0;
        format!(
            "{}: changes within ± {percent} % are too small to matter",
            name(row)
        )
    });
    sides.into_iter().chain(tolerances).collect()
}

/// Style of a change without a verdict.
const UNJUDGED: usize = 0;
/// Most characters of a title and of a name in a figure.
const TITLE_MAX: usize = 200;
const NAME_MAX: usize = 60;
/// Most rows of a figure, and panels: it is to fit a page of paper.
const ROWS_MAX: usize = 36;
const PANELS_OF_FIGURE: usize = 3;
const FIGURES_MAX: usize = 8;
const CHANGES: &str = "Estimated change of each metric with its interval. Changes within the \
                       shaded band are too small to matter. If the order was not drawn, the \
                       interval does not allow for drift between the sides, and is too narrow.";
const VALUES: &str = "The spread within a side against the distance between the sides. Runs with \
                      the same number were taken together only if both sides are variants of a \
                      lab.";

#[cfg(test)]
mod tests {
    use fathom_record::{Measure, MetricName};

    use super::*;
    use crate::compare::{CompareRules, CompareSide, compare};
    use crate::finished::FinishedRun;
    use crate::import::ImportedRun;

    fn side(name: &str, begun_ms: u64, iops: f64) -> CompareSide {
        let run = |number: u32| ImportedRun {
            uuid: None,
            begun_ms: Some(begun_ms),
            repeat: None,
            run: FinishedRun {
                wall_ms: 1000,
                measures: vec![Measure {
                    group: String::new(),
                    direction: "read",
                    metric: "iops".into(),
                    value: iops + f64::from(number),
                    low: None,
                    high: None,
                }],
                ..FinishedRun::default()
            },
            notes: Vec::new(),
        };
        CompareSide {
            name: name.into(),
            runs: (0..8).map(run).collect(),
            files: Vec::new(),
        }
    }

    #[test]
    fn drift_that_was_accepted_is_told() {
        let page = |accept_drift: bool| {
            let rules = CompareRules {
                metrics: vec![(MetricName::parse("read.iops").unwrap(), 0.02)],
                tolerance: 0.02,
                accept_drift,
            };
            let sides = (side("</h1><b>", 1000, 1000.0), side("b", 63_000, 900.0));
            compare_page(&compare(sides.0, sides.1, &rules).unwrap()).html()
        };
        let accepted = page(true);
        assert!(accepted.contains("1 min 1 s apart: verdicts take for granted"));
        assert!(accepted.contains(">worse<") && !accepted.contains("<b>"));
        assert!(page(false).contains("1 min 1 s between the sides"));
    }
}
