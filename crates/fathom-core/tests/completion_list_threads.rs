//! The completion list under every thread schedule and every value that the memory model permits.
//! It is the program's own file, on loom's atomics.

#![expect(
    unreachable_pub,
    dead_code,
    reason = "a module of the library, included once more"
)]

use loom::sync::Arc;
use loom::thread;

#[path = "../src/completion_list.rs"]
mod completion_list;

use completion_list::{CompletionList, CompletionReader};
use fathom_core::Slot;

/// Stand-in for `core::sync::atomic` of the library.
mod sync {
    pub(crate) use loom::sync::atomic;
}

/// Runs two threads that push their own slots in ascending order, `batch` at a time, and a third
/// that drains in batches of `limit` and sleeps when the list is empty. A lost wake-up is a
/// deadlock, which loom reports.
fn check(pushed: [&'static [u32]; 2], limit: u32, batch: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || {
        let (list, reader) = CompletionList::new(4);
        let list = Arc::new(list);
        let wanted = pushed.iter().map(|slots| slots.len()).sum();
        let main = thread::current();
        let producers = pushed.map(|slots| {
            let (list, main) = (Arc::clone(&list), main.clone());
            thread::spawn(move || {
                let slots: Vec<Slot> = slots.iter().copied().map(Slot::new).collect();
                for batch in slots.chunks(batch) {
                    if list.push_all(batch) {
                        main.unpark();
                    }
                }
            })
        });
        let got = drain_all(&list, reader, wanted, limit);
        for producer in producers {
            let ended = producer.join();
            assert!(ended.is_ok(), "a producer panicked");
        }
        for slots in pushed {
            let of_this = got.iter().filter(|slot| slots.contains(slot));
            assert!(of_this.eq(slots), "{got:?}: not once each, in order");
        }
    });
}

fn drain_all(
    list: &CompletionList,
    mut reader: CompletionReader,
    wanted: usize,
    limit: u32,
) -> Vec<u32> {
    let mut got = Vec::new();
    while got.len() < wanted {
        if list.drain(&mut reader, limit, |slot| got.push(slot.get())) == 0 {
            thread::park();
        }
    }
    assert_eq!(list.drain(&mut reader, limit, |_| {}), 0, "one too many");
    got
}

#[test]
fn two_producers_lose_nothing_and_wake_the_reader() {
    check([&[0], &[1]], 4, 1);
    check([&[0, 2], &[1]], 4, 1);
}

#[test]
fn batches_of_one_lose_nothing_either() {
    check([&[0, 2], &[1]], 1, 1);
}

#[test]
fn what_is_pushed_together_stays_together() {
    check([&[0, 2], &[1]], 4, 2);
    check([&[0, 2, 3], &[1]], 1, 3);
}

#[test]
fn a_slot_goes_round() {
    loom::model(|| {
        let (list, reader) = CompletionList::new(1);
        let list = Arc::new(list);
        let main = thread::current();
        // What a worker wrote before it pushed is there for who drains.
        let data = Arc::new(loom::cell::UnsafeCell::new(0_u32));
        let producer = {
            let (list, data) = (Arc::clone(&list), Arc::clone(&data));
            thread::spawn(move || {
                data.with_mut(|_written| {});
                assert!(list.push(Slot::new(0)), "nobody else pushes");
                main.unpark();
            })
        };
        assert_eq!(drain_all(&list, reader, 1, 1), [0]);
        data.with(|_read| {});
        let ended = producer.join();
        assert!(ended.is_ok(), "a producer panicked");
    });
}

/// Preemptions per thread. Two find every weakened ordering and every wrong transition that was
/// tried, in seconds instead of minutes.
const PREEMPTIONS: usize = 2;
