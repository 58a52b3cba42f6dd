//! `io_uring_cmd`: NVMe commands through a ring, past the block layer.

mod encode;
mod namespace;
mod options;
mod placement;
mod ranges;
mod results;
mod write_modes;
mod zoned;

use std::fs::File;
use std::io;
use std::mem;

use fathom_core::{
    Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineStep, Errno,
    FileIndex, Op, OpKind, Queueing, RemoteFile, Slot, Storage, Submitted, Synchronous, Tick,
    TrimRange, Zone, ZoneAction, ZoneReport, without_zones,
};
use fathom_nvme::{Opcode, zone_send_action};
use fathom_sys::clock::Clock;
use fathom_sys::file_io::RwFlags;
use fathom_sys::nvme::{self, CommandError};
use fathom_sys::uring::{CommandData, CommandRing, RingConfig};

use crate::error::broken;
use crate::exclusive::ExclusiveOp;
use crate::files::Files;
use crate::protection::OwnProtection;
use crate::uring::{RingUse, check_ring, start_error};
use crate::{EngineConfig, EngineFile, Registration};

pub(crate) use encode::extent;
use encode::{RANGE_BYTES, encode, put_range, refusal};
use namespace::{Namespace, check_node, look_up};
use options::Options;
use placement::Placement;
use ranges::Ranges;
use results::LOOK_INTERVAL;
use write_modes::WriteCommands;

/// Facts about `io_uring_cmd`.
pub(crate) static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::Device,
    write_streams: true,
    manages_zones: true,
    appends: Some(write_modes::appends),
    trim_ranges: true,
    kernel_threads: true,
    options: options::ALL,
    // Of `io_uring`: fio's two engines have one table.
    ignored_by_fio: &[
        "nowait",
        "uncached",
        "cmdprio_percentage",
        "cmdprio_class",
        "cmdprio",
        "cmdprio_hint",
        "cmdprio_bssplit",
    ],
    ..EngineInfo::new(
        "io_uring_cmd",
        "NVMe commands through io_uring, past the block layer (/dev/ng0n1)",
    )
};

/// Row of the registry.
pub(crate) const REGISTRATION: Registration = Registration {
    remote_file: Some(remote_file),
    zones: Some(zones),
    ..Registration::new(&INFO, |config| {
        Passthrough::start(config).map(crate::AnyEngine::Passthrough)
    })
};

/// `io_uring_cmd`: one ring of commands, its buffers, and the job's namespaces.
///
/// An op is one command: reads and writes, trims (Dataset Management; Zone Management Send for
/// those that reset zones), and syncs (Flush), all of which may be in flight together; on polled
/// queues, a sync and a reset wait for an empty queue. Its cost is that of `io_uring`, and the
/// encoding of the command.
///
/// The kernel checks nothing: the block size is that of the namespace when its file was opened, and
/// one that is formatted to another size under the job ends its ops with an error, at the latest a
/// second later.
pub struct Passthrough {
    ring: CommandRing,
    clock: Clock,
    options: Options,
    files: Files,
    paths: Box<[String]>,
    uses: Box<[FileUse]>,
    buffer_bytes: u32,
    /// By file; those of closed files are kept, to compare with when they are opened again.
    namespaces: Box<[Option<Namespace>]>,
    own_protection: Box<[Option<OwnProtection>]>,
    /// By slot.
    in_flight: Box<[CommandOp]>,
    writes: WriteCommands,
    /// The op that is prepared next is a read to be sent as a Compare.
    compares_next: bool,
    placement: Option<Box<Placement>>,
    /// Ranges of trims that have several.
    ranges: Option<Box<Ranges>>,
    /// Latest failure that a status or a check explains, for [`Engine::explain`].
    failure: Option<(Errno, String)>,
    /// A namespace has been formatted under the job: no op reaches it any more.
    reformatted: bool,
    /// Next look at the namespaces' formats.
    look_at: Tick,
    /// Prepared op without data, which a polled ring cannot take; the queue is otherwise empty.
    exclusive: ExclusiveOp,
    /// Error by which the ring became unusable.
    broken: Option<EngineError>,
}

/// Use that the job makes of a file.
#[derive(Clone, Copy, Debug)]
struct FileUse {
    reads: bool,
    writes: bool,
    /// It keeps to the zones of the namespace, and its trims reset them.
    keeps_to_zones: bool,
}

