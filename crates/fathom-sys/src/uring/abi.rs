//! Structures and constants of <linux/io_uring.h> that are used here.

/// `struct io_uring_params`: configuration of a ring, and offsets of its parts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters {
    pub(super) submission_entries: u32,
    pub(super) completion_entries: u32,
    pub(super) flags: u32,
    pub(super) thread_cpu: u32,
    pub(super) thread_idle_ms: u32,
    features: u32,
    workers_fd: u32,
    reserved: [u32; 3],
    pub(super) submission: SubmissionOffsets,
    pub(super) completion: CompletionOffsets,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SubmissionOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    pub(super) flags: u32,
    dropped: u32,
    array: u32,
    reserved: u32,
    user_address: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CompletionOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    ring_mask: u32,
    ring_entries: u32,
    overflow: u32,
    pub(super) entries: u32,
    flags: u32,
    reserved: u32,
    user_address: u64,
}

const _: () = assert!(size_of::<Parameters>() == 120);

impl Parameters {
    /// Creates a request; the kernel fills in the rest.
    pub(super) fn new(flags: u32, completion_entries: u32) -> Self {
        Self {
            flags,
            completion_entries,
            ..Self::default()
        }
    }

    /// Returns whether waiting takes a timeout (Linux 5.11).
    pub(super) const fn waits_with_a_time(&self) -> bool {
        self.features & FEATURE_EXT_ARG != 0
    }

    /// Returns the offset of the array of indices, if there is one.
    pub(super) const fn index_array(&self) -> Option<u32> {
        if self.flags & SETUP_NO_SQARRAY == 0 {
            Some(self.submission.array)
        } else {
            None
        }
    }

    /// Returns the size of both queues' indices and the completions.
    pub(super) fn queues_bytes(&self) -> usize {
        let entry = if self.flags & SETUP_CQE32 == 0 {
            16
        } else {
            32
        };
        let completions =
            self.completion.entries as usize + self.completion_entries as usize * entry;
        let array = self.index_array().map_or(0, |array| {
            array as usize + self.submission_entries as usize * 4
        });
        completions.max(array)
    }

    /// Returns the size of the submission queue entries.
    pub(super) const fn entries_bytes(&self) -> usize {
        let entry = if self.flags & SETUP_SQE128 == 0 {
            64
        } else {
            128
        };
        self.submission_entries as usize * entry
    }
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
pub(super) struct EventsArgument {
    pub(super) mask: u64,
    pub(super) mask_size: u32,
    pub(super) min_wait_us: u32,
    pub(super) time: u64,
}

const _: () = assert!(size_of::<EventsArgument>() == 24);

/// `struct io_uring_rsrc_update`; with descriptors, `struct io_uring_files_update` is the same.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Update {
    pub(super) offset: u32,
    pub(super) reserved: u32,
    pub(super) data: u64,
}

const _: () = assert!(size_of::<Update>() == 16);

/// `struct io_uring_attr_pi`: metadata that go with a read or a write (Linux 6.14).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntegrityAttribute {
    pub(super) flags: u16,
    pub(super) application_tag: u16,
    /// Bytes of metadata, and where they are.
    pub(super) length: u32,
    pub(super) address: u64,
    /// Reference tag of the first block.
    pub(super) seed: u64,
    pub(super) reserved: u64,
}

const _: () = assert!(size_of::<IntegrityAttribute>() == 32);

pub(super) const SETUP_IOPOLL: u32 = 1 << 0;
pub(super) const SETUP_SQPOLL: u32 = 1 << 1;
pub(super) const SETUP_SQ_AFF: u32 = 1 << 2;
pub(super) const SETUP_CQSIZE: u32 = 1 << 3;
pub(super) const SETUP_SUBMIT_ALL: u32 = 1 << 7;
pub(super) const SETUP_COOP_TASKRUN: u32 = 1 << 8;
pub(super) const SETUP_TASKRUN_FLAG: u32 = 1 << 9;
pub(super) const SETUP_SQE128: u32 = 1 << 10;
pub(super) const SETUP_CQE32: u32 = 1 << 11;
pub(super) const SETUP_SINGLE_ISSUER: u32 = 1 << 12;
pub(super) const SETUP_DEFER_TASKRUN: u32 = 1 << 13;
pub(super) const SETUP_NO_SQARRAY: u32 = 1 << 16;

const FEATURE_EXT_ARG: u32 = 1 << 8;

pub(super) const SQ_NEED_WAKEUP: u32 = 1 << 0;
pub(super) const SQ_CQ_OVERFLOW: u32 = 1 << 1;
pub(super) const SQ_TASKRUN: u32 = 1 << 2;

pub(super) const ENTER_GETEVENTS: u32 = 1 << 0;
pub(super) const ENTER_SQ_WAKEUP: u32 = 1 << 1;
pub(super) const ENTER_EXT_ARG: u32 = 1 << 3;
pub(super) const ENTER_REGISTERED_RING: u32 = 1 << 4;

pub(super) const REGISTER_BUFFERS: u32 = 0;
pub(super) const REGISTER_FILES: u32 = 2;
pub(super) const REGISTER_FILES_UPDATE: u32 = 6;
pub(super) const REGISTER_RING_FDS: u32 = 20;
pub(super) const UNREGISTER_RING_FDS: u32 = 21;

pub(super) const OP_NOP: u8 = 0;
pub(super) const OP_READV: u8 = 1;
pub(super) const OP_WRITEV: u8 = 2;
pub(super) const OP_FSYNC: u8 = 3;
pub(super) const OP_READ_FIXED: u8 = 4;
pub(super) const OP_WRITE_FIXED: u8 = 5;
pub(super) const OP_SYNC_FILE_RANGE: u8 = 8;
pub(super) const OP_READ: u8 = 22;
pub(super) const OP_WRITE: u8 = 23;
pub(super) const OP_URING_CMD: u8 = 46;

pub(super) const SQE_FIXED_FILE: u8 = 1 << 0;
pub(super) const SQE_ASYNC: u8 = 1 << 4;

pub(super) const FSYNC_DATASYNC: u32 = 1 << 0;

/// The entry names an [`IntegrityAttribute`].
pub(super) const ATTRIBUTE_INTEGRITY: u64 = 1 << 0;
pub(super) const CHECK_GUARD: u16 = 1 << 0;
pub(super) const CHECK_REFERENCE: u16 = 1 << 1;
pub(super) const CHECK_APPLICATION: u16 = 1 << 2;

/// The command's data are in a registered buffer.
pub(super) const URING_CMD_FIXED: u32 = 1 << 0;
