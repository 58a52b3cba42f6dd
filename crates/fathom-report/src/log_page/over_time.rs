//! Figures over time: values, rates, and a heat map of values.

use std::collections::BTreeMap;

use fathom_core::Direction;
use fathom_stats::{Window, Windows};

use super::Section;
use super::columns::{Merge, TimeColumns};
use super::distributions::{SERIES_MAX, of_window, steps};
use super::heat::value_map;
use super::reduction::{COLUMNS_MAX, Course, OfDirection};
use super::windows::{Envelope, windows};
use crate::page::{Figure, Page, Picture};
use crate::plot::{Axis, HeatAxis, HeatMap, Panel, Plot, Point, Scale, Series};

/// Draws smallest and largest values over time, by direction, and by log if there are a few; and
/// how often each value was.
pub(super) fn values(page: &mut Page, section: &Section<'_>) {
    if section.is_count() {
        return;
    }
    let word = section.kind.word();
    let panels = each_direction(section).map(|(direction, all, course)| {
        let mut series = vec![Series::measured(
            "smallest and largest",
            // Grey, so that the lines over it are seen.
            GREY,
            envelope(section, &all),
        )];
        series.extend(middle(section, &all, course));
        panel(section, direction, series)
    });
    let panels: Vec<Panel> = panels.collect();
    if panels.iter().all(|panel| !panel.series.iter().any(is_line)) {
        return;
    }
    let plot = Plot {
        title: format!("{word} over time"),
        panels,
    };
    page.figure(Figure::new(
        format!("{word} over time"),
        VALUES,
        plot.into(),
    ));
    by_log(page, section);
    for (direction, _, course) in each_direction(section) {
        heat_map(page, section, direction, course);
    }
}

/// Returns whether a series has two values, which a line can join.
fn is_line(series: &Series) -> bool {
    series
        .points
        .iter()
        .filter(|point| point.y.is_some())
        .count()
        > 1
}

/// Returns each direction with lines: the columns of all logs laid over each other, and the
/// distributions.
fn each_direction<'a>(
    section: &'a Section<'_>,
) -> impl Iterator<Item = (Direction, Overlay, &'a Course)> {
    Direction::ALL.into_iter().filter_map(|direction| {
        let course = section.of_kind.directions[direction.index()].as_ref()?;
        let logs = section.logs.iter().flat_map(|log| log.directions());
        let logs = logs.filter(|(of, _)| *of == direction);
        let logs: Vec<&OfDirection> = logs.map(|(_, of_direction)| of_direction).collect();
        Some((direction, Overlay::of(&logs), &**course))
    })
}

/// Columns of several logs, and the pause from which on their lines are not joined.
struct Overlay {
    columns: TimeColumns<Envelope>,
    pause_ms: u64,
}

impl Overlay {
    fn of(logs: &[&OfDirection]) -> Self {
        let mut columns = TimeColumns::new(COLUMNS_MAX);
        for (start, column) in logs.iter().flat_map(|log| log.columns.iter()) {
            if column.count > 0 {
                let all: &mut Envelope = columns.at(start);
                all.merge(*column);
            }
        }
        let starts = || columns.iter().map(|(start, _)| start);
        let span = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
        let lines = logs.iter().map(|log| log.rows).sum::<u64>();
        // Averages leave most columns empty; a pause of ten times their distance is one.
        let usual = span / lines.max(1);
        Self {
            pause_ms: usual
                .saturating_mul(10)
                .max(columns.width_ms().saturating_mul(2)),
            columns,
        }
    }

    /// Returns points for each column with lines, which pauses part.
    fn points(&self, section: &Section<'_>, values: impl Fn(&Envelope) -> Vec<f64>) -> Vec<Point> {
        let (_, divisor) = section.unit(section.is_averaged());
        let mut points = Vec::new();
        let mut last = None;
        let middle = self.columns.width_ms() / 2;
        for (start, column) in self.columns.iter().filter(|(_, column)| column.count > 0) {
            let x = section.seconds(start.saturating_add(middle));
            if last.is_some_and(|last| start - last > self.pause_ms) {
                points.push(Point::new(x, None));
            }
            last = Some(start);
            let values = values(column).into_iter();
            points.extend(values.map(|value| Point::new(x, Some(value / divisor))));
        }
        points
    }
}

