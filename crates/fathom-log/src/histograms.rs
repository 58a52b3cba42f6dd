//! Lines of the histogram log: `time, direction, bytes, count, count, …`.

use fathom_stats::Histogram;
use fathom_workload::{Batch, Item};

use super::lines::Columns;
use super::output::Output;

/// A histogram on its way from its bins to its line; it may come in several batches.
#[derive(Debug)]
pub(super) struct Gathering {
    counts: Box<[u64; Histogram::FIO_BUCKETS]>,
    sum: u64,
    open: bool,
}

/// Counts of the histograms of a batch that were written and dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gathered {
    pub(super) kept: u64,
    /// Those that lost bins on their way: they would be wrong numbers.
    pub(super) dropped: u64,
}

impl Gathering {
    pub(super) fn new() -> Self {
        Self {
            counts: Box::new([0; Histogram::FIO_BUCKETS]),
            sum: 0,
            open: false,
        }
    }

    /// Takes a batch's histograms; writes each that is whole.
    pub(super) fn histograms(
        &mut self,
        batch: &Batch,
        columns: Columns,
        output: &mut Output,
    ) -> Gathered {
        let mut gathered = Gathered::default();
        let epoch = columns.epoch(batch);
        for item in batch.items() {
            match item {
                Item::HistogramBegin => {
                    self.counts.fill(0);
                    (self.sum, self.open) = (0, true);
                }
                Item::HistogramBin { bucket, count } => {
                    // fio's last bucket holds whatever is beyond.
                    let bucket = (bucket as usize).min(Histogram::FIO_BUCKETS - 1);
                    self.counts[bucket] += count;
                    self.sum += count;
                }
                Item::HistogramEnd {
                    direction,
                    time_ns,
                    ops,
                    length,
                } => {
                    if !self.open || self.sum != ops {
                        gathered.dropped += 1;
                        continue;
                    }
                    self.open = false;
                    let time = epoch.saturating_add(time_ns) / 1_000_000;
                    let head = [time, direction.index() as u64, u64::from(length)];
                    self.line(&head, columns.coarseness, output);
                    gathered.kept += 1;
                }
                Item::Op(_) | Item::Window { .. } => {}
            }
        }
        gathered
    }

    fn line(&self, head: &[u64; 3], coarseness: u8, output: &mut Output) {
        let merged = self.counts.chunks(1 << coarseness);
        let counts = merged.map(|counts| counts.iter().sum::<u64>());
        for (index, value) in head.iter().copied().chain(counts).enumerate() {
            if output.page.is_full() {
                output.flush();
            }
            if index > 0 {
                output.page.text(b", ");
            }
            output.page.number(value);
        }
        output.page.text(b"\n");
        output.lines += 1;
    }
}
