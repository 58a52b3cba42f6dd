//! The engine.

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineStep, Errno, FileIndex, Nanos,
    Op, OpKind, Queueing, RemoteFile, Slot, Submitted, Tick,
};
use fathom_engine::{AnyEngine, EngineConfig, Registration};
use fathom_nbd::{ExportAddress, UriError};
use fathom_sys::clock::Clock;
use fathom_sys::epoll::{Epoll, Events};
use fathom_sys::memory::Buffers;

use crate::nbd::link::LinkConfig;
use crate::nbd::options::{INFO, Options};
use crate::nbd::session::{self, Session};
use crate::nbd::slots::Slots;

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
    clock: Clock,
    options: Options,
    link: LinkConfig,
    /// Writes complete when they are on stable storage.
    is_fua: bool,
    /// The thread has slept since the sockets were last looked at without need.
    has_slept: bool,
    /// The last `reap` looked at the sockets.
    has_looked: bool,
    files: Vec<File>,
    slots: Slots,
    epoll: Epoll,
    events: Events,
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
        let failed = |step| {
            move |error| EngineError {
                step,
                target: "engine `nbd`".into(),
                errno: Errno::of(&error),
                hint: String::new(),
            }
        };
        let buffers = Buffers::within(&config.memory, config.depth, config.buffer_bytes);
        let buffers = buffers.map_err(failed(EngineStep::MapBuffers))?;
        let epoll = Epoll::new().map_err(failed(EngineStep::Call("epoll_create")))?;
        let files = config.files.iter().map(|file| {
            Ok(File {
                uri: file.path.clone(),
                address: address(&file.path)?,
                session: None,
            })
        });
        Ok(Self {
            clock: config.clock,
            options,
            link: link_config(config, &options),
            is_fua: config.syncs_writes(),
            has_slept: false,
            has_looked: false,
            files: files.collect::<Result<_, _>>()?,
            slots: Slots::new(config.depth, buffers),
            epoll,
            events: Events::new(EVENTS),
        })
    }

    /// Sends what is queued.
    #[inline]
    fn flush(&mut self) {
        for session in self
            .files
            .iter_mut()
            .filter_map(|file| file.session.as_mut())
        {
            session.flush(&mut self.slots);
        }
    }

    /// Handles what has arrived; looks at each socket if `is_forced`.
    #[inline]
    fn look(&mut self, is_forced: bool) {
        for session in self
            .files
            .iter_mut()
            .filter_map(|file| file.session.as_mut())
        {
            session.receive(&mut self.slots, is_forced);
        }
    }

    /// Waits until `min` ops can be reaped.
    fn wait_for(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        self.flush();
        self.look(self.options.busy_poll);
        while self.slots.ready() < min as usize {
            let now = self.clock.now();
            let quiet = self.quiet_until(now);
            if self.options.busy_poll {
                self.look(true);
            } else {
                let wake = [until, quiet].into_iter().flatten().min();
                self.sleep(wake.map(|wake| if wake > now { wake - now } else { Nanos::ZERO }))?;
                self.has_slept = true;
                self.look(false);
            }
            if quiet.is_some_and(|quiet| quiet <= now) {
                self.give_up(now);
            }
            if until.is_some_and(|until| until <= now) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the time until which an answer may take, if one is awaited.
    fn quiet_until(&mut self, now: Tick) -> Option<Tick> {
        let timeout = self.options.reply_timeout;
        let sessions = self
            .files
            .iter_mut()
            .filter_map(|file| file.session.as_mut());
        sessions
            .filter_map(|session| session.quiet_until(now, timeout))
            .min()
    }

    /// Gives up connections whose servers are silent; an answer may have come while the job did
    /// something else.
    #[cold]
    fn give_up(&mut self, now: Tick) {
        self.look(true);
        for session in self
            .files
            .iter_mut()
            .filter_map(|file| file.session.as_mut())
        {
            session.give_up(now, self.options.reply_timeout, &mut self.slots);
        }
    }

    /// Sleeps until a socket has something to tell.
    fn sleep(&mut self, timeout: Option<Nanos>) -> Result<(), EngineError> {
        let waited = self.epoll.wait(&mut self.events, timeout);
        waited.map_err(|error| EngineError {
            step: EngineStep::Call("epoll_wait"),
            target: "engine `nbd`".into(),
            errno: Errno::of(&error),
            hint: String::new(),
        })?;
        for event in self.events.iter() {
            let index = |number| usize::try_from(number).unwrap_or(usize::MAX);
            let (file, link) = (index(event.token >> 32), index(event.token & LINK_MASK));
            let session = self
                .files
                .get_mut(file)
                .and_then(|file| file.session.as_mut());
            if let Some(session) = session {
                session.changed(link, event.is_closed);
            }
        }
        Ok(())
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
        let file = &mut self.files[file.index()];
        assert!(file.session.is_none(), "the file is open");
        let place = (&self.epoll, token);
        let address = &file.address;
        let session = Session::connect(address, self.link, &self.options, self.is_fua, place);
        file.session = Some(session.map_err(|error| error.of_engine(&file.uri))?);
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        if let Some(session) = self.files[file.index()].session.take() {
            session.close();
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
        let Some(session) = &mut self.files[op.file.index()].session else {
            return self.slots.finish(op.slot, Errno::EBADF.result());
        };
        match admit(op, session) {
            Ok(length) => session.begin(op, length, &mut self.slots),
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
            let is_forced = self.options.busy_poll || !std::mem::take(&mut self.has_slept);
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
        self.slots.explanation(errno)
    }
}

/// Returns the bytes that an op moves, or its result if that is none.
#[inline]
fn admit(op: &Op, session: &Session) -> Result<u32, i32> {
    if !session.takes(op.kind) {
        return Err(Errno::EOPNOTSUPP.result());
    }
    let OpKind::Data(direction) = op.kind else {
        return Ok(0);
    };
    // The end of an export is that of a block device.
    let left = session
        .bytes()
        .saturating_sub(op.offset)
        .min(op.length.into());
    match (u32::try_from(left).unwrap_or(op.length), direction) {
        (0, Direction::Read) => Err(0),
        (0, Direction::Write) => Err(Errno::ENOSPC.result()),
        (0, Direction::Trim) => Err(Errno::EINVAL.result()),
        (length, _) => Ok(length),
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
/// Events taken per wait.
const EVENTS: u16 = 64;
