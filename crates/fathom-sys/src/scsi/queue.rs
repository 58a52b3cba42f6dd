//! Commands of one worker, in flight on its SCSI devices.
//!
//! ```text
//! push(slot) ─► prepared ─ submit: write(2) ─► the driver ─ read(2) ─► ready ─► reap
//!                       └─ submit: SG_IO ─────────────────────────────┘
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use fathom_core::{Completion, Nanos, Slot};

use super::header::{self, Addresses, HeaderV3, Reply};
use super::{Cdb, NodeKind, SENSE_BYTES_MAX, ScsiCommand, ScsiData, ScsiOutcome};
use crate::clock;
use crate::in_flight::{InFlight, Ready};
use crate::memory::{Buffers, MemoryPlacement};

/// Queue of SCSI commands, with the buffers and the in-flight table of one worker.
///
/// `push` queues a command, `submit` sends all queued ones, `reap` collects completions, whose
/// [`outcome`](Self::outcome) is kept until the slot's next command. A command owns its slot's
/// buffer from `push` until `reap` has returned its completion. Several ops may share a command
/// ([`join`](Self::join)). A command costs a `write(2)` and a `read(2)` on nodes of the SCSI
/// generic driver, which takes no batches, and one `ioctl(2)` on others. Dropping a busy queue
/// waits up to 30 s, then leaks the memory that the kernel may still access.
pub struct ScsiQueue {
    /// Freed by `drop` once nothing is in flight, else leaked.
    buffers: ManuallyDrop<Buffers>,
    /// One per slot; the kernel reads commands and writes sense here. As `buffers`.
    memory: ManuallyDrop<Box<[SlotMemory]>>,
    /// Parameter lists. As `buffers`.
    lists: ManuallyDrop<Buffers>,
    /// By slot.
    commands: Box<[Command]>,
    /// By file.
    devices: Box<[Option<Opening>]>,
    prepared: Vec<Slot>,
    in_flight: InFlight,
    /// Commands in the kernel.
    count: u32,
    ready: Ready,
    /// Argument of `poll(2)`.
    polled: Vec<libc::pollfd>,
    calls: u64,
    /// The last `reap` made a system call.
    looked: bool,
}

/// An opened device.
#[derive(Debug)]
pub struct Opening {
    kind: NodeKind,
    lanes: Box<[Lane]>,
}

/// One opened file of a device. The SCSI generic driver takes only so many commands on each.
#[derive(Debug)]
struct Lane {
    file: File,
    /// Commands in the kernel.
    count: u32,
}

/// Memory of a slot that a header names.
#[derive(Clone, Copy, Debug)]
struct SlotMemory {
    cdb: Cdb,
    sense: [u8; SENSE_BYTES_MAX],
}

/// Command of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Command {
    file: u32,
    data: ScsiData,
    /// Number of its stay in the kernel.
    user_data: u64,
    outcome: ScsiOutcome,
    /// Next of the slots that share the command.
    next: Option<Slot>,
}

impl Opening {
    /// Opens a node for up to `depth` commands at a time; those other than of the SCSI generic
    /// driver execute one after the other.
    ///
    /// # Errors
    /// The error of `open(2)`: `EBUSY` if another process has the node opened exclusively.
    pub fn open(path: &Path, kind: NodeKind, writes: bool, depth: u32) -> io::Result<Self> {
        let (lanes, flags) = match kind {
            // Without it, opening and reading would wait.
            NodeKind::Generic => (depth.div_ceil(LANE_COMMANDS), libc::O_NONBLOCK),
            NodeKind::Block | NodeKind::Bsg => (1, 0),
        };
        let open = || {
            let file = OpenOptions::new()
                .read(true)
                // Commands are written to the node of the driver, those that read, too.
                .write(writes || kind == NodeKind::Generic)
                .custom_flags(flags | libc::O_NOCTTY)
                .open(path)?;
            Ok(Lane { file, count: 0 })
        };
        Ok(Self {
            kind,
            lanes: (0..lanes.max(1))
                .map(|_| open())
                .collect::<io::Result<_>>()?,
        })
    }

    /// Sends one command that reads, as [`super::execute`].
    ///
    /// # Errors
    /// As [`super::execute`].
    pub fn execute(&self, cdb: &Cdb, answer: &mut [u8]) -> io::Result<ScsiOutcome> {
        super::execute(&self.lanes[0].file, self.kind, cdb, answer)
    }

    /// Returns the lane of a slot's commands.
    fn lane(&mut self, slot: Slot) -> &mut Lane {
        let lane = match self.kind {
            NodeKind::Generic => slot.index() / LANE_COMMANDS as usize,
            NodeKind::Block | NodeKind::Bsg => 0,
        };
        &mut self.lanes[lane]
    }
}

