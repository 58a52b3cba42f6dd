//! Many jobs with ops of 1 MiB on a modelled disk, under different tag allocation policies.

use fathom_block::{Policy, SeekCounts};
use fathom_core::{Direction, Nanos};

use crate::machines::{LabMachine, MachineSetup, run_1m_ops};
use crate::published::{error_percent, mean_and_worst, rows};
use crate::table::{Cell, Column, Experiment, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hdd-tags",
    about: "bandwidth of 1 to 512 jobs by tag allocation policy: ops of 1 MiB, each split into \
            eight requests, on one modelled device behind a request queue",
    origin: "Linux block mailing list, April 2022, \"improve tag allocation under heavy load\" \
             (v3): Linux 5.18-rc1 before (plain) and after (fair), 96 cores, one hard disk, random \
             writes",
    has_plot: true,
};

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HddTags {
    /// Numbers of jobs, one row each.
    pub numjobs: Vec<u32>,
    /// Policies, two columns each.
    pub policies: Vec<Policy>,
    /// Number of scheduler tags.
    pub nr_requests: u32,
    /// Direction of the random ops.
    pub direction: Direction,
    /// The disk's write cache is on.
    pub write_cache: bool,
    /// Modelled machine.
    pub machine: LabMachine,
}

impl Default for HddTags {
    /// Returns the published configuration.
    fn default() -> Self {
        Self {
            numjobs: vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
            policies: vec![Policy::Plain, Policy::Fair],
            nr_requests: NR_REQUESTS,
            direction: Direction::Write,
            write_cache: false,
            machine: LabMachine::Hdd,
        }
    }
}

impl HddTags {
    /// Returns whether the published bandwidth is of this configuration.
    fn is_published(&self) -> bool {
        self.nr_requests == NR_REQUESTS && self.has_published_disk()
    }

    fn has_published_disk(&self) -> bool {
        let plain = self.direction == Direction::Write && !self.write_cache;
        plain && self.machine == LabMachine::Hdd
    }

    /// Returns the published bandwidth.
    fn published(&self, jobs: u32, policy: Policy) -> Option<f64> {
        let mut rows = rows::<3>(PUBLISHED).into_iter();
        let row = rows.find(|row| row[0] == Some(jobs.into()))?;
        match policy {
            Policy::Plain => row[1].filter(|_| self.is_published()),
            Policy::Fair => row[2].filter(|_| self.is_published()),
            Policy::FairRoundRobin | Policy::Elastic => None,
        }
    }

    /// Returns the published share of sequential requests.
    fn published_ratio(&self, jobs: u32, policy: Policy) -> Option<f64> {
        match (self.nr_requests, jobs, policy) {
            _ if !self.has_published_disk() => None,
            (NR_REQUESTS, 1..=8, Policy::Plain | Policy::Fair) => Some(0.875),
            (NR_REQUESTS, 512, Policy::Plain) => Some(0.20),
            (2048, 512, Policy::Plain) => Some(0.49),
            _ => None,
        }
    }
}

/// Runs all cells in virtual time.
#[must_use]
pub fn hdd_tags(config: &HddTags) -> Table {
    let mut errors = Vec::new();
    let mut table_rows = Vec::new();
    for &jobs in &config.numjobs {
        let mut bandwidths = Vec::new();
        let mut ratios = Vec::new();
        let mut published = Vec::new();
        for &policy in &config.policies {
            let (mib_s, seeks) = cell(config, jobs, policy, true);
            let known = config.published(jobs, policy);
            let error = known.map(|known| error_percent(mib_s, known));
            errors.extend(error);
            bandwidths.push(Cell::Tenths(mib_s));
            ratios.push(seeks.sequential_ratio().map_or(Cell::Missing, Cell::Ratio));
            published.push(known.map_or(Cell::Missing, Cell::Tenths));
            published.push(error.map_or(Cell::Missing, Cell::Tenths));
            let known = config.published_ratio(jobs, policy);
            published.push(known.map_or(Cell::Missing, Cell::Ratio));
        }
        let row = std::iter::once(Cell::Count(jobs.into()));
        table_rows.push(
            row.chain(bandwidths)
                .chain(ratios)
                .chain(published)
                .collect(),
        );
    }
    Table {
        head: EXPERIMENT.into(),
        columns: columns(&config.policies),
        panels: panels(config, &table_rows),
        rows: table_rows,
        notes: notes(config, &errors),
    }
}

