//! View of the lab `aio-submit`, the cost of submission: by the job itself, which blocks when the
//! kernel does, and by offload workers.

mod ops;
mod plot;

use std::path::{Path, PathBuf};

use fathom_record::{DirectionRecord, JobRecord};

use crate::embedded::{EmbeddedLab, Measured, TableContext, value};
use crate::error::LabError;
use crate::lab::RunDone;
use crate::table::{Cell, Column, Experiment, Table};
use crate::work_folder::WorkFolder;

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aio-submit",
    about: "random reads and writes of 4 KiB at depth 32, submitted inline and by offload workers",
    origin: "kernel and linux-aio lists, July 2012, \"Make io_submit non-blocking\": libaio, \
             a disk with ext4 and a RAM disk",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AioSubmit {
    /// Directory on the disk; a file is created there and removed.
    pub folder: PathBuf,
    /// Duration per run.
    pub seconds: u32,
}

/// Runs the experiment.
///
/// # Errors
/// The directory cannot be measured.
pub fn aio_submit(asked: &AioSubmit, context: &mut TableContext<'_>) -> Result<Table, LabError> {
    let disk = WorkFolder::new_in(&asked.folder, NAME)?;
    let memory = WorkFolder::new_in(Path::new(MEMORY), NAME);
    // Without the folder, the runs in memory fail and say why.
    let in_memory = memory.as_ref().map_or(Path::new(MEMORY), WorkFolder::path);
    let arguments = [("FOLDER", disk.path()), ("MEMORY", in_memory)];
    let mut lab = EmbeddedLab::read(EXPERIMENT.name, &arguments, context.environment)?;
    lab.set("runtime", &asked.seconds.to_string());
    // One layout serves all runs: the folders go as a whole.
    lab.set("unlink", "0");
    let measured = lab.run(context)?;
    let rows = rows(&measured);
    let mut notes = vec![format!("{} s per run", asked.seconds)];
    notes.extend(ratio_notes(&measured));
    notes.extend(ops::note(&rows, DIRECTION));
    notes.extend(measured.notes());
    Ok(table(rows, notes))
}

fn table(rows: Vec<Vec<Cell>>, notes: Vec<String>) -> Table {
    Table {
        head: EXPERIMENT.into(),
        columns: columns(),
        panels: plot::panels(&rows),
        rows,
        notes,
    }
}

/// Returns the rows of all places, but those in which nothing can be measured.
fn rows(measured: &Measured) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    let cells = || 0..measured.plan.cells.len();
    for cell in cells() {
        let place = measured.axis(cell, PLACE);
        let mut of_place = cells().filter(|other| measured.axis(*other, PLACE) == place);
        if of_place.all(|cell| measured.failures[cell].is_some()) {
            continue;
        }
        for (at, variant) in measured.plan.variants.iter().enumerate() {
            let run = measured.of(cell, at).next();
            for direction in ["read", "write"] {
                let of = [place, measured.axis(cell, ENGINE), &variant.name, direction];
                rows.push(row(of, run));
            }
        }
    }
    rows
}

/// Returns the row of a place, an engine, a mode and a direction.
fn row(of: [&str; 4], run: Option<&RunDone>) -> Vec<Cell> {
    let [place, engine, mode, direction] = of;
    let job = run.and_then(|run| run.record.as_ref()?.jobs.first());
    let own = job.map(|job| own(job, direction));
    let queued = own.and_then(|own| own.queued.as_ref());
    let count = own.map(|own| own.ios);
    let number = |metric: &str| value(run?, &format!("{direction}.{metric}"));
    let rate = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Rate);
    let ratio = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Ratio);
    let micros = |metric: &str| ratio(number(metric));
    let mut row = [place, engine, mode]
        .map(|text| Cell::Text(text.into()))
        .to_vec();
    row.extend([
        ops::direction_cell(direction, count),
        rate(number("iops")),
        rate(number("bw").map(|bytes| bytes / 1024.0)),
        micros("slat_mean_us"),
        micros("slat_max_us"),
        ratio(queued.map(|queued| queued.summary.mean() / 1e3)),
        micros("clat_mean_us"),
        micros("clat_p99_us"),
        ratio(job.and_then(cpu_percent)),
    ]);
    row.extend(published(of));
    row.push(count.map_or(Cell::Missing, Cell::Count));
    row
}

