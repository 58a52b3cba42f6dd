//! Pacing in an NVMe/TCP target: bandwidth and buffers in flight by depth and policy.

mod columns;
mod condition;
mod initiators;
mod outcome;
mod plot;
mod published;
mod target;

use std::path::PathBuf;

use crate::announced::announced;
use crate::counted::counted;
use crate::error::{CommandError, LabError};
use crate::table::{Cell, Experiment, Table};
use crate::work_folder::WorkFolder;

pub use condition::{Condition, Devices, Pacing, PacingTest, Period, Slow};

use initiators::Initiators;
use outcome::{Outcome, RowFigures};
use target::{TargetPlan, TargetProcess};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "io-pacing",
    about: "NVMe/TCP target on this machine, random reads of 128 KiB, by depth and pacing policy: \
            bandwidth, latency and buffers in flight",
    origin: "README of the \"IO Pacing Prototype\" of an SPDK target: RDMA, two links of 100 Gb/s, \
             two initiators, 16 NVMe drives (beside memory here) or null devices, depth per \
             initiator",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct IoPacing {
    /// Rows to measure.
    pub rows: Vec<Condition>,
    /// Initiators, one process each.
    pub initiators: u32,
    /// Repeats of each row.
    pub repeats: u32,
    /// Duration of each repeat, in seconds.
    pub seconds: u32,
    /// CPUs that may be used, ascending.
    pub cpus: Vec<u32>,
    /// Path of this program.
    pub fathom: PathBuf,
}

impl IoPacing {
    /// Returns the rows of a published test, for a target of up to `threads` threads.
    #[must_use]
    pub fn published_rows(test: PacingTest, threads: u32) -> Vec<Condition> {
        test.grid(threads)
    }

    /// Returns the CPUs of the target and those of the initiators: apart where there are enough.
    fn cpus(&self, threads: u32) -> Option<(&[u32], &[u32])> {
        let of_target = usize::try_from(threads).unwrap_or(usize::MAX);
        (of_target < self.cpus.len()).then(|| self.cpus.split_at(of_target))
    }
}

/// Runs the experiment: all rows once, then all rows again, as often as asked. `tell` is called
/// with the name of each run before it begins; `stops` returns the number of interrupts so far.
///
/// # Errors
/// The folder for reports cannot be created, or the target does not start.
pub fn io_pacing(
    config: &IoPacing,
    tell: &mut dyn FnMut(&str),
    stops: &dyn Fn() -> u32,
) -> Result<Table, LabError> {
    let folder = WorkFolder::new(FOLDER)?;
    let mut notes = notes(config);
    let runs = config.rows.len() as u64 * u64::from(config.repeats);
    tell(&announced(runs, u64::from(config.seconds), OVERHEAD_S));
    let line_us = line_us(config, &folder, stops)?;
    let mut measured: Vec<Vec<Outcome>> = vec![Vec::new(); config.rows.len()];
    let mut begun = 0;
    for repeat in 1..=config.repeats {
        for (condition, outcomes) in config.rows.iter().zip(&mut measured) {
            if stops() > 0 {
                break;
            }
            begun += 1;
            let of = format!("{repeat} of {}", config.repeats);
            tell(&format!("{begun} of {runs}: {condition} ({of})"));
            match run(config, condition, line_us, &folder, stops) {
                Ok(outcome) => outcomes.push(outcome),
                Err(CommandError::Interrupted) => {}
                Err(source) if outcomes.is_empty() && repeat == 1 => {
                    let name = EXPERIMENT.name;
                    return Err(LabError::Run { name, source });
                }
                Err(why) => notes.push(format!("{condition}: repeat {repeat} failed: {why}")),
            }
        }
    }
    if stops() > 0 {
        notes.push("interrupted; the remaining runs are missing".into());
    }
    if measured
        .iter()
        .flatten()
        .all(|outcome| outcome.samples.hit_percent.is_none())
    {
        notes.push("cache hit rate: not offered by this machine".into());
    }
    Ok(table(config, &measured, line_us, notes))
}

