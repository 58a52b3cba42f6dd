//! Getting a tag and giving it back: the tag set, two bare exchanges, a bitmap behind a lock.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fathom_block::{Policy, TagSet, TagSetConfig};

use super::{Micro, NOTE, Way, columns, per_second, rows, span_ns};
use crate::table::{Experiment, Table};

/// This experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tags",
    about: "getting a tag and giving it back, by threads of which none has to wait",
    origin: "nowhere; two bare exchanges are what it costs at least",
};

/// Measures for 1, 2, … threads.
#[must_use]
pub fn tags(asked: &Micro<'_>) -> Table {
    let Micro { now_ns, .. } = *asked;
    let all = |threads: u32, pair: &(dyn Fn(u32) + Sync)| {
        let span = span_ns(now_ns, threads, pair);
        per_second(u64::from(threads) * u64::from(PAIRS), span)
    };
    let bitmap = |threads| {
        let bits = Mutex::new(0_u64);
        let lock = || bits.lock().unwrap_or_else(PoisonError::into_inner);
        all(threads, &|_| {
            for _ in 0..PAIRS {
                let mut bits = lock();
                let bit = (!*bits).trailing_zeros();
                *bits |= 1 << bit;
                drop(bits);
                *lock() &= !(1 << black_box(bit));
            }
        })
    };
    let bare = |threads| {
        all(threads, &|_| {
            let word = AtomicU64::new(0);
            for _ in 0..PAIRS {
                // The orderings that a set needs: Acquire to take, Release to give back.
                black_box(word.fetch_or(black_box(1), Ordering::Acquire));
                black_box(word.fetch_and(!black_box(1), Ordering::Release));
            }
        })
    };
    let set = |threads, policy| {
        let set = TagSet::new(TagSetConfig {
            tags: TAGS,
            waiters: threads,
            policy,
            together: true,
        });
        all(threads, &|thread| {
            let mut hint = set.hint(thread as usize);
            for _ in 0..PAIRS {
                if let Some(tag) = set.try_get(&mut hint) {
                    let _nobody_waits = set.put(black_box(tag));
                }
            }
        })
    };
    let plain = |threads| set(threads, Policy::Plain);
    let fair = |threads| set(threads, Policy::Fair);
    let ways: [Way<'_>; 4] = [
        ("bitmap in a Mutex", &bitmap),
        ("two bare exchanges", &bare),
        ("tag set, plain", &plain),
        ("tag set, fair", &fair),
    ];
    let threads = 1..=asked.threads;
    Table {
        experiment: EXPERIMENT,
        columns: columns("pairs", &["bitmap", "bare"]),
        rows: threads
            .flat_map(|threads| rows(&ways, 2, threads, asked.repeats))
            .collect(),
        notes: notes(asked.repeats),
        panels: Vec::new(),
    }
}

fn notes(repeats: u32) -> Vec<String> {
    vec![
        format!(
            "{PAIRS} pairs by each thread, {TAGS} tags, {repeats} repeats; the bare exchanges are \
             on a word of each thread's own; {NOTE}"
        ),
        "to be reached by the tag set: alone at least 0.667 of the bare exchanges (they cost two \
         thirds of it), by two threads at least 1.2 of the bitmap"
            .into(),
    ]
}

/// Of each thread in one repeat: some milliseconds.
const PAIRS: u32 = 200_000;
/// As many as a request queue has by default.
const TAGS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_threads_has_a_row_for_each_way() {
        let table = tags(&Micro {
            threads: 2,
            repeats: 1,
            now_ns: &|| 1,
        });
        assert_eq!(table.rows.len(), 8);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
    }
}
