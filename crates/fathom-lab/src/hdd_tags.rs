//! Many jobs that write 1 MiB each to a modelled hard disk, under two ways to give out tags.

use fathom_block::{Policy, SeekCounts};
use fathom_core::{Direction, Nanos, Tick};
use fathom_sim::Storage;

use crate::closed_loop::{Load, closed_loop};
use crate::machines::{LabMachine, Setup};
use crate::plot::{Panel, Series};
use crate::published::{error_percent, mean_and_worst, rows};
use crate::table::{Cell, Experiment, Table};
use crate::uring_irq::value;

/// This experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hdd-tags",
    about: "1 to 512 jobs, ops of 1 MiB split into eight requests, one device behind a request \
            queue, modelled: who gets the next tag",
    origin: "Linux block mailing list, April 2022, \"improve tag allocation under heavy load\" \
             (v3): Linux 5.18-rc1 before (plain) and after (fair), 96 cores, one hard disk, random \
             writes",
};

/// What can be chosen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HddTags {
    /// A row for each.
    pub numjobs: Vec<u32>,
    /// Two columns for each.
    pub policies: Vec<Policy>,
    /// Scheduler tags.
    pub nr_requests: u32,
    /// Reads or writes, at random.
    pub direction: Direction,
    /// Whether the disk has its write cache on.
    pub write_cache: bool,
    /// Queue and disk.
    pub machine: LabMachine,
}

impl Default for HddTags {
    /// As published.
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
    /// Whether the published bandwidth is of this.
    fn is_published(&self) -> bool {
        self.nr_requests == NR_REQUESTS && self.has_published_disk()
    }

    fn has_published_disk(&self) -> bool {
        let plain = self.direction == Direction::Write && !self.write_cache;
        plain && self.machine == LabMachine::Hdd
    }

    /// The published bandwidth.
    fn published(&self, jobs: u32, policy: Policy) -> Option<f64> {
        let mut rows = rows::<3>(PUBLISHED).into_iter();
        let row = rows.find(|row| row[0] == Some(jobs.into()))?;
        match policy {
            Policy::Plain => row[1].filter(|_| self.is_published()),
            Policy::Fair => row[2].filter(|_| self.is_published()),
            Policy::FairRoundRobin | Policy::Elastic => None,
        }
    }

    /// The published share of requests that followed the one before.
    fn published_ratio(&self, jobs: u32, policy: Policy) -> Option<f64> {
        match (self.nr_requests, jobs, policy) {
            _ if !self.has_published_disk() => None,
            (NR_REQUESTS, 1..=8, _) => Some(0.875),
            (NR_REQUESTS, 512, Policy::Plain) => Some(0.20),
            (2048, 512, Policy::Plain) => Some(0.49),
            _ => None,
        }
    }
}

/// Runs all cells in virtual time.
#[must_use]
pub fn hdd_tags(asked: &HddTags) -> Table {
    let mut errors = Vec::new();
    let mut table_rows = Vec::new();
    for &jobs in &asked.numjobs {
        let mut bandwidths = Vec::new();
        let mut ratios = Vec::new();
        let mut published = Vec::new();
        for &policy in &asked.policies {
            let (mib_s, seeks) = cell(asked, jobs, policy, true);
            let known = asked.published(jobs, policy);
            let error = known.map(|known| error_percent(mib_s, known));
            errors.extend(error);
            bandwidths.push(Cell::Tenths(mib_s));
            ratios.push(seeks.sequential_ratio().map_or(Cell::Missing, Cell::Ratio));
            published.push(known.map_or(Cell::Missing, Cell::Tenths));
            published.push(error.map_or(Cell::Missing, Cell::Tenths));
            let known = asked.published_ratio(jobs, policy);
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
        experiment: EXPERIMENT,
        columns: columns(&asked.policies),
        panels: panels(asked, &table_rows),
        rows: table_rows,
        notes: notes(asked, &errors),
    }
}

/// One cell: bandwidth, and what the disk saw.
pub(crate) fn cell(
    asked: &HddTags,
    jobs: u32,
    policy: Policy,
    together: bool,
) -> (f64, SeekCounts) {
    let setup = Setup {
        machine: asked.machine,
        write_cache: asked.write_cache,
        policy,
        together,
        nr_requests: asked.nr_requests,
        max_sectors_kib: 128,
        jobs,
    };
    let (ramp, runtime) = asked.machine.times();
    let load = Load {
        jobs,
        direction: asked.direction,
        block: 1 << 20,
        stride: asked.machine.stride(),
        ramp,
        runtime,
    };
    let mut stack = setup.stack();
    stack.count_seeks(Tick::ZERO + load.ramp);
    let bytes = closed_loop(&mut stack, &load);
    let seeks = stack.seeks().cloned().unwrap_or_default();
    (mib_per_second(bytes, load.runtime), seeks)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(crate) fn mib_per_second(bytes: u64, time: Nanos) -> f64 {
    bytes as f64 / f64::from(1 << 20) / (time.get() as f64 / 1e9)
}

#[expect(clippy::cast_precision_loss, reason = "a time for people")]
const fn seconds(time: Nanos) -> f64 {
    time.get() as f64 / 1e9
}

/// A policy's name in the names of columns.
const fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Plain => "plain",
        Policy::Fair => "fair",
        Policy::FairRoundRobin => "fair_roundrobin",
        Policy::Elastic => "elastic",
    }
}

