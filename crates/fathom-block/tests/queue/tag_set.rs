//! The tag set against a plain set of numbers: no tag is granted twice, and no waiter is forgotten,
//! whatever the order of requests.

use std::collections::HashSet;

use fathom_block::{Hint, Policy, Tag, TagSet, TagSetConfig, WaiterId, Wakes};
use proptest::prelude::*;

/// A tag set with its users, each of which does one thing at a time.
struct World {
    set: TagSet,
    hint: Hint,
    config: TagSetConfig,
    held: Vec<Tag>,
    numbers: HashSet<usize>,
    /// Number of tags that each waiter waits for.
    waiting: Vec<Option<u32>>,
    /// Waiters that were woken and have not asked again yet.
    woken: Vec<WaiterId>,
}

impl World {
    fn new(config: TagSetConfig) -> Self {
        let set = TagSet::new(config);
        Self {
            hint: set.hint(3),
            set,
            config,
            held: Vec::new(),
            numbers: HashSet::new(),
            waiting: vec![None; config.waiters as usize],
            woken: Vec::new(),
        }
    }

    fn is_fair(&self) -> bool {
        matches!(self.config.policy, Policy::Fair | Policy::FairRoundRobin)
    }

    fn somebody_queues(&self) -> bool {
        let queued = |index: u32| {
            let waiter = WaiterId::new(index);
            self.waiting[waiter.index()].is_some() && !self.woken.contains(&waiter)
        };
        (0..self.config.waiters).any(queued)
    }

    fn ask(&mut self, waiter: WaiterId, need: u32) {
        let newcomer = self.waiting[waiter.index()].is_none();
        let passes = newcomer && self.is_fair() && self.somebody_queues();
        let before = self.held.len();
        let asked = self.set.get(&mut self.hint, waiter, need, &mut self.held);
        let got = self.held.len() - before;
        assert_eq!(asked.waits, got == 0);
        assert!(!(passes && got > 0), "a newcomer passed those who wait");
        let together = self.config.together && self.config.policy != Policy::Plain;
        let whole = if together {
            need.min(self.config.tags)
        } else {
            1
        };
        assert!(got == 0 || got == whole as usize, "{got} of {need}");
        for tag in &self.held[before..] {
            assert!(tag.index() < self.set.capacity());
            assert!(self.numbers.insert(tag.index()), "{tag:?} is given twice");
        }
        if self.config.policy != Policy::Elastic {
            assert!(self.held.len() <= self.config.tags as usize);
        }
        self.waiting[waiter.index()] = asked.waits.then_some(need);
        self.wake(asked.wake);
    }

    fn put(&mut self, which: usize) {
        if self.held.is_empty() {
            return;
        }
        let tag = self.held.swap_remove(which % self.held.len());
        self.numbers.remove(&tag.index());
        let wake = self.set.put(tag);
        self.wake(wake);
    }

    fn cancel(&mut self, waiter: WaiterId) {
        self.waiting[waiter.index()] = None;
        self.woken.retain(|woken| *woken != waiter);
        let wake = self.set.cancel(waiter);
        self.wake(wake);
    }

    fn wake(&mut self, wakes: Wakes) {
        for &waiter in wakes.waiters() {
            assert!(self.waiting[waiter.index()].is_some(), "woken for nothing");
            assert!(!self.woken.contains(&waiter), "woken twice");
            self.woken.push(waiter);
        }
    }

    fn answer(&mut self, which: usize) {
        if self.woken.is_empty() {
            return;
        }
        let waiter = self.woken.swap_remove(which % self.woken.len());
        let need = self.waiting[waiter.index()].expect("it waits");
        self.ask(waiter, need);
    }

    /// Lets all users finish; one that still waits then was forgotten.
    fn end(mut self) {
        for _ in 0..100_000 {
            if !self.woken.is_empty() {
                self.answer(0);
            } else if !self.held.is_empty() {
                self.put(0);
            } else {
                break;
            }
        }
        assert!(!self.somebody_queues(), "forgotten: {:?}", self.waiting);
        let mut all = 0;
        while let Some(tag) = self.set.try_get(&mut self.hint) {
            assert!(self.numbers.insert(tag.index()));
            self.held.push(tag);
            all += 1;
        }
        assert_eq!(
            all, self.config.tags,
            "tags were lost, or newcomers are still kept out"
        );
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u32, u32),
    Put(usize),
    Answer(usize),
    Cancel(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..WAITERS, 1..12_u32).prop_map(|(waiter, need)| Step::Ask(waiter, need)),
        6 => any::<usize>().prop_map(Step::Put),
        3 => any::<usize>().prop_map(Step::Answer),
        1 => (0..WAITERS).prop_map(Step::Cancel),
    ];
    proptest::collection::vec(step, 0..600)
}

