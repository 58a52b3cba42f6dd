//! Device in memory.

use std::sync::Arc;

use fathom_block::Memory;
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_toml::Fields;

use super::{BLOCK_BYTES, Storage, Surroundings, size_and_block};
use crate::error::DeviceError;

/// Device in memory that all threads share.
#[derive(Debug)]
pub struct MemoryDevice {
    bytes: u64,
    block_bytes: u32,
}

impl MemoryDevice {
    /// Creates a device of zeros, of `bytes` in blocks of 512 bytes.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self::with_blocks(bytes, BLOCK_BYTES)
    }

    fn with_blocks(bytes: u64, block_bytes: u32) -> Self {
        Self { bytes, block_bytes }
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
        Ok(Box::new(Memory::new(self.bytes)))
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
    let memory = around.host.memory_bytes();
    if bytes > memory {
        let why = format!("{bytes} B is more than this machine's memory of {memory} B");
        fields.refuse("size", why, "lower it, or use a device of kind `file`");
        return None;
    }
    Some(Arc::new(MemoryDevice::with_blocks(bytes, block_bytes)))
}
