//! Lines from log entries: `time, value[, max], direction, bytes[, offset], priority[, issued]`.

use fathom_core::Direction;
use fathom_workload::{Batch, LogItem, LoggedOp, Series};

use super::format::{Page, Piece};
use super::output::{LogFormat, Output};
use super::record_format::RecordFormat;
use super::row::{CLASS_SHIFT, LogRow, REAL_TIME, Shape};

/// Columns of a job's lines, and the form of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) value: WindowValues,
    pub(crate) offset: bool,
    /// Show the whole priority, not only whether its class is real-time.
    pub(crate) priority: bool,
    /// Priority (`ioprio`) of ops without one of their own.
    pub(crate) job_priority: u16,
    pub(crate) issue_time: bool,
    /// Epoch clock at time 0 of the run's clock, ns, if times count from the epoch.
    pub(crate) epoch_ns: Option<u64>,
    /// Number of times that adjacent histogram buckets are merged (`log_hist_coarseness`).
    pub(crate) coarseness: u8,
}

impl Columns {
    /// Returns the columns that lines have.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            max: self.value == WindowValues::Both,
            offset: self.offset,
            priority: self.priority,
            issued: self.issue_time,
        }
    }

    /// Returns the value of the second column.
    #[inline]
    const fn shown(&self, line: &Line<'_>) -> u64 {
        match self.value {
            WindowValues::Max => line.max,
            WindowValues::Mean | WindowValues::Both => line.value,
        }
    }

    /// Returns the whole priority of an op.
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
pub(crate) enum WindowValues {
    #[default]
    Mean,
    Max,
    Both,
}

/// Writes the lines of one series in a batch, and returns their number.
pub(super) fn series(batch: &Batch, which: Series, columns: Columns, output: &mut Output) -> u64 {
    // One compiled loop per series, so that no line branches on it.
    match which {
        Series::Bandwidth => all(batch, which, columns, output, bandwidth),
        Series::Iops => all(batch, which, columns, output, |_| 1),
        Series::Lat => all(batch, which, columns, output, |op| op.clat + op.slat),
        Series::Clat => all(batch, which, columns, output, |op| op.clat),
        Series::Slat => all(batch, which, columns, output, |op| op.slat),
        Series::Resp => all(batch, which, columns, output, |op| {
            op.clat + op.slat + op.lag
        }),
    }
}

/// Returns the bandwidth of one op, kB/s; 0, as in fio, for an op faster than the clock's
/// resolution.
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
        LogFormat::Text => write_lines(batch, which, TextLines::new(batch, columns), output, value),
        LogFormat::Records(format) => {
            let writer = RecordLines::new(batch, columns, format);
            write_lines(batch, which, writer, output, value)
        }
    }
}

/// Values of a line to be written to a page.
struct Line<'a> {
    time_ns: u64,
    value: u64,
    /// Maximum of the window.
    max: u64,
    /// Source of the other columns.
    op: &'a LoggedOp,
    /// The time of issue is known.
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

/// Writer of lines to a page, in the format of the log.
trait LineWriter {
    fn write_line(&mut self, page: &mut Page, line: &Line<'_>);
}

#[inline]
fn write_lines(
    batch: &Batch,
    which: Series,
    mut writer: impl LineWriter,
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
            LogItem::Op(op) => {
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
                writer.write_line(page, &line);
            }
            LogItem::Window {
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
                writer.write_line(page, &line);
            }
            _ => continue,
        }
        output.lines += 1;
        lines += 1;
    }
    lines
}

/// Returns an op with the values of a window's remaining columns.
const fn of_window(direction: Direction, time_ns: u64) -> LoggedOp {
    LoggedOp {
        time_ns,
        clat: 0,
        slat: 0,
        lag: 0,
        offset: 0,
        length: 0,
        priority: 0,
        direction,
        early: false,
    }
}

/// Lines as records of a format.
struct RecordLines {
    format: &'static RecordFormat,
    columns: Columns,
    epoch_ns: u64,
}

impl RecordLines {
    fn new(batch: &Batch, columns: Columns, format: &'static RecordFormat) -> Self {
        Self {
            format,
            columns,
            epoch_ns: columns.epoch(batch),
        }
    }

    fn row(&self, line: &Line<'_>) -> LogRow {
        LogRow {
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

impl LineWriter for RecordLines {
    fn write_line(&mut self, page: &mut Page, line: &Line<'_>) {
        (self.format.encode)(&self.row(line), self.columns.shape(), page);
    }
}

/// Lines as text. Caches the parts of the last line that the next one usually repeats.
struct TextLines {
    columns: Columns,
    epoch_ns: u64,
    /// Start of the millisecond that `time` shows, ns.
    millisecond_ns: u64,
    time: Piece,
    key: Option<(Direction, u32, u16)>,
    /// `, direction, bytes`, and the priority unless an offset precedes it.
    middle: Piece,
    /// `, priority`, after an offset.
    end: Piece,
}

impl TextLines {
    fn new(batch: &Batch, columns: Columns) -> Self {
        Self {
            columns,
            epoch_ns: columns.epoch(batch),
            millisecond_ns: TIME_UNSET,
            time: Piece::EMPTY,
            key: None,
            middle: Piece::EMPTY,
            end: Piece::EMPTY,
        }
    }

    /// Writes the first column.
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

    /// Writes the columns after the value.
    #[inline]
    fn rest(&mut self, page: &mut Page, line: &Line<'_>) {
        let op = line.op;
        let key = Some((op.direction, op.length, op.priority));
        if self.key != key {
            self.key = key;
            self.refresh_parts(op);
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
    fn refresh_parts(&mut self, op: &LoggedOp) {
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

impl LineWriter for TextLines {
    #[inline]
    fn write_line(&mut self, page: &mut Page, line: &Line<'_>) {
        self.time(page, line.time_ns);
        page.number(self.columns.shown(line));
        if self.columns.value == WindowValues::Both {
            page.text(b", ");
            page.number(line.max);
        }
        self.rest(page, line);
    }
}

/// Nanoseconds per millisecond, the unit of the first column.
const MILLISECOND: u64 = 1_000_000;

/// Initial `millisecond_ns`, far from every line's time.
const TIME_UNSET: u64 = 1 << 63;

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
