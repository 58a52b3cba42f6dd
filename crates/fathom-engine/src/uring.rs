//! `io_uring`: submission and completion rings shared with the kernel.

mod metadata;
mod refusal;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineOption, EngineStep,
    EngineValues, Errno, FileIndex, Op, OpKind, OptionEffect, Queueing, Slot, Submitted, SyncKind,
    Synchronous, Tick, Zone, ZoneAction,
};
use fathom_sys::clock::Clock;
use fathom_sys::file_io::{self, RwFlags};
use fathom_sys::files::{self, Access, DeviceNumber, FileKind};
use fathom_sys::uring::{IntegrityChecks, Ring, RingConfig};

use crate::error::broken;
use crate::exclusive::ExclusiveOp;
use crate::files::Files;
use crate::options::{HIPRI, NOWAIT, U32, UNCACHED};
use crate::protection::{APPTAG, APPTAG_MASK, MD_PER_IO_SIZE, PI_ACT, PI_CHK};
use crate::{AnyEngine, EngineConfig, EngineFile, FileCheck, FileRefusal};
use metadata::UringWithMetadata;

pub use refusal::why_no_ring;
pub(crate) use refusal::{RingUse, check_ring, start_error};

/// Facts about `io_uring`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    op_priorities: true,
    atomic_writes: true,
    write_streams: true,
    kernel_threads: true,
    shares_buffers: true,
    options: &[
        HIPRI,
        FIXEDBUFS,
        REGISTERFILES,
        SQTHREAD_POLL,
        SQTHREAD_POLL_CPU,
        NONVECTORED,
        FORCE_ASYNC,
        UNCACHED,
        NOWAIT,
        MD_PER_IO_SIZE,
        PI_ACT,
        PI_CHK,
        APPTAG,
        APPTAG_MASK,
    ],
    // Of `io_uring_cmd`: fio's two engines have one table.
    ignored_by_fio: &[
        "cmd_type",
        "readfua",
        "writefua",
        "write_mode",
        "verify_mode",
        "deac",
    ],
    ..EngineInfo::new("io_uring", "io_uring submission and completion rings")
};

/// Registered buffers: the kernel pins and maps them once, not per op.
pub const FIXEDBUFS: EngineOption = EngineOption::flag(
    "fixedbufs",
    "Register I/O buffers with the kernel in advance",
);

/// Registered files: the kernel takes a reference once, not per op.
pub const REGISTERFILES: EngineOption =
    EngineOption::flag("registerfiles", "Register files with the kernel in advance");

/// Submission-queue polling: a kernel thread takes the ops, and submission needs no system call.
pub const SQTHREAD_POLL: EngineOption = EngineOption::flag(
    "sqthread_poll",
    "Let a kernel thread poll the submission queue (SQPOLL)",
)
.effect(OptionEffect::PolledSubmissions)
.different(
    "slat is reported and clat starts at submission; fio 3.33 reports no slat, and a clat longer \
     than the run",
);

/// CPU of that thread.
pub const SQTHREAD_POLL_CPU: EngineOption = EngineOption::int(
    "sqthread_poll_cpu",
    0,
    U32,
    "CPU of the SQPOLL kernel thread",
    "sqthread_poll_cpu=1",
);

/// Plain reads and writes instead of vectors of one. The default: every kernel that Fathom supports
/// has them, and they save the kernel an import of the vector per op.
pub const NONVECTORED: EngineOption = EngineOption::int(
    "nonvectored",
    0,
    U32,
    "Use IORING_OP_READ and IORING_OP_WRITE instead of the vectored ops",
    "nonvectored=1",
)
.default("-1");

/// Share of ops that go straight to a kernel worker: every Nth.
pub const FORCE_ASYNC: EngineOption = EngineOption::int(
    "force_async",
    0,
    U32,
    "Issue every Nth op with IOSQE_ASYNC; 0: never",
    "force_async=4",
)
.default("0");

/// No-op requests instead of I/O, without files: measures the ring itself. For tools; not an option
/// of jobs.
pub const NOPS: EngineOption = EngineOption::flag("nops", "");

