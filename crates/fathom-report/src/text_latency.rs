//! Latency as text: the summary line and the table of percentiles.

use fathom_record::Display;
use fathom_stats::{Histogram, Latency, Summary};

use crate::number::{Prefix, compact};
use crate::percentiles::percentiles;

/// Formats `    clat (usec): min=27, max=285, avg=66.47, stdev=22.86`; empty without values.
/// `title` is right-aligned to eight characters.
pub(crate) fn summary_line(title: &str, latency: Option<&Latency>) -> String {
    let Some(summary) = latency.map(|latency| &latency.summary) else {
        return String::new();
    };
    if summary.count() == 0 {
        return String::new();
    }
    let unit = Unit::of_summary(summary);
    let bound = |ns: u64| compact(ns / unit.ns(), BOUND_DIGITS, Prefix::Decimal);
    let average = |ns: f64| format!("{:5.2}", ns / unit.ns() as f64);
    format!(
        "{title:>8} ({}): min={}, max={}, avg={}, stdev={}\n",
        unit.name(),
        bound(summary.min()),
        bound(summary.max()),
        average(summary.mean()),
        average(summary.stddev()),
    )
}

/// Formats `    clat percentiles (usec):` and the table; empty without a histogram, values
/// or percentiles to print.
pub(crate) fn percentile_table(
    title: &str,
    latency: Option<&Latency>,
    display: &Display,
) -> String {
    let Some(latency) = latency else {
        return String::new();
    };
    match &latency.histogram {
        Some(_) if display.percentiles.is_empty() => String::new(),
        Some(histogram) if latency.summary.count() > 0 => table(title, histogram, display),
        _ => String::new(),
    }
}

