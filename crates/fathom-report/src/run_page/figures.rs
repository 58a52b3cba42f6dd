//! Figures of a run.

use fathom_record::{Record, TimelineRecord};
use fathom_stats::{Histogram, Latency, Window, Windows};

use super::heat;
use super::tables::{Reported, directions, kinds};
use crate::group::ReportedJob;
use crate::page::{Figure, Page};
use crate::percentile_curve::{curve, has_enough_beyond};
use crate::plot::{Axis, Panel, Plot, Point, Scale, Series, Shape, text};

/// Draws the percentile curve of each job or group and direction.
pub(super) fn percentiles(page: &mut Page, jobs: &[ReportedJob<'_>]) {
    let all = directions(jobs).filter_map(|one| {
        let (kind, latency) = shown_latency(&one)?;
        Some((format!("{} ({kind})", one.name), points_of(latency)?))
    });
    let all: Vec<_> = all.collect();
    if !all.is_empty() {
        page.heading(2, "Latency by percentile");
        curves(page, "Latency by percentile", all);
    }
}

/// Draws percentile curves with their names, as many as can be told apart.
pub(super) fn curves(page: &mut Page, title: &str, curves: Vec<(String, Vec<Point>)>) {
    let across = Axis::new(
        "1/(1 − p): 10 is p90, 100 is p99, 1000 is p99.9",
        Scale::Auto,
    );
    let up = Axis::new("latency, µs", Scale::Auto);
    lines(page, title, PERCENTILES, (across, up), curves);
}

/// Draws the share of ops below each latency, of each job or group and direction.
pub(super) fn shares(page: &mut Page, jobs: &[ReportedJob<'_>]) {
    let all = directions(jobs).filter_map(|one| {
        let (kind, latency) = shown_latency(&one)?;
        let points = share(latency.histogram.as_ref()?);
        (points.len() > 1).then(|| (format!("{} ({kind})", one.name), points))
    });
    let all: Vec<_> = all.collect();
    if all.is_empty() {
        return;
    }
    page.heading(2, "Latency by share of ops");
    let across = Axis::new("latency, µs", Scale::Auto);
    let up = Axis::new("ops that took no longer, %", Scale::Linear);
    lines(page, "Latency by share of ops", SHARES, (across, up), all);
}

/// Returns the share of ops up to each bucket, in %.
fn share(histogram: &Histogram) -> Vec<Point> {
    let total = histogram.count().max(1) as f64;
    let bins = histogram.bins().scan(0_u64, |below, (ns, count)| {
        *below = below.saturating_add(count);
        let percent = *below as f64 * 100.0 / total;
        Some(Point::new(ns.max(1) as f64 / 1e3, Some(percent)))
    });
    bins.collect()
}

/// Adds a figure of lines, as many as can be told apart.
fn lines(
    page: &mut Page,
    title: &str,
    caption: &str,
    (across, up): (Axis, Axis),
    all: Vec<(String, Vec<Point>)>,
) {
    let left = all.len().saturating_sub(SERIES_MAX);
    let shown = all.into_iter().take(SERIES_MAX).enumerate();
    let series = shown
        .map(|(at, (name, points))| Series::measured(text::shortened(&name, NAME_MAX), at, points));
    let series: Vec<Series> = series.collect();
    if series.is_empty() {
        return;
    }
    let plot = Plot {
        title: title.into(),
        panels: vec![Panel { across, up, series }],
    };
    page.figure(Figure::new(title, caption, plot.into()));
    if left > 0 {
        page.paragraph(&format!(
            "{left} more are not drawn; they are in the tables."
        ));
    }
}

/// Returns the latency that the curve shows: from when work was due, where that is known.
fn shown_latency<'a>(one: &Reported<'a>) -> Option<(&'static str, &'a Latency)> {
    let kinds = kinds(one.results);
    let order = ["resp", "clat", "lat"];
    order.into_iter().find_map(|wanted| {
        let (kind, latency) = kinds.into_iter().find(|(kind, _)| *kind == wanted)?;
        Some((kind, latency.filter(|latency| latency.histogram.is_some())?))
    })
}

/// Returns the points of a latency's curve, if there are several.
pub(super) fn points_of(latency: &Latency) -> Option<Vec<Point>> {
    let points = curve(latency.histogram.as_ref()?, 1e3);
    (points.len() > 1).then_some(points)
}

/// Draws rate and latency over time of each reporting group and direction.
pub(super) fn course(page: &mut Page, record: &Record) {
    let shown = record
        .timelines
        .iter()
        .filter(|one| one.windows.windows.len() > 1);
    let shown: Vec<&TimelineRecord> = shown.take(TIMELINES_MAX).collect();
    if shown.is_empty() {
        return;
    }
    page.heading(2, "Course of the run");
    for timeline in shown {
        let name = match timeline.group_id {
            Some(group) => format!("Group {group}, {}", timeline.direction),
            None => format!("All groups, {}", timeline.direction),
        };
        let mut panels = vec![rate(timeline)];
        panels.extend(latency(timeline));
        let map = heat::map(timeline, &name);
        let plot = Plot {
            title: name,
            panels,
        };
        let width = timeline.windows.width_ns as f64 / 1e6;
        let caption = format!("{COURSE} A window is {width} ms long.");
        let name = plot.title.clone();
        page.figure(Figure::new(format!("course {name}"), caption, plot.into()));
        if let Some(map) = map {
            page.figure(Figure::new(format!("heat map {name}"), HEAT, map.into()));
        }
    }
    let left = record.timelines.len().saturating_sub(TIMELINES_MAX);
    if left > 0 {
        page.paragraph(&format!("{left} more are in the numbers below."));
    }
}

fn rate(timeline: &TimelineRecord) -> Panel {
    let width_s = timeline.windows.width_ns as f64 / 1e9;
    let mut points = windows(timeline, |window| Some(window.ios as f64 / width_s));
    // The last value holds to the end of its window.
    points.extend(
        points
            .last()
            .map(|last| Point::new(last.x + width_s, last.y)),
    );
    Panel {
        across: Axis::new(TIME, Scale::Linear),
        up: Axis::new("IOPS", Scale::Linear),
        series: vec![Series {
            shape: Shape::Step,
            ..Series::measured("IOPS", 0, points)
        }],
    }
}

fn latency(timeline: &TimelineRecord) -> Option<Panel> {
    let kind = timeline.latency.as_deref()?;
    let percent = |percent: f64| move |window: &Window| percentile(window, percent);
    let largest = |window: &Window| (window.ios > 0).then(|| window.max_ns as f64 / 1e3);
    let series = vec![
        Series::measured("p50", 0, windows(timeline, percent(50.0))),
        Series::measured("p99", 1, windows(timeline, percent(99.0))),
        Series::measured("largest", 2, windows(timeline, largest)),
    ];
    let series: Vec<Series> = series.into_iter().filter(Series::has_values).collect();
    (!series.is_empty()).then(|| Panel {
        across: Axis::new(TIME, Scale::Linear),
        up: Axis::new(format!("{kind}, µs"), Scale::Auto),
        series,
    })
}

/// Returns a value of each window at the time of its start, s. The last one is left out if it was
/// not measured to its end.
fn windows(timeline: &TimelineRecord, value: impl Fn(&Window) -> Option<f64>) -> Vec<Point> {
    let windows = &timeline.windows;
    let start = |at: usize| {
        let after = windows.width_ns.saturating_mul(at as u64);
        timeline.start_ns.saturating_add(after) as f64 / 1e9
    };
    let whole = windows.windows.iter().take(windows.whole()).enumerate();
    whole
        .map(|(at, window)| Point::new(start(at), value(window)))
        .collect()
}

/// Returns a percentile of a window, if ten ops lie beyond it.
fn percentile(window: &Window, percent: f64) -> Option<f64> {
    if !has_enough_beyond(percent, window.ios) || window.bins.is_empty() {
        return None;
    }
    let alone = Windows {
        windows: vec![window.clone()],
        ..Windows::default()
    };
    let histogram = alone.histogram();
    let ns = histogram.percentile(percent);
    (ns > 0).then(|| ns as f64 / 1e3)
}

pub(super) const TIME: &str = "time since the first job, s";
const PERCENTILES: &str = "Each curve ends where fewer than ten ops are slower. Ops of one run \
                           depend on each other: two curves that differ do not show that two \
                           settings do.";
const COURSE: &str = "IOPS, and latencies of the ops that completed in each window; none where \
                      fewer than ten ops lie beyond the percentile.";
const SHARES: &str = "Each place on a curve: that share of the ops took no longer. A steep part is \
                      a latency that many ops have; two steep parts are two kinds of ops. The \
                      slowest ops are too few to be seen here: see the curve by percentile.";
const HEAT: &str = "Colours count the ops that completed in a window, by latency; where nothing \
                    is drawn, there was none. Rows are of equal ratio, so that a wide and a \
                    narrow band of equal colour have different numbers of ops. Colours of two \
                    maps have different counts.";
/// Most curves in a figure: more could not be told apart.
const SERIES_MAX: usize = 8;
/// Most timelines that are drawn.
const TIMELINES_MAX: usize = 16;
/// Longest name in a legend, in characters: two lines.
const NAME_MAX: usize = 44;
