//! I/O priorities of single ops: their choice, and latencies by priority.
//!
//! A job without such ops has none of this state.

use fathom_core::{Direction, PerDirection, SplitMix64, Tick, stream_seed};
use fathom_stats::Latency;

use crate::config::{Measure, PriorityChoice, PriorityShare};
use crate::pattern::OpTarget;
use crate::results::PriorityLatency;
use crate::slots::SlotState;

/// Choice of priorities and latencies by priority.
#[derive(Debug)]
pub(crate) struct Priorities {
    choices: PerDirection<PriorityChoice>,
    random: SplitMix64,
    timed: Timed,
    /// An entry per priority that ops of the direction may have; so few that a search is cheaper
    /// than a map. Empty if all ops have the thread's own.
    counted: PerDirection<Vec<PriorityLatency>>,
}

/// Latency kept by priority: lat if its percentiles are shown, as in fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timed {
    Nothing,
    Clat,
    Lat,
}

impl Priorities {
    pub(crate) fn new(choices: &PerDirection<PriorityChoice>, measure: Measure, seed: u64) -> Self {
        let timed = match measure {
            Measure {
                lat_histogram: true,
                ..
            } => Timed::Lat,
            Measure { clat: true, .. } => Timed::Clat,
            _ => Timed::Nothing,
        };
        let histogram = measure.lat_histogram || measure.clat_histogram;
        Self {
            counted: choices.clone().map(|choice| counted(&choice, histogram)),
            choices: choices.clone(),
            random: SplitMix64::new(stream_seed(seed, STREAM)),
            timed,
        }
    }

    /// Returns the priority of an op.
    pub(crate) fn choose(&mut self, target: &OpTarget) -> u16 {
        let shares = match &self.choices[target.direction] {
            PriorityChoice::Own => return THREAD_PRIORITY,
            PriorityChoice::Share(share) => std::slice::from_ref(share),
            PriorityChoice::BySize(list) => {
                let first = list.partition_point(|(bytes, _)| *bytes < target.length);
                let of_size = list[first..].iter();
                let of_size = of_size.take_while(|(bytes, _)| *bytes == target.length);
                let draw = percent(&mut self.random);
                return pick(of_size.map(|(_, share)| share), draw);
            }
        };
        let draw = percent(&mut self.random);
        pick(shares.iter(), draw)
    }

    /// Records a completed op.
    pub(crate) fn completed(&mut self, direction: Direction, state: &SlotState, now: Tick) {
        let since = match self.timed {
            Timed::Nothing => return,
            Timed::Clat => state.issue,
            Timed::Lat => state.start,
        };
        let mut counted = self.counted[direction].iter_mut();
        if let Some(entry) = counted.find(|entry| entry.priority == state.op.priority) {
            entry.latency.record((now - since).get());
        }
    }

    /// Discards the latencies.
    pub(crate) fn clear(&mut self) {
        for direction in Direction::ALL {
            for entry in &mut self.counted[direction] {
                entry.latency.clear();
            }
        }
    }

    pub(crate) fn results(&self) -> PerDirection<Vec<PriorityLatency>> {
        self.counted.clone()
    }
}

/// Returns the first share that the draw, 0–99, falls into.
fn pick<'a>(shares: impl Iterator<Item = &'a PriorityShare>, draw: u8) -> u16 {
    let mut end = 0;
    for share in shares {
        end += share.percent;
        if draw < end {
            return share.priority;
        }
    }
    THREAD_PRIORITY
}

/// Draws a number, 0–99.
fn percent(random: &mut SplitMix64) -> u8 {
    // Always fits: the high half of a product below 100 · 2³².
    u8::try_from(((random.next_u64() >> 32) * 100) >> 32).unwrap_or(99)
}

