//! Ops at the end of a remote device.

use fathom_core::{Direction, Errno, Op, OpKind};

/// Returns the bytes that an op moves on a device of `bytes`, or its result if that is none. The
/// end is that of a block device.
#[inline]
pub(crate) fn within(op: &Op, bytes: u64) -> Result<u32, i32> {
    let OpKind::Data(direction) = op.kind else {
        return Ok(0);
    };
    let left = bytes.saturating_sub(op.offset).min(op.length.into());
    match (u32::try_from(left).unwrap_or(op.length), direction) {
        (0, Direction::Read) => Err(0),
        (0, Direction::Write) => Err(Errno::ENOSPC.result()),
        (0, Direction::Trim) => Err(Errno::EINVAL.result()),
        (length, _) => Ok(length),
    }
}
