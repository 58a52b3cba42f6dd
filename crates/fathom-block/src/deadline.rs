//! The scheduler `mq-deadline`: sector order, with a limit on waiting.
//!
//! ```text
//! class ─► direction ─► a batch in sector order, from the end of the last one
//!                       or from the oldest request, if its deadline has passed
//! ```
//!
//! Within a class, reads go first until they have passed writes `writes_starved` times. The next
//! request in sector order is chosen when its predecessor leaves: one that arrives between the two
//! later waits for the next sweep.

use std::collections::{BTreeMap, BTreeSet};

use fathom_core::{Nanos, Tick};

use crate::bio::Class;

/// Settings of the scheduler, named as in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineConfig {
    /// Deadline of a read: one that has waited longer may start a batch.
    pub read_expire: Nanos,
    /// Deadline of a write: one that has waited longer may start a batch.
    pub write_expire: Nanos,
    /// Number of times that reads may pass writes.
    pub writes_starved: u32,
    /// Requests of a batch; at least 1.
    pub fifo_batch: u32,
    /// Front merges are allowed.
    pub front_merges: bool,
    /// Time after which a request goes before those of more urgent classes.
    pub prio_aging_expire: Nanos,
}

impl Default for DeadlineConfig {
    /// Returns the kernel's defaults.
    fn default() -> Self {
        Self {
            read_expire: Nanos::from_millis(500),
            write_expire: Nanos::from_secs(5),
            writes_starved: 2,
            fifo_batch: 16,
            front_merges: true,
            prio_aging_expire: Nanos::from_secs(10),
        }
    }
}

/// A request as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) class: Class,
    /// A write or a discard.
    pub(crate) writes: bool,
    /// Byte offset.
    pub(crate) offset: u64,
    /// Time of queueing.
    pub(crate) since: Tick,
}

/// Queued requests, by number.
#[derive(Debug)]
pub(crate) struct Deadline {
    config: DeadlineConfig,
    lanes: [[Lane; 2]; CLASSES],
    queued: Box<[Option<(Queued, u64)>]>,
    arrivals: u64,
    /// Requests dispatched in the current batch.
    batch: u32,
    /// Its class and whether it writes.
    last: (usize, bool),
    /// Number of times that reads passed the writes of a class.
    starved: [u32; CLASSES],
}

/// Requests of one class and direction.
#[derive(Debug, Default)]
struct Lane {
    sorted: BTreeSet<(u64, u32)>,
    arrived: BTreeMap<u64, u32>,
    /// Next request in sector order.
    next: Option<(u64, u32)>,
}

impl Deadline {
    /// Creates a scheduler for requests with numbers below `capacity`.
    pub(crate) fn new(config: DeadlineConfig, capacity: usize) -> Self {
        Self {
            config,
            lanes: Default::default(),
            queued: vec![None; capacity].into_boxed_slice(),
            arrivals: 0,
            batch: 0,
            last: (Class::BestEffort.index(), false),
            starved: [0; CLASSES],
        }
    }

    pub(crate) fn insert(&mut self, id: u32, request: Queued) {
        let order = self.arrivals;
        self.arrivals += 1;
        let lane = self.lane(&request);
        lane.sorted.insert((request.offset, id));
        lane.arrived.insert(order, id);
        self.queued[id as usize] = Some((request, order));
    }

    /// Returns the last request that begins before `offset`, of the same class and direction.
    pub(crate) fn before(&self, class: Class, writes: bool, offset: u64) -> Option<u32> {
        let lane = &self.lanes[class.index()][usize::from(writes)];
        lane.sorted.range(..(offset, 0)).next_back().map(|at| at.1)
    }

    /// Returns the request that begins at `offset`, of the same class and direction.
    pub(crate) fn at(&self, class: Class, writes: bool, offset: u64) -> Option<u32> {
        if !self.config.front_merges {
            return None;
        }
        let lane = &self.lanes[class.index()][usize::from(writes)];
        let mut from = lane.sorted.range((offset, 0)..=(offset, u32::MAX));
        from.next().map(|at| at.1)
    }

    /// Moves the start of a request to `offset`, after a front merge.
    pub(crate) fn begins_at(&mut self, id: u32, offset: u64) {
        let Some((request, order)) = self.queued[id as usize] else {
            return;
        };
        let lane = self.lane(&request);
        let was = (request.offset, id);
        lane.sorted.remove(&was);
        lane.sorted.insert((offset, id));
        if lane.next == Some(was) {
            lane.next = Some((offset, id));
        }
        self.queued[id as usize] = Some((Queued { offset, ..request }, order));
    }

    /// Removes and returns the next request.
    pub(crate) fn take(&mut self, now: Tick) -> Option<u32> {
        let class = self.aged(now).or_else(|| self.most_urgent())?;
        let (last_class, last_writes) = self.last;
        let goes_on = self.lanes[class][usize::from(last_writes)].next;
        let id = match goes_on {
            Some((_, id)) if class == last_class && self.batch < self.config.fifo_batch => id,
            _ => self.begin_batch(class, now)?,
        };
        self.batch += 1;
        self.remove(id);
        Some(id)
    }

    /// Returns a less urgent class whose oldest request has waited too long.
    fn aged(&self, now: Tick) -> Option<usize> {
        (1..CLASSES).find(|&class| {
            let oldest = (0..2).filter_map(|lane| self.oldest(class, lane));
            oldest
                .map(|(_, since)| since)
                .min()
                .is_some_and(|since| now.since(since) > self.config.prio_aging_expire)
        })
    }