fn configs() -> impl Strategy<Value = TagSetConfig> {
    let tags = prop_oneof![1..20_u32, Just(32), Just(64), Just(130)];
    let policy = prop::sample::select(POLICIES.to_vec());
    (tags, policy, any::<bool>()).prop_map(|(tags, policy, together)| TagSetConfig {
        tags,
        waiters: WAITERS,
        policy,
        together,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn it_gives_each_tag_once_and_forgets_nobody(config in configs(), steps in steps()) {
        let mut world = World::new(config);
        for step in steps {
            match step {
                Step::Ask(waiter, need) => {
                    let waiter = WaiterId::new(waiter);
                    if world.waiting[waiter.index()].is_none() {
                        world.ask(waiter, need);
                    }
                }
                Step::Put(which) => world.put(which),
                Step::Answer(which) => world.answer(which),
                Step::Cancel(waiter) => world.cancel(WaiterId::new(waiter)),
            }
        }
        world.end();
    }
}

/// Creates a set whose tags are all taken and for which `waiters` wait, less those that `stays`
/// does not select.
fn full(policy: Policy, waiters: u32, need: u32, stays: impl Fn(u32) -> bool) -> World {
    let mut world = World::new(TagSetConfig {
        tags: 64,
        waiters: waiters + 64,
        policy,
        together: true,
    });
    for index in 0..64 {
        world.ask(WaiterId::new(waiters + index), 1);
    }
    for index in 0..waiters {
        world.ask(WaiterId::new(index), need);
    }
    for index in (0..waiters).filter(|index| !stays(*index)) {
        world.cancel(WaiterId::new(index));
    }
    world
}

#[test]
fn eight_waiters_in_one_queue_and_none_in_the_others_are_served() {
    for policy in POLICIES {
        full(policy, 64, 1, |index| index % 8 == 5).end();
        full(policy, 64, 8, |index| index % 8 == 5).end();
    }
}

#[test]
fn fewer_waiters_than_a_batch_are_served() {
    for policy in POLICIES {
        full(policy, 3, 1, |_| true).end();
        full(policy, 64, 8, |index| index == 63).end();
    }
}

#[test]
fn short_queues_do_not_use_up_the_wake_ups_of_a_long_one() {
    for policy in POLICIES {
        full(policy, 400, 1, |index| index % 8 == 7 || index < 8).end();
    }
}

#[test]
fn those_who_give_up_after_they_were_woken_hand_that_on() {
    for policy in POLICIES {
        let mut world = full(policy, 200, 1, |_| true);
        while !world.held.is_empty() {
            world.put(0);
        }
        for waiter in world.woken.clone() {
            world.cancel(waiter);
        }
        world.end();
    }
}

/// Returns the waiters that the first `puts` tags wake, by number.
fn woken_by(policy: Policy, need: u32, puts: usize) -> Vec<usize> {
    let mut world = full(policy, 128, need, |_| true);
    (0..puts).for_each(|_| world.put(0));
    world.woken.iter().map(|waiter| waiter.index()).collect()
}

#[test]
fn a_batch_wakes_one_queue_and_counts_waiters_or_tags() {
    let first_queue: Vec<usize> = (0..64).step_by(8).collect();
    assert_eq!(woken_by(Policy::Plain, 8, 7), []);
    assert_eq!(woken_by(Policy::Plain, 8, 8), first_queue);
    assert_eq!(woken_by(Policy::Elastic, 8, 8), first_queue);
    assert_eq!(woken_by(Policy::Fair, 1, 8), first_queue);
    assert_eq!(woken_by(Policy::Fair, 8, 7), []);
    assert_eq!(woken_by(Policy::Fair, 8, 8), [0]);
    assert_eq!(woken_by(Policy::Fair, 8, 16), [0, 1]);
    assert_eq!(woken_by(Policy::FairRoundRobin, 8, 16), [0, 1]);
}

#[test]
fn the_longest_queue_is_woken_only_where_the_policy_says_so() {
    // Queue 0 has 2 waiters, queue 5 has 16, the others have none.
    let woken = |policy| {
        let mut world = full(policy, 128, 8, |index| {
            index % 8 == 5 || index == 0 || index == 8
        });
        (0..8).for_each(|_| world.put(0));
        world.woken[0].index()
    };
    assert_eq!(woken(Policy::Fair), 5);
    assert_eq!(woken(Policy::FairRoundRobin), 5);
    assert_eq!(woken(Policy::Plain), 0);
}

#[test]
fn newcomers_pass_where_the_policy_lets_them() {
    for policy in POLICIES {
        let mut world = full(policy, 20, 1, |_| true);
        world.put(0);
        let tag = world.set.try_get(&mut world.hint);
        let fair = matches!(policy, Policy::Fair | Policy::FairRoundRobin);
        assert_eq!(tag.is_none(), fair, "{policy:?}");
    }
}

#[test]
fn only_pieces_of_a_split_use_the_reserve() {
    let config = TagSetConfig {
        tags: 16,
        waiters: 4,
        policy: Policy::Elastic,
        together: true,
    };
    let mut world = World::new(config);
    world.ask(WaiterId::new(0), 15);
    world.ask(WaiterId::new(1), 8);
    assert_eq!(world.held.len(), 23);
    world.ask(WaiterId::new(2), 8);
    assert_eq!(world.waiting[2], Some(8));
    assert!(world.set.try_get(&mut world.hint).is_none());
    world.end();
}

const POLICIES: [Policy; 4] = [
    Policy::Plain,
    Policy::Fair,
    Policy::FairRoundRobin,
    Policy::Elastic,
];
const WAITERS: u32 = 40;
