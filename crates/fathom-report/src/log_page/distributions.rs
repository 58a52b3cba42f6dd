//! Figures of distributions: percentile curves and cumulated shares.

use fathom_core::Direction;
use fathom_stats::Histogram;

use super::Section;
use super::tables::named;
use crate::page::{Figure, Page};
use crate::percentile_curve::{curve, has_enough_beyond};
use crate::plot::{Axis, Panel, Plot, Point, Scale, Series, Shape};

/// Draws the percentile curve, for latencies, and the share of lines up to each value.
pub(super) fn figures(page: &mut Page, section: &Section<'_>) {
    if section.is_count() {
        return;
    }
    let curves = curves(section);
    let word = section.kind.word();
    if section.kind.is_latency() {
        percentiles(page, section, &format!("{word} by percentile"), &curves);
        let by_priority = by_priority(section);
        let title = format!("{word} by percentile and priority");
        percentiles(page, section, &title, &by_priority);
    }
    let (unit, divisor) = section.unit(section.is_averaged());
    let series = numbered(&curves, |histogram| shares(histogram, divisor));
    if series.is_empty() {
        return;
    }
    let plot = Plot {
        title: format!("Share of lines up to each {word}"),
        panels: vec![Panel {
            across: Axis::new(format!("{word}, {unit}"), Scale::Auto),
            up: Axis::new("share of lines, %", Scale::Linear),
            series,
        }],
    };
    page.figure(Figure::new(format!("{word} shares"), SHARES, plot.into()));
}

fn percentiles(page: &mut Page, section: &Section<'_>, title: &str, curves: &[Curve]) {
    let (unit, divisor) = section.unit(section.is_averaged());
    let series = numbered(curves, |histogram| curve(histogram, divisor));
    if series.is_empty() {
        return;
    }
    let plot = Plot {
        title: title.to_owned(),
        panels: vec![Panel {
            across: Axis::new(
                "1/(1 − p): 10 is p90, 100 is p99, 1000 is p99.9",
                Scale::Auto,
            ),
            up: Axis::new(format!("{}, {unit}", section.kind.word()), Scale::Auto),
            series,
        }],
    };
    let caption = match section.is_averaged() {
        true => format!("{PERCENTILES} {AVERAGES}"),
        false => PERCENTILES.to_owned(),
    };
    page.figure(Figure::new(title, caption, plot.into()));
}

/// Name and values of a curve.
type Curve = (String, Histogram);

/// Returns the distributions to draw: of each direction of each log, or if they are too many, of
/// each direction of all.
fn curves(section: &Section<'_>) -> Vec<Curve> {
    let mut all = Vec::new();
    for (log, name) in section.logs.iter().zip(&section.names) {
        for (direction, of_direction) in log.directions() {
            let name = match section.logs.len() {
                1 => direction.name().to_owned(),
                _ => format!("{name}, {}", direction.name()),
            };
            all.push((name, of_direction.histogram.clone()));
        }
    }
    match all.len() > SERIES_MAX {
        true => merged(section),
        false => all,
    }
}

/// Returns the distributions of the priorities with most lines, of directions that have several.
fn by_priority(section: &Section<'_>) -> Vec<Curve> {
    let mut logs = section.logs.iter();
    let is_whole = logs.any(|log| log.description.has_priorities);
    let mut all = Vec::new();
    for (direction, course) in Direction::ALL.into_iter().zip(&section.of_kind.directions) {
        let each = course.iter().flat_map(|course| &course.priorities.each);
        let each: Vec<_> = each.collect();
        if each.len() < 2 {
            continue;
        }
        for (priority, histogram, envelope) in each {
            let name = format!("{}, {}", direction.name(), named(*priority, is_whole));
            all.push((envelope.count, (name, histogram.clone())));
        }
    }
    all.sort_by_key(|(lines, _)| std::cmp::Reverse(*lines));
    all.truncate(SERIES_MAX);
    all.into_iter().map(|(_, curve)| curve).collect()
}

fn merged(section: &Section<'_>) -> Vec<(String, Histogram)> {
    let directions = Direction::ALL.into_iter().filter_map(|direction| {
        let mut all = Histogram::new();
        let logs = section.logs.iter().flat_map(|log| log.directions());
        for (_, of_direction) in logs.filter(|(of, _)| *of == direction) {
            all.merge(&of_direction.histogram);
        }
        (all.count() > 0).then(|| (format!("all logs, {}", direction.name()), all))
    });
    directions.collect()
}

/// Returns a series of each curve with two points or more.
fn numbered(curves: &[Curve], points: impl Fn(&Histogram) -> Vec<Point>) -> Vec<Series> {
    let drawn = curves
        .iter()
        .map(|(name, histogram)| (name, points(histogram)));
    let drawn = drawn.filter(|(_, points)| points.len() > 1).enumerate();
    drawn
        .map(|(style, (name, points))| Series::measured(name.as_str(), style, points))
        .collect()
}

/// Returns the share of values up to each, at the ends of buckets; a few hundred points.
fn shares(histogram: &Histogram, divisor: f64) -> Vec<Point> {
    let count = histogram.count();
    let mut below = 0_u64;
    let points = histogram.bins().map(|(value, lines)| {
        below += lines;
        let share = below as f64 / count as f64 * 100.0;
        Point::new(value as f64 / divisor, Some(share))
    });
    let points: Vec<Point> = points.collect();
    let each = points.len().div_ceil(SHARES_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate();
    kept.filter(|(at, _)| at % each == 0 || *at == last)
        .map(|(_, point)| point)
        .collect()
}

/// Returns a percentile of windows for a line over time, if enough lines lie beyond it.
pub(super) fn of_window(window: &fathom_stats::Window, percent: f64, divisor: f64) -> Option<f64> {
    if !has_enough_beyond(percent, window.ios) {
        return None;
    }
    let alone = fathom_stats::Windows {
        windows: vec![window.clone()],
        ..fathom_stats::Windows::default()
    };
    let value = alone.histogram().percentile(percent);
    (value > 0).then(|| value as f64 / divisor)
}

/// Returns a series of steps.
pub(super) fn steps(name: &str, style: usize, points: Vec<Point>) -> Series {
    Series {
        shape: Shape::Step,
        ..Series::measured(name, style, points)
    }
}

const PERCENTILES: &str = "Each curve ends where fewer than ten lines have a larger value. Ops of \
                           one run depend on each other: two curves that differ do not show that \
                           two settings do.";
const AVERAGES: &str = "The lines are averages over windows, which hide slow ops: the curve of \
                        single ops is higher.";
const SHARES: &str = "Share of lines with at most this value. A step is a group of ops of one \
                      speed, such as those that a cache served. Rare slow ops are not visible \
                      here; see the percentiles.";
/// Most curves in a figure: more could not be told apart.
pub(super) const SERIES_MAX: usize = 8;
/// Most points of a curve of shares.
const SHARES_MAX: usize = 400;