/// Returns the smallest and the largest value of each column.
fn envelope(section: &Section<'_>, all: &Overlay) -> Vec<Point> {
    all.points(section, |column| {
        vec![column.least as f64, column.most as f64]
    })
}

/// Returns lines between the smallest and the largest values: percentiles of single ops, else
/// means.
fn middle(section: &Section<'_>, all: &Overlay, course: &Course) -> Vec<Series> {
    if section.is_averaged() || !section.kind.is_latency() {
        let means = all.points(section, |column| column.mean().into_iter().collect());
        return vec![Series::measured("mean", 0, means)];
    }
    let (_, divisor) = section.unit(false);
    let (windows, start_ms) = windows(&course.columns, course.end_ms);
    let line = |name: &str, style, percent| {
        let points = at_windows(section, &windows, start_ms, |window| {
            of_window(window, percent, divisor)
        });
        Series::measured(name, style, points)
    };
    let lines = [line("p50", 0, 50.0), line("p99", 1, 99.0)];
    lines.into_iter().filter(Series::has_values).collect()
}

/// Returns a value of each window at its middle.
fn at_windows(
    section: &Section<'_>,
    windows: &Windows,
    start_ms: u64,
    value: impl Fn(&Window) -> Option<f64>,
) -> Vec<Point> {
    let width_ms = windows.width_ns / 1_000_000;
    let all = windows.windows.iter().enumerate();
    all.map(|(at, window)| {
        let start = start_ms.saturating_add(width_ms.saturating_mul(at as u64));
        Point::new(
            section.seconds(start.saturating_add(width_ms / 2)),
            value(window),
        )
    })
    .collect()
}

fn panel(section: &Section<'_>, direction: Direction, series: Vec<Series>) -> Panel {
    let (unit, _) = section.unit(section.is_averaged());
    let label = format!("{}, {}, {unit}", section.kind.word(), direction.name());
    Panel {
        across: Axis::new(section.time_label(), Scale::Linear),
        up: Axis::new(label, Scale::Auto),
        series,
    }
}

/// Draws the largest values of each log, or the means of rates.
fn by_log(page: &mut Page, section: &Section<'_>) {
    let named: Vec<_> = section.logs.iter().zip(&section.names).collect();
    let word = section.kind.word();
    match named.len() {
        0 | 1 => return,
        2..=SERIES_MAX => {}
        logs => {
            let text = format!("{logs} logs cannot be told apart in a figure; the table has each.");
            page.paragraph(&text);
            return;
        }
    }
    let of_rates = !section.kind.is_latency();
    let panels = Direction::ALL.into_iter().map(|direction| {
        let series = named.iter().enumerate().filter_map(|(style, (log, name))| {
            let (_, of_direction) = log.directions().find(|(of, _)| *of == direction)?;
            let points = Overlay::of(&[of_direction]).points(section, |column| match of_rates {
                true => column.mean().into_iter().collect(),
                false => vec![column.most as f64],
            });
            Some(Series::measured(name.as_str(), style, points))
        });
        panel(section, direction, series.collect())
    });
    let panels: Vec<Panel> = panels.filter(|panel| !panel.series.is_empty()).collect();
    let (title, caption) = match of_rates {
        true => (
            format!("Mean {word} by log"),
            "Mean of each column of time.",
        ),
        false => (format!("Largest {word} by log"), BY_LOG),
    };
    let name = format!("{word} by log");
    page.figure(Figure::new(name, caption, Plot { title, panels }.into()));
}

