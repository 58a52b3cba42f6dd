//! Published figures of the pacing prototype, by condition.

use super::condition::{Condition, Devices, Pacing, Period, Slow};

/// Figures of one published row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Bandwidth of the data, Gb/s.
    pub(super) bw_gbps: Option<f64>,
    /// Bandwidth on the wire, Gb/s.
    pub(super) wire_gbps: Option<f64>,
    /// Mean latency, µs.
    pub(super) lat_us: Option<f64>,
    /// Standard deviation of the bandwidth between samples, Gb/s.
    pub(super) bw_stddev: Option<f64>,
    /// Hit rate of the last-level cache, percent.
    pub(super) hit_percent: Option<f64>,
    /// Buffers in flight.
    pub(super) buffers_in_flight: Option<f64>,
}

/// Returns the means of the published rows of such a condition; `None` if there is none.
///
/// A published row that does not name its number of cores or its cache matches any.
pub(super) fn figures(condition: &Condition) -> Option<Figures> {
    let matching: Vec<Row> = FILES
        .iter()
        .flat_map(|file| file.rows())
        .filter(|row| row.matches(condition))
        .collect();
    let mean = |figure: fn(&Row) -> Option<f64>| {
        let known: Vec<f64> = matching.iter().filter_map(figure).collect();
        let count = known.iter().fold(0.0, |count, _| count + 1.0);
        (count > 0.0).then(|| known.iter().sum::<f64>() / count)
    };
    (!matching.is_empty()).then(|| Figures {
        bw_gbps: mean(|row| row.number("bw_gbps")),
        wire_gbps: mean(|row| row.number("wire_gbps")),
        lat_us: mean(|row| row.number("avg_lat_us")),
        bw_stddev: mean(|row| row.number("bw_stddev")),
        hit_percent: mean(|row| row.number("l3_hit_percent")),
        buffers_in_flight: mean(|row| row.number("buffers_in_flight")),
    })
}

/// File of published rows, with what holds for all of them.
struct File {
    text: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Columns `devices` and `pacing`.
    NoneAndBuffers,
    /// Column `buffers`; drives.
    BufferCount,
    /// Columns `buffers`, and `what` with its `value`; drives.
    CoresAndCache,
    /// Slow devices among drives.
    SlowDevices,
    /// Depth 1, no pacing.
    Latency,
    /// Column `pacer_period_us`; drives.
    Rate,
}

impl File {
    fn rows(&self) -> impl Iterator<Item = Row> {
        let mut lines = self.text.lines();
        let heads = lines.next().unwrap_or_default();
        let kind = self.kind;
        lines.map(move |line| Row { heads, line, kind })
    }
}

/// Row of a file.
struct Row {
    heads: &'static str,
    line: &'static str,
    kind: Kind,
}

impl Row {
    fn text(&self, column: &str) -> Option<&'static str> {
        let at = self.heads.split(',').position(|head| head == column)?;
        self.line.split(',').nth(at).filter(|text| !text.is_empty())
    }

    fn number(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok()
    }

    /// Returns whether a column is missing or has this value.
    fn is(&self, column: &str, value: u32) -> bool {
        let number = self.number(column);
        number.is_none_or(|number| (number - f64::from(value)).abs() < 1e-9)
    }

    fn matches(&self, condition: &Condition) -> bool {
        let buffers = match condition.pacing {
            Pacing::Buffers(count) => Some(count),
            _ => None,
        };
        let of_buffers = buffers.is_some_and(|count| self.is("buffers", count));
        if self.kind == Kind::SlowDevices {
            return of_buffers
                && condition
                    .slow
                    .is_some_and(|slow| self.is_slow(condition, slow));
        }
        let is_memory = condition.devices == Devices::Memory;
        let has_kind = match self.text("devices") {
            Some(kind) => {
                let wanted = if is_memory { "16 nvme" } else { "16 null" };
                let found = kind.get(..wanted.len());
                found.is_some_and(|found| found.eq_ignore_ascii_case(wanted))
            }
            // The other files are about drives.
            None => is_memory,
        };
        let without_cache = condition.buffer_cache.is_none();
        let has_policy = match self.kind {
            Kind::NoneAndBuffers => {
                self.text("pacing") == Some(&condition.pacing.to_string()) && without_cache
            }
            Kind::BufferCount => {
                let cores = condition.threads.max(PUBLISHED_CORES_MIN);
                of_buffers && self.is("cores", cores) && without_cache
            }
            Kind::CoresAndCache => {
                let has_value = match self.text("what") {
                    Some("cores") => without_cache && self.is("value", condition.threads),
                    _ => (condition.buffer_cache).is_some_and(|cache| self.is("value", cache)),
                };
                of_buffers && has_value
            }
            Kind::Latency => condition.pacing == Pacing::None,
            Kind::Rate => match condition.pacing {
                Pacing::Rate(Period::PublishedUs(us)) => {
                    let period = self.number("pacer_period_us");
                    self.is("cores", PUBLISHED_CORES_MIN)
                        && period.is_some_and(|period| (period - us).abs() < 1e-9)
                }
                _ => false,
            },
            Kind::SlowDevices => false,
        };
        condition.slow.is_none() && has_kind && self.is("depth", condition.depth) && has_policy
    }

    fn is_slow(&self, condition: &Condition, slow: Slow) -> bool {
        condition.devices == Devices::Memory
            && self.is("good_job_depth", condition.depth)
            && self.is("delay_devices", slow.devices)
            && self.is("delay_job_depth", slow.depth)
    }
}

