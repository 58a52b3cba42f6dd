//! `[judge]`: the baseline, the metrics that are judged, and the number of repeats.

use std::ops::Range;

use fathom_job::closest;
use fathom_record::MetricName;
use fathom_stats::{DIFFERENCES_MAX, Improves, repeats_to_prove};
use fathom_toml::{Fields, Value};

use super::metrics;
use super::reader::Reader;
use crate::counted::counted;
use crate::lab_plan::{Judge, JudgedMetric, LabPlan, LabVariant, Repeats, Service, Stop};

/// Reads the table; without it nothing is judged, and each cell runs once.
pub(super) fn read(
    reader: &Reader<'_>,
    top: &Fields<'_>,
    variants: &[LabVariant],
    services: &[Service],
) -> Judge {
    let Some(fields) = top.table("judge", variants.len() < 2) else {
        return Judge::default();
    };
    let judge = Judge {
        baseline: baseline(reader, &fields, variants),
        metrics: metrics(reader, &fields, services),
        show: show(reader, &fields, services),
        repeats: repeats(reader, &fields),
    };
    fields.finish();
    judge
}

fn baseline(reader: &Reader<'_>, fields: &Fields<'_>, variants: &[LabVariant]) -> usize {
    let Some((name, span)) = fields.text("baseline", variants.len() < 2) else {
        return 0;
    };
    index_of(reader, variants, name, &span).unwrap_or_default()
}

/// Returns the variant of this name; notes one that does not exist.
pub(super) fn index_of(
    reader: &Reader<'_>,
    variants: &[LabVariant],
    name: &str,
    span: &Range<usize>,
) -> Option<usize> {
    let found = variants.iter().position(|variant| variant.name == name);
    if found.is_none() {
        let names: Vec<&str> = variants
            .iter()
            .map(|variant| variant.name.as_str())
            .collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names == [""] => "name the sides of the comparison in `[variants]`".into(),
            None => format!("variants here: {}", names.join(", ")),
        };
        reader.refuse(span, format!("there is no variant `{name}`"), hint);
    }
    found
}

/// Reads `metrics = { "write.bw" = "2%" }`.
fn metrics(reader: &Reader<'_>, fields: &Fields<'_>, services: &[Service]) -> Vec<JudgedMetric> {
    let Some(table) = fields.table("metrics", true) else {
        return Vec::new();
    };
    let mut judged = Vec::new();
    let mut known: Vec<MetricName> = Vec::new();
    for entry in table.entries() {
        let rule = Rule::read(entry.key, &entry.value);
        let Some(tolerance) = rule.tolerance else {
            let why = format!("the tolerance of `{}` must be a percentage", entry.key);
            reader.refuse(&entry.value.span(), why, "write it as `\"2%\"`");
            continue;
        };
        if tolerance > TOLERANCE_MAX {
            let why = format!("the tolerance of `{}` is above 100 %", entry.key);
            reader.refuse(&entry.value.span(), why, "write it as `\"2%\"`");
            continue;
        }
        if tolerance <= 0.0 {
            let why = format!(
                "the tolerance of `{}` is 0: nothing could ever be the same",
                entry.key
            );
            let hint = "name the change that is too small to matter, as `\"2%\"`";
            reader.refuse(&entry.value.span(), why, hint);
        }
        let metric = metrics::read_of_lab(reader, services, entry.key, &entry.key_span);
        let Some(metric) = metric else {
            continue;
        };
        let improves = rule.improves(reader, &metric, &entry.value.span());
        if let Some(other) = known.iter().find(|known| known.is_same(&metric)) {
            let why = format!("`{}` is `{other}`, which is judged already", entry.key);
            reader.refuse(&entry.key_span, why, "remove one of them");
        }
        if metric.row.is_percentile && tolerance > 0.0 && tolerance < BUCKET {
            let why = format!(
                "the tolerance of `{metric}` is below a bucket of the histogram, 1.6 %: smaller \
                 changes of a percentile are not measured"
            );
            reader.refuse(&entry.value.span(), why, "write `\"2%\"` or more");
        }
        judged.push(JudgedMetric {
            metric: metric.to_string(),
            tolerance,
            improves,
        });
        known.push(metric);
    }
    judged
}

/// Rule of a judged metric: `"2%"`, or `{ tolerance = "2%", better = "less" }`.
struct Rule {
    tolerance: Option<f64>,
    better: Option<Improves>,
}

impl Rule {
    fn read(name: &str, value: &Value<'_>) -> Self {
        let Some(fields) = value.fields(format!("judge.metrics.{name}")) else {
            return Self {
                tolerance: value.scalar().and_then(|text| share_of(&text)),
                better: None,
            };
        };
        let tolerance = fields.value("tolerance").and_then(|value| value.scalar());
        let better = fields.has("better");
        let better = better.then(|| fields.choice("better", &["more", "less"], false));
        fields.finish();
        Self {
            tolerance: tolerance.and_then(|text| share_of(&text)),
            better: better.map(|word| match word {
                "less" => Improves::Downwards,
                _ => Improves::Upwards,
            }),
        }
    }

