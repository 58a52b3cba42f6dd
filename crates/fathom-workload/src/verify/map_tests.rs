//! The generation map against a naive model: a list of all changes with their times.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::expected::Expected;
use super::generation::Generation;
use super::generation_map::{Change, Content, GenerationMap, KeptMemory};
use super::map_layout::MapLayout;

const BLOCK: u32 = 512;
const START: u64 = 4096;
const BLOCKS: u64 = 8;

/// Change of the model, with the numbers of its first and last events.
#[derive(Clone, Debug)]
struct Told {
    change: Change,
    began: usize,
    ended: Option<(usize, bool)>,
}

impl Told {
    fn covers(&self, block: u64) -> bool {
        let at = START + block * u64::from(BLOCK);
        self.change.offset <= at && at < self.change.offset + u64::from(self.change.length)
    }

    /// Returns whether it was in flight between two events.
    fn is_beside(&self, from: usize, to: usize) -> bool {
        self.began <= to && self.ended.is_none_or(|(ended, _)| ended >= from)
    }
}

/// Event of a history.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Begins a change of `units` units of two blocks, from this block on.
    Begin { block: u64, units: u32, trims: bool },
    /// Ends the change in flight with this number, modulo the number of those.
    End { number: usize, done: bool },
    /// Observes the unit at this block, and judges it after `after` further events.
    Read { block: u64, after: usize },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..BLOCKS - 1, 1u32..4, prop::bool::weighted(0.1))
            .prop_map(|(block, units, trims)| Event::Begin { block, units, trims }),
        3 => (any::<usize>(), prop::bool::weighted(0.9))
            .prop_map(|(number, done)| Event::End { number, done }),
        3 => (0..BLOCKS - 1, 0usize..4).prop_map(|(block, after)| Event::Read { block, after }),
    ]
}

/// Candidates of a block: the change, and whether the block is the first of a unit of it.
fn candidates(told: &[Told], block: u64) -> Option<Vec<(usize, bool)>> {
    let touching: Vec<usize> = (0..told.len()).filter(|&n| told[n].covers(block)).collect();
    let replaces = |later: usize, earlier: usize| {
        let (Some((_, done)), Some((ended, _))) = (told[later].ended, told[earlier].ended) else {
            return false;
        };
        done && told[later].began > ended
    };
    let open = |&n: &usize| !touching.iter().any(|&later| replaces(later, n));
    let left: Vec<usize> = touching.iter().copied().filter(open).collect();
    let all_done = left
        .iter()
        .all(|&n| told[n].ended.is_some_and(|(_, done)| done));
    let is_first = |n: usize| {
        let within = START + block * u64::from(BLOCK) - told[n].change.offset;
        within.is_multiple_of(u64::from(2 * BLOCK))
    };
    all_done.then(|| left.into_iter().map(|n| (n, is_first(n))).collect())
}

/// Returns what the model says of a unit that was read between two events.
fn model(told: &[Told], block: u64, from: usize, to: usize) -> Expected {
    let disturbs = |t: &Told| (t.covers(block) || t.covers(block + 1)) && t.is_beside(from, to);
    if told.iter().any(disturbs) {
        return Expected::Anything;
    }
    let (Some(first), Some(rest)) = (candidates(told, block), candidates(told, block + 1)) else {
        return Expected::Anything;
    };
    let trims = |&(n, _): &(usize, bool)| told[n].change.content == Content::Zeros;
    let generation = |&(n, _): &(usize, bool)| told[n].change.generation;
    if first.is_empty() && rest.is_empty() {
        return Expected::Valid;
    }
    let is_one = first.len() == 1 && rest.len() == 1;
    if is_one && trims(&first[0]) && trims(&rest[0]) {
        return Expected::Zeros;
    }
    let numbers = |of: &[(usize, bool)]| of.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    let stamped = !first.iter().chain(&rest).any(trims);
    let aligned = first.iter().all(|(_, first)| *first) && rest.iter().all(|(_, first)| !first);
    if !stamped || !aligned || numbers(&first) != numbers(&rest) {
        return Expected::Anything;
    }
    if is_one {
        return latest(generation(&first[0]));
    }
    let mut all: Vec<Generation> = first.iter().map(generation).collect();
    all.sort_unstable_by_key(|generation| generation.get());
    Expected::OneOf(all)
}

