//! CRC-32C of headers and data.

use crc_fast::CrcAlgorithm;

/// Running digest: CRC-32C (Castagnoli) of bytes that arrive in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u32);

impl Digest {
    /// Returns the digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(crc_fast::crc32_iscsi(bytes))
    }

    /// Adds the next bytes.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let state = u64::from(!self.0);
        let mut sum = crc_fast::Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, state);
        sum.update(bytes);
        // Cannot be cut: the sum has 32 bits.
        self.0 = u32::try_from(sum.finalize()).unwrap_or_default();
    }

    /// Returns the digest as it stands on the wire.
    #[must_use]
    #[inline]
    pub const fn to_bytes(self) -> [u8; DIGEST_BYTES] {
        self.0.to_le_bytes()
    }
}

/// Length of a digest.
pub(crate) const DIGEST_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and ascending.
    #[test]
    fn digests_are_those_of_the_rfc() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(Digest::of(&[0; 32]).to_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(Digest::of(&[0xff; 32]).to_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(Digest::of(&ascending).to_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        let mut parts = Digest::of(&ascending[..7]);
        parts.add(&ascending[7..]);
        assert_eq!(parts, Digest::of(&ascending));
    }
}
