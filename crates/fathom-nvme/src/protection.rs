//! Protection information: guard, application tag and reference tag of each block.
//!
//! ```text
//!  Crc16:  guard 2 │ application 2 │ reference 4
//!  Crc64:  guard 8 │ application 2 │ reference 6
//! ```
//!
//! A tuple is big-endian. It stands at the end of a block's metadata or, if so formatted, at their
//! start; at the end, the guard covers the metadata before it, too.

use std::fmt;
use std::ops::Range;

use crc_fast::{CrcAlgorithm, Digest};

/// Protection information of a namespace's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Type.
    pub kind: ProtectionType,
    /// Kind of guard.
    pub guard: Guard,
    /// The tuple is at the start of the metadata, not at their end.
    pub is_first: bool,
}

/// Type of protection: what the reference tag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionType {
    /// The low bits of the block's address.
    One,
    /// A number that the command gives for its first block, counted upwards.
    Two,
    /// Not checked.
    Three,
}

/// Kind of guard, which is a CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// CRC-16/T10-DIF.
    Crc16,
    /// CRC-64/NVME.
    Crc64,
}

/// Tags that the host expects or writes, and the checks that it asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProtectionTags {
    /// Check the guard.
    pub check_guard: bool,
    /// Check the application tag.
    pub check_application: bool,
    /// Check the reference tag.
    pub check_reference: bool,
    /// Application tag.
    pub application: u16,
    /// Bits of the application tag that count.
    pub application_mask: u16,
}

/// Part of a tuple that is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtectionError {
    /// Guard.
    Guard,
    /// Application tag.
    Application,
    /// Reference tag.
    Reference,
}

impl fmt::Display for ProtectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guard => "guard check error",
            Self::Application => "application tag check error",
            Self::Reference => "reference tag check error",
        })
    }
}

impl ProtectionType {
    /// Returns the type with this number; `None` for 0 and for those that are reserved.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            2 => Some(Self::Two),
            3 => Some(Self::Three),
            _ => None,
        }
    }
}

impl Guard {
    /// Returns the bytes of a tuple.
    #[must_use]
    pub const fn tuple_bytes(self) -> usize {
        match self {
            Self::Crc16 => 8,
            Self::Crc64 => 16,
        }
    }

    const fn bytes(self) -> usize {
        match self {
            Self::Crc16 => 2,
            Self::Crc64 => 8,
        }
    }

    const fn algorithm(self) -> CrcAlgorithm {
        match self {
            Self::Crc16 => CrcAlgorithm::Crc16T10Dif,
            Self::Crc64 => CrcAlgorithm::Crc64Nvme,
        }
    }

    /// Returns the bits of a reference tag.
    const fn reference_mask(self) -> u64 {
        match self {
            Self::Crc16 => 0xffff_ffff,
            Self::Crc64 => 0xffff_ffff_ffff,
        }
    }
}

impl Protection {
    /// Writes the tuple of a block into its metadata. `reference` is that of the block; higher bits
    /// are cut.
    ///
    /// # Panics
    /// The metadata are shorter than a tuple.
    pub fn protect(&self, data: &[u8], metadata: &mut [u8], reference: u64, application: u16) {
        let place = self.place(metadata.len());
        let guard = self.guard_of(data, metadata, &place);
        let tuple = &mut metadata[place];
        let guard_bytes = self.guard.bytes();
        tuple[..guard_bytes].copy_from_slice(&guard.to_be_bytes()[8 - guard_bytes..]);
        tuple[guard_bytes..guard_bytes + 2].copy_from_slice(&application.to_be_bytes());
        let reference_bytes = tuple.len() - guard_bytes - 2;
        let reference = (reference & self.guard.reference_mask()).to_be_bytes();
        tuple[guard_bytes + 2..].copy_from_slice(&reference[8 - reference_bytes..]);
    }

    /// Checks the tuple of a block as a controller would. A block that was never written has an
    /// application tag of ones, which says that nothing is to be checked.
    ///
    /// # Errors
    /// The first part that is wrong.
    ///
    /// # Panics
    /// The metadata are shorter than a tuple.
    pub fn check(
        &self,
        data: &[u8],
        metadata: &[u8],
        reference: u64,
        tags: &ProtectionTags,
    ) -> Result<(), ProtectionError> {
        let place = self.place(metadata.len());
        let tuple = &metadata[place.clone()];
        let guard_bytes = self.guard.bytes();
        let guard = number(&tuple[..guard_bytes]);
        let own_application = number(&tuple[guard_bytes..guard_bytes + 2]);
        let own_reference = number(&tuple[guard_bytes + 2..]);
        let mask = self.guard.reference_mask();
        let is_unchecked = own_application == 0xffff
            && (self.kind != ProtectionType::Three || own_reference == mask);
        if is_unchecked {
            return Ok(());
        }
        if tags.check_guard && guard != self.guard_of(data, metadata, &place) {
            return Err(ProtectionError::Guard);
        }
        let differs = own_application ^ u64::from(tags.application);
        if tags.check_application && differs & u64::from(tags.application_mask) != 0 {
            return Err(ProtectionError::Application);
        }
        let counts = self.kind != ProtectionType::Three;
        if tags.check_reference && counts && own_reference != reference & mask {
            return Err(ProtectionError::Reference);
        }
        Ok(())
    }

