//! Making a ring: the newest flags that the kernel takes, registered things, and a clear error.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use fathom_core::Slot;
use io_uring::{Builder, IoUring};

use super::{Memory, Mode, Ring};
use crate::flight::{InFlight, Ready};
use crate::memory::Buffers;
use crate::rw::RwFlags;

/// What a ring is to be.
#[derive(Clone, Debug, Default)]
pub struct RingConfig {
    /// Slots, 1..=`MOST_ENTRIES`.
    pub slots: u32,
    /// Bytes of each slot's buffer, ≥ 1.
    pub buffer_bytes: u32,
    /// Files of the job.
    pub files: u32,
    /// Register the buffers.
    pub fixed_buffers: bool,
    /// Register the files.
    pub fixed_files: bool,
    /// A kernel thread takes the ops.
    pub kernel_thread: bool,
    /// The processor of that thread.
    pub kernel_thread_cpu: Option<u32>,
    /// Poll for completions.
    pub polled: bool,
    /// Vectors of one instead of plain reads and writes.
    pub vectored: bool,
    /// Every so many ops one goes to a kernel worker; 0 never.
    pub force_async: u32,
    /// Every op is one that does nothing: what is left is the ring's own cost.
    pub nops: bool,
    /// Leave the ring's own descriptor unregistered.
    pub plain_descriptor: bool,
    /// Flags of every data op.
    pub flags: RwFlags,
}

/// Which step of making a ring failed.
#[derive(Debug)]
pub struct RingError {
    /// The step, as the kernel calls it.
    pub what: &'static str,
    /// What was said.
    pub error: io::Error,
}

impl Ring {
    /// Makes a ring for the calling thread.
    ///
    /// # Errors
    /// The step that failed: `io_uring_setup`, `map buffers`, `register buffers`, `register files`.
    /// ENOSYS for a kernel before 5.11, which cannot wait with a time-out.
    ///
    /// # Panics
    /// If a number in `config` is out of its range.
    pub fn new(config: &RingConfig) -> Result<Self, RingError> {
        assert!((1..=MOST_ENTRIES).contains(&config.slots), "slots");
        let (ring, steps, mut features) = build(config).map_err(step("io_uring_setup"))?;
        if !ring.params().is_feature_ext_arg() {
            let error = io::Error::from_raw_os_error(libc::ENOSYS);
            return Err(step("io_uring_setup")(error));
        }
        let buffers = Buffers::new(config.slots, config.buffer_bytes);
        let buffers = buffers.map_err(step("map buffers"))?;
        let vectors = if config.vectored { config.slots } else { 0 };
        let empty = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut ring = Self {
            enter_fd: ring.as_raw_fd(),
            registered_fd: false,
            ring,
            mode: Mode {
                fixed_buffers: config.fixed_buffers,
                fixed_files: config.fixed_files,
                vectored: config.vectored,
                kernel_thread: config.kernel_thread,
                polled: config.polled,
                deferred: steps.deferred,
                force_async: config.force_async,
                nops: config.nops,
            },
            flags: config.flags,
            features: Vec::new(),
            memory: ManuallyDrop::new(Memory {
                buffers,
                vectors: vec![empty; vectors as usize].into_boxed_slice(),
            }),
            in_flight: InFlight::new(config.slots),
            unsubmitted: 0,
            ready: Ready::new(config.slots),
            until_async: config.force_async,
            calls: 0,
        };
        if !config.plain_descriptor && ring.register_fd() {
            features.push("registered ring");
        }
        if config.fixed_buffers {
            ring.register_buffers().map_err(step("register buffers"))?;
            features.push("registered buffers");
        }
        if config.fixed_files {
            let registered = ring.register_files(config.files);
            registered.map_err(step("register files"))?;
            features.push("registered files");
        }
        features.extend(config.flags.names());
        ring.features = features;
        Ok(ring)
    }

    /// Registers the ring's own descriptor, which saves its lookup in every call. Not more than a
    /// saving, so a kernel that does not know it (before 5.18) is no error.
    fn register_fd(&mut self) -> bool {
        let mut update = FdUpdate {
            offset: u32::MAX,
            reserved: 0,
            data: u64::from(self.ring.as_raw_fd().unsigned_abs()),
        };
        // SAFETY: the kernel reads and writes one live structure of the layout it expects.
        let done = unsafe { register(self.ring.as_raw_fd(), REGISTER_RING_FDS, &mut update) };
        if done {
            self.enter_fd = update.offset.cast_signed();
            self.registered_fd = true;
        }
        done
    }

    /// Gives the registered number back; the thread has only 16 of them, and each would keep its
    /// ring alive.
    pub(super) fn unregister_fd(&mut self) {
        if !self.registered_fd {
            return;
        }
        let mut update = FdUpdate {
            offset: self.enter_fd.unsigned_abs(),
            reserved: 0,
            data: 0,
        };
        // SAFETY: the kernel reads one live structure of the layout it expects.
        let done = unsafe { register(self.ring.as_raw_fd(), UNREGISTER_RING_FDS, &mut update) };
        debug_assert!(done, "giving back what was given");
        self.enter_fd = self.ring.as_raw_fd();
        self.registered_fd = false;
    }

