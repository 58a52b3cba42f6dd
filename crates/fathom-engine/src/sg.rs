//! `sg`: SCSI commands, past the block layer.

mod device;
mod encode;
mod options;
mod unmap;

use std::io;

use fathom_core::{
    Batches, Capabilities, Completion, Direction, Engine, EngineError, EngineInfo, EngineStep,
    Errno, FileIndex, Op, OpKind, Queueing, RemoteFile, Slot, Storage, Submitted, Synchronous,
    Tick,
};
use fathom_sys::clock::Clock;
use fathom_sys::scsi::{NodeKind, ScsiQueue};

use crate::error::{broken, no_memory};
use crate::scsi::{blocks, cdb, outcome};
use crate::serial::whole;
use crate::{AnyEngine, EngineConfig, Registration};

use device::{Device, check_node, look_up};
use encode::Encoded;
use options::Options;
use unmap::Unmap;

/// Facts about `sg`.
static INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::AtDepthOne,
    batches: Batches::Trims,
    storage: Storage::Device,
    options: options::ALL,
    different: "no `hipri`, which stock kernels ignore",
    ..EngineInfo::new(
        "sg",
        "SCSI commands, past the block layer (/dev/sg0, /dev/sda, /dev/bsg/0:0:0:0)",
    )
};

/// Row of the registry.
pub(crate) const REGISTRATION: Registration = Registration {
    remote_file: Some(remote_file),
    ..Registration::new(&INFO, |config| {
        Ok(AnyEngine::Boxed(Box::new(Sg::start(config)?)))
    })
};

/// `sg`: one queue of commands, its buffers, and the job's disks.
///
/// An op is one command: reads and writes, trims (UNMAP), and syncs (SYNCHRONIZE CACHE), all of
/// which may be in flight together; trims that are submitted together share an UNMAP. The SCSI
/// generic driver takes and returns each command by a system call of its own; block devices and bsg
/// devices execute one at a time, and so does the engine on them.
struct Sg {
    queue: ScsiQueue,
    clock: Clock,
    options: Options,
    depth: u32,
    paths: Box<[String]>,
    writes: Box<[bool]>,
    /// By file; those of closed files are kept, to compare with when they are opened again.
    devices: Box<[Option<Device>]>,
    /// By slot.
    in_flight: Box<[CommandOp]>,
    /// Trims that are prepared and not yet queued.
    unmap: Unmap,
    /// Reason of the first failure with each errno, which is the one that a job reports.
    failures: Vec<(Errno, String)>,
    /// Error by which the queue became unusable.
    broken: Option<EngineError>,
}

/// Command in flight.
#[derive(Clone, Copy, Debug, Default)]
struct CommandOp {
    /// Result of success.
    length: i32,
    /// Bytes to be transferred.
    transferred: u32,
    /// The device may limit its blocks apart from those of transfers.
    has_limit: bool,
}

impl CommandOp {
    const fn of(length: i32, encoded: &Encoded) -> Self {
        Self {
            length,
            transferred: encoded.transferred,
            has_limit: encoded.has_limit,
        }
    }
}

impl Sg {
    fn start(config: &EngineConfig) -> Result<Self, EngineError> {
        let options = Options::of(config)?;
        let mut depth = config.depth;
        for file in &config.files {
            if check_node(&file.path)?.kind != NodeKind::Generic {
                depth = 1;
            }
        }
        let unmap = Unmap::new(depth);
        let queue = ScsiQueue::new(
            depth,
            config.buffer_bytes,
            cdb::unmap_list_bytes(unmap.room()).into(),
            config.files.len(),
            &config.memory,
        )
        .map_err(|error| no_memory(config, &error))?;
        Ok(Self {
            queue,
            clock: config.clock,
            options,
            depth,
            paths: config.files.iter().map(|file| file.path.clone()).collect(),
            writes: config.files.iter().map(|file| file.write).collect(),
            devices: config.files.iter().map(|_| None).collect(),
            in_flight: vec![CommandOp::default(); depth as usize].into_boxed_slice(),
            unmap,
            failures: Vec::new(),
            broken: None,
        })
    }