/// Runs one cell of the table: bandwidth in MiB/s, and the seeks of the disk.
fn cell(config: &HddTags, jobs: u32, policy: Policy, together: bool) -> (f64, SeekCounts) {
    let setup = MachineSetup {
        machine: config.machine,
        write_cache: config.write_cache,
        policy,
        together,
        nr_requests: config.nr_requests,
        max_sectors_kib: 128,
        jobs,
    };
    run_1m_ops(&setup, config.direction)
}

#[expect(clippy::cast_precision_loss, reason = "a time for people")]
const fn seconds(time: Nanos) -> f64 {
    time.get() as f64 / 1e9
}

/// Returns a policy's name as used in column names.
const fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Plain => "plain",
        Policy::Fair => "fair",
        Policy::FairRoundRobin => "fair_roundrobin",
        Policy::Elastic => "elastic",
    }
}

fn columns(policies: &[Policy]) -> Vec<Column> {
    let names = || policies.iter().copied().map(name);
    let title = |name: &str, figure: &str| format!("{}, {figure}", name.replace('_', " "));
    let bandwidth = |name: &str, key: String, heading| {
        Column::figure(key, heading).in_group(title(name, "MiB/s"))
    };
    let share = |name: &str, key: String, heading| {
        Column::figure(key, heading).in_group(title(name, "sequential share"))
    };
    let mut columns = vec![Column::key("numjobs", "jobs")];
    columns.extend(names().map(|name| bandwidth(name, format!("{name}_mib_s"), "modelled")));
    let key = |name| format!("{name}_sequential_ratio");
    columns.extend(names().map(|name| share(name, key(name), "modelled")));
    for name in names() {
        columns.extend([
            bandwidth(name, format!("published_{name}_mib_s"), "published"),
            bandwidth(name, format!("{name}_error_percent"), "error, %"),
            share(name, format!("published_{}", key(name)), "published"),
        ]);
    }
    columns
}

fn notes(config: &HddTags, errors: &[f64]) -> Vec<String> {
    let cache = match (config.machine.has_write_cache(), config.write_cache) {
        (false, _) => "",
        (true, true) => ", write cache on",
        (true, false) => ", write cache off",
    };
    let tags = match config.machine.has_scheduler() {
        true => format!(", nr_requests {}", config.nr_requests),
        false => String::new(),
    };
    let (ramp, runtime) = config.machine.times();
    let mut notes = vec![format!(
        "modelled, virtual time: {}, random {}s{cache}{tags}; {} s after a ramp of {} s, \
         {}",
        config.machine.name(),
        config.direction.name(),
        seconds(runtime),
        seconds(ramp),
        config.machine.placement(),
    )];
    if config.machine == LabMachine::Ssd {
        notes.push(
            "a new flash drive: the run ends before garbage collection starts, so the figures do \
             not hold for longer runs"
                .into(),
        );
    }
    if let Some((mean, worst)) = mean_and_worst(errors) {
        notes.push(format!(
            "error: mean {mean:.1} %, worst {worst:.1} %; the model was fitted to 1 to 8 jobs and \
             to the sequential shares at 512, with knowledge of the other figures"
        ));
    }
    notes
}

/// Draws bandwidth and sequential share; a policy has one style in both.
fn panels(config: &HddTags, rows: &[Vec<Cell>]) -> Vec<Panel> {
    let count = config.policies.len();
    let points = |column: usize| {
        let rows = rows.iter();
        rows.filter_map(move |row| Some(Point::new(row[0].number()?, row[column].number())))
    };
    let panel = |up: &str, scale: Scale, first: usize, first_published: usize| {
        let named = config.policies.iter().copied().map(name).enumerate();
        let series = named.flat_map(|(at, name)| {
            let name = name.replace('_', " ");
            let published = points(first_published + 3 * at);
            [
                Series::measured(name.clone(), at, points(first + at)),
                Series::published(format!("{name}, published"), at, published),
            ]
        });
        Panel {
            across: Axis::new("jobs", Scale::Doubling),
            up: Axis::new(up, scale),
            series: series.filter(Series::has_values).collect(),
        }
    };
    let published = 1 + 2 * count;
    vec![
        panel("bandwidth, MiB/s", Scale::Auto, 1, published),
        panel(
            "sequential requests, share",
            Scale::Linear,
            1 + count,
            published + 2,
        ),
    ]
}

