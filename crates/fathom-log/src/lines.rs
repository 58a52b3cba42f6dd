//! From entries to lines: `time, value[, max], direction, bytes[, offset], priority[, issued]`.

use fathom_core::Direction;
use fathom_workload::{Batch, Item, LoggedOp, Series};

use super::format::{Page, Piece};
use super::output::{LogFormat, Output};
use super::row::{CLASS_SHIFT, REAL_TIME, Row, Shape};

/// Which columns a job's lines have, and what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) value: Value,
    pub(crate) offset: bool,
    /// The whole priority, and not only whether it is of the real-time class.
    pub(crate) priority: bool,
    /// The priority (`ioprio`) of ops that have none of their own.
    pub(crate) job_priority: u16,
    pub(crate) issue_time: bool,
    /// Epoch clock at time 0 of the run's clock, ns, if times count from the epoch.
    pub(crate) epoch_ns: Option<u64>,
    /// Buckets of histograms are merged in pairs so often.
    pub(crate) coarseness: u8,
}

impl Columns {
    /// Which columns lines have.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            max: self.value == Value::Both,
            offset: self.offset,
            priority: self.priority,
            issued: self.issue_time,
        }
    }

    /// The second column.
    #[inline]
    const fn shown(&self, line: &Line<'_>) -> u64 {
        match self.value {
            Value::Max => line.max,
            Value::Mean | Value::Both => line.value,
        }
    }

    /// The whole priority of an op.
    const fn priority_of(&self, op: &LoggedOp) -> u16 {
        match op.priority {
            0 => self.job_priority,
            own => own,
        }
    }

    /// Returns the offset added to the times of a batch, ns.
    pub(super) fn epoch(&self, batch: &Batch) -> u64 {
        self.epoch_ns.map_or(0, |epoch| epoch + batch.started.get())
    }
}

/// Values in the lines of an averaging window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Value {
    #[default]
    Mean,
    Max,
    Both,
}

/// Writes the lines of one series; says how many.
pub(super) fn series(batch: &Batch, which: Series, columns: Columns, output: &mut Output) -> u64 {
    // One loop for each series, so that none asks for every line which it is.
    match which {
        Series::Bandwidth => all(batch, which, columns, output, bandwidth),
        Series::Iops => all(batch, which, columns, output, |_| 1),
        Series::Lat => all(batch, which, columns, output, |op| op.clat + op.slat),
        Series::Clat => all(batch, which, columns, output, |op| op.clat),
        Series::Slat => all(batch, which, columns, output, |op| op.slat),
    }
}

/// kB/s of one op. As in fio, one that took no time that the clock could see has no rate: 0.
#[inline]
fn bandwidth(op: &LoggedOp) -> u64 {
    let scaled = u64::from(op.length) * 1_000_000;
    scaled.checked_div(op.clat).unwrap_or(0)
}

#[inline]
fn all(
    batch: &Batch,
    which: Series,
    columns: Columns,
    output: &mut Output,
    value: impl Fn(&LoggedOp) -> u64,
) -> u64 {
    match output.format {
        LogFormat::Text => laid(batch, which, Kept::new(batch, columns), output, value),
        LogFormat::Compressed | LogFormat::Parquet => {
            let how = Records::new(batch, columns, output.format);
            laid(batch, which, how, output, value)
        }
    }
}

/// A line on its way to a page.
struct Line<'a> {
    time_ns: u64,
    value: u64,
    /// The window's maximum.
    max: u64,
    /// The rest.
    op: &'a LoggedOp,
    /// The moment of issue is known.
    is_issued: bool,
}

impl Line<'_> {
    #[inline]
    const fn issued_ns(&self) -> u64 {
        if self.is_issued {
            self.op.time_ns.saturating_sub(self.op.clat)
        } else {
            0
        }
    }
}