    /// Returns the direction in which a metric improves: that of a service's number is only known
    /// to the user, and that of another one is not theirs to choose.
    fn improves(&self, reader: &Reader<'_>, metric: &MetricName, span: &Range<usize>) -> Improves {
        let refused = match (self.better, metric.is_of_service()) {
            (None, true) => Some((
                format!("`{metric}`: nothing says whether more or less of it is better"),
                r#"write `{ tolerance = "2%", better = "less" }`"#,
            )),
            (Some(better), false) if better != metric.row.improves => Some((
                format!("`{metric}` improves in the other direction"),
                "remove `better`: it is for the numbers of services",
            )),
            _ => None,
        };
        if let Some((why, hint)) = refused {
            reader.refuse(span, why, hint);
        }
        self.better.unwrap_or(metric.row.improves)
    }
}

/// Reads `show = ["read.clat_p99"]`.
fn show(reader: &Reader<'_>, fields: &Fields<'_>, services: &[Service]) -> Vec<String> {
    if !fields.has("show") {
        return Vec::new();
    }
    let names = fields.texts("show").into_iter();
    let checked = names.map(|(name, span)| {
        metrics::read_of_lab(reader, services, name, &span);
        name.to_owned()
    });
    checked.collect()
}

/// Reads `repeats = { min = 12, max = 40, stop = "narrow" }`.
fn repeats(reader: &Reader<'_>, fields: &Fields<'_>) -> Repeats {
    let Some(table) = fields.table("repeats", true) else {
        return Repeats {
            min: MIN,
            max: MAX,
            stop: Stop::Narrow,
        };
    };
    let max = table.count("max", 1..=REPEATS_MAX, Some(MAX));
    let min = table.count("min", 1..=REPEATS_MAX, Some(max.min(MIN)));
    let max = match table.has("max") {
        true => max,
        false => max.max(min),
    };
    let stop = match table.choice("stop", &["narrow", "never"], true) {
        "never" => Stop::Never,
        _ => Stop::Narrow,
    };
    table.finish();
    if max < min {
        let why = format!("`max` is {max}, less than `min`, {min}");
        reader.refuse(&table.span(), why, "raise `max`");
    }
    Repeats { min, max, stop }
}

/// Notes a number of repeats that could prove nothing, or that no verdict counts.
pub(super) fn check(reader: &Reader<'_>, top: &Fields<'_>, plan: &LabPlan) {
    let comparisons = plan.comparisons();
    let needed = repeats_to_prove(comparisons);
    let Repeats { min, max, .. } = plan.judge.repeats;
    if comparisons == 0 {
        return;
    }
    // With rounds, those of the window count.
    if plan.rounds.is_none() && max as usize > DIFFERENCES_MAX {
        let why = format!("a comparison counts at most {DIFFERENCES_MAX} repeats, not {max}");
        let hint = format!("set `max = {DIFFERENCES_MAX}`, and make runs longer instead");
        return reader.refuse(&repeats_span(top), why, hint);
    }
    if min >= needed {
        return;
    }
    let compared = counted(comparisons as u64, "comparison");
    if let (Some(rounds), Some(fields)) = (&plan.rounds, top.value("rounds")) {
        let why = format!(
            "a window of {} proves nothing: with {compared} no difference could reach p = 0.05",
            counted(rounds.window, "round")
        );
        let hint = format!("set `window = {needed}`, or compare less");
        return reader.refuse(&fields.span(), why, hint);
    }
    let prove = if min == 1 { "proves" } else { "prove" };
    let why = format!(
        "{} {prove} nothing: with {compared} no difference could reach p = 0.05",
        counted(min, "repeat")
    );
    let hint = format!("set `repeats = {{ min = {needed} }}`, or compare less");
    reader.refuse(&repeats_span(top), why, hint);
}

/// Returns the place of the number of repeats.
fn repeats_span(top: &Fields<'_>) -> Range<usize> {
    let judge = top.value("judge");
    let repeats = judge
        .as_ref()
        .and_then(|judge| judge.fields("judge")?.value("repeats"));
    repeats.or(judge).map_or(0..0, |value| value.span())
}

/// Returns a share, written as `2%`: without its sign, `2` could be meant as 2 % or as 200 %.
pub(super) fn share_of(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?;
    let percent: f64 = number.trim_end().parse().ok()?;
    let share = percent * 0.01;
    (0.0..=SHARE_MAX).contains(&share).then_some(share)
}

/// Fewest repeats if the file says nothing.
const MIN: u32 = 12;
/// Most repeats if the file says nothing.
const MAX: u32 = 40;
/// Largest number of repeats of a lab that compares nothing; otherwise [`DIFFERENCES_MAX`].
const REPEATS_MAX: u32 = 1000;
/// Width of a bucket: 64 of them double a value.
const BUCKET: f64 = 1.0 / 64.0;
/// Largest tolerance: twice as much is the same.
const TOLERANCE_MAX: f64 = 1.0;
/// Largest share: a hundred times as much.
const SHARE_MAX: f64 = 100.0;