    fn most_urgent(&self) -> Option<usize> {
        (0..CLASSES).find(|&class| {
            let mut lanes = self.lanes[class].iter();
            lanes.any(|lane| !lane.sorted.is_empty())
        })
    }

    /// Chooses a direction, and the first request of its batch.
    fn begin_batch(&mut self, class: usize, now: Tick) -> Option<u32> {
        let [reads, writes] = &self.lanes[class];
        let (has_reads, has_writes) = (!reads.sorted.is_empty(), !writes.sorted.is_empty());
        let is_starved = self.starved[class] >= self.config.writes_starved;
        let writes = has_writes && (!has_reads || is_starved);
        if writes {
            self.starved[class] = 0;
        } else if has_writes {
            self.starved[class] += 1;
        }
        self.batch = 0;
        self.last = (class, writes);
        let expire = if writes {
            self.config.write_expire
        } else {
            self.config.read_expire
        };
        let (oldest, since) = self.oldest(class, usize::from(writes))?;
        match self.lanes[class][usize::from(writes)].next {
            Some((_, id)) if now.since(since) <= expire => Some(id),
            _ => Some(oldest),
        }
    }

    fn oldest(&self, class: usize, lane: usize) -> Option<(u32, Tick)> {
        let (_, &id) = self.lanes[class][lane].arrived.first_key_value()?;
        let (request, _) = self.queued[id as usize]?;
        Some((id, request.since))
    }

    fn remove(&mut self, id: u32) {
        let Some((request, order)) = self.queued[id as usize].take() else {
            return;
        };
        let lane = self.lane(&request);
        let key = (request.offset, id);
        lane.sorted.remove(&key);
        lane.arrived.remove(&order);
        lane.next = lane.sorted.range(key..).next().copied();
    }

    const fn lane(&mut self, request: &Queued) -> &mut Lane {
        &mut self.lanes[request.class.index()][request.writes as usize]
    }
}

const CLASSES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues requests (class, writes, offset, at ms), takes them at the given ms, and checks the
    /// order of their numbers.
    #[track_caller]
    fn check(config: DeadlineConfig, queued: &[(Class, bool, u64, u64)], at: u64, want: &[u32]) {
        let mut deadline = Deadline::new(config, queued.len());
        for (id, &(class, writes, offset, since)) in (0..).zip(queued) {
            let since = Tick::ZERO + Nanos::from_millis(since);
            let request = Queued {
                class,
                writes,
                offset,
                since,
            };
            deadline.insert(id, request);
        }
        let now = Tick::ZERO + Nanos::from_millis(at);
        let taken: Vec<u32> = std::iter::from_fn(|| deadline.take(now)).collect();
        assert_eq!(taken, want);
    }

    const BEST: Class = Class::BestEffort;

    #[test]
    fn a_batch_goes_up_from_the_oldest_and_then_begins_anew() {
        let writes = [
            (BEST, true, 50, 0),
            (BEST, true, 10, 0),
            (BEST, true, 70, 0),
        ];
        check(DeadlineConfig::default(), &writes, 1, &[0, 2, 1]);
    }

    #[test]
    fn after_a_batch_the_oldest_comes_if_it_waited_too_long() {
        let config = DeadlineConfig {
            fifo_batch: 2,
            ..DeadlineConfig::default()
        };
        let writes = [
            (BEST, true, 50, 0),
            (BEST, true, 10, 0),
            (BEST, true, 60, 0),
            (BEST, true, 70, 0),
        ];
        check(config, &writes, 5000, &[0, 2, 3, 1]);
        check(config, &writes, 5001, &[0, 2, 1, 3]);
    }

    #[test]
    fn reads_pass_writes_twice() {
        let config = DeadlineConfig {
            fifo_batch: 1,
            ..DeadlineConfig::default()
        };
        let requests = [
            (BEST, true, 0, 0),
            (BEST, false, 1, 0),
            (BEST, false, 2, 0),
            (BEST, false, 3, 0),
        ];
        check(config, &requests, 1, &[1, 2, 0, 3]);
    }

    #[test]
    fn urgent_classes_go_first_until_others_have_aged() {
        let requests = [
            (Class::Idle, false, 0, 0),
            (BEST, false, 1, 9),
            (Class::RealTime, true, 2, 9),
        ];
        check(DeadlineConfig::default(), &requests, 10, &[2, 1, 0]);
        check(DeadlineConfig::default(), &requests, 10_001, &[0, 2, 1]);
    }

    #[test]
    fn what_comes_between_two_that_follow_each_other_waits_for_the_next_sweep() {
        let mut deadline = Deadline::new(DeadlineConfig::default(), 4);
        let request = |offset| Queued {
            class: BEST,
            writes: true,
            offset,
            since: Tick::ZERO,
        };
        deadline.insert(0, request(10));
        deadline.insert(1, request(30));
        assert_eq!(deadline.take(Tick::ZERO), Some(0));
        deadline.insert(2, request(20));
        deadline.insert(3, request(40));
        let rest: Vec<u32> = std::iter::from_fn(|| deadline.take(Tick::ZERO)).collect();
        assert_eq!(rest, [1, 3, 2]);
    }

    #[test]
    fn what_is_put_in_front_moves_its_request() {
        let mut deadline = Deadline::new(DeadlineConfig::default(), 2);
        let request = |offset| Queued {
            class: BEST,
            writes: true,
            offset,
            since: Tick::ZERO,
        };
        deadline.insert(0, request(10));
        deadline.insert(1, request(30));
        assert_eq!(deadline.at(BEST, true, 30), Some(1));
        deadline.begins_at(1, 5);
        assert_eq!(deadline.at(BEST, true, 30), None);
        assert_eq!(deadline.before(BEST, true, 10), Some(1));
    }
}
