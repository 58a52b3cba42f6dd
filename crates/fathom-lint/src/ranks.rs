//! Rules about runs of several ranks.

use fathom_core::{Direction, PerDirection};
use fathom_job::Size;
use fathom_setup::translate::pattern::uses;

use super::view::JobView;
use super::{Rule, RuleMatch};

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "rates-per-rank",
        "a rate that each job of each rank has",
        rate_of_all,
    ),
    Rule::new(
        "sizes-per-rank",
        "a size that each job of each rank has",
        size_of_all,
    ),
];

fn rate_of_all(view: &JobView<'_>) -> Option<RuleMatch> {
    let options = view.options;
    let rates = [
        ("rate_iops", &["rate_iops"] as &[_], options.rate_iops),
        ("rate", &["rate"], options.rate),
    ];
    let (option, at, rates) = rates
        .into_iter()
        .find(|(option, _, _)| is_same_on_all(view, option))?;
    let (jobs, shares) = jobs_of_all(view)?;
    let sum = of_used(view, rates)?.saturating_mul(jobs);
    let come_to = match option {
        "rate" => format!("{:.1} MiB/s", mib(sum)),
        _ => format!("{sum} IOPS"),
    };
    RuleMatch::new(
        at,
        format!("`{option}` is per job: {shares} come to {come_to}"),
        format!("for a rate of all ranks together, divide it: `{option}=(1000/$ranks)`"),
    )
}

fn size_of_all(view: &JobView<'_>) -> Option<RuleMatch> {
    let Some(Size::Bytes(bytes)) = view.options.size.filter(|_| is_same_on_all(view, "size"))
    else {
        return None;
    };
    let (jobs, shares) = jobs_of_all(view)?;
    let sum = mib(bytes.saturating_mul(jobs));
    RuleMatch::new(
        &["size"],
        format!("`size` is per job: {shares} come to {sum:.1} MiB"),
        "for a size of all ranks together, divide it: `size=(100g/$ranks)`",
    )
}

/// Returns whether an option was given, and not as a share of the ranks.
fn is_same_on_all(view: &JobView<'_>, option: &str) -> bool {
    let written = view.job.written(option);
    written.is_some_and(|typed| !typed.value.contains("$ranks"))
}

/// Returns the number of jobs that a section has on all ranks, also in words; `None` for one rank,
/// and where the hosts decide.
fn jobs_of_all(view: &JobView<'_>) -> Option<(u64, String)> {
    let all = view.job.place.rank.ranks;
    let ranks = view
        .options
        .placement
        .count(all)
        .filter(|ranks| *ranks > 1)?;
    let jobs = view.options.numjobs;
    let shares = match jobs {
        1 => format!("{ranks} ranks"),
        jobs => format!("{ranks} ranks of {jobs} jobs"),
    };
    Some((u64::from(ranks) * u64::from(jobs), shares))
}

/// Returns the sum of the rates of the directions that a job uses.
fn of_used(view: &JobView<'_>, rates: PerDirection<Option<u64>>) -> Option<u64> {
    let used = Direction::ALL.into_iter();
    let used = used.filter(|&direction| uses(view.options, direction));
    let rates = used.filter_map(|direction| rates[direction]);
    rates.reduce(u64::saturating_add).filter(|sum| *sum > 0)
}

#[expect(clippy::cast_precision_loss, reason = "a sum in a sentence")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
