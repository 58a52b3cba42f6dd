//! Layers over a device in memory: every row of the table passes data, geometry and descriptors
//! on, and each layer does what it is for.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};

use fathom_block::{
    Delay, DelayConfig, DelayTime, LAYERS, Parameters, Recorded, SharedMemory, layer, split,
};
use fathom_core::{
    BlockDevice, Command, CommandData, DataBuffer, Direction, Finished, Geometry, Nanos, OpKind,
    PerDirection, SyncKind, Tick,
};

const GIB: u64 = 1 << 30;
const READ: OpKind = OpKind::Data(Direction::Read);
const WRITE: OpKind = OpKind::Data(Direction::Write);

fn command(tag: u32, kind: OpKind, offset: u64, length: u32) -> Command {
    Command {
        tag,
        kind,
        offset,
        length,
    }
}

/// Buffer full of one byte.
fn full(bytes: u32, byte: u8) -> CommandData {
    let mut data = Box::new(DataBuffer::new(bytes));
    data.bytes_mut().fill(byte);
    Some(data)
}

/// Runs a command alone; returns its completion and its data.
fn run(
    device: &mut dyn BlockDevice,
    command: Command,
    mut data: CommandData,
    now: Tick,
) -> (Finished, CommandData) {
    device.start(&command, &mut data, now);
    loop {
        let at = device.next().expect("the command is in flight");
        if let Some(mut finished) = device.completed(at.max(now)) {
            let data = data.or(finished.data.take());
            return (finished, data);
        }
    }
}

