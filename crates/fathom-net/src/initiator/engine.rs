//! The engine.

use std::sync::Arc;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Nanos,
    Op, OpKind, Queueing, RemoteFile, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_sys::epoll::{Epoll, Interest, Readiness, Waker};
use fathom_sys::memory::Buffers;

use crate::device_end;
use crate::initiator::address::NamespaceAddress;
use crate::initiator::admin::{Admin, QueueNeeds, Terms};
use crate::initiator::error::LinkError;
use crate::initiator::options::{INFO, Options};
use crate::initiator::session::Session;
use crate::initiator::slots::{Extent, Slots};
use crate::waiter::{Connections, Waiter, failed};

/// The line by which a program gets the engine.
pub const NVME_TCP: Registration = Registration {
    remote_file: Some(find_namespace),
    ..Registration::new(&INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Initiator::start(config)?)))
    })
};

/// Engine whose files are namespaces of NVMe/TCP targets.
#[derive(Debug)]
struct Initiator {
    waiter: Waiter,
    namespaces: Namespaces,
}

/// Namespaces of a job, and its ops.
#[derive(Debug)]
struct Namespaces {
    /// Limit on the answer to an op.
    io_timeout: Option<Nanos>,
    /// Time of the next look for ops that are overdue.
    check_at: Tick,
    /// Before `slots`: connections end before the buffers of their ops.
    sessions: Vec<Session>,
    files: Vec<File>,
    slots: Slots,
    /// Wakes the job's thread for news of keepers.
    waker: Arc<Waker>,
}

/// File of the job.
#[derive(Clone, Copy, Debug)]
struct File {
    /// Index of its session.
    session: usize,
    /// Index of its namespace there.
    namespace: usize,
    /// Terms of its ops and its size, while it is open.
    open: Option<(Extent, u64)>,
}

impl Initiator {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = resolve(config)?;
        let failed = |step| failed(INFO.name, step);
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(failed(EngineStep::MapBuffers))?;
        let waiter = Waiter::new(INFO.name, config.clock, options.busy_poll)?;
        let waker = Arc::new(Waker::new().map_err(failed(EngineStep::Call("eventfd")))?);
        let added = waiter.epoll().add(&*waker, WAKER, Interest::Readable);
        added.map_err(failed(EngineStep::Call("epoll_ctl")))?;
        let (sessions, files) = sessions(config, &options)?;
        Ok(Self {
            waiter,
            namespaces: Namespaces {
                io_timeout: options.io_timeout,
                check_at: Tick::ZERO,
                sessions,
                files,
                slots: Slots::new(config.depth, buffers, config.syncs_writes()),
                waker,
            },
        })
    }
}

impl Namespaces {
    /// Returns the bytes that an op moves, or its result if that is none.
    #[inline]
    fn admit(&self, op: &Op, file: File) -> Result<(Extent, u32), i32> {
        let Some((extent, bytes)) = file.open else {
            return Err(Errno::EBADF.result());
        };
        if let OpKind::Data(direction) = op.kind {
            let odd = (op.offset | u64::from(op.length)) & ((1 << extent.block_shift) - 1);
            if odd != 0 {
                return Err(Errno::EINVAL.result());
            }
            if direction == Direction::Trim && !self.sessions[file.session].can_trim() {
                return Err(Errno::EOPNOTSUPP.result());
            }
        }
        Ok((extent, device_end::within(op, bytes)?))
    }
}

impl Connections for Namespaces {
    #[inline]
    fn flush(&mut self) {
        for session in &mut self.sessions {
            session.flush(&mut self.slots);
        }
    }

    #[inline]
    fn look(&mut self, epoll: &Epoll, is_forced: bool) {
        for (number, session) in self.sessions.iter_mut().enumerate() {
            if session.look(epoll, &mut self.slots) {
                renew(&mut self.files, number, session);
            }
            session.receive(&mut self.slots, is_forced);
        }
    }

    #[inline]
    fn check_answers(&mut self, epoll: &Epoll, now: Tick) -> Option<Tick> {
        let limit = self.io_timeout?;
        if now >= self.check_at {
            // An answer may have come while the job did something else.
            self.look(epoll, true);
            for session in &mut self.sessions {
                session.check_answers(now, limit, &mut self.slots);
            }
            self.check_at = now + Nanos::new(limit.get() / CHECKS);
        }
        Some(self.check_at)
    }

    fn changed(&mut self, change: Readiness) {
        if change.token == WAKER {
            return self.waker.clear();
        }
        let index = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let (session, path) = (index(change.token >> 32), index(change.token & PATH_MASK));
        if let Some(session) = self.sessions.get_mut(session) {
            session.changed(path, change.is_closed);
        }
    }

    #[inline]
    fn ready(&self) -> usize {
        self.slots.ready()
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.slots.reap(out)
    }
}