impl ScsiQueue {
    /// Creates a queue of `slots` commands, each with a buffer of `buffer_bytes` and a parameter
    /// list of up to `parameter_bytes`, on up to `files` devices.
    ///
    /// # Errors
    /// The error of mapping the buffers.
    ///
    /// # Panics
    /// If there are no slots or no bytes.
    pub fn new(
        slots: u32,
        buffer_bytes: u32,
        parameter_bytes: u32,
        files: usize,
        memory: &MemoryPlacement,
    ) -> io::Result<Self> {
        let count = slots as usize;
        Ok(Self {
            buffers: ManuallyDrop::new(Buffers::within(memory, slots, buffer_bytes)?),
            memory: ManuallyDrop::new(vec![SlotMemory::EMPTY; count].into_boxed_slice()),
            lists: ManuallyDrop::new(Buffers::new(slots, parameter_bytes)?),
            commands: vec![Command::default(); count].into_boxed_slice(),
            devices: (0..files).map(|_| None).collect(),
            prepared: Vec::with_capacity(count),
            in_flight: InFlight::new(slots),
            count: 0,
            ready: Ready::new(slots),
            polled: Vec::new(),
            calls: 0,
            looked: false,
        })
    }

    /// Adds an opened device.
    pub fn open(&mut self, file: u32, device: Opening) {
        self.devices[file as usize] = Some(device);
        let lanes = self.devices.iter().flatten();
        let lanes = lanes.map(|device| device.lanes.len()).sum();
        self.polled.clear();
        self.polled.reserve(lanes);
    }

    /// Takes a device out, and closes it; false if it was not open.
    ///
    /// # Panics
    /// If commands of its are in flight.
    pub fn close(&mut self, file: u32) -> bool {
        let device = self.devices[file as usize].take();
        let Some(device) = device else {
            return false;
        };
        assert!(
            device.lanes.iter().all(|lane| lane.count == 0),
            "closed with commands in flight"
        );
        true
    }

    /// Returns an open device.
    #[must_use]
    pub fn device(&self, file: u32) -> Option<&Opening> {
        self.devices[file as usize].as_ref()
    }

    /// Queues a command to an open file.
    ///
    /// # Panics
    /// If the slot is in flight, the file is not open, or the data are outside of the buffer.
    pub fn push(&mut self, slot: Slot, file: u32, command: &ScsiCommand) {
        assert!(self.devices[file as usize].is_some(), "not open");
        let user_data = self.in_flight.begin(slot);
        self.memory[slot.index()].cdb = command.cdb;
        self.commands[slot.index()] = Command {
            file,
            data: command.data,
            user_data,
            outcome: ScsiOutcome::default(),
            next: None,
        };
        // Checks the place, before anything is sent.
        let _addresses = self.addresses(slot);
        self.prepared.push(slot);
    }

    /// Adds an op to the command that was queued last, in the slot `leader`: both complete with it,
    /// and have its outcome.
    ///
    /// # Panics
    /// If the slot is in flight, or another command was queued last.
    pub fn join(&mut self, slot: Slot, leader: Slot) {
        assert_eq!(self.prepared.last(), Some(&leader), "another command");
        let user_data = self.in_flight.begin(slot);
        let first = &mut self.commands[leader.index()];
        let next = first.next.replace(slot);
        self.commands[slot.index()] = Command {
            user_data,
            next,
            ..Command::default()
        };
    }

