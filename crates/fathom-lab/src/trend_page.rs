//! The page of a trend: the course of a metric over the runs of the history.
//!
//! From top to bottom: which series changed, then for each its levels, what changed with them, the
//! values in their order, and all numbers as JSON.

use fathom_report::plot::{Axis, IntervalRow, Intervals, Panel, Plot, Point, Scale, Series, Shape};
use fathom_report::{Figure, Page, Picture};
use serde_json::Value;

use crate::figure::{figure, interval_level, shortened};
use crate::trend::{NEWEST, NewestRuns, Trend, TrendChange};

/// Series of a trend's page.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendSeries {
    /// Plan and machine, or lab and cell, in a few words.
    pub head: String,
    /// Trend.
    pub trend: Trend,
    /// Number in the history of each run, in order.
    pub runs: Vec<i64>,
    /// Time when the first run of each level began, in UTC.
    pub begun: Vec<String>,
    /// Facts that changed, by change.
    pub facts: Vec<Vec<String>>,
    /// The newest runs against those before; `None` with too few.
    pub newest: Option<NewestRuns>,
    /// The last change, if it is new and for the worse.
    pub recent: Option<TrendChange>,
    /// Number of the runs that lack the metric, in words; `None` if all have it.
    pub left_out: Option<String>,
    /// All numbers.
    pub json: Value,
}

/// Returns the page of a metric's trends.
#[must_use]
pub fn trend_page(metric: &str, series: &[TrendSeries]) -> Page {
    let mut page = Page::new(&shortened(&format!("Trend of {metric}"), TITLE_MAX));
    page.heading(2, "What to know about these numbers");
    page.list("caveats", &caveats(series));
    if series.len() > 1 {
        overview(&mut page, series);
    }
    for one in series.iter().take(SERIES_MAX) {
        one.write(&mut page);
    }
    if series.len() > SERIES_MAX {
        let left = series.len() - SERIES_MAX;
        page.paragraph(&format!(
            "{left} more series are in the table above: choose some with --plan or --machine."
        ));
    }
    page
}

fn caveats(series: &[TrendSeries]) -> Vec<String> {
    let mut all = Vec::new();
    for one in series {
        if let Some(change) = &one.recent {
            let run = one.runs[change.at];
            all.push(format!(
                "{}: worse from run {run} on: {}",
                one.head,
                change.size()
            ));
        }
        if let Some(newest) = one.newest.as_ref().filter(|newest| newest.is_worse) {
            all.push(format!(
                "{}: the newest {NEWEST} runs are worse than those before: {}, p = {:.2e}",
                one.head,
                newest.size(),
                newest.p
            ));
        }
    }
    if all.is_empty() {
        all.push("no series changed for the worse among its newest runs".into());
    }
    let left_out = series.iter().filter_map(|one| {
        let left_out = one.left_out.as_ref()?;
        Some(format!("{}: {left_out}", one.head))
    });
    all.extend(left_out);
    let few = series
        .iter()
        .filter(|one| one.trend.values.len() < LEAST)
        .count();
    if few > 0 {
        all.push(format!(
            "{few} of {} series have fewer than {LEAST} runs, which cannot show a \
                          change",
            series.len()
        ));
    }
    let ratios = series.iter().flat_map(|one| {
        let newest = one.newest.iter().filter_map(|newest| newest.ratio.as_ref());
        one.trend.ratios().chain(newest)
    });
    all.extend(interval_level(ratios));
    all.push(
        "the runs were taken one after the other, not interleaved: a change may be due to the \
         machine's state as well as to the facts beside it"
            .into(),
    );
    all
}