/// Plays a history on a map and on the model.
fn play(map: &GenerationMap, events: &[Event]) -> Result<(), TestCaseError> {
    map.reserve().unwrap();
    let mut told: Vec<Told> = Vec::new();
    let mut reads: Vec<(u64, usize, usize, [u32; 2])> = Vec::new();
    for (now, event) in events.iter().enumerate() {
        match *event {
            Event::Begin {
                block,
                units,
                trims,
            } => {
                let change = change(block, units, trims, told.len() as u64);
                map.begin(&change);
                told.push(Told {
                    change,
                    began: now,
                    ended: None,
                });
            }
            Event::End { number, done } => {
                let mut flying: Vec<_> = told.iter_mut().filter(|t| t.ended.is_none()).collect();
                let count = flying.len();
                if count > 0 {
                    let ending = &mut flying[number % count];
                    ending.ended = Some((now, done));
                    map.end(&ending.change, done);
                }
            }
            Event::Read { block, after } => {
                let mut seen = [0; 2];
                map.observe(START + block * u64::from(BLOCK), 2 * BLOCK, &mut seen);
                reads.push((block, now, now + after, seen));
            }
        }
        for &(block, from, to, seen) in reads.iter().filter(|(_, _, to, _)| *to == now) {
            let got = map.expected(START + block * u64::from(BLOCK), 2 * BLOCK, &seen);
            prop_assert_eq!(
                got,
                model(&told, block, from, to),
                "block {} at {}",
                block,
                now
            );
        }
    }
    Ok(())
}

fn change(block: u64, units: u32, trims: bool, number: u64) -> Change {
    let length = (units * 2 * BLOCK).min(u32::try_from(BLOCKS - block).unwrap() * BLOCK);
    Change {
        offset: START + block * u64::from(BLOCK),
        // Whole units, as ops are.
        length: length / (2 * BLOCK) * 2 * BLOCK,
        generation: Generation::new(1000 * number, number, 1),
        content: match trims {
            true => Content::Zeros,
            false => Content::Stamped(2 * BLOCK),
        },
    }
}

fn latest(generation: Generation) -> Expected {
    Expected::Latest {
        generation,
        sequence: None,
    }
}

