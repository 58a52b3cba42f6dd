//! Little-endian fields at fixed offsets.

/// Returns `N` bytes at an offset.
///
/// # Panics
/// The field does not lie within `bytes`: offsets are constants, and lengths have been checked.
#[inline]
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let Some(field) = bytes[at..].first_chunk() else {
        panic!("field of {N} bytes at {at} of {}", bytes.len());
    };
    *field
}

/// Returns the `u16` at an offset.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(bytes, at))
}

/// Returns the `u32` at an offset.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(bytes, at))
}

/// Returns the `u64` at an offset.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(bytes, at))
}

/// Stores a field at an offset.
///
/// # Panics
/// As [`field`].
#[inline]
pub(crate) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}
