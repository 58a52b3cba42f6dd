//! Bench of the engine: a peer with known content, and an account of every op.

use fathom_conformance::{Account, BLOCK, BLOCKS, Subject, content, option_values};
use fathom_core::{Engine, EngineError, FileIndex, Tick};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, RepeatedRequests, start};
use fathom_net::NVME_TCP;
use fathom_sys::clock::Clock;

use crate::peer::{Peer, PeerConfig};

pub(crate) const FIRST: FileIndex = FileIndex::new(0);
pub(crate) const SECOND: FileIndex = FileIndex::new(1);

pub(crate) struct Bench {
    engine: AnyEngine,
    peer: Option<Peer>,
    pub(crate) repeated: RepeatedRequests,
    clock: Clock,
    account: Account,
}

impl Bench {
    pub(crate) fn new(peer: Peer, depth: u32, options: &str) -> Self {
        Self::with_bytes(peer, depth, options, BLOCK)
    }

    pub(crate) fn with_bytes(peer: Peer, depth: u32, options: &str, bytes: u32) -> Self {
        let files = [peer.filename(1), peer.filename(2)];
        Self::start(peer, (depth, bytes), options, &files)
    }

    /// Returns a bench whose first file has another name.
    pub(crate) fn renamed(peer: Peer, options: &str, (from, to): (&str, &str)) -> Self {
        let file = match from {
            "" => peer.filename(1),
            from => peer.filename(1).replace(from, to),
        };
        Self::start(peer, (1, BLOCK), options, &[file])
    }

    fn start(peer: Peer, (depth, bytes): (u32, u32), options: &str, files: &[String]) -> Self {
        let blocks: Vec<u8> = (0..BLOCKS).flat_map(content).collect();
        peer.set_content(1, &blocks);
        let clock = Clock::monotonic();
        let file = |path: &String| EngineFile {
            path: path.clone(),
            read: true,
            write: true,
            ..EngineFile::default()
        };
        let config = EngineConfig {
            depth,
            buffer_bytes: bytes,
            files: files.iter().map(file).collect(),
            options: option_values(NVME_TCP.info, options),
            ..EngineConfig::new(NVME_TCP, clock)
        };
        Self {
            repeated: config.repeated.clone(),
            engine: start(config).unwrap(),
            peer: Some(peer),
            clock,
            account: Account::new(format!("depth {depth} {options}"), depth),
        }
    }

    pub(crate) fn peer(&self) -> &Peer {
        self.peer.as_ref().unwrap()
    }

    /// Replaces the peer by another one at its address.
    pub(crate) fn replace_peer(&mut self, config: PeerConfig) {
        let address = self.peer().address.to_string();
        self.peer = None;
        self.peer = Some(Peer::start_at(config, &address));
    }

    /// Ends the peer: its port is closed.
    pub(crate) fn end_peer(&mut self) {
        self.peer = None;
    }

    pub(crate) fn try_open(&mut self) -> Result<(), EngineError> {
        self.engine.as_dyn().open(FIRST)
    }

    pub(crate) fn open_second(&mut self) {
        self.try_open_second().unwrap();
    }

    pub(crate) fn try_open_second(&mut self) -> Result<(), EngineError> {
        self.engine.as_dyn().open(SECOND)
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight(), 0);
        assert_eq!(self.reap(4), []);
    }
}

impl Subject for Bench {
    fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_dyn()
    }

    fn account(&self) -> &Account {
        &self.account
    }

    fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    fn stored(&mut self, block: u32) -> Vec<u8> {
        let at = block as usize * BLOCK as usize;
        self.peer().content(1)[at..at + BLOCK as usize].to_vec()
    }

    fn now(&self) -> Tick {
        self.clock.now()
    }
}
