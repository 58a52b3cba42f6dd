//! Reduction of logs to what a page shows, in memory that does not depend on their length.

use fathom_core::Direction;
use fathom_stats::Histogram;

use super::columns::TimeColumns;
use super::counted::LogHistogram;
use super::kind::{KindSource, LogKind};
use super::oddities::TimeOrder;
use super::offsets::Offsets;
use super::windows::{Distribution, Envelope};

/// Logs read so far, as sums, histograms and columns of time.
///
/// [`begin`](Self::begin) a log, [`add`](Self::add) its lines and [`end`](Self::end) it, then the
/// next; [`log_page`](super::log_page) shows them. A line costs a few increments and no lock; what
/// it allocates depends on the range of values and times, not on their number: at most some 100 KiB
/// for each direction of a log, 1 MiB for each direction of a kind of logs, and 32 KiB for each
/// priority.
#[derive(Debug, Default)]
pub struct LogReduction {
    pub(super) logs: Vec<Log>,
    /// By kind, in the order of [`LogKind::ALL`].
    pub(super) kinds: [KindOfLogs; LogKind::ALL.len()],
}

/// Properties of a log, known before its lines.
#[derive(Clone, Debug)]
pub struct LogDescription {
    /// Name of the file.
    pub name: String,
    /// Quantity.
    pub kind: LogKind,
    /// Source of the knowledge of the kind.
    pub kind_source: KindSource,
    /// Format of the file, for readers: `text`.
    pub format: &'static str,
    /// The lines have offsets.
    pub has_offsets: bool,
    /// The lines have whole priorities, not only the real-time class.
    pub has_priorities: bool,
    /// The lines have the maximum of their window.
    pub has_max: bool,
}

impl LogDescription {
    /// Returns the description of a histogram log, on whose page each op counts as a line. Its kind
    /// is clat unless the caller or the name says otherwise: fio writes histograms of clat alone.
    #[must_use]
    pub fn of_histograms(name: String, given: Option<LogKind>) -> Self {
        let (kind, kind_source) = LogKind::found(given, &name, Some(LogKind::Clat.word()));
        Self {
            name,
            kind,
            kind_source,
            format: "histograms",
            has_offsets: false,
            has_priorities: false,
            has_max: false,
        }
    }
}

/// Line of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSample {
    /// Time since the start of the job, or since the epoch.
    pub time_ms: u64,
    /// Value in the unit of the file.
    pub value: u64,
    /// Largest value of the window; that of the line without such a column.
    pub max: u64,
    /// fio's number of the direction.
    pub direction: u32,
    /// Length of the op; 0 for an average.
    pub bytes: u64,
    /// Offset of the op.
    pub offset: u64,
    /// Priority of the op.
    pub priority: u16,
}

/// Log read so far.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) description: LogDescription,
    pub(super) lines: u64,
    /// Lines of a direction that there is not.
    pub(super) unknown: u64,
    /// Smallest and largest time.
    pub(super) span_ms: Option<(u64, u64)>,
    pub(super) order: TimeOrder,
    pub(super) directions: [Option<Box<OfDirection>>; 3],
    /// Notes of the reader.
    pub(super) notes: Vec<String>,
}

/// Lines of one direction of a log.
#[derive(Debug)]
pub(super) struct OfDirection {
    pub(super) histogram: Histogram,
    pub(super) envelope: Envelope,
    /// Lines of the file: fewer than values, where a line counts ops.
    pub(super) rows: u64,
    /// Lines with a length: single ops.
    pub(super) ops: u64,
    pub(super) bytes: u128,
    pub(super) columns: TimeColumns<Envelope>,
    pub(super) offsets: Option<Offsets>,
}

/// Lines of all logs of a kind.
#[derive(Debug, Default)]
pub(super) struct KindOfLogs {
    pub(super) directions: [Option<Box<Course>>; 3],
}

/// Lines of one direction of all logs of a kind.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) columns: TimeColumns<Distribution>,
    /// Last time of a line.
    pub(super) end_ms: u64,
    pub(super) priorities: Priorities,
}

/// Lines by priority.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    /// In the order in which they were met.
    pub(super) each: Vec<(u16, Histogram, Envelope)>,
    /// Index of that of the last line.
    last: usize,
    /// Lines of further ones.
    pub(super) more: u64,
}

impl LogReduction {
    /// Most logs of a page: with more, memory would no longer be bounded, and no figure would be
    /// readable.
    pub const LOGS_MAX: usize = 256;

