//! Cost of submission: by the job itself, which blocks when the kernel does, and by offload
//! workers.

mod ops;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use fathom_sys::lease::Lease;
use serde_json::Value;

use crate::command::output;
use crate::error::{CommandError, LabError};
use crate::table::{Cell, Column, Experiment, Table};
use crate::throttle::Throttle;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aio-submit",
    about: "random reads and writes of 4 KiB at depth 32, submitted inline and by offload workers",
    origin: "kernel and linux-aio lists, July 2012, \"Make io_submit non-blocking\": libaio, \
             a disk with ext4 and a RAM disk",
    has_plot: false,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AioSubmit {
    /// Directory on the disk; a file is created there and removed.
    pub folder: PathBuf,
    /// Duration per run.
    pub seconds: u32,
    /// Path of this program.
    pub fathom: PathBuf,
}

/// Runs the experiment. `tell` is called with the name of each run before it begins; `stops`
/// returns the number of interrupts so far.
///
/// # Errors
/// The directory cannot be measured.
pub fn aio_submit(
    config: &AioSubmit,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, LabError> {
    let mut notes = vec![format!("{} s per run", config.seconds)];
    let mut rows = Vec::new();
    for target in test_files(config, &mut notes, stops)? {
        let mut ratios = Vec::new();
        for (engine, options) in ENGINES {
            let pair = MODES.map(|mode| {
                let name = format!("{}, {engine}, {mode}", target.name);
                if stops() > 0 {
                    return None;
                }
                tell(&name);
                let run = run(config, &target, options, mode, stops);
                run.inspect_err(|why| notes.push(format!("{name}: not measured: {why}")))
                    .ok()
            });
            ratios.extend(ratio(&pair).map(|ratio| format!("{engine} {ratio:.1}")));
            for (mode, report) in MODES.into_iter().zip(&pair) {
                for direction in ["read", "write"] {
                    rows.push(row(&target, engine, mode, direction, report.as_ref()));
                }
            }
        }
        if !ratios.is_empty() {
            notes.push(format!(
                "{}: mean slat of reads, inline ÷ offload: {}",
                target.name,
                ratios.join(", ")
            ));
        }
    }
    notes.extend(ops::note(&rows, DIRECTION));
    if stops() > 0 {
        notes.push("interrupted; the remaining runs are missing".into());
    }
    Ok(table(rows, notes))
}

fn table(rows: Vec<Vec<Cell>>, notes: Vec<String>) -> Table {
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        rows,
        notes,
        panels: Vec::new(),
    }
}

/// File under test.
struct TestFile {
    name: &'static str,
    /// Name in the published table.
    published: &'static str,
    file: Rc<OwnFile>,
    throttle: Option<Throttle>,
}

/// Temporary file; removed on drop, or by the next run if this one is killed.
struct OwnFile(Lease);

impl OwnFile {
    fn new(folder: &Path) -> io::Result<Self> {
        for left in Lease::abandoned(folder, NAME) {
            let _not_ours = std::fs::remove_file(left.path());
        }
        Lease::new_file(folder, NAME).map(Self)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _left_behind = std::fs::remove_file(self.path());
    }
}

/// Creates the test files: on the disk, on the disk with an IOPS limit if possible, and in memory.
fn test_files(
    config: &AioSubmit,
    notes: &mut Vec<String>,
    stops: &dyn Fn() -> u32,
) -> Result<Vec<TestFile>, LabError> {
    let mut test_files = Vec::new();
    for (name, published, folder) in [
        ("disk", "", config.folder.as_path()),
        ("memory", "ramdisk", Path::new("/dev/shm")),
    ] {
        match OwnFile::new(folder) {
            Ok(file) => test_files.push(TestFile {
                name,
                published,
                file: Rc::new(file),
                throttle: None,
            }),
            Err(error) if name == "disk" => {
                return Err(LabError::FileNotCreated {
                    folder: folder.to_owned(),
                    source: error,
                });
            }
            Err(error) => notes.push(format!("{name}: not measured: {error}")),
        }
    }
    for target in &test_files {
        lay_out(config, target, stops).map_err(LabError::Layout)?;
    }
    match Throttle::new(test_files[0].file.path(), LIMIT_IOPS) {
        Ok(throttle) => test_files.insert(
            0,
            TestFile {
                name: "disk limited to 300 IOPS",
                published: "disk",
                file: Rc::clone(&test_files[0].file),
                throttle: Some(throttle),
            },
        ),
        Err(why) => notes.push(format!("disk limited to 300 IOPS: not measured: {why}")),
    }
    Ok(test_files)
}