impl Engine for Initiator {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let Namespaces {
            sessions,
            files,
            waker,
            ..
        } = &mut self.namespaces;
        let file = &mut files[file.index()];
        assert!(file.open.is_none(), "the file is open");
        let number = file.session;
        let session = &mut sessions[number];
        session.open(self.waiter.epoll(), waker)?;
        file.open = Some(session.extent(file.namespace));
        // It may have connected anew after others were opened.
        renew(files, number, session);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let file = &mut self.namespaces.files[file.index()];
        if file.open.take().is_some() {
            self.namespaces.sessions[file.session].close();
        }
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        // No page cache on this side.
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.namespaces.slots.buffer(slot)
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        let file = self.namespaces.files[op.file.index()];
        let admitted = self.namespaces.admit(op, file);
        let Namespaces {
            sessions, slots, ..
        } = &mut self.namespaces;
        match admitted {
            Ok((extent, length)) => {
                slots.take(op, extent, length);
                sessions[file.session].begin(op.slot, slots);
            }
            Err(result) => slots.finish(op.slot, result),
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.waiter.submit(&mut self.namespaces, want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.waiter.reap(&mut self.namespaces, out)
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        self.waiter.reaped_at()
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.waiter.wait(&mut self.namespaces, min, until)
    }

    fn send_held(&mut self) {
        self.namespaces.flush();
    }

    fn release(&mut self, slot: Slot) {
        self.namespaces.slots.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        if errno == Errno::EILSEQ {
            // The errno is about characters.
            return Some("a data digest or protection information was wrong".to_owned());
        }
        let sessions = &self.namespaces.sessions;
        let mut given_up = sessions.iter().filter(|_| errno == Errno::ENOLINK);
        given_up.find_map(|session| {
            let (address, why) = (&session.terms().address, session.failure()?);
            Some(format!("{address} was abandoned: {why}"))
        })
    }
}

/// Sets the terms of a session's open files to those of the controller that is connected now: one
/// that comes back may have other limits.
#[cold]
fn renew(files: &mut [File], number: usize, session: &Session) {
    for file in files.iter_mut().filter(|file| file.session == number) {
        let namespace = file.namespace;
        file.open = file.open.map(|_old| session.extent(namespace));
    }
}

/// Connects to a controller to learn the size of a namespace.
fn find_namespace(config: &EngineConfig) -> Result<RemoteFile, EngineError> {
    let (sessions, files) = sessions(config, &resolve(config)?)?;
    let (Some(session), Some(file)) = (sessions.first(), files.first()) else {
        unreachable!("the caller looks up one file");
    };
    let terms = session.terms();
    let failed = |error: LinkError| error.of_engine(&terms.address, terms.host_nqn());
    let admin = Admin::connect(terms).map_err(failed)?;
    let namespace = admin.facts().namespaces[file.namespace];
    admin.shut_down();
    Ok(RemoteFile {
        bytes: namespace.blocks << namespace.block_shift,
        block_bytes: 1 << namespace.block_shift,
        directions: match namespace.is_write_protected {
            true => &[Direction::Read],
            false => &Direction::ALL,
        },
    })
}

fn resolve(config: &EngineConfig) -> Result<Options, EngineError> {
    Options::resolve(&config.options).map_err(|fault| EngineError {
        step: EngineStep::Call("nvme_tcp"),
        target: fault.why,
        errno: None,
        hint: fault.hint.into(),
    })
}

/// Returns the sessions that the job's files need, and the files.
fn sessions(
    config: &EngineConfig,
    options: &Options,
) -> Result<(Vec<Session>, Vec<File>), EngineError> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut files = Vec::with_capacity(config.files.len());
    let needs = QueueNeeds {
        queues: options.queues,
        ops: config.depth.div_ceil(options.queues.into()),
        op_bytes: config.buffer_bytes,
    };
    for file in &config.files {
        let address = NamespaceAddress::parse(&file.path).map_err(|error| EngineError {
            step: EngineStep::Option("filename"),
            target: format!("{}: {}", file.path, error.why),
            errno: None,
            hint: error.hint.into(),
        })?;
        let known = |session: &Session| session.terms().address == address.controller;
        let session = sessions.iter().position(known).unwrap_or_else(|| {
            let number = u32::try_from(sessions.len()).unwrap_or(u32::MAX);
            let terms = Terms {
                address: address.controller.clone(),
                options: options.clone(),
                namespaces: Vec::new(),
                clock: config.clock,
            };
            let repeated = config.repeated.clone();
            sessions.push(Session::new(number, terms, needs, repeated));
            sessions.len() - 1
        });
        files.push(File {
            session,
            namespace: sessions[session].add(address.nsid),
            open: None,
        });
    }
    Ok((sessions, files))
}

/// Token of the waker; those of sockets are a session and a path.
const WAKER: u64 = u64::MAX;
const PATH_MASK: u64 = u32::MAX as u64;
/// Looks for overdue ops per time-out: an op is given up a quarter late at most.
const CHECKS: u64 = 4;
