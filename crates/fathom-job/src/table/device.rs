//! Options on features of the device: atomic writes.

use super::row::{Row, ValueKind};

pub(super) const ROWS: &[Row] = &[Row::new(
    "atomic",
    "0",
    "Store each write whole or not at all (RWF_ATOMIC)",
    "atomic=1",
    ValueKind::Bool(|o, v| o.device.atomic = v),
)
.stricter(
    "flags a job whose engine, `direct`, block size or alignment excludes atomic writes, and a \
     file whose storage has none or not of this size",
)];
