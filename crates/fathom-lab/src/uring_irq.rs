//! Interrupt-driven random reads of one sector on one CPU, depths 1 to 64, with all percentiles.

use std::path::PathBuf;

use fathom_core::Nanos;
use fathom_peak::{PeakConfig, PeakEngine, PeakError, SWEEP_DEPTHS, block_of, peak};
use fathom_record::{PeakLatency, PeakPoint};
use fathom_stats::BEYOND_MIN;

use crate::plot::{Axis, Panel, Point, Scale, Series};
use crate::table::{Cell, Column, Experiment, Table};

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

/// Runs the experiment. `tell` is called with each depth before it is measured; `stops` returns the
/// number of interrupts so far.
///
/// # Errors
/// The target cannot be measured.
pub fn uring_irq(
    asked: &UringIrq,
    tell: &mut dyn FnMut(u32),
    stops: &dyn Fn() -> u32,
) -> Result<Table, PeakError> {
    let block = block_of(&asked.target);
    let mut points = Vec::new();
    for depth in SWEEP_DEPTHS {
        tell(depth);
        let config = config(asked, block).at_depth(depth);
        let outcome = peak(&config, &mut |_second| {}, stops)?;
        points.push(outcome.into_point(&config));
        if stops() > 0 {
            break;
        }
    }
    let mut notes = vec![format!(
        "measured: {}, {block} B, CPU {}, {} s per depth; latency from just before an op is \
         prepared",
        asked.target.display(),
        asked.cpu,
        asked.seconds,
    )];
    notes.extend(few_ops(&points));
    Ok(table(&points, notes))
}

