//! Effect of an I/O log on the latencies it records: reads of two priorities with a log that grows,
//! a preallocated log, and Fathom's.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_run::SchedulerGuard;
use fathom_sys::files;
use serde_json::Value;

use crate::command::output;
use crate::error::{CommandError, LabError};
use crate::plot::{Axis, Panel, Point, Scale, Series};
use crate::table::{Cell, Column, Experiment, Table};
use crate::work_folder::WorkFolder;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "log-entries",
    about: "completion latency with every op logged: libaio, random reads of 128 KiB at depth 32, \
            30 % of them at high priority",
    origin: "fio mailing list, \"Introduce the log_entries option\" (v2): a SATA disk with NCQ \
             priority",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntries {
    /// Block device, or a file on one; only read.
    pub target: PathBuf,
    /// Duration per run.
    pub seconds: u32,
    /// Path of this program.
    pub fathom: PathBuf,
    /// Path of fio, which may be missing.
    pub fio: PathBuf,
}

/// Checks that the target can be read. A pipe is not opened: that would block.
fn check_readable(target: &Path) -> io::Result<()> {
    let kind = files::FileKind::of(&std::fs::metadata(target)?);
    match kind {
        files::FileKind::Regular | files::FileKind::Block => std::fs::File::open(target).map(drop),
        _ => {
            let why = "neither a regular file nor a block device";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}

/// Runs the experiment. `tell` is called with the name of each run before it begins; `stops`
/// returns the number of interrupts so far.
///
/// # Errors
/// The target cannot be measured.
pub fn log_entries(
    config: &LogEntries,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, LabError> {
    check_readable(&config.target).map_err(|source| LabError::TargetNotReadable {
        target: config.target.clone(),
        source,
    })?;
    // Restores the scheduler on drop.
    let mut schedulers = SchedulerGuard::under(&config.target);
    schedulers.set(SCHEDULER)?;
    let folder = WorkFolder::new(NAME)?;
    let mut measured = Vec::new();
    let mut notes = vec![format!(
        "measured: {}, {SCHEDULER}, {} s per run",
        config.target.display(),
        config.seconds
    )];
    for (name, program, entries) in runs(config) {
        if stops() > 0 {
            notes.push(format!("{name}: interrupted"));
            measured.push(None);
            continue;
        }
        tell(name);
        let outcome = run(config, program, entries, folder.path(), stops);
        measured.push(match outcome {
            Ok(report) => Some(report),
            Err(source) if program == config.fathom && stops() == 0 => {
                return Err(LabError::Run { name, source });
            }
            Err(why) => {
                notes.push(format!("{name}: not measured: {why}"));
                None
            }
        });
    }
    drop(schedulers);
    Ok(table(&measured, notes))
}

/// Returns the three runs: name, program, `log_entries` if set.
fn runs(config: &LogEntries) -> [(&'static str, &Path, Option<u32>); 3] {
    [
        ("fio with log_entries=1024", &config.fio, Some(1024)),
        ("fio with log_entries=65536", &config.fio, Some(65_536)),
        ("fathom", &config.fathom, None),
    ]
}

/// Performs one run and returns its report.
fn run(
    config: &LogEntries,
    program: &Path,
    entries: Option<u32>,
    folder: &Path,
    stops: &dyn Fn() -> u32,
) -> Result<Value, CommandError> {
    let mut command = Command::new(program);
    if program == config.fathom {
        command.arg("run");
    }
    let log = folder.join("log");
    command.args(JOB);
    command.arg(format!("--filename={}", config.target.display()));
    command.arg(format!("--ioscheduler={SCHEDULER}"));
    command.arg(format!("--runtime={}", config.seconds));
    command.arg(format!("--write_lat_log={}", log.display()));
    command.arg(format!("--percentile_list={}", percents().join(":")));
    command.args(entries.map(|entries| format!("--log_entries={entries}")));
    let text = output(command, stops)?;
    // fio may print a note before the document.
    let from = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[from..]).map_err(CommandError::NotJson)
}

/// Builds the table: measured and published latency by priority and percentile.
fn table(measured: &[Option<Value>], notes: Vec<String>) -> Table {
    let mut rows = Vec::new();
    for (class, number, columns) in [("high", 1, [1, 2]), ("low", 0, [3, 4])] {
        for published in published() {
            let percent = published[0];
            let mut row = vec![Cell::Text(class.into()), Cell::Text(percent.into())];
            row.extend(measured.iter().map(|report| {
                let report = report.as_ref();
                report.map_or(Cell::Missing, |report| latency(report, number, percent))
            }));
            row.extend(columns.map(|column| {
                let millis = published.get(column).and_then(|text| text.parse().ok());
                millis.map_or(Cell::Missing, |millis: u64| Cell::Count(millis * 1000))
            }));
            rows.push(row);
        }
    }
    Table {
        experiment: EXPERIMENT,
        columns: columns(),
        panels: panels(&rows),
        rows,
        notes,
    }
}

/// Returns a percentile of one class, µs.
fn latency(report: &Value, class: u64, percent: &str) -> Cell {
    let prios = report["jobs"][0]["read"]["prios"].as_array();
    let mut of_class = prios.into_iter().flatten().filter(|prio| {
        // The class of ops without a priority is 0 (none) or 2 (best effort), by version.
        let found = prio["prioclass"].as_u64();
        found.is_some_and(|found| (found == 1) == (class == 1))
    });
    let percentiles = of_class.next().map(|prio| &prio["clat_ns"]["percentile"]);
    let key = percent.parse().map(|percent: f64| format!("{percent:.6}"));
    let value = percentiles.zip(key.ok()).map(|(all, key)| &all[key]);
    value
        .and_then(Value::as_u64)
        .map_or(Cell::Missing, |ns| Cell::Count(ns / 1000))
}

/// Returns the cells of the published table, row by row; the first cell is the percentile.
fn published() -> Vec<Vec<&'static str>> {
    let lines = PUBLISHED.lines().skip(1);
    lines.map(|line| line.split(',').collect()).collect()
}

fn percents() -> Vec<&'static str> {
    published().iter().map(|row| row[0]).collect()
}

/// Draws one panel per class, with rare percentiles to the right.
fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |class: &str| {
        let points = |column: usize| points(rows, class, column);
        let series = vec![
            Series::measured("fio, log_entries=1024", 0, points(2)),
            Series::measured("fio, log_entries=65536", 1, points(3)),
            Series::measured("fathom", 2, points(4)),
            Series::published("published, growing", 0, points(5)),
            Series::published("published, preallocated", 1, points(6)),
        ];
        Panel {
            across: Axis::new("one op in", Scale::Auto),
            up: Axis::new(format!("clat of {class} priority, µs"), Scale::Auto),
            series: series.into_iter().filter(Series::has_values).collect(),
        }
    };
    vec![panel("high"), panel("low")]
}

