//! Engines as block devices, in real time: data through stacked layers, and what wakes a driver.
//! Times have lower bounds only: a busy machine may take as long as it likes.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_block::{Delay, DelayConfig, DelayTime, Faults, Faulty, split};
use fathom_core::{
    BlockDevice, Command, CommandData, DataBuffer, Direction, Errno, Finished, Nanos, OpKind,
    PerDirection, Storage, SyncKind, Tick, Work,
};
use fathom_engine::{EngineConfig, EngineDevice, EngineFile, Registry, built_in};
use fathom_sys::clock::Clock;
use fathom_sys::files::wait_readable;

const BLOCK: u32 = 4096;
const BLOCKS: u64 = 64;
const READ: OpKind = OpKind::Data(Direction::Read);
const WRITE: OpKind = OpKind::Data(Direction::Write);
const SYNC: OpKind = OpKind::Sync(SyncKind::Full);

/// File that is gone at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("device-{}-{number}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let file = fs::File::create(&path).unwrap();
        file.set_len(BLOCKS * u64::from(BLOCK)).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _already_gone = fs::remove_file(&self.0);
    }
}

/// A driver with as many buffers as the device takes commands.
struct Driver<D> {
    device: D,
    clock: Clock,
    /// By tag: the command's buffer while the device does not have it.
    buffers: Vec<CommandData>,
    in_flight: usize,
}

impl<D: BlockDevice> Driver<D> {
    fn new(device: D, clock: Clock) -> Self {
        let tags = device.geometry().in_flight_max;
        let buffer = |_| Some(Box::new(DataBuffer::new(BLOCK)));
        Self {
            device,
            clock,
            buffers: (0..tags).map(buffer).collect(),
            in_flight: 0,
        }
    }

    fn tags(&self) -> u32 {
        u32::try_from(self.buffers.len()).unwrap()
    }

    fn fill(&mut self, tag: u32, byte: u8) {
        let buffer = self.buffers[tag as usize].as_mut().unwrap();
        buffer.bytes_mut().fill(byte);
    }

    #[track_caller]
    fn check(&self, tag: u32, byte: u8) {
        let buffer = self.buffers[tag as usize].as_ref().unwrap();
        assert!(buffer.bytes().iter().all(|it| *it == byte), "tag {tag}");
    }

    /// Starts a command on a block; returns its start time.
    fn start(&mut self, tag: u32, kind: OpKind, block: u64) -> Tick {
        let is_data = matches!(kind, OpKind::Data(_));
        let command = Command {
            tag,
            kind,
            offset: if is_data { block * u64::from(BLOCK) } else { 0 },
            length: if is_data { BLOCK } else { 0 },
        };
        let geometry = self.device.geometry();
        assert_eq!(geometry.check(&command), Ok(()));
        let now = self.clock.now();
        let data = &mut self.buffers[tag as usize];
        self.device.start(&command, data, now);
        self.in_flight += 1;
        now
    }

    /// Waits for the next completion as a target's thread does.
    fn wait(&mut self) -> Finished {
        let give_up = self.clock.now() + Nanos::from_secs(60);
        loop {
            let now = self.clock.now();
            if let Some(mut finished) = self.device.completed(now) {
                assert!(finished.at <= now, "in the future");
                self.in_flight -= 1;
                if let Some(data) = finished.data.take() {
                    let place = &mut self.buffers[finished.tag as usize];
                    assert!(place.replace(data).is_none(), "two buffers");
                }
                assert!(self.buffers[finished.tag as usize].is_some(), "buffer lost");
                return finished;
            }
            assert!(now < give_up, "{:?} hangs", self.device);
            self.sleep(now);
        }
    }

    /// Sleeps until the device names a time, or a descriptor is readable.
    fn sleep(&self, now: Tick) {
        let span = self.device.next().map(|next| next - now);
        let mut waited = false;
        self.device.descriptors(&mut |descriptor| {
            // Rounded down to milliseconds, so that it is never slept too long.
            let at_most = span.unwrap_or(Nanos::from_secs(60));
            let is_ready = wait_readable(descriptor, at_most).unwrap();
            let is_late = self.clock.now() - now > Nanos::from_secs(50);
            assert!(is_ready || span.is_some() || !is_late, "a lost wake-up");
            waited = true;
        });
        assert!(
            waited || span.is_some(),
            "nothing would wake {:?}",
            self.device
        );
    }

