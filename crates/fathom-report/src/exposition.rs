//! Pages of metrics: OpenMetrics 1.0, and the text format of Prometheus, version 0.0.4.
//!
//! ```text
//!              OpenMetrics                          Prometheus
//! # TYPE       fathom_ops counter                   fathom_ops_total counter
//! # UNIT       fathom_clat_seconds seconds          –
//! samples      fathom_ops_total{job="a"} 7          the same
//! timestamps   1780000000.123 (seconds)             1780000000123 (milliseconds)
//! end          # EOF                                –
//! ```

use std::fmt::Write as _;

use fathom_stats::Latency;

/// Format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics 1.0, for a scrape that asks for it and for files with timestamps.
    OpenMetrics,
    /// Prometheus' text format, which node_exporter's textfile collector and older scrapes read.
    Prometheus,
}

/// Kind of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsKind {
    /// Total since the start; its name ends in `_total`.
    Counter,
    /// Value that rises and falls.
    Gauge,
    /// Latencies by bounds, in seconds; its name ends in `_seconds`.
    Histogram,
    /// Text in labels, of value 1; its name ends in `_info`.
    Info,
}

/// Page of metrics under construction.
///
/// Families of different names are added one after the other; all samples of a family are added
/// at once, because both formats forbid to interleave them.
#[derive(Debug)]
pub struct MetricsPage {
    prefix: &'static str,
    format: MetricsFormat,
    text: String,
}

impl MetricsPage {
    /// Creates an empty page; `prefix` begins all names.
    #[must_use]
    pub const fn new(prefix: &'static str, format: MetricsFormat) -> Self {
        Self {
            prefix,
            format,
            text: String::new(),
        }
    }

    /// Adds a family of samples; nothing if there are none. `name` is that of its samples, without
    /// the prefix. The unit is the end of the name, if OpenMetrics knows it as one.
    pub fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricsKind,
        each: impl FnOnce(&mut MetricsSamples),
    ) {
        let mut samples = MetricsSamples {
            name: format!("{}{name}", self.prefix),
            format: self.format,
            text: String::new(),
        };
        each(&mut samples);
        if samples.text.is_empty() {
            return;
        }
        self.head(&samples.name, help, kind);
        self.text.push_str(&samples.text);
    }

    fn head(&mut self, name: &str, help: &str, kind: MetricsKind) {
        let is_open = self.format == MetricsFormat::OpenMetrics;
        let (ending, word) = match kind {
            MetricsKind::Counter => ("_total", "counter"),
            MetricsKind::Gauge => ("", "gauge"),
            MetricsKind::Histogram => ("", "histogram"),
            MetricsKind::Info if is_open => ("_info", "info"),
            MetricsKind::Info => ("", "gauge"),
        };
        // A family of OpenMetrics has the name of its samples without their ending.
        let family = if is_open {
            name.strip_suffix(ending).unwrap_or(name)
        } else {
            name
        };
        let mut lines = format!("# HELP {family} {help}\n# TYPE {family} {word}\n");
        let unit = UNITS.into_iter().find(|unit| has_unit(family, unit));
        if let Some(unit) = unit.filter(|_| is_open) {
            let _infallible = writeln!(lines, "# UNIT {family} {unit}");
        }
        self.text.push_str(&lines);
    }

    /// Returns the whole page.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Samples of one family.
#[derive(Debug)]
pub struct MetricsSamples {
    name: String,
    format: MetricsFormat,
    text: String,
}

impl MetricsSamples {
    /// Adds a sample: its labels and its value. No two samples of a family may have the same
    /// labels.
    pub fn add(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.sample("", labels, None, &value);
    }

    /// Adds a sample of a moment; those of the same labels follow one another in order of time.
    pub fn add_at(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display, ms: u64) {
        self.sample("", labels, Some(ms), &value);
    }

    /// Adds a histogram of latencies, in seconds; nothing if its distribution was not kept.
    pub fn add_latency(&mut self, labels: &[(&str, &str)], latency: &Latency) {
        let Some(histogram) = &latency.histogram else {
            return;
        };
        let mut labels = labels.to_vec();
        for (ns, text) in BOUNDS {
            // Inclusive, as `le` is; latencies are whole nanoseconds.
            let count = histogram.count_below(ns + 1);
            labels.push(("le", text));
            self.sample("_bucket", &labels, None, &count);
            labels.pop();
        }
        let count = histogram.count();
        labels.push(("le", "+Inf"));
        self.sample("_bucket", &labels, None, &count);
        labels.pop();
        self.sample("_count", &labels, None, &count);
        self.sample("_sum", &labels, None, &sum_seconds(latency));
    }

