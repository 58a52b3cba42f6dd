//! Runs as OTLP: an `ExportMetricsServiceRequest` as JSON for each, as the collector's file
//! exporter writes them.
//!
//! After the JSON encoding of the OTLP specification: 64-bit integers are strings, and enumerations
//! are numbers.

use fathom_record::{Measure, MetricName, OF_SERVICE, Record};
use fathom_report::{BOUNDS, DirectionMetrics, RunMetrics};
use fathom_stats::Latency;
use serde_json::{Map, Value, json};

use super::{fact, series_labels};
use crate::store::StoredRun;

/// Returns the line of a run. Of its record come the distributions of latencies, as histograms.
#[must_use]
pub fn otlp_line(run: &StoredRun, record: Option<&Record>) -> String {
    let mut metrics = Metrics::of(run);
    for measure in &run.measures {
        metrics.add_measure(measure);
    }
    if let Some(record) = record {
        let figures = RunMetrics::of_record(record);
        for direction in figures.directions() {
            metrics.add_histograms(direction);
        }
    }
    let request = json!({
        "resourceMetrics": [{
            "resource": { "attributes": resource(run) },
            "scopeMetrics": [{
                "scope": { "name": "fathom", "version": env!("CARGO_PKG_VERSION") },
                "metrics": metrics.into_values(),
            }],
        }],
    });
    format!("{request}\n")
}

/// Metrics of a run, with their data points.
struct Metrics {
    /// Times of begin and end, ns, as JSON has them.
    begun: String,
    ended: String,
    /// Name, unit and data points, in order of the first one.
    gauges: Vec<(String, &'static str, Vec<Value>)>,
    histograms: Vec<(String, Vec<Value>)>,
}

impl Metrics {
    fn of(run: &StoredRun) -> Self {
        let begun_ms = run.row.begun_ms.unwrap_or(0);
        let ended_ms = begun_ms.saturating_add(run.row.wall_ms.unwrap_or(0));
        let ns = |ms: u64| ms.saturating_mul(1_000_000).to_string();
        Self {
            begun: ns(begun_ms),
            ended: ns(ended_ms),
            gauges: Vec::new(),
            histograms: Vec::new(),
        }
    }

    fn add_measure(&mut self, measure: &Measure) {
        let mut attributes = place(&measure.group, measure.direction);
        let name = MetricName::parse(&measure.name()).ok();
        let (name, unit, size) = match name.filter(|name| !name.is_of_service()) {
            None => {
                attributes.push(attribute("fathom.metric", text(&measure.metric)));
                ("fathom.other".to_owned(), "", 1.0)
            }
            Some(name) => {
                if let Some(percent) = name.percent {
                    let percent = json!({ "doubleValue": percent });
                    attributes.push(attribute("fathom.percentile", percent));
                }
                let base = name.row.name;
                let base = match base.strip_suffix("_p") {
                    Some(kind) => format!("{kind}.percentile"),
                    None => match base.rsplit_once('_') {
                        Some((kind, moment @ ("mean" | "stddev" | "min" | "max"))) => {
                            format!("{kind}.{moment}")
                        }
                        _ => base.to_owned(),
                    },
                };
                let (unit, size) = match name.row.unit {
                    "ns" => ("s", 1e9),
                    "B/s" => ("By/s", 1.0),
                    "IOPS" => ("{operation}/s", 1.0),
                    _ => ("", 1.0),
                };
                (format!("fathom.{base}"), unit, size)
            }
        };
        let point = json!({
            "attributes": attributes,
            "startTimeUnixNano": self.begun,
            "timeUnixNano": self.ended,
            "asDouble": measure.value / size,
        });
        match self.gauges.iter_mut().find(|(own, ..)| *own == name) {
            Some((.., points)) => points.push(point),
            None => self.gauges.push((name, unit, vec![point])),
        }
    }