    /// Returns the place of the tuple in metadata of this length.
    fn place(&self, length: usize) -> Range<usize> {
        let bytes = self.guard.tuple_bytes();
        match self.is_first {
            true => 0..bytes,
            false => length - bytes..length,
        }
    }

    fn guard_of(&self, data: &[u8], metadata: &[u8], place: &Range<usize>) -> u64 {
        let mut sum = Digest::new(self.guard.algorithm());
        sum.update(data);
        // Empty if the tuple comes first.
        sum.update(&metadata[..place.start]);
        sum.finalize()
    }
}

/// Reads a big-endian number of at most 8 bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection(guard: Guard, is_first: bool) -> Protection {
        Protection {
            kind: ProtectionType::One,
            guard,
            is_first,
        }
    }

    const ALL: ProtectionTags = ProtectionTags {
        check_guard: true,
        check_application: true,
        check_reference: true,
        application: 0x1234,
        application_mask: 0xffff,
    };

    /// The check values of both CRCs, of "123456789", as their catalogue gives them.
    #[test]
    fn fields_stand_where_the_specification_has_them() {
        let data = b"123456789";
        let mut metadata = [0xee; 8];
        protection(Guard::Crc16, false).protect(data, &mut metadata, 0x1_0203_0405, 0x1234);
        assert_eq!(metadata, [0xd0, 0xdb, 0x12, 0x34, 2, 3, 4, 5]);
        let mut metadata = [0xee; 16];
        protection(Guard::Crc64, false).protect(data, &mut metadata, 0x0102_0304_0506, 0x1234);
        let guard = 0xae8b_1486_0a79_9888_u64.to_be_bytes();
        assert_eq!(metadata[..8], guard);
        assert_eq!(metadata[8..], [0x12, 0x34, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_is_protected_passes_and_what_is_changed_does_not() {
        for guard in [Guard::Crc16, Guard::Crc64] {
            for is_first in [true, false] {
                let own = protection(guard, is_first);
                let mut data = [7; 512];
                let mut metadata = [9; 24];
                own.protect(&data, &mut metadata, 77, 0x1234);
                assert_eq!(own.check(&data, &metadata, 77, &ALL), Ok(()));
                let wrong = own.check(&data, &metadata, 78, &ALL);
                assert_eq!(wrong, Err(ProtectionError::Reference));
                let other = ProtectionTags {
                    application: 0x1235,
                    ..ALL
                };
                let wrong = own.check(&data, &metadata, 77, &other);
                assert_eq!(wrong, Err(ProtectionError::Application));
                let masked = ProtectionTags {
                    application_mask: 0xfff0,
                    ..other
                };
                assert_eq!(own.check(&data, &metadata, 77, &masked), Ok(()));
                // Other metadata are covered if they stand before the tuple.
                let other = if is_first { 23 } else { 0 };
                metadata[other] ^= 1;
                let checked = own.check(&data, &metadata, 77, &ALL);
                assert_eq!(checked.is_ok(), is_first);
                metadata[other] ^= 1;
                data[5] ^= 1;
                let wrong = own.check(&data, &metadata, 77, &ALL);
                assert_eq!(wrong, Err(ProtectionError::Guard));
                let unasked = ProtectionTags::default();
                assert_eq!(own.check(&data, &metadata, 0, &unasked), Ok(()));
            }
        }
    }

    #[test]
    fn blocks_that_were_never_written_pass() {
        let own = protection(Guard::Crc16, false);
        assert_eq!(own.check(&[0; 512], &[0xff; 8], 77, &ALL), Ok(()));
        let three = Protection {
            kind: ProtectionType::Three,
            ..own
        };
        assert_eq!(three.check(&[0; 512], &[0xff; 8], 77, &ALL), Ok(()));
        let mut metadata = [0xff; 8];
        metadata[7] = 0;
        let wrong = three.check(&[0; 512], &metadata, 77, &ALL);
        assert_eq!(wrong, Err(ProtectionError::Guard));
    }
}
