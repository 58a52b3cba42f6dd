//! Faults over a device in memory: times worked out by hand, shares counted.

use fathom_block::{Delay, DelayConfig, DelayTime, Faults, Faulty, SharedMemory, Stall};
use fathom_core::{
    BlockDevice, Command, CommandData, DataBuffer, Direction, Errno, Nanos, OpKind, PerDirection,
    Tick,
};

const GIB: u64 = 1 << 30;

/// 10 ns for every command.
fn tens() -> Delay<SharedMemory> {
    let config = DelayConfig {
        times: PerDirection::all(DelayTime::Fixed(Nanos::new(10))),
        seed: 1,
    };
    Delay::new(SharedMemory::new(GIB), config)
}

fn write(tag: u32) -> Command {
    Command {
        tag,
        kind: OpKind::Data(Direction::Write),
        offset: 0,
        length: 4096,
    }
}

#[track_caller]
fn check(now: u64, want: u64) {
    let stall = |at, length| Stall {
        at: Tick::new(at),
        length: Nanos::new(length),
    };
    let faults = Faults {
        stalls: vec![stall(100, 50), stall(1000, 7)],
        ..Faults::default()
    };
    let mut device = Faulty::new(tens(), faults);
    device.start(&write(0), &mut None, Tick::new(now));
    let finished = loop {
        let next = device.next().expect("in flight");
        if let Some(finished) = device.completed(next) {
            break finished;
        }
        assert!(next < Tick::new(want), "nothing at {next:?}");
    };
    assert_eq!(finished.at, Tick::new(want));
}

#[test]
fn a_stall_delays_work_by_its_remaining_time() {
    check(80, 90);
    check(90, 100);
    check(95, 155);
    check(100, 160);
    check(140, 160);
    check(150, 160);
    check(999, 1016);
    check(1006, 1017);
    check(1007, 1017);
}

/// Seed 135 of the plans in virtual time: a trim of no time at all, in a stall.
#[test]
fn zero_latency_commands_wait_for_the_end_of_a_stall() {
    let faults = Faults {
        stalls: vec![Stall {
            at: Tick::new(100),
            length: Nanos::new(50),
        }],
        ..Faults::default()
    };
    let mut device = Faulty::new(SharedMemory::new(GIB), faults);
    device.start(&write(0), &mut None, Tick::new(120));
    assert_eq!(device.next(), Some(Tick::new(150)));
    assert_eq!(device.completed(Tick::new(120)), None);
    assert!(device.completed(Tick::new(150)).is_some());
}

#[test]
fn a_lost_completion_fails_after_the_timeout() {
    let faults = Faults {
        lost_ppm: 1_000_000,
        timeout: Nanos::from_secs(30),
        ..Faults::default()
    };
    let mut device = Faulty::new(tens(), faults);
    device.start(&write(0), &mut None, Tick::new(5));
    assert_eq!(device.completed(Tick::new(15)), None);
    let at = device.next().expect("a time-out");
    assert_eq!(at, Tick::new(30_000_000_005));
    assert_eq!(device.completed(at).expect("it").result, -110);
}

#[test]
fn chances_are_met() {
    let faults = Faults {
        errors_ppm: PerDirection::new(0, 100_000, 0),
        errno: 5,
        short_ppm: 50_000,
        ..Faults::default()
    };
    let mut device = Faulty::new(tens(), faults);
    let mut seen = [0_u32; 3];
    for at in 0..10_000 {
        device.start(&write(0), &mut None, Tick::new(100 * at));
        let end = Tick::new(100 * at + 10);
        match device.completed(end).expect("done").result {
            4096 => seen[0] += 1,
            -5 => seen[1] += 1,
            moved => {
                assert!(moved > 0 && moved % 512 == 0, "{moved}");
                seen[2] += 1;
            }
        }
    }
    assert!(
        seen[1].abs_diff(1000) < 150 && seen[2].abs_diff(450) < 100,
        "{seen:?}"
    );
}
#[test]
fn stalled_commands_complete_later() {
    let faults = Faults {
        stalled_ppm: 1_000_000,
        stalled_for: Nanos::new(70),
        ..Faults::default()
    };
    let mut device = Faulty::new(tens(), faults);
    device.start(&write(0), &mut None, Tick::new(5));
    assert_eq!(device.completed(Tick::new(15)), None);
    let at = device.next().expect("in flight");
    assert_eq!(at, Tick::new(85));
    let finished = device.completed(at).expect("done");
    assert_eq!((finished.at, finished.moved()), (at, Ok(4096)));
}

#[test]
fn faults_of_a_range_leave_the_rest_alone() {
    let faults = Faults {
        errors_ppm: PerDirection::all(1_000_000),
        errno: 61,
        range: Some(8192..16_384),
        ..Faults::default()
    };
    let mut device = Faulty::new(tens(), faults);
    let reads = [
        (0, 4096),
        (4096, 4096),
        (4096, 8192),
        (12_288, 4096),
        (16_384, 512),
    ];
    for ((offset, length), fails) in reads.into_iter().zip([false, false, true, true, false]) {
        let command = Command {
            tag: 0,
            kind: OpKind::Data(Direction::Read),
            offset,
            length,
        };
        device.start(&command, &mut None, Tick::ZERO);
        let moved = device.completed(Tick::new(10)).expect("done").moved();
        let want = if fails {
            Err(Errno::ENODATA)
        } else {
            Ok(length)
        };
        assert_eq!(moved, want, "{offset}+{length}");
    }
}

#[test]
fn a_short_read_moves_the_beginning_of_its_data() {
    let faults = Faults {
        short_ppm: 1_000_000,
        ..Faults::default()
    };
    let mut device = Faulty::new(SharedMemory::new(GIB), faults);
    let mut data: CommandData = Some(Box::new(DataBuffer::new(4096)));
    data.as_mut().expect("ours").bytes_mut().fill(7);
    device.start(&write(0), &mut data, Tick::ZERO);
    let moved = device.completed(Tick::ZERO).expect("done").moved();
    let moved = moved.expect("no error");
    assert!(
        moved > 0 && moved < 4096 && moved.is_multiple_of(512),
        "{moved}"
    );
}
