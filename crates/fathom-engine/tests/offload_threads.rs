//! The run list and the parked workers under every thread schedule and every value that the memory
//! model permits. Both are the program's own files, on loom's atomics.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

#[path = "../src/offload/parked_workers.rs"]
mod parked_workers;
#[path = "../src/offload/run_list.rs"]
mod run_list;

/// Stand-in for `std::sync::atomic` of the library.
mod sync {
    pub(crate) use loom::sync::atomic;
}

use fathom_core::Slot;
use parked_workers::ParkedWorkers;
use run_list::RunList;

struct Queues {
    list: RunList,
    parked_workers: ParkedWorkers,
    ending: AtomicBool,
    /// Number of times each slot was taken.
    taken: [AtomicU32; SLOTS],
}

impl Queues {
    fn all_taken(&self) -> u32 {
        let counts = self.taken.iter();
        counts.map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

/// Runs one worker as the pool does: takes its share, wakes the next if work is left, sleeps.
fn work(shared: &Queues, number: u32, wake: &dyn Fn(&Queues), owner: &thread::Thread) {
    let mut batch = Vec::with_capacity(SLOTS);
    loop {
        batch.clear();
        let others = u64::from(shared.parked_workers.count());
        let share = |there: u64| there.div_ceil(others + 1);
        let left = shared.list.take(&mut batch, share);
        if !batch.is_empty() {
            if left > 0 {
                wake(shared);
            }
            for slot in &batch {
                shared.taken[slot.index()].fetch_add(1, Ordering::SeqCst);
                owner.unpark();
            }
        } else if shared.ending.load(Ordering::SeqCst) {
            return;
        } else {
            let has_work = || shared.list.len() > 0 || shared.ending.load(Ordering::SeqCst);
            shared.parked_workers.sleep(number, has_work, thread::park);
        }
    }
}

/// Runs a thread that queues batches and workers that take them. A lost wake-up is a deadlock,
/// which loom reports. No worker is woken while `deadline` of them are awake.
fn check(workers: u32, deadline: u32, batches: &'static [&'static [u32]]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || {
        let shared = Arc::new(Queues {
            list: RunList::new(2),
            parked_workers: ParkedWorkers::new(workers),
            ending: AtomicBool::new(false),
            taken: std::array::from_fn(|_| AtomicU32::new(0)),
        });
        let owner = thread::current();
        let handles: Arc<loom::sync::Mutex<Vec<thread::Thread>>> = Arc::default();
        let wake = {
            let handles = Arc::clone(&handles);
            move |shared: &Queues| {
                if workers - shared.parked_workers.count() >= deadline {
                    return;
                }
                if let Some(number) = shared.parked_workers.choose(|| shared.list.len() > 0) {
                    let handles = handles.lock().expect("nobody panics with it");
                    handles[number as usize].unpark();
                }
            }
        };
        let joins: Vec<_> = {
            // Nobody can be woken before all are known.
            let mut known = handles.lock().expect("nobody else has it");
            (0..workers)
                .map(|number| {
                    let (shared, owner) = (Arc::clone(&shared), owner.clone());
                    let wake = wake.clone();
                    let join = thread::spawn(move || work(&shared, number, &wake, &owner));
                    known.push(join.thread().clone());
                    join
                })
                .collect()
        };
        for batch in batches {
            let slots: Vec<Slot> = batch.iter().copied().map(Slot::new).collect();
            shared.list.push(&slots);
            wake(&shared);
        }
        let wanted: u32 = batches
            .iter()
            .map(|batch| u32::try_from(batch.len()).unwrap_or(0))
            .sum();
        while shared.all_taken() < wanted {
            thread::park();
        }
        shared.ending.store(true, Ordering::SeqCst);
        for handle in handles.lock().expect("nobody panics with it").iter() {
            handle.unpark();
        }
        for join in joins {
            let ended = join.join();
            assert!(ended.is_ok(), "a worker panicked");
        }
        assert_eq!(shared.list.taken(), u64::from(wanted));
        for batch in batches {
            for &slot in *batch {
                let count = shared.taken[slot as usize].load(Ordering::SeqCst);
                assert_eq!(count, 1, "slot {slot} was taken {count} times");
            }
        }
    });
}

#[test]
fn one_worker_takes_each_slot_once_and_sleeps_through_nothing() {
    check(1, ALL, &[&[0], &[1]]);
    check(1, ALL, &[&[0, 1]]);
}

#[test]
fn who_is_awake_needs_no_waking() {
    check(1, 1, &[&[0], &[1]]);
    check(2, 1, &[&[0], &[1]]);
}

#[test]
fn two_workers_share_a_batch() {
    check(2, ALL, &[&[0, 1]]);
}

const SLOTS: usize = 2;
/// Every sleeping worker is woken.
const ALL: u32 = u32::MAX;

/// Preemptions per thread: two find every weakened ordering that was tried, in seconds instead of
/// hours.
const PREEMPTIONS: usize = 2;