impl FileUse {
    const fn of(file: &EngineFile) -> Self {
        Self {
            reads: file.read,
            writes: file.write,
            keeps_to_zones: file.trims_reset_zones,
        }
    }
}

/// Command in flight.
#[derive(Clone, Copy, Debug, Default)]
struct CommandOp {
    /// Result of success.
    length: i32,
    /// It is a read that is sent as a Compare.
    compares: bool,
    /// Its namespace, if what it reads is to be checked.
    checked: Option<FileIndex>,
    first: u64,
    buffer_offset: u32,
}

impl Passthrough {
    pub(crate) fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::of(config)?;
        let ring_use = RingUse {
            engine: INFO.name,
            fixed_buffers: options.fixed_buffers,
            kernel_thread_cpu: options.kernel_thread_cpu,
        };
        check_ring(config, &ring_use)?;
        options.check()?;
        let ring = CommandRing::new(&RingConfig {
            slots: config.depth,
            buffer_bytes: config.buffer_bytes,
            extra_bytes: options
                .protection
                .metadata_bytes
                .max(RANGE_BYTES * config.trim_ranges),
            memory: config.memory.clone(),
            files: u32::try_from(config.files.len()).unwrap_or(u32::MAX),
            fixed_buffers: options.fixed_buffers,
            fixed_files: options.fixed_files,
            kernel_thread: options.kernel_thread,
            kernel_thread_cpu: options.kernel_thread_cpu,
            polled: options.polled,
            vectored: options.vectored,
            force_async: options.force_async,
            flags: RwFlags::new(false, false, false),
            ..RingConfig::default()
        });
        let ring = ring.map_err(|error| start_error(config, &ring_use, &error))?;
        // Commands have no page cache to bypass, and the kernel refuses the flags of one.
        let plain = EngineConfig {
            direct: false,
            sync_flag: 0,
            ..config.clone()
        };
        let mut own = Self {
            ring,
            clock: config.clock,
            options,
            files: Files::new(&plain),
            paths: config.files.iter().map(|file| file.path.clone()).collect(),
            uses: config.files.iter().map(FileUse::of).collect(),
            buffer_bytes: config.buffer_bytes,
            namespaces: config.files.iter().map(|_| None).collect(),
            own_protection: config.files.iter().map(|_| None).collect(),
            in_flight: vec![CommandOp::default(); config.depth as usize].into_boxed_slice(),
            writes: WriteCommands::new(options.write_modes),
            compares_next: false,
            placement: Placement::of(config).map(Box::new),
            ranges: Ranges::of(config).map(Box::new),
            failure: None,
            reformatted: false,
            look_at: Tick::ZERO,
            exclusive: ExclusiveOp::default(),
            broken: None,
        };
        own.look_at = own.clock.now() + LOOK_INTERVAL;
        Ok(own)
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

    /// Identifies an open namespace.
    fn identify(&self, file: FileIndex, device: &File) -> Result<Namespace, EngineError> {
        let (path, index) = (&self.paths[file.index()], file.index());
        let file_use = self.uses[index];
        let namespace = Namespace::identify(path, device, &self.options, file_use.keeps_to_zones)?;
        namespace.check(path, &self.options, self.buffer_bytes, file_use)?;
        let before = self.namespaces[index].as_ref();
        if before.is_some_and(|before| before.format != namespace.format) {
            return Err(EngineError {
                step: EngineStep::Open,
                target: path.clone(),
                errno: Some(Errno::EIO),
                hint: "the namespace was formatted while the run used it: run it again".into(),
            });
        }
        if let Some(placement) = self.placement.as_ref().filter(|_| file_use.writes) {
            placement.check(path, &namespace)?;
        }
        Ok(namespace)
    }

