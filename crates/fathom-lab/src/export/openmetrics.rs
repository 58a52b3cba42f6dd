//! Runs as OpenMetrics with timestamps, as `promtool tsdb create-blocks-from openmetrics` reads it.
//!
//! A series of samples is a metric of comparable runs. The number of a run is not among its labels,
//! which would make a series of each sample: it is in `fathom_run_info`.

use std::collections::{BTreeMap, BTreeSet};

use fathom_record::{Measure, MetricName, OF_SERVICE};
use fathom_report::{MetricsFormat, MetricsKind, MetricsPage};

use super::{fact, series_labels};
use crate::store::StoredRun;

/// Collected samples of runs: some 50 bytes of memory each.
#[derive(Clone, Debug, Default)]
pub struct MetricsExport {
    families: BTreeMap<String, BTreeMap<SampleKey, BTreeMap<u64, f64>>>,
    series: Vec<Labels>,
    runs: BTreeMap<(u64, i64), Labels>,
    undated: usize,
    at_once: usize,
}

/// Labels of a sample that are not those of its series of runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SampleKey {
    /// Index of the series.
    series: usize,
    labels: Labels,
}

type Labels = Vec<(String, String)>;

impl MetricsExport {
    /// Adds a run.
    pub fn add(&mut self, run: &StoredRun) {
        let Some(ms) = run.row.begun_ms.filter(|&ms| ms > 0) else {
            self.undated += 1;
            return;
        };
        let labels = owned(series_labels(&run.row));
        let known = self.series.iter().position(|one| *one == labels);
        let series = known.unwrap_or_else(|| {
            self.series.push(labels);
            self.series.len() - 1
        });
        let mut is_late = false;
        for measure in &run.measures {
            let sample = Sample::of(measure);
            let key = SampleKey {
                series,
                labels: sample.labels,
            };
            let family = self.families.entry(sample.family).or_default();
            let moments = family.entry(key).or_default();
            // A series has one sample at a moment.
            is_late |= moments.contains_key(&ms);
            moments.entry(ms).or_insert(sample.value);
        }
        self.at_once += usize::from(is_late);
        self.runs.insert((ms, run.row.id.0), info(run));
    }

    /// Returns the number of runs left out because their start is unknown.
    #[must_use]
    pub const fn undated(&self) -> usize {
        self.undated
    }

    /// Returns the number of runs whose samples are left out because an earlier run of their
    /// series began at the same millisecond.
    #[must_use]
    pub const fn at_once(&self) -> usize {
        self.at_once
    }

    /// Formats all samples.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = MetricsPage::new("fathom_", MetricsFormat::OpenMetrics);
        page.family("run_info", "Run", MetricsKind::Info, |samples| {
            for ((ms, _), labels) in &self.runs {
                samples.add_at(&borrowed(labels), 1, *ms);
            }
        });
        for (name, family) in &self.families {
            let help = "Metric of runs, as docs/EXPORTS.md describes it";
            page.family(name, help, MetricsKind::Gauge, |samples| {
                for (key, moments) in family {
                    let mut labels = borrowed(&self.series[key.series]);
                    labels.extend(borrowed(&key.labels));
                    for (ms, value) in moments {
                        samples.add_at(&labels, value, *ms);
                    }
                }
            });
        }
        page.finish()
    }
}

/// A metric of a run as a sample.
struct Sample {
    family: String,
    labels: Labels,
    value: f64,
}

impl Sample {
    fn of(measure: &Measure) -> Self {
        let Measure {
            group,
            direction,
            metric,
            value,
            ..
        } = measure;
        let of = match *direction {
            OF_SERVICE => "service",
            _ => "job",
        };
        let name = MetricName::parse(&measure.name()).ok();
        let Some(name) = name.filter(|name| !name.is_of_service()) else {
            // Names of a service's numbers are not ours: they are labels.
            return Self {
                family: "other_number".into(),
                labels: labels([(of, group), ("direction", direction), ("metric", metric)]),
                value: *value,
            };
        };
        let (unit, size) = match name.row.unit {
            "ns" => ("_seconds", 1e9),
            "B/s" => ("_bytes_per_second", 1.0),
            _ => ("", 1.0),
        };
        let base = name.row.name;
        let (family, percentile) = match (base.strip_suffix("_p"), name.percent) {
            (Some(kind), Some(percent)) => (format!("{kind}_percentile"), percent.to_string()),
            _ => (base.to_owned(), String::new()),
        };
        Self {
            family: family + unit,
            labels: labels([
                (of, group),
                ("direction", direction),
                ("percentile", &percentile),
            ]),
            value: value / size,
        }
    }
}

/// Returns the labels of a run. Names of tags have other characters than labels may have: they are
/// replaced, and a name that is taken then has a number.
fn info(run: &StoredRun) -> Labels {
    let mut labels = vec![
        ("run".to_owned(), run.row.id.0.to_string()),
        ("uuid".to_owned(), run.row.uuid.clone()),
    ];
    labels.extend(owned(series_labels(&run.row)));
    for name in ["program", "kernel", "firmware"] {
        labels.extend(fact(run, name).map(|text| (name.to_owned(), text)));
    }
    let mut taken = BTreeSet::new();
    for (tag, value) in run.tags() {
        let is_plain = |one: char| one.is_ascii_alphanumeric() || one == '_';
        let plain = tag.chars().map(|one| if is_plain(one) { one } else { '_' });
        let plain = format!("tag_{}", plain.collect::<String>());
        let numbered = (2..).map(|number| format!("{plain}_{number}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone()));
        labels.push((name.unwrap_or(plain), value));
    }
    labels
}

/// Returns labels without empty ones, which are the same as none.
fn labels<const N: usize>(all: [(&str, &str); N]) -> Labels {
    let present = all.into_iter().filter(|(_, value)| !value.is_empty());
    present
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn owned(labels: Vec<(&'static str, String)>) -> Labels {
    let owned = labels.into_iter();
    owned
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn borrowed(labels: &Labels) -> Vec<(&str, &str)> {
    let each = labels.iter();
    each.map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}
