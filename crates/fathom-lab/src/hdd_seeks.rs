//! Seek distances of a modelled hard disk, compared with the published ones.

use fathom_block::{Policy, SeekCounts};
use fathom_core::Direction;

use crate::machines::{LabMachine, MachineSetup, run_1m_ops};
use crate::published::rows;
use crate::table::{Cell, Column, Experiment, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series, Shape};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hdd-seeks",
    about: "distances between consecutive requests: 512 jobs, plain tags, nr_requests 2048, on a \
            modelled hard disk",
    origin: "Linux block mailing list, April 2022, \"improve tag allocation under heavy load\" \
             (v3): Linux 5.18-rc1, traced",
    has_plot: true,
};

/// Runs the experiment in virtual time.
#[must_use]
pub fn hdd_seeks() -> Table {
    let setup = MachineSetup {
        machine: LabMachine::Hdd,
        write_cache: false,
        policy: Policy::Plain,
        together: true,
        nr_requests: 2048,
        max_sectors_kib: 128,
        jobs: 512,
    };
    let (mib_s, seeks) = run_1m_ops(&setup, Direction::Write);
    table(&seeks, mib_s)
}

fn table(seeks: &SeekCounts, mib_s: f64) -> Table {
    let published = rows::<3>(PUBLISHED);
    let published: Vec<f64> = published.iter().map(|row| row[2].unwrap_or(0.0)).collect();
    let published_all: f64 = published.iter().sum();
    let buckets: Vec<_> = seeks.buckets().collect();
    let all: f64 = buckets.iter().map(|bucket| number(bucket.count)).sum();
    let mut table_rows = Vec::new();
    for place in 0..buckets.len().max(published.len()) {
        let count = buckets.get(place).map_or(0, |bucket| bucket.count);
        let known = published.get(place).copied();
        let to_kib = 1_u64 << place;
        let share = number(count) / all.max(1.0) * 100.0;
        let known_share = known.map(|known| known / published_all * 100.0);
        table_rows.push(vec![
            Cell::Count(if place == 0 { 0 } else { to_kib / 2 }),
            Cell::Count(to_kib),
            Cell::Count(count),
            Cell::Tenths(share),
            known.map_or(Cell::Missing, Cell::Rate),
            known_share.map_or(Cell::Missing, Cell::Tenths),
        ]);
    }
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        notes: vec![
            format!("modelled, virtual time: 110 s after a ramp of 10 s, {mib_s:.1} MiB/s"),
            format!(
                "{}, as the published distances suggest",
                LabMachine::Hdd.placement()
            ),
        ],
        panels: vec![panel(&table_rows)],
        rows: table_rows,
    }
}

/// Draws the shares as steps, with a marker in the middle of each published bucket.
fn panel(rows: &[Vec<Cell>]) -> Panel {
    let from = |row: &[Cell]| {
        let to_kib = row[1].number().unwrap_or(1.0);
        // The first bucket, without a seek, begins where the halving of the others ends.
        to_kib * 1024.0 / 2.0
    };
    let modelled = rows
        .iter()
        .map(|row| Point::new(from(row), row[3].number()));
    let end = rows.last().map(|row| Point::new(from(row) * 2.0, None));
    let known = rows.iter().filter(|row| row[5] != Cell::Missing);
    let middle = |row: &[Cell]| from(row) * std::f64::consts::SQRT_2;
    let known = known.map(|row| Point::new(middle(row), row[5].number()));
    let mut modelled = Series::measured("modelled", 0, modelled.chain(end));
    modelled.shape = Shape::Step;
    let mut published = Series::published("published", 1, known);
    published.shape = Shape::Scatter;
    Panel {
        across: Axis::new(
            "distance from the end of one request to the next",
            Scale::Bytes,
        ),
        up: Axis::new("requests, %", Scale::Linear),
        series: vec![modelled, published],
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
const fn number(count: u64) -> f64 {
    count as f64
}

fn columns() -> Vec<Column> {
    vec![
        Column::key("from_kib", "distance from").in_kib(),
        Column::key("to_kib", "to").in_kib(),
        Column::figure("count", "requests").in_group("modelled"),
        Column::figure("percent", "share, %").in_group("modelled"),
        Column::figure("published_count", "requests").in_group("published"),
        Column::figure("published_percent", "share, %").in_group("published"),
    ]
}

const PUBLISHED: &str = include_str!("../reference/hdd-seek-distances.csv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    #[test]
    fn buckets_are_compared_with_the_published_ones() {
        let mut seeks = SeekCounts::new();
        seeks.dispatch(0, 1024);
        seeks.dispatch(1024, 1024);
        seeks.dispatch(2048 + 128 * 1024, 1024);
        let table = table(&seeks, 1.0);
        assert_eq!(table.rows.len(), 28);
        assert_eq!(
            table.rows[0][2..5],
            [Cell::Count(1), Cell::Tenths(50.0), Cell::Rate(48_753.0)]
        );
        assert_eq!(table.rows[7][..3], [64, 128, 1].map(Cell::Count));
        assert_eq!(table.rows[7][4], Cell::Rate(4975.0));
        check_table(&table);
    }

    #[test]
    fn seeks_are_distributed_as_published() {
        let table = hdd_seeks();
        assert_eq!(
            table.rows.len(),
            28,
            "the span is that of the published seeks"
        );
        let share = |rows: std::ops::Range<usize>, column: usize| -> f64 {
            let cells = table.rows[rows].iter().map(|row| row[column].number());
            cells.map(Option::unwrap_or_default).sum()
        };
        let apart = |row: usize| (share(row..row + 1, 3) - share(row..row + 1, 5)).abs();
        let elsewhere = (0..28).map(apart).sum::<f64>() / 2.0;
        assert!(elsewhere <= 20.0, "{elsewhere} % are in other buckets");
        // No seek, seeks within an op, and seeks to other ops.
        for (rows, within) in [(0..1, 5.0), (1..11, 10.0), (11..28, 10.0)] {
            let (ours, published) = (share(rows.clone(), 3), share(rows.clone(), 5));
            let difference = (ours - published).abs();
            assert!(difference <= within, "{rows:?}: {ours} {published}");
        }
    }
}