/// An unregistered ring descriptor. For tools that measure its cost; not an option of jobs.
pub const PLAIN_DESCRIPTOR: EngineOption = EngineOption::flag("plain_descriptor", "");

/// A completion makes the ring's descriptor readable. For block devices; no job can ask for it.
pub const POLLABLE: EngineOption = EngineOption::flag("pollable", "");

/// Options of a ring, read from a job's values.
#[derive(Clone, Copy, Debug)]
struct Options {
    fixed_buffers: bool,
    fixed_files: bool,
    kernel_thread: bool,
    kernel_thread_cpu: Option<u32>,
    polled: bool,
    vectored: bool,
    force_async: u32,
    uncached: bool,
    nowait: bool,
    nops: bool,
    plain_descriptor: bool,
    pollable: bool,
}

impl From<&EngineValues> for Options {
    fn from(values: &EngineValues) -> Self {
        let number = |option| values.number(option).and_then(|n| u32::try_from(n).ok());
        Self {
            fixed_buffers: values.flag(&FIXEDBUFS),
            fixed_files: values.flag(&REGISTERFILES),
            kernel_thread: values.flag(&SQTHREAD_POLL),
            kernel_thread_cpu: number(&SQTHREAD_POLL_CPU),
            polled: values.flag(&HIPRI),
            vectored: values.number(&NONVECTORED) == Some(0),
            force_async: number(&FORCE_ASYNC).unwrap_or(0),
            uncached: values.flag(&UNCACHED),
            nowait: values.flag(&NOWAIT),
            nops: values.flag(&NOPS),
            plain_descriptor: values.flag(&PLAIN_DESCRIPTOR),
            pollable: values.flag(&POLLABLE),
        }
    }
}

impl Options {
    const fn ring_use(&self) -> RingUse {
        RingUse {
            engine: INFO.name,
            fixed_buffers: self.fixed_buffers,
            kernel_thread_cpu: self.kernel_thread_cpu,
        }
    }
}

/// `io_uring`: one ring, its buffers, and the job's files.
///
/// An op costs one submission entry; a turn of the loop makes one `io_uring_enter` that submits,
/// runs task work and waits (none with `sqthread_poll`). Trims and file-system syncs, which the
/// ring does not take, run as plain system calls while the queue is empty. A second ring for
/// completions only, or a reaping thread, was rejected: each would move every completion between
/// processors.
pub struct Uring {
    ring: Ring,
    clock: Clock,
    files: Files,
    polled: bool,
    /// Completions make the descriptor readable.
    pollable: bool,
    /// Prepared trim or sync that the ring cannot take; the queue is otherwise empty.
    exclusive: ExclusiveOp,
    /// Error by which the ring became unusable.
    broken: Option<EngineError>,
}

/// Starts the engine, with metadata if the job has some.
pub(crate) fn start(config: &EngineConfig) -> Result<AnyEngine, EngineError> {
    match config.options.number(&MD_PER_IO_SIZE) {
        None | Some(0) => Uring::start(config).map(AnyEngine::Uring),
        Some(_) => {
            let engine = UringWithMetadata::start(config)?;
            Ok(AnyEngine::Boxed(Box::new(engine)))
        }
    }
}

