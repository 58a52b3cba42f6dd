//! The engine.

use std::io;
use std::path::Path;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Op,
    OpKind, Queueing, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig};
use fathom_sys::clock::Clock;
use fathom_sys::in_flight::Ready;
use fathom_sys::memory::Buffers;

use crate::client::{Client, Exchange, Method};
use crate::credentials::Credentials;
use crate::fault::{Fault, FaultKind};
use crate::options::{INFO, ObjectMode, Options};
use crate::small_file;

/// Starts the engine of a job.
pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    Ok(AnyEngine::Boxed(Box::new(Http::start(config)?)))
}

/// Engine whose blocks are objects of a server.
#[derive(Debug)]
struct Http {
    clock: Clock,
    client: Client,
    files: Vec<File>,
    buffers: Buffers,
    depth: u32,
    /// Prepared, not yet performed.
    pending: Vec<Pending>,
    done: Ready,
    /// The latest failure of each errno, for messages; a handful at most.
    failures: Vec<(Errno, String)>,
}

/// File of the job: the beginning of its objects' names.
#[derive(Debug)]
struct File {
    path: String,
    is_open: bool,
}

/// Op with its request; none if it needs none.
#[derive(Debug)]
struct Pending {
    op: Op,
    exchange: Option<Exchange>,
}

impl Http {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::resolve(&config.options);
        if options.objects == ObjectMode::Range && config.files.iter().any(|file| file.write) {
            return Err(EngineError {
                step: EngineStep::Option("http_object_mode"),
                target: "an object cannot be written in parts".into(),
                errno: None,
                hint: "write with http_object_mode=block, or only read".into(),
            });
        }
        let variable = |name: &str| std::env::var(name).ok();
        let file = |path: &Path| {
            let text = String::from_utf8(small_file::read(path)?);
            text.map_err(|_| io::Error::other("not text"))
        };
        let credentials = Credentials::find(&config.options, &options, &variable, &file)?;
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(|error| EngineError {
            step: EngineStep::MapBuffers,
            target: "engine `http`".into(),
            errno: Errno::of(&error),
            hint: String::new(),
        })?;
        let files = config.files.iter().map(|file| File {
            path: file.path.clone(),
            is_open: false,
        });
        Ok(Self {
            clock: config.clock,
            client: Client::new(options, credentials, config)?,
            files: files.collect(),
            buffers,
            depth: config.depth,
            pending: Vec::with_capacity(config.depth as usize),
            done: Ready::new(config.depth),
            failures: Vec::new(),
        })
    }

    /// Performs an op and returns its result, with the time of its completion.
    fn perform(&mut self, pending: &Pending) -> (i32, Tick) {
        let op = &pending.op;
        let whole = op.length.min(Completion::BYTES_MAX).cast_signed();
        if !self.files[op.file.index()].is_open {
            return (Errno::EBADF.result(), self.clock.now());
        }
        let Some(exchange) = &pending.exchange else {
            return (whole, self.clock.now());
        };
        let length = match exchange.method {
            Method::Delete => 0,
            _ => op.length,
        };
        let data = self.buffers.part(op.slot, op.buffer_offset, length);
        let performed = self.client.perform(exchange, data);
        let now = self.clock.now();
        let result = performed.and_then(|done| Client::check(&done, data));
        match result {
            Ok(()) => (whole, now),
            Err(fault) if fault.kind == FaultKind::Stopped => (Completion::ENDED, now),
            Err(fault) => {
                let result = fault.errno.result();
                self.note(fault);
                (result, now)
            }
        }
    }

    #[cold]
    fn note(&mut self, fault: Fault) {
        self.failures.retain(|(errno, _)| *errno != fault.errno);
        self.failures.push((fault.errno, fault.text));
    }
}

impl Engine for Http {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: true,
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    /// Makes no request: the first op connects, and is the first to fail.
    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let file = &mut self.files[file.index()];
        assert!(!file.is_open, "the file is open");
        file.is_open = true;
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files[file.index()].is_open = false;
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    /// Makes the request, with the hashes of its data: they are the client's work, not the
    /// server's.
    fn prepare(&mut self, op: &Op) {
        let in_flight = self.pending.len() + self.done.count();
        assert!(in_flight < self.depth as usize, "more ops than slots");
        let method = match op.kind {
            OpKind::Data(Direction::Read) => Some(Method::Get),
            OpKind::Data(Direction::Write) => Some(Method::Put),
            OpKind::Data(Direction::Trim) => Some(Method::Delete),
            // An object that a server has accepted is stored.
            _ => None,
        };
        let exchange = method.map(|method| {
            let data: &[u8] = match method {
                Method::Put => self.buffers.peek(op.slot, op.buffer_offset, op.length),
                _ => &[],
            };
            let file = &self.files[op.file.index()].path;
            self.client
                .exchange(method, file, op.offset, op.length, data)
        });
        self.pending.push(Pending { op: *op, exchange });
    }

    fn submit(&mut self, _want: u32) -> Submitted {
        let pending = std::mem::take(&mut self.pending);
        let issue = self.clock.now();
        let mut now = issue;
        for pending in &pending {
            let (result, completed) = self.perform(pending);
            self.done.push(pending.op.slot, result);
            now = completed;
        }
        // Put the vector back: its capacity is reserved for the whole run.
        self.pending = pending;
        self.pending.clear();
        Submitted::Issued { issue, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.done.take(out)
    }

    fn wait(&mut self, min: u32, _until: Option<Tick>) -> Result<(), EngineError> {
        assert!(
            self.done.count() >= min as usize,
            "everything submitted has completed"
        );
        Ok(())
    }

    fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        let found = self.failures.iter().find(|(known, _)| *known == errno);
        found.map(|(_, text)| text.clone())
    }
}