/// Returns the percentiles of a class in one column; the median is one op in 2, p99 one in 100.
fn points(rows: &[Vec<Cell>], class: &str, column: usize) -> Vec<Point> {
    let own = rows.iter().filter(|row| row[0] == Cell::Text(class.into()));
    let points = own.filter_map(|row| {
        let Cell::Text(percent) = &row[1] else {
            return None;
        };
        let percent: f64 = percent.parse().ok()?;
        Some(Point::new(100.0 / (100.0 - percent), row[column].number()))
    });
    points.collect()
}

/// Prefix of directory names, followed by a number.
const NAME: &str = "fathom-log-entries-";

/// Options of both programs.
const JOB: [&str; 12] = [
    "--name=log-entries",
    "--rw=randread",
    "--bs=128k",
    "--direct=1",
    "--ioengine=libaio",
    "--iodepth=32",
    "--cmdprio_percentage=30",
    "--log_prio=1",
    "--time_based",
    "--readonly",
    "--thread",
    "--output-format=json",
];

/// Scheduler that honours I/O priorities.
const SCHEDULER: &str = "mq-deadline";

fn columns() -> Vec<Column> {
    let published = |key, heading| Column::figure(key, heading).in_group("published, µs");
    vec![
        Column::key("class", "priority"),
        Column::key("percentile", "percentile"),
        Column::figure("fio_1024_us", "fio"),
        Column::figure("fio_65536_us", "fio"),
        Column::figure("fathom_us", "fathom"),
        published("published_growing_us", "growing"),
        published("published_preallocated_us", "preallocated"),
    ]
}

/// Published figures, ms.
const PUBLISHED: &str = include_str!("../reference/log-entries-percentiles.csv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    #[test]
    fn both_classes_have_published_figures() {
        let report = serde_json::json!({"jobs": [{"read": {"prios": [
            {"prioclass": 1, "clat_ns": {"percentile": {"1.000000": 2500, "99.990000": 9000}}},
            {"prioclass": 0, "clat_ns": {"percentile": {"1.000000": 7000}}},
        ]}}]});
        let table = table(&[None, None, Some(report)], Vec::new());
        assert_eq!(table.rows.len(), 2 * 17);
        assert!(table.rows.iter().all(|row| row.len() == columns().len()));
        let want = [
            Cell::Text("high".into()),
            Cell::Text("1".into()),
            Cell::Missing,
            Cell::Missing,
            Cell::Count(2),
            Cell::Count(14_000),
            Cell::Count(15_000),
        ];
        assert_eq!(table.rows[0], want);
        assert_eq!(table.rows[16][4], Cell::Count(9));
        assert_eq!(table.rows[17][4], Cell::Count(7));
        assert_eq!(table.rows[33][6], Cell::Count(1_053_000));
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
}
