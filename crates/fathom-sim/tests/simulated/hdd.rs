//! The hard disk: when each command ends, worked out by hand.

use fathom_core::{BlockDevice, Command, Direction, Nanos, OpKind, SyncKind, Tick};
use fathom_sim::{Hdd, HddConfig, PlatterConfig, WriteCache, Zone};

/// Returns a disk with revolutions of 8 ms, tracks of 1 MB, and seeks of 1 ms over any distance.
fn disk(reorder_window: u32, write_cache: bool) -> Hdd {
    Hdd::new(HddConfig {
        platter: PlatterConfig {
            capacity: 1 << 40,
            rpm: 7500,
            zones: vec![Zone {
                from: 0,
                bytes_per_second: 125_000_000,
            }],
            settle: Nanos::from_millis(1),
            seek_root: Nanos::ZERO,
            seek_linear: Nanos::ZERO,
        },
        overhead: Nanos::ZERO,
        reorder_window,
        reports_together: 1,
        write_cache: write_cache.then_some(WriteCache {
            bytes: 250_000,
            writes: 64,
            bytes_per_second: 1_000_000_000,
        }),
    })
}

const WRITE: OpKind = OpKind::Data(Direction::Write);
const READ: OpKind = OpKind::Data(Direction::Read);

/// Starts commands of 125 kB, an eighth of a track, at time 0, and checks the order of their tags
/// and their completion times, µs.
#[track_caller]
fn check(mut disk: Hdd, commands: &[(OpKind, u64)], want: &[(u32, u64)]) {
    for (tag, &(kind, eighth)) in (0..).zip(commands) {
        let length = if matches!(kind, OpKind::Sync(_)) {
            0
        } else {
            125_000
        };
        let command = Command {
            tag,
            kind,
            offset: eighth * 125_000,
            length,
        };
        disk.start(&command, &mut None, Tick::ZERO);
    }
    let mut seen = Vec::new();
    while let Some(next) = disk.next() {
        while let Some(finished) = disk.completed(next) {
            assert_eq!(finished.at, next);
            seen.push((finished.tag, finished.at.get() / 1000));
        }
    }
    assert_eq!(seen, want);
}

#[test]
fn a_seek_is_followed_by_rotational_delay() {
    check(disk(1, false), &[(WRITE, 4)], &[(0, 5000)]);
    check(disk(1, false), &[(WRITE, 1)], &[(0, 2000)]);
    // The arm arrives when the place has just passed.
    check(disk(1, false), &[(WRITE, 8)], &[(0, 9000)]);
}

#[test]
fn a_contiguous_command_needs_no_seek() {
    check(
        disk(1, false),
        &[(WRITE, 4), (WRITE, 5)],
        &[(0, 5000), (1, 6000)],
    );
    let others = [(WRITE, 4), (WRITE, 20), (WRITE, 5)];
    check(
        disk(1, false),
        &others,
        &[(0, 5000), (2, 6000), (1, 13_000)],
    );
}

#[test]
fn the_first_reachable_command_of_the_window_is_taken() {
    let commands = [(WRITE, 4), (WRITE, 104), (WRITE, 206), (WRITE, 307)];
    let in_order = [(0, 5000), (1, 9000), (2, 15_000), (3, 20_000)];
    check(disk(1, false), &commands, &in_order);
    let nearest = [(0, 5000), (2, 7000), (1, 9000), (3, 12_000)];
    check(disk(2, false), &commands, &nearest);
}

#[test]
fn cached_writes_complete_at_once_and_syncs_on_the_platter() {
    let sync = OpKind::Sync(SyncKind::Full);
    // What moves nothing is answered in 1 µs.
    check(
        disk(1, true),
        &[(WRITE, 4), (sync, 0)],
        &[(0, 125), (1, 5001)],
    );
    // The cache has room for two.
    let writes = [(WRITE, 4), (WRITE, 5), (WRITE, 6)];
    check(disk(1, true), &writes, &[(0, 125), (1, 250), (2, 5125)]);
}

#[test]
fn contiguous_reads_are_served_by_read_ahead() {
    let mut disk = disk(1, false);
    let mut read = |offset, now, want| {
        let command = Command {
            tag: 0,
            kind: READ,
            offset,
            length: 125_000,
        };
        disk.start(&command, &mut None, Tick::new(now));
        let end = disk.next().unwrap();
        assert!(disk.completed(end).is_some());
        assert_eq!(end.get(), want);
    };
    read(500_000, 0, 5_000_000);
    read(625_000, 5_100_000, 6_000_000);
    read(750_000, 9_000_000, 9_000_001);
}

#[test]
fn commands_beyond_the_end_fail() {
    let mut disk = disk(1, false);
    let command = Command {
        tag: 1,
        kind: READ,
        offset: 1 << 40,
        length: 512,
    };
    disk.start(&command, &mut None, Tick::ZERO);
    let end = disk.next().unwrap();
    assert_eq!(end, Tick::new(1000));
    assert_eq!(disk.completed(end).map(|it| it.result), Some(-5));
}
