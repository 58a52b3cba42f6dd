//! Bench of the engine: a peer with known content, and an account of every op.

use std::collections::HashSet;

use fathom_core::{
    Completion, Direction, Engine, EngineError, EngineValues, FileIndex, Nanos, Op, OpKind,
    OptionKind, OptionValue, Slot, Submitted, SyncKind, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, start};
use fathom_net::NVME_TCP;
use fathom_sys::clock::Clock;

use crate::peer::Peer;

pub(crate) const BLOCK: u32 = 4096;
pub(crate) const FIRST: FileIndex = FileIndex::new(0);
pub(crate) const SECOND: FileIndex = FileIndex::new(1);

pub(crate) struct Bench {
    title: String,
    engine: AnyEngine,
    peer: Option<Peer>,
    clock: Clock,
    depth: u32,
    in_flight: HashSet<u32>,
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
        for block in 0..64 {
            let at = block as usize * BLOCK as usize;
            let mut content = peer.content(1);
            content[at..at + BLOCK as usize].copy_from_slice(&block_of(block));
            peer.set_content(1, &content);
        }
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
            options: values(options),
            ..EngineConfig::new(NVME_TCP, clock)
        };
        Self {
            title: format!("depth {depth} {options}"),
            engine: start(config).unwrap(),
            peer: Some(peer),
            clock,
            depth,
            in_flight: HashSet::new(),
        }
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn peer(&self) -> &Peer {
        self.peer.as_ref().unwrap()
    }

    /// Ends the peer: its port is closed.
    pub(crate) fn end_peer(&mut self) {
        self.peer = None;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn engine(&mut self) -> &mut dyn Engine {
        self.engine.as_dyn()
    }

    pub(crate) fn open(&mut self) {
        self.try_open().unwrap();
    }

    pub(crate) fn try_open(&mut self) -> Result<(), EngineError> {
        self.engine().open(FIRST)
    }

    pub(crate) fn open_second(&mut self) {
        self.engine().open(SECOND).unwrap();
    }

    pub(crate) fn close(&mut self) {
        self.engine().close(FIRST).unwrap();
    }

    pub(crate) fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.engine().buffer(Slot::new(slot))
    }

    /// Fills the buffer of a slot with the content of a block.
    pub(crate) fn fill(&mut self, slot: u32, block: u32) {
        self.buffer(slot).copy_from_slice(&block_of(block));
    }

    /// Checks that the buffer of a slot has the content of a block.
    #[track_caller]
    pub(crate) fn check(&mut self, slot: u32, block: u32) {
        let is_same = *self.buffer(slot) == *block_of(block);
        assert!(is_same, "{}: slot {slot} is not block {block}", self.title);
    }

    /// Returns a block as the target has it.
    pub(crate) fn content(&self, block: u32) -> Vec<u8> {
        let at = block as usize * BLOCK as usize;
        self.peer().content(1)[at..at + BLOCK as usize].to_vec()
    }

    pub(crate) const fn read(&self, slot: u32, block: u32) -> Op {
        op(slot, block, Direction::Read)
    }

    pub(crate) const fn write(&self, slot: u32, block: u32) -> Op {
        op(slot, block, Direction::Write)
    }

    pub(crate) const fn sync(&self, slot: u32, kind: SyncKind) -> Op {
        Op {
            kind: OpKind::Sync(kind),
            length: 0,
            offset: 0,
            ..op(slot, 0, Direction::Read)
        }
    }

    pub(crate) fn prepare(&mut self, op: Op) {
        assert!(self.in_flight.insert(op.slot.get()), "slot in flight");
        self.engine().prepare(&op);
    }

    pub(crate) fn submit(&mut self, want: u32) {
        let submitted = self.engine().submit(want);
        assert!(matches!(submitted, Submitted::Issued { .. }));
    }

    pub(crate) fn wait(&mut self, min: u32, until: Option<Tick>) {
        self.engine().wait(min, until).unwrap();
    }

    #[track_caller]
    pub(crate) fn reap(&mut self, most: u32) -> Vec<Completion> {
        let mut out = vec![Completion::default(); most as usize];
        let count = self.engine().reap(&mut out);
        out.truncate(count);
        for done in &out {
            assert!(self.in_flight.remove(&done.slot.get()), "completed twice");
        }
        out
    }

    /// Waits for all ops in flight.
    #[track_caller]
    pub(crate) fn collect(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        while !self.in_flight.is_empty() {
            self.wait(1, None);
            all.extend(self.reap(self.depth));
        }
        all
    }

    /// Waits for all ops in flight, which must move whole blocks.
    #[track_caller]
    pub(crate) fn finish_all(&mut self) {
        for done in self.collect() {
            assert_eq!(done.result, BLOCK.cast_signed(), "{}", self.title);
        }
    }

    #[track_caller]
    pub(crate) fn run(&mut self, op: Op) -> Completion {
        self.prepare(op);
        self.submit(0);
        let done = self.collect();
        assert_eq!(done.len(), 1);
        done[0]
    }

    #[track_caller]
    pub(crate) fn run_one(&mut self, op: Op) {
        let done = self.run(op);
        assert_eq!(done.result, BLOCK.cast_signed(), "{}", self.title);
    }

    pub(crate) fn in_a_moment(&self) -> Tick {
        self.clock.now() + Nanos::from_millis(20)
    }

    /// Checks that nothing is left.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        assert_eq!(self.in_flight.len(), 0);
        assert_eq!(self.reap(4), []);
    }
}

const fn op(slot: u32, block: u32, direction: Direction) -> Op {
    Op {
        slot: Slot::new(slot),
        kind: OpKind::Data(direction),
        priority: 0,
        file: FIRST,
        length: BLOCK,
        buffer_offset: 0,
        offset: block as u64 * BLOCK as u64,
        sequence: 0,
    }
}

/// Returns content that differs between blocks and within one.
pub(crate) fn block_of(block: u32) -> Vec<u8> {
    let word =
        |at: u32| (block.wrapping_mul(0x9e37_79b9) ^ at.wrapping_mul(0x85eb_ca6b)).to_le_bytes();
    (0..BLOCK / 4).flat_map(word).collect()
}

/// Reads options as in a job file, separated by blanks.
fn values(text: &str) -> EngineValues {
    let mut values = EngineValues::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "1"));
        let option = NVME_TCP.info.option(name).unwrap();
        let value = match option.kind {
            OptionKind::Text => OptionValue::Text(value.into()),
            _ => OptionValue::Number(value.parse().unwrap()),
        };
        values.set(option.name, value);
    }
    values
}
