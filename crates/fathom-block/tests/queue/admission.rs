//! Admission of several threads against a naive model.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use fathom_block::{
    Admission, AdmissionClass, AutoConfig, BufferConfig, BufferPool, PacingConfig, Sharing, Wanted,
};
use fathom_core::{DataBuffer, Nanos, Tick};
use proptest::prelude::*;

/// Step of a random history. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Event {
    Request { thread: usize, unpaced: bool },
    Release { thread: usize, nth: usize },
    Withdraw { thread: usize, nth: usize },
    Turn { thread: usize },
}

/// Threads of a target that turn only when something happens to them.
struct Target {
    pool: Arc<BufferPool>,
    count: Option<u32>,
    threads: Vec<Thread>,
    next_id: u64,
    now: Tick,
}

struct Thread {
    admission: Admission,
    #[expect(
        clippy::vec_box,
        reason = "boxes move to and from commands as they are"
    )]
    held: Vec<Box<DataBuffer>>,
    /// Requests that wait, in the order in which they are to be served.
    unpaced: VecDeque<u64>,
    paced: VecDeque<u64>,
}

impl Target {
    fn new(count: Option<u32>, cache: u32, threads: u32) -> Self {
        Self::with_pacing(count, cache, threads, PacingConfig::None)
    }

    fn with_pacing(count: Option<u32>, cache: u32, threads: u32, pacing: PacingConfig) -> Self {
        let config = BufferConfig {
            count,
            bytes: 512,
            cache,
        };
        let devices = 1;
        let pool = BufferPool::new(config, Sharing { threads, devices });
        let thread = |index| Thread {
            admission: Admission::new(Arc::clone(&pool), &pacing, index),
            held: Vec::new(),
            unpaced: VecDeque::new(),
            paced: VecDeque::new(),
        };
        Self {
            threads: (0..threads).map(thread).collect(),
            pool,
            count,
            next_id: 0,
            now: Tick::ZERO,
        }
    }

    fn apply(&mut self, event: &Event) {
        let count = self.threads.len();
        match *event {
            Event::Request { thread, unpaced } => self.request(thread % count, unpaced),
            Event::Release { thread, nth } => self.release(thread % count, nth),
            Event::Withdraw { thread: index, nth } => {
                let thread = &mut self.threads[index % count];
                let ids = thread.unpaced.iter().chain(&thread.paced);
                let ids: Vec<u64> = ids.copied().collect();
                if let Some(&id) = ids.get(nth % ids.len().max(1)) {
                    thread.unpaced.retain(|one| *one != id);
                    thread.paced.retain(|one| *one != id);
                    thread.admission.withdraw(id, self.now);
                    self.turn(index % count);
                }
            }
            Event::Turn { thread } => self.turn(thread % count),
        }
        self.deliver_wakes();
        self.check();
    }

    fn request(&mut self, index: usize, unpaced: bool) {
        let thread = &mut self.threads[index];
        let id = self.next_id;
        self.next_id += 1;
        let wanted = Wanted {
            id,
            device: 0,
            bytes: 512,
            class: if unpaced {
                AdmissionClass::Unpaced
            } else {
                AdmissionClass::Paced
            },
        };
        let is_ahead = thread.unpaced.is_empty() && (unpaced || thread.paced.is_empty());
        match thread.admission.request(wanted, self.now) {
            Some(buffer) => {
                assert!(is_ahead, "a newcomer passes those who wait");
                thread.held.push(buffer);
            }
            None if unpaced => thread.unpaced.push_back(id),
            None => thread.paced.push_back(id),
        }
    }

    fn release(&mut self, index: usize, nth: usize) {
        let thread = &mut self.threads[index];
        if thread.held.is_empty() {
            return;
        }
        let buffer = thread.held.swap_remove(nth % thread.held.len());
        thread.admission.release(buffer, 0, 512, self.now);
        self.turn(index);
    }

    fn turn(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        while let Some((id, buffer)) = thread.admission.granted(self.now) {
            let first = thread.unpaced.pop_front();
            let first = first.or_else(|| thread.paced.pop_front());
            assert_eq!(first, Some(id), "not the oldest request");
            thread.held.push(buffer);
        }
    }

    fn deliver_wakes(&mut self) {
        loop {
            let threads = self.threads.iter_mut();
            let woken = threads.filter_map(|thread| thread.admission.wake()).next();
            let Some(woken) = woken else { break };
            self.turn(woken as usize);
        }
    }

    /// Checks what holds whenever all wakes have been delivered.
    fn check(&self) {
        let held: usize = self.threads.iter().map(|thread| thread.held.len()).sum();
        assert_eq!(self.pool.in_use() as usize, held);
        let Some(count) = self.count else { return };
        let mut cached = 0;
        for thread in &self.threads {
            let statistics = thread.admission.statistics();
            cached += statistics.cached;
            let gives_up = statistics.cached == 0 || thread.admission.next().is_some();
            assert!(gives_up, "a thread keeps buffers for ever");
        }
        let out = self.pool.in_use() + cached;
        assert!(out <= count, "{out} of {count} buffers");
        if self.pending() > 0 {
            assert_eq!(out, count, "requests wait beside free buffers");
            let all_cached = count - 1 < cached;
            assert!(!all_cached, "requests wait for caches alone");
        }
    }

    fn pending(&self) -> usize {
        let threads = self.threads.iter();
        threads
            .map(|thread| thread.unpaced.len() + thread.paced.len())
            .sum()
    }