fn overview(page: &mut Page, series: &[TrendSeries]) {
    let rows = series.iter().map(|one| {
        let last = one
            .trend
            .levels()
            .last()
            .map(|(_, level)| one.shown(*level));
        vec![
            one.head.clone(),
            one.trend.values.len().to_string(),
            one.trend.changes.len().to_string(),
            last.unwrap_or_default(),
            one.newest_words(),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let heads = ["series", "runs", "changes", "last level", "newest runs"];
    page.heading(2, "Series");
    page.table("Series of comparable runs", &heads, &rows);
}

impl TrendSeries {
    fn write(&self, page: &mut Page) {
        page.heading(2, &self.head);
        let heads = ["from run", "begun (UTC)", "runs", "level", "change"];
        page.table("Levels", &heads, &self.levels());
        let changed = self.changed();
        if !changed.is_empty() {
            page.list("facts", &changed);
        }
        page.paragraph(&format!("Newest {NEWEST} runs: {}.", self.newest_words()));
        self.course(page);
        self.sizes(page);
        let json = format!("{:#}", self.json);
        page.details("All numbers, as JSON", &json);
    }

    fn levels(&self) -> Vec<Vec<String>> {
        let levels = self.trend.levels();
        let ends = levels.iter().skip(1).map(|(at, _)| *at);
        let ends = ends.chain([self.trend.values.len()]);
        let rows = levels.iter().enumerate().zip(ends);
        rows.map(|((index, &(at, level)), end)| {
            let change = index.checked_sub(1).map(|index| &self.trend.changes[index]);
            vec![
                self.runs.get(at).map(i64::to_string).unwrap_or_default(),
                self.begun.get(index).cloned().unwrap_or_default(),
                (end - at).to_string(),
                self.shown(level),
                change.map(TrendChange::size).unwrap_or_default(),
            ]
        })
        .collect()
    }

    /// Returns what changed at each change, a sentence each.
    fn changed(&self) -> Vec<String> {
        let changes = self.trend.changes.iter().zip(&self.facts);
        let told = changes.map(|(change, facts)| {
            let facts = match facts.is_empty() {
                true => "no recorded fact".to_owned(),
                false => facts.join(", "),
            };
            format!("changed before run {}: {facts}", self.runs[change.at])
        });
        told.collect()
    }

    fn newest_words(&self) -> String {
        match &self.newest {
            None => format!("too few to test: {NEWEST} and as many before them are needed"),
            Some(newest) if newest.is_worse => {
                format!("{}, p = {:.2e}", newest.size(), newest.p)
            }
            Some(newest) => format!("not proved to be worse, p = {:.2}", newest.p),
        }
    }

    fn shown(&self, value: f64) -> String {
        figure(value, self.trend.metric.row.unit)
    }

    /// Draws the values in their order, and the levels.
    fn course(&self, page: &mut Page) {
        let metric = &self.trend.metric;
        let numbered = |at: usize| (1_u32..).nth(at).map_or(0.0, f64::from);
        let values = self.trend.values.iter().enumerate();
        let values =
            values.map(|(at, value)| Point::new(numbered(at), Some(metric.in_unit(*value))));
        let levels = self.trend.levels().into_iter();
        let mut steps: Vec<Point> = levels
            .map(|(at, level)| Point::new(numbered(at) - 0.5, Some(metric.in_unit(level))))
            .collect();
        let end = numbered(self.trend.values.len()) - 0.5;
        steps.extend(steps.last().map(|last| Point::new(end, last.y)));
        let series = vec![
            Series {
                shape: Shape::Scatter,
                ..Series::measured("run", 0, values)
            },
            Series {
                shape: Shape::Step,
                ..Series::measured("level", 1, steps)
            },
        ];
        let plot = Plot {
            title: format!("{} of each run: {}", metric.stored_name(), self.head),
            panels: vec![Panel {
                across: Axis::new("number of the run in the series", Scale::Linear),
                up: Axis::new(
                    format!("{}, {}", metric.stored_name(), metric.unit()),
                    Scale::Auto,
                ),
                series,
            }],
        };
        // The values of all runs are in the JSON below.
        let figure = Figure::new("course", COURSE, Picture::Plot(plot)).without_numbers();
        page.figure(figure);
    }

    /// Draws the sizes of the changes with their intervals.
    fn sizes(&self, page: &mut Page) {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let rows = self.trend.changes.iter().filter_map(|change| {
            let ratio = change.ratio.as_ref()?;
            let word = if change.is_worse { "worse" } else { "better" };
            Some(IntervalRow {
                name: format!("before run {}", self.runs[change.at]),
                note: word.into(),
                value: Some(percent(ratio.middle)),
                interval: Some((percent(ratio.low), percent(ratio.high))),
                band: None,
                style: if change.is_worse { 1 } else { 2 },
            })
        });
        let rows: Vec<IntervalRow> = rows.collect();
        for part in rows.chunks(ROWS_MAX) {
            let picture = Intervals {
                title: format!("Size of each change: {}", self.head),
                label: "change of the level, %".into(),
                zero: Some(0.0),
                rows: part.to_vec(),
            };
            page.figure(Figure::new("changes", SIZES, Picture::Intervals(picture)));
        }
    }
}

/// Fewest runs that can show a change: 5 before and 5 after it.
const LEAST: usize = 10;
/// Most series with figures.
const SERIES_MAX: usize = 20;
/// Most rows of a figure: it is to fit a page of paper.
const ROWS_MAX: usize = 36;
/// Most characters of a title.
const TITLE_MAX: usize = 200;
const COURSE: &str = "Each run in its order, and the median of each level. The distances say \
                      nothing of the time between runs. A level is a range of runs without a \
                      proved change, not a proof that nothing changed within it.";
const SIZES: &str = "Ratio of the level after each change to the level before it. The place of a \
                     change is an estimate, too: it may be a few runs off.";