fn lay_out(
    config: &AioSubmit,
    target: &TestFile,
    stops: &dyn Fn() -> u32,
) -> Result<(), CommandError> {
    let mut command = Command::new(&config.fathom);
    command.args([
        "run",
        "--name=layout",
        "--rw=write",
        "--bs=1m",
        "--end_fsync=1",
    ]);
    command.arg(format!("--size={FILE_BYTES}"));
    command.arg(format!("--filename={}", target.file.path().display()));
    output(command, stops).map(|_report| ())
}

/// Runs one combination and returns its job's part of the JSON report.
fn run(
    config: &AioSubmit,
    target: &TestFile,
    options: &[&str],
    mode: &str,
    stops: &dyn Fn() -> u32,
) -> Result<Value, CommandError> {
    let mut command = match &target.throttle {
        Some(throttle) => throttle.command(&config.fathom),
        None => Command::new(&config.fathom),
    };
    command.arg("run").args(JOB).args(options);
    command.arg(format!("--size={FILE_BYTES}"));
    command.arg(format!("--io_submit_mode={mode}"));
    command.arg(format!("--runtime={}", config.seconds));
    command.arg(format!("--filename={}", target.file.path().display()));
    let text = output(command, stops)?;
    let report: Value = serde_json::from_str(&text).map_err(CommandError::NotJson)?;
    Ok(report["jobs"][0].clone())
}

fn row(
    target: &TestFile,
    engine: &str,
    mode: &str,
    direction: &str,
    job: Option<&Value>,
) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(text.into());
    let own = job.map(|job| &job[direction]);
    let number = |path: &str| {
        own.and_then(|own| own.pointer(path))
            .and_then(Value::as_f64)
    };
    let micros = |path: &str| number(path).map_or(Cell::Missing, |ns| Cell::Ratio(ns / 1e3));
    let queued = job.and_then(|job| job.pointer(&format!("/fathom/{direction}/queued_ns/mean")));
    let cpu = |name: &str| job.and_then(|job| job[name].as_f64()).unwrap_or(0.0);
    let count = ops::ops(job, direction);
    let mut row = vec![
        text(target.name),
        text(engine),
        text(mode),
        ops::direction_cell(direction, count),
        number("/iops").map_or(Cell::Missing, Cell::Rate),
        number("/bw").map_or(Cell::Missing, Cell::Rate),
        micros("/slat_ns/mean"),
        micros("/slat_ns/max"),
        queued
            .and_then(Value::as_f64)
            .map_or(Cell::Missing, |ns| Cell::Ratio(ns / 1e3)),
        micros("/clat_ns/mean"),
        micros("/clat_ns/percentile/99.000000"),
        job.map_or(Cell::Missing, |_| {
            Cell::Ratio(cpu("usr_cpu") + cpu("sys_cpu"))
        }),
    ];
    row.extend(published(target, engine, mode, direction));
    row.push(count.map_or(Cell::Missing, Cell::Count));
    row
}

/// Returns the published figures of a run: IOPS, mean and maximum slat, mean and p99 clat.
fn published(target: &TestFile, engine: &str, mode: &str, direction: &str) -> [Cell; 5] {
    let mode = if mode == "offload" {
        "handed_off"
    } else {
        mode
    };
    let lines = PUBLISHED.lines().map(|line| line.split(',').collect());
    let mut lines = lines.filter(|cells: &Vec<&str>| {
        engine == ENGINES[0].0 && cells[..3] == [target.published, mode, direction]
    });
    let line = lines.next().unwrap_or_default();
    std::array::from_fn(|index| {
        let number = line.get(index + 3).and_then(|text| text.parse().ok());
        number.map_or(Cell::Missing, Cell::Ratio)
    })
}

/// Returns how many times shorter the submission of reads is with offload.
fn ratio(pair: &[Option<Value>; 2]) -> Option<f64> {
    let mean = |job: &Option<Value>| job.as_ref()?.pointer("/read/slat_ns/mean")?.as_f64();
    let [inline, offload] = [mean(&pair[0])?, mean(&pair[1])?];
    (offload > 0.0).then(|| inline / offload)
}

/// Prefix of file names, followed by a number.
const NAME: &str = "fathom-aio-submit-";

/// Names and options of the engines; the first one is the published one.
const ENGINES: [(&str, &[&str]); 3] = [
    ("libaio buffered", &["--ioengine=libaio", "--direct=0"]),
    ("libaio direct", &["--ioengine=libaio", "--direct=1"]),
    ("io_uring buffered", &["--ioengine=io_uring", "--direct=0"]),
];

const MODES: [&str; 2] = ["inline", "offload"];

