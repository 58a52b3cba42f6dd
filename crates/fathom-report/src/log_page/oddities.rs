//! Order of a log's times: steps back, and gaps.

/// Order of the times of one log.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeOrder {
    last_ms: Option<u64>,
    /// Lines with an earlier time than the line before.
    pub(super) times_back: u64,
    /// Largest step back, ms.
    pub(super) back_ms_max: u64,
    /// Longest pauses between two lines, the longest first.
    pauses: Vec<Gap>,
}

/// Pause between two lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    /// Time of the line before.
    pub(super) from_ms: u64,
    pub(super) length_ms: u64,
}

impl TimeOrder {
    #[inline]
    pub(super) fn add(&mut self, time_ms: u64) {
        let last = self.last_ms.replace(time_ms);
        // Most lines are of the same millisecond or the next.
        if let Some(last) = last
            && time_ms.wrapping_sub(last) > 1
        {
            self.step(last, time_ms);
        }
    }

    fn step(&mut self, from_ms: u64, time_ms: u64) {
        let Some(length_ms) = time_ms.checked_sub(from_ms) else {
            self.times_back += 1;
            self.back_ms_max = self.back_ms_max.max(from_ms - time_ms);
            return;
        };
        let shortest = self.pauses.last().map_or(0, |pause| pause.length_ms);
        if self.pauses.len() == GAPS_MAX && length_ms <= shortest {
            return;
        }
        let longer = |pause: &Gap| pause.length_ms >= length_ms;
        let place = self.pauses.partition_point(longer);
        self.pauses.insert(place, Gap { from_ms, length_ms });
        self.pauses.truncate(GAPS_MAX);
    }

    /// Returns the longest pauses of a log of `lines` lines over `span_ms` milliseconds, as far as
    /// they stand out: by a second, and ten times the mean distance of lines, because averages are
    /// logged once a window.
    pub(super) fn gaps(&self, lines: u64, span_ms: u64) -> &[Gap] {
        let usual = span_ms / lines.saturating_sub(1).max(1);
        let least = usual.saturating_mul(10).max(GAP_MS_MIN);
        let stand_out = self.pauses.partition_point(|gap| gap.length_ms >= least);
        &self.pauses[..stand_out]
    }

    /// Returns the sentences on what is odd about the times.
    pub(super) fn sentences(&self, lines: u64, span_ms: u64) -> Vec<String> {
        let mut all = Vec::new();
        if self.times_back > 0 {
            all.push(format!(
                "its times go back {}, by up to {} s: several jobs or runs wrote it, or a clock \
                 was set",
                times(self.times_back),
                seconds(self.back_ms_max)
            ));
        }
        let gaps = self.gaps(lines, span_ms);
        if let Some(longest) = gaps.first() {
            let more = if gaps.len() == GAPS_MAX {
                " or more"
            } else {
                ""
            };
            let plural = if gaps.len() == 1 { "gap" } else { "gaps" };
            all.push(format!(
                "it has {}{more} {plural} of a second or more without a line; the longest begins \
                 at {} s and takes {} s",
                gaps.len(),
                seconds(longest.from_ms),
                seconds(longest.length_ms)
            ));
        }
        all
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Formats milliseconds as seconds, exactly.
pub(super) fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Most gaps that are remembered.
const GAPS_MAX: usize = 8;
/// Shortest pause that is called a gap.
const GAP_MS_MIN: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(times: impl IntoIterator<Item = u64>) -> TimeOrder {
        let mut order = TimeOrder::default();
        times.into_iter().for_each(|time| order.add(time));
        order
    }

    #[test]
    fn steps_back_are_counted() {
        let order = order([5, 5, 3, 4, 900, 0]);
        assert_eq!((order.times_back, order.back_ms_max), (2, 900));
        let text = order.sentences(6, 900).join("\n");
        assert!(text.contains("go back 2 times, by up to 0.900 s"), "{text}");
        assert!(!text.contains("gap"), "{text}");
    }

    #[test]
    fn an_hour_without_lines_is_a_gap() {
        let hour = 3_600_000;
        let before = (0..1000_u64).chain((0..1000).map(|time| time + hour));
        let order = order(before);
        let want = Gap {
            from_ms: 999,
            length_ms: hour - 999,
        };
        assert_eq!(order.gaps(2000, hour + 999), [want]);
        let text = order.sentences(2000, hour + 999).join("\n");
        assert!(text.contains("1 gap of a second or more"), "{text}");
        assert!(
            text.contains("begins at 0.999 s and takes 3599.001 s"),
            "{text}"
        );
    }

    #[test]
    fn averages_of_a_second_have_no_gaps() {
        let order = order((0..100).map(|line| line * 1000));
        assert_eq!(order.gaps(100, 99_000), []);
    }

    #[test]
    fn the_longest_gaps_are_kept() {
        let mut time = 0;
        let order = order((0..100_u64).map(|gap| {
            time += 1000 + gap * 37 % 100;
            time
        }));
        let lengths: Vec<u64> = order.pauses.iter().map(|gap| gap.length_ms).collect();
        assert_eq!(lengths, [1099, 1098, 1097, 1096, 1095, 1094, 1093, 1092]);
    }
}