/// Draws how often each value was, over time.
fn heat_map(page: &mut Page, section: &Section<'_>, direction: Direction, course: &Course) {
    let (windows, start_ms) = windows(&course.columns, course.end_ms);
    let map = value_map(&windows);
    if windows.windows.len() < 2 || map.ends.len() < 3 {
        return;
    }
    let (unit, divisor) = section.unit(section.is_averaged());
    let word = section.kind.word();
    let width_ms = windows.width_ns / 1_000_000;
    let starts = (0..=windows.windows.len() as u64).map(|at| {
        let start = start_ms.saturating_add(width_ms.saturating_mul(at));
        section.seconds(start)
    });
    let values = map.ends.iter().map(|end| *end as f64 / divisor);
    let title = format!("{word} over time, {}: number of lines", direction.name());
    let picture = HeatMap {
        title,
        across: HeatAxis::ranges(section.time_label(), starts.collect(), Scale::Linear),
        up: HeatAxis::ranges(format!("{word}, {unit}"), values.collect(), Scale::Auto),
        cells: map.cells,
        quantity: "lines".into(),
        colours: Scale::Auto,
    };
    let name = format!("{word} heat map {}", direction.name());
    let caption = format!("{HEAT} A column is {width_ms} ms wide.");
    page.figure(Figure::new(name, caption, Picture::HeatMap(picture)));
}

/// Draws ops and bytes per second, from the ops that are logged.
pub(super) fn rates(page: &mut Page, section: &Section<'_>) {
    let mut panels: BTreeMap<&str, Vec<Series>> = BTreeMap::new();
    let mut width_ms = 0;
    for (style, direction) in Direction::ALL.into_iter().enumerate() {
        let Some(course) = section.of_kind.directions[style].as_ref() else {
            continue;
        };
        let (windows, start_ms) = windows(&course.columns, course.end_ms);
        if windows.whole() < 2 {
            continue;
        }
        width_ms = width_ms.max(windows.width_ns / 1_000_000);
        let seconds = windows.width_ns as f64 / 1e9;
        let ios = |window: &Window| window.ios as f64 / seconds;
        let mib = |window: &Window| window.bytes as f64 / seconds / f64::from(1 << 20);
        let ios = whole(section, &windows, start_ms, &ios);
        let mib = whole(section, &windows, start_ms, &mib);
        for (label, points) in [("IOPS", ios), ("MiB/s", mib)] {
            let series = steps(direction.name(), style, points);
            panels.entry(label).or_default().push(series);
        }
    }
    if panels.is_empty() {
        return;
    }
    let panels = panels.into_iter().map(|(label, series)| Panel {
        across: Axis::new(section.time_label(), Scale::Linear),
        up: Axis::new(label, Scale::Linear),
        series,
    });
    let plot = Plot {
        title: "Throughput over time".into(),
        panels: panels.collect(),
    };
    let caption = format!("{RATES} A step is {width_ms} ms long.");
    page.figure(Figure::new("throughput", caption, plot.into()));
}

/// Returns a value of each whole window at its start, and the end of the last one.
fn whole(
    section: &Section<'_>,
    windows: &Windows,
    start_ms: u64,
    value: &dyn Fn(&Window) -> f64,
) -> Vec<Point> {
    let width_ms = windows.width_ns / 1_000_000;
    let at = |index: usize| {
        section.seconds(start_ms.saturating_add(width_ms.saturating_mul(index as u64)))
    };
    let length = windows.whole().min(windows.windows.len());
    let all = windows.windows.iter().take(length).enumerate();
    let mut points: Vec<Point> = all
        .map(|(index, window)| Point::new(at(index), Some(value(window))))
        .collect();
    let last = points.last().copied();
    points.extend(last.map(|last| Point::new(at(length), last.y)));
    points
}

/// Style of the line from the smallest to the largest values.
const GREY: usize = 6;
const VALUES: &str = "The line runs through the smallest and the largest value of each column of \
                      time, so that a single slow op stays visible. It says nothing of how many \
                      ops were as slow: the percentiles do, where at least ten lines lie beyond.";
const BY_LOG: &str = "Largest value of each column of time. Largest values grow with the number of \
                      ops: logs of different lengths cannot be compared by them.";
const HEAT: &str = "The darker a cell, the more lines have such a value in that time; the largest \
                    of cells that share a pixel is shown.";
const RATES: &str = "Ops that are logged, by the time of their completion. Lines that a log has \
                     lost are missing here, and so are ops of jobs without a log.";