    fn register_buffers(&mut self) -> io::Result<()> {
        let buffers = &mut self.memory.buffers;
        let list: Vec<libc::iovec> = (0..buffers.slots())
            .map(|slot| {
                let buffer = buffers.get(Slot::new(slot));
                libc::iovec {
                    iov_base: buffer.as_mut_ptr().cast(),
                    iov_len: buffer.len(),
                }
            })
            .collect();
        // SAFETY: the buffers live in `memory` as long as the ring; the kernel holds its own
        // reference to their pages beyond that.
        unsafe { self.ring.submitter().register_buffers(&list) }
    }

    fn register_files(&self, files: u32) -> io::Result<()> {
        let none = vec![-1; files as usize];
        self.ring.submitter().register_files(&none)
    }
}

/// The optional flags of a ring, a set for each age of kernels.
#[derive(Clone, Copy, Debug)]
struct Steps {
    submit_all: bool,
    cooperative: bool,
    single_issuer: bool,
    deferred: bool,
    no_array: bool,
}

/// Tries the flags of ever older kernels. What they change is cost, never what an op does.
fn build(config: &RingConfig) -> io::Result<(IoUring, Steps, Vec<&'static str>)> {
    let mut first_error = None;
    for age in AGES {
        let steps = age.suited_to(config);
        let mut builder = IoUring::builder();
        let features = steps.apply(config, &mut builder);
        match builder.build(config.slots.next_power_of_two()) {
            Ok(ring) => return Ok((ring, steps, features)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL)))
}

impl Steps {
    /// Without what a kernel thread excludes: it runs the completion work itself.
    const fn suited_to(self, config: &RingConfig) -> Self {
        if config.kernel_thread {
            Self {
                cooperative: false,
                deferred: false,
                ..self
            }
        } else {
            self
        }
    }

    fn apply(self, config: &RingConfig, builder: &mut Builder) -> Vec<&'static str> {
        let mut features = Vec::new();
        let mut set = |wanted: bool, name, change: &dyn Fn(&mut Builder)| {
            if wanted {
                change(builder);
                features.push(name);
            }
        };
        let task_flag = self.cooperative || self.deferred;
        set(self.submit_all, "SUBMIT_ALL", &|ring| {
            ring.setup_submit_all();
        });
        set(self.single_issuer, "SINGLE_ISSUER", &|ring| {
            ring.setup_single_issuer();
        });
        set(self.deferred, "DEFER_TASKRUN", &|ring| {
            ring.setup_defer_taskrun();
        });
        set(self.cooperative, "COOP_TASKRUN", &|ring| {
            ring.setup_coop_taskrun();
        });
        set(task_flag, "TASKRUN_FLAG", &|ring| {
            ring.setup_taskrun_flag();
        });
        set(self.no_array, "NO_SQARRAY", &|ring| {
            ring.setup_no_sqarray();
        });
        set(config.polled, "IOPOLL", &|ring| {
            ring.setup_iopoll();
        });
        set(config.kernel_thread, "SQPOLL", &|ring| {
            ring.setup_sqpoll(KERNEL_THREAD_IDLE_MS);
        });
        if let Some(cpu) = config.kernel_thread_cpu {
            set(config.kernel_thread, "SQ_AFF", &|ring| {
                ring.setup_sqpoll_cpu(cpu);
            });
        }
        features
    }
}

fn step(what: &'static str) -> impl Fn(io::Error) -> RingError {
    move |error| RingError { what, error }
}

/// `io_uring_register(2)` with one structure; whether it did one.
///
/// # Safety
/// `opcode` must take a pointer to this structure and a count.
unsafe fn register(fd: i32, opcode: u32, update: &mut FdUpdate) -> bool {
    // SAFETY: the structure is alive; the caller vouches for the opcode.
    unsafe { libc::syscall(libc::SYS_io_uring_register, fd, opcode, &raw mut *update, 1) == 1 }
}

/// `struct io_uring_rsrc_update` of <linux/io_uring.h>.
#[repr(C)]
struct FdUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

const _: () = assert!(size_of::<FdUpdate>() == 16);

/// What kernels take: 6.6 and later, 6.1, 6.0, 5.19, 5.18, and the rest.
const AGES: [Steps; 6] = [
    Steps {
        submit_all: true,
        cooperative: false,
        single_issuer: true,
        deferred: true,
        no_array: true,
    },
    Steps {
        no_array: false,
        ..LINUX_6_1
    },
    Steps {
        deferred: false,
        cooperative: true,
        ..LINUX_6_1
    },
    Steps {
        deferred: false,
        cooperative: true,
        single_issuer: false,
        ..LINUX_6_1
    },
    Steps {
        deferred: false,
        single_issuer: false,
        ..LINUX_6_1
    },
    Steps {
        deferred: false,
        single_issuer: false,
        submit_all: false,
        ..LINUX_6_1
    },
];

const LINUX_6_1: Steps = Steps {
    submit_all: true,
    cooperative: false,
    single_issuer: true,
    deferred: true,
    no_array: false,
};

/// IORING_MAX_ENTRIES of the kernel.
pub const MOST_ENTRIES: u32 = 32_768;

/// The kernel thread goes to sleep after a second without ops: the kernel's own default.
const KERNEL_THREAD_IDLE_MS: u32 = 1_000;

const REGISTER_RING_FDS: u32 = 20;
const UNREGISTER_RING_FDS: u32 = 21;
