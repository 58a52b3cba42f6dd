//! Tracking the latest write of each block: the generation map of verification, compared with a
//! plain array of words.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use fathom_workload::{Change, Content, Generation, GenerationMap, MapLayout};

use super::{ColumnNames, Micro, Sample, Span, THREADS, Variant, rows, sharing_notes};
use crate::table::{Experiment, Table};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "generation-map",
    about: "noting a write of a block before and after it, and looking it up, by one thread",
    origin: "none; two stores to an array of words and a load are the lower bound",
    has_plot: false,
};

/// Runs the benchmark on one thread, with a map that fits into L2 and with one that does not.
#[must_use]
pub fn generation_map(config: &Micro<'_>) -> Table {
    let mut table = Table {
        head: EXPERIMENT.into(),
        columns: ColumnNames {
            rate: "blocks",
            counted: "blocks",
            baselines: &["array"],
        }
        .columns(),
        rows: Vec::new(),
        notes: notes(config.repeats),
        panels: Vec::new(),
    };
    for (array_name, map_name, blocks) in SIZES {
        let array = RefCell::new(vec![0; usize::try_from(blocks).unwrap_or_default()]);
        let map = map_of(blocks);
        let round = Cell::new(0);
        let array = |_| rate(config, |number| store(&array, blocks, number));
        let map = |_| {
            // The generations of each repeat differ from those before.
            round.set(round.get() + 1);
            rate(config, |number| track(&map, blocks, number, round.get()))
        };
        let variants: [Variant<'_>; 2] = [(array_name, &array), (map_name, &map)];
        table.rows.extend(rows(&variants, 1, 1, config.repeats));
    }
    let waited = table.columns.len() - 1;
    table
        .notes
        .extend(sharing_notes(&table.rows, THREADS, waited));
    table
}

/// Returns the blocks per second of `one`, on the calling thread.
fn rate(config: &Micro<'_>, one: impl Fn(u64)) -> Sample {
    Span::here(config.now_ns, || (0..OPS).for_each(one)).rate(OPS)
}

/// Returns a map of this many blocks, with its memory.
fn map_of(blocks: u64) -> GenerationMap {
    let map = GenerationMap::new(MapLayout {
        start: 0,
        end: blocks * u64::from(BLOCK),
        block_bytes: BLOCK,
        interval: BLOCK,
    });
    // Without memory the map tracks nothing, and the rates tell.
    let _no_memory = map.reserve();
    map
}

fn store(words: &RefCell<Vec<u32>>, blocks: u64, number: u64) {
    let mut words = words.borrow_mut();
    let index = usize::try_from(place(blocks, number)).unwrap_or_default();
    words[index] = black_box(1);
    words[index] = black_box(2);
    black_box(words[index]);
}

/// Reports one write to the map, and asks it for the block.
fn track(map: &GenerationMap, blocks: u64, number: u64, round: u64) {
    let change = Change {
        offset: place(blocks, number) * u64::from(BLOCK),
        length: BLOCK,
        generation: Generation::new(round, number, 1),
        content: Content::Stamped(BLOCK),
    };
    map.begin(&change);
    map.end(black_box(&change), true);
    let holds = map.holds(change.offset, BLOCK, change.generation);
    debug_assert!(holds, "the latest write of the block");
    black_box(holds);
}

/// Returns the block of an op: each in turn, at distances that no prefetcher follows. An odd factor
/// permutes a range that is a power of two.
const fn place(blocks: u64, number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (blocks - 1)
}

fn notes(repeats: u32) -> Vec<String> {
    vec![
        format!(
            "{OPS} blocks of {BLOCK} B in scattered order, {repeats} repeats; {}",
            crate::median::note(repeats)
        ),
        "goals: at most 15 ns per block with the map of 256 KiB, at most 60 ns with that of 64 MiB"
            .into(),
    ]
}

/// Names of the variants, and the blocks that they track: powers of two.
const SIZES: [(&str, &str, u64); 2] = [
    ("array of 256 KiB", "generation map of 256 KiB", 1 << 16),
    ("array of 64 MiB", "generation map of 64 MiB", 1 << 24),
];
/// Bytes of a block.
const BLOCK: u32 = 4096;
/// Blocks per repeat: some milliseconds.
const OPS: u64 = 500_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_visited_in_turn() {
        let mut seen = vec![false; 1 << 8];
        for number in 0..1 << 8 {
            let place = usize::try_from(place(1 << 8, number)).unwrap();
            assert!(!std::mem::replace(&mut seen[place], true));
        }
    }
}
