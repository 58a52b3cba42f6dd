//! The striped array: every byte goes where a naive count of chunks says, and members work in
//! parallel.

use std::cell::RefCell;
use std::rc::Rc;

use fathom_core::{
    BlockDevice, Command, CommandData, Direction, Finished, Geometry, Nanos, OpKind, Tick,
    Xoshiro256,
};
use fathom_sim::{Array, Hdd, HddConfig, PlatterConfig, Zone};

const WRITE: OpKind = OpKind::Data(Direction::Write);

fn command(tag: u32, offset: u64, length: u32) -> Command {
    Command {
        tag,
        kind: WRITE,
        offset,
        length,
    }
}

/// Range of a member's command, and its result: all bytes, or this errno.
#[derive(Debug)]
struct Noting {
    bytes: Rc<RefCell<Vec<u64>>>,
    fails: bool,
    done: Vec<Finished>,
}

impl BlockDevice for Noting {
    fn geometry(&self) -> Geometry {
        Geometry::UNBOUNDED
    }

    fn start(&mut self, command: &Command, _no_data: &mut CommandData, now: Tick) {
        let end = command.offset + u64::from(command.length);
        self.bytes.borrow_mut().extend(command.offset..end);
        let whole = command.length.cast_signed();
        let result = if self.fails { -5 } else { whole };
        self.done.push(Finished::new(command.tag, now, result));
    }

    fn next(&self) -> Option<Tick> {
        self.done.first().map(|finished| finished.at)
    }

    fn completed(&mut self, _now: Tick) -> Option<Finished> {
        self.done.pop()
    }
}

/// Checks commands at random places of an array against chunk and member counted by hand.
#[track_caller]
fn check_split(members: u64, chunk: u64, seed: u64) {
    let mut random = Xoshiro256::new(seed);
    for _ in 0..50 {
        let (offset, length) = (random.below(20 * chunk), 1 + random.below(9 * chunk));
        let seen: Vec<Rc<RefCell<Vec<u64>>>> = (0..members).map(|_| Rc::default()).collect();
        let device = |bytes: &Rc<RefCell<Vec<u64>>>| Noting {
            bytes: Rc::clone(bytes),
            fails: false,
            done: Vec::new(),
        };
        let mut array = Array::new(seen.iter().map(device).collect(), chunk);
        let length = u32::try_from(length).expect("small");
        array.start(&command(4, offset, length), &mut None, Tick::ZERO);
        let mut want = vec![Vec::new(); seen.len()];
        for byte in offset..offset + u64::from(length) {
            let (stripe, within) = (byte / chunk / members, byte % chunk);
            let member = usize::try_from(byte / chunk % members).expect("few");
            want[member].push(stripe * chunk + within);
        }
        let seen: Vec<Vec<u64>> = seen.iter().map(|bytes| bytes.borrow().clone()).collect();
        assert_eq!(
            seen, want,
            "{members} members, chunks of {chunk}: {offset}+{length}"
        );
        let whole = Finished::new(4, Tick::ZERO, length.cast_signed());
        assert_eq!(array.completed(Tick::ZERO), Some(whole));
        assert_eq!(array.completed(Tick::ZERO), None);
    }
}

#[test]
fn every_byte_goes_to_its_chunk() {
    for (seed, (members, chunk)) in (0..).zip([(1, 7), (2, 8), (3, 5), (8, 16)]) {
        check_split(members, chunk, seed);
    }
}

#[test]
fn an_error_of_one_member_fails_the_command() {
    let device = |fails| Noting {
        bytes: Rc::default(),
        fails,
        done: Vec::new(),
    };
    for fails in [[true, false], [false, true]] {
        let mut array = Array::new(fails.map(device).into(), 8);
        array.start(&command(0, 0, 16), &mut None, Tick::ZERO);
        let finished = array.completed(Tick::ZERO).expect("both parts are done");
        assert_eq!(finished.result, -5, "{fails:?}");
    }
}

/// Returns a disk with revolutions of 10 ms, on which a chunk takes 1 ms.
fn disk() -> Hdd {
    Hdd::new(HddConfig {
        platter: PlatterConfig {
            capacity: 1 << 30,
            rpm: 6000,
            zones: vec![Zone {
                from: 0,
                bytes_per_second: 1000 * CHUNK,
            }],
            settle: Nanos::ZERO,
            seek_root: Nanos::ZERO,
            seek_linear: Nanos::ZERO,
        },
        overhead: Nanos::ZERO,
        reorder_window: 1,
        reports_together: 1,
        write_cache: None,
    })
}

/// Checks the completion time of a write of `chunks` to `members` disks.
#[track_caller]
fn check_parallel(members: usize, chunks: u32, want_ms: u64) {
    let disks = std::iter::repeat_with(disk).take(members).collect();
    let mut array = Array::new(disks, CHUNK);
    let chunk = u32::try_from(CHUNK).expect("small");
    array.start(&command(0, 0, chunks * chunk), &mut None, Tick::ZERO);
    let mut done = None;
    while let Some(now) = array.next() {
        done = array.completed(now).or(done);
    }
    let done = done.expect("it is done");
    assert_eq!(
        done.at,
        Tick::new(want_ms * 1_000_000),
        "{members} disks, {chunks} chunks"
    );
}

#[test]
fn members_work_side_by_side() {
    check_parallel(1, 1, 1);
    check_parallel(1, 8, 8);
    check_parallel(2, 8, 4);
    check_parallel(4, 8, 2);
    check_parallel(8, 8, 1);
    // Of nine chunks one disk has two.
    check_parallel(8, 9, 2);
}

const CHUNK: u64 = 65_536;
