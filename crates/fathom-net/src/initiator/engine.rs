//! The engine.

use std::sync::Arc;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Nanos,
    Op, OpKind, Queueing, RemoteFile, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events, Interest, Waker};
use fathom_sys::memory::Buffers;

use crate::initiator::address::NamespaceAddress;
use crate::initiator::admin::{Admin, QueueNeeds, Terms};
use crate::initiator::error::LinkError;
use crate::initiator::options::{INFO, Options};
use crate::initiator::session::Session;
use crate::initiator::slots::{Extent, Slots};

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
    clock: Clock,
    busy_poll: bool,
    /// Limit on the answer to an op.
    io_timeout: Option<Nanos>,
    /// Time of the next look for ops that are overdue.
    check_at: Tick,
    /// The thread has slept since the sockets were last looked at without need.
    has_slept: bool,
    /// The last `reap` looked at the sockets.
    has_looked: bool,
    /// Before `slots`: connections end before the buffers of their ops.
    sessions: Vec<Session>,
    files: Vec<File>,
    slots: Slots,
    epoll: Epoll,
    events: Events,
    /// Wakes the thread that waits in `epoll` for news of keepers.
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
        let failed = |step| {
            move |error| EngineError {
                step,
                target: "engine `nvme_tcp`".into(),
                errno: Errno::of(&error),
                hint: String::new(),
            }
        };
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(failed(EngineStep::MapBuffers))?;
        let epoll = Epoll::new().map_err(failed(EngineStep::Call("epoll_create")))?;
        let waker = Arc::new(Waker::new().map_err(failed(EngineStep::Call("eventfd")))?);
        let added = epoll.add(&*waker, WAKER, Interest::Readable);
        added.map_err(failed(EngineStep::Call("epoll_ctl")))?;
        let (busy_poll, io_timeout) = (options.busy_poll, options.io_timeout);
        let (sessions, files) = sessions(config, &options)?;
        Ok(Self {
            clock: config.clock,
            busy_poll,
            io_timeout,
            check_at: Tick::ZERO,
            has_slept: false,
            has_looked: false,
            sessions,
            files,
            slots: Slots::new(config.depth, buffers, config.syncs_writes()),
            epoll,
            events: Events::new(EVENTS),
            waker,
        })
    }

    /// Returns the bytes that an op moves, or its result if that is none.
    #[inline]
    fn admit(&self, op: &Op, file: File) -> Result<(Extent, u32), i32> {
        let Some((extent, bytes)) = file.open else {
            return Err(Errno::EBADF.result());
        };
        let OpKind::Data(direction) = op.kind else {
            return Ok((extent, 0));
        };
        let odd = (op.offset | u64::from(op.length)) & ((1 << extent.block_shift) - 1);
        if odd != 0 {
            return Err(Errno::EINVAL.result());
        }
        if direction == Direction::Trim && !self.sessions[file.session].can_trim() {
            return Err(Errno::EOPNOTSUPP.result());
        }
        // The end of a namespace is that of a block device.
        let left = bytes.saturating_sub(op.offset).min(op.length.into());
        match (u32::try_from(left).unwrap_or(op.length), direction) {
            (0, Direction::Read) => Err(0),
            (0, Direction::Write) => Err(Errno::ENOSPC.result()),
            (0, Direction::Trim) => Err(Errno::EINVAL.result()),
            (length, _) => Ok((extent, length)),
        }
    }

    /// Sends what is queued.
    #[inline]
    fn flush(&mut self) {
        for session in &mut self.sessions {
            session.flush(&mut self.slots);
        }
    }

    /// Handles what has arrived; looks at each socket if `is_forced`.
    #[inline]
    fn look(&mut self, is_forced: bool) {
        for (number, session) in self.sessions.iter_mut().enumerate() {
            if session.look(&self.epoll, &mut self.slots) {
                renew(&mut self.files, number, session);
            }
            session.receive(&mut self.slots, is_forced);
        }
    }

    /// Waits until `min` ops can be reaped.
    fn wait_for(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.flush();
        self.look(self.busy_poll);
        while self.slots.ready() < min as usize {
            let now = self.clock.now();
            let check = self.check_answers(now);
            if self.slots.ready() >= min as usize {
                break;
            }
            if self.busy_poll {
                self.look(true);
            } else {
                let wake = [until, check].into_iter().flatten().min();
                self.sleep(wake.map(|wake| wake - now))?;
                self.has_slept = true;
                self.look(false);
            }
            if until.is_some_and(|until| until <= now) {
                break;
            }
        }
        Ok(())
    }

    /// Gives up connections that leave an op unanswered; returns when to look again.
    #[inline]
    fn check_answers(&mut self, now: Tick) -> Option<Tick> {
        let limit = self.io_timeout?;
        if now >= self.check_at {
            // An answer may have come while the job did something else.
            self.look(true);
            for session in &mut self.sessions {
                session.check_answers(now, limit, &mut self.slots);
            }
            self.check_at = now + Nanos::new(limit.get() / CHECKS);
        }
        Some(self.check_at)
    }

    /// Sleeps until a socket or a keeper has something to tell.
    fn sleep(&mut self, timeout: Option<Nanos>) -> Result<(), EngineError> {
        let waited = self.epoll.wait(&mut self.events, timeout);
        waited.map_err(|error| EngineError {
            step: EngineStep::Call("epoll_wait"),
            target: "engine `nvme_tcp`".into(),
            errno: Errno::of(&error),
            hint: String::new(),
        })?;
        for event in self.events.iter() {
            if event.token == WAKER {
                self.waker.clear();
                continue;
            }
            let index = |number| usize::try_from(number).unwrap_or(usize::MAX);
            let (path, session) = (index(event.token & PATH_MASK), index(event.token >> 32));
            if let Some(session) = self.sessions.get_mut(session) {
                session.changed(path, event.is_closed);
            }
        }
        Ok(())
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
        let file = &mut self.files[file.index()];
        assert!(file.open.is_none(), "the file is open");
        let number = file.session;
        let session = &mut self.sessions[number];
        session.open(&self.epoll, &self.waker)?;
        file.open = Some(session.extent(file.namespace));
        // It may have connected anew after others were opened.
        renew(&mut self.files, number, session);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let file = &mut self.files[file.index()];
        if file.open.take().is_some() {
            self.sessions[file.session].close();
        }
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        // No page cache on this side.
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        let file = self.files[op.file.index()];
        match self.admit(op, file) {
            Ok((extent, length)) => {
                self.slots.take(op, extent, length);
                self.sessions[file.session].begin(op.slot, &mut self.slots);
            }
            Err(result) => self.slots.finish(op.slot, result),
        }
    }

    /// Holds the ops back while completions wait to be reaped: each is replaced by an op, and all
    /// of them leave in one call. A worker that submits one op at a time, which is fio's default,
    /// would make a call for each.
    fn submit(&mut self, want: u32) -> Submitted {
        if self.slots.ready() == 0 {
            self.flush();
        }
        let now = self.clock.now();
        if self.slots.ready() < want as usize {
            // An error shows again in the `wait` that follows.
            let _shows_again = self.wait_for(want, None);
        }
        Submitted::Issued { issue: now, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        if self.slots.ready() == 0 {
            // A worker that sleeps when it finds nothing would look at each socket twice per turn,
            // once in vain. One that polls comes again at once.
            let is_forced = self.busy_poll || !std::mem::take(&mut self.has_slept);
            self.look(is_forced);
            self.has_looked = true;
        }
        self.slots.reap(out)
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        std::mem::take(&mut self.has_looked).then(|| self.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.wait_for(min, until)
    }

    fn send_held(&mut self) {
        self.flush();
    }

    fn release(&mut self, slot: Slot) {
        self.slots.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        if errno == Errno::EILSEQ {
            // The errno is about characters.
            return Some("a data digest or protection information was wrong".to_owned());
        }
        let mut given_up = self.sessions.iter().filter(|_| errno == Errno::ENOLINK);
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
/// Events taken per wait.
const EVENTS: u16 = 64;
