//! Metrics that a lab reads off each of its runs.

use fathom_record::{MetricName, MetricNameError};

use crate::judge::JudgeRule;
use crate::lab_plan::{LabPlan, Subject};

/// Metric that is read off each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Name, with the unit in which it is shown.
    pub name: MetricName,
    /// Rule by which it is judged; `None` if it is only shown.
    pub rule: Option<JudgeRule>,
}

impl Observed {
    /// Returns whether the windows of a run can have the metric: rates, means and percentiles.
    pub(super) fn has_windows(&self) -> bool {
        let name = &self.name;
        let is_rate = matches!(name.metric.as_str(), "bw" | "iops");
        let is_latency = name.metric.ends_with("_mean") || name.percent.is_some();
        !name.is_of_service() && (is_rate || is_latency)
    }
}

/// Lists the metrics of a lab: the judged ones, in the order of the file, then those that are
/// shown, beside which published figures stand, or that have to be steady, each once.
///
/// # Errors
/// A name that is none.
pub fn observed(plan: &LabPlan) -> Result<Vec<Observed>, MetricNameError> {
    let mut all: Vec<Observed> = Vec::new();
    for judged in &plan.judge.metrics {
        let name = MetricName::parse(&judged.metric)?;
        let rule = JudgeRule {
            improves: judged.improves,
            tolerance: judged.tolerance,
        };
        all.push(Observed {
            name,
            rule: Some(rule),
        });
    }
    let published = plan.published.iter().flat_map(|one| &one.columns);
    for metric in published
        .map(|column| &column.metric)
        .chain(&plan.judge.show)
        .chain(plan.rounds.iter().map(|rounds| &rounds.metric))
    {
        let name = MetricName::parse(metric)?;
        match all.iter_mut().find(|known| known.name.is_same(&name)) {
            // Ours stand in the unit of the published ones.
            Some(known) => known.name = known.name.clone().in_unit_of(&name),
            None => all.push(Observed { name, rule: None }),
        }
    }
    // A table without a figure would say nothing of its runs; that of a search has its loads.
    if all.is_empty() && plan.search.is_none() {
        for metric in shown_by_default(plan) {
            let name = MetricName::parse(metric)?;
            all.push(Observed { name, rule: None });
        }
    }
    for one in &mut all {
        one.name = one.name.clone().in_usual_unit();
    }
    Ok(all)
}

/// Returns the metrics that are shown of a lab that names none.
fn shown_by_default(plan: &LabPlan) -> &'static [&'static str] {
    match &plan.subject {
        Subject::Job(_) => &["all.iops", "all.bw", "all.clat_p99"],
        Subject::Peak(arguments) if arguments.iter().any(|one| one.key == "write") => {
            &["write.iops", "write.bw"]
        }
        Subject::Peak(_) => &["read.iops", "read.bw"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab_file::tests::Files;

    #[track_caller]
    fn check(text: &str, want: &[&str]) {
        let text = format!("[lab]\nname = \"sweep\"\n{text}");
        let plan = LabPlan::parse("f/lab.toml", &text, &[], &Files::new(&[])).expect("a lab");
        let observed = observed(&plan).expect("metrics");
        let names: Vec<_> = observed.iter().map(|one| one.name.stored_name()).collect();
        assert_eq!(names, want);
    }

    #[test]
    fn a_lab_that_names_no_metric_shows_some() {
        let sweep = "[job]\nfilename = \"f\"\nsize = \"1m\"\nrw = \"read\"\n\
                     [axes]\niodepth = [1, 2]\n";
        check(sweep, &["all.iops", "all.bw", "all.clat_p99"]);
        let named = format!("{sweep}[judge]\nshow = [\"read.bw\"]\n");
        check(&named, &["read.bw"]);
        let peak = "[peak]\ntarget = \"f\"\n[axes]\ndepth = [1, 2]\n";
        check(peak, &["read.iops", "read.bw"]);
    }
}
