//! Disk model in real time.

use std::sync::Arc;

use fathom_block::Parameters;
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_sim::{Model, read_model};
use fathom_toml::Fields;

use super::{Storage, Surroundings, size_and_block};
use crate::error::DeviceError;

/// Modelled device, one for all threads.
#[derive(Debug)]
struct ModelDevice {
    name: &'static str,
    model: Arc<dyn Model>,
    bytes: u64,
    block_bytes: u32,
}

impl Storage for ModelDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_bytes: self.block_bytes,
            ..Geometry::UNBOUNDED
        }
    }

    fn open(&self, _thread: u32, _now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        Ok(self.model.device(0))
    }

    fn describe(&self) -> String {
        format!("model {}", self.name)
    }
}

pub(super) fn read(fields: &Fields<'_>, _around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let size = size_and_block(fields);
    let parameters: &dyn Parameters = fields;
    let capacity = size.map_or(CAPACITY, |(bytes, _)| bytes);
    let model = read_model(parameters, capacity);
    let ((bytes, block_bytes), (name, model)) = (size?, model?);
    Some(Arc::new(ModelDevice {
        name,
        model,
        bytes,
        block_bytes,
    }))
}

/// Size for which a model is read whose own was refused, so that all problems are found.
const CAPACITY: u64 = 1 << 40;