fn columns(policies: &[Policy]) -> Vec<String> {
    let names = || policies.iter().copied().map(name);
    let mut columns = vec!["numjobs".to_owned()];
    columns.extend(names().map(|name| format!("{name}_mib_s")));
    columns.extend(names().map(|name| format!("{name}_sequential_ratio")));
    for name in names() {
        columns.push(format!("published_{name}_mib_s"));
        columns.push(format!("{name}_error_percent"));
        columns.push(format!("published_{name}_sequential_ratio"));
    }
    columns
}

fn notes(asked: &HddTags, errors: &[f64]) -> Vec<String> {
    let cache = match (asked.machine.has_write_cache(), asked.write_cache) {
        (false, _) => "",
        (true, true) => ", write cache on",
        (true, false) => ", write cache off",
    };
    let (ramp, runtime) = asked.machine.times();
    let mut notes = vec![format!(
        "modelled, virtual time: {}, random {}s{cache}, nr_requests {}; {} s after a ramp of {} s, \
         jobs {} MiB apart",
        asked.machine.name(),
        asked.direction.name(),
        asked.nr_requests,
        seconds(runtime),
        seconds(ramp),
        asked.machine.stride() >> 20,
    )];
    if asked.machine == LabMachine::Ssd {
        notes.push(
            "a flash drive that is new: in so short a time it does not have to clean, and its \
             figures say nothing of an hour"
                .into(),
        );
    }
    if let Some((mean, worst)) = mean_and_worst(errors) {
        notes.push(format!(
            "error: mean {mean:.1} %, worst {worst:.1} %; the disk was fitted to plain, fair had \
             no part in it"
        ));
    }
    notes
}

fn panels(asked: &HddTags, rows: &[Vec<Cell>]) -> Vec<Panel> {
    let count = asked.policies.len();
    let line = |name: String, column: usize| Series {
        name,
        points: rows
            .iter()
            .filter_map(|row| Some((value(&row[0])?, value(&row[column])?)))
            .collect(),
    };
    let named = || asked.policies.iter().copied().map(name).enumerate();
    let modelled = named().map(|(at, name)| line(name.to_owned(), 1 + at));
    let published = named().map(|(at, name)| {
        let column = 1 + 2 * count + 3 * at;
        line(format!("{name}, published"), column)
    });
    let ratios = named().map(|(at, name)| line(name.to_owned(), 1 + count + at));
    let panel = |up: &str, series: Vec<Series>| Panel {
        across: "jobs".into(),
        up: up.into(),
        series: (series.into_iter())
            .filter(|line| !line.points.is_empty())
            .collect(),
    };
    vec![
        panel("MiB/s", modelled.chain(published).collect()),
        panel("share of requests without a seek", ratios.collect()),
    ]
}

/// Of the published machine.
const NR_REQUESTS: u32 = 64;

const PUBLISHED: &str = include_str!("../reference/hdd-concurrent-writes.csv");

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn at(table: &Table, jobs: u32, column: &str) -> f64 {
        let column = table.columns.iter().position(|name| name == column);
        let mut rows = table.rows.iter();
        let row = rows.find(|row| row[0] == Cell::Count(jobs.into()));
        let cell = row.and_then(|row| row.get(column?)).and_then(value);
        cell.unwrap_or_else(|| panic!("{jobs} {column:?}"))
    }

    #[test]
    fn the_collapse_is_as_published_and_fair_tags_prevent_it() {
        let table = hdd_tags(&HddTags::default());
        let policies = ["plain", "fair"];
        let cells = |jobs| policies.map(|name| at(&table, jobs, &format!("{name}_mib_s")));
        let errors: Vec<f64> = (table.rows.iter())
            .flat_map(|row| [&row[6], &row[9]])
            .filter_map(value)
            .collect();
        assert_eq!(errors.len(), 14);
        let (mean, worst) = mean_and_worst(&errors).unwrap();
        assert!(mean <= 12.0 && worst <= 25.0, "{mean} {worst}");
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
        assert!((0.10..=0.30).contains(&ratio), "{ratio}");
    }

    #[test]
    fn without_the_grant_of_several_tags_fair_falls_back_towards_plain() {
        let asked = HddTags::default();
        let (plain, _) = cell(&asked, 512, Policy::Plain, true);
        let (fair, _) = cell(&asked, 512, Policy::Fair, true);
        let (alone, seeks) = cell(&asked, 512, Policy::Fair, false);
        assert!(
            alone < plain + (fair - plain) / 4.0,
            "{plain} {alone} {fair}"
        );
        assert!(seeks.sequential_ratio() < Some(0.3));
    }

    #[test]
    fn more_tags_let_more_requests_follow_each_other() {
        let asked = HddTags {
            nr_requests: 2048,
            ..HddTags::default()
        };
        let (_, few) = cell(&HddTags::default(), 512, Policy::Plain, true);
        let (_, many) = cell(&asked, 512, Policy::Plain, true);
        let ratio = many.sequential_ratio().unwrap();
        assert!((0.34..=0.64).contains(&ratio), "{ratio}");
        assert!(many.sequential_ratio() > few.sequential_ratio());
    }

    #[test]
    fn the_same_again_gives_the_same() {
        let asked = HddTags {
            numjobs: vec![20],
            policies: vec![Policy::Elastic],
            machine: LabMachine::Array,
            write_cache: true,
            ..HddTags::default()
        };
        assert_eq!(hdd_tags(&asked).json(), hdd_tags(&asked).json());
    }
}
