//! The flash drive against closed forms: limits by dies, channels, buffer and garbage collection.

use fathom_core::{BlockDevice, Command, Direction, Nanos, OpKind, SyncKind, Tick, Xoshiro256};
use fathom_sim::{Ssd, SsdConfig};

const READ: OpKind = OpKind::Data(Direction::Read);
const WRITE: OpKind = OpKind::Data(Direction::Write);
const TRIM: OpKind = OpKind::Data(Direction::Trim);

/// Returns a drive of one die with 4 KiB pages that reads in 50 µs and programs in 200 µs;
/// everything else takes negligible time.
fn drive() -> SsdConfig {
    SsdConfig {
        capacity: 64 << 20,
        spare_percent: 25,
        channels: 1,
        dies_per_channel: 1,
        page_bytes: 4096,
        pages_per_block: 64,
        read: Nanos::from_micros(50),
        program: Nanos::from_micros(200),
        erase: Nanos::new(1),
        channel_bytes_per_second: FAST,
        link_bytes_per_second: FAST,
        command: Nanos::ZERO,
        buffer_bytes: 64 << 10,
        buffer_is_safe: false,
        worn: false,
        slow_die: None,
    }
}

/// Drive with a constant number of commands in flight.
struct Loop {
    ssd: Ssd,
    now: Tick,
    free: Vec<u32>,
}

impl Loop {
    fn new(config: SsdConfig, depth: u32) -> Self {
        Self {
            ssd: Ssd::new(config),
            now: Tick::ZERO,
            free: (0..depth).collect(),
        }
    }

    /// Starts a command as soon as the depth permits.
    fn go(&mut self, kind: OpKind, offset: u64, length: u32) {
        while self.free.is_empty() {
            self.step();
        }
        let tag = self.free.pop().expect("one is free");
        let command = Command {
            tag,
            kind,
            offset,
            length,
        };
        self.ssd.start(&command, &mut None, self.now);
    }

    /// Waits until nothing is in flight.
    fn drain(&mut self) {
        while self.ssd.next().is_some() {
            self.step();
        }
    }

    /// Advances to the next event.
    fn step(&mut self) {
        self.now = self.ssd.next().expect("something is in flight");
        while let Some(finished) = self.ssd.completed(self.now) {
            assert!(!self.free.contains(&finished.tag), "{} twice", finished.tag);
            assert!(finished.result >= 0, "{}", finished.result);
            self.free.push(finished.tag);
        }
    }

    /// Returns the IOPS of `count` 4 KiB commands at the offsets that `place` returns.
    fn rate(&mut self, kind: OpKind, count: u32, mut place: impl FnMut(u32) -> u64) -> f64 {
        let begun = self.now;
        for number in 0..count {
            self.go(kind, place(number) * 4096, 4096);
        }
        let seconds = nanos(self.now - begun) / 1e9;
        f64::from(count) / seconds
    }
}

#[expect(clippy::cast_precision_loss, reason = "times of tests are short")]
fn nanos(time: Nanos) -> f64 {
    time.get() as f64
}

#[track_caller]
fn check_close(is: f64, want: f64, within: f64) {
    assert!((is / want - 1.0).abs() <= within, "{is}, not {want}");
}

#[test]
fn dies_read_in_parallel_until_their_channel_saturates() {
    for (channels, dies_per_channel) in [(1, 1), (1, 4), (4, 1), (4, 4), (8, 8)] {
        let config = SsdConfig {
            channels,
            dies_per_channel,
            ..drive()
        };
        let mut drive = Loop::new(config, 4 * channels * dies_per_channel);
        // In order: what was never written lies page by page on one die after the other.
        let rate = drive.rate(READ, 16_000, u64::from);
        let each = 1e6 / 50.0;
        check_close(rate, each * f64::from(channels * dies_per_channel), 0.02);
    }
    // 8 dies could send 160,000 pages a second, their channel 50,000 of 4 KiB.
    let narrow = SsdConfig {
        dies_per_channel: 8,
        channel_bytes_per_second: 50_000 * 4096,
        ..drive()
    };
    let rate = Loop::new(narrow, 32).rate(READ, 16_000, u64::from);
    check_close(rate, 50_000.0, 0.02);
}

#[test]
fn read_latency_is_command_plus_die_plus_channel_plus_link() {
    let config = SsdConfig {
        command: Nanos::from_micros(7),
        channel_bytes_per_second: 4_096_000_000,
        link_bytes_per_second: 2_048_000_000,
        ..drive()
    };
    let mut drive = Loop::new(config, 1);
    drive.go(READ, 0, 4096);
    drive.drain();
    assert_eq!(drive.now, Tick::new(7_000 + 50_000 + 1_000 + 2_000));
}

#[test]
fn writes_slow_to_the_program_rate_once_the_buffer_is_full() {
    let config = SsdConfig {
        dies_per_channel: 4,
        ..drive()
    };
    let mut drive = Loop::new(config, 1);
    let pages = 16; // of the buffer
    drive.rate(WRITE, pages, u64::from);
    assert!(drive.now < Tick::new(1_000), "{:?}", drive.now);
    let rate = drive.rate(WRITE, 8_000, |number| u64::from(pages + number));
    check_close(rate, 4.0 * 1e6 / 200.0, 0.02);
}

