//! Magic numbers, and big-endian integers.

/// First word of a server: `NBDMAGIC`.
pub(crate) const GREETING: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Second word of a newstyle server, and first of each option: `IHAVEOPT`.
pub(crate) const NEWSTYLE: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Second word of an oldstyle server.
pub(crate) const OLDSTYLE: u64 = 0x0000_4202_8186_1253;
/// First word of a reply to an option.
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub(crate) const REQUEST: u32 = 0x2560_9513;
/// First word of a simple reply.
pub(crate) const SIMPLE_REPLY: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub(crate) const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Returns the integer at an offset.
///
/// # Panics
/// Fewer bytes than that.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// Returns the integer at an offset, as [`be16`].
#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Returns the integer at an offset, as [`be16`].
#[inline]
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

#[inline]
fn array<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    let mut array = [0; BYTES];
    array.copy_from_slice(&bytes[at..at + BYTES]);
    array
}
