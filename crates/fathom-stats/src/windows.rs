//! Windows of a timeline, as they are stored and evaluated.

use serde::{Deserialize, Serialize};

use crate::Histogram;

/// Ops of one direction by windows of equal width, from the start of measuring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Width of a window.
    pub width_ns: u64,
    /// Time from the start of the first window to the end of measuring. The last window may end
    /// later, and windows at the end in which nothing completed are left out.
    pub end_ns: u64,
    /// Windows in order of time, each in the unit of its fields.
    pub windows: Vec<Window>,
}

/// Ops that completed in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Ops completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Smallest latency; 0 if none is recorded.
    pub min_ns: u64,
    /// Largest latency.
    pub max_ns: u64,
    /// Index and count of the non-empty buckets of [`Histogram`], ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<(usize, u64)>,
}

impl Windows {
    /// Returns the latencies of all windows.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let mut all = Histogram::new();
        for &(index, count) in self.windows.iter().flat_map(|window| &window.bins) {
            if index < Histogram::BUCKETS {
                all.add_to_bucket(index, count);
            }
        }
        all
    }

    /// Returns all windows as one.
    #[must_use]
    pub fn total(&self) -> Window {
        let mut total = Window::default();
        for window in &self.windows {
            total.merge(window);
        }
        total
    }

    /// Returns the number of windows that were measured from start to end.
    #[must_use]
    pub fn whole(&self) -> usize {
        usize::try_from(self.end_ns / self.width_ns.max(1)).unwrap_or(usize::MAX)
    }

    /// Adds the windows of another timeline, which began `later_ns` after this one. Each is added
    /// to the window in which it starts, whose width is the larger of both: sums stay exact, and
    /// times are off by less than a window.
    pub fn merge(&mut self, other: &Self, later_ns: u64) {
        while self.width_ns < other.width_ns {
            self.widen();
        }
        self.end_ns = self.end_ns.max(other.end_ns.saturating_add(later_ns));
        let start_ns = |number: usize| {
            let start_ns = (number as u64).saturating_mul(other.width_ns);
            start_ns.saturating_add(later_ns)
        };
        let last_ns = start_ns(other.windows.len()).max(self.end_ns);
        while last_ns / self.width_ns.max(1) > MERGED_MAX {
            self.widen();
        }
        for (number, window) in other.windows.iter().enumerate() {
            let start_ns = start_ns(number);
            let index = usize::try_from(start_ns / self.width_ns.max(1)).unwrap_or(0);
            if self.windows.len() <= index {
                self.windows.resize(index + 1, Window::default());
            }
            self.windows[index].merge(window);
        }
    }

    /// Appends the whole windows of another timeline to those of this one, as if it had gone on
    /// there. Both get the larger width; windows that were not measured to their end are left out.
    pub fn append(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.width_ns < other.width_ns {
            self.widen();
        }
        while other.width_ns < self.width_ns {
            other.widen();
        }
        for one in [&mut *self, &mut other] {
            let whole = one.whole().min(APPENDED_MAX);
            one.windows.resize(whole, Window::default());
            one.end_ns = (whole as u64).saturating_mul(one.width_ns);
        }
        self.windows.append(&mut other.windows);
        self.end_ns = self.end_ns.saturating_add(other.end_ns);
    }

    /// Doubles the width: neighbours merge, and all sums stay exact.
    pub fn widen(&mut self) {
        // A timeline without windows has any width.
        self.width_ns = self.width_ns.max(1).saturating_mul(2);
        for index in 0..self.windows.len().div_ceil(2) {
            let mut window = std::mem::take(&mut self.windows[2 * index]);
            if let Some(second) = self.windows.get(2 * index + 1) {
                window.merge(second);
            }
            self.windows[index] = window;
        }
        self.windows.truncate(self.windows.len().div_ceil(2));
    }
}

impl Window {
    /// Adds the ops of another window.
    pub fn merge(&mut self, other: &Self) {
        if other.ios == 0 && other.bytes == 0 {
            return;
        }
        let none = self.ios == 0 && self.bytes == 0;
        self.ios = self.ios.saturating_add(other.ios);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.min_ns = if none {
            other.min_ns
        } else {
            self.min_ns.min(other.min_ns)
        };
        self.max_ns = self.max_ns.max(other.max_ns);
        add_bins(&mut self.bins, &other.bins);
    }

    /// Returns the number of recorded latencies.
    #[must_use]
    pub fn latencies(&self) -> u64 {
        let counts = self.bins.iter().map(|&(_, count)| count);
        counts.fold(0, u64::saturating_add)
    }

