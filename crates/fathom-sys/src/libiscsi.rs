//! iSCSI in user space by libiscsi, loaded when it is asked for.
//!
//! ```text
//!  connect ── login ── ask (INQUIRY, READ CAPACITY…) ── begin, serve, reap ── logout ── disconnect
//! ```
//!
//! Sessions belong to one thread. Calls only queue requests; [`Iscsi::serve`] sends and receives.
//! The library is never told to reconnect: commands in flight would be sent again unnoticed.

mod abi;
mod callbacks;
mod connections;
mod reasons;
mod session;

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr::{self, NonNull};

use fathom_core::{Completion, Errno, Nanos, Slot};

use self::abi::{CANCELLED, Context, Functions, LIBRARY, MOVES_IN, MOVES_NOTHING, MOVES_OUT, Task};
use self::callbacks::executed;
use self::session::Session;
pub use self::session::{IscsiPortal, IscsiSecret};
use crate::in_flight::Ready;
use crate::library::calls::Calls;
use crate::library::{Library, LibraryError, Sockets};
use crate::memory::{Buffers, MemoryPlacement};
use crate::scsi::{Cdb, ScsiCommand, ScsiData, ScsiOutcome};

/// Sessions with targets, one for each file, and the buffers of the slots.
pub struct Iscsi {
    functions: Functions,
    /// By file.
    sessions: Box<[Link]>,
    /// Outcomes, which callbacks write until their session is destroyed: those of the slots, that
    /// of a command to which the caller waits, and that of a connection or login.
    calls: Calls<Command>,
    buffers: Buffers,
    /// Parameter lists of the slots, and the answer to the command for which the caller waits.
    lists: Buffers,
    depth: u32,
    in_flight: u32,
    sockets: Sockets,
    /// Files of `sockets`.
    served: Vec<u32>,
    /// Completions to be reaped.
    done: Ready,
}

/// Connection of a file.
enum Link {
    Closed,
    Open(Session),
    /// It is given up, with the reason; so are later ones.
    Lost(Errno, String),
}

/// Command of a slot.
#[derive(Debug, Default)]
struct Command {
    file: u32,
    task: Option<NonNull<Task>>,
    outcome: ScsiOutcome,
}

/// End of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IscsiLogin {
    /// The session takes commands.
    Done,
    /// The target is at another address, `HOST:PORT,GROUP`.
    Elsewhere(String),
}

impl Iscsi {
    /// Loads the library, without a session.
    ///
    /// # Errors
    /// The library is missing, or there is no memory.
    pub fn load(
        depth: u32,
        bytes: u32,
        files: usize,
        memory: &MemoryPlacement,
    ) -> Result<Self, LibraryError> {
        let functions = Functions::load(&Library::load(LIBRARY)?)?;
        let no_memory = |_| LibraryError::NoMemory;
        Ok(Self {
            functions,
            sessions: (0..files).map(|_| Link::Closed).collect(),
            calls: Calls::new(depth + 1),
            buffers: Buffers::within(memory, depth, bytes).map_err(no_memory)?,
            lists: Buffers::new(depth + 1, LIST_BYTES).map_err(no_memory)?,
            depth,
            in_flight: 0,
            sockets: Sockets::default(),
            served: Vec::with_capacity(files),
            done: Ready::new(depth),
        })
    }

    /// Sends a command that asks the unit of a session, and waits for the answer, of which at most
    /// 512 bytes are taken.
    ///
    /// # Errors
    /// The library's words, or that the target did not answer in time.
    pub fn ask(
        &mut self,
        file: u32,
        cdb: Cdb,
        answer: &mut [u8],
        timeout: Nanos,
    ) -> Result<ScsiOutcome, LibraryError> {
        let length = u32::try_from(answer.len()).unwrap_or(LIST_BYTES);
        let length = length.min(LIST_BYTES);
        let (number, slot) = (self.depth, Slot::new(self.depth));
        self.lists.part(slot, 0, length).fill(0);
        let data = (MOVES_IN, self.lists.address(slot, 0, length), length);
        self.perform_as(number, file, timeout, |own, context, private| {
            own.send(number, file, context, (&cdb, data), private)
        })?;
        let outcome = self.calls.call(number).extra.borrow().outcome;
        let (into, _rest) = answer.split_at_mut(length as usize);
        into.copy_from_slice(self.lists.peek(slot, 0, length));
        Ok(outcome)
    }