    /// Returns the parameter list of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub fn parameters(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.lists.get(slot)
    }

    /// Adds the completion of an op that cannot be a command.
    pub fn complete(&mut self, slot: Slot, result: i32) {
        let data = self.in_flight.begin(slot);
        self.ready.push(self.in_flight.end(data), result);
    }

    /// Sends all queued commands. Those that the kernel refuses complete with its error.
    pub fn submit(&mut self) {
        for index in 0..self.prepared.len() {
            let slot = self.prepared[index];
            let Some(device) = &self.devices[self.commands[slot.index()].file as usize] else {
                continue;
            };
            match device.kind {
                NodeKind::Generic => self.write(slot),
                NodeKind::Block | NodeKind::Bsg => self.perform(slot),
            }
        }
        self.prepared.clear();
    }

    /// Collects completions without waiting and returns the number of entries filled in `out`. The
    /// result of a command that has an [`outcome`](Self::outcome) is 0, that of others a negated
    /// errno.
    ///
    /// # Errors
    /// The error of `read(2)`; the queue can no longer be used.
    ///
    /// # Panics
    /// If the kernel completes a command that is not in flight.
    pub fn reap(&mut self, out: &mut [Completion]) -> io::Result<usize> {
        if self.ready.count() == 0 && self.count > 0 {
            self.read()?;
            self.looked = true;
        }
        Ok(self.ready.take(out))
    }

    /// Returns, once, whether the last `reap` made a system call to find its completions.
    pub fn has_looked(&mut self) -> bool {
        std::mem::take(&mut self.looked)
    }

    /// Sleeps until `min` completions can be reaped, `span` has passed or a signal arrives; `None`
    /// waits indefinitely.
    ///
    /// # Errors
    /// The error of `poll(2)` or `read(2)`; the queue can no longer be used.
    pub fn wait(&mut self, min: u32, span: Option<Nanos>) -> io::Result<()> {
        let deadline = span.map(|span| clock::monotonic_ns().saturating_add(span.get()));
        let min = min as usize;
        while self.ready.count() < min && self.count > 0 {
            if !self.poll(deadline)? {
                return Ok(());
            }
            self.read()?;
        }
        Ok(())
    }

    /// Returns the outcome of the slot's latest command.
    #[must_use]
    pub fn outcome(&self, slot: Slot) -> &ScsiOutcome {
        &self.commands[slot.index()].outcome
    }

    /// Returns the buffer of a slot that is not in flight.
    ///
    /// # Panics
    /// If the slot is in flight.
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        self.buffers.get(slot)
    }

    /// Returns the number of commands in the kernel.
    #[must_use]
    pub const fn in_kernel(&self) -> u32 {
        self.count
    }

    /// Returns the number of system calls made for commands.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the addresses that the header of a slot's command names.
    fn addresses(&mut self, slot: Slot) -> Addresses {
        let memory = &mut self.memory[slot.index()];
        let data = match self.commands[slot.index()].data {
            ScsiData::None => 0,
            ScsiData::In { offset, length } | ScsiData::Out { offset, length } => self
                .buffers
                .address(slot, offset, length)
                .expose_provenance(),
            ScsiData::Parameters { length } => {
                self.lists.address(slot, 0, length).expose_provenance()
            }
        };
        Addresses {
            cdb: memory.cdb.bytes.as_ptr().expose_provenance(),
            sense: memory.sense.as_mut_ptr().expose_provenance(),
            data,
        }
    }

    /// Hands a command to the SCSI generic driver.
    fn write(&mut self, slot: Slot) {
        let addresses = self.addresses(slot);
        let command = self.commands[slot.index()];
        let cdb = &self.memory[slot.index()].cdb;
        let mut header = HeaderV3::new(cdb, command.data, addresses).direct();
        let (index, generation) = halves(command.user_data);
        (header.pack_id, header.user) = (index.cast_signed(), generation as usize);
        let Some(device) = &mut self.devices[command.file as usize] else {
            return;
        };
        let lane = device.lane(slot);
        loop {
            self.calls += 1;
            // SAFETY: the kernel reads one live header; what it names lives in `memory` and
            // `buffers` until the command has completed or for ever (see `drop`), has the lengths
            // that the header has, and is not lent while the slot is in flight.
            let written = unsafe {
                libc::write(
                    lane.file.as_raw_fd(),
                    (&raw const header).cast(),
                    size_of::<HeaderV3>(),
                )
            };
            if written >= 0 {
                lane.count += 1;
                self.count += 1;
                return;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return self.refused(slot, &error);
            }
        }
    }

    /// Executes a command by a system call of its own.
    fn perform(&mut self, slot: Slot) {
        let addresses = self.addresses(slot);
        let command = self.commands[slot.index()];
        let cdb = self.memory[slot.index()].cdb;
        let Some(device) = &self.devices[command.file as usize] else {
            return;
        };
        let (file, kind, calls) = (&device.lanes[0].file, device.kind, &mut self.calls);
        // SAFETY: what the addresses name lives in `memory` and `buffers`, has the lengths of the
        // command, and is lent to nobody while the slot is in flight. The request does not end
        // before the command on these nodes, not even by a signal.
        let reply =
            unsafe { header::perform(file, kind, &cdb, command.data, addresses, Some(calls)) };
        match reply {
            Ok(reply) => self.completed(command.user_data, reply),
            Err(error) => self.refused(slot, &error),
        }
    }

    /// Collects the completed commands of all lanes.
    fn read(&mut self) -> io::Result<()> {
        for device in 0..self.devices.len() {
            let lanes = self.devices[device].as_ref();
            for lane in 0..lanes.map_or(0, |device| device.lanes.len()) {
                self.read_lane(device, lane)?;
            }
        }
        Ok(())
    }

    fn read_lane(&mut self, device: usize, lane: usize) -> io::Result<()> {
        while let Some(own) = &mut self.devices[device]
            && own.lanes[lane].count > 0
        {
            let own = &mut own.lanes[lane];
            let mut header = HeaderV3::default();
            self.calls += 1;
            // SAFETY: the kernel writes one header to a live one, and the sense and the data of
            // the command that it completes to where that command's header said.
            let got = unsafe {
                libc::read(
                    own.file.as_raw_fd(),
                    (&raw mut header).cast(),
                    size_of::<HeaderV3>(),
                )
            };
            if got < 0 {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(()),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                };
            }
            own.count -= 1;
            self.count -= 1;
            let generation = u32::try_from(header.user).unwrap_or(u32::MAX);
            let user_data = joined(header.pack_id.cast_unsigned(), generation);
            self.completed(user_data, header.reply());
        }
        Ok(())
    }

    /// Waits until a command has completed, and returns whether one has; false at the deadline and
    /// after a signal.
    fn poll(&mut self, deadline: Option<u64>) -> io::Result<bool> {
        self.polled.clear();
        let lanes = self.devices.iter().flatten();
        let lanes = lanes.flat_map(|device| &device.lanes);
        let busy = lanes.filter(|lane| lane.count > 0);
        self.polled.extend(busy.map(|lane| libc::pollfd {
            fd: lane.file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        }));
        let left = deadline.map(|deadline| deadline.saturating_sub(clock::monotonic_ns()));
        let time = clock::timespec(left.unwrap_or(0));
        let time = match left {
            Some(_) => &raw const time,
            None => std::ptr::null(),
        };
        self.calls += 1;
        // SAFETY: the kernel writes the list's entries, which are live, and reads the time, which
        // is null or live; there is no signal mask.
        let ready = unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                self.polled.len() as libc::nfds_t,
                time,
                std::ptr::null(),
            )
        };
        if ready >= 0 {
            return Ok(ready > 0);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(false),
            _ => Err(error),
        }
    }

    /// Takes a completed command.
    fn completed(&mut self, user_data: u64, reply: Reply) {
        let slot = self.in_flight.end(user_data);
        let outcome = reply.outcome(&self.memory[slot.index()].sense);
        self.ended(slot, outcome, 0);
    }

    /// Takes a command that the kernel did not.
    fn refused(&mut self, slot: Slot, error: &io::Error) {
        let slot = self.in_flight.end(self.commands[slot.index()].user_data);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.ended(slot, ScsiOutcome::default(), -errno);
    }

    /// Completes the op in a slot that has left the table, and those that share its command.
    fn ended(&mut self, slot: Slot, outcome: ScsiOutcome, result: i32) {
        self.ready.push(slot, result);
        let command = &mut self.commands[slot.index()];
        command.outcome = outcome;
        let mut next = command.next;
        while let Some(slot) = next {
            let command = &mut self.commands[slot.index()];
            command.outcome = outcome;
            next = command.next;
            self.ready
                .push(self.in_flight.end(command.user_data), result);
        }
    }

    /// Waits for all commands in the kernel; false if they did not complete in time.
    fn drain(&mut self) -> bool {
        let mut out = [Completion::default(); 64];
        for _ in 0..DRAIN_WAITS {
            while self.reap(&mut out).is_ok_and(|count| count > 0) {}
            if self.count == 0 {
                return true;
            }
            if self.wait(1, Some(DRAIN_STEP)).is_err() {
                return false;
            }
        }
        false
    }
}