/// Options of all runs.
const JOB: [&str; 8] = [
    "--name=aio-submit",
    "--rw=randrw",
    "--bs=4k",
    "--iodepth=32",
    "--iodepth_batch=1",
    "--time_based",
    "--thread",
    "--output-format=json",
];

/// IOPS of a disk of 2012.
const LIMIT_IOPS: u32 = 300;

/// More than is read in a few seconds, so that reads do not hit the page cache.
const FILE_BYTES: u64 = 512 << 20;

fn columns() -> Vec<Column> {
    let tenths = |key, heading, group| {
        let column = Column::figure(key, heading).in_units_of(1.0, 1);
        column.in_group(group)
    };
    let whole = |key, heading| Column::figure(key, heading).in_units_of(1.0, 0);
    vec![
        Column::section("place"),
        Column::key("engine", "engine"),
        Column::key("mode", "submit"),
        Column::key("direction", "op"),
        whole("iops", "measured").in_group("IOPS"),
        Column::hidden("bw_kib_per_s"),
        tenths("slat_us_mean", "mean", "slat, µs"),
        tenths("slat_us_max", "max", "slat, µs"),
        Column::figure("queued_us_mean", "queued, µs").in_units_of(1.0, 1),
        tenths("clat_us_mean", "mean", "clat, µs"),
        tenths("clat_us_p99", "p99", "clat, µs"),
        Column::figure("cpu_percent", "CPU, %").in_units_of(1.0, 1),
        whole("published_iops", "published").in_group("IOPS"),
        tenths("published_slat_us_mean", "mean", "published slat, µs"),
        tenths("published_slat_us_max", "max", "published slat, µs"),
        tenths("published_clat_us_mean", "mean", "published clat, µs"),
        tenths("published_clat_us_p99", "p99", "published clat, µs"),
        Column::hidden("ops"),
    ]
}

/// Column of the direction.
const DIRECTION: usize = 3;

/// The published figures.
const PUBLISHED: &str = include_str!("../reference/aio-submit-latency.csv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    fn target(published: &'static str) -> TestFile {
        TestFile {
            name: "here",
            published,
            file: Rc::new(OwnFile::new(&std::env::temp_dir()).unwrap()),
            throttle: None,
        }
    }

    #[test]
    fn only_libaio_buffered_has_published_figures() {
        let job = serde_json::json!({
            "usr_cpu": 1.5, "sys_cpu": 2.0,
            "read": {"total_ios": 700,
                     "iops": 151.2, "bw": 604, "slat_ns": {"mean": 6500, "max": 87000},
                     "clat_ns": {"mean": 1e6, "percentile": {"99.000000": 2_000_000}}},
            "fathom": {"read": {"queued_ns": {"mean": 500}}},
        });
        let row = row(
            &target("disk"),
            "libaio buffered",
            "inline",
            "read",
            Some(&job),
        );
        assert_eq!(row.len(), columns().len());
        assert_eq!(row[DIRECTION].text(), "read *");
        assert_eq!(row.last(), Some(&Cell::Count(700)));
        assert_eq!(row[6], Cell::Ratio(6.5));
        assert_eq!(row[8], Cell::Ratio(0.5));
        assert_eq!(row[10], Cell::Ratio(2000.0));
        assert_eq!(row[11], Cell::Ratio(3.5));
        assert_eq!(row[13], Cell::Ratio(6571.88));
        let other = super::row(&target("disk"), "libaio direct", "inline", "read", None);
        assert!(other[4..].iter().all(|cell| *cell == Cell::Missing));
        let handed = published(&target("ramdisk"), "libaio buffered", "offload", "write");
        assert_eq!(handed[0], Cell::Ratio(139_559.0));
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let job = serde_json::json!({
            "usr_cpu": 100.0, "sys_cpu": 100.0,
            "read": {"iops": 139_593.2, "slat_ns": {"mean": 167_827_510.0, "max": 907_050_581},
                     "clat_ns": {"mean": 229e6, "percentile": {"99.000000": 1_010_827_264}}},
        });
        let rows = MODES.map(|mode| row(&target("disk"), ENGINES[0].0, mode, "read", Some(&job)));
        check_table(&Table {
            rows: rows.to_vec(),
            ..table(Vec::new(), Vec::new())
        });
    }

    #[test]
    fn a_ratio_needs_both_runs() {
        let job = |mean: u64| Some(serde_json::json!({"read": {"slat_ns": {"mean": mean}}}));
        let pair = [job(6000), job(3)];
        assert_eq!(ratio(&pair), Some(2000.0));
        assert_eq!(ratio(&[job(6000), None]), None);
    }
}
