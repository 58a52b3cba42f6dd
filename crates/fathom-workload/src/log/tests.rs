//! A log passes on every entry, or counts it as dropped.

use fathom_core::{FileIndex, Op, OpKind, Slot};

use super::*;

fn state(start: u64, issue: u64, offset: u64) -> SlotState {
    SlotState {
        due: Tick::new(start),
        start: Tick::new(start),
        issue: Tick::new(issue),
        op: Op {
            slot: Slot::new(0),
            kind: OpKind::Data(Direction::Read),
            priority: 0,
            file: FileIndex::new(0),
            length: 1024,
            buffer_offset: 3072,
            offset,
            sequence: 0,
        },
    }
}

fn config() -> LogConfig {
    LogConfig {
        used: PerDirection::new(true, false, false),
        ops: true,
        lines: 3,
        offsets: true,
        ..LogConfig::default()
    }
}

fn taken(channel: &LogChannel) -> (Vec<LogItem>, Option<Dropped>) {
    let (mut items, mut end) = (Vec::new(), None);
    while let Some(batch) = channel.take() {
        items.extend(batch.items());
        end = end.or(batch.end);
        channel.give_back(batch);
    }
    (items, end)
}

fn ops(items: &[LogItem]) -> Vec<LoggedOp> {
    let ops = items.iter().map(|item| match item {
        LogItem::Op(op) => *op,
        other => panic!("{other:?} is no op"),
    });
    ops.collect()
}

#[test]
fn entries_without_a_chunk_are_dropped_and_counted() {
    let channel = Arc::new(LogChannel::new(2, 10, 1));
    let mut log = JobLog::new(config(), Arc::clone(&channel));
    log.begin(Tick::ZERO);
    for number in 1..=1000 {
        let op = state(number, number + 1, 4096 * number);
        log.completed(Direction::Read, &op, Tick::new(number + 5));
    }
    log.finish(Tick::new(2000));
    let (items, end) = taken(&channel);
    let ops = ops(&items);
    // Two entries an op, one for the chunk's time, and room is made for the most that an op takes.
    // The last ones are handed over when memory may be asked for.
    assert_eq!(ops.len(), 2 * 3 + 1);
    assert_eq!(end, Some(Dropped { lines: 3 * 993 }));
    let want = LoggedOp {
        time_ns: 6,
        clat: 4,
        slat: 1,
        lag: 0,
        offset: 1024, // of the whole op, 3072 before the rest's
        length: 4096,
        priority: 0,
        direction: Direction::Read,
        early: false,
    };
    assert_eq!(ops[0], want);
}

#[test]
fn a_writer_that_keeps_up_loses_nothing() {
    let channel = Arc::new(LogChannel::new(2, 10, 1));
    let mut log = JobLog::new(config(), Arc::clone(&channel));
    log.begin(Tick::ZERO);
    let mut seen = 0;
    for number in 1..=1000 {
        log.completed(
            Direction::Read,
            &state(number, number, 4096),
            Tick::new(number),
        );
        seen += taken(&channel).0.len();
    }
    log.finish(Tick::new(2000));
    let (rest, end) = taken(&channel);
    assert_eq!(seen + rest.len(), 1000);
    assert_eq!(end, Some(Dropped { lines: 0 }));
}

#[test]
fn a_measurement_that_starts_anew_leaves_the_log_as_it_is() {
    let channel = Arc::new(LogChannel::new(2, 100, 1));
    let windows = vec![(Series::Iops, Nanos::new(10))];
    let config = LogConfig {
        windows,
        ..config()
    };
    let mut log = JobLog::new(config, Arc::clone(&channel));
    log.begin(Tick::new(100));
    for at in [103, 117, 124] {
        log.completed(Direction::Read, &state(at - 2, at - 1, 4096), Tick::new(at));
        if at == 117 {
            log.begin(Tick::new(118));
        }
    }
    log.finish(Tick::new(130));
    let times = taken(&channel).0.into_iter().map(|item| match item {
        LogItem::Op(op) => (op.time_ns, 0),
        LogItem::Window { time_ns, .. } => (time_ns, 1),
        other => panic!("{other:?}"),
    });
    let times: Vec<_> = times.collect();
    assert_eq!(times, [(3, 0), (17, 0), (10, 1), (24, 0), (20, 1), (30, 1)]);
}

#[test]
fn long_latencies_and_early_ops_are_distinguished() {
    let channel = Arc::new(LogChannel::new(2, 10, 1));
    let mut log = JobLog::new(config(), Arc::clone(&channel));
    log.completed(Direction::Read, &state(0, 0, 4096), Tick::new(1));
    log.begin(Tick::new(10));
    log.completed(Direction::Read, &state(5, 6, 4096), Tick::new(20));
    let long = (5 << 32) | 7;
    log.completed(Direction::Read, &state(20, 20, 4096), Tick::new(20 + long));
    log.finish(Tick::new(30 + long));
    let ops = ops(&taken(&channel).0);
    let seen: Vec<_> = ops
        .iter()
        .map(|op| (op.early, op.time_ns, op.clat))
        .collect();
    assert_eq!(seen, [(true, 10, 14), (false, 10 + long, long)]);
}

