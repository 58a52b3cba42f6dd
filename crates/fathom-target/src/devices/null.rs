//! Device without data.

use std::sync::Arc;

use fathom_block::Null;
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_toml::Fields;

use super::{BLOCK_BYTES, Storage, Surroundings, size_and_block};
use crate::error::DeviceError;

/// Device that completes every command at once and keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NullDevice {
    bytes: u64,
    block_bytes: u32,
}

impl NullDevice {
    /// Creates a device of `bytes` in blocks of 512 bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> Self {
        Self {
            bytes,
            block_bytes: BLOCK_BYTES,
        }
    }
}

impl Storage for NullDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            ..Geometry::UNBOUNDED
        }
    }

    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(Box::new(Null::new(self.bytes, self.block_bytes)))
    }

    fn describe(&self) -> String {
        "null".to_owned()
    }
}

pub(super) fn read(fields: &Fields<'_>, _around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let (bytes, block_bytes) = size_and_block(fields)?;
    Some(Arc::new(NullDevice { bytes, block_bytes }))
}
