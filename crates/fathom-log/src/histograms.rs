//! Lines of the histogram log: `time, direction, bytes, count, count, …`.

use fathom_stats::Histogram;
use fathom_workload::{Batch, LogItem};

use super::lines::Columns;
use super::output::Output;

/// Histogram being assembled from its bins, which may arrive in several batches.
#[derive(Debug)]
pub(super) struct HistogramAssembly {
    counts: Box<[u64; Histogram::FIO_BUCKETS]>,
    sum: u64,
    open: bool,
}

/// Counts of the histograms of a batch that were written and dropped.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HistogramCounts {
    pub(super) kept: u64,
    /// Histograms with lost bins, which would show wrong counts.
    pub(super) dropped: u64,
}

impl HistogramAssembly {
    pub(super) fn new() -> Self {
        Self {
            counts: Box::new([0; Histogram::FIO_BUCKETS]),
            sum: 0,
            open: false,
        }
    }

    /// Adds the bins of a batch, and writes each histogram that is complete.
    pub(super) fn histograms(
        &mut self,
        batch: &Batch,
        columns: Columns,
        output: &mut Output,
    ) -> HistogramCounts {
        let mut counts_of_batch = HistogramCounts::default();
        let epoch = columns.epoch(batch);
        for item in batch.items() {
            match item {
                LogItem::HistogramBegin => {
                    self.counts.fill(0);
                    (self.sum, self.open) = (0, true);
                }
                LogItem::HistogramBin { bucket, count } => {
                    // As in fio, the last bucket counts all larger values.
                    let bucket = (bucket as usize).min(Histogram::FIO_BUCKETS - 1);
                    self.counts[bucket] += count;
                    self.sum += count;
                }
                LogItem::HistogramEnd {
                    direction,
                    time_ns,
                    ops,
                    length,
                } => {
                    if !self.open || self.sum != ops {
                        counts_of_batch.dropped += 1;
                        continue;
                    }
                    self.open = false;
                    let time = epoch.saturating_add(time_ns) / 1_000_000;
                    let head = [time, direction.index() as u64, u64::from(length)];
                    self.line(&head, columns.coarseness, output);
                    counts_of_batch.kept += 1;
                }
                LogItem::Op(_) | LogItem::Window { .. } => {}
            }
        }
        counts_of_batch
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
