//! Device in memory.

use std::sync::{Arc, Mutex, PoisonError};

use fathom_block::SharedMemory;
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_toml::Fields;

use super::{BLOCK_BYTES, Storage, Surroundings, size_and_block};
use crate::error::DeviceError;
use crate::host::{Host, Obstacle};

/// Device in memory that all threads share.
#[derive(Debug)]
pub struct MemoryDevice {
    bytes: u64,
    block_bytes: u32,
    /// Opened by each thread for itself; a mutex, because a device belongs to one thread.
    memory: Mutex<SharedMemory>,
}

impl MemoryDevice {
    /// Creates a device of zeros, of `bytes` in blocks of 512 bytes.
    ///
    /// # Errors
    /// It is larger than the machine's memory.
    pub fn checked(bytes: u64, host: &dyn Host) -> Result<Self, Obstacle> {
        Self::with_blocks(bytes, BLOCK_BYTES, host)
    }

    fn with_blocks(bytes: u64, block_bytes: u32, host: &dyn Host) -> Result<Self, Obstacle> {
        let memory = host.memory_bytes();
        if bytes > memory {
            return Err(Obstacle {
                why: format!("{bytes} B is more than this machine's memory of {memory} B"),
                hint: "lower it, or use a file".to_owned(),
            });
        }
        Ok(Self {
            bytes,
            block_bytes,
            memory: Mutex::new(SharedMemory::new(bytes)),
        })
    }
}

impl Storage for MemoryDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            moves_data: true,
            ..Geometry::UNBOUNDED
        }
    }

    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Box::new(memory.open()))
    }

    fn memory_bytes(&self) -> u64 {
        self.bytes
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

pub(super) fn read(fields: &Fields<'_>, around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let (bytes, block_bytes) = size_and_block(fields)?;
    match MemoryDevice::with_blocks(bytes, block_bytes, around.host) {
        Ok(device) => Some(Arc::new(device)),
        Err(Obstacle { why, hint }) => {
            fields.refuse("size", why, &hint);
            None
        }
    }
}