    const fn is_synchronous(&self) -> bool {
        INFO.synchronous.at_depth(self.depth)
    }

    /// Encodes an op, and queues the command.
    fn queue(&mut self, op: &Op) -> Result<(), Errno> {
        let device = self.devices[op.file.index()];
        let is_open = self.queue.device(op.file.get()).is_some();
        let device = device.filter(|_| is_open).ok_or(Errno::EBADF)?;
        let encoded = match op.kind {
            OpKind::Data(Direction::Trim) => return self.gather(op, &device),
            OpKind::Data(Direction::Read) => encode::read(op, &device, &self.options),
            OpKind::Data(Direction::Write) => encode::write(op, &device, &self.options),
            OpKind::Sync(_) => Some(encode::sync()),
        };
        let encoded = encoded.ok_or(Errno::EINVAL)?;
        self.queue_unmap();
        self.in_flight[op.slot.index()] = CommandOp::of(whole(op), &encoded);
        self.queue.push(op.slot, op.file.get(), &encoded.command);
        Ok(())
    }

    /// Adds a trim to those before it, which are queued if the device does not take it with them.
    fn gather(&mut self, op: &Op, device: &Device) -> Result<(), Errno> {
        let range = blocks::extent(op, device.capacity.block_bytes).ok_or(Errno::EINVAL)?;
        if !self.unmap.takes(op.file, range, device.unmaps) {
            self.queue_unmap();
        }
        self.unmap.add(op.slot, op.file, range);
        self.in_flight[op.slot.index()].length = whole(op);
        Ok(())
    }

    /// Queues the gathered trims as one command.
    fn queue_unmap(&mut self) {
        let [leader, others @ ..] = &self.unmap.slots[..] else {
            return;
        };
        let (leader, ranges) = (*leader, &self.unmap.ranges);
        let encoded = encode::unmap(self.unmap.count());
        cdb::write_unmap_list(ranges, self.queue.parameters(leader));
        self.queue
            .push(leader, self.unmap.file().get(), &encoded.command);
        // They complete in the order of their ranges.
        for &slot in others.iter().rev() {
            self.queue.join(slot, leader);
        }
        for &slot in &self.unmap.slots {
            let op = &mut self.in_flight[slot.index()];
            *op = CommandOp::of(op.length, &encoded);
        }
        self.unmap.clear();
    }

    /// Completes an op that cannot be a command.
    #[cold]
    fn reject(&mut self, op: &Op, errno: Errno) {
        if errno == Errno::EINVAL {
            let bytes = self.devices[op.file.index()].as_ref();
            let bytes = bytes.map_or(0, |device| device.capacity.block_bytes);
            self.explained(errno, || {
                format!("not a whole number of {bytes} B blocks, or more than fit")
            });
        }
        self.queue.complete(op.slot, errno.result());
    }

    /// Returns the result of a completed op, given what the queue has of it.
    fn result(&mut self, slot: Slot, result: i32) -> i32 {
        if result != 0 {
            self.refused(result);
            return result;
        }
        let op = self.in_flight[slot.index()];
        let outcome = self.queue.outcome(slot);
        let Some(why) = outcome::failure(outcome, op.transferred) else {
            return op.length;
        };
        let why = match op.has_limit {
            true => outcome::advise_limits(outcome, why),
            false => why,
        };
        self.explained(Errno::EIO, || why);
        Errno::EIO.result()
    }

    /// Explains why the kernel did not take a command.
    #[cold]
    fn refused(&mut self, result: i32) {
        let errno = Errno::try_from(-result).unwrap_or(Errno::EIO);
        if [Errno::EINVAL, Errno::ENOMEM].contains(&errno) {
            // An op that did not become a command has its own reason, and has given it already.
            self.explained(errno, || {
                "the kernel does not take so long a command: see max_hw_sectors_kb and \
                 max_segments in /sys/block/…/queue, and lower bs"
                    .into()
            });
        }
    }

    /// Keeps the reason of the first failure with an errno.
    #[cold]
    fn explained(&mut self, errno: Errno, why: impl FnOnce() -> String) {
        if self.explain(errno).is_none() {
            self.failures.push((errno, why()));
        }
    }

