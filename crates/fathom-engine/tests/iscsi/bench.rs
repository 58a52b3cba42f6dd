//! Bench of the engine: a unit with known content.

use std::fs;

use fathom_conformance::{BLOCKS, content, option_values};
use fathom_engine::{EngineConfig, EngineFile, built_in};
use fathom_sys::clock::Clock;

use crate::server::{BYTES, DISK, TARGET, THIN, Tgt, url};
use crate::server_bench::{Server, ServerBench};

pub(crate) type Bench = ServerBench<Tgt>;

impl Bench {
    /// Starts a server, and an engine on its first unit. The file is not open.
    pub(crate) fn new(depth: u32, options: &str, change: impl FnOnce(&mut EngineConfig)) -> Self {
        Self::on((1, DISK), depth, options, change)
    }

    /// As [`new`](Self::new), on the unit that takes trims.
    pub(crate) fn thin(depth: u32) -> Self {
        Self::on((3, THIN), depth, "", |_| {})
    }

    fn on(
        (unit, path): (u32, &'static str),
        depth: u32,
        options: &str,
        change: impl FnOnce(&mut EngineConfig),
    ) -> Self {
        let mut blocks: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        blocks.resize(usize::try_from(BYTES).unwrap(), 0);
        fs::write(path, blocks).unwrap();
        let server = Tgt::start();
        let config = config(&url(TARGET, unit), options, Clock::monotonic());
        Self::start((server, path), (depth, options), config, change)
    }
}

impl Server for Tgt {
    fn kill(&mut self) {
        self.process.kill();
    }

    fn stop(&self) {
        self.process.stop();
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