/// Writer of lines onto a page.
trait Lay {
    fn lay(&mut self, page: &mut Page, line: &Line<'_>);
}

#[inline]
fn laid(
    batch: &Batch,
    which: Series,
    mut how: impl Lay,
    output: &mut Output,
    value: impl Fn(&LoggedOp) -> u64,
) -> u64 {
    let is_issued = matches!(which, Series::Clat | Series::Slat);
    let mut lines = 0;
    for item in batch.items() {
        if output.page.is_full() {
            output.flush();
        }
        let page = &mut output.page;
        match item {
            Item::Op(op) => {
                let mut time_ns = op.time_ns;
                if which == Series::Slat {
                    if op.early {
                        continue;
                    }
                    time_ns = time_ns.saturating_sub(op.clat);
                }
                let value = value(&op);
                let line = Line {
                    time_ns,
                    value,
                    max: value,
                    op: &op,
                    is_issued,
                };
                how.lay(page, &line);
            }
            Item::Window {
                series,
                direction,
                time_ns,
                value,
                max,
            } if series == which => {
                let line = Line {
                    time_ns,
                    value,
                    max,
                    op: &of_window(direction, time_ns),
                    is_issued: false,
                };
                how.lay(page, &line);
            }
            _ => continue,
        }
        output.lines += 1;
        lines += 1;
    }
    lines
}

/// Returns the op that fills the columns behind the value of a window.
const fn of_window(direction: Direction, time_ns: u64) -> LoggedOp {
    LoggedOp {
        time_ns,
        clat: 0,
        slat: 0,
        offset: 0,
        length: 0,
        priority: 0,
        direction,
        early: false,
    }
}

/// Lines as records: of a compressed log, or one word a column.
struct Records {
    format: LogFormat,
    columns: Columns,
    epoch_ns: u64,
}

impl Records {
    fn new(batch: &Batch, columns: Columns, format: LogFormat) -> Self {
        Self {
            format,
            columns,
            epoch_ns: columns.epoch(batch),
        }
    }

    fn row(&self, line: &Line<'_>) -> Row {
        Row {
            time_ms: self.epoch_ns.saturating_add(line.time_ns) / MILLISECOND,
            value: self.columns.shown(line),
            max: line.max,
            direction: line.op.direction as u32,
            bytes: u64::from(line.op.length),
            offset: line.op.offset,
            priority: u32::from(self.columns.priority_of(line.op)),
            issued_ns: line.issued_ns(),
        }
    }
}

impl Lay for Records {
    fn lay(&mut self, page: &mut Page, line: &Line<'_>) {
        page.record(&self.row(line), self.columns.shape(), self.format);
    }
}

/// Parts of the last line of text, kept for the next.
struct Kept {
    columns: Columns,
    epoch_ns: u64,
    /// The millisecond that `time` shows begins here, ns.
    millisecond_ns: u64,
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
            epoch_ns: columns.epoch(batch),
            millisecond_ns: NO_TIME,
            time: Piece::EMPTY,
            key: None,
            middle: Piece::EMPTY,
            end: Piece::EMPTY,
        }
    }

    /// The first column.
    #[inline]
    fn time(&mut self, page: &mut Page, time_ns: u64) {
        let time_ns = self.epoch_ns.saturating_add(time_ns);
        if time_ns.wrapping_sub(self.millisecond_ns) >= MILLISECOND {
            self.next_millisecond(time_ns);
        }
        page.piece(&self.time);
    }

    #[cold]
    fn next_millisecond(&mut self, time_ns: u64) {
        let millisecond = time_ns / MILLISECOND;
        self.millisecond_ns = millisecond * MILLISECOND;
        self.time = Piece::new(&format!("{millisecond}, "));
    }

    /// Writes the columns behind the value.
    #[inline]
    fn rest(&mut self, page: &mut Page, line: &Line<'_>) {
        let op = line.op;
        let key = Some((op.direction, op.length, op.priority));
        if self.key != key {
            self.key = key;
            self.renew(op);
        }
        page.piece(&self.middle);
        if self.columns.offset {
            page.number(op.offset);
            page.piece(&self.end);
            if self.columns.issue_time {
                page.text(b", ");
                page.number(line.issued_ns());
            }
            page.text(b"\n");
        }
    }

    #[cold]
    fn renew(&mut self, op: &LoggedOp) {
        let raw = self.columns.priority_of(op);
        let priority = if self.columns.priority {
            format!("0x{raw:04x}")
        } else {
            u8::from(u32::from(raw) >> CLASS_SHIFT == REAL_TIME).to_string()
        };
        let front = format!(", {}, {}, ", op.direction.index(), op.length);
        if self.columns.offset {
            self.middle = Piece::new(&front);
            self.end = Piece::new(&format!(", {priority}"));
        } else {
            self.middle = Piece::new(&format!("{front}{priority}\n"));
        }
    }
}

impl Lay for Kept {
    #[inline]
    fn lay(&mut self, page: &mut Page, line: &Line<'_>) {
        self.time(page, line.time_ns);
        page.number(self.columns.shown(line));
        if self.columns.value == Value::Both {
            page.text(b", ");
            page.number(line.max);
        }
        self.rest(page, line);
    }
}

/// ns.
const MILLISECOND: u64 = 1_000_000;

/// A moment that no line is near to.
const NO_TIME: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_that_takes_no_time_has_no_bandwidth() {
        let of = |clat| {
            let op = LoggedOp {
                clat,
                length: 4096,
                ..of_window(Direction::Read, 0)
            };
            bandwidth(&op)
        };
        assert_eq!((of(0), of(1), of(1000)), (0, 4_096_000_000, 4_096_000));
    }
}
