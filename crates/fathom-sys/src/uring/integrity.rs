//! Metadata of reads and writes: an attribute of each entry (`IORING_RW_ATTR_FLAG_PI`, Linux 6.14).

use fathom_core::{Op, OpKind, Slot};

use super::abi::{
    ATTRIBUTE_INTEGRITY, CHECK_APPLICATION, CHECK_GUARD, CHECK_REFERENCE, IntegrityAttribute,
};
use super::entry::Fields;
use super::{Ring, RingConfig};

/// Checks of protection information that a ring asks the kernel and the device for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityChecks {
    /// Check the guard.
    pub guard: bool,
    /// Check the reference tag.
    pub reference: bool,
    /// Check the application tag, against `application_tag`.
    pub application: bool,
    /// Application tag.
    pub application_tag: u16,
}

impl IntegrityChecks {
    /// Returns the attribute of a slot before its first op.
    pub(super) fn attribute(self) -> IntegrityAttribute {
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        IntegrityAttribute {
            flags: flag(self.guard, CHECK_GUARD)
                | flag(self.reference, CHECK_REFERENCE)
                | flag(self.application, CHECK_APPLICATION),
            application_tag: self.application_tag,
            ..IntegrityAttribute::default()
        }
    }
}

/// Returns the attributes of a ring's slots: none if its ops have no metadata.
pub(super) fn attributes(config: &RingConfig) -> Box<[IntegrityAttribute]> {
    let checks = config.integrity.into_iter();
    let each = checks.flat_map(|checks| (0..config.slots).map(move |_| checks.attribute()));
    each.collect()
}

impl Ring {
    /// Sets the metadata of the slot's next read or write: the first `bytes` of its second buffer.
    /// `reference` is the reference tag of the first block.
    ///
    /// # Panics
    /// If the slot is in flight, the metadata are outside of its second buffer, or ops have none.
    pub fn set_metadata(&mut self, slot: Slot, bytes: u32, reference: u64) {
        assert!(!self.in_flight.contains(slot), "slot {slot:?} is in flight");
        let memory = &mut *self.memory;
        let extra = memory.extra.as_ref();
        let extra = extra.unwrap_or_else(|| panic!("no second buffers"));
        let attribute = &mut memory.attributes[slot.index()];
        attribute.length = bytes;
        attribute.address = extra.address(slot, 0, bytes).addr() as u64;
        attribute.seed = reference;
    }

    /// Builds the entry of an op on a ring whose reads and writes have metadata.
    pub(super) fn push_attributed(&mut self, op: &Op, mut fields: Fields) {
        fields.user_data = self.in_flight.begin(op.slot);
        let attribute = match op.kind {
            OpKind::Data(_) => {
                let attribute = &raw const self.memory.attributes[op.slot.index()];
                [attribute.expose_provenance() as u64, ATTRIBUTE_INTEGRITY]
            }
            // The place may have had an op with one.
            OpKind::Sync(_) => [0; 2],
        };
        let [a, b, c, d, e, f] = fields.entry();
        let words = [a, b, c, d, e, f, attribute[0], attribute[1]];
        // SAFETY: as in `push_entry`; the attribute, too, and the part of the second buffer that it
        // names, which `Buffers::address` checked, live in `memory` until the op has completed or
        // for ever, and are not touched while the slot is in flight.
        unsafe { self.rings.submission.push_attributed(words) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_has_the_checks_and_the_tag() {
        let all = IntegrityChecks {
            guard: true,
            reference: true,
            application: true,
            application_tag: 0x8888,
        };
        let attribute = all.attribute();
        assert_eq!((attribute.flags, attribute.application_tag), (7, 0x8888));
        let reference = IntegrityChecks {
            reference: true,
            ..IntegrityChecks::default()
        };
        assert_eq!(reference.attribute().flags, 2);
    }
}
