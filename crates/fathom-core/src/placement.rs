//! Placement of writes by a device.

use core::ops::Range;

/// Range of a file whose writes a device places together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementRange {
    /// Bytes of the file. A write belongs to the range that its first byte is in.
    pub bytes: Range<u64>,
    /// Identifier, as the device counts them.
    pub identifier: u16,
}