    /// Lets time pass until no thread has anything to do.
    fn rest(&mut self) {
        for index in 0..self.threads.len() {
            while let Some(next) = self.threads[index].admission.next() {
                self.now = self.now.max(next);
                self.turn(index);
                self.deliver_wakes();
            }
        }
    }

    /// Releases buffers one at a time until nothing waits and all are back.
    fn drain(&mut self) {
        let mut steps = 0;
        while self.pending() > 0 || !self.pool.is_whole() {
            let busy = self.threads.iter().position(|one| !one.held.is_empty());
            let busy = busy.expect("requests wait, and no buffer is in flight");
            self.apply(&Event::Release {
                thread: busy,
                nth: 0,
            });
            steps += 1;
            assert!(steps < 10_000, "requests starve");
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let thread = 0..8_usize;
    prop_oneof![
        5 => (thread.clone(), any::<bool>())
            .prop_map(|(thread, unpaced)| Event::Request { thread, unpaced }),
        4 => (thread.clone(), 0..64_usize).prop_map(|(thread, nth)| Event::Release { thread, nth }),
        1 => (thread.clone(), 0..64_usize)
            .prop_map(|(thread, nth)| Event::Withdraw { thread, nth }),
        1 => thread.prop_map(|thread| Event::Turn { thread }),
    ]
}

proptest! {
    #[test]
    fn buffers_are_limited_in_order_and_come_back(
        count in 1..12_u32,
        cache in 0..8_u32,
        threads in 1..5_u32,
        is_auto in any::<bool>(),
        events in prop::collection::vec(event(), 1..300),
    ) {
        let auto = PacingConfig::Auto(AutoConfig::default());
        let pacing = if is_auto { auto } else { PacingConfig::None };
        let mut target = Target::with_pacing(Some(count), cache, threads, pacing);
        for event in &events {
            target.apply(event);
        }
        target.drain();
        target.rest();
        for thread in &target.threads {
            prop_assert_eq!(thread.admission.statistics().cached, 0);
        }
    }

    #[test]
    fn an_unlimited_pool_makes_nobody_wait(
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut target = Target::new(None, 0, 3);
        for event in &events {
            target.apply(event);
            prop_assert_eq!(target.pending(), 0);
        }
        target.drain();
    }
}

#[test]
fn buffers_are_shared_evenly_between_hungry_threads() {
    let mut target = Target::new(Some(8), 4, 2);
    for _ in 0..32 {
        target.request(0, false);
    }
    assert_eq!(target.threads[0].held.len(), 8);
    for _ in 0..32 {
        target.request(1, false);
    }
    let mut served = HashMap::<usize, u32>::new();
    for step in 0..24 {
        let thread = if target.threads[1].held.is_empty() {
            0
        } else {
            step % 2
        };
        *served.entry(thread).or_default() += 1;
        target.apply(&Event::Release { thread, nth: 0 });
    }
    let held: Vec<usize> = target.threads.iter().map(|one| one.held.len()).collect();
    assert!(
        held == [4, 4] || held == [5, 3] || held == [3, 5],
        "{held:?}"
    );
    target.drain();
}

#[test]
fn a_thread_without_buffers_gets_the_next_one() {
    let mut target = Target::new(Some(1), 0, 2);
    for thread in [0, 0, 0, 1, 1] {
        target.request(thread, false);
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        let thread = usize::from(target.threads[0].held.is_empty());
        order.push(thread);
        target.apply(&Event::Release { thread, nth: 0 });
    }
    assert_eq!(order, [0, 1, 0, 1, 0]);
    assert!(target.pool.is_whole());
}

/// A device that answers at once leaves nothing in flight between two requests.
#[test]
fn bursts_are_served_from_the_cache() {
    for threads in [1, 2] {
        let mut target = Target::new(Some(16), 4, threads);
        for _ in 0..100 {
            (0..4).for_each(|_| target.request(0, false));
            (0..4).for_each(|_| target.apply(&Event::Release { thread: 0, nth: 0 }));
            target.now += Nanos::from_micros(50);
        }
        let statistics = target.threads[0].admission.statistics();
        assert_eq!((statistics.pool_hits, statistics.cache_hits), (4, 396));
        target.rest();
        assert_eq!(target.threads[0].admission.statistics().cached, 0);
    }
}

#[test]
fn idle_buffers_of_an_unlimited_pool_are_freed() {
    let mut target = Target::new(None, 0, 1);
    for _ in 0..100 {
        target.request(0, false);
    }
    for _ in 0..100 {
        target.release(0, 0);
    }
    let cached = |target: &Target| target.threads[0].admission.statistics().cached;
    assert_eq!(cached(&target), 100);
    for _ in 0..3 {
        // Ten requests at a time stay in use.
        (0..10).for_each(|_| target.request(0, false));
        (0..10).for_each(|_| target.release(0, 0));
        let next = target.threads[0].admission.next().expect("idle buffers");
        target.now = next;
        target.turn(0);
    }
    assert!(cached(&target) <= 10, "{} buffers", cached(&target));
    while let Some(next) = target.threads[0].admission.next() {
        assert!(next <= target.now + Nanos::from_secs(1));
        target.now = next;
        target.turn(0);
    }
    assert_eq!(
        cached(&target),
        0,
        "an idle thread needs no timer and no memory"
    );
}