    /// Adds the latencies of a direction whose distribution was kept.
    fn add_histograms(&mut self, direction: &DirectionMetrics<'_>) {
        for (kind, latency) in &direction.latencies {
            let Some(mut point) = histogram(latency) else {
                continue;
            };
            let mut attributes = place(&direction.job, direction.direction);
            let group = json!({ "intValue": direction.group.to_string() });
            attributes.push(attribute("fathom.reporting_group", group));
            point.insert("attributes".into(), attributes.into());
            point.insert("startTimeUnixNano".into(), json!(self.begun));
            point.insert("timeUnixNano".into(), json!(self.ended));
            let name = format!("fathom.{kind}");
            match self.histograms.iter_mut().find(|(own, _)| *own == name) {
                Some((_, points)) => points.push(point.into()),
                None => self.histograms.push((name, vec![point.into()])),
            }
        }
    }

    fn into_values(self) -> Vec<Value> {
        let gauges = self.gauges.into_iter().map(|(name, unit, points)| {
            json!({ "name": name, "unit": unit, "gauge": { "dataPoints": points } })
        });
        let histograms = self.histograms.into_iter().map(|(name, points)| {
            let histogram = json!({
                "dataPoints": points,
                "aggregationTemporality": DELTA,
            });
            json!({ "name": name, "unit": "s", "histogram": histogram })
        });
        gauges.chain(histograms).collect()
    }
}

/// Returns the counts between the bounds; `None` if no distribution was kept.
#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
fn histogram(latency: &Latency) -> Option<Map<String, Value>> {
    let histogram = latency.histogram.as_ref()?;
    let count = histogram.count();
    // Bounds are inclusive, and latencies whole nanoseconds.
    let below = BOUNDS.iter().map(|(ns, _)| histogram.count_below(ns + 1));
    let mut before = 0;
    let counts = below.chain([count]).map(|below| {
        let own = below.saturating_sub(before);
        before = below;
        own.to_string()
    });
    let seconds = |ns: u64| ns as f64 / 1e9;
    let summary = &latency.summary;
    let point = json!({
        "count": count.to_string(),
        "sum": summary.sum() as f64 / 1e9,
        "min": seconds(summary.min()),
        "max": seconds(summary.max()),
        "bucketCounts": counts.collect::<Vec<_>>(),
        "explicitBounds": BOUNDS.map(|(ns, _)| seconds(ns)),
    });
    match point {
        Value::Object(point) => Some(point),
        _ => None,
    }
}

/// Returns the attributes of the run itself.
fn resource(run: &StoredRun) -> Vec<Value> {
    let row = &run.row;
    let mut all = vec![
        attribute("service.name", text("fathom")),
        attribute("fathom.run", json!({ "intValue": row.id.0.to_string() })),
        attribute("fathom.uuid", text(&row.uuid)),
    ];
    for (name, value) in series_labels(row) {
        all.push(attribute(&format!("fathom.{name}"), text(&value)));
    }
    for name in ["program", "kernel", "firmware"] {
        all.extend(fact(run, name).map(|fact| attribute(&format!("fathom.{name}"), text(&fact))));
    }
    for (tag, value) in run.tags() {
        all.push(attribute(&format!("fathom.tag.{tag}"), text(&value)));
    }
    all
}

/// Returns the attributes of jobs of a name and a direction, or of a service.
fn place(group: &str, direction: &str) -> Vec<Value> {
    let mut attributes = vec![attribute("fathom.direction", text(direction))];
    let key = match direction {
        OF_SERVICE => "fathom.service",
        _ => "fathom.job",
    };
    if !group.is_empty() {
        attributes.push(attribute(key, text(group)));
    }
    attributes
}

fn attribute(key: &str, value: Value) -> Value {
    json!({ "key": key, "value": value })
}

fn text(text: &str) -> Value {
    json!({ "stringValue": text })
}

/// `AGGREGATION_TEMPORALITY_DELTA`: a run's counts are its own.
const DELTA: u32 = 1;