    /// Encodes an op and its data, and queues the command.
    #[inline]
    fn queue(&mut self, op: &Op) -> Result<(), Errno> {
        // Taken first, so that an op that is rejected leaves nothing to the next one.
        let compares = mem::take(&mut self.compares_next);
        if self.reformatted {
            return Err(Errno::EIO);
        }
        let index = op.file.index();
        let Some(namespace) = self.namespaces[index].as_ref() else {
            return Err(Errno::EBADF);
        };
        let placement = self.placement.as_mut().filter(|_| is_write(op));
        let identifier = placement.map(|own| own.next(op.offset, &namespace.placements));
        let opcode = match op.kind {
            OpKind::Data(Direction::Write) => self.writes.next(),
            _ if compares => Opcode::COMPARE,
            _ => Opcode::READ,
        };
        let mut encoded =
            encode(op, opcode, namespace, &self.options, identifier).ok_or(Errno::EINVAL)?;
        let own_protection = self.own_protection[index].as_ref();
        match op.kind {
            OpKind::Data(Direction::Trim) => {
                let buffer = self.ring.extra_buffer(op.slot);
                match &self.ranges {
                    Some(ranges) => ranges
                        .put(op.slot, namespace, &mut encoded, buffer)
                        .ok_or(Errno::EINVAL)?,
                    None if encoded.command.data != CommandData::None => {
                        put_range(buffer, (encoded.first, encoded.blocks));
                    }
                    None => {}
                }
            }
            OpKind::Data(Direction::Write) => {
                if let Some(own) = own_protection.filter(|_| encoded.command.moves_data()) {
                    let (data, metadata) =
                        (self.ring).data_and_metadata(op.slot, op.buffer_offset, op.length);
                    own.protect(encoded.first, data, metadata);
                }
            }
            OpKind::Data(Direction::Read) | OpKind::Sync(_) => {}
        }
        let reads = matches!(op.kind, OpKind::Data(Direction::Read));
        self.in_flight[op.slot.index()] = CommandOp {
            length: op.length.min(Completion::BYTES_MAX).cast_signed(),
            compares,
            checked: (reads && own_protection.is_some()).then_some(op.file),
            first: encoded.first,
            buffer_offset: op.buffer_offset,
        };
        let open = || self.files.descriptor(op.file);
        self.ring
            .push_command(op.slot, op.file.get(), open, &encoded.command);
        Ok(())
    }

    /// Executes an op that the ring cannot take.
    #[cold]
    fn submit_exclusive(&mut self) -> Submitted {
        let clock = self.clock;
        mem::take(&mut self.exclusive).submit(&clock, |op| {
            let result = self.perform(op);
            self.in_flight[op.slot.index()] = CommandOp {
                length: op.length.min(Completion::BYTES_MAX).cast_signed(),
                ..CommandOp::default()
            };
            self.ring.complete(op.slot, result);
        })
    }

    /// Performs a flush or the reset of a zone by a call of its own; returns 0 or an errno, as the
    /// ring does.
    fn perform(&mut self, op: &Op) -> i32 {
        let namespace = self.namespaces[op.file.index()].as_ref();
        let (Some(device), Some(namespace)) = (self.files.get(op.file), namespace) else {
            return Errno::EBADF.result();
        };
        let done = match (
            op.kind,
            encode(op, Opcode::READ, namespace, &self.options, None),
        ) {
            (OpKind::Sync(_), _) => nvme::flush(device, namespace.id),
            (OpKind::Data(_), Some(reset)) => {
                let action = zone_send_action(ZoneAction::Reset);
                nvme::manage_zone(device, namespace.id, reset.first, action)
            }
            (OpKind::Data(_), None) => return Errno::EINVAL.result(),
        };
        match done {
            Ok(()) => 0,
            Err(CommandError::Status(status)) => self.failed(status.into()),
            Err(CommandError::Call(error)) => Errno::of(&error).unwrap_or(Errno::EIO).result(),
        }
    }

    /// Returns whether a polled ring cannot take an op. Linux 6.1 takes commands without data on
    /// polled rings, but polls for them by a pointer that it has not set, and crashes.
    #[inline]
    fn is_exclusive(&self, op: &Op) -> bool {
        self.options.polled
            && match op.kind {
                OpKind::Sync(_) => true,
                OpKind::Data(Direction::Trim) => self.uses[op.file.index()].keeps_to_zones,
                OpKind::Data(Direction::Read | Direction::Write) => false,
            }
    }

    /// Completes an op that cannot be a command.
    #[cold]
    fn reject(&mut self, op: &Op, errno: Errno) {
        let namespace = self.namespaces[op.file.index()].as_ref();
        if let (Errno::EINVAL, Some(namespace)) = (errno, namespace) {
            self.failure = Some((errno, refusal(op, namespace)));
        }
        self.ring.complete(op.slot, errno.result());
    }

