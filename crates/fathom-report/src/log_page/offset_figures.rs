//! Figures of offsets: where ops were over time, and how far apart.

use fathom_core::Direction;

use super::Section;
use super::distributions::steps;
use super::offsets::{OffsetMap, Offsets, Seeks};
use crate::page::{Figure, Page, Picture};
use crate::plot::{Axis, HeatAxis, HeatMap, Panel, Plot, Point, Scale};

/// Draws the offsets of each direction over time, and the distances between ops.
pub(super) fn figures(page: &mut Page, section: &Section<'_>) {
    page.heading(3, "Offsets");
    for direction in Direction::ALL {
        let map = Offsets::map(offsets(section, direction));
        if !map.columns.is_empty() {
            places(page, section, direction, map);
        }
    }
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (style, direction) in Direction::ALL.into_iter().enumerate() {
        let mut seeks = Seeks::default();
        offsets(section, direction).for_each(|one| seeks.merge(one.seeks()));
        if seeks.ops > 0 {
            rows.push(row(direction, &seeks));
        }
        if seeks.away() > 0 {
            series.push(steps(direction.name(), style, histogram(&seeks)));
        }
    }
    let heads = ["direction", "ops", "sequential", "forward", "backward"];
    page.table(
        "Ops after the one before of their log and direction",
        &heads,
        &rows,
    );
    if series.is_empty() {
        return;
    }
    let plot = Plot {
        title: "Distances between ops".into(),
        panels: vec![Panel {
            across: Axis::new("distance", Scale::Bytes),
            up: Axis::new("ops", Scale::Linear),
            series,
        }],
    };
    page.figure(Figure::new("seek distances", SEEKS, plot.into()));
}

fn offsets<'a>(
    section: &'a Section<'_>,
    direction: Direction,
) -> impl Iterator<Item = &'a Offsets> {
    let all = section.logs.iter().flat_map(|log| log.directions());
    let all = all.filter(move |(of, _)| *of == direction);
    all.filter_map(|(_, of_direction)| of_direction.offsets.as_ref())
}

fn places(page: &mut Page, section: &Section<'_>, direction: Direction, map: OffsetMap) {
    let rows = map.columns.iter().map(Vec::len).max().unwrap_or(0);
    let starts = (0..=map.columns.len() as u64).map(|at| {
        let after = map.width_ms.saturating_mul(at);
        section.seconds(map.start_ms.saturating_add(after))
    });
    let (unit, size) = unit(map.height.saturating_mul(rows as u64));
    let ends = (0..=rows as u64).map(|row| row as f64 * map.height as f64 / size);
    let cells = map.columns.iter().map(|column| {
        let counts = column.iter().map(|ops| (*ops > 0).then_some(*ops as f64));
        counts.collect()
    });
    let (width, height) = (map.width_ms, map.height / 1024);
    let picture = HeatMap {
        title: format!("Offsets over time, {}", direction.name()),
        across: HeatAxis::ranges(section.time_label(), starts.collect(), Scale::Linear),
        up: HeatAxis::ranges(format!("offset, {unit}"), ends.collect(), Scale::Linear),
        cells: cells.collect(),
        quantity: "ops".into(),
        colours: Scale::Auto,
    };
    let caption = format!("{PLACES} A cell is {width} ms and {height} KiB.");
    let name = format!("offsets {}", direction.name());
    page.figure(Figure::new(name, caption, Picture::HeatMap(picture)));
}

/// Returns the unit for offsets up to this one, and its size in bytes.
fn unit(most: u64) -> (&'static str, f64) {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let fitting = units.into_iter().find(|(_, size)| most >= 2 * size);
    let (name, size) = fitting.unwrap_or(("B", 1));
    (name, size as f64)
}

fn row(direction: Direction, seeks: &Seeks) -> Vec<String> {
    let share = |ops: u64| format!("{ops} ({:.1} %)", ops as f64 / seeks.ops as f64 * 100.0);
    vec![
        direction.name().to_owned(),
        seeks.ops.to_string(),
        share(seeks.sequential),
        share(seeks.forward),
        share(seeks.away() - seeks.forward),
    ]
}

/// Returns a step for each range of distances, at its lower end in bytes.
fn histogram(seeks: &Seeks) -> Vec<Point> {
    let distances = seeks.distances();
    let bytes = |kib: u64| kib as f64 * 1024.0;
    let mut points: Vec<Point> = distances
        .rows()
        .map(|(from, to, ops)| {
            // 0 has no place on a logarithmic axis.
            let start = if from == 0 {
                bytes(to) / 2.0
            } else {
                bytes(from)
            };
            Point::new(start, Some(ops as f64))
        })
        .collect();
    let last = distances.rows().last();
    points.extend(last.map(|(_, to, ops)| Point::new(bytes(to), Some(ops as f64))));
    points
}

const PLACES: &str = "Offsets of the ops of all logs by the time of their completion. Jobs with \
                      files of their own lie over each other here.";
const SEEKS: &str = "Distance from the end of an op to the start of the next one of its log and \
                     direction, in the order of completion. It is not the order in which a disk \
                     served them if several were in flight, and other jobs' ops come in between.";