/// Measures the time in which this machine moves one buffer, µs, for periods relative to it; 0 if
/// no row needs it.
fn line_us(
    config: &IoPacing,
    folder: &WorkFolder,
    stops: &dyn Fn() -> u32,
) -> Result<f64, LabError> {
    let is_relative = |row: &&Condition| matches!(row.pacing, Pacing::Rate(Period::PublishedUs(_)));
    let Some(row) = config.rows.iter().find(is_relative) else {
        return Ok(0.0);
    };
    let condition = Condition {
        pacing: Pacing::None,
        depth: LINE_DEPTH,
        slow: None,
        ..row.clone()
    };
    let name = "line rate";
    let outcome = run(config, &condition, 0.0, folder, stops)
        .map_err(|source| LabError::Run { name, source })?;
    Ok(1e6 / outcome.iops.max(1.0))
}

/// Runs one repeat of a row: a target and its initiators.
fn run(
    config: &IoPacing,
    condition: &Condition,
    line_us: f64,
    folder: &WorkFolder,
    stops: &dyn Fn() -> u32,
) -> Result<Outcome, CommandError> {
    let cpus = config.cpus(condition.threads);
    let plan = TargetPlan {
        fathom: &config.fathom,
        condition,
        line_us,
        cpus: cpus.map(|(target, _)| target),
        folder: folder.path(),
    };
    let mut target = TargetProcess::start(&plan, stops)?;
    let list = cpus.map(|(_, initiators)| list(initiators));
    let initiators = Initiators {
        fathom: &config.fathom,
        count: config.initiators,
        seconds: config.seconds,
        cpus: list.as_deref(),
        folder: folder.path(),
    };
    let namespaces = target.namespaces();
    let ran = initiators.run(condition, &namespaces, &mut || target.sample(), stops);
    let samples = target.finish();
    Ok(Outcome { samples, ..ran? })
}

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(u32::to_string).collect();
    cpus.join(",")
}

fn notes(config: &IoPacing) -> Vec<String> {
    let mut notes = vec![format!(
        "measured: loopback, {}, {} of {} s in turn; depth per initiator; memory stands beside \
         published NVMe drives; min and max: of the repeats",
        counted(config.initiators, "initiator"),
        counted(config.repeats, "repeat"),
        config.seconds,
    )];
    let shares = |row: &&Condition| config.cpus(row.threads).is_none();
    if let Some(row) = config.rows.iter().find(shares) {
        notes.push(format!(
            "{} on {}: target and initiators share the processors",
            counted(row.threads, "target thread"),
            counted(config.cpus.len() as u64, "processor"),
        ));
    }
    notes
}

fn table(config: &IoPacing, measured: &[Vec<Outcome>], line_us: f64, notes: Vec<String>) -> Table {
    let columns = columns::columns(config.initiators);
    let rows: Vec<Vec<Cell>> = config
        .rows
        .iter()
        .zip(measured)
        .map(|(condition, outcomes)| {
            let figures = RowFigures::of(outcomes);
            let mut row = condition_cells(condition, line_us);
            row.extend(figure_cells(&figures, config.initiators));
            row.extend(published_cells(condition));
            row
        })
        .collect();
    Table {
        head: EXPERIMENT.into(),
        panels: plot::panels(config, &columns, &rows),
        columns,
        rows,
        notes,
    }
}

fn condition_cells(condition: &Condition, line_us: f64) -> Vec<Cell> {
    let count = |value: Option<u32>| value.map_or(Cell::Missing, |count| Cell::Count(count.into()));
    let (pacing, set_us) = match condition.pacing {
        Pacing::Rate(period) => {
            let us = period.on_machine(line_us);
            let name = format!("{} {us:.1} µs", condition.pacing);
            (Cell::Named { word: "rate", name }, Cell::Tenths(us))
        }
        pacing => (Cell::Text(pacing.to_string()), Cell::Missing),
    };
    vec![
        Cell::Text(condition.devices.name().into()),
        pacing,
        set_us,
        Cell::Count(condition.threads.into()),
        count(condition.buffer_cache),
        Cell::Count(condition.depth.into()),
        count(condition.slow.map(|slow| slow.devices)),
        count(condition.slow.map(|slow| slow.depth)),
    ]
}

