//! The tag set under many thread schedules. It is the program's own code on shuttle's atomics and
//! locks; a lost wake-up is a deadlock, which shuttle reports with the schedule that led to it.

#![expect(
    unreachable_pub,
    dead_code,
    reason = "modules of the library, included once more"
)]

#[path = "../src/tag_set.rs"]
mod tag_set;
#[path = "../src/tag_words.rs"]
mod tag_words;
#[path = "../src/wait_queues.rs"]
mod wait_queues;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;

use tag_set::{Policy, TagSet, TagSetConfig};
use tag_words::{Hint, Tag};
use wait_queues::{WaiterId, Wakes};

/// Stand-ins for the parts of `core` and `std` that the library uses.
mod sync {
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, atomic};
    pub(crate) use std::sync::PoisonError;
}

/// The tag set as threads use it: each sleeps on its own condition variable.
struct Blocking {
    set: TagSet,
    beds: Vec<Bed>,
    /// Tags held by a thread.
    taken: Vec<AtomicBool>,
}

#[derive(Default)]
struct Bed {
    woken: Mutex<bool>,
    signal: Condvar,
}

impl Blocking {
    fn new(config: TagSetConfig) -> Self {
        let set = TagSet::new(config);
        Self {
            beds: (0..config.waiters).map(|_| Bed::default()).collect(),
            taken: (0..set.capacity())
                .map(|_| AtomicBool::new(false))
                .collect(),
            set,
        }
    }

    /// Takes the tags of a request of `need` pieces; pieces with a tag complete while others still
    /// wait.
    fn one_request(&self, hint: &mut Hint, waiter: WaiterId, need: usize, tags: &mut Vec<Tag>) {
        let mut got = 0;
        while got < need {
            let rest = u32::try_from(need - got).expect("few");
            let asked = self.set.get(hint, waiter, rest, tags);
            self.wake(asked.wake);
            if asked.waits {
                self.sleep(waiter);
            }
            got += tags.len();
            for tag in tags.drain(..) {
                let before = self.taken[tag.index()].swap(true, Ordering::SeqCst);
                assert!(!before, "{tag:?} is given twice");
                thread::yield_now();
                self.taken[tag.index()].store(false, Ordering::SeqCst);
                self.wake(self.set.put(tag));
            }
        }
    }

    fn sleep(&self, waiter: WaiterId) {
        let bed = &self.beds[waiter.index()];
        let mut woken = bed.woken.lock().expect("nobody panics");
        while !*woken {
            woken = bed.signal.wait(woken).expect("nobody panics");
        }
        *woken = false;
    }

    fn wake(&self, wakes: Wakes) {
        for waiter in wakes.waiters() {
            let bed = &self.beds[waiter.index()];
            *bed.woken.lock().expect("nobody panics") = true;
            bed.signal.notify_one();
        }
    }
}

/// Runs one thread per entry of `needs`, each with two requests of that many pieces.
fn check(tags: u32, policy: Policy, needs: &'static [usize]) {
    let run = move || {
        let waiters = u32::try_from(needs.len()).expect("few");
        let all = Arc::new(Blocking::new(TagSetConfig {
            tags,
            waiters,
            policy,
            together: true,
        }));
        let threads = needs.iter().zip(0_u32..).map(|(&need, index)| {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let mut hint = all.set.hint(index as usize);
                for _ in 0..2 {
                    let waiter = WaiterId::new(index);
                    all.one_request(&mut hint, waiter, need, &mut Vec::new());
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            assert!(thread.join().is_ok(), "a thread panicked");
        }
        let mut hint = all.set.hint(0);
        let free = std::iter::from_fn(|| all.set.try_get(&mut hint)).count();
        assert_eq!(free, tags as usize, "tags are lost, or newcomers kept out");
    };
    shuttle::check_random(run, ORDERS);
    shuttle::check_pct(run, ORDERS, 3);
}

#[test]
fn plain_forgets_nobody() {
    check(1, Policy::Plain, &[1, 1, 1]);
    check(2, Policy::Plain, &[1, 2, 1, 2]);
}

#[test]
fn plain_in_batches_forgets_nobody() {
    // Batches of two.
    check(16, Policy::Plain, &[1; 20]);
}

#[test]
fn fair_forgets_nobody() {
    check(1, Policy::Fair, &[1, 1, 1]);
    check(3, Policy::Fair, &[1, 3, 2, 2]);
    check(16, Policy::Fair, &[16, 9, 16, 3]);
    check(16, Policy::Fair, &[1; 20]);
}

#[test]
fn fair_in_rotation_forgets_nobody() {
    check(3, Policy::FairRoundRobin, &[1, 3, 2, 2]);
}

#[test]
fn elastic_forgets_nobody() {
    check(1, Policy::Elastic, &[1, 1, 1]);
    check(3, Policy::Elastic, &[3, 3, 3, 3]);
}

/// Schedules to try of each kind; more found nothing new in minutes.
const ORDERS: usize = 400;
