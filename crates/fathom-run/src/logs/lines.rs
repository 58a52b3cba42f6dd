//! From entries to lines: `time, value[, max], direction, bytes[, offset], priority[, issued]`.

use fathom_core::Direction;
use fathom_stats::Histogram;
use fathom_workload::{Batch, Entry, EntryKind, Series};

use super::format::{Page, Piece};

/// Which columns a job's lines have, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) value: Value,
    pub(crate) offset: bool,
    /// The whole priority, and not only whether it is of the real-time class.
    pub(crate) priority: bool,
    pub(crate) issue_time: bool,
    /// What the epoch's clock showed when the run's clock showed 0, ns, if times count from there.
    pub(crate) epoch_ns: Option<u64>,
    /// Buckets of histograms are merged in pairs so often.
    pub(crate) coarseness: u8,
}

/// What the lines of a window hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Value {
    #[default]
    Mean,
    Max,
    Both,
}

/// Writes the lines of one series; `flush` takes a page that is full.
pub(super) fn series(
    batch: &Batch,
    which: Series,
    columns: Columns,
    page: &mut Page,
    flush: &mut dyn FnMut(&mut Page),
) {
    // One loop for each series, so that none asks for every line which it is.
    match which {
        Series::Bandwidth => all(batch, which, columns, page, flush, |op| {
            op.entry.length_bytes() * 1_000_000 / op.clat.max(1)
        }),
        Series::Iops => all(batch, which, columns, page, flush, |_| 1),
        Series::Lat => all(batch, which, columns, page, flush, |op| op.clat + op.slat),
        Series::Clat => all(batch, which, columns, page, flush, |op| op.clat),
        Series::Slat => all(batch, which, columns, page, flush, |op| op.slat),
    }
}

/// An op as it was logged.
struct Op<'a> {
    entry: &'a Entry,
    clat: u64,
    slat: u64,
}

trait Bytes {
    fn length_bytes(&self) -> u64;
}

impl Bytes for Entry {
    fn length_bytes(&self) -> u64 {
        u64::from(self.length)
    }
}

