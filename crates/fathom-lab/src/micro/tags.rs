//! Getting and putting a tag: the tag set, two bare atomic operations, a bitmap in a mutex.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fathom_block::{Policy, TagSet, TagSetConfig};

use super::{ColumnNames, Micro, Span, Variant, table};
use crate::table::{Experiment, Table};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tags",
    about: "getting and putting a tag, without waiting, by several threads",
    origin: "none; two bare atomic operations are the lower bound",
    has_plot: false,
};

/// Runs the benchmark with 1, 2, … threads.
#[must_use]
pub fn tags(config: &Micro<'_>) -> Table {
    let Micro { now_ns, .. } = *config;
    let all = |threads: u32, pair: &(dyn Fn(u32) + Sync)| {
        let span = Span::of(now_ns, threads, pair);
        span.rate(u64::from(threads) * u64::from(PAIRS))
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
                // The orderings that a tag set needs: Acquire to get, Release to put.
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
    let variants: [Variant<'_>; 4] = [
        ("bitmap in a Mutex", &bitmap),
        ("two bare atomics", &bare),
        ("tag set, plain", &plain),
        ("tag set, fair", &fair),
    ];
    table(
        EXPERIMENT,
        &ColumnNames {
            rate: "pairs",
            counted: "pairs",
            baselines: &["bitmap", "bare"],
        },
        &variants,
        config,
        notes(config.repeats),
    )
}

fn notes(repeats: u32) -> Vec<String> {
    vec![
        format!(
            "{PAIRS} pairs per thread, {TAGS} tags, {repeats} repeats; the bare atomics use a word \
             per thread; {}",
            crate::median::note(repeats)
        ),
        "goals of the tag set: with one thread at least 0.667 of the bare atomics, with two \
         threads at least 1.2 of the bitmap"
            .into(),
    ]
}

/// Pairs per thread and repeat: a few milliseconds.
const PAIRS: u32 = 200_000;
/// Default number of tags of a request queue.
const TAGS: u32 = 64;
