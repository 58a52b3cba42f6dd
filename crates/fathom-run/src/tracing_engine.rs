//! `--debug=io` and `--debug=process`: debug output of one job. Ops are logged by a wrapper around
//! the engine, chosen when the job starts, so that a job without it pays nothing.

use std::fmt::Write;
use std::rc::Rc;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, Errno, FileIndex, Op, OpKind, Slot,
    Submitted, Tick, pass_to_engine,
};
use fathom_engine::AnyEngine;
use fathom_job::{DebugOptions, debug_line};
use fathom_setup::translate::JobSetup;

/// Debug output requested for one job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Names of the job's files, if its ops are logged.
    pub(crate) io: Option<Vec<String>>,
    /// The start and end of the job are logged.
    pub(crate) process: bool,
}

impl Trace {
    /// Returns the part of `--debug` that applies to one job.
    pub(crate) fn of(setup: &JobSetup, debug: &DebugOptions) -> Self {
        let includes = |kind| debug.includes_for(kind, setup.place.number);
        let files = setup.files.iter().map(|file| file.path.clone());
        Self {
            io: includes("io").then(|| files.collect()),
            process: includes("process"),
        }
    }

    /// Returns the engine, wrapped if its ops are logged.
    pub(crate) fn around(&self, engine: AnyEngine, thread: u32, say: &Say) -> AnyEngine {
        match &self.io {
            None => engine,
            Some(files) => AnyEngine::Boxed(Box::new(LoggingEngine::new(
                engine.boxed(),
                files.clone(),
                thread,
                Rc::clone(say),
            ))),
        }
    }

    /// Logs the start of the job's thread.
    pub(crate) fn begun(&self, thread: u32, say: &Say) {
        self.log_process(thread, say, &format!("jobs pid={thread} started"));
    }

    /// Logs the end of the job.
    pub(crate) fn ended(&self, thread: u32, say: &Say) {
        let text = format!("pid={thread}: runstate RUNNING -> EXITED");
        self.log_process(thread, say, &text);
    }

    fn log_process(&self, thread: u32, say: &Say, text: &str) {
        if self.process {
            say(debug_line("process", thread, text));
        }
    }
}

/// Sink of debug output.
pub(crate) type Say = Rc<dyn Fn(String)>;

/// Engine that logs each op and passes it on.
struct LoggingEngine {
    engine: Box<dyn Engine>,
    files: Vec<String>,
    thread: u32,
    say: Say,
    /// Lines not passed to the sink yet.
    lines: String,
    /// Op in flight, by slot.
    ops: Vec<Option<Op>>,
    /// Slots prepared since the last `submit`.
    prepared: Vec<Slot>,
}

impl LoggingEngine {
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
        if self.lines.len() > FLUSH_BYTES {
            self.flush();
        }
    }

    /// Logs an op as fio does; the slot takes the place of its address.
    fn log_op(&mut self, stage: &str, op: &Op) {
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

/// Returns fio's number of an op's direction.
const fn direction(kind: OpKind) -> u8 {
    match kind {
        OpKind::Data(Direction::Read) => 0,
        OpKind::Data(Direction::Write) => 1,
        OpKind::Data(Direction::Trim) => 2,
        OpKind::Sync(_) => 3,
    }
}

impl Engine for LoggingEngine {
    pass_to_engine!(engine);

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

    fn prepare(&mut self, op: &Op) {
        self.log_op("fill", op);
        self.log_op("prep", op);
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
                self.log_op("queue", &op);
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
                self.log_op("complete", &op);
            }
        }
        count
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.flush();
        self.engine.wait(min, until)
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        self.engine.explain(errno)
    }
}

impl Drop for LoggingEngine {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Bytes of lines that are passed to the sink at once.
const FLUSH_BYTES: usize = 8 << 10;
