//! Reads of two priorities with an I/O log that grows, one that need not, and Fathom's: what a log
//! does to the latencies that it logs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_run::KeptSchedulers;
use fathom_setup::Problem;
use fathom_sys::files;
use fathom_sys::lease::Lease;
use serde_json::Value;

use crate::command::output;
use crate::plot::{Panel, Series};
use crate::table::{Cell, Experiment, Table};

/// This experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "log-entries",
    about: "libaio, random reads of 128 KiB at depth 32, 30 % of them of high priority, every op \
            logged: completion latency",
    origin: "fio mailing list, \"Introduce the log_entries option\" (v2): a SATA disk with NCQ \
             priority",
};

/// What can be chosen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntries {
    /// A block device, or a file on one; only read.
    pub target: PathBuf,
    /// For each of the three runs.
    pub seconds: u32,
    /// This program.
    pub fathom: PathBuf,
    /// fio, if it is there.
    pub fio: PathBuf,
}

/// Finds out whether there is anything to measure. A pipe is not opened: it would be waited for.
fn readable(target: &Path) -> io::Result<()> {
    let kind = files::Kind::of(&std::fs::metadata(target)?);
    match kind {
        files::Kind::Regular | files::Kind::Block => std::fs::File::open(target).map(drop),
        _ => {
            let why = "neither a regular file nor a block device";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}

/// Measures; `tell` hears of each run before it begins, `stops` says how often the user asked to
/// stop.
///
/// # Errors
/// Why the target cannot be measured.
pub fn log_entries(
    asked: &LogEntries,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, Problem> {
    if let Err(error) = readable(&asked.target) {
        let message = format!("{}: {error}", asked.target.display());
        return Err(Problem::new("target_not_readable", message));
    }
    // Whatever scheduler there was is there again when this goes.
    let mut schedulers = KeptSchedulers::under(&asked.target);
    schedulers.set(SCHEDULER)?;
    let folder = Folder::new()?;
    let mut measured = Vec::new();
    let mut notes = vec![format!(
        "measured: {}, {SCHEDULER}, {} s for each run",
        asked.target.display(),
        asked.seconds
    )];
    for (name, program, entries) in runs(asked) {
        if stops() > 0 {
            notes.push(format!("{name}: interrupted"));
            measured.push(None);
            continue;
        }
        tell(name);
        let outcome = run(asked, program, entries, folder.0.path(), stops);
        measured.push(match outcome {
            Ok(report) => Some(report),
            Err(why) if program == asked.fathom && stops() == 0 => {
                return Err(Problem::new("log_entries_run", format!("{name}: {why}")));
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

/// The three runs: name, program, entries of its log where that is chosen.
fn runs(asked: &LogEntries) -> [(&'static str, &Path, Option<u32>); 3] {
    [
        ("fio with log_entries=1024", &asked.fio, Some(1024)),
        ("fio with log_entries=65536", &asked.fio, Some(65_536)),
        ("fathom", &asked.fathom, None),
    ]
}

/// One run; its report, or why there is none.
fn run(
    asked: &LogEntries,
    program: &Path,
    entries: Option<u32>,
    folder: &Path,
    stops: &dyn Fn() -> u32,
) -> Result<Value, String> {
    let mut command = Command::new(program);
    if program == asked.fathom {
        command.arg("run");
    }
    let log = folder.join("log");
    command.args(JOB);
    command.arg(format!("--filename={}", asked.target.display()));
    command.arg(format!("--ioscheduler={SCHEDULER}"));
    command.arg(format!("--runtime={}", asked.seconds));
    command.arg(format!("--write_lat_log={}", log.display()));
    command.arg(format!("--percentile_list={}", percents().join(":")));
    command.args(entries.map(|entries| format!("--log_entries={entries}")));
    let text = output(command, stops)?;
    // fio may say something before.
    let from = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[from..]).map_err(|error| error.to_string())
}

/// Priority by priority, percentile by percentile: what was measured, and what was published.
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
        columns: COLUMNS.map(String::from).to_vec(),
        panels: panels(&rows),
        rows,
        notes,
    }
}

/// A percentile of one class, µs.
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

/// The lines of the published table, cell by cell; the first cell is the percentile.
fn published() -> Vec<Vec<&'static str>> {
    let lines = PUBLISHED.lines().skip(1);
    lines.map(|line| line.split(',').collect()).collect()
}

fn percents() -> Vec<&'static str> {
    published().iter().map(|row| row[0]).collect()
}

/// One panel a class; percentiles lie as far to the right as they are rare.
fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |class: &str| Panel {
        across: "one op in".into(),
        up: format!("clat of {class} priority, µs"),
        series: COLUMNS[FIRST..]
            .iter()
            .enumerate()
            .map(|(index, name)| series(rows, class, name, FIRST + index))
            .collect(),
    };
    vec![panel("high"), panel("low")]
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn series(rows: &[Vec<Cell>], class: &str, name: &str, column: usize) -> Series {
    let own = rows.iter().filter(|row| row[0] == Cell::Text(class.into()));
    let points = own.filter_map(|row| match (&row[1], &row[column]) {
        (Cell::Text(percent), Cell::Count(us)) => {
            let percent: f64 = percent.parse().ok()?;
            Some((100.0 / (100.0 - percent), *us as f64))
        }
        _ => None,
    });
    Series {
        name: name.trim_end_matches("_us").into(),
        points: points.collect(),
    }
}

/// A folder for logs, removed with what is in it; by the next one if this is killed.
struct Folder(Lease);

impl Folder {
    fn new() -> Result<Self, Problem> {
        let parent = std::env::temp_dir();
        for left in Lease::abandoned(&parent, NAME) {
            let _not_ours = std::fs::remove_dir_all(left.path());
        }
        Lease::new_folder(&parent, NAME).map(Self).map_err(|error| {
            let message = format!("no folder for logs: {}: {error}", parent.display());
            Problem::new("no_folder", message)
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_dir_all(self.0.path());
    }
}

/// Folders are called so, with a number behind.
const NAME: &str = "fathom-log-entries-";

/// Same for both programs.
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

/// One that heeds priorities.
const SCHEDULER: &str = "mq-deadline";

const COLUMNS: [&str; 7] = [
    "class",
    "percentile",
    "fio_1024_us",
    "fio_65536_us",
    "fathom_us",
    "published_growing_us",
    "published_preallocated_us",
];

/// The first column that is measured.
const FIRST: usize = 2;

/// The published figures, ms.
const PUBLISHED: &str = include_str!("../reference/log-entries-percentiles.csv");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_classes_stand_beside_what_was_published() {
        let report = serde_json::json!({"jobs": [{"read": {"prios": [
            {"prioclass": 1, "clat_ns": {"percentile": {"1.000000": 2500, "99.990000": 9000}}},
            {"prioclass": 0, "clat_ns": {"percentile": {"1.000000": 7000}}},
        ]}}]});
        let table = table(&[None, None, Some(report)], Vec::new());
        assert_eq!(table.rows.len(), 2 * 17);
        assert!(table.rows.iter().all(|row| row.len() == COLUMNS.len()));
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
        assert_eq!(table.panels[0].series[2].points.len(), 2);
        assert_eq!(table.panels[1].series[3].points.len(), 17);
    }
}
