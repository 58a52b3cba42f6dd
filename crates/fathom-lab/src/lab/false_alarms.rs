//! A/A: how often an experiment cries wolf, found with experiments in which nothing differs.

use fathom_core::stream_seed;
use fathom_stats::{SIGNIFICANT, Verdict};

use super::rounds::LabOutcome;
use super::sequential;
use crate::lab_plan::LabPlan;
use crate::table::{Cell, Column, Table, TableHead};

/// False alarms of experiments in which every variant is the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FalseAlarms {
    /// Experiments that ended.
    pub experiments: u32,
    /// Experiments with at least one verdict *better* or *worse*.
    pub with_claim: u32,
    /// Experiments that would have claimed one if their runs, in the order in which they were made,
    /// had been all of one variant before all of the next.
    pub sequential_with_claim: u32,
    /// Comparisons of all experiments.
    pub comparisons: u64,
    /// Comparisons whose p value, before Holm's correction, is at most 0.05.
    pub below_5_percent: u64,
    /// Comparisons with the verdict *same*.
    pub same: u64,
    /// Cells that failed, of all experiments: they claim nothing, which proves nothing.
    pub failed_cells: u64,
    /// The user interrupted it.
    pub is_interrupted: bool,
}

impl FalseAlarms {
    /// Runs `count` experiments with the baseline in place of every variant, each with a seed of
    /// its own. `run` gets the experiment and the number of runs before it, of all experiments.
    ///
    /// # Errors
    /// The first failure of an experiment.
    pub fn of<E>(
        plan: &LabPlan,
        count: u32,
        run: &mut dyn FnMut(&LabPlan, u64) -> Result<LabOutcome, E>,
    ) -> Result<Self, E> {
        let mut alarms = Self::default();
        let runs = plan.cells.len() as u64 * plan.variants.len() as u64;
        let runs = runs * u64::from(plan.judge.repeats.max);
        for experiment in 0..u64::from(count) {
            let mut same = plan.clone().all_baseline();
            same.seed = stream_seed(plan.seed, experiment);
            let outcome = run(&same, experiment * runs)?;
            if outcome.is_interrupted {
                alarms.is_interrupted = true;
                break;
            }
            alarms.count(&same, &outcome);
        }
        Ok(alarms)
    }

    /// Returns the counts as a table of one row.
    #[must_use]
    pub fn table(&self, plan: &LabPlan) -> Table {
        let counts = [
            ("experiments", "experiments", self.experiments.into()),
            ("with_claim", "with a claim", self.with_claim.into()),
            (
                "sequential_with_claim",
                "if not interleaved",
                self.sequential_with_claim.into(),
            ),
            ("comparisons", "comparisons", self.comparisons),
            ("p_below_5_percent", "p ≤ 0.05", self.below_5_percent),
            ("same", "same", self.same),
            ("failed_cells", "failed cells", self.failed_cells),
        ];
        let mut notes = vec![format!(
            "{}: every variant is the baseline `{}`; each claim is a false alarm; p before the \
             correction for all comparisons",
            plan.place(),
            plan.variants[plan.judge.baseline].name
        )];
        if self.is_interrupted {
            notes.push("interrupted: some experiments are missing".into());
        }
        Table {
            head: TableHead {
                name: plan.name.clone(),
                about: format!(
                    "{}: false alarms of experiments without a change",
                    plan.name
                ),
                origin: String::new(),
                has_plot: false,
            },
            columns: counts
                .iter()
                .map(|(key, heading, _)| Column::figure(*key, heading))
                .collect(),
            rows: vec![counts.map(|(_, _, count)| Cell::Count(count)).to_vec()],
            notes,
            panels: Vec::new(),
        }
    }

    fn count(&mut self, plan: &LabPlan, outcome: &LabOutcome) {
        let count = |is_one: &dyn Fn(&crate::Judgement) -> bool| {
            outcome.judgements.iter().filter(|one| is_one(one)).count() as u64
        };
        let claims = count(&|one| matches!(one.verdict, Verdict::Better | Verdict::Worse));
        let failed = outcome.results.cells.iter();
        self.failed_cells += failed.filter(|cell| cell.failure.is_some()).count() as u64;
        self.experiments += 1;
        self.with_claim += u32::from(claims > 0);
        self.sequential_with_claim += u32::from(sequential::claims(plan, &outcome.results));
        self.comparisons += outcome.judgements.len() as u64;
        self.below_5_percent += count(&|one| one.p <= SIGNIFICANT);
        self.same += count(&|one| one.verdict == Verdict::Same);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Modelled, NoJournal, run_lab};
    use crate::lab_file::tests::Files;

    const LAB: &str = r#"
[lab]
name = "t"
machine = "m.toml"
[job]
rw = "randread"
bs = "4k"
filename = "/dev/m"
ioengine = "psync"
norandommap = "1"
runtime = "20ms"
time_based = true
[variants]
plain = {}
slow = { machine = { "device.constant.latency_us" = 200 } }
[judge]
baseline = "plain"
metrics = { "read.iops" = "2%", "read.clat_p90" = "2%" }
repeats = { min = 8, max = 8, stop = "never" }
[run]
pause = "60s"
"#;

    /// Twice as slow after two hours: an experiment is a quarter of an hour.
    const MACHINE: &str = r#"
[[device]]
names = ["*"]
model = "constant"
capacity_gib = 0.1
[device.constant]
latency_us = 100
[noise]
between_runs_percent = 2
drift_percent_per_hour = 40
neighbour = { every_s = 600, for_s = 90, times = 1.2 }
"#;

    #[test]
    fn experiments_without_a_change_claim_none_however_many_there_are() {
        let files = Files::new(&[("m.toml", MACHINE)]);
        let plan = LabPlan::parse("t.toml", LAB, &[], &files).expect("a lab");
        let mut runs = Vec::new();
        let alarms = FalseAlarms::of(&plan, 60, &mut |plan, runs_before| {
            let mut executor = Modelled::new(plan, &files, &|| 0, 1).after(runs_before);
            let outcome = run_lab(plan, &mut executor, &mut NoJournal, &mut |_| {})?;
            runs.push(outcome.results.values.of(0, 0, 0)[0].1);
            Ok::<_, crate::lab::LabFailure>(outcome)
        });
        let alarms = alarms.expect("experiments");
        assert_eq!((alarms.experiments, alarms.comparisons), (60, 120));
        assert_eq!(alarms.failed_cells, 0);
        // Drift of a tenth in a quarter of an hour is a change to the design that it is not.
        assert!(alarms.sequential_with_claim >= 20, "{alarms:?}");
        // At most one experiment of 20 is expected to claim a change: three.
        assert!(alarms.with_claim <= 6, "{alarms:?}");
        // Each begins on a fresh machine, with a noise of its own.
        assert!(
            runs.iter().all(|rate| (7_000.0..11_500.0).contains(rate)),
            "{runs:?}"
        );
        assert!(runs.windows(2).any(|two| two[0] != two[1]), "{runs:?}");
    }
}
