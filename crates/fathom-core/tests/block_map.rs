//! The block map against a `HashSet` of block numbers.

use std::collections::HashSet;

use fathom_core::BlockMap;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Set(u64),
    Take(u64),
    Run(u64, u64),
    Clear,
}

fn steps() -> impl Strategy<Value = (u64, Vec<Step>)> {
    (1u64..9000).prop_flat_map(|blocks| {
        let step = prop_oneof![
            4 => (0..blocks).prop_map(Step::Set),
            20 => (0..blocks).prop_map(Step::Take),
            2 => (0..blocks, 0u64..300).prop_map(|(start, limit)| Step::Run(start, limit)),
            1 => Just(Step::Clear),
        ];
        (Just(blocks), proptest::collection::vec(step, 0..400))
    })
}

fn next_free(taken: &HashSet<u64>, blocks: u64, start: u64) -> Option<u64> {
    (start..blocks)
        .chain(0..start)
        .find(|block| !taken.contains(block))
}

proptest! {
    #[test]
    fn it_does_what_a_set_does((blocks, steps) in steps()) {
        let mut map = BlockMap::new(blocks).unwrap();
        let mut twin = HashSet::new();
        for step in steps {
            match step {
                Step::Set(block) => prop_assert_eq!(map.set(block), twin.insert(block)),
                Step::Take(start) => {
                    let want = next_free(&twin, blocks, start);
                    prop_assert_eq!(map.next_free(start), want);
                    prop_assert_eq!(map.take(start), want);
                    twin.extend(want);
                }
                Step::Run(start, limit) => {
                    let want = (start..blocks.min(start + limit))
                        .take_while(|block| !twin.contains(block))
                        .count();
                    prop_assert_eq!(map.free_run(start, limit), want as u64);
                }
                Step::Clear => {
                    map.clear();
                    twin.clear();
                }
            }
            prop_assert_eq!(map.count(), twin.len() as u64);
        }
        for block in 0..blocks {
            prop_assert_eq!(map.test(block), twin.contains(&block));
        }
    }

    #[test]
    fn taking_until_nothing_is_left_takes_each_block_once(
        blocks in 1u64..6000,
        starts in proptest::collection::vec(any::<u64>(), 1..50),
    ) {
        let mut map = BlockMap::new(blocks).unwrap();
        let mut seen = HashSet::new();
        for start in starts.iter().cycle() {
            let Some(block) = map.take(start % blocks) else { break };
            prop_assert!(block < blocks && seen.insert(block));
        }
        prop_assert_eq!(seen.len() as u64, blocks);
    }
}