#[test]
fn long_ops_and_their_priorities_are_kept() {
    let channel = Arc::new(LogChannel::new(2, 100, 1));
    let without_offsets = LogConfig {
        offsets: false,
        ..config()
    };
    let mut log = JobLog::new(without_offsets, Arc::clone(&channel));
    log.begin(Tick::ZERO);
    let cases = [
        (1024, 0),
        (u32::MAX - 3072, 0x2001),
        (1024, 0x2001),
        (1 << 26, 0),
        (1024, 0),
    ];
    for (length, priority) in cases {
        let mut op = state(10, 20, 8192);
        (op.op.length, op.op.priority) = (length, priority);
        log.completed(Direction::Read, &op, Tick::new(30));
    }
    // Five seconds later: more than an entry's time holds.
    log.completed(
        Direction::Read,
        &state(10, 20, 8192),
        Tick::new(5_000_000_000),
    );
    log.finish(Tick::new(6_000_000_000));
    let ops = ops(&taken(&channel).0);
    let seen: Vec<_> = ops[..5]
        .iter()
        .map(|op| (op.length - 3072, op.priority))
        .collect();
    assert_eq!(seen, cases);
    let last = ops[5];
    assert_eq!(
        (last.time_ns, last.clat, last.slat),
        (5_000_000_000, 4_999_999_980, 10)
    );
    assert_eq!((last.length, last.priority, last.offset), (4096, 0, 0));
}

#[test]
fn windows_lie_on_a_grid_and_empty_ones_are_zeros() {
    let entries = windowed(2, &[100, 200, 2_000_000, 7_500_000], 7_500_000);
    assert_eq!(
        lines(&entries, Series::Iops),
        [(2_000_000, 1000), (4_000_000, 500), (6_000_000, 0)],
        "a rate of a part of a window is no line"
    );
    assert_eq!(
        lines(&entries, Series::Clat),
        [
            (2_000_000, 40),
            (4_000_000, 40),
            (6_000_000, 0),
            (7_500_000, 40)
        ]
    );
}

#[test]
fn a_rest_below_a_millisecond_joins_the_previous_window() {
    let entries = windowed(2, &[100, 2_000_300], 2_000_300);
    assert_eq!(lines(&entries, Series::Iops), [(2_000_000, 500)]);
    assert_eq!(lines(&entries, Series::Clat), [(2_000_000, 40)]);
    // The slowest op of all may be the one that ends there: it is part of the window before.
    let maxima = entries.iter().filter_map(|item| match *item {
        LogItem::Window {
            series: Series::Clat,
            max,
            ..
        } => Some(max),
        _ => None,
    });
    assert_eq!(maxima.collect::<Vec<_>>(), [40]);
    let later = windowed(2, &[100, 3_000_300], 3_000_300);
    assert_eq!(
        lines(&later, Series::Clat),
        [(2_000_000, 40), (3_000_300, 40)]
    );
    let short = windowed(2, &[100], 200);
    assert_eq!(lines(&short, Series::Iops), []);
    assert_eq!(lines(&short, Series::Clat), [(200, 40)]);
}

#[test]
fn a_histogram_is_written_when_an_op_completes_past_its_end() {
    let channel = Arc::new(LogChannel::new(2, 100, 1));
    let config = LogConfig {
        ops: false,
        histograms: Some(Nanos::from_millis(1)),
        ..config()
    };
    let mut log = JobLog::new(config, Arc::clone(&channel));
    log.begin(Tick::ZERO);
    for at in [100_u64, 200, 1_000_000, 3_500_000] {
        log.completed(
            Direction::Read,
            &state(at - 50, at - 40, 4096),
            Tick::new(at),
        );
    }
    log.finish(Tick::new(7_000_000));
    let (entries, _) = taken(&channel);
    let ends = entries.iter().filter_map(|item| match *item {
        LogItem::HistogramEnd { time_ns, ops, .. } => Some((time_ns, ops)),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(1_000_000, 2), (2_000_000, 1)]);
}

/// Returns the IOPS and clat windows of ops that complete at these times, each after 40 ns.
fn windowed(every_ms: u64, completions: &[u64], ended: u64) -> Vec<LogItem> {
    let channel = Arc::new(LogChannel::new(2, 100, 1));
    let every = Nanos::from_millis(every_ms);
    let config = LogConfig {
        ops: false,
        windows: vec![(Series::Iops, every), (Series::Clat, every)],
        ..config()
    };
    let mut log = JobLog::new(config, Arc::clone(&channel));
    let begun = 500;
    log.begin(Tick::new(begun));
    for at in completions {
        let op = state(begun + at - 50, begun + at - 40, 4096);
        log.completed(Direction::Read, &op, Tick::new(begun + at));
    }
    log.finish(Tick::new(begun + ended));
    taken(&channel).0
}

/// Returns the end and value of each window of a series.
fn lines(entries: &[LogItem], wanted: Series) -> Vec<(u64, u64)> {
    let own = entries.iter().filter_map(|item| match *item {
        LogItem::Window {
            series,
            time_ns,
            value,
            ..
        } if series == wanted => Some((time_ns, value)),
        _ => None,
    });
    own.collect()
}