fn counted(choice: &PriorityChoice, histogram: bool) -> Vec<PriorityLatency> {
    let mut priorities = vec![THREAD_PRIORITY];
    match choice {
        PriorityChoice::Own => return Vec::new(),
        PriorityChoice::Share(share) => priorities.push(share.priority),
        PriorityChoice::BySize(list) => {
            priorities.extend(list.iter().map(|(_, share)| share.priority));
        }
    }
    let mut counted: Vec<PriorityLatency> = Vec::new();
    for priority in priorities {
        if counted.iter().all(|entry| entry.priority != priority) {
            counted.push(PriorityLatency {
                priority,
                latency: Latency::new(histogram),
            });
        }
    }
    counted
}

/// Priority of the thread itself.
const THREAD_PRIORITY: u16 = 0;
/// Random stream of this choice; no other one has this number.
const STREAM: u64 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    const READS_TIMED: Measure = Measure {
        slat: true,
        clat: true,
        lat: true,
        bandwidth: false,
        slat_histogram: false,
        clat_histogram: true,
        lat_histogram: false,
        bandwidth_sample: fathom_core::Nanos::from_millis(500),
        iops_sample: fathom_core::Nanos::from_millis(500),
    };

    fn share(percent: u8, priority: u16) -> PriorityShare {
        PriorityShare { percent, priority }
    }

    /// Draws for 10,000 reads of `length` and says how many got each priority.
    #[track_caller]
    fn check(choice: PriorityChoice, length: u32, want: &[(u16, u32)]) {
        let choices = PerDirection::new(choice, PriorityChoice::Own, PriorityChoice::Own);
        let mut priorities = Priorities::new(&choices, READS_TIMED, 42);
        let mut target = OpTarget {
            length,
            ..OpTarget::default()
        };
        let mut got = std::collections::BTreeMap::new();
        for _ in 0..10_000 {
            *got.entry(priorities.choose(&target)).or_insert(0_u32) += 1;
        }
        for &(priority, count) in want {
            let got = got.remove(&priority).unwrap_or(0);
            assert!(got.abs_diff(count) <= 200, "{priority}: {got}, not {count}");
        }
        assert!(got.is_empty(), "{got:?}");
        target.direction = Direction::Write;
        assert_eq!(priorities.choose(&target), THREAD_PRIORITY);
    }

    #[test]
    fn shares_are_kept() {
        check(PriorityChoice::Own, 4096, &[(0, 10_000)]);
        check(PriorityChoice::Share(share(0, 7)), 4096, &[(0, 10_000)]);
        check(PriorityChoice::Share(share(100, 7)), 4096, &[(7, 10_000)]);
        check(
            PriorityChoice::Share(share(30, 7)),
            4096,
            &[(7, 3000), (0, 7000)],
        );
    }

    #[test]
    fn sizes_have_their_own_shares() {
        let list = vec![
            (4096, share(20, 1)),
            (4096, share(30, 2)),
            (8192, share(100, 3)),
        ];
        let check = |length, want| check(PriorityChoice::BySize(list.clone()), length, want);
        check(4096, &[(1, 2000), (2, 3000), (0, 5000)]);
        check(8192, &[(3, 10_000)]);
        check(512, &[(0, 10_000)]);
        check(6000, &[(0, 10_000)]);
        check(16_384, &[(0, 10_000)]);
    }

    #[test]
    fn one_priority_is_counted_once() {
        let list = vec![
            (4096, share(20, 1)),
            (4096, share(30, 0)),
            (8192, share(100, 1)),
        ];
        let counted = counted(&PriorityChoice::BySize(list), false);
        let got: Vec<u16> = counted.iter().map(|entry| entry.priority).collect();
        assert_eq!(got, [0, 1]);
    }

    #[test]
    fn the_draws_never_change() {
        let mut random = SplitMix64::new(stream_seed(0x89, STREAM));
        let got: Vec<u8> = (0..8).map(|_| percent(&mut random)).collect();
        assert_eq!(got, [4, 88, 8, 3, 24, 65, 46, 1]);
    }
}
