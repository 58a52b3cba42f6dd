//! Engine under test, and the steps of which cases consist.

use std::ops::Range;

use fathom_core::{
    Completion, Direction, Engine, FileIndex, Nanos, Op, OpKind, Slot, Submitted, SyncKind, Tick,
};

use crate::account::Account;

/// Engine under test with its storage, the first file of which has [`BLOCKS`] blocks of
/// [`content`]. The file is open.
///
/// The provided methods are the steps of cases. They check what holds for every op: that it
/// completes once, and that times do not run backwards.
pub trait Subject {
    /// Returns the engine.
    fn engine(&mut self) -> &mut dyn Engine;

    /// Returns the account of the engine's ops.
    fn account(&self) -> &Account;

    /// Returns the account of the engine's ops.
    fn account_mut(&mut self) -> &mut Account;

    /// Returns a block as the storage has it, past the engine; only called if data move.
    fn stored(&mut self, block: u32) -> Vec<u8>;

    /// Returns the time.
    fn now(&self) -> Tick;

    /// Returns true if reads return what was written.
    fn moves_data(&self) -> bool {
        true
    }

    /// Returns a name for messages.
    fn title(&self) -> &str {
        &self.account().title
    }

    /// Returns the number of slots.
    fn depth(&self) -> u32 {
        self.account().depth
    }

    /// Returns a read of a block, or an op as harmless if the engine performs no reads.
    fn read(&self, slot: u32, block: u32) -> Op {
        Op {
            slot: Slot::new(slot),
            kind: OpKind::Data(Direction::Read),
            priority: 0,
            file: FileIndex::new(0),
            length: BLOCK,
            buffer_offset: 0,
            offset: u64::from(block) * u64::from(BLOCK),
            sequence: 0,
        }
    }

    /// Returns a write of a block.
    fn write(&self, slot: u32, block: u32) -> Op {
        Op {
            kind: OpKind::Data(Direction::Write),
            ..self.read(slot, block)
        }
    }

    /// Returns a sync.
    fn sync(&self, slot: u32, kind: SyncKind) -> Op {
        Op {
            kind: OpKind::Sync(kind),
            length: 0,
            offset: 0,
            ..self.read(slot, 0)
        }
    }

    /// Returns the result of an op that moved a whole block.
    fn block_bytes(&self) -> i32 {
        BLOCK.cast_signed()
    }

    /// Returns the buffer of a slot.
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        self.engine().buffer(Slot::new(slot))
    }

    /// Copies a block's content into a slot's buffer, which is empty if no data move.
    fn fill(&mut self, slot: u32, block: u32) {
        for (byte, value) in self.buffer(slot).iter_mut().zip(content(block)) {
            *byte = value;
        }
    }

    /// Checks that a slot's buffer holds a block's content.
    #[track_caller]
    fn check(&mut self, slot: u32, block: u32) {
        self.check_part(slot, block, 0..BLOCK as usize);
    }

    /// Checks a part of it.
    #[track_caller]
    fn check_part(&mut self, slot: u32, block: u32, part: Range<usize>) {
        if self.moves_data() {
            let is_same = self.buffer(slot)[part.clone()] == content(block)[part];
            assert!(
                is_same,
                "{}: slot {slot} is not block {block}",
                self.title()
            );
        }
    }

    /// Checks that the storage has the content of block `want` at `block`.
    #[track_caller]
    fn check_stored(&mut self, block: u32, want: u32) {
        if self.moves_data() {
            let is_same = self.stored(block) == content(want);
            assert!(is_same, "{}: block {block} is not {want}", self.title());
        }
    }

    /// Opens the file.
    ///
    /// # Panics
    /// It cannot be opened.
    #[track_caller]
    fn open(&mut self) {
        let opened = self.engine().open(FileIndex::new(0));
        assert!(opened.is_ok(), "{}: {opened:?}", self.title());
    }

    /// Closes the file.
    ///
    /// # Panics
    /// It cannot be closed.
    #[track_caller]
    fn close(&mut self) {
        let closed = self.engine().close(FileIndex::new(0));
        assert!(closed.is_ok(), "{}: {closed:?}", self.title());
    }

    /// Prepares an op.
    #[track_caller]
    fn prepare(&mut self, op: Op) {
        let op = self.account_mut().prepare(op);
        self.engine().prepare(&op);
    }

    /// Submits what is prepared, and waits for `want` completions.
    #[track_caller]
    fn submit(&mut self, want: u32) {
        let submitted = self.engine().submit(want);
        match submitted {
            Submitted::Issued { issue, now } => self.account_mut().submit(issue, now),
            Submitted::Blocked => panic!("{}: blocked", self.title()),
        }
    }

    /// Waits for completions, until a time.
    #[track_caller]
    fn wait(&mut self, min: u32, until: Option<Tick>) {
        let waited = self.engine().wait(min, until);
        assert!(waited.is_ok(), "{}: {waited:?}", self.title());
    }

    /// Reaps up to a number of completions, each of which must be of an op in flight.
    #[track_caller]
    fn reap(&mut self, most: u32) -> Vec<Completion> {
        let mut out = vec![Completion::default(); most as usize];
        let count = self.engine().reap(&mut out);
        out.truncate(count);
        for completion in &out {
            self.account_mut().reap(completion);
        }
        out
    }

    /// Returns the number of ops in flight.
    fn in_flight(&self) -> usize {
        self.account().in_flight()
    }

    /// Collects the completions of all ops in flight.
    #[track_caller]
    fn collect(&mut self) -> Vec<Completion> {
        let mut all = Vec::new();
        while self.in_flight() > 0 {
            self.wait(1, None);
            let depth = self.depth();
            all.extend(self.reap(depth));
        }
        assert_eq!(self.reap(1), [], "{}: one too many", self.title());
        all
    }

    /// Collects as [`collect`](Self::collect); each op must have moved all its bytes.
    #[track_caller]
    fn finish_all(&mut self) {
        for completion in self.collect() {
            let is_whole = [0, self.block_bytes()].contains(&completion.result);
            assert!(is_whole, "{}: {completion:?}", self.title());
        }
    }

    /// Runs a single op.
    #[track_caller]
    fn run(&mut self, op: Op) -> Completion {
        self.prepare(op);
        self.submit(0);
        let all = self.collect();
        assert_eq!(all.len(), 1, "{}", self.title());
        all[0]
    }

    /// Runs a single op, which must move all its bytes.
    #[track_caller]
    fn run_one(&mut self, op: Op) {
        let completion = self.run(op);
        assert_eq!(completion.result, self.block_bytes(), "{}", self.title());
    }

    /// Returns a time shortly from now.
    fn in_a_moment(&self) -> Tick {
        self.now() + Nanos::from_millis(5)
    }

    /// Returns a time late enough for anything to complete.
    fn in_a_while(&self) -> Tick {
        self.now() + Nanos::from_secs(20)
    }

    /// Returns true once a time has passed.
    fn has_passed(&self, moment: Tick) -> bool {
        self.now() > moment
    }
}

/// Returns the content of a block, which differs between blocks and within one.
#[must_use]
pub fn content(block: u32) -> Vec<u8> {
    let word =
        |at: u32| (block.wrapping_mul(0x9e37_79b9) ^ at.wrapping_mul(0x85eb_ca6b)).to_le_bytes();
    (0..BLOCK / 4).flat_map(word).collect()
}

/// Bytes of a block, and of an op.
pub const BLOCK: u32 = 4096;
/// Blocks of the file.
pub const BLOCKS: u32 = 64;
