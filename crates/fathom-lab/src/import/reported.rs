//! Percentiles of a report without histograms, on the page of its run.

use fathom_report::plot::{Axis, Panel, Plot, Point, Scale, Series};
use fathom_report::{Figure, LogReduction, Page, Picture, run_page_with_logs};

use super::page_run::{PageRun, ReportedPercentiles};
use crate::figure::shortened;

impl PageRun {
    /// Returns the page of the run, and of its I/O logs if there are any.
    #[must_use]
    pub fn page(&self, title: &str, logs: Option<&LogReduction>) -> Page {
        let mut page = run_page_with_logs(&self.record, title, logs);
        if !self.percentiles.is_empty() {
            page.heading(2, "Percentiles of the report");
            let heads = ["job, direction and latency", "percentile", "latency, µs"];
            let rows: Vec<Vec<String>> = self.percentiles.iter().flat_map(rows).collect();
            page.table("Percentiles of the report", &heads, &rows);
            page.figure(figure(&self.percentiles));
        }
        page
    }
}

fn rows(of: &ReportedPercentiles) -> Vec<Vec<String>> {
    let points = of.points.iter();
    points
        .map(|(percent, ns)| {
            vec![
                of.name.clone(),
                format!("p{percent}"),
                (ns / 1e3).to_string(),
            ]
        })
        .collect()
}

fn figure(all: &[ReportedPercentiles]) -> Figure {
    let series = all.iter().take(SERIES_MAX).enumerate().map(|(style, of)| {
        let points = of.points.iter().map(|(percent, ns)| {
            let across = 100.0 / (100.0 - percent);
            Point::new(across, (*ns > 0.0).then_some(ns / 1e3))
        });
        Series::measured(shortened(&of.name, NAME_MAX), style, points)
    });
    let plot = Plot {
        title: "Percentiles of the report".into(),
        panels: vec![Panel {
            across: Axis::new(
                "1/(1 − p): 10 is p90, 100 is p99, 1000 is p99.9",
                Scale::Auto,
            ),
            up: Axis::new("latency, µs", Scale::Auto),
            series: series.filter(Series::has_values).collect(),
        }],
    };
    // The table above has the numbers.
    Figure::new("percentiles", CAPTION, Picture::Plot(plot)).without_numbers()
}

/// Most curves of a figure: more could not be told apart.
const SERIES_MAX: usize = 8;
const NAME_MAX: usize = 40;
const CAPTION: &str = "Straight lines between the percentiles that the report has: nothing is \
                       known of the latencies between them. Percentiles beyond which there are \
                       fewer than ten ops are left out.";