    fn sample(
        &mut self,
        ending: &str,
        labels: &[(&str, &str)],
        ms: Option<u64>,
        value: &dyn std::fmt::Display,
    ) {
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = match labels.as_slice() {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let at = match (ms, self.format) {
            (None, _) => String::new(),
            (Some(ms), MetricsFormat::Prometheus) => format!(" {ms}"),
            (Some(ms), MetricsFormat::OpenMetrics) => format!(" {}.{:03}", ms / 1000, ms % 1000),
        };
        let name = &self.name;
        let _infallible = writeln!(self.text, "{name}{ending}{labels} {value}{at}");
    }
}

/// Formats a label. A value may be a peer's or a job file's: a line feed or a quotation mark in it
/// must not begin a sample of its own.
fn label((name, value): &(&str, &str)) -> String {
    let mut text = format!("{name}=\"");
    for one in value.chars() {
        match one {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

fn has_unit(family: &str, unit: &str) -> bool {
    let rest = family.strip_suffix(unit);
    rest.is_some_and(|rest| rest.ends_with('_'))
}

#[expect(clippy::cast_precision_loss, reason = "rounded once, to the nearest")]
fn sum_seconds(latency: &Latency) -> f64 {
    latency.summary.sum() as f64 / 1e9
}

/// Units that end names.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];

/// Bounds of latency histograms: ns, and as OpenMetrics writes the seconds. Fixed, so that
/// histograms of different runs can be added and compared; three to a decade, from the cost of an
/// op without I/O to a request that hangs.
pub const BOUNDS: [(u64, &str); 28] = [
    (100, "1e-07"),
    (200, "2e-07"),
    (500, "5e-07"),
    (1_000, "1e-06"),
    (2_000, "2e-06"),
    (5_000, "5e-06"),
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_000_000_000, "2.0"),
    (5_000_000_000, "5.0"),
    (10_000_000_000, "10.0"),
    (20_000_000_000, "20.0"),
    (50_000_000_000, "50.0"),
    (100_000_000_000, "100.0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: MetricsFormat) -> String {
        let mut latency = Latency::new(true);
        latency.record_all(&[90, 100, 101, 3_000_000, 200_000_000_000]);
        let mut page = MetricsPage::new("x_", format);
        page.family("ops_total", "Ops", MetricsKind::Counter, |samples| {
            samples.add(&[("job", "a\"\\\nb")], 7);
        });
        page.family("none", "Nothing", MetricsKind::Gauge, |_| {});
        page.family(
            "clat_seconds",
            "Latency",
            MetricsKind::Histogram,
            |samples| {
                samples.add_latency(&[("job", "a")], &latency);
                samples.add_latency(&[("job", "b")], &Latency::new(false));
            },
        );
        page.family("run_info", "Run", MetricsKind::Info, |samples| {
            samples.add_at(&[], 1, 1_780_000_000_007);
        });
        page.finish()
    }

    #[test]
    fn formats_differ_where_they_must() {
        let open = page(MetricsFormat::OpenMetrics);
        let lines = [
            "# TYPE x_ops counter\nx_ops_total{job=\"a\\\"\\\\\\nb\"} 7\n",
            "# TYPE x_clat_seconds histogram\n# UNIT x_clat_seconds seconds\n",
            "# TYPE x_run info\nx_run_info 1 1780000000.007\n# EOF\n",
        ];
        for want in lines {
            assert!(open.contains(want), "{want}\n{open}");
        }
        let plain = page(MetricsFormat::Prometheus);
        for want in [
            "# HELP x_ops_total Ops\n# TYPE x_ops_total counter\nx_ops_total{",
            "# TYPE x_run_info gauge\nx_run_info 1 1780000000007\n",
        ] {
            assert!(plain.contains(want), "{want}\n{plain}");
        }
        assert!(!plain.contains("EOF") && !plain.contains("UNIT") && !open.contains("none"));
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let text = page(MetricsFormat::OpenMetrics);
        for want in [
            "{job=\"a\",le=\"1e-07\"} 2\n",
            "{job=\"a\",le=\"2e-07\"} 3\n",
            "{job=\"a\",le=\"0.002\"} 3\n",
            "{job=\"a\",le=\"0.005\"} 4\n",
            "{job=\"a\",le=\"100.0\"} 4\n",
            "{job=\"a\",le=\"+Inf\"} 5\n",
            "x_clat_seconds_count{job=\"a\"} 5\n",
            "x_clat_seconds_sum{job=\"a\"} 200.003000291\n",
        ] {
            assert!(text.contains(want), "{want}\n{text}");
        }
        assert!(!text.contains("job=\"b\""), "{text}");
    }

    #[test]
    fn bounds_are_the_numbers_that_they_name() {
        for (ns, text) in BOUNDS {
            let seconds: f64 = text.parse().unwrap();
            assert!((seconds * 1e9 - ns as f64).abs() < 1e-3, "{ns} {text}");
        }
        assert!(BOUNDS.is_sorted());
    }
}