    #[track_caller]
    fn run(&mut self, tag: u32, kind: OpKind, block: u64) -> Finished {
        self.start(tag, kind, block);
        let finished = self.wait();
        assert_eq!(finished.tag, tag);
        finished
    }

    /// Writes all blocks with all tags at once, and reads them back.
    fn write_and_read_back(&mut self, blocks: u64, first: u8) {
        for (kind, offset) in [(WRITE, 0), (READ, 0)] {
            let mut next = offset;
            let mut free: Vec<u32> = (0..self.tags()).collect();
            let mut block_of = vec![0; free.len()];
            while next < blocks || self.in_flight > 0 {
                while let Some(tag) = free.pop_if(|_| next < blocks) {
                    let value = first.wrapping_add(next.to_le_bytes()[0]);
                    self.fill(tag, if kind == WRITE { value } else { 0 });
                    block_of[tag as usize] = next;
                    self.start(tag, kind, next);
                    next += 1;
                }
                let finished = self.wait();
                assert_eq!(finished.moved(), Ok(BLOCK));
                let block = block_of[finished.tag as usize];
                let value = first.wrapping_add(block.to_le_bytes()[0]);
                self.check(finished.tag, value);
                free.push(finished.tag);
            }
            assert_eq!(self.run(0, SYNC, 0).moved(), Ok(0));
        }
    }
}

/// Opens an engine on a file; says why not where the kernel lacks it.
fn open(name: &str, file: &Scratch, write: bool, clock: Clock) -> Option<EngineDevice> {
    let config = EngineConfig {
        depth: 8,
        buffer_bytes: BLOCK,
        files: vec![EngineFile {
            path: file.0.to_str().unwrap().into(),
            read: true,
            write,
            bytes: BLOCKS * u64::from(BLOCK),
            random: true,
            ..EngineFile::default()
        }],
        ..EngineConfig::new(built_in(name), clock)
    };
    match EngineDevice::open(config, BLOCKS * u64::from(BLOCK), 512) {
        Ok(device) => Some(device),
        Err(error) => {
            let may_lack = ["io_uring", "libaio"].contains(&name);
            assert!(may_lack, "{name}: {error}");
            println!("skipped: {name}: {error} ({})", error.hint);
            None
        }
    }
}

/// Delay of a few milliseconds by direction.
fn delay() -> DelayConfig {
    let time = |ms| DelayTime::Fixed(Nanos::from_millis(ms));
    DelayConfig {
        times: PerDirection::new(time(3), time(5), time(0)),
        seed: 1,
    }
}

#[test]
fn data_go_through_every_engine() {
    let clock = Clock::monotonic();
    let registry = Registry::built_in();
    // Work on the size, the blocks or the name of a file, or on none, makes no device, nor does a
    // peer; devices and storage elsewhere have a conformance test of their own.
    let of_data = registry
        .infos()
        .iter()
        .filter(|info| info.work == Work::Data && info.performs_io())
        .filter(|info| matches!(info.storage, Storage::None | Storage::LocalFiles));
    for info in of_data {
        let file = Scratch::new();
        let Some(device) = open(info.name, &file, true, clock) else {
            continue;
        };
        let geometry = device.geometry();
        let mut driver = Driver::new(device, clock);
        if geometry.moves_data {
            driver.write_and_read_back(BLOCKS, 3);
            let bytes = fs::read(&file.0).unwrap();
            let want = (0..64_u8).flat_map(|block| [block + 3; BLOCK as usize]);
            assert!(bytes.into_iter().eq(want), "{}", info.name);
        } else {
            // The buffer stays as it is: what to return is the driver's choice.
            driver.fill(0, 7);
            assert_eq!(driver.run(0, READ, 5).moved(), Ok(BLOCK), "{}", info.name);
            driver.check(0, 7);
        }
    }
}

