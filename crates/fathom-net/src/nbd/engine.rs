//! The engine.

use fathom_core::{
    Capabilities, Completion, Engine, EngineError, EngineStep, Errno, FileIndex, Op, Queueing,
    RemoteFile, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_nbd::{ExportAddress, UriError};
use fathom_sys::epoll::{Epoll, Readiness};
use fathom_sys::memory::Buffers;

use crate::device_end;
use crate::nbd::link::LinkConfig;
use crate::nbd::options::{INFO, Options};
use crate::nbd::session::{self, Session};
use crate::nbd::slots::Slots;
use crate::waiter::{Connections, Waiter, failed};

/// The line by which a program gets the engine.
pub const NBD: Registration = Registration {
    remote_file: Some(find_export),
    ..Registration::new(&INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Nbd::start(config)?)))
    })
};

/// Engine whose files are exports of NBD servers.
#[derive(Debug)]
struct Nbd {
    waiter: Waiter,
    exports: Exports,
}

/// Exports of a job, and its ops.
#[derive(Debug)]
struct Exports {
    options: Options,
    link: LinkConfig,
    /// Writes complete when they are on stable storage.
    is_fua: bool,
    files: Vec<File>,
    slots: Slots,
}

/// File of the job.
#[derive(Debug)]
struct File {
    uri: String,
    address: ExportAddress,
    /// Its connections, while it is open.
    session: Option<Session>,
}

impl Nbd {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::resolve(&config.options);
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(failed(INFO.name, EngineStep::MapBuffers))?;
        let files = config.files.iter().map(|file| {
            Ok(File {
                uri: file.path.clone(),
                address: address(&file.path)?,
                session: None,
            })
        });
        Ok(Self {
            waiter: Waiter::new(INFO.name, config.clock, options.busy_poll)?,
            exports: Exports {
                options,
                link: link_config(config, &options),
                is_fua: config.syncs_writes(),
                files: files.collect::<Result<_, _>>()?,
                slots: Slots::new(config.depth, buffers),
            },
        })
    }
}

impl Exports {
    /// Calls `step` with each open export.
    #[inline]
    fn each(&mut self, mut step: impl FnMut(&mut Session, &mut Slots)) {
        for file in &mut self.files {
            if let Some(session) = &mut file.session {
                step(session, &mut self.slots);
            }
        }
    }

    /// Returns the time until which an answer may take, if one is awaited.
    fn quiet_until(&mut self, now: Tick) -> Option<Tick> {
        let timeout = self.options.reply_timeout;
        let mut quiet: Option<Tick> = None;
        self.each(|session, _| {
            let until = session.quiet_until(now, timeout);
            quiet = quiet.into_iter().chain(until).min();
        });
        quiet
    }

    /// Gives up connections whose servers are silent.
    #[cold]
    fn give_up(&mut self, now: Tick) {
        // An answer may have come while the job did something else.
        self.each(|session, slots| session.receive(slots, true));
        let timeout = self.options.reply_timeout;
        self.each(|session, slots| session.give_up(now, timeout, slots));
    }
}

impl Connections for Exports {
    #[inline]
    fn flush(&mut self) {
        self.each(Session::flush);
    }

    #[inline]
    fn look(&mut self, _epoll: &Epoll, is_forced: bool) {
        self.each(|session, slots| session.receive(slots, is_forced));
    }

    #[inline]
    fn check_answers(&mut self, _epoll: &Epoll, now: Tick) -> Option<Tick> {
        let quiet = self.quiet_until(now)?;
        if quiet > now {
            return Some(quiet);
        }
        self.give_up(now);
        self.quiet_until(now)
    }

    fn changed(&mut self, change: Readiness) {
        let index = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let (file, link) = (index(change.token >> 32), index(change.token & LINK_MASK));
        let file = self.files.get_mut(file);
        if let Some(session) = file.and_then(|file| file.session.as_mut()) {
            session.changed(link, change.is_closed);
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

impl Engine for Nbd {
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
        let token = u64::from(file.get()) << 32;
        let exports = &mut self.exports;
        let file = &mut exports.files[file.index()];
        assert!(file.session.is_none(), "the file is open");
        let place = (self.waiter.epoll(), token);
        let (link, options, is_fua) = (exports.link, &exports.options, exports.is_fua);
        let session = Session::connect(&file.address, link, options, is_fua, place);
        file.session = Some(session.map_err(|error| error.of_engine(&file.uri))?);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        if let Some(session) = self.exports.files[file.index()].session.take() {
            session.close();
        }
        Ok(())
    }

    fn invalidate(&mut self, _file: FileIndex) -> Result<(), EngineError> {
        // No page cache on this side.
        Ok(())
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.exports.slots.buffer(slot)
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        let Exports { files, slots, .. } = &mut self.exports;
        let Some(session) = &mut files[op.file.index()].session else {
            return slots.finish(op.slot, Errno::EBADF.result());
        };
        match admit(op, session) {
            Ok(length) => session.begin(op, length, slots),
            Err(result) => slots.finish(op.slot, result),
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.waiter.submit(&mut self.exports, want)
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.waiter.reap(&mut self.exports, out)
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        self.waiter.reaped_at()
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.waiter.wait(&mut self.exports, min, until)
    }

    fn send_held(&mut self) {
        self.exports.flush();
    }

    fn release(&mut self, slot: Slot) {
        self.exports.slots.release(slot);
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        self.exports.slots.explanation(errno)
    }
}

/// Returns the bytes that an op moves, or its result if that is none.
#[inline]
fn admit(op: &Op, session: &Session) -> Result<u32, i32> {
    match session.takes(op.kind) {
        true => device_end::within(op, session.bytes()),
        false => Err(Errno::EOPNOTSUPP.result()),
    }
}

/// Connects to a server to learn the size of an export.
fn find_export(config: &EngineConfig) -> Result<RemoteFile, EngineError> {
    let Some(file) = config.files.first() else {
        unreachable!("the caller looks up one file");
    };
    let options = Options::resolve(&config.options);
    let found = session::look_up(
        &address(&file.path)?,
        link_config(config, &options),
        &options,
    );
    found.map_err(|error| error.of_engine(&file.path))
}

fn link_config(config: &EngineConfig, options: &Options) -> LinkConfig {
    LinkConfig {
        depth: config.depth,
        op_bytes: config.buffer_bytes,
        replies: options.replies,
        timeout: options.connect_timeout,
        clock: config.clock,
    }
}

fn address(uri: &str) -> Result<ExportAddress, EngineError> {
    ExportAddress::parse(uri).map_err(|error| EngineError {
        step: EngineStep::Option("uri"),
        target: format!("{uri}: {error}"),
        errno: None,
        hint: match error {
            UriError::Tls => "use nbd:// or nbd+unix://, on a network that you trust".into(),
            _ => "write nbd://HOST[:PORT]/NAME or nbd+unix:///NAME?socket=PATH".into(),
        },
    })
}

const LINK_MASK: u64 = u32::MAX as u64;