fn own<'a>(job: &'a JobRecord, direction: &str) -> &'a DirectionRecord {
    match direction {
        "read" => &job.directions.read,
        _ => &job.directions.write,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn cpu_percent(job: &JobRecord) -> Option<f64> {
    let used_us = job.cpu.user_us + job.cpu.system_us;
    (job.cpu.wall_us > 0).then(|| used_us as f64 * 100.0 / job.cpu.wall_us as f64)
}

/// Returns the published figures of a run: IOPS, mean and maximum slat, mean and p99 clat.
fn published([place, engine, mode, direction]: [&str; 4]) -> [Cell; 5] {
    let place = match place {
        "memory" => "ramdisk",
        "disk" => "",
        _ => "disk",
    };
    let mode = match mode {
        "offload" => "handed_off",
        mode => mode,
    };
    let lines = PUBLISHED.lines().map(|line| line.split(',').collect());
    let mut lines = lines.filter(|cells: &Vec<&str>| {
        engine == PUBLISHED_ENGINE && cells[..3] == [place, mode, direction]
    });
    let line = lines.next().unwrap_or_default();
    std::array::from_fn(|index| {
        let number = line.get(index + 3).and_then(|text| text.parse().ok());
        number.map_or(Cell::Missing, Cell::Ratio)
    })
}

/// Returns for each place how many times shorter the submission of reads is with offload.
fn ratio_notes(measured: &Measured) -> Vec<String> {
    let mut notes: Vec<(&str, String)> = Vec::new();
    for cell in 0..measured.plan.cells.len() {
        let mean = |variant| value(measured.of(cell, variant).next()?, "read.slat_mean");
        let (Some(inline), Some(offload)) = (mean(0), mean(1).filter(|mean| *mean > 0.0)) else {
            continue;
        };
        let (place, engine) = (measured.axis(cell, PLACE), measured.axis(cell, ENGINE));
        let ratio = format!("{engine} {:.1}", inline / offload);
        match notes.last_mut().filter(|(known, _)| *known == place) {
            Some((_, note)) => *note += &format!(", {ratio}"),
            None => notes.push((place, ratio)),
        }
    }
    let note = |(place, ratios)| format!("{place}: mean slat of reads, inline ÷ offload: {ratios}");
    notes.into_iter().map(note).collect()
}

/// Prefix of directory names, followed by a number.
const NAME: &str = "fathom-aio-submit-";

/// Directory of the files in memory.
const MEMORY: &str = "/dev/shm";

/// Axes of the lab.
const PLACE: usize = 0;
const ENGINE: usize = 1;

/// The engine of the published figures.
const PUBLISHED_ENGINE: &str = "libaio buffered";

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
    use fathom_record::Record;
    use fathom_stats::Latency;

    use super::*;
    use crate::embedded::tests::{measured, read};
    use crate::table::check::{check_table, column};

    /// Returns a run of these numbers of reads and writes, whose submission took this long.
    fn run(ios: u64, slat_ns: u64) -> RunDone {
        let latency = |ns| {
            let mut latency = Latency::new(true);
            latency.record_n(ns, ios);
            Some(latency)
        };
        let direction = || DirectionRecord {
            bytes: ios * 4096,
            ios,
            runtime_ms: 1_000,
            slat: latency(slat_ns),
            clat: latency(1_010_827_264),
            queued: latency(500),
            ..DirectionRecord::default()
        };
        let mut job = JobRecord::default();
        (job.directions.read, job.directions.write) = (direction(), direction());
        (job.cpu.user_us, job.cpu.system_us, job.cpu.wall_us) = (15_000, 20_000, 1_000_000);
        RunDone::of_record(Record {
            jobs: vec![job],
            ..Record::default()
        })
    }

    fn lab() -> EmbeddedLab {
        read(EXPERIMENT.name, &[("FOLDER", "/d"), ("MEMORY", "/m")])
    }

    #[test]
    fn only_libaio_buffered_has_published_figures() {
        let disk = "disk limited to 300 IOPS";
        let row = row(
            [disk, PUBLISHED_ENGINE, "inline", "read"],
            Some(&run(700, 6_500)),
        );
        assert_eq!(row.len(), columns().len());
        assert_eq!(row[DIRECTION].text(), "read *");
        assert_eq!(row.last(), Some(&Cell::Count(700)));
        assert_eq!(row[4..6], [Cell::Rate(700.0), Cell::Rate(2800.0)]);
        assert_eq!(row[6], Cell::Ratio(6.5));
        assert_eq!(row[8], Cell::Ratio(0.5));
        assert_eq!(row[10], Cell::Missing, "p99 of 700 ops");
        assert_eq!(row[11], Cell::Ratio(3.5));
        assert_eq!(row[13], Cell::Ratio(6571.88));
        let other = super::row([disk, "libaio direct", "inline", "read"], None);
        assert!(other[4..].iter().all(|cell| *cell == Cell::Missing));
        let handed = published(["memory", PUBLISHED_ENGINE, "offload", "write"]);
        assert_eq!(handed[0], Cell::Ratio(139_559.0));
        let plain = published(["disk", PUBLISHED_ENGINE, "inline", "read"]);
        assert_eq!(plain[0], Cell::Missing);
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let slat = [167_827_510, 3_000];
        let measured = measured(lab(), &|_, variant| Some(run(139_593, slat[variant])));
        let table = table(rows(&measured), ratio_notes(&measured));
        assert_eq!(table.rows.len(), 3 * 3 * 2 * 2);
        assert!(
            table.rows[0][column(&table, "clat_us_p99")]
                .number()
                .is_some()
        );
        assert_eq!(table.notes.len(), 3, "{:?}", table.notes);
        check_table(&table);
    }

    #[test]
    fn a_place_without_a_limit_has_no_rows_and_a_ratio_needs_both_runs() {
        let is_disk = |cell| cell < 3;
        let mut measured = measured(lab(), &|cell, variant| {
            (!is_disk(cell) && (cell, variant) != (3, 1)).then(|| run(1_000, 6_000))
        });
        for cell in (0..9).filter(|cell| is_disk(*cell)) {
            measured.failures[cell] = Some("no blkio".into());
        }
        let rows = rows(&measured);
        assert_eq!(rows.len(), 2 * 3 * 2 * 2);
        assert_eq!(rows[2][4], Cell::Missing);
        let ratios = ratio_notes(&measured);
        assert!(
            ratios[0].ends_with(": libaio direct 1.0, io_uring buffered 1.0"),
            "{ratios:?}"
        );
        assert_eq!(
            measured.notes().len(),
            1,
            "one reason: {:?}",
            measured.notes()
        );
    }
}
