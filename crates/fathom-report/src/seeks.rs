//! Seek statistics as text: a table with bars.

use std::fmt::Write as _;

use fathom_record::SeekRecord;

use crate::peak::aligned;

/// Formats the number of requests, the sequential share, and the distances between the others.
#[must_use]
pub fn seeks(record: &SeekRecord) -> String {
    let mut text = format!(
        "seeks: {} dispatched, {} merged",
        record.dispatched, record.merged
    );
    if let Some(ratio) = record.sequential_ratio {
        // Writing to a string cannot fail.
        let _written = write!(text, ", {:.1}% sequential", ratio * 100.0);
    }
    text.push('\n');
    let rows: Vec<Bar> = (record.distances.rows())
        .map(|(from, to, count)| Bar {
            from: from.to_string(),
            to: to.to_string(),
            count,
        })
        .collect();
    if !rows.is_empty() {
        text.push_str(&bars(["over KiB", "to KiB", "seeks"], &rows));
    }
    text
}

/// Row of a table with bars: a bucket and its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) count: u64,
}

/// Formats rows under these heads, each with its share and a bar proportional to its count.
pub(crate) fn bars(heads: [&str; 3], rows: &[Bar]) -> String {
    let total = rows
        .iter()
        .fold(0, |total: u64, row| total.saturating_add(row.count));
    let most = rows.iter().map(|row| row.count).max().unwrap_or(0);
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for row in rows {
        lines.push(vec![
            row.from.clone(),
            row.to.clone(),
            row.count.to_string(),
            format!("{:.1}%", row.count as f64 * 100.0 / total.max(1) as f64),
        ]);
    }
    let table = aligned(&lines);
    let bars = std::iter::once(String::new()).chain(rows.iter().map(|row| bar(row.count, most)));
    let lines = table.lines().zip(bars).map(|(line, bar)| {
        let line = format!("{line}  {bar}");
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// Returns a bar of at least one mark for any count above 0.
fn bar(count: u64, most: u64) -> String {
    let length = u128::from(count) * BAR_MARKS_MAX;
    let length = length.div_ceil(u128::from(most.max(1)));
    "#".repeat(usize::try_from(length).unwrap_or(0))
}

/// Length of the longest bar: with the numbers it fits into 80 columns.
const BAR_MARKS_MAX: u128 = 40;

#[cfg(test)]
mod tests {
    use fathom_record::SeekDistances;

    use super::*;

    #[test]
    fn each_bucket_has_a_bar() {
        let record = SeekRecord {
            dispatched: 1_001,
            merged: 7,
            sequential: 600,
            sequential_ratio: Some(0.6),
            distances: SeekDistances {
                from_kib: vec![0, 1, 2],
                to_kib: vec![1, 2, 4],
                count: vec![800, 0, 1],
            },
        };
        let want = "\
seeks: 1001 dispatched, 7 merged, 60.0% sequential
over KiB  to KiB  seeks
       0       1    800  99.9%  ########################################
       1       2      0   0.0%
       2       4      1   0.1%  #
";
        assert_eq!(seeks(&record), want);
    }

    #[test]
    fn an_idle_disk_has_no_table() {
        let want = "seeks: 0 dispatched, 0 merged\n";
        assert_eq!(seeks(&SeekRecord::default()), want);
    }
}