    /// Keeps the error by which the queue became unusable; the next `wait` returns it.
    #[cold]
    fn fail(&mut self, error: &io::Error) {
        self.broken
            .get_or_insert_with(|| broken("read", INFO.name, error));
    }

    /// Waits for `want` completions.
    fn await_completions(&mut self, want: u32) {
        if let Err(error) = self.queue.wait(want, None) {
            self.fail(&error);
        }
    }

    /// Submits one op and waits for it, whatever signals arrive.
    fn perform(&mut self) -> Submitted {
        let issue = self.clock.now();
        self.queue.submit();
        while self.queue.in_kernel() > 0 && self.broken.is_none() {
            self.await_completions(1);
        }
        let now = self.clock.now();
        Submitted::Issued { issue, now }
    }
}

impl Engine for Sg {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: INFO.name,
            synchronous: self.is_synchronous(),
            moves_data: true,
            syncs: Queueing::Queued,
            trims: Queueing::Queued,
        }
    }

    fn open(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let (path, writes) = (&self.paths[file.index()], self.writes[file.index()]);
        let node = check_node(path)?;
        let opening = device::open(path, node.kind, writes, self.depth)?;
        let device = Device::identify(path, &opening, &self.options, writes)?;
        let before = self.devices[file.index()].replace(device);
        self.queue.open(file.get(), opening);
        if before.is_some_and(|before| !before.is_like(&device)) {
            self.close(file)?;
            return Err(EngineError {
                step: EngineStep::Open,
                target: self.paths[file.index()].clone(),
                errno: Some(Errno::EIO),
                hint: "the disk's capacity changed while the run used it: run it again".into(),
            });
        }
        Ok(())
    }

    fn close(&mut self, file: FileIndex) -> Result<(), EngineError> {
        let path = &self.paths[file.index()];
        let device = self.devices[file.index()].as_ref();
        let released = match (device, self.queue.device(file.get())) {
            (Some(device), Some(opening)) => device.release(path, opening),
            _ => Ok(()),
        };
        if !self.queue.close(file.get()) {
            return Err(EngineError {
                step: EngineStep::Call("close"),
                target: path.clone(),
                errno: Some(Errno::EBADF),
                hint: String::new(),
            });
        }
        released
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.queue.buffer(slot)
    }

    fn prepare(&mut self, op: &Op) {
        if let Err(errno) = self.queue(op) {
            self.reject(op, errno);
        }
    }

    fn submit(&mut self, want: u32) -> Submitted {
        self.queue_unmap();
        if self.is_synchronous() {
            return self.perform();
        }
        self.queue.submit();
        let issue = self.clock.now();
        if want == 0 {
            return Submitted::Issued { issue, now: issue };
        }
        // Submission and waiting are separate system calls here, so the issue time excludes the
        // wait.
        self.await_completions(want);
        let now = self.clock.now();
        Submitted::Issued { issue, now }
    }

    fn reap(&mut self, out: &mut [Completion]) -> usize {
        let count = match self.queue.reap(out) {
            Ok(count) => count,
            Err(error) => {
                self.fail(&error);
                0
            }
        };
        for completion in &mut out[..count] {
            completion.result = self.result(completion.slot, completion.result);
        }
        count
    }

    fn reaped_at(&mut self) -> Option<Tick> {
        self.queue.has_looked().then(|| self.clock.now())
    }

    fn wait(&mut self, min: u32, until: Option<Tick>) -> Result<(), EngineError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let span = until.map(|until| until - self.clock.now());
        self.queue
            .wait(min, span)
            .map_err(|error| broken("read", INFO.name, &error))
    }

    fn explain(&self, errno: Errno) -> Option<String> {
        let known = self.failures.iter().find(|(own, _)| *own == errno);
        known.map(|(_, text)| text.clone())
    }
}

/// Looks up a disk before a run.
fn remote_file(config: &EngineConfig) -> Result<RemoteFile, EngineError> {
    look_up(config.files.first().map_or("", |file| &file.path))
}
