//! Bench of the engine: a file of the export with known content.

use std::fs;

use fathom_conformance::{BLOCKS, content, option_values};
use fathom_engine::{EngineConfig, EngineFile, built_in};
use fathom_sys::clock::Clock;

use crate::server::{EXPORT, FILE, Ganesha, url};
use crate::server_bench::{Server, ServerBench};

pub(crate) type Bench = ServerBench<Ganesha>;

impl Bench {
    /// Starts a server and an engine. The file is not open.
    pub(crate) fn new(depth: u32, options: &str, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let server = Ganesha::start();
        fs::write(FILE, (0..BLOCKS).flat_map(content).collect::<Vec<u8>>()).unwrap();
        let config = config(EXPORT, options, Clock::monotonic());
        Self::start((server, FILE), (depth, options), config, change)
    }
}

impl Server for Ganesha {
    fn kill(&mut self) {
        self.process.kill();
    }

    fn stop(&self) {
        self.process.stop();
    }
}

/// Returns the configuration of a job that reads and writes `file` of an export.
pub(crate) fn config(export: &str, options: &str, clock: Clock) -> EngineConfig {
    let engine = built_in("nfs");
    let file = EngineFile {
        path: "file".to_owned(),
        read: true,
        write: true,
        ..EngineFile::default()
    };
    EngineConfig {
        files: vec![file],
        options: option_values(engine.info, &format!("nfs_url={} {options}", url(export))),
        ..EngineConfig::new(engine, clock)
    }
}
