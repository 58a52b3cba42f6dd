//! Timelines of a run: its ops by windows of time.

use fathom_stats::{Window, Windows};
use serde::{Deserialize, Serialize};

use crate::{JobRecord, Record};

/// Ops of one direction of a reporting group by windows of time, since record version 2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredTimeline")]
pub struct TimelineRecord {
    /// Reporting group ([`JobRecord::group_id`]); `None` for all groups of a run with many.
    pub group_id: Option<u32>,
    /// `read`, `write` or `trim`.
    pub direction: String,
    /// Latency in the windows: `resp` if all of the group's ops have due times, else `clat`, else
    /// `lat`; `None` if the jobs do not all keep one of them.
    pub latency: Option<String>,
    /// Start of the first window, from that of the first group.
    pub start_ns: u64,
    /// The windows. Their sums are those of the group's jobs; jobs that are hidden or perform no
    /// I/O have none.
    #[serde(flatten)]
    pub windows: Windows,
}

impl TimelineRecord {
    /// Adds the windows of another host's timeline that counts from the same time. Of different
    /// latencies, the windows keep none.
    pub(crate) fn add(&mut self, mut other: Self) {
        if other.start_ns < self.start_ns {
            std::mem::swap(self, &mut other);
        }
        if self.latency != other.latency {
            self.latency = None;
            drop_latencies(&mut self.windows);
            drop_latencies(&mut other.windows);
        }
        self.windows
            .merge(&other.windows, other.start_ns - self.start_ns);
    }
}

impl Record {
    /// Returns the windows of the jobs of a name, or of all jobs if it is empty, and their latency.
    /// `direction` is `read`, `write`, `trim` or `all`.
    ///
    /// `None` if there are none, or if they have ops of other jobs, too, because those belong to
    /// the same reporting group. Of groups that keep different latencies, the windows have none.
    #[must_use]
    pub fn windows(&self, name: &str, direction: &str) -> Option<(Windows, Option<&str>)> {
        let is_wanted = |job: &JobRecord| name.is_empty() || job.name == name;
        let is_whole = |timeline: &TimelineRecord| {
            let of_group = |job: &&JobRecord| {
                timeline
                    .group_id
                    .is_none_or(|group_id| job.group_id == group_id)
            };
            self.jobs.iter().filter(of_group).all(is_wanted)
        };
        let has_wanted = |timeline: &&TimelineRecord| {
            let mut wanted = self.jobs.iter().filter(|job| is_wanted(job));
            wanted.any(|job| {
                timeline
                    .group_id
                    .is_none_or(|group_id| job.group_id == group_id)
            })
        };
        let all = self.timelines.iter().filter(has_wanted);
        let all = all.filter(|timeline| direction == "all" || timeline.direction == direction);
        let timelines: Vec<&TimelineRecord> = all.collect();
        let first = *timelines.iter().min_by_key(|timeline| timeline.start_ns)?;
        if !timelines.iter().all(|timeline| is_whole(timeline)) {
            return None;
        }
        let mut windows = first.windows.clone();
        for other in timelines
            .iter()
            .filter(|other| !std::ptr::eq(**other, first))
        {
            windows.merge(&other.windows, other.start_ns - first.start_ns);
        }
        let latency = first.latency.as_deref();
        let is_same = |other: &&TimelineRecord| other.latency.as_deref() == latency;
        if timelines.iter().all(is_same) {
            return Some((windows, latency));
        }
        drop_latencies(&mut windows);
        Some((windows, None))
    }
}

/// [`TimelineRecord`] as it is stored. Read by itself: to flatten a part, serde keeps all values of
/// the whole once more, and timelines are most of a record.
#[derive(Deserialize)]
struct StoredTimeline {
    group_id: Option<u32>,
    direction: String,
    latency: Option<String>,
    start_ns: u64,
    width_ns: u64,
    end_ns: u64,
    windows: Vec<Window>,
}

impl From<StoredTimeline> for TimelineRecord {
    fn from(stored: StoredTimeline) -> Self {
        Self {
            group_id: stored.group_id,
            direction: stored.direction,
            latency: stored.latency,
            start_ns: stored.start_ns,
            windows: Windows {
                width_ns: stored.width_ns,
                end_ns: stored.end_ns,
                windows: stored.windows,
            },
        }
    }
}

/// Leaves the windows their ops alone.
fn drop_latencies(windows: &mut Windows) {
    for window in &mut windows.windows {
        *window = Window {
            ios: window.ios,
            bytes: window.bytes,
            ..Window::default()
        };
    }
}
