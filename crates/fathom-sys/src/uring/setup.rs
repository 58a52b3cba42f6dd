//! Creation of a ring: the newest flags that the kernel accepts, registrations, and clear errors.

use std::io;
use std::mem::ManuallyDrop;

use fathom_core::EngineStep;

use super::abi::{
    ENTER_REGISTERED_RING, Parameters, REGISTER_BUFFERS, REGISTER_FILES, REGISTER_FILES_UPDATE,
    REGISTER_RING_FDS, SETUP_COOP_TASKRUN, SETUP_CQE32, SETUP_CQSIZE, SETUP_DEFER_TASKRUN,
    SETUP_IOPOLL, SETUP_NO_SQARRAY, SETUP_SINGLE_ISSUER, SETUP_SQ_AFF, SETUP_SQE128, SETUP_SQPOLL,
    SETUP_SUBMIT_ALL, SETUP_TASKRUN_FLAG, UNREGISTER_RING_FDS, Update,
};
use super::integrity::{IntegrityChecks, attributes};
use super::rings::Rings;
use super::streams::Streams;
use super::{Memory, Mode, Ring};
use crate::file_io::RwFlags;
use crate::in_flight::{InFlight, Ready};
use crate::memory::Buffers;

/// Configuration of a ring.
#[derive(Clone, Debug, Default)]
pub struct RingConfig {
    /// Number of slots, 1..=`RING_ENTRIES_MAX`.
    pub slots: u32,
    /// Size of each slot's buffer, ≥ 1.
    pub buffer_bytes: u32,
    /// Memory of the buffers.
    pub memory: crate::memory::MemoryPlacement,
    /// Size of each slot's second buffer; 0: none.
    pub extra_bytes: u32,
    /// Number of the job's files.
    pub files: u32,
    /// Register the buffers.
    pub fixed_buffers: bool,
    /// Register the files.
    pub fixed_files: bool,
    /// A kernel thread takes the ops (SQPOLL).
    pub kernel_thread: bool,
    /// CPU of that thread.
    pub kernel_thread_cpu: Option<u32>,
    /// Poll for completions (IOPOLL).
    pub polled: bool,
    /// Ops are performed by kernel workers, so completions come from other threads.
    pub by_workers: bool,
    /// A completion wakes whoever polls the ring's descriptor.
    pub pollable: bool,
    /// Use vectors of one instead of plain reads and writes.
    pub vectored: bool,
    /// Interval of ops with `IOSQE_ASYNC`; 0: never.
    pub force_async: u32,
    /// Issue no-ops only, which leaves the cost of the ring.
    pub nops: bool,
    /// Do not register the ring's own descriptor.
    pub plain_descriptor: bool,
    /// Flags of every data op.
    pub flags: RwFlags,
    /// Writes carry `RWF_ATOMIC`.
    pub atomic_writes: bool,
    /// Streams of writes, 1–255 (Linux 6.16); empty for none.
    pub write_streams: Box<[u8]>,
    /// Draw a write's stream, instead of taking the streams in turn.
    pub random_streams: bool,
    /// Reads and writes have metadata, in the second buffers.
    pub integrity: Option<IntegrityChecks>,
}

/// Failed step of creating a ring.
#[derive(Debug)]
pub struct RingError {
    /// The step.
    pub step: EngineStep,
    /// The error.
    pub error: io::Error,
}