#[test]
fn a_delay_over_a_real_file_adds_its_time_and_keeps_data() {
    let clock = Clock::monotonic();
    for name in ["io_uring", "psync", "null"] {
        let file = Scratch::new();
        let Some(device) = open(name, &file, true, clock) else {
            continue;
        };
        let moves_data = device.geometry().moves_data;
        let mut driver = Driver::new(Delay::new(device, delay()), clock);
        if moves_data {
            driver.write_and_read_back(16, 9);
        }
        for (kind, ms) in [(READ, 3), (WRITE, 5), (SYNC, 5)] {
            let started = driver.start(0, kind, 1);
            let finished = driver.wait();
            let took = finished.at - started;
            assert!(took >= Nanos::from_millis(ms), "{name} {kind:?}: {took}");
            assert!(
                clock.now() - started >= Nanos::from_millis(ms),
                "{name}: told too early"
            );
        }
    }
}

#[test]
fn faults_over_a_real_file_hit_their_range_alone() {
    let clock = Clock::monotonic();
    for name in ["io_uring", "psync"] {
        let file = Scratch::new();
        let Some(device) = open(name, &file, true, clock) else {
            continue;
        };
        let faults = Faults {
            errors_ppm: PerDirection::all(1_000_000),
            errno: 61,
            range: Some(32 * u64::from(BLOCK)..48 * u64::from(BLOCK)),
            ..Faults::default()
        };
        // Faults below, a delay on top: the error comes late, with its buffer.
        let device = Delay::new(Faulty::new(device, faults), delay());
        let mut driver = Driver::new(device, clock);
        driver.write_and_read_back(32, 1);
        for kind in [READ, WRITE] {
            let started = driver.start(0, kind, 40);
            let finished = driver.wait();
            assert_eq!(finished.moved(), Err(Errno::ENODATA), "{name}");
            assert!(finished.at - started >= Nanos::from_millis(3), "{name}");
        }
        driver.fill(0, 0);
        assert_eq!(driver.run(0, READ, 31).moved(), Ok(BLOCK));
        driver.check(0, 32);
    }
}

#[test]
fn parts_of_a_real_file_share_its_engine() {
    let clock = Clock::monotonic();
    let file = Scratch::new();
    let Some(device) = open("io_uring", &file, true, clock) else {
        return;
    };
    let half = BLOCKS / 2 * u64::from(BLOCK);
    let parts = split(device, &[0..half, half..2 * half]);
    let mut drivers: Vec<_> = parts
        .into_iter()
        .map(|part| Driver::new(part, clock))
        .collect();
    assert_eq!(drivers[0].tags(), 4);
    for (driver, byte) in drivers.iter_mut().zip([1, 2]) {
        driver.fill(0, byte);
        driver.start(0, WRITE, 0);
    }
    for driver in &mut drivers {
        assert_eq!(driver.wait().moved(), Ok(BLOCK));
    }
    for (driver, byte) in drivers.iter_mut().zip([1, 2]) {
        driver.fill(1, 0);
        driver.run(1, READ, 0);
        driver.check(1, byte);
    }
}

#[test]
fn what_must_be_alone_waits_for_the_others() {
    let clock = Clock::monotonic();
    let file = Scratch::new();
    let Some(device) = open("io_uring", &file, true, clock) else {
        return;
    };
    let mut driver = Driver::new(device, clock);
    // A trim in the middle of reads and writes, which this engine takes alone.
    for (tag, kind) in (0..).zip([WRITE, READ, OpKind::Data(Direction::Trim), WRITE, SYNC]) {
        driver.start(tag, kind, u64::from(tag));
    }
    let mut tags: Vec<u32> = (0..5).map(|_| driver.wait().tag).collect();
    let trim = tags.iter().position(|tag| *tag == 2).unwrap();
    assert_eq!(trim, 2, "before: 0 and 1; after: 3 and 4; {tags:?}");
    tags.sort_unstable();
    assert_eq!(tags, [0, 1, 2, 3, 4]);
}

#[test]
fn a_file_that_is_only_read_is_a_read_only_device() {
    let clock = Clock::monotonic();
    let file = Scratch::new();
    let device = open("psync", &file, false, clock).unwrap();
    let geometry = device.geometry();
    assert!(
        geometry.read_only && geometry.in_flight_max == 1,
        "{geometry:?}"
    );
    let mut driver = Driver::new(device, clock);
    assert_eq!(driver.run(0, READ, 1).moved(), Ok(BLOCK));
}
