//! Part of another device.

use std::sync::Arc;

use fathom_block::split;
use fathom_core::{BlockDevice, Geometry, Tick};
use fathom_toml::Fields;

use super::{Device, PartOf, SIZE, Storage, Surroundings, Threads, whole_blocks};
use crate::error::DeviceError;
use crate::sizes::read_size;

/// Part of a device.
///
/// Each thread opens the whole device once per part, so that parts share its storage but no state
/// of a thread.
#[derive(Debug)]
struct PartDevice {
    whole: Device,
    part: PartOf,
}

impl Storage for PartDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.part.range.end - self.part.range.start,
            ..self.whole.geometry()
        }
    }

    fn prepare(&self, threads: &Threads) -> Result<(), DeviceError> {
        self.whole.prepare(threads)
    }

    fn open(&self, thread: u32, now: Tick) -> Result<Box<dyn BlockDevice>, DeviceError> {
        let device = self.whole.open(thread, now)?;
        let part = split(device, std::slice::from_ref(&self.part.range)).remove(0);
        Ok(Box::new(part))
    }

    fn part(&self) -> Option<PartOf> {
        Some(self.part.clone())
    }

    fn describe(&self) -> String {
        format!("part of {}", self.part.of)
    }
}

pub(super) fn read(fields: &Fields<'_>, around: &Surroundings<'_>) -> Option<Arc<dyn Storage>> {
    let of = fields.text("of", false);
    let from = fields.parsed("from", true, SIZE, read_size);
    let size = fields.parsed("size", false, SIZE, read_size);
    let (name, span) = of?;
    let Some(above) = (around.device)(name) else {
        let why = format!("no device above is called `{name}`");
        fields.refuse_at(
            &span,
            why,
            "write the `[[device]]` of that name above this one",
        );
        return None;
    };
    let whole = above?;
    let geometry = whole.geometry();
    let from = if fields.has("from") { from? } else { 0 };
    let size = size.filter(|size| whole_blocks(fields, *size, geometry.block_bytes))?;
    if !from.is_multiple_of(u64::from(geometry.block_bytes)) {
        let why = format!("{from} B is within a block of {} B", geometry.block_bytes);
        fields.refuse("from", why, "round it");
        return None;
    }
    let end = from.checked_add(size).filter(|end| *end <= geometry.bytes);
    let Some(end) = end else {
        let why = format!(
            "the part ends beyond `{name}`, which has {} B",
            geometry.bytes
        );
        fields.refuse("size", why, "lower `size` or `from`");
        return None;
    };
    Some(Arc::new(PartDevice {
        whole,
        part: PartOf {
            of: name.to_owned(),
            range: from..end,
        },
    }))
}
