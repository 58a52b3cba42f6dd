//! Parts of the overview that only runs decide: the probes of searches, and the length of runs.

use super::{counted, duration, line};
use crate::lab::{EarlierRun, ProbeCount};
use crate::lab_plan::{LabPlan, Search};

/// Runs and time of all searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchCost {
    /// Least and largest number of runs.
    pub(super) runs: [u64; 2],
    /// Largest number of runs of one search.
    pub(super) runs_of_one: u64,
    /// Least and longest time, ns.
    pub(super) time_ns: [u64; 2],
}

impl LabPlan {
    /// Returns runs and time of all searches, if the lab searches and its jobs could be read.
    pub(super) fn search_cost(&self) -> Option<SearchCost> {
        let search = self.search.as_ref()?;
        let pause = self.run.pause.get();
        let mut cost = SearchCost {
            runs: [0; 2],
            runs_of_one: 0,
            time_ns: [0; 2],
        };
        for jobs in &self.open_loops {
            let first = jobs.length?.get().max(1);
            let most = search.probe_most.get();
            let ramp = self.warm_up.map_or(0, fathom_core::Nanos::get);
            let probes = ProbeCount::of(search.precision, self.load_bits());
            let runs = [probes.least, probes.most * runs_of_probe(first, most)];
            cost.runs_of_one = cost.runs_of_one.max(runs[1] + 1);
            // The run at the closed-loop maximum comes before the probes.
            let time = [probes.least * first, probes.most.saturating_mul(most)];
            for (at, (runs, time)) in runs.into_iter().zip(time).enumerate() {
                cost.runs[at] += runs + 1;
                let around = (runs + 1).saturating_mul(pause + ramp);
                let all = first.saturating_add(time).saturating_add(around);
                cost.time_ns[at] = cost.time_ns[at].saturating_add(all);
            }
        }
        (!self.open_loops.is_empty()).then_some(cost)
    }

    /// Writes what searches look for, and how often they probe.
    pub(super) fn write_searches(&self, text: &mut String, search: &Search) {
        let keep = search.keep.iter().map(|one| one.text.as_str());
        let what = format!(
            "highest {} that keeps {}, within {} %",
            search.vary,
            keep.collect::<Vec<_>>().join(", "),
            (search.precision * 1e8).round() / 1e6
        );
        line(text, "search", &what);
        let probes = ProbeCount::of(search.precision, self.load_bits());
        let what = format!(
            "the closed-loop maximum, then {} at least, about {}, at most {}, each for at most {}",
            counted(probes.least, "probe"),
            probes.usual,
            probes.most,
            duration(search.probe_most.get())
        );
        line(text, "probes", &what);
    }

    /// Writes whether longer runs or more repeats gain more: only runs can show that, not the file.
    pub(super) fn write_levels(&self, text: &mut String, earlier: &[EarlierRun]) {
        if self.comparisons() == 0 {
            return;
        }
        let mut told = self.level_sentences(earlier);
        if told.is_empty() {
            let what = "the first repeats tell whether longer runs or more repeats buy more";
            told.push(what.into());
        }
        for sentence in told {
            line(text, "levels", &sentence);
        }
    }
}

/// Returns the largest number of runs of a probe: each is as long as all before, until its time is
/// up.
const fn runs_of_probe(first: u64, most: u64) -> u64 {
    let (mut runs, mut time) = (1, first);
    while time < most {
        runs += 1;
        time = time.saturating_mul(2);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_probe_double_until_its_time_is_up() {
        assert_eq!(runs_of_probe(2, 2), 1);
        assert_eq!(runs_of_probe(2, 3), 2);
        assert_eq!(runs_of_probe(2, 60), 6);
        assert_eq!(runs_of_probe(1, u64::MAX), 65);
    }
}