fn map() -> GenerationMap {
    GenerationMap::new(MapLayout {
        start: START,
        end: START + BLOCKS * u64::from(BLOCK),
        block_bytes: BLOCK,
        interval: BLOCK,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_history_is_judged_as_by_the_model(
        events in proptest::collection::vec(event(), 0..60),
        shared in any::<bool>(),
    ) {
        let map = if shared { map().shared(true) } else { map() };
        play(&map, &events)?;
    }
}

#[test]
fn ends_that_are_no_multiples_leave_their_entries_unknown() {
    let map = map();
    map.reserve().unwrap();
    let whole = change(0, 4, false, 1);
    let odd = Change {
        offset: START + 256,
        length: 2 * BLOCK,
        ..change(0, 1, false, 2)
    };
    for change in [whole, odd] {
        map.begin(&change);
        map.end(&change, true);
    }
    let mut seen = [0; 8];
    map.observe(START, 8 * BLOCK, &mut seen);
    let judge = |block: usize| {
        map.expected(
            START + block as u64 * u64::from(BLOCK),
            2 * BLOCK,
            &seen[block..],
        )
    };
    assert_eq!(judge(0), Expected::Anything);
    assert_eq!(judge(2), Expected::Anything);
    assert_eq!(judge(4), latest(whole.generation));
    assert!(map.holds(START + 2048, 1024, whole.generation));
    assert!(!map.holds(START, 1024, whole.generation));
}

/// As blocks of an earlier run: a job that only reads checks them.
#[test]
fn what_a_job_without_verification_wrote_must_be_valid_by_itself() {
    let map = map().shared(true);
    map.reserve().unwrap();
    let stamped = change(0, 4, false, 1);
    let untracked = |offset, length| Change {
        offset: START + offset,
        length,
        content: Content::Untracked,
        ..change(0, 1, false, 2)
    };
    let judge = |block: u64| {
        let (offset, mut seen) = (START + block * u64::from(BLOCK), [0; 2]);
        map.observe(offset, 2 * BLOCK, &mut seen);
        map.expected(offset, 2 * BLOCK, &seen)
    };
    map.begin(&stamped);
    map.end(&stamped, true);
    // The second half of the first block, and four bytes of the next one.
    for change in [untracked(512, 512), untracked(1028, 4)] {
        map.begin(&change);
        map.end(&change, true);
    }
    assert_eq!((judge(0), judge(2)), (Expected::Valid, Expected::Valid));
    assert_eq!(judge(4), latest(stamped.generation));
    assert_eq!(
        map.known_entries()[..2],
        [1 << 29 | stamped.generation.get(), 1]
    );
    // One write has failed, and one is in flight.
    let (failed, open) = (untracked(0, 512), untracked(2048, 512));
    for change in [failed, open] {
        map.begin(&change);
    }
    map.end(&failed, false);
    assert_eq!(
        (judge(0), judge(4)),
        (Expected::Anything, Expected::Anything)
    );
    // Two writes were in flight together: the data of either may be there.
    map.begin(&change(2, 1, false, 3));
    map.end(&open, true);
    map.end(&change(2, 1, false, 3), true);
    let (both, other) = (untracked(3072, 1024), change(6, 1, false, 4));
    for change in [both, other] {
        map.begin(&change);
    }
    for change in [both, other] {
        map.end(&change, true);
    }
    assert_eq!(judge(6), Expected::Anything);
}

#[test]
fn a_cleared_map_has_no_writes_even_if_some_are_in_flight() {
    let map = map();
    map.reserve().unwrap();
    let (one, other) = (change(0, 1, false, 1), change(0, 1, false, 2));
    map.begin(&one);
    map.begin(&other);
    map.clear();
    map.end(&one, true);
    map.end(&other, true);
    let mut seen = [0; 2];
    map.observe(START, 2 * BLOCK, &mut seen);
    assert_eq!(map.expected(START, 2 * BLOCK, &seen), Expected::Valid);
}

/// Memory that another process may read.
#[derive(Clone, Debug)]
struct Outside(Arc<[AtomicU32]>);

impl AsRef<[AtomicU32]> for Outside {
    fn as_ref(&self) -> &[AtomicU32] {
        &self.0
    }
}

#[test]
fn a_map_in_other_memory_has_its_entries_there() {
    let earlier = map();
    earlier.reserve().unwrap();
    let first = change(0, 1, false, 1);
    earlier.begin(&first);
    earlier.end(&first, true);

    let memory = Outside((0..BLOCKS).map(|_| AtomicU32::new(0)).collect());
    let map = earlier.kept_in(KeptMemory {
        entries: Box::new(memory.clone()),
        syncs: None,
    });
    let second = change(2, 1, false, 2);
    map.begin(&second);
    let there = || -> Vec<u32> { memory.0.iter().map(|word| word.load(Relaxed)).collect() };
    let restored = || GenerationMap::restored(map.layout(), there());
    assert!(restored().holds(START, BLOCK, first.generation));
    assert_eq!(restored().known_entries()[2], 1, "in flight, so unknown");
    map.end(&second, true);
    let offset = START + 2 * u64::from(BLOCK);
    assert!(restored().holds(offset, BLOCK, second.generation));
}

#[test]
fn entries_that_no_sync_covers_are_unknown() {
    let map = map().with_syncs();
    map.reserve().unwrap();
    let write = |block, number| {
        let write = change(block, 1, false, number);
        map.begin(&write);
        map.end(&write, true);
    };
    let is_known = |block: usize| map.known_entries()[block] != 1;
    write(0, 1);
    write(2, 2);
    let sync = map.begin_sync().unwrap();
    write(2, 3);
    write(4, 4);
    assert!(!is_known(0));
    map.end_sync(sync);
    assert_eq!([0, 2, 4, 6].map(is_known), [true, false, false, true]);
    map.end_sync(map.begin_sync().unwrap());
    assert_eq!([0, 2, 4, 6].map(is_known), [true; 4]);
    write(0, 5);
    map.clear();
    assert_eq!(map.known_entries()[0], 0);
}

#[test]
fn layouts_merge_to_what_suits_both_jobs() {
    let layout = |start, end, block_bytes| MapLayout {
        start,
        end,
        block_bytes,
        interval: 0,
    };
    let check = |one: MapLayout, other: MapLayout, want: MapLayout| {
        assert_eq!(one.merged(&other), want);
        assert_eq!(other.merged(&one), want);
    };
    check(
        layout(0, 100 << 10, 4096),
        layout(0, 1 << 20, 6144),
        layout(0, 1 << 20, 2048),
    );
    check(
        layout(0, 8192, 4096),
        layout(512, 4608, 4096),
        layout(0, 8192, 512),
    );
    assert_eq!(layout(0, 1 << 40, 4096).memory_bytes(), 1 << 30);
}
