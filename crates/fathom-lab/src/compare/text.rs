//! A comparison as text for a terminal of 80 columns.
//!
//! ```text
//! before (8 runs) → after (8 runs)
//!
//! metric              before        after  change                 verdict
//! iodepth=4
//! write.bw          100 MiB/s   110 MiB/s  +10.0 % [+8.9, +11.2]  better
//! ```
//!
//! The jobs of a group, and names too long for their column, have lines of their own; p values are
//! in the other formats.

use super::{ComparedMetric, Comparison, SideValues, middle};
use crate::figure::{aligned, change, figure, interval, printable};

impl Comparison {
    /// Formats the comparison for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let heading = ["metric", " before", " after", "change", "verdict"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.rows.iter().map(cells));
        let aligned = aligned(&rows);
        let mut lines = aligned.lines();
        let mut text = format!("{}\n\n", self.heading());
        let mut add = |line: &str| text.extend([line, "\n"]);
        add(lines.next().unwrap_or_default());
        let mut group = "";
        for (row, line) in self.rows.iter().zip(lines) {
            if row.group != group {
                group = &row.group;
                add(&printable(group));
            }
            let name = row.name.to_string();
            if is_long(&name) {
                add(&printable(&name));
            }
            add(line);
            within_runs(row).iter().for_each(|line| add(line));
        }
        if let Some(line) = self.apart() {
            text.push_str(&format!("\n{line}\n"));
        }
        let notes = self
            .notes
            .iter()
            .map(|note| format!("note: {}\n", printable(note)));
        text.extend(notes);
        text
    }
}

fn cells(row: &ComparedMetric) -> Vec<String> {
    let median = |side: &SideValues| {
        let value = middle(side).map(|value| figure(value, row.name.row.unit));
        value.unwrap_or_else(|| "-".into())
    };
    let name = row.name.to_string();
    vec![
        if is_long(&name) { String::new() } else { name },
        median(&row.before),
        median(&row.after),
        changed(row),
        row.verdict.word().to_owned(),
    ]
}

/// Formats the change, with its interval if there is one.
fn changed(row: &ComparedMetric) -> String {
    if let Some(ratio) = &row.ratio {
        return match ratio.low..=ratio.high {
            ends if *ends.start() >= 0.1 && *ends.end() < 10.0 => interval(ratio),
            _ => format!(
                "{} [{}, {}]",
                change(ratio.middle),
                change(ratio.low),
                change(ratio.high)
            ),
        };
    }
    let medians = middle(&row.before).zip(middle(&row.after));
    let medians = medians.filter(|(before, _)| *before > 0.0);
    medians.map_or_else(String::new, |(before, after)| change(after / before))
}

/// Returns the intervals within single runs, a line each.
fn within_runs(row: &ComparedMetric) -> Vec<String> {
    let sides = [("before", &row.before), ("after", &row.after)];
    let lines = sides.iter().filter_map(|(name, side)| {
        let (low, high) = side.interval?;
        let [low, high] = [low, high].map(|end| figure(end, row.name.row.unit));
        Some(format!("  {name}, one run: {low} to {high} within it"))
    });
    lines.collect()
}

fn is_long(name: &str) -> bool {
    name.chars().count() > NAME_LENGTH
}

/// Longest name in the first column: 80 less two values of 12 columns, a change of 25 (`-12.3 %
/// [-15.0, -10.1]` takes 23), the longest verdict and the gaps.
const NAME_LENGTH: usize = 16;
