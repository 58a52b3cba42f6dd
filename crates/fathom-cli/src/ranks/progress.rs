//! Progress of all ranks, for the status line of rank 0.

use fathom_core::{Nanos, PerDirection};
use fathom_hosts::{Conductor, Progress, Rank};
use fathom_setup::{JobSnapshot, JobState, Snapshot};

/// The last two reports of each rank but rank 0.
///
/// Ranks report once a second, and so does the line: between reports a rank is taken to go on at
/// the rate of its last two, or the line would show now nothing of it, now twice its rate.
#[derive(Debug, Default)]
pub(crate) struct OtherRanks {
    reports: Vec<[Progress; 2]>,
}

impl OtherRanks {
    /// Takes the latest reports.
    pub(crate) fn hear(&mut self, conductor: &Conductor, ranks: u32) {
        let others = (1..ranks).filter_map(|rank| conductor.progress_of(Rank::new(rank)));
        for (at, report) in others.enumerate() {
            match self.reports.get_mut(at) {
                Some([_, last]) if last.elapsed == report.elapsed => {}
                Some(both) => *both = [both[1], report],
                None => self.reports.push([Progress::default(), report]),
            }
        }
    }

    /// Returns the ops and bytes of the rank of this place as they would be now; `None` if it has
    /// reported nothing.
    pub(crate) fn carried(
        &self,
        place: usize,
        now: Nanos,
    ) -> Option<(PerDirection<u64>, PerDirection<u64>)> {
        let reports = self.reports.get(place)?;
        let of = |of: fn(&Progress) -> &PerDirection<u64>| carried(reports, now, of);
        Some((of(|report| &report.ios), of(|report| &report.bytes)))
    }

    /// Adds a rank as a job each to a snapshot of the jobs of rank 0. They have no goals there, and
    /// so count in the rates alone.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot) {
        let now = snapshot.elapsed;
        snapshot
            .jobs
            .extend(self.reports.iter().map(|reports| JobSnapshot {
                state: JobState::Ended,
                ios: carried(reports, now, |report| &report.ios),
                bytes: carried(reports, now, |report| &report.bytes),
                ..JobSnapshot::default()
            }));
    }
}

/// Returns a count as it would be now at the rate of the last two reports.
fn carried(
    [before, last]: &[Progress; 2],
    now: Nanos,
    of: impl Fn(&Progress) -> &PerDirection<u64>,
) -> PerDirection<u64> {
    let span = (last.elapsed - before.elapsed).get();
    let since = match last.jobs_running {
        0 => Nanos::ZERO,
        // A rank that no longer reports does not go on for ever.
        _ => (now - last.elapsed).min(CARRIED_MAX),
    };
    PerDirection::from_fn(|direction| {
        let (old, new) = (of(before)[direction], of(last)[direction]);
        let more = u128::from(new.saturating_sub(old)) * u128::from(since.get());
        let more = more.checked_div(span.into()).unwrap_or(0);
        new.saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
    })
}

/// Longest time for which a rank is taken to go on without a report.
const CARRIED_MAX: Nanos = Nanos::from_secs(3);

#[cfg(test)]
mod tests {
    use fathom_core::Direction;

    use super::*;

    fn report(ms: u64, ios: u64, jobs_running: u32) -> Progress {
        Progress {
            elapsed: Nanos::from_millis(ms),
            jobs_running,
            ios: PerDirection::from_fn(|_| ios),
            ..Progress::default()
        }
    }

    #[track_caller]
    fn check(reports: [Progress; 2], now_ms: u64, want: u64) {
        let others = OtherRanks {
            reports: vec![reports],
        };
        let mut snapshot = Snapshot {
            elapsed: Nanos::from_millis(now_ms),
            ..Snapshot::default()
        };
        others.add_to(&mut snapshot);
        assert_eq!(snapshot.jobs[0].ios[Direction::Read], want);
    }

    #[test]
    fn ranks_go_on_between_their_reports() {
        let reports = [report(1000, 5000, 1), report(2000, 6000, 1)];
        check(reports, 2000, 6000);
        check(reports, 2500, 6500);
        // Silent for long.
        check(reports, 9000, 9000);
        // Its jobs have ended, and it had one report alone.
        check([report(1000, 5000, 1), report(2000, 6000, 0)], 2500, 6000);
        check([Progress::default(), report(1000, 100, 1)], 1500, 150);
        check([Progress::default(); 2], 1500, 0);
    }
}
