//! What submitting costs: by the job itself, which blocks where the kernel does, and by workers.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use fathom_setup::Problem;
use fathom_sys::lease::Lease;
use serde_json::Value;

use crate::command::output;
use crate::table::{Cell, Experiment, Table};
use crate::throttle::Throttle;

/// This experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aio-submit",
    about: "random reads and writes of 4 KiB at depth 32, submitted by the job and by workers",
    origin: "kernel and linux-aio lists, July 2012, \"Make io_submit non-blocking\": libaio, \
             a disk with ext4 and a RAM disk",
};

/// What can be chosen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AioSubmit {
    /// A folder on the disk; a file is made there and removed.
    pub folder: PathBuf,
    /// For each run.
    pub seconds: u32,
    /// This program.
    pub fathom: PathBuf,
}

/// Measures; `tell` hears of each run before it begins, `stops` says how often the user asked to
/// stop.
///
/// # Errors
/// Why the folder cannot be measured.
pub fn aio_submit(
    asked: &AioSubmit,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, Problem> {
    let mut notes = vec![format!("{} s for each run", asked.seconds)];
    let mut rows = Vec::new();
    for place in places(asked, &mut notes, stops)? {
        for (engine, options) in ENGINES {
            let pair = MODES.map(|mode| {
                let name = format!("{}, {engine}, {mode}", place.name);
                if stops() > 0 {
                    return None;
                }
                tell(&name);
                let run = run(asked, &place, options, mode, stops);
                run.inspect_err(|why| notes.push(format!("{name}: not measured: {why}")))
                    .ok()
            });
            notes.extend(ratio(&place, engine, &pair));
            for (mode, report) in MODES.into_iter().zip(&pair) {
                for direction in ["read", "write"] {
                    rows.push(row(&place, engine, mode, direction, report.as_ref()));
                }
            }
        }
    }
    if stops() > 0 {
        notes.push("interrupted: the rest is missing".into());
    }
    Ok(Table {
        experiment: EXPERIMENT,
        columns: COLUMNS.map(String::from).to_vec(),
        rows,
        notes,
        panels: Vec::new(),
    })
}

/// Location of a file under test.
struct Place {
    name: &'static str,
    /// What it is called in the published table.
    published: &'static str,
    file: Rc<OwnFile>,
    throttle: Option<Throttle>,
}

/// A file of this table's; removed when this goes, or by the next one if it is killed.
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

/// The disk, the disk held back where that can be done, and memory.
fn places(
    asked: &AioSubmit,
    notes: &mut Vec<String>,
    stops: &dyn Fn() -> u32,
) -> Result<Vec<Place>, Problem> {
    let mut places = Vec::new();
    for (name, published, folder) in [
        ("disk", "", asked.folder.as_path()),
        ("memory", "ramdisk", Path::new("/dev/shm")),
    ] {
        match OwnFile::new(folder) {
            Ok(file) => places.push(Place {
                name,
                published,
                file: Rc::new(file),
                throttle: None,
            }),
            Err(error) if name == "disk" => {
                let message = format!(
                    "{}: {error}: name a folder on the disk that is to be measured",
                    folder.display()
                );
                return Err(Problem::new("folder_not_writable", message));
            }
            Err(error) => notes.push(format!("{name}: not measured: {error}")),
        }
    }
    for place in &places {
        lay_out(asked, place, stops).map_err(|why| Problem::new("aio_submit_layout", why))?;
    }
    match Throttle::new(places[0].file.path(), HELD_IOPS) {
        Ok(throttle) => places.insert(
            0,
            Place {
                name: "disk held to 300 IOPS",
                published: "disk",
                file: Rc::clone(&places[0].file),
                throttle: Some(throttle),
            },
        ),
        Err(why) => notes.push(format!("disk held to 300 IOPS: not measured: {why}")),
    }
    Ok(places)
}

fn lay_out(asked: &AioSubmit, place: &Place, stops: &dyn Fn() -> u32) -> Result<(), String> {
    let mut command = Command::new(&asked.fathom);
    command.args([
        "run",
        "--name=layout",
        "--rw=write",
        "--bs=1m",
        "--end_fsync=1",
    ]);
    command.arg(format!("--size={FILE_BYTES}"));
    command.arg(format!("--filename={}", place.file.path().display()));
    output(command, stops).map(|_report| ())
}

/// One run's report of its job.
fn run(
    asked: &AioSubmit,
    place: &Place,
    options: &[&str],
    mode: &str,
    stops: &dyn Fn() -> u32,
) -> Result<Value, String> {
    let mut command = match &place.throttle {
        Some(throttle) => throttle.command(&asked.fathom),
        None => Command::new(&asked.fathom),
    };
    command.arg("run").args(JOB).args(options);
    command.arg(format!("--size={FILE_BYTES}"));
    command.arg(format!("--io_submit_mode={mode}"));
    command.arg(format!("--runtime={}", asked.seconds));
    command.arg(format!("--filename={}", place.file.path().display()));
    let text = output(command, stops)?;
    let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    Ok(report["jobs"][0].clone())
}

fn row(place: &Place, engine: &str, mode: &str, direction: &str, job: Option<&Value>) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(text.into());
    let own = job.map(|job| &job[direction]);
    let number = |path: &str| {
        own.and_then(|own| own.pointer(path))
            .and_then(Value::as_f64)
    };
    let micros = |path: &str| number(path).map_or(Cell::Missing, |ns| Cell::Ratio(ns / 1e3));
    let queued = job.and_then(|job| job.pointer(&format!("/fathom/{direction}/queued_ns/mean")));
    let cpu = |name: &str| job.and_then(|job| job[name].as_f64()).unwrap_or(0.0);
    let mut row = vec![
        text(place.name),
        text(engine),
        text(mode),
        text(direction),
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
    row.extend(published(place, engine, mode, direction));
    row
}

/// The published figures of such a run: IOPS, slat's mean and maximum, clat's mean and p99.
fn published(place: &Place, engine: &str, mode: &str, direction: &str) -> [Cell; 5] {
    let mode = if mode == "offload" {
        "handed_off"
    } else {
        mode
    };
    let lines = PUBLISHED.lines().map(|line| line.split(',').collect());
    let mut lines = lines.filter(|cells: &Vec<&str>| {
        engine == ENGINES[0].0 && cells[..3] == [place.published, mode, direction]
    });
    let line = lines.next().unwrap_or_default();
    std::array::from_fn(|index| {
        let number = line.get(index + 3).and_then(|text| text.parse().ok());
        number.map_or(Cell::Missing, Cell::Ratio)
    })
}

/// How many times shorter the submission of a read has become.
fn ratio(place: &Place, engine: &str, pair: &[Option<Value>; 2]) -> Option<String> {
    let mean = |job: &Option<Value>| job.as_ref()?.pointer("/read/slat_ns/mean")?.as_f64();
    let [inline, offload] = [mean(&pair[0])?, mean(&pair[1])?];
    (offload > 0.0).then(|| {
        format!(
            "{}, {engine}: mean slat of reads, inline ÷ offload: {:.1}",
            place.name,
            inline / offload
        )
    })
}

/// Files are called so, with a number behind.
const NAME: &str = "fathom-aio-submit-";

/// Names and options; the first is the one that was published.
const ENGINES: [(&str, &[&str]); 3] = [
    ("libaio buffered", &["--ioengine=libaio", "--direct=0"]),
    ("libaio direct", &["--ioengine=libaio", "--direct=1"]),
    ("io_uring buffered", &["--ioengine=io_uring", "--direct=0"]),
];

const MODES: [&str; 2] = ["inline", "offload"];

/// The same for all.
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

/// What a disk of 2012 did.
const HELD_IOPS: u32 = 300;

/// More than is read in some seconds, so that reads find nothing in the cache.
const FILE_BYTES: u64 = 512 << 20;

const COLUMNS: [&str; 17] = [
    "place",
    "engine",
    "mode",
    "direction",
    "iops",
    "bw_kib_per_s",
    "slat_us_mean",
    "slat_us_max",
    "queued_us_mean",
    "clat_us_mean",
    "clat_us_p99",
    "cpu_percent",
    "published_iops",
    "published_slat_us_mean",
    "published_slat_us_max",
    "published_clat_us_mean",
    "published_clat_us_p99",
];

/// The published figures.
const PUBLISHED: &str = include_str!("../reference/aio-submit-latency.csv");

#[cfg(test)]
mod tests {
    use super::*;

    fn place(published: &'static str) -> Place {
        Place {
            name: "here",
            published,
            file: Rc::new(OwnFile::new(&std::env::temp_dir()).unwrap()),
            throttle: None,
        }
    }

    #[test]
    fn what_was_published_stands_beside_libaio_buffered_alone() {
        let job = serde_json::json!({
            "usr_cpu": 1.5, "sys_cpu": 2.0,
            "read": {"iops": 151.2, "bw": 604, "slat_ns": {"mean": 6500, "max": 87000},
                     "clat_ns": {"mean": 1e6, "percentile": {"99.000000": 2_000_000}}},
            "fathom": {"read": {"queued_ns": {"mean": 500}}},
        });
        let row = row(
            &place("disk"),
            "libaio buffered",
            "inline",
            "read",
            Some(&job),
        );
        assert_eq!(row.len(), COLUMNS.len());
        assert_eq!(row[6], Cell::Ratio(6.5));
        assert_eq!(row[8], Cell::Ratio(0.5));
        assert_eq!(row[10], Cell::Ratio(2000.0));
        assert_eq!(row[11], Cell::Ratio(3.5));
        assert_eq!(row[13], Cell::Ratio(6571.88));
        let other = super::row(&place("disk"), "libaio direct", "inline", "read", None);
        assert!(other[4..].iter().all(|cell| *cell == Cell::Missing));
        let handed = published(&place("ramdisk"), "libaio buffered", "offload", "write");
        assert_eq!(handed[0], Cell::Ratio(139_559.0));
    }

    #[test]
    fn a_ratio_needs_both_runs() {
        let job = |mean: u64| Some(serde_json::json!({"read": {"slat_ns": {"mean": mean}}}));
        let pair = [job(6000), job(3)];
        let text = ratio(&place(""), "libaio", &pair).unwrap();
        assert!(text.ends_with("2000.0"), "{text}");
        assert_eq!(ratio(&place(""), "libaio", &[job(6000), None]), None);
    }
}