    /// Returns the buffer of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get(slot)
    }

    /// Returns the parameter list of a slot.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn list(&mut self, slot: Slot) -> &mut [u8] {
        assert!(slot.get() < self.depth, "no such slot");
        self.lists.get(slot)
    }

    /// Hands the buffer of a slot to other threads.
    pub fn release(&mut self, slot: Slot) {
        self.buffers.release(slot);
    }

    /// Queues a command to the unit of a file's session. It completes with 0 if the target has
    /// ended it, with [`outcome`](Self::outcome); otherwise with an errno.
    ///
    /// # Panics
    /// If the slot is in flight, or its buffer too short.
    pub fn begin(&mut self, slot: Slot, file: u32, command: &ScsiCommand) {
        let number = slot.get();
        assert!(number < self.depth, "no such slot");
        self.in_flight += 1;
        let private = self.calls.begin(number, NO_PLACE);
        let address = |buffers: &Buffers, offset, length| buffers.address(slot, offset, length);
        self.calls.call(number).extra.borrow_mut().file = file;
        let data = match command.data {
            ScsiData::None => (MOVES_NOTHING, ptr::null_mut(), 0),
            ScsiData::In { offset, length } => {
                (MOVES_IN, address(&self.buffers, offset, length), length)
            }
            ScsiData::Out { offset, length } => {
                (MOVES_OUT, address(&self.buffers, offset, length), length)
            }
            ScsiData::Parameters { length } => (MOVES_OUT, address(&self.lists, 0, length), length),
        };
        match &self.sessions[file as usize] {
            Link::Lost(errno, _) => self.calls.end(number, errno.result()),
            Link::Open(session) if session.is_logged_in => {
                let what = (&command.cdb, data);
                if self.send(number, file, session.context(), what, private) < 0 {
                    self.calls.explain(Errno::EIO, self.error_text(file));
                    self.calls.end(number, Errno::EIO.result());
                }
            }
            _ => self.calls.end(number, Errno::EBADF.result()),
        }
        // A command that the library refuses has ended already.
        self.settle();
    }

    /// Completes an op without a command.
    pub fn finish(&mut self, slot: Slot, result: i32) {
        self.done.push(slot, result);
    }

    /// Returns the outcome of a slot's latest command.
    #[must_use]
    pub fn outcome(&self, slot: Slot) -> ScsiOutcome {
        self.calls.call(slot.get()).extra.borrow().outcome
    }

    /// Returns the number of ops that have a command.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of ops to be reaped.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.done.count()
    }

    /// Takes ops that have completed.
    pub fn reap(&mut self, out: &mut [Completion]) -> usize {
        self.done.take(out)
    }

    /// Sends and receives on all connections, waiting for at most so long; returns whether anything
    /// has happened.
    pub fn serve(&mut self, timeout: Option<Nanos>) -> bool {
        let happened = self.serve_once(timeout);
        self.settle();
        happened
    }

    /// Returns what is known about the first failure with an errno.
    #[must_use]
    pub fn explanation(&self, errno: Errno) -> Option<String> {
        self.calls.explanation(errno)
    }

    fn session(&self, file: u32) -> Option<&Session> {
        match &self.sessions[file as usize] {
            Link::Open(session) => Some(session),
            _ => None,
        }
    }

    /// Passes a command of a call to the library; negative if it refuses.
    fn send(
        &self,
        number: u32,
        file: u32,
        context: *mut Context,
        (cdb, (direction, place, length)): (&Cdb, (c_int, *mut u8, u32)),
        private: *mut c_void,
    ) -> c_int {
        let (functions, bytes) = (self.functions, cdb.as_bytes());
        let (Ok(length), Ok(cdb_bytes)) = (c_int::try_from(length), c_int::try_from(bytes.len()))
        else {
            return REFUSED;
        };
        // SAFETY: the library copies this many bytes, and has room for 16.
        let task =
            unsafe { (functions.scsi_create_task)(cdb_bytes, bytes.as_ptr(), direction, length) };
        let Some(task) = NonNull::new(task) else {
            return REFUSED;
        };
        *self.calls.call(number).extra.borrow_mut() = Command {
            file,
            task: Some(task),
            outcome: ScsiOutcome::default(),
        };
        let task_address = task.as_ptr();
        let refused = match direction {
            MOVES_NOTHING => 0,
            // SAFETY: the place has this many bytes, which nothing else uses until the command has
            // ended; they outlive the context.
            MOVES_IN => unsafe {
                (functions.scsi_task_add_data_in_buffer)(task_address, length, place)
            },
            // SAFETY: as before.
            _ => unsafe { (functions.scsi_task_add_data_out_buffer)(task_address, length, place) },
        };
        if refused < 0 {
            return REFUSED;
        }
        let unit = self.session(file).map_or(0, |session| session.unit);
        // SAFETY: the context exists, the command is freed after its callback or the context, and
        // `private` is the call of the callback.
        unsafe {
            let no_data = ptr::null_mut();
            (functions.iscsi_scsi_command_async)(
                context,
                unit,
                task_address,
                executed,
                no_data,
                private,
            )
        }
    }

    /// Takes what callbacks have returned, and completes ops.
    fn settle(&mut self) {
        while let Some((number, status)) = self.calls.next() {
            self.complete(number, status);
        }
    }

    /// Completes an op, given the status of its callback, or an errno.
    fn complete(&mut self, number: u32, status: i32) {
        if number >= self.depth {
            return;
        }
        let file = self.calls.call(number).extra.borrow().file;
        let result = match status {
            errno @ ..0 => errno,
            // Those of the device, which the outcome has.
            0..=0xff => 0,
            CANCELLED => {
                self.lose_connection(file, None);
                Errno::ECONNRESET.result()
            }
            _ => {
                let text = format!("{}: {}", self.peer(file), self.error_text(file));
                self.calls.explain(Errno::EIO, text);
                Errno::EIO.result()
            }
        };
        self.free_task(number);
        self.in_flight -= 1;
        self.done.push(Slot::new(number), result);
    }

    /// Frees the command of a call, which the library does not have any more.
    fn free_task(&self, number: u32) {
        if let Some(task) = self.calls.call(number).extra.borrow_mut().task.take() {
            // SAFETY: the library created it, and calls back no more.
            unsafe { (self.functions.scsi_free_scsi_task)(task.as_ptr()) };
        }
    }
}

impl Drop for Iscsi {
    fn drop(&mut self) {
        // Callbacks that come now find their calls ended.
        self.calls.end_all(Errno::ECANCELED.result());
        for link in &mut self.sessions {
            *link = Link::Closed;
        }
        for number in 0..=self.depth {
            self.free_task(number);
        }
    }
}

impl fmt::Debug for Iscsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iscsi").finish_non_exhaustive()
    }
}

/// Bytes of a slot's parameter list, and of an answer.
const LIST_BYTES: u32 = 512;

/// Result of a call that the library has not taken.
const REFUSED: c_int = -1;

const NO_PLACE: (*mut u8, usize) = (ptr::null_mut(), 0);
