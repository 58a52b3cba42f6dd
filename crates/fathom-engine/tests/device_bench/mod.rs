//! Test bench of an engine that sends commands to a device, whose data are lost.

use std::fs::File;
use std::os::unix::fs::FileExt;

use fathom_conformance::{Account, BLOCK, BLOCKS, Subject, content};
use fathom_core::{
    Direction, Engine, EngineValues, FileIndex, Op, OpKind, Queueing, SyncKind, Tick,
};
use fathom_engine::{EngineConfig, EngineFile, built_in, start};
use fathom_sys::clock::Clock;
use fathom_sys::files;

/// Engine, its device, and the ops in flight.
pub(crate) struct DeviceBench {
    pub(crate) engine: Box<dyn Engine>,
    account: Account,
    /// Block device of the same data.
    block: File,
    /// Clock of the times in the account.
    pub(crate) clock: Clock,
}

impl DeviceBench {
    /// Starts an engine on the device at `path`, in which the blocks have their content. `block` is
    /// the name of the block device.
    pub(crate) fn new(
        engine: &str,
        path: &str,
        block: &str,
        (variant, depth): (&str, u32),
        options: EngineValues,
    ) -> Self {
        let config = config(engine, path, depth, options);
        let clock = config.clock;
        let mut bench = Self {
            engine: start(config).unwrap().boxed(),
            account: Account::new(format!("{path} {variant} {depth}"), depth),
            block: File::open(format!("/dev/{block}")).unwrap(),
            clock,
        };
        bench.engine.open(FileIndex::new(0)).unwrap();
        for number in 0..BLOCKS {
            bench.fill(0, number);
            bench.run_one(bench.write(0, number));
        }
        bench
    }

    pub(crate) fn trim(&self, slot: u32, block: u32) -> Op {
        Op {
            kind: OpKind::Data(Direction::Trim),
            ..self.write(slot, block)
        }
    }
}

/// Returns the configuration of an engine on the device at `path`.
pub(crate) fn config(engine: &str, path: &str, depth: u32, options: EngineValues) -> EngineConfig {
    EngineConfig {
        depth,
        buffer_bytes: BLOCK,
        files: vec![EngineFile {
            path: path.into(),
            read: true,
            write: true,
            ..EngineFile::default()
        }],
        options,
        ..EngineConfig::new(built_in(engine), Clock::monotonic())
    }
}

/// Case of trims and syncs among other ops; trimmed blocks of the device read as zeros.
pub(crate) fn trims_and_syncs_are_queued(bench: &mut DeviceBench) {
    if bench.depth() < 4 {
        return;
    }
    bench.prepare(bench.read(0, 5));
    bench.prepare(bench.trim(1, 9));
    if bench.engine.capabilities().syncs == Queueing::Queued {
        bench.prepare(bench.sync(2, SyncKind::Data));
    }
    bench.prepare(bench.read(3, 6));
    bench.submit(0);
    bench.finish_all();
    bench.check(0, 5);
    bench.check(3, 6);
    assert!(bench.stored(9).iter().all(|&byte| byte == 0));
    assert_eq!(bench.stored(8), content(8));
}

impl Subject for DeviceBench {
    fn engine(&mut self) -> &mut dyn Engine {
        &mut *self.engine
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    fn stored(&mut self, block: u32) -> Vec<u8> {
        files::flush_block_device(&self.block).unwrap();
        let mut data = vec![0; BLOCK as usize];
        let offset = u64::from(block) * u64::from(BLOCK);
        self.block.read_exact_at(&mut data, offset).unwrap();
        data
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}
