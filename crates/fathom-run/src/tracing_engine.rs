//! `--debug=io`: an engine that says what goes through it. Chosen when the job starts, so that a
//! job without it pays nothing.

use std::fmt::Write;
use std::rc::Rc;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, FileIndex, Op, OpKind, Slot,
    Submitted, Tick,
};
use fathom_engine::AnyEngine;
use fathom_job::{DebugOptions, debug_line};
use fathom_setup::translate::JobSetup;

/// Debug output requested for one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Names of the job's files, if its ops are to be told.
    pub(crate) io: Option<Vec<String>>,
    /// Its beginning and its end are told.
    pub(crate) process: bool,
}

impl Trace {
    /// Returns the part of `--debug` that applies to one job.
    pub(crate) fn of(setup: &JobSetup, debug: &DebugOptions) -> Self {
        let tells = |kind| debug.tells_of(kind, setup.place.number);
        let files = setup.files.iter().map(|file| file.path.clone());
        Self {
            io: tells("io").then(|| files.collect()),
            process: tells("process"),
        }
    }

    /// The engine, with a teller around it if its ops are to be told.
    pub(crate) fn around(&self, engine: AnyEngine, thread: u32, say: &Say) -> AnyEngine {
        match &self.io {
            None => engine,
            Some(files) => AnyEngine::Boxed(Box::new(Traced::new(
                engine.boxed(),
                files.clone(),
                thread,
                Rc::clone(say),
            ))),
        }
    }

    /// The job's thread is there.
    pub(crate) fn begun(&self, thread: u32, say: &Say) {
        self.tell_process(thread, say, &format!("jobs pid={thread} started"));
    }

    /// The job is over.
    pub(crate) fn ended(&self, thread: u32, say: &Say) {
        let text = format!("pid={thread}: runstate RUNNING -> EXITED");
        self.tell_process(thread, say, &text);
    }

    fn tell_process(&self, thread: u32, say: &Say, text: &str) {
        if self.process {
            say(debug_line("process", thread, text));
        }
    }
}

/// Where lines go.
pub(crate) type Say = Rc<dyn Fn(String)>;

/// An engine, and who is told what it does.
struct Traced {
    engine: Box<dyn Engine>,
    files: Vec<String>,
    thread: u32,
    say: Say,
    /// Lines not said yet.
    lines: String,
    /// The op of each slot that is in flight.
    ops: Vec<Option<Op>>,
    /// Slots laid down since the last `submit`.
    prepared: Vec<Slot>,
}

impl Traced {
    fn new(engine: Box<dyn Engine>, files: Vec<String>, thread: u32, say: Say) -> Self {
        Self {
            engine,
            files,
            thread,
            say,
            lines: String::new(),
            ops: Vec::new(),
            prepared: Vec::new(),
        }
    }

    fn line(&mut self, text: &str) {
        self.lines.push_str(&debug_line("io", self.thread, text));
        if self.lines.len() > TOLD_AT {
            self.flush();
        }
    }

    /// A line on an op, in fio's form; the slot is its address.
    fn tell(&mut self, stage: &str, op: &Op) {
        let file = self
            .files
            .get(file_index(op.file))
            .map_or("", String::as_str);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _written = write!(
            text,
            "{stage}: io_u {:#x}: off={:#x},len={:#x},ddir={},file={file}",
            op.slot.get(),
            op.offset,
            op.length,
            direction(op.kind),
        );
        self.line(&text);
    }

    fn flush(&mut self) {
        if !self.lines.is_empty() {
            (self.say)(std::mem::take(&mut self.lines));
        }
    }
}

fn slot_index(slot: Slot) -> usize {
    usize::try_from(slot.get()).unwrap_or(usize::MAX)
}

fn file_index(file: FileIndex) -> usize {
    usize::try_from(file.get()).unwrap_or(usize::MAX)
}

/// fio's number of what an op does.
const fn direction(kind: OpKind) -> u8 {
    match kind {
        OpKind::Data(Direction::Read) => 0,
        OpKind::Data(Direction::Write) => 1,
        OpKind::Data(Direction::Trim) => 2,
        OpKind::Sync(_) => 3,
    }
}

impl Engine for Traced {
    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.engine.open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.engine.close(file)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let name = self
            .files
            .get(file_index(file))
            .cloned()
            .unwrap_or_default();
        self.line(&format!("declare unneeded cache {name}"));
        self.engine.invalidate(file)
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.engine.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        self.tell("fill", op);
        self.tell("prep", op);
        let index = slot_index(op.slot);
        if self.ops.len() <= index {
            self.ops.resize(index + 1, None);
        }
        self.ops[index] = Some(*op);
        self.prepared.push(op.slot);
        self.engine.prepare(op);
    }

    fn submit(&mut self, want: u32) -> Submitted {
        for slot in std::mem::take(&mut self.prepared) {
            if let Some(op) = self.ops[slot_index(slot)] {
                self.tell("queue", &op);
            }
        }
        self.engine.submit(want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = self.engine.reap(out);
        for completion in &out[..count] {
            if let Some(op) = self
                .ops
                .get_mut(slot_index(completion.slot))
                .and_then(Option::take)
            {
                self.tell("complete", &op);
            }
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.flush();
        self.engine.wait(min, until)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Lines are said so many bytes at a time.
const TOLD_AT: usize = 8 << 10;
