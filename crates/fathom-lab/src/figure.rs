//! Figures for people, and the table in which they stand.

pub use fathom_report::printable;

use fathom_report::pad;
use fathom_stats::RatioInterval;

/// Formats a value with its unit: `52.4 MiB/s`, `1.21 ms`, `12500 1/s`.
#[must_use]
pub fn figure(value: f64, unit: &str) -> String {
    let steps: &[(f64, &str)] = match unit {
        "B/s" => &[
            (1_073_741_824.0, "GiB/s"),
            (1_048_576.0, "MiB/s"),
            (1024.0, "KiB/s"),
            (0.0, "B/s"),
        ],
        "ns" => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (0.0, "ns")],
        _ => return format!("{} {unit}", digits(value)),
    };
    // What is rounded to 1 of a unit is shown in it: 1.00 MiB/s, not 1024 KiB/s.
    let is_reached = |at: usize| {
        let below = steps.get(at + 1).map_or(1.0, |(size, _)| size.max(1.0));
        (value.abs() / below).round() >= steps[at].0 / below
    };
    let step = (0..steps.len()).find(|at| is_reached(*at));
    let (size, symbol) = step.map_or((0.0, unit), |at| steps[at]);
    format!("{} {symbol}", digits(value / size.max(1.0)))
}

/// Formats a ratio as a change: `+3.1 %`, or `×12.5` if it is far.
#[must_use]
pub fn change(ratio: f64) -> String {
    match ratio {
        0.1..10.0 => format!("{:+.1} %", (ratio - 1.0) * 100.0),
        _ => format!("×{}", digits(ratio)),
    }
}

/// Formats a ratio and its interval as a change: `+3.1 % [+2.0, +4.2]`.
pub(crate) fn interval(ratio: &RatioInterval) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    format!(
        "{:+.1} % [{:+.1}, {:+.1}]",
        percent(ratio.middle),
        percent(ratio.low),
        percent(ratio.high)
    )
}

/// States the confidence level of the intervals of changes; `None` without any.
#[must_use]
pub fn interval_level<'a>(
    intervals: impl IntoIterator<Item = &'a RatioInterval>,
) -> Option<String> {
    let percent = RatioInterval::level_percent(intervals.into_iter().copied())?;
    Some(format!(
        "intervals of changes have a confidence level of {percent} % or more"
    ))
}

/// Aligns rows in columns: text to the left, and to the right the columns whose heading begins with
/// a blank. Control characters, which could rule the terminal, are written out.
#[must_use]
pub fn aligned(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| printable(cell)).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row: &Vec<String>| row.get(at));
        cells
            .map(|cell| cell.trim().chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let is_right = |at: usize| {
        let heading = rows.first().and_then(|row| row.get(at));
        heading.is_some_and(|heading| heading.starts_with(' '))
    };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let (cell, width) = (cell.trim(), widths[at]);
            match is_right(at) {
                true => pad::right(cell, width),
                false => pad::left(cell, width),
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

/// Cuts a text that is too long for a table.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept + "…"
}

/// Formats a number with three significant digits, all of its integer part, and at most three
/// decimals.
fn digits(value: f64) -> String {
    // Of the rounded value: 99.96 is 100, and not 100.0.
    let decimals = match value.abs() {
        0.0 => 0,
        99.95.. => 0,
        9.995.. => 1,
        0.9995.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(figure(54_945_382.4, "B/s"), "52.4 MiB/s");
        assert_eq!(figure(12.0, "B/s"), "12.0 B/s");
        assert_eq!(figure(1_214_000.0, "ns"), "1.21 ms");
        assert_eq!(figure(0.0, "ns"), "0 ns");
        assert_eq!(figure(12_500.4, "IOPS"), "12500 IOPS");
        assert_eq!(change(1.031), "+3.1 %");
        assert_eq!(change(0.97), "-3.0 %");
        assert_eq!(change(12.5), "×12.5");
    }

    #[test]
    fn figures_at_the_edge_of_a_unit_are_in_the_larger_one() {
        for (value, unit, want) in [
            (1_048_575.0, "B/s", "1.00 MiB/s"),
            (1_073_741_823.0, "B/s", "1.00 GiB/s"),
            (1023.4, "B/s", "1023 B/s"),
            (1023.6, "B/s", "1.00 KiB/s"),
            (-1_048_575.0, "B/s", "-1.00 MiB/s"),
            (999_960.0, "ns", "1.00 ms"),
            (999_400.0, "ns", "999 µs"),
            (999_999_999.0, "ns", "1.00 s"),
            (99_960.0, "ns", "100 µs"),
            (9_996.0, "ns", "10.0 µs"),
            (0.9996, "ns", "1.00 ns"),
            (99.94, "ns", "99.9 ns"),
        ] {
            assert_eq!(figure(value, unit), want);
        }
    }

    #[test]
    fn columns_are_aligned_and_harmless() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["a", " n", "b"]), row(["long", "1", "x\u{1b}[2J\n"])];
        assert_eq!(aligned(&rows), "a     n  b\nlong  1  x\\u{1b}[2J\\n\n");
        assert_eq!(aligned(&[]), "");
        assert_eq!(printable("a\u{202e}b\u{200f}ä"), "a\\u{202e}b\\u{200f}ä");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }
}