    /// Creates a reduction without logs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins the next log.
    pub fn begin(&mut self, description: LogDescription) {
        self.logs.push(Log {
            description,
            lines: 0,
            unknown: 0,
            span_ms: None,
            order: TimeOrder::default(),
            directions: [None, None, None],
            notes: Vec::new(),
        });
    }

    /// Adds a line of the log begun last.
    #[inline]
    pub fn add(&mut self, sample: &LogSample) {
        let Some(log) = self.logs.last_mut() else {
            return;
        };
        let direction = sample.direction as usize;
        log.lines += 1;
        if direction >= Direction::ALL.len() {
            log.unknown += 1;
            return;
        }
        log.pass(sample.time_ms);
        let of_direction = log.of(direction);
        of_direction.rows += 1;
        of_direction.add(sample, 1);
        self.kinds[log.description.kind as usize]
            .of(direction)
            .add(sample, 1);
    }

    /// Adds a line of the histogram log begun last. Each op counts as a line whose value is the
    /// middle of its bucket.
    pub fn add_histogram(&mut self, line: &LogHistogram<'_>) {
        let Some(log) = self.logs.last_mut() else {
            return;
        };
        let direction = line.direction as usize;
        if direction >= Direction::ALL.len() {
            log.lines += 1;
            log.unknown += 1;
            return;
        }
        log.pass(line.time_ms);
        log.of(direction).rows += 1;
        for (sample, times) in line.samples() {
            log.lines += times;
            log.of(direction).add(&sample, times);
            self.kinds[log.description.kind as usize]
                .of(direction)
                .add(&sample, times);
        }
    }

    /// Ends the log begun last. `notes` tell what was odd about its file.
    pub fn end(&mut self, notes: Vec<String>) {
        if let Some(log) = self.logs.last_mut() {
            log.notes = notes;
        }
    }

    /// Returns the number of lines of all logs.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.logs.iter().map(|log| log.lines).sum()
    }
}

impl Log {
    /// Notes the time of a line.
    #[inline]
    fn pass(&mut self, time: u64) {
        self.order.add(time);
        self.span_ms = match self.span_ms {
            Some((first, last)) => Some((first.min(time), last.max(time))),
            None => Some((time, time)),
        };
    }

    #[inline]
    fn of(&mut self, direction: usize) -> &mut OfDirection {
        let has_offsets = self.description.has_offsets;
        self.directions[direction].get_or_insert_with(|| Box::new(OfDirection::new(has_offsets)))
    }

    /// Returns the number of lines of the file that are of a direction.
    pub(super) fn rows(&self) -> u64 {
        self.directions()
            .map(|(_, of_direction)| of_direction.rows)
            .sum()
    }

    /// Returns whether each line is the average of a window: none has the length of an op.
    pub(super) fn is_averaged(&self) -> bool {
        let mut directions = self.directions.iter().flatten();
        self.lines > 0 && directions.all(|of_direction| of_direction.ops == 0)
    }

    /// Returns the directions with lines.
    pub(super) fn directions(&self) -> impl Iterator<Item = (Direction, &OfDirection)> {
        let all = Direction::ALL.into_iter().zip(&self.directions);
        all.filter_map(|(direction, of_direction)| Some((direction, &**of_direction.as_ref()?)))
    }

    pub(super) fn span_length_ms(&self) -> u64 {
        self.span_ms.map_or(0, |(first, last)| last - first)
    }
}

impl KindOfLogs {
    #[inline]
    fn of(&mut self, direction: usize) -> &mut Course {
        self.directions[direction].get_or_insert_with(|| Box::new(Course::new()))
    }
}

impl OfDirection {
    fn new(has_offsets: bool) -> Self {
        Self {
            histogram: Histogram::new(),
            envelope: Envelope::default(),
            rows: 0,
            ops: 0,
            bytes: 0,
            columns: TimeColumns::new(COLUMNS_MAX),
            offsets: has_offsets.then(Offsets::new),
        }
    }

    #[inline]
    fn add(&mut self, sample: &LogSample, times: u64) {
        self.histogram.record_n(sample.value, times);
        self.envelope.add(sample.value, sample.max, times);
        self.columns
            .at(sample.time_ms)
            .add(sample.value, sample.max, times);
        self.bytes += u128::from(sample.bytes) * u128::from(times);
        self.ops += u64::from(sample.bytes > 0) * times;
        if let Some(offsets) = &mut self.offsets
            && sample.bytes > 0
        {
            offsets.add(sample.time_ms, sample.offset, sample.bytes);
        }
    }
}

impl Course {
    fn new() -> Self {
        Self {
            columns: TimeColumns::new(WINDOWS_MAX),
            end_ms: 0,
            priorities: Priorities::default(),
        }
    }