/// Fewest cores of the published buffer counts; a target of fewer threads stands beside them.
const PUBLISHED_CORES_MIN: u32 = 4;

const FILES: [File; 6] = [
    File {
        text: include_str!("../../reference/io-pacing-none-and-buffers.csv"),
        kind: Kind::NoneAndBuffers,
    },
    File {
        text: include_str!("../../reference/io-pacing-buffer-count.csv"),
        kind: Kind::BufferCount,
    },
    File {
        text: include_str!("../../reference/io-pacing-cores-and-cache.csv"),
        kind: Kind::CoresAndCache,
    },
    File {
        text: include_str!("../../reference/io-pacing-slow-devices.csv"),
        kind: Kind::SlowDevices,
    },
    File {
        text: include_str!("../../reference/io-pacing-latency.csv"),
        kind: Kind::Latency,
    },
    File {
        text: include_str!("../../reference/io-pacing-rate.csv"),
        kind: Kind::Rate,
    },
];

#[cfg(test)]
mod tests {
    use super::super::condition::PacingTest;
    use super::*;

    fn condition(pacing: Pacing, depth: u32) -> Condition {
        Condition {
            devices: Devices::Memory,
            pacing,
            threads: 1,
            buffer_cache: None,
            depth,
            slow: None,
        }
    }

    #[track_caller]
    fn check(condition: &Condition, want: Option<f64>) {
        let found = figures(condition).and_then(|figures| figures.bw_gbps);
        assert_eq!(found, want, "{condition}");
    }

    #[test]
    fn published_figures_are_found_by_their_condition() {
        check(&condition(Pacing::None, 256), Some(152.7));
        check(&condition(Pacing::None, 2), None);
        check(&condition(Pacing::Auto, 256), None);
        let null = Condition {
            devices: Devices::Null,
            ..condition(Pacing::None, 1)
        };
        let found = figures(&null).and_then(|figures| figures.lat_us);
        assert!(
            found.is_some_and(|us| (us - 20.38).abs() < 1e-9),
            "{found:?}"
        );
        let slow = Condition {
            slow: Some(Slow {
                devices: 32,
                depth: 341,
            }),
            ..condition(Pacing::Buffers(48), 341)
        };
        check(&slow, Some(66.7));
        let cache = Condition {
            buffer_cache: Some(1),
            ..condition(Pacing::Buffers(96), 128)
        };
        check(&cache, Some(133.0));
        check(
            &condition(Pacing::Rate(Period::PublishedUs(7.0)), 32),
            Some(116.6),
        );
        check(&condition(Pacing::Rate(Period::Us(7.0)), 32), None);
    }

    #[test]
    fn every_fixed_policy_of_the_tests_has_a_published_row() {
        for (name, test) in PacingTest::ALL {
            for row in test.grid(16) {
                // Without a cache the prototype hung from this depth on.
                let hung = row.buffer_cache == Some(0) && row.depth >= 128;
                let is_published = row.pacing != Pacing::Auto && !hung;
                assert_eq!(figures(&row).is_some(), is_published, "{name}: {row}");
            }
        }
    }
}
