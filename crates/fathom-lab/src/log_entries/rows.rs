//! Rows and plot of the table: latency by priority and percentile.

use super::{EXPERIMENT, PROGRAMS};
use crate::embedded::{value, whole};
use crate::lab::RunDone;
use crate::median::median;
use crate::table::{Cell, Column, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// Builds the table from the runs of each program, repeat by repeat.
pub(super) fn table(measured: &[Vec<&RunDone>; PROGRAMS], mut notes: Vec<String>) -> Table {
    let mut rows = Vec::new();
    for (class, metric, columns) in CLASSES {
        for published in published() {
            let percent = published[0];
            let metric = format!("read.{metric}_p{percent}_us");
            let figures = measured.each_ref().map(|runs| {
                let of = runs.iter().map(|run| value(run, &metric));
                // Medians are of all repeats or of none.
                let all: Option<Vec<f64>> = of.collect();
                Figure::of(&all.unwrap_or_default())
            });
            let mut row = vec![Cell::Text(class.into()), Cell::Text(percent.into())];
            row.extend(
                figures
                    .iter()
                    .map(|figure| figure.cell(|figure| figure.median)),
            );
            row.extend(columns.map(|column| {
                let millis = published.get(column).and_then(|text| text.parse().ok());
                millis.map_or(Cell::Missing, |millis: u64| Cell::Count(millis * 1000))
            }));
            row.extend(figures.iter().flat_map(|figure| {
                [
                    figure.cell(|figure| figure.low),
                    figure.cell(|figure| figure.high),
                ]
            }));
            rows.push(row);
        }
    }
    notes.extend(few_ops(&rows, measured));
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        panels: panels(&rows),
        rows,
        notes,
    }
}

/// Median over the repeats and its interval, µs; nothing without repeats.
struct Figure(Option<Interval>);

struct Interval {
    low: f64,
    median: f64,
    high: f64,
}

impl Figure {
    fn of(values: &[f64]) -> Self {
        let is_measured = !values.is_empty();
        let [low, median, high] = median(values);
        Self(is_measured.then_some(Interval { low, median, high }))
    }

    fn cell(&self, end: impl Fn(&Interval) -> f64) -> Cell {
        whole(self.0.as_ref().map(end))
    }
}

/// Returns a note on the percentiles of a program that are left out.
fn few_ops(rows: &[Vec<Cell>], measured: &[Vec<&RunDone>; PROGRAMS]) -> Option<String> {
    let is_lacking = |row: &&Vec<Cell>| {
        let medians = row[FIRST_MEDIAN..].iter().zip(measured);
        let mut lacking = medians.filter(|(cell, _)| **cell == Cell::Missing);
        lacking.any(|(_, runs)| !runs.is_empty())
    };
    let lacking = rows.iter().filter(is_lacking);
    let lacking = lacking.map(|row| format!("{} p{}", row[0].text(), row[1].text()));
    let lacking = lacking.collect::<Vec<_>>().join(", ");
    (!lacking.is_empty()).then(|| {
        format!("{lacking}: in a repeat fewer than ten ops lie beyond; --seconds measures longer")
    })
}

/// Returns the cells of the published table, row by row; the first cell is the percentile.
fn published() -> Vec<Vec<&'static str>> {
    let lines = PUBLISHED.lines().skip(1);
    lines.map(|line| line.split(',').collect()).collect()
}

/// Draws one panel per class, with rare percentiles to the right.
fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |class: &str| {
        let measured = |program: usize, name: &str| {
            let ends = Some((
                FIRST_INTERVAL + 2 * program,
                FIRST_INTERVAL + 2 * program + 1,
            ));
            let points = points(rows, class, FIRST_MEDIAN + program, ends);
            Series::measured(name, program, points)
        };
        let published = |at: usize, name: &str| {
            let points = points(rows, class, FIRST_PUBLISHED + at, None);
            Series::published(name, at, points)
        };
        let series = [
            measured(0, "fio, log_entries=1024"),
            measured(1, "fio, log_entries=65536"),
            measured(2, "fathom"),
            published(0, "published, growing"),
            published(1, "published, preallocated"),
        ];
        Panel {
            across: Axis::new("one op in … is slower (100: p99)", Scale::Auto),
            up: Axis::new(format!("clat of {class} priority, µs"), Scale::Auto),
            series: series.into_iter().filter(Series::has_values).collect(),
        }
    };
    vec![panel("high"), panel("low")]
}

/// Returns the percentiles of a class in one column, with the columns of their intervals; the
/// median is one op in 2, p99 one in 100.
fn points(
    rows: &[Vec<Cell>],
    class: &str,
    column: usize,
    ends: Option<(usize, usize)>,
) -> Vec<Point> {
    let own = rows.iter().filter(|row| row[0] == Cell::Text(class.into()));
    let points = own.filter_map(|row| {
        let percent: f64 = row[1].text().parse().ok()?;
        let interval = ends.and_then(|(low, high)| row[low].number().zip(row[high].number()));
        Some(Point {
            x: 100.0 / (100.0 - percent),
            y: row[column].number(),
            interval,
        })
    });
    points.collect()
}