/// Returns a note per shown percentile that rests on fewer than ten ops at some depths.
fn few_ops(points: &[PeakPoint]) -> Vec<String> {
    let note = |percent: &f64| {
        let beyond = |point: &PeakPoint| (100.0 - percent) / 100.0 * float(point.ops);
        let is_rare = |point: &&PeakPoint| beyond(point) < BEYOND_MIN - ROUNDING;
        let depths = points.iter().filter(is_rare);
        let depths: Vec<String> = depths.map(|point| point.depth.to_string()).collect();
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

#[expect(clippy::cast_precision_loss, reason = "a rough number of ops")]
const fn float(number: u64) -> f64 {
    number as f64
}

fn config(asked: &UringIrq, block: u32) -> PeakConfig {
    PeakConfig {
        targets: vec![asked.target.clone()],
        engine: PeakEngine::Uring,
        depth: 1,
        submit: 1,
        complete: 1,
        block_bytes: block,
        threads: 1,
        polled: false,
        sequential: false,
        buffered: false,
        fixed_buffers: true,
        fixed_files: true,
        register_ring: true,
        nops: false,
        write: false,
        cpu: Some(asked.cpu),
        latency: true,
        duration: Nanos::from_secs(u64::from(asked.seconds)),
    }
}

/// Builds the table: measured and published figures, depth by depth.
fn table(points: &[PeakPoint], notes: Vec<String>) -> Table {
    let published = published();
    let mut rows = Vec::new();
    for depth in SWEEP_DEPTHS {
        rows.extend(
            points
                .iter()
                .filter(|point| point.depth == depth)
                .map(measured),
        );
        let same = published.iter().filter(|row| row.depth == depth);
        rows.extend(same.map(Published::row));
    }
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        panels: panels(&rows),
        rows,
        notes,
    }
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

fn measured(point: &PeakPoint) -> Vec<Cell> {
    let mut row = vec![
        Cell::Count(point.depth.into()),
        Cell::Count(point.submit.into()),
        Cell::Text("measured".into()),
        Cell::Rate(point.iops_mean),
    ];
    let at = |percent: &f64| point.lat.as_ref().and_then(|lat| lat.at(*percent));
    let percents = PeakLatency::PERCENTS.iter();
    row.extend(percents.map(|percent| at(percent).map_or(Cell::Missing, Cell::Count)));
    row
}

/// Row of the published table.
struct Published {
    depth: u32,
    batch: u32,
    source: Cell,
    iops: u64,
    percentiles_ns: Vec<u64>,
}

impl Published {
    fn read(line: &str) -> Option<Self> {
        let mut cells = line.split(',');
        let (source, depth) = (cells.next()?, cells.next()?.parse().ok()?);
        let (batch, iops) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
        let percentiles_ns = cells.map(|cell| cell.parse().ok()).collect::<Option<_>>()?;
        let kernels = [("before", BEFORE), ("after", AFTER)];
        let named = |(word, name): (_, &str)| {
            let name = || name.to_owned();
            (word == source).then(|| Cell::Named { word, name: name() })
        };
        Some(Self {
            depth,
            batch,
            source: kernels.into_iter().find_map(named)?,
            iops,
            percentiles_ns,
        })
    }

    fn row(&self) -> Vec<Cell> {
        let mut row = vec![
            Cell::Count(self.depth.into()),
            Cell::Count(self.batch.into()),
            self.source.clone(),
            Cell::Count(self.iops),
        ];
        row.extend(self.percentiles_ns.iter().copied().map(Cell::Count));
        row
    }
}

fn published() -> Vec<Published> {
    PUBLISHED
        .lines()
        .skip(1)
        .filter_map(Published::read)
        .collect()
}

fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |up: &str, column: usize, unit: f64| Panel {
        across: Axis::new("depth", Scale::Doubling),
        up: Axis::new(up, Scale::Auto),
        series: vec![
            Series::measured("measured", 0, points(rows, "measured", column, unit)),
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

/// Names of the published kernels, for people; in JSON they are `before` and `after`.
const BEFORE: &str = "5.19-rc3";
const AFTER: &str = "with the patches";

/// Percentiles in text and Markdown; the others are in JSON and CSV.
const SHOWN_PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 99.99];

/// Published figures; `before` and `after` are the two kernels.
const PUBLISHED: &str = include_str!("../reference/uring-irq-read.csv");

/// Of ten ops that lie beyond a percentile by count, the product may be slightly less.
const ROUNDING: f64 = 1e-6;

const IOPS_COLUMN: usize = 3;
const P50_COLUMN: usize = 10;
const P99_COLUMN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::{check_table, column};

    #[test]
    fn every_published_row_is_read() {
        let rows = published();
        assert_eq!(rows.len(), 14);
        assert!(rows.iter().all(|row| row.percentiles_ns.len() == 17));
        assert_eq!((rows[6].depth, rows[6].iops), (64, 3_953_000));
    }

    #[test]
    fn percentiles_of_few_ops_are_told() {
        let point = |depth, ops| PeakPoint {
            depth,
            ops,
            ..PeakPoint::default()
        };
        assert!(few_ops(&[point(1, 100_000)]).is_empty());
        let notes = few_ops(&[point(1, 9_999), point(2, 10_000), point(4, 100_000)]);
        let starts: Vec<&str> = notes
            .iter()
            .filter_map(|note| note.split(':').next())
            .collect();
        assert_eq!(starts, ["p99.9 at depth 1", "p99.99 at depth 1, 2"]);
    }

    #[test]
    fn measured_rows_precede_published_ones_of_the_same_depth() {
        let point = PeakPoint {
            depth: 8,
            submit: 2,
            iops_mean: 1000.4,
            lat: Some(PeakLatency::default()),
            ..PeakPoint::default()
        };
        let table = table(&[point], Vec::new());
        assert_eq!(table.rows.len(), 15);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
        assert_eq!(column(&table, "p50_ns"), P50_COLUMN);
        assert_eq!(column(&table, "p99_ns"), P99_COLUMN);
        assert_eq!(column(&table, "p99_99_ns"), table.columns.len() - 1);
        let text = table.text(80);
        assert!(
            text.contains(" 5.19-rc3 ") && text.contains(" with the patches "),
            "{text}"
        );
        let measured = table
            .rows
            .iter()
            .position(|row| row[3] == Cell::Rate(1000.4));
        // After two rows each of depths 1, 2 and 4.
        assert_eq!(measured, Some(6));
        assert_eq!(
            table.panels[0].series[0].points,
            [Point::new(8.0, Some(1000.4))]
        );
        assert_eq!(table.panels[0].series[1].points.len(), 7);
        check_table(&table);
    }
}