#[test]
fn a_sync_waits_for_the_buffer_unless_it_is_power_loss_protected() {
    for (buffer_is_safe, want) in [(false, 8 * 200_000), (true, 0)] {
        let config = SsdConfig {
            buffer_is_safe,
            ..drive()
        };
        let mut drive = Loop::new(config, 1);
        drive.rate(WRITE, 8, u64::from);
        let written = drive.now;
        drive.go(OpKind::Sync(SyncKind::Full), 0, 0);
        while drive.free.is_empty() {
            drive.step();
        }
        let took = (drive.now - written).get();
        assert!(took.abs_diff(want) < 20_000, "{took}, not {want}");
    }
}

#[test]
fn one_slow_die_delays_striped_reads() {
    let config = SsdConfig {
        channels: 4,
        slow_die: Some((2, 10)),
        ..drive()
    };
    let rate = Loop::new(config, 16).rate(READ, 4_000, u64::from);
    // Every fourth read waits for it: four reads in the time of its one.
    check_close(rate, 4.0 * 1e6 / 500.0, 0.05);
}

/// Returns the steady-state write amplification; a moved page costs one program operation.
fn write_amplification(config: SsdConfig, trimmed: bool) -> f64 {
    let units = config.capacity / 4096;
    let dies = config.channels * config.dies_per_channel;
    let program = nanos(config.program);
    let config = SsdConfig {
        read: Nanos::new(1),
        ..config
    };
    let mut drive = Loop::new(config, 32);
    let used = if trimmed { units / 2 } else { units };
    if trimmed {
        drive.rate(TRIM, u32::try_from(units / 2).expect("few"), |number| {
            used + u64::from(number)
        });
    }
    let mut random = Xoshiro256::new(5);
    let count = u32::try_from(units * 6).expect("few");
    drive.rate(WRITE, count, |_| random.below(used));
    let each = 1e9 / drive.rate(WRITE, count, |_| random.below(used));
    each * f64::from(dies) / program
}

/// Xiang and Kurkoski, "An Improved Analytical Expression for Write Amplification in NAND Flash",
/// 2012, with α = flash ÷ data: a block is cleaned when `u` of it is valid, where
/// `(u − 1) / ln u = 1/α`, and each page that is won has cost `1 / (1 − u)`. Greedy cleaning,
/// uniform random writes.
fn published(alpha: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..60 {
        let u = f64::midpoint(low, high);
        if (u - 1.0) / libm::log(u) < 1.0 / alpha {
            low = u;
        } else {
            high = u;
        }
    }
    1.0 / (1.0 - low)
}

#[test]
fn the_published_formula_gives_its_published_value() {
    check_close(published(1.3), 2.36, 0.005);
}

#[test]
fn a_worn_drive_has_the_published_write_amplification() {
    for (spare_percent, worn) in [(7, true), (25, true), (25, false), (50, true)] {
        let config = SsdConfig {
            spare_percent,
            worn,
            channels: 2,
            dies_per_channel: 2,
            ..drive()
        };
        // 64 blocks of data a die; beside the spare ones there is one that is being written.
        let flash = (64 * (100 + spare_percent)).div_ceil(100) + 1;
        let want = published(f64::from(flash) / 64.0);
        check_close(write_amplification(config, false), want, 0.1);
    }
}

#[test]
fn trimmed_data_is_not_moved() {
    let worn = SsdConfig {
        worn: true,
        ..drive()
    };
    let is = write_amplification(worn.clone(), true);
    // Half of the data in as much flash as before.
    check_close(is, published(2.0 * 1.25), 0.1);
    assert!(is < 0.6 * write_amplification(worn, false));
}

#[test]
fn every_command_ends_once_while_the_drive_cleans() {
    for seed in 0..8 {
        let mut random = Xoshiro256::new(seed);
        let config = SsdConfig {
            capacity: 8 << 20,
            channels: 2,
            dies_per_channel: 2,
            page_bytes: 16_384,
            worn: seed % 2 == 0,
            slow_die: (seed % 3 == 0).then_some((1, 7)),
            ..drive()
        };
        let mut drive = Loop::new(config, 16);
        for _ in 0..20_000 {
            let length = 1 + random.below(16);
            let first = random.below(2048 - length);
            let kind = match random.below(10) {
                0..4 => READ,
                4..8 => WRITE,
                8 => TRIM,
                _ => OpKind::Sync(SyncKind::Full),
            };
            let whole = if matches!(kind, OpKind::Sync(_)) {
                0
            } else {
                length * 4096
            };
            drive.go(kind, first * 4096, u32::try_from(whole).expect("small"));
        }
        drive.drain();
        assert_eq!(drive.free.len(), 16);
    }
}

/// Fast enough to take no visible time.
const FAST: u64 = 1 << 50;