/// Scheduler tags of the published machine.
const NR_REQUESTS: u32 = 64;

const PUBLISHED: &str = include_str!("../reference/hdd-concurrent-writes.csv");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    #[track_caller]
    fn at(table: &Table, jobs: u32, column: &str) -> f64 {
        let column = table.columns.iter().position(|known| known.key == column);
        let mut rows = table.rows.iter();
        let row = rows.find(|row| row[0] == Cell::Count(jobs.into()));
        let cell = row.and_then(|row| row.get(column?)).and_then(Cell::number);
        cell.unwrap_or_else(|| panic!("{jobs} {column:?}"))
    }

    #[test]
    fn plain_collapses_as_published_and_fair_does_not() {
        let table = hdd_tags(&HddTags::default());
        let policies = ["plain", "fair"];
        let cells = |jobs| policies.map(|name| at(&table, jobs, &format!("{name}_mib_s")));
        let errors: Vec<f64> = (table.rows.iter())
            .flat_map(|row| [&row[6], &row[9]])
            .filter_map(|cell| cell.number())
            .collect();
        assert_eq!(errors.len(), 14);
        check_table(&table);
        let (mean, worst) = mean_and_worst(&errors).unwrap();
        assert!(mean <= 5.0 && worst <= 10.0, "{mean} {worst}");
        for jobs in [1, 2, 4, 8] {
            let [plain, fair] = cells(jobs);
            assert!((plain / fair - 1.0).abs() <= 0.02, "{jobs}: {plain} {fair}");
            for name in policies {
                assert!(at(&table, jobs, &format!("{name}_sequential_ratio")) >= 0.85);
            }
        }
        let falls = [8, 16, 32, 64, 128, 256, 512].map(|jobs| cells(jobs)[0]);
        assert!(falls.windows(2).all(|pair| pair[1] < pair[0]), "{falls:?}");
        let [plain, fair] = cells(512);
        assert!(fair >= 1.6 * plain, "{fair} {plain}");
        let ratio = at(&table, 512, "plain_sequential_ratio");
        assert!((0.17..=0.23).contains(&ratio), "{ratio}");
    }

    #[test]
    fn fair_without_batched_tags_is_close_to_plain() {
        let config = HddTags::default();
        let (plain, _) = cell(&config, 512, Policy::Plain, true);
        let (fair, _) = cell(&config, 512, Policy::Fair, true);
        let (alone, seeks) = cell(&config, 512, Policy::Fair, false);
        assert!(
            alone < plain + (fair - plain) / 4.0,
            "{plain} {alone} {fair}"
        );
        assert!(seeks.sequential_ratio() < Some(0.3));
    }

    #[test]
    fn more_tags_make_more_requests_sequential() {
        let config = HddTags {
            nr_requests: 2048,
            ..HddTags::default()
        };
        let (_, few) = cell(&HddTags::default(), 512, Policy::Plain, true);
        let (_, many) = cell(&config, 512, Policy::Plain, true);
        let ratio = many.sequential_ratio().unwrap();
        assert!((0.44..=0.54).contains(&ratio), "{ratio}");
        assert!(many.sequential_ratio() > few.sequential_ratio());
    }

    #[test]
    fn equal_parameters_give_equal_tables() {
        let config = HddTags {
            numjobs: vec![20],
            policies: vec![Policy::Elastic],
            machine: LabMachine::Array,
            write_cache: true,
            ..HddTags::default()
        };
        let table = hdd_tags(&config);
        assert_eq!(table.json(), hdd_tags(&config).json());
        check_table(&table);
    }
}
