//! The completion list against a queue behind a lock.

use std::collections::VecDeque;

use fathom_core::{CompletionList, CompletionReader, Slot};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    Drain(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..SLOTS).prop_map(Step::Push),
        1 => (0..SLOTS + 2).prop_map(Step::Drain),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn it_does_what_a_queue_does(steps in steps()) {
        let (list, mut reader) = CompletionList::new(SLOTS);
        let mut twin = VecDeque::new();
        // How many were pushed since the reader last took all there was.
        let mut untaken = 0_usize;
        for step in steps {
            match step {
                Step::Push(slot) if twin.contains(&slot) => {}
                Step::Push(slot) => {
                    prop_assert_eq!(list.push(Slot::new(slot)), untaken == 0);
                    twin.push_back(slot);
                    untaken += 1;
                }
                Step::Drain(limit) => {
                    let mut slots = Vec::new();
                    let count = list.drain(&mut reader, limit, |slot| slots.push(slot.get()));
                    let taken = twin.len() - untaken;
                    let want: Vec<u32> = twin.drain(..twin.len().min(limit as usize)).collect();
                    if limit as usize > taken {
                        untaken = 0;
                    }
                    prop_assert_eq!(count as usize, want.len());
                    prop_assert_eq!(slots, want);
                    prop_assert_eq!(reader.has_more(), twin.len() > untaken);
                }
            }
        }
    }
}

fn drained(list: &CompletionList, reader: &mut CompletionReader, limit: u32) -> Vec<u32> {
    let mut slots = Vec::new();
    list.drain(reader, limit, |slot| slots.push(slot.get()));
    slots
}

#[test]
fn the_order_is_that_of_pushing() {
    let (list, mut reader) = CompletionList::new(8);
    assert_eq!(
        [5, 2, 7].map(|slot| list.push(Slot::new(slot))),
        [true, false, false]
    );
    assert_eq!(drained(&list, &mut reader, 8), [5, 2, 7]);
    assert_eq!(drained(&list, &mut reader, 8), []);
}

#[test]
fn what_is_beyond_the_limit_comes_first_the_next_time() {
    let (list, mut reader) = CompletionList::new(8);
    for slot in [5, 2, 7] {
        let _first = list.push(Slot::new(slot));
    }
    assert_eq!(drained(&list, &mut reader, 1), [5]);
    assert!(reader.has_more());
    // The list itself is empty, so this is said to be the first.
    assert!(list.push(Slot::new(5)));
    assert_eq!(drained(&list, &mut reader, 3), [2, 7, 5]);
    assert!(!reader.has_more());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "pushed twice")]
fn a_slot_cannot_be_pushed_twice() {
    let (list, _reader) = CompletionList::new(8);
    let _first = list.push(Slot::new(3));
    let _second = list.push(Slot::new(3));
}

const SLOTS: u32 = 12;