fn figure_cells(figures: &RowFigures, initiators: u32) -> Vec<Cell> {
    let tenths = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Tenths);
    let mut cells: Vec<Cell> = [
        figures.kiops,
        figures.bw_gbps,
        figures.bw_range.map(|(least, _)| least),
        figures.bw_range.map(|(_, greatest)| greatest),
        figures.fast_gbps,
        figures.wire_gbps,
        figures.lat_us,
        figures.bw_stddev,
        figures.mib_in_flight,
        figures.limit_mib,
        figures.hit_percent,
        figures.period_us,
    ]
    .map(tenths)
    .to_vec();
    let own = |at: u32| figures.initiator_gbps.get(at as usize).copied();
    cells.extend((0..initiators).map(|at| tenths(own(at))));
    cells
}

fn published_cells(condition: &Condition) -> Vec<Cell> {
    let figures = published::figures(condition).unwrap_or_default();
    let buffers_mib = figures.buffers_in_flight.map(|buffers| buffers / 8.0);
    let us = match condition.pacing {
        Pacing::Rate(Period::PublishedUs(us)) => Some(us),
        _ => None,
    };
    [
        figures.bw_gbps,
        figures.wire_gbps,
        figures.lat_us,
        figures.bw_stddev,
        buffers_mib,
        figures.hit_percent,
        us,
    ]
    .map(|value| value.map_or(Cell::Missing, Cell::Tenths))
    .to_vec()
}

/// Depth at which the line rate is measured: enough to keep the link busy.
const LINE_DEPTH: u32 = 32;
/// Seconds by which a run outlasts its measurement at least: a target starts, and so do initiators.
const OVERHEAD_S: u64 = 1;
/// Prefix of the folder's name, followed by a number.
const FOLDER: &str = "fathom-io-pacing-";
/// Devices of a row without slow ones, as published.
const DEVICES: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::{check_table, column};

    #[test]
    fn rows_stand_beside_published_ones() {
        let config = IoPacing {
            rows: PacingTest::None.grid(1),
            initiators: 2,
            repeats: 1,
            seconds: 1,
            cpus: vec![0, 1],
            fathom: PathBuf::new(),
        };
        let outcome = Outcome {
            bw_gbps: 40.0,
            initiator_gbps: vec![20.0, 20.0],
            ..Outcome::default()
        };
        let measured = vec![vec![outcome]; config.rows.len()];
        let table = table(&config, &measured, 0.0, Vec::new());
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len());
        }
        let column = |key: &str| column(&table, key);
        assert_eq!(table.rows[0][column("bw_gbps")], Cell::Tenths(40.0));
        assert_eq!(
            table.rows[0][column("initiator_2_gbps")],
            Cell::Tenths(20.0)
        );
        assert_eq!(
            table.rows[0][column("published_bw_gbps")],
            Cell::Tenths(184.5)
        );
    }

    #[test]
    fn every_published_test_has_a_plot() {
        for (name, test) in PacingTest::ALL {
            let config = IoPacing {
                rows: test.grid(4),
                initiators: 1,
                repeats: 1,
                seconds: 1,
                cpus: vec![0, 1],
                fathom: PathBuf::new(),
            };
            let outcome = Outcome {
                bw_gbps: 30.0,
                ..Outcome::default()
            };
            let measured = vec![vec![outcome]; config.rows.len()];
            let table = table(&config, &measured, 20.0, Vec::new());
            check_table(&table);
            let labels: Vec<&str> = (table.panels.iter())
                .map(|panel| panel.up.label.as_str())
                .collect();
            let measured = labels.iter().any(|label| label.ends_with(", measured"));
            let published = labels.iter().any(|label| label.ends_with(", published"));
            assert!(measured && published, "{name}: {labels:?}");
        }
    }

    #[test]
    fn target_and_initiators_have_cpus_of_their_own_if_there_are_enough() {
        let config = IoPacing {
            rows: Vec::new(),
            initiators: 1,
            repeats: 1,
            seconds: 1,
            cpus: vec![0, 1, 4],
            fathom: PathBuf::new(),
        };
        assert_eq!(config.cpus(2), Some((&[0, 1][..], &[4][..])));
        assert_eq!(config.cpus(3), None);
    }
}