fn columns() -> Vec<Column> {
    let programs = ["fio_1024_us", "fio_65536_us", "fathom_us"];
    let groups = [
        "fio, log_entries=1024, µs",
        "fio, log_entries=65536, µs",
        "fathom, µs",
    ];
    let programs = || programs.into_iter().zip(groups);
    let published = |key, heading| Column::figure(key, heading).in_group("published, µs");
    let mut columns = vec![
        Column::key("class", "priority"),
        Column::key("percentile", "percentile"),
    ];
    columns.extend(programs().map(|(key, group)| Column::figure(key, "median").in_group(group)));
    columns.push(published("published_growing_us", "growing"));
    columns.push(published("published_preallocated_us", "preallocated"));
    columns.extend(programs().flat_map(|(key, group)| {
        ["low", "high"].map(|end| Column::figure(format!("{key}_{end}"), end).in_group(group))
    }));
    columns
}

/// Classes of priorities, their metric, and their published columns.
const CLASSES: [(&str, &str, [usize; 2]); 2] =
    [("high", "clat_rt", [1, 2]), ("low", "clat_be", [3, 4])];

const FIRST_MEDIAN: usize = 2;
const FIRST_PUBLISHED: usize = FIRST_MEDIAN + PROGRAMS;
const FIRST_INTERVAL: usize = FIRST_PUBLISHED + 2;

/// Published figures, ms.
const PUBLISHED: &str = include_str!("../../reference/log-entries-percentiles.csv");

#[cfg(test)]
mod tests {
    use fathom_record::{JobRecord, PriorityRecord, Record};
    use fathom_stats::Latency;

    use super::*;
    use crate::table::check::{check_table, column};

    /// Returns a run whose reads at high priority took so long.
    fn run(high_ns: u64) -> RunDone {
        run_of(high_ns, 200_000)
    }

    fn run_of(high_ns: u64, high_ops: u64) -> RunDone {
        let of = |priority, ns, ops| {
            let mut latency = Latency::new(true);
            latency.record_n(ns, ops);
            PriorityRecord { priority, latency }
        };
        let mut job = JobRecord::default();
        job.directions.read.ios = 300_000;
        job.directions.read.priorities =
            vec![of(1 << 13, high_ns, high_ops), of(0, 7_000, 100_000)];
        RunDone::of_record(Record {
            jobs: vec![job],
            ..Record::default()
        })
    }

    #[test]
    fn both_classes_have_published_figures() {
        let runs = [2500, 4500, 3500].map(run);
        let fathom = runs.iter().collect();
        let table = table(&[Vec::new(), Vec::new(), fathom], Vec::new());
        assert!(table.notes.is_empty(), "{:?}", table.notes);
        assert_eq!(table.rows.len(), 2 * 17);
        let at = |row: usize, key: &str| table.rows[row][column(&table, key)].clone();
        assert_eq!(at(0, "class"), Cell::Text("high".into()));
        assert_eq!(at(0, "fio_65536_us"), Cell::Missing);
        assert_eq!(at(0, "fathom_us"), Cell::Count(4));
        assert_eq!(at(0, "fathom_us_low"), Cell::Count(3));
        assert_eq!(at(0, "fathom_us_high"), Cell::Count(5));
        assert_eq!(at(0, "published_growing_us"), Cell::Count(14_000));
        assert_eq!(at(16, "fathom_us"), Cell::Count(4));
        assert_eq!(at(17, "fathom_us"), Cell::Count(7));
        assert_eq!(at(33, "published_preallocated_us"), Cell::Count(1_053_000));
        let names = |panel: usize| {
            let series = table.panels[panel].series.iter();
            series
                .map(|series| series.name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(0)[0], "fathom", "what was not measured is not drawn");
        assert_eq!(
            names(1)[1..],
            ["published, growing", "published, preallocated"]
        );
        check_table(&table);
    }

    #[test]
    fn all_programs_are_drawn_with_their_intervals() {
        let runs = [2_000, 4_000].map(run);
        let all = [0; PROGRAMS].map(|_| runs.iter().collect());
        let table = table(&all, Vec::new());
        assert_eq!(table.panels[0].series.len(), 5);
        let first = table.panels[0].series[1].points[0];
        assert_eq!(first.interval, Some((2.0, 4.0)));
        check_table(&table);
    }

    #[test]
    fn percentiles_of_few_ops_are_left_out_and_told() {
        let few = run_of(2_000, 10_000);
        let table = table(&[Vec::new(), Vec::new(), vec![&few]], Vec::new());
        let of = |row: usize| table.rows[row][column(&table, "fathom_us")].clone();
        assert!(of(14).number().is_some(), "p99.9");
        assert_eq!(of(16), Cell::Missing, "p99.99");
        assert!(
            table.notes[0].starts_with("high p99.95, high p99.99: "),
            "{:?}",
            table.notes
        );
    }
}
