//! Probes of searches over their loads.

use fathom_record::MetricName;
use fathom_report::plot::{Axis, Panel, Plot, Point, Scale, Series};
use fathom_report::{Figure, Page, Picture};

use super::View;
use crate::figure::shortened;
use crate::lab::{Probe, Searching};
use crate::lab_plan::{Limit, SearchCondition};

/// Draws each condition of each search over the loads that were tried.
pub(super) fn figures(page: &mut Page, view: &View<'_>) {
    let conditions = view.plan.search.iter().flat_map(|search| &search.keep);
    let searches = view
        .outcome
        .searches
        .iter()
        .filter(|one| !one.probes.is_empty());
    let searches: Vec<&Searching> = searches.collect();
    let mut is_first = true;
    for (at, condition) in conditions.enumerate() {
        for part in searches.chunks(SEARCHES_OF_FIGURE).take(FIGURES_MAX) {
            if std::mem::take(&mut is_first) {
                page.heading(2, "Loads that were tried");
            }
            let plot = Plot {
                title: format!("{}, over the load", shortened(&condition.text, NAME_MAX)),
                panels: vec![panel(view, part, at, condition)],
            };
            page.figure(Figure::new(
                plot.title.clone(),
                CAPTION,
                Picture::Plot(plot),
            ));
        }
    }
}

fn panel(
    view: &View<'_>,
    searches: &[&Searching],
    at: usize,
    condition: &SearchCondition,
) -> Panel {
    let quantity = Quantity::of(condition);
    let series = searches.iter().enumerate().map(|(style, one)| {
        let mut probes: Vec<&Probe> = one.probes.iter().collect();
        probes.sort_by_key(|probe| probe.load);
        let points = probes.into_iter().map(|probe| {
            let estimate = probe.estimates.get(at).copied().flatten();
            let ends = estimate.and_then(|one| one.interval);
            Point {
                x: probe.load as f64,
                y: estimate.map(|one| quantity.number(one.value)),
                interval: ends.map(|ends| (quantity.number(ends.low), quantity.number(ends.high))),
            }
        });
        let name = match view.name(one.cell, one.variant) {
            name if name.is_empty() => "estimate".into(),
            name => name,
        };
        Series::measured(name, style, points)
    });
    let series: Vec<Series> = series.filter(Series::has_values).collect();
    let limit = limit(&series, quantity.limit(condition));
    let unit = view.plan.load_metric().1;
    Panel {
        across: Axis::new(format!("load asked of all jobs, {unit}"), Scale::Linear),
        up: Axis::new(quantity.label, Scale::Auto),
        series: series.into_iter().chain(limit).collect(),
    }
}

/// Returns the limit as a line over all loads.
fn limit(series: &[Series], limit: f64) -> Option<Series> {
    let loads = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.x)
    };
    let ends = loads().reduce(f64::min).zip(loads().reduce(f64::max))?;
    let points = [ends.0, ends.1].map(|x| Point::new(x, Some(limit)));
    Some(Series::measured("limit", LIMIT, points))
}

/// Quantity of a condition.
struct Quantity {
    label: String,
    name: Option<MetricName>,
    of_asked: bool,
}

impl Quantity {
    fn of(condition: &SearchCondition) -> Self {
        let name = MetricName::parse(&condition.metric).ok();
        let name = name.map(MetricName::in_usual_unit);
        let of_asked = matches!(condition.limit, Limit::OfAsked(_));
        let metric = shortened(&condition.metric, NAME_MAX);
        let label = match &name {
            _ if of_asked => format!("{metric}, % of the load asked"),
            Some(name) => format!("{}, {}", name.stored_name(), name.unit()),
            None => metric,
        };
        Self {
            label,
            name,
            of_asked,
        }
    }

    fn number(&self, stored: f64) -> f64 {
        match &self.name {
            _ if self.of_asked => stored * 100.0,
            Some(name) => name.in_unit(stored),
            None => stored,
        }
    }

    fn limit(&self, condition: &SearchCondition) -> f64 {
        match condition.limit {
            Limit::OfAsked(share) => share * 100.0,
            Limit::Value(value) => self.number(value),
        }
    }
}

/// Style of the limit: dotted, and grey.
const LIMIT: usize = 13;
/// Most searches of a figure, and figures of a condition.
const SEARCHES_OF_FIGURE: usize = 6;
const FIGURES_MAX: usize = 6;
const NAME_MAX: usize = 60;
const CAPTION: &str = "Estimate of each load that was tried, with its 95 % interval. The search \
                       ends at the highest load that keeps all conditions; it shows nothing of \
                       how much that load differs from search to search.";