fn table(title: &str, histogram: &Histogram, display: &Display) -> String {
    let values: Vec<(f64, u64)> = percentiles(histogram, display).collect();
    let (smallest, largest) = values.iter().fold((u64::MAX, 0), |(low, high), &(_, ns)| {
        (low.min(ns), high.max(ns))
    });
    let unit = Unit::of_percentiles(smallest, largest);
    let width = unit.up(largest).to_string().len().max(5);
    let decimals = display.percentile_precision.min(DECIMALS_MAX) as usize;
    let per_line = (73 / (decimals + 10 + width)).max(1);
    let cell = |&(percent, ns): &(f64, u64)| {
        let name_width = decimals + 3;
        format!("{percent:name_width$.decimals$}th=[{:width$}]", unit.up(ns))
    };
    let lines: Vec<String> = values
        .chunks(per_line)
        .map(|line| {
            format!(
                "     | {}",
                line.iter().map(cell).collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    format!(
        "    {title} percentiles ({}):\n{}\n",
        unit.name(),
        lines.join(",\n")
    )
}

/// Unit of a printed latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Nano,
    Micro,
    Milli,
}

impl Unit {
    /// Returns the largest unit in which minimum, maximum and deviation keep about three digits.
    fn of_summary(summary: &Summary) -> Self {
        let (min, max, stddev) = (summary.min(), summary.max(), summary.stddev());
        if min > 2_000_000 && max > 99_999_999 && stddev > 1_000_000.0 {
            Self::Milli
        } else if min > 2_000 && max > 99_999 && stddev > 1_000.0 {
            Self::Micro
        } else {
            Self::Nano
        }
    }

    const fn of_percentiles(smallest: u64, largest: u64) -> Self {
        if smallest > 2_000_000 && largest > 99_999_999 {
            Self::Milli
        } else if smallest > 2_000 && largest > 99_999 {
            Self::Micro
        } else {
            Self::Nano
        }
    }

    const fn ns(self) -> u64 {
        match self {
            Self::Nano => 1,
            Self::Micro => 1_000,
            Self::Milli => 1_000_000,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Nano => "nsec",
            Self::Micro => "usec",
            Self::Milli => "msec",
        }
    }

    /// Returns `ns` in this unit, rounded up.
    const fn up(self, ns: u64) -> u64 {
        ns.div_ceil(self.ns())
    }
}

/// Digits of minimum and maximum, whatever `significant_figures` says.
const BOUND_DIGITS: u32 = 6;

/// Largest number of decimals of a percentage; the histogram cannot resolve more.
const DECIMALS_MAX: u32 = 9;

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(values: &[u64]) -> Latency {
        let mut latency = Latency::new(true);
        latency.record_all(values);
        latency
    }

    #[track_caller]
    fn check_line(values: &[u64], want: &str) {
        assert_eq!(summary_line("clat", Some(&latency(values))), want);
    }

    #[test]
    fn units_follow_the_size_and_the_spread() {
        check_line(&[], "");
        check_line(
            &[13_370],
            "    clat (nsec): min=13370, max=13370, avg=13370.00, stdev= 0.00\n",
        );
        check_line(
            &[2001, 99_999],
            "    clat (nsec): min=2001, max=99999, avg=51000.00, stdev=69295.05\n",
        );
        check_line(
            &[2001, 100_000],
            "    clat (usec): min=2, max=100, avg=51.00, stdev=69.30\n",
        );
        check_line(
            &[681, 4_538_300],
            "    clat (nsec): min=681, max=4538.3k, avg=2269490.50, stdev=3208581.17\n",
        );
        check_line(
            &[2_000_001, 100_000_000],
            "    clat (msec): min=2, max=100, avg=51.00, stdev=69.30\n",
        );
        assert_eq!(
            summary_line("lat", Some(&latency(&[20]))),
            "     lat (nsec): min=20, max=20, avg=20.00, stdev= 0.00\n"
        );
    }

    #[track_caller]
    fn check_table(values: &[u64], list: &[f64], precision: u32, want: &str) {
        let display = Display {
            percentiles: list.to_vec(),
            percentile_precision: precision,
            ..Display::default()
        };
        assert_eq!(
            percentile_table("clat", Some(&latency(values)), &display),
            want
        );
    }

    #[test]
    fn columns_follow_precision_and_width() {
        // The forms are those of fio 3.33 for percentile_list=1:50:100, 50:99:99.9, 1:50.123:100.
        check_table(
            &[20, 30, 77_000],
            &[1.0, 50.0, 100.0],
            0,
            "    clat percentiles (nsec):\n     |   1th=[   20],  50th=[   30], 100th=[77312]\n",
        );
        check_table(
            &[71_168, 129_536, 284_672],
            &[50.0, 99.0, 99.9],
            1,
            "    clat percentiles (usec):\n     | 50.0th=[  130], 99.0th=[  285], 99.9th=[  285]\n",
        );
        check_table(
            &[20, 127_000],
            &[1.0, 50.123, 100.0],
            3,
            "    clat percentiles (nsec):\n     \
             |  1.000th=[    20], 50.123th=[127488], 100.000th=[127488]\n",
        );
    }

    #[test]
    fn the_default_percentiles_take_five_lines() {
        let table = percentile_table("clat", Some(&latency(&[120])), &Display::default());
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(
            lines[1],
            "     |  1.00th=[  120],  5.00th=[  120], 10.00th=[  120], 20.00th=[  120],"
        );
        assert_eq!(lines[5], "     | 99.99th=[  120]");
    }

    #[test]
    fn an_empty_list_has_no_table() {
        check_table(&[20, 30], &[], 0, "");
    }

    #[test]
    fn nothing_is_printed_without_values() {
        let display = Display::default();
        assert_eq!(percentile_table("clat", None, &display), "");
        assert_eq!(
            percentile_table("clat", Some(&Latency::new(true)), &display),
            ""
        );
        assert_eq!(
            percentile_table("clat", Some(&Latency::new(false)), &display),
            ""
        );
        assert_eq!(summary_line("clat", None), "");
    }
}