impl Uring {
    pub(crate) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        Self::with_metadata(config, 0, None)
    }

    /// Starts an engine whose slots have second buffers of this size, for metadata of reads and
    /// writes.
    fn with_metadata(
        config: &EngineConfig,
        metadata_bytes: u32,
        integrity: Option<IntegrityChecks>,
    ) -> Result<Self, EngineError> {
        let options = Options::from(&config.options);
        check(config, options)?;
        let ring = Ring::new(&RingConfig {
            slots: config.depth,
            buffer_bytes: config.buffer_bytes,
            memory: config.memory.clone(),
            extra_bytes: metadata_bytes,
            files: u32::try_from(config.files.len()).unwrap_or(u32::MAX),
            fixed_buffers: options.fixed_buffers,
            fixed_files: options.fixed_files,
            kernel_thread: options.kernel_thread,
            kernel_thread_cpu: options.kernel_thread_cpu,
            polled: options.polled,
            by_workers: !options.nops && needs_workers(&config.files),
            vectored: options.vectored,
            force_async: options.force_async,
            nops: options.nops,
            plain_descriptor: options.plain_descriptor,
            pollable: options.pollable,
            flags: RwFlags::new(false, options.nowait, options.uncached),
            atomic_writes: config.atomic_write_bytes > 0,
            write_streams: config.write_streams.clone(),
            random_streams: config.random_streams,
            integrity,
        });
        Ok(Self {
            ring: ring.map_err(|error| start_error(config, &options.ring_use(), &error))?,
            clock: config.clock,
            files: Files::new(config),
            polled: options.polled,
            pollable: options.pollable && !options.polled,
            exclusive: ExclusiveOp::default(),
            broken: None,
        })
    }

    /// Returns the number of system calls made for ops.
    #[must_use]
    #[inline]
    pub const fn system_calls(&self) -> u64 {
        self.ring.calls()
    }

    /// Returns the kernel's optional features in use, and those that it lacks.
    pub(crate) fn features(&self) -> Vec<String> {
        let used = self.ring.features().iter().map(|&name| name.to_owned());
        let refused = self.ring.refused().iter();
        used.chain(refused.map(|name| format!("{name} refused by the kernel")))
            .collect()
    }

    /// Executes an op that the ring cannot take.
    #[cold]
    fn submit_exclusive(&mut self) -> Submitted {
        self.exclusive.submit(&self.clock, |op| {
            let result = self.files.perform_dataless(op);
            self.ring.complete(op.slot, result);
        })
    }

    /// Keeps the error by which the ring became unusable; the next `wait` returns it.
    #[cold]
    fn fail(&mut self, error: &io::Error) {
        self.broken
            .get_or_insert_with(|| broken("io_uring_enter", "io_uring", error));
    }
}

impl Engine for Uring {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: true,
            // A ring with IORING_SETUP_IOPOLL takes only reads and writes.
            syncs: match self.polled {
                true => Queueing::Inline,
                false => Queueing::Queued,
            },
            trims: Queueing::Inline,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        self.files.open(file)?;
        let registered = self.ring.set_file(file.get(), self.files.descriptor(file));
        registered.map_err(|error| {
            self.files.error(
                EngineStep::Call("register file"),
                file,
                &error,
                String::new(),
            )
        })
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let taken_out = self.ring.set_file(file.get(), None);
        taken_out.map_err(|error| {
            self.files.error(
                EngineStep::Call("unregister file"),
                file,
                &error,
                String::new(),
            )
        })?;
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
        self.ring.buffer(slot)
    }

    // Always inlined, with all it calls: passing the op in registers saves 30 instructions.
    #[inline(always)]
    fn prepare(&mut self, op: &Op) {
        let queued = match op.kind {
            OpKind::Data(Direction::Read | Direction::Write) => true,
            OpKind::Data(Direction::Trim) => false,
            OpKind::Sync(SyncKind::FileSystem) => false,
            OpKind::Sync(_) => !self.polled,
        };
        if queued {
            self.ring.push(op, || self.files.descriptor(op.file));
        } else {
            self.exclusive.prepare(*op, self.ring.queued());
        }
    }

    #[inline(always)]
    fn prepare_many(&mut self, op: &Op, slots: &[Slot], offset: impl FnMut() -> u64) {
        assert!(
            matches!(op.kind, OpKind::Data(Direction::Read | Direction::Write)),
            "others go one by one"
        );
        let file = self.files.descriptor(op.file);
        self.ring.push_many(op, slots, offset, file);
    }

    #[inline(always)]
    fn submit(&mut self, want: u32) -> Submitted {
        if self.exclusive.is_prepared() {
            return self.submit_exclusive();
        }
        if let Err(error) = self.ring.submit(want) {
            self.fail(&error);
        }
        let now = self.clock.now();
        Submitted::Issued { issue: now, now }
    }

    #[inline(always)]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.ring.reap(out)
    }

    #[inline]
    fn reaped_at(&mut self) -> Option<Tick> {
        self.ring.has_looked().then(|| self.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let span = until.map(|until| until - self.clock.now());
        self.ring
            .wait(min, span)
            .map_err(|error| broken("io_uring_enter", "io_uring", &error))
    }

    fn release(&mut self, slot: Slot) {
        self.ring.release(slot);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pollable.then(|| self.ring.descriptor())
    }
}