    /// Keeps the error by which the ring became unusable; the next `wait` returns it.
    #[cold]
    fn fail(&mut self, error: &io::Error) {
        self.broken
            .get_or_insert_with(|| broken("io_uring_enter", INFO.name, error));
    }
}

impl Engine for Passthrough {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: false,
            moves_data: true,
            syncs: match self.options.polled {
                true => Queueing::Alone,
                false => Queueing::Queued,
            },
            trims: match self.options.polled && self.uses.iter().any(|file| file.keeps_to_zones) {
                true => Queueing::Alone,
                false => Queueing::Queued,
            },
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        check_node(&self.paths[file.index()])?;
        self.files.open(file)?;
        let opened = self
            .files
            .get(file)
            .map(|device| self.identify(file, device));
        let namespace = match opened {
            Some(Ok(namespace)) => namespace,
            Some(Err(error)) => {
                self.files.close(file)?;
                return Err(error);
            }
            None => return self.files.close(file),
        };
        self.own_protection[file.index()] =
            OwnProtection::of(&namespace.format, &self.options.protection);
        self.namespaces[file.index()] = Some(namespace);
        let registered = self.ring.set_file(file.get(), self.files.descriptor(file));
        registered.map_err(|error| {
            let step = EngineStep::Call("register file");
            self.files.error(step, file, &error, String::new())
        })
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let taken_out = self.ring.set_file(file.get(), None);
        taken_out.map_err(|error| {
            let step = EngineStep::Call("unregister file");
            self.files.error(step, file, &error, String::new())
        })?;
        self.files.close(file)
    }

    fn manage_zone(
        &mut self,
        file: FileIndex,
        action: ZoneAction,
        zone: &Zone,
    ) -> Result<(), EngineError> {
        let path = &self.paths[file.index()];
        match (self.files.get(file), &self.namespaces[file.index()]) {
            (Some(device), Some(own)) => own.manage_zone(path, device, action, zone),
            _ => Err(without_zones(action.name())),
        }
    }

    fn report_zone(&mut self, file: FileIndex, offset: u64) -> Result<Zone, EngineError> {
        let path = &self.paths[file.index()];
        match (self.files.get(file), &self.namespaces[file.index()]) {
            (Some(device), Some(own)) => own.report_zone(path, device, offset),
            _ => Err(without_zones("report zones")),
        }
    }

    #[inline]
    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.ring.buffer(slot)
    }

    fn set_ranges(&mut self, slot: Slot, ranges: &[TrimRange]) {
        if let Some(own) = &mut self.ranges {
            own.set(slot, ranges);
        }
    }

    fn compare_next(&mut self, _slot: Slot) {
        self.compares_next = true;
    }

    #[inline]
    fn prepare(&mut self, op: &Op) {
        if self.is_exclusive(op) {
            return self.exclusive.prepare(*op, self.ring.in_flight());
        }
        if let Err(errno) = self.queue(op) {
            self.reject(op, errno);
        }
    }

    #[inline]
    fn submit(&mut self, want: u32) -> Submitted {
        if self.exclusive.is_prepared() {
            return self.submit_exclusive();
        }
        if let Err(error) = self.ring.submit(want) {
            self.fail(&error);
        }
        let now = self.clock.now();
        if now >= self.look_at {
            self.look_at_formats();
        }
        Submitted::Issued { issue: now, now }
    }

    #[inline]
    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = self.ring.reap(out);
        for completion in &mut out[..count] {
            completion.result = self.result(completion.slot, completion.result);
        }
        count
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
            .map_err(|error| broken("io_uring_enter", INFO.name, &error))
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        let (own, text) = self.failure.as_ref()?;
        (*own == errno).then(|| text.clone())
    }
}

/// Looks up a namespace before a run.
fn remote_file(config: &EngineConfig) -> Result<RemoteFile, EngineError> {
    let options = Options::of(config)?;
    let file = config.files.first().map_or("", |file| &file.path);
    look_up(file, &options)
}

/// Reads the zones of a namespace before a run.
fn zones(config: &EngineConfig) -> Result<Option<ZoneReport>, EngineError> {
    let options = Options::of(config)?;
    let file = config.files.first().map_or("", |file| &file.path);
    zoned::look_up(file, &options)
}

const fn is_write(op: &Op) -> bool {
    matches!(op.kind, OpKind::Data(Direction::Write))
}