#[inline]
fn all(
    batch: &Batch,
    which: Series,
    columns: Columns,
    page: &mut Page,
    flush: &mut dyn FnMut(&mut Page),
    value: impl Fn(&Op<'_>) -> u64,
) {
    let mut kept = Kept::new(batch, columns);
    let mut high = (0, 0);
    let issued = matches!(which, Series::Clat | Series::Slat);
    for entry in &batch.entries {
        if page.is_full() {
            flush(page);
        }
        match entry.kind {
            EntryKind::High => high = (u64::from(entry.clat) << 32, u64::from(entry.slat) << 32),
            EntryKind::Op | EntryKind::EarlyOp => {
                let (clat, slat) = std::mem::take(&mut high);
                let op = Op {
                    entry,
                    clat: clat | u64::from(entry.clat),
                    slat: slat | u64::from(entry.slat),
                };
                let mut at = entry.time_ns;
                if which == Series::Slat {
                    if entry.kind == EntryKind::EarlyOp {
                        continue;
                    }
                    at = at.saturating_sub(op.clat);
                }
                let logged = value(&op);
                kept.time(page, at);
                page.number(logged);
                if columns.value == Value::Both {
                    page.text(b", ");
                    page.number(logged);
                }
                let issue = if issued { at_issue(&op) } else { 0 };
                kept.rest(page, entry, entry.value, issue);
            }
            EntryKind::Window(series) if series == which => {
                let max = u64::from(entry.slat) << 32 | u64::from(entry.clat);
                kept.time(page, entry.time_ns);
                page.number(if columns.value == Value::Max {
                    max
                } else {
                    entry.value
                });
                if columns.value == Value::Both {
                    page.text(b", ");
                    page.number(max);
                }
                kept.rest(page, entry, 0, 0);
            }
            _ => {}
        }
    }
}

fn at_issue(op: &Op<'_>) -> u64 {
    op.entry.time_ns.saturating_sub(op.clat)
}

/// Parts of the last line, kept for the next.
struct Kept {
    columns: Columns,
    epoch_ns: u64,
    millisecond: Option<u64>,
    time: Piece,
    key: Option<(Direction, u32, u16)>,
    /// `, direction, bytes`, and the priority if it follows at once.
    middle: Piece,
    /// `, priority`, behind an offset.
    end: Piece,
}

impl Kept {
    fn new(batch: &Batch, columns: Columns) -> Self {
        Self {
            columns,
            epoch_ns: columns
                .epoch_ns
                .map_or(0, |epoch| epoch + batch.started.get()),
            millisecond: None,
            time: Piece::EMPTY,
            key: None,
            middle: Piece::EMPTY,
            end: Piece::EMPTY,
        }
    }

    /// The first column.
    #[inline]
    fn time(&mut self, page: &mut Page, time_ns: u64) {
        let millisecond = self.epoch_ns.saturating_add(time_ns) / 1_000_000;
        if self.millisecond != Some(millisecond) {
            self.millisecond = Some(millisecond);
            self.time = Piece::new(&format!("{millisecond}, "));
        }
        page.piece(&self.time);
    }

    /// What follows the value.
    #[inline]
    fn rest(&mut self, page: &mut Page, entry: &Entry, offset: u64, issue: u64) {
        let key = Some((entry.direction, entry.length, entry.priority));
        if self.key != key {
            self.key = key;
            self.renew(entry);
        }
        page.piece(&self.middle);
        if self.columns.offset {
            page.number(offset);
            page.piece(&self.end);
            if self.columns.issue_time {
                page.text(b", ");
                page.number(issue);
            }
            page.text(b"\n");
        }
    }

    #[cold]
    fn renew(&mut self, entry: &Entry) {
        let priority = if self.columns.priority {
            format!("0x{:04x}", entry.priority)
        } else {
            u8::from(entry.priority >> CLASS_SHIFT == REAL_TIME).to_string()
        };
        let front = format!(", {}, {}, ", entry.direction.index(), entry.length);
        if self.columns.offset {
            self.middle = Piece::new(&front);
            self.end = Piece::new(&format!(", {priority}"));
        } else {
            self.middle = Piece::new(&format!("{front}{priority}\n"));
        }
    }
}

/// A histogram on its way from its bins to its line.
#[derive(Debug)]
pub(super) struct Gathering {
    counts: Box<[u64; Histogram::FIO_BUCKETS]>,
    sum: u64,
    open: bool,
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
        page: &mut Page,
        flush: &mut dyn FnMut(&mut Page),
    ) {
        let epoch = columns
            .epoch_ns
            .map_or(0, |epoch| epoch + batch.started.get());
        for entry in &batch.entries {
            match entry.kind {
                EntryKind::HistogramBegin => {
                    self.counts.fill(0);
                    (self.sum, self.open) = (0, true);
                }
                EntryKind::HistogramBin => {
                    // fio's last bucket holds whatever is beyond.
                    let bucket = (entry.length as usize).min(Histogram::FIO_BUCKETS - 1);
                    self.counts[bucket] += entry.value;
                    self.sum += entry.value;
                }
                // One that lost bins on its way would be a wrong number: it was counted as dropped.
                EntryKind::HistogramEnd if self.open && self.sum == entry.value => {
                    self.open = false;
                    let time = epoch.saturating_add(entry.time_ns) / 1_000_000;
                    page.number(time);
                    page.text(b", ");
                    page.number(entry.direction.index() as u64);
                    page.text(b", ");
                    page.number(entry.length_bytes());
                    for merged in self.counts.chunks(1 << columns.coarseness) {
                        if page.is_full() {
                            flush(page);
                        }
                        page.text(b", ");
                        page.number(merged.iter().sum());
                    }
                    page.text(b"\n");
                }
                _ => {}
            }
            if page.is_full() {
                flush(page);
            }
        }
    }
}

/// Where the class stands in an I/O priority, and the number of the real-time class: both from
/// ioprio_set(2).
const CLASS_SHIFT: u16 = 13;
const REAL_TIME: u16 = 1;