/// Returns the check of a job's files: `hipri` needs a device with polled queues.
pub(crate) fn file_check(config: &EngineConfig) -> Option<FileCheck> {
    config.options.flag(&HIPRI).then_some(check_polling)
}

/// Refuses a file on a device without polled queues: the kernel would fail each op on it.
fn check_polling(opened: &File) -> Option<FileRefusal> {
    let metadata = opened.metadata().ok()?;
    let device = match FileKind::of(&metadata) {
        FileKind::Block => DeviceNumber::of_node(&metadata),
        _ => DeviceNumber::under(&metadata),
    };
    // A partition has no queue directory of its own; its disk's is one level up.
    let polls = ["queue/io_poll", "../queue/io_poll"]
        .iter()
        .find_map(|name| std::fs::read_to_string(format!("/sys/dev/block/{device}/{name}")).ok());
    // No queue in sysfs (a network file system): let the ops themselves succeed or fail.
    (polls?.trim() == "0").then_some(FileRefusal {
        step: EngineStep::Option(HIPRI.name),
        errno: Errno::EOPNOTSUPP,
        hint: "the device has no polled queues: leave out hipri, or load its driver with some \
               (nvme: poll_queues=N)",
    })
}

/// Returns true if the kernel will execute the job's ops in worker threads, because the driver does
/// not support non-blocking attempts. Checks the first file only: a job's files usually share a
/// device.
fn needs_workers(files: &[EngineFile]) -> bool {
    let Some(path) = files.first().map(|file| Path::new(&file.path)) else {
        return false;
    };
    // Opening a FIFO or a terminal could block.
    let plain = std::fs::metadata(path).is_ok_and(|metadata| {
        matches!(FileKind::of(&metadata), FileKind::Regular | FileKind::Block)
    });
    let opened = plain.then(|| files::open(path, Access::default()));
    matches!(opened, Some(Ok(opened)) if !file_io::takes_nowait(Some(opened.as_fd())))
}

/// Refuses configurations that no kernel accepts.
fn check(config: &EngineConfig, options: Options) -> Result<(), EngineError> {
    check_ring(config, &options.ring_use())?;
    if options.polled && !config.direct {
        return Err(EngineError {
            step: EngineStep::Option(HIPRI.name),
            target: "engine `io_uring`".into(),
            errno: None,
            hint: "polling needs direct I/O: set direct=1".into(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fathom_sys::clock::Clock;

    use super::*;
    use crate::built_in;

    fn config() -> EngineConfig {
        EngineConfig {
            depth: 64,
            buffer_bytes: 1 << 20,
            ..EngineConfig::new(built_in("io_uring"), Clock::monotonic())
        }
    }

    fn options() -> Options {
        Options::from(&EngineValues::default())
    }

    #[track_caller]
    fn check_workers(path: &str, want: bool) {
        let path = path.into();
        let file = EngineFile {
            path,
            ..EngineFile::default()
        };
        assert_eq!(needs_workers(&[file]), want);
    }

    #[test]
    fn a_driver_that_cannot_refuse_to_wait_needs_workers() {
        check_workers("/proc/version", true);
        check_workers("/dev/null", false);
        check_workers("/no/such/file", false);
        assert!(!needs_workers(&[]));
    }

    #[track_caller]
    fn check_refused(change: impl FnOnce(&mut EngineConfig), want: &str) {
        let mut config = config();
        change(&mut config);
        let error = check(&config, Options::from(&config.options)).unwrap_err();
        assert!(error.hint.contains(want), "{error:?}");
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_without_asking_it() {
        check_refused(|config| config.depth = 40_000, "iodepth=32768");
        check_refused(
            |config| config.options = EngineValues::default().with(&HIPRI, 1),
            "direct=1",
        );
        let many = |config: &mut EngineConfig| {
            config.depth = 20_000;
            config.options = EngineValues::default().with(&FIXEDBUFS, 1);
        };
        check_refused(many, "iodepth=16384");
        assert_eq!(check(&config(), options()), Ok(()));
    }
}
