//! Pushing to a list by several threads: lock-free, under two kinds of lock, and crossbeam's queue.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_queue::SegQueue;
use fathom_core::{CompletionList, Slot};

use super::{ColumnNames, Micro, Span, Variant, table};
use crate::table::{Cell, Column, Experiment, Table};
use fathom_report::plot::{Axis, Panel, Point, Scale, Series};

/// The experiment.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "task-list",
    about: "concurrent pushes to one list by several threads",
    origin: "kernel mailing lists: about 20 % more pushes with a lock-free list than with a \
             spin-locked one",
    has_plot: true,
};

/// Runs the benchmark with 1, 2, … threads.
#[must_use]
pub fn task_list(config: &Micro<'_>) -> Table {
    let Micro { now_ns, .. } = *config;
    let all = |threads: u32, add: &(dyn Fn(SlotRange) + Sync)| {
        let span = Span::of(now_ns, threads, |thread| add(SlotRange(thread)));
        span.rate(u64::from(threads) * u64::from(ADDS))
    };
    let spin_lock = |threads| {
        let list = SpinLocked::new(threads * ADDS);
        all(threads, &|slots| slots.each(|slot| list.push(slot)))
    };
    let lock_free = |threads| {
        let (list, _reader) = CompletionList::new(threads * ADDS);
        all(threads, &|slots| {
            slots.each(|slot| {
                let _nobody_sleeps = list.push(Slot::new(slot));
            });
        })
    };
    let mutex = |threads| {
        let list = Mutex::new(Vec::with_capacity((threads * ADDS) as usize));
        let lock = || list.lock().unwrap_or_else(PoisonError::into_inner);
        all(threads, &|slots| slots.each(|slot| lock().push(slot)))
    };
    let crossbeam = |threads| {
        let list = SegQueue::new();
        all(threads, &|slots| slots.each(|slot| list.push(slot)))
    };
    let variants: [Variant<'_>; 4] = [
        ("spin lock", &spin_lock),
        (LOCK_FREE, &lock_free),
        ("std::sync::Mutex", &mutex),
        ("crossbeam SegQueue", &crossbeam),
    ];
    let note = format!(
        "{} million pushes per thread, {} repeats; {}",
        ADDS / 1_000_000,
        config.repeats,
        crate::median::note(config.repeats)
    );
    let columns = ColumnNames {
        rate: "adds",
        counted: "pushes",
        baselines: &["spin_lock"],
    };
    table(EXPERIMENT, &columns, &variants, config, vec![note])
}

/// Runs the benchmark and adds the published ratio.
#[must_use]
pub fn task_list_table(config: &Micro<'_>) -> Table {
    let mut table = task_list(config);
    let published = Column::figure("published_ratio_to_spin_lock", "published");
    table.columns.push(published.in_group("ratio to spin lock"));
    for row in &mut table.rows {
        let several = row
            .first()
            .is_some_and(|threads| *threads != Cell::Count(1));
        let published = match row.get(1) {
            Some(Cell::Text(variant)) if several && variant == "spin lock" => Cell::Ratio(1.0),
            Some(Cell::Text(variant)) if several && variant == LOCK_FREE => Cell::Ratio(PUBLISHED),
            _ => Cell::Missing,
        };
        row.push(published);
    }
    table.panels = panels(&table.rows);
    table
}

/// Draws rates and ratios by number of threads, a line per implementation.
fn panels(rows: &[Vec<Cell>]) -> Vec<Panel> {
    let panel = |up: &str, [median, low, high]: [usize; 3], unit: f64| Panel {
        across: Axis::new("threads", Scale::Linear),
        up: Axis::new(up, Scale::Auto),
        series: variants(rows)
            .into_iter()
            .enumerate()
            .map(|(style, variant)| {
                let number = |row: &[Cell], column: usize| Some(row[column].number()? / unit);
                let of = rows.iter().filter(|row| row[1] == variant);
                let points = of.filter_map(|row| {
                    Some(Point {
                        x: row[0].number()?,
                        y: number(row, median),
                        interval: number(row, low).zip(number(row, high)),
                    })
                });
                Series::measured(variant.text(), style, points)
            })
            .collect(),
    };
    let mut ratio = panel("pushes, as a multiple of the spin lock's", [5, 6, 7], 1.0);
    let of = rows
        .iter()
        .filter(|row| row[1] == Cell::Text(LOCK_FREE.into()));
    let known =
        of.filter_map(|row| Some(Point::new(row[0].number()?, row[PUBLISHED_COLUMN].number())));
    let known = Series::published("lock-free, published", 1, known);
    ratio.series.extend(Some(known).filter(Series::has_values));
    vec![panel("million pushes per second", [2, 3, 4], 1e6), ratio]
}

/// Returns the names of the implementations, in the order of the rows.
fn variants(rows: &[Vec<Cell>]) -> Vec<Cell> {
    let mut names: Vec<Cell> = Vec::new();
    for row in rows {
        if !names.contains(&row[1]) {
            names.push(row[1].clone());
        }
    }
    names
}

/// Range of slots that one thread pushes, by its number.
struct SlotRange(u32);

impl SlotRange {
    #[inline]
    fn each(self, add: impl FnMut(u32)) {
        (self.0 * ADDS..(self.0 + 1) * ADDS).for_each(add);
    }
}

/// The same linked list of slots under a spin lock.
struct SpinLocked {
    held: AtomicBool,
    head: AtomicU32,
    links: Box<[AtomicU32]>,
}

impl SpinLocked {
    fn new(slots: u32) -> Self {
        Self {
            held: AtomicBool::new(false),
            head: AtomicU32::new(u32::MAX),
            links: (0..slots).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    #[inline]
    fn push(&self, slot: u32) {
        // Acquire here pairs with Release below; accesses between them need no ordering.
        while self.held.swap(true, Ordering::Acquire) {
            while self.held.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        let newest = self.head.load(Ordering::Relaxed);
        self.links[slot as usize].store(newest, Ordering::Relaxed);
        self.head.store(slot, Ordering::Relaxed);
        self.held.store(false, Ordering::Release);
    }
}

/// Name of the list of completions among the implementations.
const LOCK_FREE: &str = "lock-free";

/// Pushes per thread and repeat: at least 10 ms, so that all threads run at the same time. With a
/// hundredth of it, one thread is done before the next one is woken.
const ADDS: u32 = 1_000_000;

/// Column of the published ratio, after that of the waits.
const PUBLISHED_COLUMN: usize = 9;

/// About 20 % more pushes; the number of threads was not published.
const PUBLISHED: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::check::check_table;

    #[test]
    fn published_ratios_are_of_several_threads() {
        let table = task_list_table(&Micro {
            threads: 2,
            repeats: 1,
            now_ns: &|| 1,
        });
        let last = |row: usize| table.rows[row].last().cloned();
        assert_eq!(last(1), Some(Cell::Missing));
        assert_eq!(last(5), Some(Cell::Ratio(1.2)));
        assert_eq!(table.rows[5].len(), table.columns.len());
        assert_eq!(table.panels[1].series.len(), 5);
        check_table(&table);
    }
}