    #[inline]
    fn add(&mut self, sample: &LogSample, times: u64) {
        self.end_ms = self.end_ms.max(sample.time_ms);
        let column = self.columns.at(sample.time_ms);
        column.add(sample.value, sample.max, sample.bytes, times);
        self.priorities.add(sample, times);
    }
}

impl Priorities {
    #[inline]
    fn add(&mut self, sample: &LogSample, times: u64) {
        match self.each.get_mut(self.last) {
            Some((priority, histogram, envelope)) if *priority == sample.priority => {
                histogram.record_n(sample.value, times);
                envelope.add(sample.value, sample.max, times);
            }
            _ => self.other(sample, times),
        }
    }

    /// Adds a line of another priority than that of the line before.
    fn other(&mut self, sample: &LogSample, times: u64) {
        let known = |(priority, ..): &(u16, _, _)| *priority == sample.priority;
        let place = self.each.iter().position(known);
        if place.is_none() && self.each.len() == PRIORITIES_MAX {
            self.more += times;
            return;
        }
        self.last = place.unwrap_or_else(|| {
            let new = (sample.priority, Histogram::new(), Envelope::default());
            self.each.push(new);
            self.each.len() - 1
        });
        let (_, histogram, envelope) = &mut self.each[self.last];
        histogram.record_n(sample.value, times);
        envelope.add(sample.value, sample.max, times);
    }
}

/// Columns of smallest and largest values: at least half of them are in use in a log of more
/// milliseconds, which is about one for each pixel of a figure.
pub(super) const COLUMNS_MAX: usize = 1024;
/// Columns with a distribution: those of a heat map.
const WINDOWS_MAX: usize = 240;
/// Most priorities that are told apart.
const PRIORITIES_MAX: usize = 16;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::log_page) fn description(name: &str, kind: LogKind) -> LogDescription {
        LogDescription {
            name: name.into(),
            kind,
            kind_source: KindSource::Name,
            format: "text",
            has_offsets: false,
            has_priorities: false,
            has_max: false,
        }
    }

    #[test]
    fn one_spike_in_ten_million_lines_stays_visible() {
        let mut reduction = LogReduction::new();
        reduction.begin(description("a_clat.1.log", LogKind::Clat));
        for line in 0..10_000_000_u64 {
            let value = if line == 6_543_210 {
                77_777_777
            } else {
                100_000 + line % 1000
            };
            reduction.add(&LogSample {
                time_ms: line / 100,
                value,
                max: value,
                bytes: 4096,
                ..LogSample::default()
            });
        }
        let (_, read) = reduction.logs[0].directions().next().unwrap();
        assert_eq!(
            (read.envelope.count, read.envelope.most),
            (10_000_000, 77_777_777)
        );
        let columns: Vec<_> = read.columns.iter().collect();
        assert!((512..=1024).contains(&columns.len()), "{}", columns.len());
        let width = read.columns.width_ms();
        for (start, column) in columns {
            let has_spike = (start..start + width).contains(&65_432);
            let most = if has_spike { 77_777_777 } else { 100_999 };
            assert_eq!((column.least, column.most), (100_000, most), "{start}");
        }
        let course = reduction.kinds[LogKind::Clat as usize].directions[0].as_ref();
        let (windows, _) = super::super::windows::windows(&course.unwrap().columns, 99_999);
        let most = windows.windows.iter().map(|window| window.max_ns).max();
        assert_eq!(most, Some(77_777_777));
        assert_eq!(windows.histogram(), read.histogram);
    }

    #[test]
    fn lines_of_no_direction_are_only_counted() {
        let mut reduction = LogReduction::new();
        reduction.begin(description("a_clat.1.log", LogKind::Clat));
        for direction in [2, 3, u32::MAX] {
            reduction.add(&LogSample {
                direction,
                ..LogSample::default()
            });
        }
        let log = &reduction.logs[0];
        assert_eq!((log.lines, log.unknown), (3, 2));
        let directions: Vec<_> = log.directions().map(|(direction, _)| direction).collect();
        assert_eq!(directions, [Direction::Trim]);
    }

    #[test]
    fn priorities_are_told_apart() {
        let mut priorities = Priorities::default();
        for line in 0..100_u16 {
            let sample = LogSample {
                priority: line % 20,
                value: line.into(),
                ..LogSample::default()
            };
            priorities.add(&sample, 1);
        }
        assert_eq!(priorities.each.len(), PRIORITIES_MAX);
        assert_eq!(priorities.more, 20);
        let (priority, histogram, envelope) = &priorities.each[3];
        assert_eq!((*priority, histogram.count(), envelope.count), (3, 5, 5));
    }
}