impl Drop for ScsiQueue {
    fn drop(&mut self) {
        let drained = self.drain();
        // SAFETY: the fields are not used again: this is the end of the queue.
        let (buffers, memory, lists) = unsafe {
            (
                ManuallyDrop::take(&mut self.buffers),
                ManuallyDrop::take(&mut self.memory),
                ManuallyDrop::take(&mut self.lists),
            )
        };
        if !drained {
            // The kernel may still access them, so they are leaked.
            buffers.leak();
            lists.leak();
            std::mem::forget(memory);
        }
    }
}

impl SlotMemory {
    const EMPTY: Self = Self {
        cdb: Cdb::new([0; 6]),
        sense: [0; SENSE_BYTES_MAX],
    };
}

/// Splits the user data of a command into slot and generation.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the halves of the number are taken apart"
)]
const fn halves(user_data: u64) -> (u32, u32) {
    (user_data as u32, (user_data >> 32) as u32)
}

const fn joined(slot: u32, generation: u32) -> u64 {
    (generation as u64) << 32 | slot as u64
}

/// Commands that the SCSI generic driver takes on one opened file (`SG_MAX_QUEUE`).
const LANE_COMMANDS: u32 = 16;

/// 300 × 100 ms: as with other engines; a command's own limit is twice that.
const DRAIN_WAITS: u32 = 300;
const DRAIN_STEP: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests;
