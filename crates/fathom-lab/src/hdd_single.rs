//! Random writes of different sizes by one job to a modelled hard disk.

use fathom_block::Policy;
use fathom_core::{Direction, Nanos};

use crate::closed_loop::{Load, closed_loop, mib_per_second};
use crate::machines::{LabMachine, MachineSetup};
use crate::published::{error_percent, mean_and_worst, rows};
use crate::table::{Cell, Column, Experiment, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hdd-single",
    about: "one job, random writes of 128 KiB to 4 MiB to a modelled hard disk, write cache off",
    origin: "Linux block mailing list, April 2022, \"improve tag allocation under heavy load\" \
             (v3): Linux 5.18-rc1, one hard disk, max_sectors_kb 1280",
    has_plot: true,
};

/// Runs all block sizes in virtual time.
#[must_use]
pub fn hdd_single() -> Table {
    let mut errors = Vec::new();
    let mut table_rows = Vec::new();
    for [block, published] in rows::<2>(PUBLISHED) {
        let (Some(kib), Some(published)) = (block, published) else {
            continue;
        };
        let modelled = modelled(kib);
        errors.push(error_percent(modelled, published));
        table_rows.push(vec![
            Cell::Rate(kib),
            Cell::Tenths(modelled),
            Cell::Tenths(published),
            Cell::Tenths(error_percent(modelled, published)),
        ]);
    }
    let (mean, worst) = mean_and_worst(&errors).unwrap_or_default();
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        notes: vec![
            "modelled, virtual time: 110 s after a ramp of 10 s".into(),
            format!(
                "error: mean {mean:.1} %, worst {worst:.1} %; the transfer rate was fitted to \
                 these figures, the rest is from a data sheet"
            ),
        ],
        panels: vec![panel(&table_rows)],
        rows: table_rows,
    }
}

fn panel(rows: &[Vec<Cell>]) -> Panel {
    let points = |column: usize| {
        let rows = rows.iter();
        rows.filter_map(move |row| {
            Some(Point::new(row[0].number()? * 1024.0, row[column].number()))
        })
    };
    Panel {
        across: Axis::new("size of an op", Scale::Bytes),
        up: Axis::new("bandwidth, MiB/s", Scale::Auto),
        series: vec![
            Series::measured("modelled", 0, points(1)),
            Series::published("published", 1, points(2)),
        ],
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a published block size, a small whole number"
)]
fn modelled(kib: f64) -> f64 {
    let load = Load {
        jobs: 1,
        direction: Direction::Write,
        block: kib as u32 * 1024,
        stride: 1 << 30,
        region: 1 << 30,
        ramp: Nanos::from_secs(10),
        runtime: Nanos::from_secs(110),
    };
    let setup = MachineSetup {
        machine: LabMachine::Hdd,
        write_cache: false,
        policy: Policy::Plain,
        together: true,
        nr_requests: 64,
        max_sectors_kib: 1280,
        jobs: 1,
    };
    mib_per_second(closed_loop(&mut setup.stack(), &load), load.runtime)
}

fn columns() -> Vec<Column> {
    let bandwidth = |key, heading| Column::figure(key, heading).in_group("bandwidth, MiB/s");
    vec![
        Column::key("block_kib", "block").in_kib(),
        bandwidth("modelled_mib_s", "modelled"),
        bandwidth("published_mib_s", "published"),
        Column::figure("error_percent", "error, %"),
    ]
}

const PUBLISHED: &str = include_str!("../reference/hdd-single-io.csv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    #[test]
    fn the_disk_writes_blocks_as_fast_as_published() {
        let table = hdd_single();
        assert_eq!(table.rows.len(), 7);
        check_table(&table);
        for row in &table.rows {
            let Cell::Tenths(error) = row[3] else {
                panic!("no error in {row:?}");
            };
            assert!(error.abs() <= 10.0, "{row:?}");
        }
    }
}
