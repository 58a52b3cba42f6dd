//! Flexible data placement: the reclaim unit handles of a namespace.

use crate::identify::Page;
use crate::wire::{u16_at, u32_at};

/// Length of the header of Reclaim Unit Handle Status, bytes.
pub const HANDLE_STATUS_HEADER_BYTES: usize = 16;

/// Returns the length of Reclaim Unit Handle Status in bytes, as its header says: of at most 255
/// handles.
#[must_use]
pub fn handle_status_bytes(header: &[u8; HANDLE_STATUS_HEADER_BYTES]) -> usize {
    let count = usize::from(u16_at(header, COUNT)).min(HANDLES_MAX);
    HANDLE_STATUS_HEADER_BYTES + count * DESCRIPTOR_BYTES
}

/// Decodes the placement identifiers that a namespace offers, in the order of their handles, from
/// Reclaim Unit Handle Status; as many as `status` has.
#[must_use]
pub fn placement_identifiers(status: &[u8]) -> Vec<u16> {
    let Some((header, descriptors)) = status.split_at_checked(HANDLE_STATUS_HEADER_BYTES) else {
        return Vec::new();
    };
    let count = usize::from(u16_at(header, COUNT));
    let descriptors = descriptors.chunks_exact(DESCRIPTOR_BYTES).take(count);
    descriptors.map(|one| u16_at(one, 0)).collect()
}

/// Returns whether a controller supports flexible data placement, from Identify Controller.
#[must_use]
pub fn has_data_placement(controller: &Page) -> bool {
    u32_at(controller, CTRATT) & CTRATT_FDP != 0
}

// Reclaim Unit Handle Status.
const COUNT: usize = 14;
const DESCRIPTOR_BYTES: usize = 32;
/// As many as an 8-bit write stream number can distinguish.
const HANDLES_MAX: usize = 255;
// Identify Controller.
const CTRATT: usize = 96;
const CTRATT_FDP: u32 = 1 << 19;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identify::IDENTIFY_BYTES;
    use crate::wire::put;

    #[test]
    fn identifiers_come_in_the_order_of_their_handles() {
        let mut header = [0; HANDLE_STATUS_HEADER_BYTES];
        put(&mut header, COUNT, 3_u16.to_le_bytes());
        let mut status = header.to_vec();
        for identifier in [0x10_u16, 0x2001, 7] {
            status.extend(identifier.to_le_bytes());
            status.extend([0xff; DESCRIPTOR_BYTES - 2]);
        }
        assert_eq!(status.len(), handle_status_bytes(&header));
        assert_eq!(placement_identifiers(&status), [0x10, 0x2001, 7]);
        put(&mut status, COUNT, 2_u16.to_le_bytes());
        assert_eq!(placement_identifiers(&status), [0x10, 0x2001]);
        put(&mut status, COUNT, u16::MAX.to_le_bytes());
        assert_eq!(placement_identifiers(&status).len(), 3, "as many as came");
        assert!(placement_identifiers(&status[..15]).is_empty());
        put(&mut header, COUNT, u16::MAX.to_le_bytes());
        assert_eq!(handle_status_bytes(&header), 16 + 255 * 32);
    }

    #[test]
    fn the_controller_says_whether_it_places_data() {
        let mut page = [0; IDENTIFY_BYTES];
        assert!(!has_data_placement(&page));
        page[CTRATT + 2] = 0x08;
        assert!(has_data_placement(&page));
    }
}
