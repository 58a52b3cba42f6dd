//! Names of metrics, and conditions on them.

use std::ops::Range;

use fathom_job::closest;
use fathom_record::{METRICS, MetricName};

use super::judge::share_of;
use super::reader::Reader;
use crate::lab_plan::{Limit, SearchCondition, Service};

/// Returns the metric of this name; notes one that does not exist.
pub(super) fn read(reader: &Reader<'_>, name: &str, span: &Range<usize>) -> Option<MetricName> {
    match MetricName::parse(name) {
        Ok(metric) => Some(metric),
        Err(error) => {
            let hint = match nearest_metric(name, &error.candidates) {
                Some(near) => format!("did you mean `{near}`?"),
                None if error.candidates.is_empty() => "see docs/LAB.md".to_owned(),
                None => format!("one of: {}", error.candidates.join(", ")),
            };
            reader.refuse(span, error.message, hint);
            None
        }
    }
}

/// Returns the name of a metric that was probably meant: the unknown part becomes the most similar
/// of the possible ones, and a missing direction `read`.
#[must_use]
pub fn nearest_metric(name: &str, candidates: &[&'static str]) -> Option<String> {
    let rest = name.rsplit_once('/').map_or(name, |(_, rest)| rest);
    let Some((direction, metric)) = rest.split_once('.') else {
        let with_direction = format!("read.{rest}");
        if MetricName::parse(&with_direction).is_ok() {
            return Some(with_direction);
        }
        let known = METRICS.iter().map(|metric| metric.example);
        return closest(rest, known).map(|metric| format!("read.{metric}"));
    };
    if let Some(near) = closest(direction, candidates.iter().copied()) {
        return Some(format!("{near}.{metric}"));
    }
    closest(metric, candidates.iter().copied()).map(|near| format!("{direction}.{near}"))
}

/// Returns the metric of this name; notes one that does not exist, also one of a service that does
/// not exist or reports no numbers.
pub(super) fn read_of_lab(
    reader: &Reader<'_>,
    services: &[Service],
    name: &str,
    span: &Range<usize>,
) -> Option<MetricName> {
    let metric = read(reader, name, span)?;
    if !metric.is_of_service() {
        return Some(metric);
    }
    let service = services.iter().find(|one| one.name == metric.group);
    let (why, hint) = match service {
        Some(service) if service.stats.is_some() => return Some(metric),
        Some(service) => (
            format!("`{name}`: the service `{}` has no `stats`", service.name),
            "add the command that prints its numbers as JSON".to_owned(),
        ),
        None => {
            let known = services.iter().map(|one| one.name.as_str());
            let hint = match closest(&metric.group, known) {
                Some(near) => format!("did you mean `service.{near}.{}`?", metric.metric),
                None => format!("describe it in `[service.{}]`", metric.group),
            };
            let why = format!("`{name}`: there is no service `{}`", metric.group);
            (why, hint)
        }
    };
    reader.refuse(span, why, hint);
    None
}

/// Returns a condition such as `read.resp_p99 <= 1ms` or `read.iops >= 99% of asked`.
pub(super) fn condition(
    reader: &Reader<'_>,
    services: &[Service],
    text: &str,
    span: &Range<usize>,
) -> Option<SearchCondition> {
    let sides = text.split_once("<=").map(|sides| (sides, true));
    let sides = sides.or_else(|| text.split_once(">=").map(|sides| (sides, false)));
    let Some(((metric, limit), at_most)) = sides else {
        let why = format!("`{text}` is not a condition: it has neither `<=` nor `>=`");
        reader.refuse(span, why, "write it as in `read.resp_p99 <= 1ms`");
        return None;
    };
    let metric = read_of_lab(reader, services, metric.trim(), span)?;
    let Some(limit) = limit_of(limit.trim(), &metric) else {
        let why = format!("`{}` is not a limit of `{metric}`", limit.trim());
        let hint = match metric.row.unit {
            "ns" => "write a duration, as `1ms`, or a share, as `99% of asked`",
            _ => "write a number, or a share, as `99% of asked`",
        };
        reader.refuse(span, why, hint);
        return None;
    };
    Some(SearchCondition {
        text: text.trim().to_owned(),
        metric: metric.to_string(),
        at_most,
        limit,
    })
}

/// Returns a limit in the unit in which the metric is stored.
fn limit_of(text: &str, metric: &MetricName) -> Option<Limit> {
    if let Some(share) = text.strip_suffix("of asked") {
        return share_of(share).map(Limit::OfAsked);
    }
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let value = match (metric.row.unit, unit.trim()) {
        ("ns", "us" | "µs") => number * 1e3,
        ("ns", "ms") => number * 1e6,
        ("ns", "s") => number * 1e9,
        // A number is in the unit of the metric's name, with these prefixes too.
        (_, "") => metric.stored(number),
        ("ns", "ns") => number,
        ("ns", _) => return None,
        (_, "k") => metric.stored(number * 1e3),
        (_, "m") => metric.stored(number * 1e6),
        (_, "g") => metric.stored(number * 1e9),
        _ => return None,
    };
    value.is_finite().then_some(Limit::Value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_units() {
        let limit = |text, metric| limit_of(text, &MetricName::parse(metric).unwrap());
        assert_eq!(limit("1ms", "read.resp_p99"), Some(Limit::Value(1e6)));
        assert_eq!(limit("20 us", "read.resp_p99"), Some(Limit::Value(2e4)));
        assert_eq!(limit("10k", "read.iops"), Some(Limit::Value(1e4)));
        assert_eq!(limit("10k", "read.bw"), Some(Limit::Value(1e4)));
        let kib = Limit::Value(1024.0 * 1e3);
        assert_eq!(limit("1k", "read.bw_kib_s"), Some(kib));
        assert_eq!(limit("1000", "read.bw_kib_s"), Some(kib));
        assert_eq!(
            limit("2ms", "read.resp_p99_us"),
            limit("2000", "read.resp_p99_us")
        );
        assert_eq!(
            limit("99% of asked", "read.iops"),
            Some(Limit::OfAsked(0.99))
        );
        assert_eq!(limit("1ms", "read.iops"), None);
        assert_eq!(limit("5k", "read.resp_p99"), None);
        assert_eq!(limit("", "read.iops"), None);
    }

    #[test]
    fn the_unknown_part_is_mended() {
        let mended = |name| nearest_metric(name, &MetricName::parse(name).unwrap_err().candidates);
        assert_eq!(mended("write.bww").as_deref(), Some("write.bw"));
        assert_eq!(mended("wrote.bw").as_deref(), Some("write.bw"));
        assert_eq!(mended("iops").as_deref(), Some("read.iops"));
        assert_eq!(mended("clat_p95").as_deref(), Some("read.clat_p95"));
        assert_eq!(mended("clat_99").as_deref(), Some("read.clat_p99"));
        // The stem of a percentile is not a metric, and only metrics are proposed.
        assert_eq!(mended("read.clat_p").as_deref(), Some("read.clat_p99"));
    }
}
