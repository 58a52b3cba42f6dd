//! `libaio`: Linux's native asynchronous I/O (`io_submit`), asynchronous only with direct I/O.

use std::io;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineOption, EngineStep,
    EngineValues, Errno, FileIndex, Op, OpKind, Queueing, Slot, SlotLimit, Submitted, Synchronous,
    Tick, Zone, ZoneAction,
};
use fathom_sys::aio::Context;
use fathom_sys::clock::Clock;
use fathom_sys::file_io::RwFlags;

use crate::EngineConfig;
use crate::error::{broken, no_memory};
use crate::exclusive::ExclusiveOp;
use crate::files::Files;
use crate::options::NOWAIT;

/// Facts about `libaio`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    aliases: &["aio", "linuxaio"],
    synchronous: Synchronous::Never,
    blocks_when_buffered: true,
    op_priorities: true,
    atomic_writes: true,
    slot_limit: Some(SlotLimit {
        limit: "aio-max-nr",
        used: "aio-nr",
    }),
    exit_waits_for_ops: true,
    shares_buffers: true,
    options: &[USERSPACE_REAP, NOWAIT, LIBAIO_VECTORED],
    ..EngineInfo::new("libaio", "Linux AIO: io_submit(2) and io_getevents(2)")
};

/// Reaping from the mapped ring without a system call. Always done if the ring is readable; the
/// option makes it an error if it is not.
pub const USERSPACE_REAP: EngineOption = EngineOption::flag(
    "userspace_reap",
    "Reap completions from the user-space ring without a system call",
);

/// Vectored ops, with one buffer each.
pub const LIBAIO_VECTORED: EngineOption = EngineOption::boolean(
    "libaio_vectored",
    "Submit vectored ops with one buffer (IOCB_CMD_PREADV, IOCB_CMD_PWRITEV)",
    "libaio_vectored=1",
);

/// Options of a context, read from a job's values.
#[derive(Clone, Copy, Debug)]
struct Options {
    nowait: bool,
    vectored: bool,
    userspace_reap: bool,
}

impl From<&EngineValues> for Options {
    fn from(values: &EngineValues) -> Self {
        Self {
            nowait: values.flag(&NOWAIT),
            vectored: values.flag(&LIBAIO_VECTORED),
            userspace_reap: values.flag(&USERSPACE_REAP),
        }
    }
}

/// `libaio`: one context, its buffers, and the job's files.
///
/// An op costs one control block; a turn makes one `io_submit`, and one `io_getevents` only if it
/// has to wait. Trims and syncs run as plain system calls, each in a submission of its own.
pub struct Libaio {
    context: Context,
    clock: Clock,
    files: Files,
    /// Flags of writes.
    flags: RwFlags,
    /// Prepared trim or sync, which the context cannot take; nothing else is prepared.
    exclusive: ExclusiveOp,
    /// Error by which the context became unusable.
    broken: Option<EngineError>,
}

impl Libaio {
    pub(crate) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::from(&config.options);
        let reads = RwFlags::new(false, options.nowait, false);
        let flags = config.write_flags(reads);
        let context = Context::new(
            config.depth,
            config.buffer_bytes,
            &config.memory,
            [reads, flags],
            options.vectored,
        );
        let context = context.map_err(|(step, error)| start_error(config, step, &error))?;
        if options.userspace_reap && !context.reaps_in_user_space() {
            return Err(EngineError {
                step: EngineStep::Option(USERSPACE_REAP.name),
                target: "engine `libaio`".into(),
                errno: None,
                hint: "this kernel's ring has an unknown layout: leave out userspace_reap".into(),
            });
        }
        Ok(Self {
            context,
            clock: config.clock,
            files: Files::new(config),
            flags,
            exclusive: ExclusiveOp::default(),
            broken: None,
        })
    }

    /// Returns the number of system calls made for ops.
    #[must_use]
    #[inline]
    pub const fn system_calls(&self) -> u64 {
        self.context.calls()
    }

    /// Returns the kernel's optional features in use.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut features: Vec<String> = self.flags.names().map(String::from).collect();
        if self.context.is_vectored() {
            features.push("vectors".into());
        }
        if self.context.reaps_in_user_space() {
            features.push("user-space reap".into());
        }
        features
    }

    /// Executes an op that the context cannot take.
    #[cold]
    fn submit_exclusive(&mut self) -> Submitted {
        self.exclusive.submit(&self.clock, |op| {
            let result = self.files.perform_dataless(op);
            self.context.complete(op.slot, result);
        })
    }

    /// Keeps the error by which the context became unusable; the next `wait` returns it.
    #[cold]
    fn fail(&mut self, call: &'static str, error: &io::Error) {
        self.broken
            .get_or_insert_with(|| broken(call, "libaio", error));
    }
}

impl Engine for Libaio {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: true,
            syncs: Queueing::Inline,
            trims: Queueing::Inline,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.open(file)
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.close(file)
    }

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        self.files.manage_zone(file, action, zone)
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        self.files.report_zone(file, offset)
    }

    fn invalidate(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.invalidate(file)
    }

    #[inline]
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.context.buffer(slot)
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        if let OpKind::Data(Direction::Read | Direction::Write) = op.kind {
            self.context.push(op, self.files.descriptor(op.file));
        } else {
            self.exclusive.prepare(*op, self.context.queued());
        }
    }

    #[inline]
    fn submit(&mut self, want: u32) -> Submitted {
        if self.exclusive.is_prepared() {
            return self.submit_exclusive();
        }
        if let Err(error) = self.context.submit() {
            self.fail("io_submit", &error);
        }
        let issue = self.clock.now();
        if want == 0 {
            return Submitted::Issued { issue, now: issue };
        }
        // Submission and waiting are two system calls here, so the issue time excludes the wait.
        if let Err(error) = self.context.wait(want, None) {
            self.fail("io_getevents", &error);
        }
        let now = self.clock.now();
        Submitted::Issued { issue, now }
    }

    #[inline]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        match self.context.reap(out) {
            Ok(count) => count,
            Err(error) => {
                self.fail("io_getevents", &error);
                0
            }
        }
    }

    #[inline]
    fn reaped_at(&mut self) -> Option<Tick> {
        self.context.has_looked().then(|| self.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let span = until.map(|until| until - self.clock.now());
        self.context
            .wait(min, span)
            .map_err(|error| broken("io_getevents", "libaio", &error))
    }

    fn release(&mut self, slot: Slot) {
        self.context.release(slot);
    }
}

/// Returns the error of a context that could not be set up, with a remedy.
fn start_error(config: &EngineConfig, step: EngineStep, error: &io::Error) -> EngineError {
    let errno = Errno::of(error);
    let hint = match (step, errno) {
        (EngineStep::MapBuffers, _) => return no_memory(config, error),
        (_, Some(Errno::EAGAIN)) => {
            "the system has used up fs.aio-max-nr: raise that sysctl, or lower iodepth"
        }
        (_, Some(Errno::ENOSYS)) => {
            "this kernel was built without asynchronous I/O: run with `--ioengine=psync`"
        }
        (_, Some(Errno::EINVAL)) => "lower iodepth",
        _ => "",
    };
    EngineError {
        step,
        target: "engine `libaio`".into(),
        errno,
        hint: hint.into(),
    }
}
