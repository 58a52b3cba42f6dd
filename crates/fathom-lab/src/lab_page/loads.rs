//! Latency against throughput, along depths or loads: the "hockey stick".

use fathom_record::MetricName;
use fathom_report::plot::{Axis, Panel, Plot, Point, Scale, Series};
use fathom_report::{Figure, Page, Picture};

use super::axes::{Across, Line};
use super::{View, joined};
use crate::figure::shortened;

/// Draws each latency against the throughput of its direction.
pub(super) fn figures(page: &mut Page, view: &View<'_>) {
    let Some(across) = Across::of(view).filter(|_| raises_load(view)) else {
        return;
    };
    let mut is_first = true;
    for (latency, observed) in view.metrics() {
        let throughput = match observed.name.row.unit {
            "ns" => throughput_of(view, &observed.name),
            _ => None,
        };
        let Some(throughput) = throughput else {
            continue;
        };
        for lines in across.lines.chunks(LINES_MAX).take(FIGURES_MAX) {
            let plot = plot(view, lines, (latency, throughput));
            if !plot.panels[0].series.is_empty() {
                if std::mem::take(&mut is_first) {
                    page.heading(2, "Latency against throughput");
                }
                let name = plot.title.clone();
                page.figure(Figure::new(name, CAPTION, Picture::Plot(plot)));
            }
        }
    }
}

/// Returns whether more is asked of the device along the axis: a depth, a number of jobs, a load.
fn raises_load(view: &View<'_>) -> bool {
    let names = view.plan.axes.iter().map(|axis| axis.name.as_str());
    view.plan.curve.is_some() || names.into_iter().any(|name| LOADS.contains(&name))
}

/// Returns the rate of the same jobs and direction, or of all directions.
fn throughput_of(view: &View<'_>, latency: &MetricName) -> Option<usize> {
    let is_rate = |name: &MetricName| matches!(name.row.unit, "IOPS" | "B/s");
    let of = |direction: &str| {
        let mut all = view.metrics();
        let found = all.find(|(_, one)| {
            let name = &one.name;
            is_rate(name) && name.group == latency.group && name.direction == direction
        });
        found.map(|(at, _)| at)
    };
    of(latency.direction).or_else(|| of("all"))
}

fn plot(view: &View<'_>, lines: &[Line], (latency, throughput): (usize, usize)) -> Plot {
    let variants = view.plan.variants.len();
    let mut series = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for variant in 0..variants {
            let points = line.cells.iter().filter_map(|(_, cell)| {
                let x = view.report.median(*cell, variant, throughput)?;
                Some(Point::new(x, view.report.median(*cell, variant, latency)))
            });
            let name = shortened(&joined(&line.name, view.variant(variant)), LEGEND_MAX);
            series.push(Series::measured(name, at * variants + variant, points));
        }
    }
    series.retain(Series::has_values);
    let (up, across) = (view.label(latency), view.label(throughput));
    Plot {
        title: format!("{up}, against {across}"),
        panels: vec![Panel {
            across: Axis::new(across, Scale::Linear),
            up: Axis::new(up, Scale::Auto),
            series,
        }],
    }
}

/// Axes along which the load rises.
const LOADS: [&str; 6] = [
    "iodepth",
    "numjobs",
    "rate_iops",
    "rate",
    "depth",
    "iodepth_batch_submit",
];
const CAPTION: &str = "A point for each step of the axis, joined in its order: where the line \
                       turns up, more load makes ops wait and no longer gets more of them done. \
                       Latency of a closed loop is not that of independent clients.";
/// Most lines of a figure, and figures of a latency.
const LINES_MAX: usize = 4;
const FIGURES_MAX: usize = 4;
const LEGEND_MAX: usize = 40;
