//! Parts of a poll group that its connections share.

use std::sync::Arc;

use fathom_block::Admission;
use fathom_core::Tick;
use fathom_nvme::Digest;

use super::connection::Connection;
use super::devices::Devices;
use super::running::Shared;
use super::statistics::IoCounters;

/// Parts of a thread that its connections share.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) thread: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) devices: Devices,
    pub(crate) admission: Admission,
    /// Receive buffer.
    pub(crate) scratch: Box<[u8]>,
    /// Data of devices that have none. Never written: the pages of all threads are the kernel's
    /// one page of zeros.
    pub(crate) zeros: Box<[u8]>,
    /// Digest of a number of zeros.
    zeros_digest: (u32, [u8; 4]),
    /// Bytes of a buffer.
    pub(crate) buffer_bytes: u32,
    /// Bytes of in-capsule data that wait without a buffer.
    pub(crate) aside_bytes: u64,
    /// Bytes of admin commands' data.
    pub(crate) page_bytes: u64,
    pub(crate) now: Tick,
    /// Completions of devices that may still be handled in this round.
    pub(crate) reaps_left: u32,
    /// Connections with input.
    pub(crate) active: Vec<u32>,
    /// Connections with output.
    pub(crate) dirty: Vec<u32>,
    /// Connections that have closed, or that their devices have left then.
    pub(crate) ended: Vec<u32>,
    pub(crate) counters: Counters,
    /// By device.
    pub(crate) namespaces: Vec<IoCounters>,
    /// Commands that name no namespace.
    pub(crate) unnamed: IoCounters,
}

/// Counters of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) turns: u64,
    pub(crate) idle_turns: u64,
    pub(crate) receives: u64,
    pub(crate) sends: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) accepted: u64,
    pub(crate) turned_away: u64,
    pub(crate) refused_connects: u64,
}

impl Work {
    pub(crate) fn new(
        thread: u32,
        shared: &Arc<Shared>,
        (devices, admission): (Devices, Admission),
        now: Tick,
    ) -> Self {
        let limits = &shared.config.limits;
        Self {
            thread,
            devices,
            admission,
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            zeros: vec![0; limits.io_bytes_max as usize].into_boxed_slice(),
            zeros_digest: (0, [0; 4]),
            buffer_bytes: shared.config.buffers.bytes,
            aside_bytes: 0,
            page_bytes: 0,
            now,
            reaps_left: 0,
            active: Vec::new(),
            dirty: Vec::new(),
            ended: Vec::new(),
            counters: Counters::default(),
            namespaces: vec![IoCounters::default(); shared.device_count()],
            unnamed: IoCounters::default(),
            shared: Arc::clone(shared),
        }
    }

    /// Notes that a connection has input.
    #[inline]
    pub(crate) fn activate(&mut self, connection: &mut Connection) {
        if !connection.is_active {
            connection.is_active = true;
            self.active.push(connection.id.index);
        }
    }

    /// Returns the digest of zeros: the same lengths recur.
    pub(crate) fn zeros_digest(&mut self, length: u32) -> [u8; 4] {
        if self.zeros_digest.0 != length {
            let digest = Digest::of(&self.zeros[..length as usize]);
            self.zeros_digest = (length, digest.to_bytes());
        }
        self.zeros_digest.1
    }
}

/// Receive buffer: the commands of a deep queue with their data, and within a second-level cache.
const SCRATCH_BYTES: usize = 256 << 10;
