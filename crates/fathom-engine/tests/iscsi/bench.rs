//! Bench of the engine: a unit with known content, and an account of every op.

use std::fs;

use fathom_conformance::{Account, BLOCK, BLOCKS, Subject, content, option_values};
use fathom_core::{Engine, EngineError, FileIndex, Tick};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, built_in, start};
use fathom_sys::clock::Clock;

use crate::server::{BYTES, DISK, TARGET, THIN, Tgt, url};

pub(crate) struct Bench {
    title: String,
    engine: AnyEngine,
    pub(crate) server: Tgt,
    clock: Clock,
    depth: u32,
    /// File behind the unit.
    path: &'static str,
    account: Account,
}

impl Bench {
    /// Starts a server, and an engine on its first unit. The file is not open.
    pub(crate) fn new(depth: u32, options: &str, change: impl FnOnce(&mut EngineConfig)) -> Self {
        Self::on(1, DISK, depth, options, change)
    }

    /// As [`new`](Self::new), on the unit that takes trims.
    pub(crate) fn thin(depth: u32) -> Self {
        Self::on(3, THIN, depth, "", |_| {})
    }

    fn on(
        unit: u32,
        path: &'static str,
        depth: u32,
        options: &str,
        change: impl FnOnce(&mut EngineConfig),
    ) -> Self {
        let mut blocks: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        blocks.resize(usize::try_from(BYTES).unwrap(), 0);
        fs::write(path, blocks).unwrap();
        let server = Tgt::start();
        let clock = Clock::monotonic();
        let mut config = config(&url(TARGET, unit), options, clock);
        (config.depth, config.buffer_bytes) = (depth, BLOCK);
        change(&mut config);
        Self {
            title: format!("depth {depth} {options}"),
            engine: start(config).unwrap(),
            server,
            clock,
            depth,
            path,
            account: Account::default(),
        }
    }

    pub(crate) fn try_open(&mut self) -> Result<(), EngineError> {
        self.engine.as_dyn().open(FileIndex::new(0))
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight(), 0, "{}", self.title);
        assert_eq!(self.reap(4), [], "{}", self.title);
    }
}

/// Returns the configuration of a job that reads and writes a unit.
pub(crate) fn config(url: &str, options: &str, clock: Clock) -> EngineConfig {
    let engine = built_in("libiscsi");
    let file = EngineFile {
        path: url.to_owned(),
        read: true,
        write: true,
        ..EngineFile::default()
    };
    EngineConfig {
        files: vec![file],
        options: option_values(engine.info, options),
        ..EngineConfig::new(engine, clock)
    }
}

impl Subject for Bench {
    fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_dyn()
    }

    fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn depth(&self) -> u32 {
        self.depth
    }

    fn moves_data(&self) -> bool {
        true
    }

    fn stored(&mut self, block: u32) -> Vec<u8> {
        let all = fs::read(self.path).unwrap();
        let start = (block * BLOCK) as usize;
        all[start..start + BLOCK as usize].to_vec()
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}