    /// Returns the number of latencies below `bound_ns`, of which a bucket that contains it counts
    /// in proportion.
    #[must_use]
    pub fn latencies_below(&self, bound_ns: f64) -> f64 {
        let cut = Histogram::place_of(bound_ns);
        let mut below = 0.0;
        for &(index, count) in &self.bins {
            if index >= cut.0 {
                let part = if index == cut.0 { cut.1 } else { 0.0 };
                return below + count as f64 * part;
            }
            below += count as f64;
        }
        below
    }

    /// Returns the sum of the latencies, ns: that of their buckets' midpoints.
    pub(crate) fn latency_sum(&self) -> f64 {
        let bins = self.bins.iter();
        let real = bins.filter(|(index, _)| *index < Histogram::BUCKETS);
        real.map(|&(index, count)| Histogram::midpoint(index) as f64 * count as f64)
            .sum()
    }
}

/// Adds an ascending list of buckets to another, in place where that has the same buckets: of many
/// hosts, all but the first few add no new one.
fn add_bins(own: &mut Vec<(usize, u64)>, other: &[(usize, u64)]) {
    let mut missing = Vec::new();
    let mut at = 0;
    for &(index, count) in other {
        while own.get(at).is_some_and(|(known, _)| *known < index) {
            at += 1;
        }
        match own.get_mut(at) {
            Some((known, sum)) if *known == index => *sum = sum.saturating_add(count),
            _ => missing.push((index, count)),
        }
    }
    match (own.is_empty(), missing.is_empty()) {
        (_, true) => {}
        (true, false) => *own = missing,
        (false, false) => *own = merged(own, &missing),
    }
}

/// Merges two ascending lists of buckets.
fn merged(one: &[(usize, u64)], other: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(&&left), Some(&&right)) = (one.peek(), other.peek()) {
        let (taken, count) = match left.0.cmp(&right.0) {
            std::cmp::Ordering::Less => (left.0, left.1),
            std::cmp::Ordering::Greater => (right.0, right.1),
            std::cmp::Ordering::Equal => (left.0, left.1.saturating_add(right.1)),
        };
        if left.0 == taken {
            one.next();
        }
        if right.0 == taken {
            other.next();
        }
        all.push((taken, count));
    }
    all.extend(one.chain(other));
    all
}

/// Windows beyond which merged timelines widen: a group may have started long after another.
const MERGED_MAX: u64 = 240;

/// Most windows of appended timelines: a stored record may claim any time.
const APPENDED_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a timeline of whole windows with these numbers of ops, and a part of one more.
    fn timeline(width_ns: u64, ops: &[u64]) -> Windows {
        let window = |&ios: &u64| Window {
            ios,
            ..Window::default()
        };
        Windows {
            width_ns,
            end_ns: width_ns * ops.len() as u64 - 1,
            windows: ops.iter().map(window).collect(),
        }
    }

    #[test]
    fn buckets_are_added_in_place_or_merged() {
        #[track_caller]
        fn check(own: &[(usize, u64)], other: &[(usize, u64)], want: &[(usize, u64)]) {
            let mut sum = own.to_vec();
            add_bins(&mut sum, other);
            assert_eq!(sum, want);
        }
        check(&[], &[], &[]);
        check(&[], &[(1, 2), (3, 4)], &[(1, 2), (3, 4)]);
        check(&[(1, 2), (3, 4)], &[], &[(1, 2), (3, 4)]);
        check(
            &[(1, 2), (3, 4), (5, 6)],
            &[(1, 1), (5, 1)],
            &[(1, 3), (3, 4), (5, 7)],
        );
        check(
            &[(3, 4)],
            &[(1, 2), (3, 1), (9, 1)],
            &[(1, 2), (3, 5), (9, 1)],
        );
        check(&[(1, u64::MAX)], &[(1, 1)], &[(1, u64::MAX)]);
    }

    #[test]
    fn timelines_go_on_in_whole_windows_of_the_larger_width() {
        let mut all = timeline(100, &[1, 2, 3, 4, 5, 6]);
        all.append(&timeline(200, &[10, 20, 30]));
        let ops = |all: &Windows| all.windows.iter().map(|one| one.ios).collect::<Vec<_>>();
        assert_eq!(ops(&all), [3, 7, 10, 20]);
        assert_eq!((all.width_ns, all.end_ns, all.whole()), (200, 800, 4));
        // A window in which nothing completed counts, too.
        let mut silent = timeline(100, &[1, 1]);
        silent.end_ns = 400;
        all.append(&silent);
        assert_eq!(ops(&all), [3, 7, 10, 20, 2, 0]);
    }
}
