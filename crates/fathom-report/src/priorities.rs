//! Latencies by I/O priority, shown if ops had at least two priorities.

use fathom_core::IoPriority;
use fathom_record::{DirectionRecord, Display, PriorityRecord};

use crate::number::percent;
use crate::text_latency::{percentile_table, summary_line};

/// Returns the name of the latency kept per priority and whether its percentiles are shown.
pub(crate) const fn timed(display: &Display) -> (&'static str, bool) {
    match display.lat_percentiles {
        true => ("lat", true),
        false => ("clat", display.clat_percentiles),
    }
}

/// Returns the priorities of completed ops; `None` if there are fewer than two.
pub(crate) fn sampled(
    direction: &DirectionRecord,
) -> Option<impl Iterator<Item = &PriorityRecord>> {
    let all = direction.priorities.iter();
    let sampled = all.filter(|entry| entry.latency.summary.count() > 0);
    (sampled.clone().count() > 1).then_some(sampled)
}

/// Formats `    clat prio 1/0/0 (usec): min=27, max=285, avg=66.47, stdev=22.86` per priority.
pub(crate) fn summary_lines(direction: &DirectionRecord, display: &Display) -> String {
    let (name, _) = timed(display);
    let line = |entry: &PriorityRecord| {
        let title = format!("    {name} prio {}", spelled(entry.priority));
        summary_line(&title, Some(&entry.latency))
    };
    sampled(direction).map_or_else(String::new, |entries| entries.map(line).collect())
}

/// Formats `    clat prio 1/0/0 (30.05% of IOs) percentiles (usec):` and the table per priority.
pub(crate) fn percentile_tables(direction: &DirectionRecord, display: &Display) -> String {
    let (name, spread) = timed(display);
    let Some(entries) = sampled(direction).filter(|_| spread) else {
        return String::new();
    };
    let count = |entry: &PriorityRecord| entry.latency.summary.count();
    let total: u64 = direction.priorities.iter().map(count).sum();
    let table = |entry: &PriorityRecord| {
        let share = percent(count(entry) as f64, total as f64);
        let priority = spelled(entry.priority);
        let title = format!("{name} prio {priority} ({share:.2}% of IOs)");
        percentile_table(&title, Some(&entry.latency), display)
    };
    entries.map(table).collect()
}

/// Formats class, level and hint.
pub(crate) fn spelled(priority: u16) -> String {
    let IoPriority { class, level, hint } = IoPriority::from_raw(priority);
    format!("{class}/{level}/{hint}")
}

#[cfg(test)]
mod tests {
    use fathom_stats::Latency;

    use super::*;

    fn latency(values: &[u64]) -> Latency {
        let mut latency = Latency::new(true);
        latency.record_all(values);
        latency
    }

    fn direction(priorities: &[(u16, &[u64])]) -> DirectionRecord {
        let record = |&(priority, values): &(u16, &[u64])| PriorityRecord {
            priority,
            latency: latency(values),
        };
        DirectionRecord {
            priorities: priorities.iter().map(record).collect(),
            ..DirectionRecord::default()
        }
    }

    fn display() -> Display {
        Display {
            percentiles: vec![50.0],
            ..Display::default()
        }
    }

    #[test]
    fn two_priorities_are_shown_separately() {
        let direction = direction(&[(0, &[20, 20, 20]), (0x2000, &[]), (0x400b, &[10])]);
        assert_eq!(
            summary_lines(&direction, &display()),
            "    clat prio 0/0/0 (nsec): min=20, max=20, avg=20.00, stdev= 0.00\n    \
             clat prio 2/3/1 (nsec): min=10, max=10, avg=10.00, stdev= 0.00\n"
        );
        assert_eq!(
            percentile_tables(&direction, &display()),
            "    clat prio 0/0/0 (75.00% of IOs) percentiles (nsec):\n     | 50.00th=[   20]\n    \
             clat prio 2/3/1 (25.00% of IOs) percentiles (nsec):\n     | 50.00th=[   10]\n"
        );
    }

    #[test]
    fn a_single_priority_is_not_shown() {
        for priorities in [&[][..], &[(0, &[20][..])], &[(0, &[20][..]), (1, &[])]] {
            let direction = direction(priorities);
            assert_eq!(summary_lines(&direction, &display()), "");
            assert_eq!(percentile_tables(&direction, &display()), "");
        }
    }

    #[test]
    fn lat_replaces_clat_with_lat_percentiles() {
        let direction = direction(&[(0, &[20]), (1, &[20])]);
        let mut display = display();
        display.lat_percentiles = true;
        assert!(summary_lines(&direction, &display).starts_with("    lat prio 0/0/0 (nsec)"));
        display.lat_percentiles = false;
        display.clat_percentiles = false;
        assert!(!summary_lines(&direction, &display).is_empty());
        assert_eq!(percentile_tables(&direction, &display), "");
    }
}
