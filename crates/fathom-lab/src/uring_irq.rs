//! View of the lab `uring-irq`: interrupt-driven random reads of one sector on one CPU, depths 1 to
//! 64, with all percentiles.

use std::path::PathBuf;

use fathom_record::PeakLatency;

use crate::embedded::{EmbeddedLab, Measured, TableContext, value, whole};
use crate::error::LabError;
use crate::lab::RunDone;
use crate::readable;
use crate::table::{Cell, Column, Experiment, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "uring-irq",
    about: "io_uring, interrupt-driven random reads of one sector, one CPU, depths 1 to 64",
    origin: "io_uring mailing list, June 2022, \"tw contention improvements\" (v2): Linux \
             5.19-rc3 before and after, a second-generation Optane drive, 512 B",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UringIrq {
    /// File or block device to read.
    pub target: PathBuf,
    /// CPU to run on.
    pub cpu: u32,
    /// Duration per depth.
    pub seconds: u32,
}

/// Runs the experiment.
///
/// # Errors
/// The target cannot be measured.
pub fn uring_irq(asked: &UringIrq, context: &mut TableContext<'_>) -> Result<Table, LabError> {
    readable::check(&asked.target)?;
    let arguments = [("DEV", asked.target.as_path())];
    let mut lab = EmbeddedLab::read(EXPERIMENT.name, &arguments, context.environment)?;
    lab.set("cpu", &asked.cpu.to_string());
    lab.set("seconds", &asked.seconds.to_string());
    let measured = lab.run(context)?;
    let rows = rows(&measured);
    let mut notes = notes(asked, &measured);
    notes.extend(few_ops(&rows));
    Ok(table(rows, notes))
}

/// Returns the conditions.
fn notes(asked: &UringIrq, measured: &Measured) -> Vec<String> {
    let blocks = measured.runs.iter().filter_map(|(_, run)| {
        let read = &run.record.as_ref()?.jobs.first()?.directions.read;
        read.bytes.checked_div(read.ios)
    });
    let block = blocks.max().map(|bytes| format!(" {bytes} B,"));
    let mut notes = vec![format!(
        "measured: {},{} CPU {}, {} s per depth; latency from just before an op is prepared",
        asked.target.display(),
        block.unwrap_or_default(),
        asked.cpu,
        asked.seconds,
    )];
    notes.extend(measured.notes());
    notes
}

/// Returns a note per shown percentile that is left out at some depths.
fn few_ops(rows: &[Vec<Cell>]) -> Vec<String> {
    let note = |percent: &f64| {
        let at = PeakLatency::PERCENTS
            .iter()
            .position(|one| one == percent)?;
        let rows = rows.iter().filter(|row| row[2].text() == MEASURED);
        let lacking = rows.filter(|row| row[FIRST_PERCENTILE + at] == Cell::Missing);
        let depths: Vec<String> = lacking.map(|row| row[0].text()).collect();
        (!depths.is_empty()).then(|| {
            format!(
                "p{percent} at depth {}: fewer than ten ops lie beyond it; --seconds measures \
                 longer",
                depths.join(", ")
            )
        })
    };
    SHOWN_PERCENTS.iter().filter_map(note).collect()
}

fn table(rows: Vec<Vec<Cell>>, notes: Vec<String>) -> Table {
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        panels: panels(&rows),
        rows,
        notes,
    }
}

/// Returns measured and published figures, depth by depth.
fn rows(measured: &Measured) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for cell in 0..measured.plan.cells.len() {
        let key = ["depth", "batch"].map(|key| Cell::Count(measured.setting(cell, key)));
        rows.extend(measured.of(cell, 0).map(|run| row(&key, run)));
        rows.extend(published().filter(|row| row[0] == key[0]));
    }
    rows
}

fn row(key: &[Cell; 2], run: &RunDone) -> Vec<Cell> {
    let mut row = key.to_vec();
    row.extend([Cell::Text(MEASURED.into()), whole(value(run, "read.iops"))]);
    let percents = PeakLatency::PERCENTS.iter();
    row.extend(percents.map(|percent| whole(value(run, &format!("read.lat_p{percent}")))));
    row
}

/// Returns the published rows.
fn published() -> impl Iterator<Item = Vec<Cell>> {
    let row = |line: &str| {
        let (kernel, numbers) = line.split_once(',')?;
        let (word, name) = KERNELS.into_iter().find(|(word, _)| *word == kernel)?;
        let numbers = numbers.split(',').map(|number| number.parse().ok());
        let mut row: Vec<Cell> = numbers
            .map(|one| Some(Cell::Count(one?)))
            .collect::<Option<_>>()?;
        let name = name.to_owned();
        row.insert(2, Cell::Named { word, name });
        Some(row)
    };
    PUBLISHED.lines().skip(1).filter_map(row)
}

/// Returns the columns; in text, four of the percentiles.
fn columns() -> Vec<Column> {
    let percentile = |percent: &f64| {
        let name = format!("p{percent}");
        let key = format!("{}_ns", name.replace('.', "_"));
        if SHOWN_PERCENTS.contains(percent) {
            let column = Column::figure(key, &name).in_group("latency, µs");
            column.in_units_of(1e3, 1)
        } else {
            Column::hidden(key)
        }
    };
    let mut columns = vec![
        Column::key("depth", "depth"),
        Column::key("batch", "batch"),
        Column::key("source", "source"),
        Column::figure("iops", "kIOPS").in_units_of(1e3, 1),
    ];
    columns.extend(PeakLatency::PERCENTS.iter().map(percentile));
    columns
}

fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |up: &str, column: usize, unit: f64| Panel {
        across: Axis::new("depth", Scale::Doubling),
        up: Axis::new(up, Scale::Auto),
        series: vec![
            Series::measured(MEASURED, 0, points(rows, MEASURED, column, unit)),
            Series::published(BEFORE, 1, points(rows, BEFORE, column, unit)),
            Series::published(
                format!("{BEFORE} {AFTER}"),
                2,
                points(rows, AFTER, column, unit),
            ),
        ],
    };
    vec![
        panel("IOPS", IOPS_COLUMN, 1.0),
        panel("median latency, µs", P50_COLUMN, 1e3),
        panel("latency p99, µs", P99_COLUMN, 1e3),
    ]
}

fn points(rows: &[Vec<Cell>], source: &str, column: usize, unit: f64) -> Vec<Point> {
    let of = rows.iter().filter(|row| row[2].text() == source);
    let value = |row: &[Cell]| Some(row.get(column)?.number()? / unit);
    let points = of.filter_map(|row| Some(Point::new(row[0].number()?, value(row))));
    points.collect()
}

const MEASURED: &str = "measured";

/// Published kernels: words, and names for people.
const KERNELS: [(&str, &str); 2] = [("before", BEFORE), ("after", AFTER)];
const BEFORE: &str = "5.19-rc3";
const AFTER: &str = "with the patches";

/// Percentiles in text and Markdown; the others are in JSON and CSV.
const SHOWN_PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// Published figures.
const PUBLISHED: &str = include_str!("../reference/uring-irq-read.csv");

const IOPS_COLUMN: usize = 3;
const FIRST_PERCENTILE: usize = 4;
const P50_COLUMN: usize = 10;
const P99_COLUMN: usize = 16;

#[cfg(test)]
mod tests {
    use fathom_record::{DirectionRecord, JobRecord, Record};
    use fathom_stats::Latency;

    use super::*;
    use crate::embedded::tests::{measured, read};
    use crate::table::check::{check_table, column};

    /// Returns a run of `ops` reads.
    fn run(ops: u64) -> RunDone {
        let mut lat = Latency::new(true);
        lat.record_n(4_000, ops);
        let mut job = JobRecord::default();
        job.directions.read = DirectionRecord {
            bytes: ops * 512,
            ios: ops,
            runtime_ms: 1_000,
            lat: Some(lat),
            ..DirectionRecord::default()
        };
        RunDone::of_record(Record {
            jobs: vec![job],
            ..Record::default()
        })
    }

    #[test]
    fn every_published_row_is_read() {
        let rows: Vec<_> = published().collect();
        assert_eq!(rows.len(), 14);
        assert!(rows.iter().all(|row| row.len() == 4 + 17));
        assert_eq!(rows[6][0], Cell::Count(64));
        assert_eq!(rows[6][IOPS_COLUMN], Cell::Count(3_953_000));
    }

    #[test]
    fn percentiles_of_few_ops_are_left_out_and_told() {
        let lab = read("uring-irq", &[("DEV", "/dev/x")]);
        let ops = [9_999, 10_000, 100_000];
        let measured = measured(lab, &|cell, _| Some(run(*ops.get(cell)?)));
        let rows = rows(&measured);
        let notes = few_ops(&rows);
        let starts: Vec<&str> = notes
            .iter()
            .filter_map(|note| note.split(':').next())
            .collect();
        assert_eq!(starts, ["p99.9 at depth 1", "p99.99 at depth 1, 2"]);
        let table = table(rows, notes);
        let p99_99 = column(&table, "p99_99_ns");
        assert_eq!(table.rows[0][p99_99], Cell::Missing);
        assert!(table.rows[6][p99_99].number().is_some());
    }

    #[test]
    fn measured_rows_precede_published_ones_of_the_same_depth() {
        let lab = read("uring-irq", &[("DEV", "/dev/x")]);
        let measured = measured(lab, &|cell, _| (cell == 3).then(|| run(1_000_000)));
        let asked = UringIrq {
            target: "/dev/x".into(),
            cpu: 3,
            seconds: 1,
        };
        let notes = notes(&asked, &measured);
        assert!(
            notes[0].starts_with("measured: /dev/x, 512 B, CPU 3, 1 s"),
            "{notes:?}"
        );
        let table = table(rows(&measured), notes);
        assert_eq!(table.rows.len(), 15);
        assert_eq!(column(&table, "p50_ns"), P50_COLUMN);
        assert_eq!(column(&table, "p99_ns"), P99_COLUMN);
        let text = table.text(80);
        assert!(
            text.contains(" 5.19-rc3 ") && text.contains(" with the patches "),
            "{text}"
        );
        let is_measured = |row: &Vec<Cell>| row[2] == Cell::Text(MEASURED.into());
        // After two rows each of depths 1, 2 and 4.
        let at = table.rows.iter().position(is_measured).unwrap();
        assert_eq!((at, &table.rows[at][0]), (6, &Cell::Count(8)));
        assert_eq!(table.rows[at][1], Cell::Count(2));
        assert_eq!(
            table.panels[0].series[0].points,
            [Point::new(8.0, Some(1_000_000.0))]
        );
        assert_eq!(table.panels[0].series[1].points.len(), 7);
        check_table(&table);
    }
}
