//! Flexible data placement: the reclaim unit handles of a namespace.

use crate::identify::Page;
use crate::wire::{u16_at, u32_at};

/// Decodes the placement identifiers that a namespace offers, in the order of their handles, from
/// Reclaim Unit Handle Status; as many as the page has.
#[must_use]
pub fn placement_identifiers(page: &Page) -> Vec<u16> {
    let count = usize::from(u16_at(page, COUNT));
    let descriptors = page[FIRST..].chunks_exact(DESCRIPTOR_BYTES);
    descriptors.take(count).map(|one| u16_at(one, 0)).collect()
}

/// Returns whether a controller supports flexible data placement, from Identify Controller.
#[must_use]
pub fn has_data_placement(controller: &Page) -> bool {
    u32_at(controller, CTRATT) & CTRATT_FDP != 0
}

// Reclaim Unit Handle Status.
const COUNT: usize = 14;
const FIRST: usize = 16;
const DESCRIPTOR_BYTES: usize = 32;
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
        let mut page = [0; IDENTIFY_BYTES];
        put(&mut page, COUNT, 3_u16.to_le_bytes());
        for (place, identifier) in [0x10_u16, 0x2001, 7].into_iter().enumerate() {
            put(
                &mut page,
                FIRST + place * DESCRIPTOR_BYTES,
                identifier.to_le_bytes(),
            );
        }
        assert_eq!(placement_identifiers(&page), [0x10, 0x2001, 7]);
        put(&mut page, COUNT, u16::MAX.to_le_bytes());
        assert_eq!(placement_identifiers(&page).len(), 127, "what the page has");
    }

    #[test]
    fn the_controller_says_whether_it_places_data() {
        let mut page = [0; IDENTIFY_BYTES];
        assert!(!has_data_placement(&page));
        page[CTRATT + 2] = 0x08;
        assert!(has_data_placement(&page));
    }
}