/// Parameters with a few values; others have their default, or their smallest value.
#[derive(Default)]
struct Values {
    numbers: Vec<(&'static str, f64)>,
    asked: RefCell<BTreeSet<&'static str>>,
    refused: RefCell<Vec<String>>,
}

impl Values {
    fn new(numbers: &[(&'static str, f64)]) -> Self {
        Self {
            numbers: numbers.into(),
            ..Self::default()
        }
    }

    fn ask(&self, key: &'static str) -> Option<f64> {
        self.asked.borrow_mut().insert(key);
        let mut numbers = self.numbers.iter();
        numbers.find(|(name, _)| *name == key).map(|(_, n)| *n)
    }
}

impl Parameters for Values {
    fn whole(&self, key: &'static str, bounds: RangeInclusive<u64>, default: Option<u64>) -> u64 {
        let number = self.ask(key).map(|number| {
            let text = format!("{number:.0}");
            text.parse().expect("a whole number")
        });
        number.or(default).unwrap_or(*bounds.start())
    }

    fn number(&self, key: &'static str, bounds: RangeInclusive<f64>, default: Option<f64>) -> f64 {
        self.ask(key).or(default).unwrap_or(*bounds.start())
    }

    fn flag(&self, key: &'static str, default: bool) -> bool {
        self.ask(key).map_or(default, |number| number > 0.0)
    }

    fn text(&self, key: &'static str) -> Option<&str> {
        let _none = self.ask(key);
        None
    }

    fn wholes(&self, key: &'static str) -> Option<Vec<u64>> {
        let _none = self.ask(key);
        None
    }

    fn table(&self, key: &'static str, _optional: bool) -> Option<Box<dyn Parameters + '_>> {
        let _none = self.ask(key);
        None
    }

    fn tables(&self, key: &'static str) -> Vec<Box<dyn Parameters + '_>> {
        let _none = self.ask(key);
        Vec::new()
    }

    fn has(&self, key: &str) -> bool {
        self.numbers.iter().any(|(name, _)| *name == key)
    }

    fn refuse(&self, key: &'static str, why: &str, _hint: &str) {
        self.refused.borrow_mut().push(format!("{key}: {why}"));
    }

    fn finish(&self) {}
}

/// Keys that a layer cannot do without; one row for each of the table.
const SAMPLES: [(&str, &[(&str, f64)]); 4] = [
    ("delay", &[("read_us", 5.0)]),
    ("fault", &[("trim_errors_ppm", 1_000_000.0)]),
    ("split", &[("from_gib", 0.25), ("size_gib", 0.5)]),
    ("zoned", &[("zone_mib", 64.0), ("conventional", 1.0)]),
];

/// Device in memory that a descriptor wakes.
#[derive(Debug)]
struct Waking(SharedMemory);

impl BlockDevice for Waking {
    fn geometry(&self) -> Geometry {
        Geometry {
            block_bytes: 512,
            in_flight_max: 9,
            ..self.0.geometry()
        }
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        self.0.start(command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        self.0.next()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        self.0.completed(now)
    }

    fn descriptors(&self, add: &mut dyn FnMut(BorrowedFd<'_>)) {
        add(std::io::stdin().as_fd());
    }
}

#[test]
fn every_layer_of_the_table_is_transparent() {
    assert_eq!(
        SAMPLES.map(|(name, _)| name).to_vec(),
        LAYERS.iter().map(|row| row.name).collect::<Vec<_>>()
    );
    for (name, sample) in SAMPLES {
        let row = layer(name).expect("a row");
        assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{name}");
        let values = Values::new(sample);
        let made = (row.read)(&values, GIB).expect(name);
        assert_eq!(*values.refused.borrow(), [""; 0], "{name}");
        let keys: BTreeSet<&str> = row.keys.iter().copied().collect();
        assert_eq!(*values.asked.borrow(), keys, "{name}: keys of the row");

        let mut device = made.over(Box::new(Waking(SharedMemory::new(GIB))), Tick::new(1000));
        let geometry = Geometry {
            bytes: made.bytes(GIB),
            ..Waking(SharedMemory::new(GIB)).geometry()
        };
        assert_eq!(device.geometry(), geometry, "{name}");
        let mut descriptors = 0;
        device.descriptors(&mut |_| descriptors += 1);
        assert_eq!(descriptors, 1, "{name}");

        let now = Tick::new(2000);
        let write = command(4, WRITE, 8192, 4096);
        let (finished, _) = run(&mut *device, write, full(4096, 3), now);
        assert_eq!((finished.tag, finished.moved()), (4, Ok(4096)), "{name}");
        let read = command(7, READ, 8192, 4096);
        let (finished, data) = run(&mut *device, read, full(4096, 0), now);
        assert_eq!((finished.tag, finished.moved()), (7, Ok(4096)), "{name}");
        assert_eq!(data, full(4096, 3), "{name}");
        let sync = command(7, OpKind::Sync(SyncKind::Full), 0, 0);
        assert_eq!(
            run(&mut *device, sync, None, now).0.moved(),
            Ok(0),
            "{name}"
        );
    }
}

#[test]
fn layers_without_effect_are_refused() {
    for (name, key) in [("delay", "read_us"), ("fault", "read_errors_ppm")] {
        let values = Values::default();
        let _made = (layer(name).expect("a row").read)(&values, GIB);
        let refused = values.refused.borrow();
        assert!(
            refused.len() == 1 && refused[0].starts_with(key),
            "{refused:?}"
        );
    }
    let values = Values::new(&[("from_gib", 0.75), ("size_gib", 0.5)]);
    assert!((layer("split").expect("a row").read)(&values, GIB).is_none());
    assert_eq!(values.refused.borrow().len(), 1);
}

fn fixed(read: u64, write: u64) -> DelayConfig {
    let time = |ns| DelayTime::Fixed(Nanos::new(ns));
    DelayConfig {
        times: PerDirection::new(time(read), time(write), time(0)),
        seed: 1,
    }
}

#[test]
fn a_delay_is_added_to_the_devices_own_time() {
    // A device of 100 ns and 1 µs, and over it a delay of 7 and 70 ns.
    let slow = Delay::new(SharedMemory::new(GIB), fixed(100, 1000));
    let mut device = Delay::new(slow, fixed(7, 70));
    for (kind, at) in [
        (READ, 507),
        (WRITE, 1470),
        (OpKind::Sync(SyncKind::Full), 1470),
    ] {
        let length = if matches!(kind, OpKind::Sync(_)) {
            0
        } else {
            512
        };
        let now = Tick::new(400);
        let (finished, _) = run(&mut device, command(0, kind, 0, length), None, now);
        assert_eq!(finished.at, Tick::new(at), "{kind:?}");
    }
}

#[test]
fn delays_run_side_by_side_and_overtake() {
    let mut device = Delay::new(SharedMemory::new(GIB), fixed(100, 30));
    for tag in 0..4 {
        let kind = if tag % 2 == 0 { READ } else { WRITE };
        let command = command(tag, kind, 0, 512);
        device.start(&command, &mut None, Tick::ZERO);
    }
    // A late call catches up, in order of time, and each with its own time.
    let mut seen = Vec::new();
    while let Some(finished) = device.completed(Tick::new(5000)) {
        seen.push((finished.tag, finished.at.get()));
    }
    assert_eq!(seen, [(1, 30), (3, 30), (0, 100), (2, 100)]);
    assert_eq!(device.next(), None);
}

#[test]
fn drawn_delays_are_those_recorded() {
    let recorded = Recorded::new([(10, 1), (500, 1)]).expect("some");
    let config = DelayConfig {
        times: PerDirection::all(DelayTime::Drawn(recorded)),
        seed: 3,
    };
    let mut device = Delay::new(SharedMemory::new(GIB), config);
    let mut seen = [0; 2];
    for _ in 0..1000 {
        let (finished, _) = run(&mut device, command(0, READ, 0, 512), None, Tick::ZERO);
        match finished.at.get() {
            10 => seen[0] += 1,
            500 => seen[1] += 1,
            other => panic!("{other} ns was not recorded"),
        }
    }
    assert!(seen[0] > 400 && seen[1] > 400, "{seen:?}");
}

#[test]
fn parts_have_their_own_offsets_and_tags() {
    let mut parts = split(SharedMemory::new(GIB), &[0..8192, 8192..GIB]);
    assert_eq!(parts[1].geometry().bytes, GIB - 8192);
    for (part, byte) in parts.iter_mut().zip([1, 2]) {
        let write = command(0, WRITE, 4096, 4096);
        part.start(&write, &mut full(4096, byte), Tick::ZERO);
    }
    // One part collects the completions of both, and each gets its own.
    let tags = |part: &mut dyn BlockDevice| {
        let finished = part.completed(Tick::ZERO).expect("its own");
        assert_eq!(part.completed(Tick::ZERO), None);
        (finished.tag, finished.moved())
    };
    assert_eq!(tags(&mut parts[1]), (0, Ok(4096)));
    assert_eq!(parts[0].next(), Some(Tick::ZERO), "collected, not yet told");
    assert_eq!(tags(&mut parts[0]), (0, Ok(4096)));
    for (part, byte) in parts.iter_mut().zip([1, 2]) {
        let read = command(5, READ, 4096, 4096);
        let (_, data) = run(part, read, full(4096, 9), Tick::ZERO);
        assert_eq!(data, full(4096, byte));
    }
}

#[test]
#[should_panic(expected = "in a part of 8192 bytes")]
fn a_part_guards_its_end() {
    let mut parts = split(SharedMemory::new(GIB), &[0..8192, 8192..GIB]);
    parts[0].start(&command(0, WRITE, 4096, 8192), &mut None, Tick::ZERO);
}