impl<const BIG: bool> Ring<BIG> {
    /// Creates a ring for the calling thread.
    ///
    /// # Errors
    /// The step that failed: creating the ring, mapping or registering buffers, registering files.
    /// ENOSYS for a kernel before 5.11, which cannot wait with a time-out; EINVAL for one before
    /// 5.19 if `BIG`.
    ///
    /// # Panics
    /// If a number in `config` is out of its range.
    pub fn new(config: &RingConfig) -> Result<Self, RingError> {
        assert!((1..=RING_ENTRIES_MAX).contains(&config.slots), "slots");
        let built = build::<BIG>(config).map_err(failed(EngineStep::SetUpRing))?;
        let buffers = Buffers::within(&config.memory, config.slots, config.buffer_bytes);
        let buffers = buffers.map_err(failed(EngineStep::MapBuffers))?;
        let extra = match config.extra_bytes {
            0 => Ok(None),
            bytes => Buffers::new(config.slots, bytes).map(Some),
        };
        let extra = extra.map_err(failed(EngineStep::MapBuffers))?;
        let mode = Mode::new(config, built.flags & SETUP_DEFER_TASKRUN != 0);
        let vectors = if mode.vectored { config.slots } else { 0 };
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut ring = Self {
            enter_fd: built.rings.fd(),
            enter_flags: 0,
            rings: built.rings,
            mode,
            features: names(built.flags),
            refused: names(built.refused),
            memory: ManuallyDrop::new(Memory {
                buffers,
                extra,
                vectors: vec![empty; vectors as usize].into_boxed_slice(),
                attributes: attributes(config),
            }),
            in_flight: InFlight::new(config.slots),
            ready: Ready::new(config.slots),
            until_async: config.force_async,
            streams: Streams::new(&config.write_streams, config.random_streams),
            asks_for_events: 0,
            calls: 0,
            looked: false,
        };
        if !config.plain_descriptor {
            let list = match ring.register_fd() {
                true => &mut ring.features,
                false => &mut ring.refused,
            };
            list.push("registered ring");
        }
        if config.fixed_buffers {
            ring.register_buffers()
                .map_err(failed(EngineStep::RegisterBuffers))?;
            ring.features.push("registered buffers");
        }
        if config.fixed_files {
            let registered = ring.register_files(config.files);
            registered.map_err(failed(EngineStep::RegisterFiles))?;
            ring.features.push("registered files");
        }
        if config.by_workers {
            ring.features.push("kernel workers (no RWF_NOWAIT)");
        }
        let writes = match config.atomic_writes {
            true => config.flags.atomic(),
            false => config.flags,
        };
        ring.features.extend(writes.names());
        if ring.streams.is_some() {
            ring.features.push("write streams");
        }
        if config.integrity.is_some() {
            ring.features.push("metadata");
        }
        Ok(ring)
    }

    /// Registers the ring's own descriptor, which saves a lookup in every call, and returns whether
    /// that succeeded. Only an optimisation, so kernels without it (before 5.18) are not an error.
    fn register_fd(&mut self) -> bool {
        let fd = self.rings.fd();
        let mut update = Update {
            offset: u32::MAX,
            reserved: 0,
            data: u64::from(fd.unsigned_abs()),
        };
        // SAFETY: the kernel reads and writes one live structure of the layout it expects.
        let done = unsafe { register(fd, REGISTER_RING_FDS, &raw mut update, 1) };
        let done = done.is_ok_and(|count| count == 1);
        if done {
            self.enter_fd = update.offset.cast_signed();
            self.enter_flags = ENTER_REGISTERED_RING;
        }
        done
    }

    /// Releases the registered index: a thread has only 16, and each keeps its ring alive.
    pub(super) fn unregister_fd(&mut self) {
        if self.enter_flags == 0 {
            return;
        }
        let fd = self.rings.fd();
        let mut update = Update {
            offset: self.enter_fd.unsigned_abs(),
            ..Update::default()
        };
        // SAFETY: the kernel reads one live structure of the layout it expects.
        // On failure the index is released when the thread ends.
        let _kept = unsafe { register(fd, UNREGISTER_RING_FDS, &raw mut update, 1) };
        self.enter_fd = fd;
        self.enter_flags = 0;
    }

    fn register_buffers(&mut self) -> io::Result<()> {
        let places = self.memory.buffers.places();
        let mut list: Vec<libc::iovec> = places
            .map(|(start, bytes)| libc::iovec {
                iov_base: start.cast(),
                iov_len: bytes,
            })
            .collect();
        // SAFETY: the buffers live in `memory` as long as the ring; the kernel holds its own
        // reference to their pages beyond that.
        unsafe { register_list(self.rings.fd(), REGISTER_BUFFERS, &mut list) }
    }

    fn register_files(&self, files: u32) -> io::Result<()> {
        let mut none = vec![-1_i32; files as usize];
        // SAFETY: the kernel reads numbers of descriptors; −1 is none.
        unsafe { register_list(self.rings.fd(), REGISTER_FILES, &mut none) }
    }

    /// Replaces a registered file by this descriptor; −1: none.
    pub(super) fn register_file(&self, index: u32, file: i32) -> io::Result<()> {
        let file = [file];
        let mut update = Update {
            offset: index,
            reserved: 0,
            data: file.as_ptr().expose_provenance() as u64,
        };
        // SAFETY: the kernel reads one live structure, which names a live list of one descriptor.
        unsafe { register(self.rings.fd(), REGISTER_FILES_UPDATE, &raw mut update, 1) }.map(drop)
    }
}

/// Result of negotiating flags.
struct Built<const BIG: bool> {
    rings: Rings<BIG>,
    /// `IORING_SETUP_…` flags in force.
    flags: u32,
    /// Flags of the newest kernels that this one lacks.
    refused: u32,
}

