//! Verdicts, and comparisons as intervals.

use fathom_report::plot::{IntervalRow, Intervals};
use fathom_report::{Figure, Page, Picture};
use fathom_stats::Verdict;

use super::View;
use crate::figure::{change, interval};
use crate::judge::{JudgeRule, Judgement};

/// Writes the number of each verdict, by metric and variant.
pub(super) fn summary(page: &mut Page, view: &View<'_>) {
    let rows: Vec<Vec<String>> = sides(view).map(|side| side.counts(view)).collect();
    if rows.is_empty() {
        return;
    }
    page.heading(2, "Verdicts");
    let heads = [
        "comparison",
        "better",
        "same",
        "unclear",
        "worse",
        "of cells",
    ];
    page.table("Number of cells with each verdict", &heads, &rows);
}

/// Draws the comparisons of each judged metric as intervals.
pub(super) fn intervals(page: &mut Page, view: &View<'_>) {
    let mut is_first = true;
    for side in sides(view) {
        let judgements = side.judgements(view);
        if std::mem::take(&mut is_first) {
            page.heading(2, "Comparisons");
        }
        let parts = judgements.len().div_ceil(ROWS_MAX);
        for (at, part) in judgements.chunks(ROWS_MAX).enumerate() {
            let title = match parts {
                1 => side.name(view),
                parts => format!("{}, part {} of {parts}", side.name(view), at + 1),
            };
            let picture = Intervals {
                title,
                label: "change against the baseline, %".into(),
                zero: Some(0.0),
                rows: part.iter().map(|one| row(view, &side.rule, one)).collect(),
            };
            let name = format!("comparison-{}", side.name(view));
            page.figure(Figure::new(name, CAPTION, Picture::Intervals(picture)));
        }
    }
}

/// Judged metric of a variant against the baseline.
struct Side {
    metric: usize,
    variant: usize,
    rule: JudgeRule,
}

/// Returns the sides that are judged.
fn sides<'a>(view: &'a View<'_>) -> impl Iterator<Item = Side> + 'a {
    let judged = view.metrics().filter_map(|(at, one)| Some((at, one.rule?)));
    let all = judged.flat_map(|(metric, rule)| {
        let variants = 0..view.plan.variants.len();
        variants.map(move |variant| Side {
            metric,
            variant,
            rule,
        })
    });
    let has_judgements = |side: &Side| !side.judgements(view).is_empty();
    all.filter(has_judgements)
}

impl Side {
    fn judgements<'a>(&self, view: &View<'a>) -> Vec<&'a Judgement> {
        let of_side = |one: &&Judgement| (one.metric, one.variant) == (self.metric, self.variant);
        view.outcome.judgements.iter().filter(of_side).collect()
    }

    fn name(&self, view: &View<'_>) -> String {
        let metric = view.label(self.metric);
        let metric = metric.split(',').next().unwrap_or_default();
        let baseline = view.variant(view.plan.judge.baseline);
        format!(
            "{metric}: {} against {baseline}",
            view.variant(self.variant)
        )
    }

    fn counts(&self, view: &View<'_>) -> Vec<String> {
        let judgements = self.judgements(view);
        let of = |verdict: Verdict| {
            judgements
                .iter()
                .filter(|one| one.verdict == verdict)
                .count()
        };
        let counts = [
            Verdict::Better,
            Verdict::Same,
            Verdict::Unclear,
            Verdict::Worse,
        ]
        .map(of);
        let numbers = counts.into_iter().chain([judgements.len()]);
        let name = std::iter::once(self.name(view));
        name.chain(numbers.map(|number| number.to_string()))
            .collect()
    }
}

fn row(view: &View<'_>, rule: &JudgeRule, one: &Judgement) -> IntervalRow {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let word = one.verdict.word();
    IntervalRow {
        name: match view.plan.cells[one.cell].label.as_str() {
            "" => view.variant(one.variant).to_owned(),
            label => label.to_owned(),
        },
        note: match one.is_unstable {
            true => format!("{word}, unstable"),
            false => word.to_owned(),
        },
        value: one.ratio.map(|ratio| percent(ratio.middle)),
        interval: one
            .ratio
            .map(|ratio| (percent(ratio.low), percent(ratio.high))),
        band: Some(band(rule.tolerance)),
        style: style(one.verdict),
    }
}

/// Returns the changes that are too small to matter, %.
pub(crate) fn band(tolerance: f64) -> (f64, f64) {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    (percent(1.0 / (1.0 + tolerance)), percent(1.0 + tolerance))
}

/// Returns the style of a verdict: its marker and its colour, none of which another one has.
pub(crate) const fn style(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Better => 2,
        Verdict::Same => 6,
        Verdict::Unclear => 0,
        Verdict::Worse => 1,
    }
}

/// Returns a comparison in words, for a table.
pub(super) fn words(one: &Judgement) -> String {
    let word = one.verdict.word();
    match &one.ratio {
        None => word.into(),
        Some(ratio) if (0.1..10.0).contains(&ratio.middle) => format!("{} {word}", interval(ratio)),
        Some(ratio) => format!("{} {word}", change(ratio.middle)),
    }
}

const CAPTION: &str = "Estimated change of each cell with its interval. Changes within the shaded \
                       band are too small to matter. The verdict allows for all comparisons of the \
                       lab; each interval stands for itself, so do not count those that leave \
                       the band.";
/// Most rows of a figure: it is to fit a page of paper.
const ROWS_MAX: usize = 36;
