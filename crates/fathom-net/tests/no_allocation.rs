//! The loop of a target's thread allocates nothing per command.
#![allow(clippy::unwrap_used, reason = "the whole file is a test")]

#[path = "target/bare_host.rs"]
mod bare_host;
#[path = "target/setup.rs"]
mod setup;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bare_host::{BareHost, h2c, inside, transfer};
use fathom_block::{PacingConfig, RateConfig};
use fathom_core::{BlockDevice, Command, CommandData, Finished, Geometry, Nanos, Tick};
use fathom_net::target::{DeviceError, DeviceFactory, TargetConfig};
use fathom_nvme::{Digests, Opcode, Pdu};
use fathom_sys::allocation_counter::{CountingAllocator, thread_allocations};
use setup::{BOTH, NO_DIGESTS};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Device that notes how many allocations its thread, the target's, has made.
#[derive(Debug)]
struct Observed {
    device: Box<dyn BlockDevice>,
    allocations: Arc<AtomicU64>,
}

impl BlockDevice for Observed {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn start(&mut self, command: &Command, data: &mut CommandData, now: Tick) {
        self.allocations
            .store(thread_allocations(), Ordering::SeqCst);
        self.device.start(command, data, now);
    }

    fn next(&self) -> Option<Tick> {
        self.device.next()
    }

    fn completed(&mut self, now: Tick) -> Option<Finished> {
        self.device.completed(now)
    }
}

#[derive(Debug)]
struct ObservedFactory {
    factory: Arc<dyn DeviceFactory>,
    allocations: Arc<AtomicU64>,
}

impl DeviceFactory for ObservedFactory {
    fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(Observed {
            device: self.factory.open(thread, now)?,
            allocations: Arc::clone(&self.allocations),
        }))
    }

    fn geometry(&self) -> Geometry {
        self.factory.geometry()
    }
}

/// Commands of a host, and the target that serves them.
struct Load {
    opcode: Opcode,
    bytes: u32,
    digests: Digests,
    in_capsule: bool,
    buffers: u32,
    pacing: PacingConfig,
    is_null: bool,
}

const READS: Load = Load {
    opcode: Opcode::READ,
    bytes: 4096,
    digests: NO_DIGESTS,
    in_capsule: false,
    buffers: 64,
    pacing: PacingConfig::None,
    is_null: false,
};

/// Runs bursts of commands and checks that the second half of them adds to no memory.
#[track_caller]
fn check(load: &Load) {
    let allocations = Arc::new(AtomicU64::new(0));
    let factory = match load.is_null {
        true => setup::null(),
        false => setup::memory(8 << 20),
    };
    let observed = Arc::new(ObservedFactory {
        factory,
        allocations: Arc::clone(&allocations),
    });
    let config = setup::config(observed, 1);
    let (target, address, _) = setup::start(TargetConfig {
        pacing: load.pacing,
        buffers: fathom_block::BufferConfig {
            count: Some(load.buffers),
            ..config.buffers
        },
        ..config
    });
    let admin = BareHost::admin(address, load.digests);
    let mut queue = admin.io(address, 1, load.digests);
    let data = vec![7; load.bytes as usize];
    (0..BURSTS).for_each(|_| burst(&mut queue, load, &data));
    let before = allocations.load(Ordering::SeqCst);
    (0..BURSTS).for_each(|_| burst(&mut queue, load, &data));
    let made = allocations.load(Ordering::SeqCst) - before;
    assert!(made <= GROWTH_MAX, "{made} allocations");
    drop((admin, queue));
    drop(target);
}

/// Sends as many commands as the queue takes, and waits for their ends.
fn burst(queue: &mut BareHost, load: &Load, data: &[u8]) {
    for cid in 0..DEPTH {
        let offset = u64::from(cid) * u64::from(load.bytes);
        let command = transfer(load.opcode, cid, offset, load.bytes);
        match load.in_capsule {
            true => queue.send(&Pdu::Command(command.with_data(inside(load.bytes))), data),
            false => queue.send(&Pdu::Command(command), &[]),
        }
    }
    let mut left = DEPTH;
    while left > 0 {
        match queue.receive().unwrap().pdu {
            Pdu::R2t(ready) => queue.send(&h2c(ready.cid, ready.ttag, data.len()), data),
            Pdu::Response(completion) => {
                assert!(completion.status.is_success(), "{completion:?}");
                left -= 1;
            }
            Pdu::C2hData(header) => left -= u16::from(header.is_success),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn reads_allocate_nothing() {
    check(&READS);
    check(&Load {
        is_null: true,
        ..READS
    });
    check(&Load {
        digests: BOTH,
        ..READS
    });
    check(&Load {
        bytes: 131_072,
        ..READS
    });
}

#[test]
fn writes_allocate_nothing() {
    let write = Load {
        opcode: Opcode::WRITE,
        ..READS
    };
    check(&Load {
        in_capsule: true,
        ..write
    });
    check(&write);
    check(&Load {
        bytes: 131_072,
        digests: BOTH,
        ..write
    });
}

#[test]
fn waiting_for_buffers_allocates_nothing() {
    let few = Load {
        buffers: 4,
        ..READS
    };
    check(&few);
    check(&Load {
        opcode: Opcode::WRITE,
        ..few
    });
    check(&Load {
        pacing: PacingConfig::Rate(RateConfig {
            period: Nanos::from_micros(2),
            ..RateConfig::default()
        }),
        ..READS
    });
    check(&Load {
        pacing: PacingConfig::Auto(fathom_block::AutoConfig::default()),
        ..READS
    });
}

/// Commands in flight: one less than the entries of a bare host's queue.
const DEPTH: u16 = 31;
/// Bursts until queues have grown to what they need, and as many to see that they grow no more.
const BURSTS: u32 = 200;
/// Allocations of queues that find more in a turn than ever before. One per command would be 6200,
/// one per turn 200 at least.
const GROWTH_MAX: u64 = 20;