/// Tries the flags of ever older kernels. They change costs, never the semantics of an op.
fn build<const BIG: bool>(config: &RingConfig) -> io::Result<Built<BIG>> {
    let mut first_error = None;
    let entries = config.slots.next_power_of_two();
    let size = if BIG { SETUP_SQE128 | SETUP_CQE32 } else { 0 };
    for features in FEATURE_SETS {
        // At most one op per slot is in flight; a larger completion queue would waste memory.
        let mut parameters = Parameters::new(flags(features, config) | size, entries);
        parameters.thread_cpu = config.kernel_thread_cpu.unwrap_or(0);
        parameters.thread_idle_ms = KERNEL_THREAD_IDLE_MS;
        match Rings::set_up(entries, &mut parameters) {
            Ok(rings) => {
                return Ok(Built {
                    rings,
                    flags: flags(features, config) | size,
                    refused: flags(FEATURE_SETS[0], config) & !flags(features, config),
                });
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)))
}

/// Returns the flags of a kernel generation that suit the configuration.
fn flags(features: u32, config: &RingConfig) -> u32 {
    let mut flags = features | SETUP_CQSIZE;
    // Deferred task work waits for its thread to ask for it, and does not end a poll(2) of the ring
    // (seen on Linux 6.18).
    let wakes_others = config.by_workers || config.pollable;
    if wakes_others && flags & SETUP_DEFER_TASKRUN != 0 {
        // Deferred task work would make every completion by a kernel worker wake us.
        flags = flags & !SETUP_DEFER_TASKRUN | SETUP_COOP_TASKRUN;
    }
    if config.kernel_thread {
        // The SQPOLL thread runs task work itself.
        flags &= !(SETUP_COOP_TASKRUN | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG);
        flags |= SETUP_SQPOLL;
        if config.kernel_thread_cpu.is_some() {
            flags |= SETUP_SQ_AFF;
        }
    }
    if config.polled {
        flags |= SETUP_IOPOLL;
    }
    flags
}

/// Returns the names of flags, without those that are always set.
fn names(flags: u32) -> Vec<&'static str> {
    let table = [
        (SETUP_SUBMIT_ALL, "SUBMIT_ALL"),
        (SETUP_SINGLE_ISSUER, "SINGLE_ISSUER"),
        (SETUP_DEFER_TASKRUN, "DEFER_TASKRUN"),
        (SETUP_COOP_TASKRUN, "COOP_TASKRUN"),
        (SETUP_TASKRUN_FLAG, "TASKRUN_FLAG"),
        (SETUP_NO_SQARRAY, "NO_SQARRAY"),
        (SETUP_IOPOLL, "IOPOLL"),
        (SETUP_SQPOLL, "SQPOLL"),
        (SETUP_SQ_AFF, "SQ_AFF"),
        (SETUP_SQE128, "SQE128"),
        (SETUP_CQE32, "CQE32"),
    ];
    let set = table.into_iter().filter(|row| flags & row.0 != 0);
    set.map(|row| row.1).collect()
}

fn failed(step: EngineStep) -> impl Fn(io::Error) -> RingError {
    move |error| RingError { step, error }
}

/// Calls `io_uring_register(2)` with one argument and returns its result.
///
/// # Safety
/// `opcode` takes a pointer to this type and a count.
unsafe fn register<T>(fd: i32, opcode: u32, first: *mut T, count: usize) -> io::Result<i64> {
    // SAFETY: the caller vouches for it.
    let done = unsafe { libc::syscall(libc::SYS_io_uring_register, fd, opcode, first, count) };
    match done {
        0.. => Ok(done),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Calls it with a list of arguments.
///
/// # Safety
/// `opcode` takes a pointer to an array of this type and a count.
unsafe fn register_list<T>(fd: i32, opcode: u32, list: &mut [T]) -> io::Result<()> {
    // SAFETY: the list is alive; the caller vouches for the opcode.
    unsafe { register(fd, opcode, list.as_mut_ptr(), list.len()) }.map(drop)
}

/// Flags by kernel: 6.6 and later, 6.1, 6.0, 5.19, 5.18, and older.
const FEATURE_SETS: [u32; 6] = [
    LINUX_6_1 | SETUP_NO_SQARRAY,
    LINUX_6_1,
    SETUP_SUBMIT_ALL | SETUP_SINGLE_ISSUER | SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG,
    SETUP_SUBMIT_ALL | SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG,
    SETUP_SUBMIT_ALL,
    0,
];

const LINUX_6_1: u32 =
    SETUP_SUBMIT_ALL | SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN | SETUP_TASKRUN_FLAG;

/// IORING_MAX_ENTRIES of the kernel.
pub const RING_ENTRIES_MAX: u32 = 32_768;

/// Idle time after which the SQPOLL thread sleeps: one second, the kernel's default.
const KERNEL_THREAD_IDLE_MS: u32 = 1_000;
