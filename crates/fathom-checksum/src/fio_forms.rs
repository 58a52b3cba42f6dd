//! Forms of SHA-256 and SHA-512 that fio stores in place of the digest, found by comparing payloads
//! with the blocks that it wrote.
//!
//! They are reproduced so that each program accepts the other's blocks. Two are weaker than their
//! names: SHA-256 keeps 64 bits of the digest, and SHA-512 of fio 3.33 covers the first and the
//! last 128 bytes of the payload at most.

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha512};

/// Writes the form of fio 3.33 and 3.41: the last block of SHA-256's padded message, its first
/// eight bytes replaced by the low byte of each word of the state. The length in the padding is
/// little-endian, unlike the standard's.
pub(crate) fn sha256(data: &[u8], out: &mut [u8]) {
    let mut state = INITIAL_STATE;
    let (whole, rest) = data.as_chunks::<BLOCK>();
    compress256(&mut state, whole);
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    if rest.len() >= BLOCK - 8 {
        compress256(&mut state, &[last]);
        last = [0; BLOCK];
    }
    last[BLOCK - 8..].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    compress256(&mut state, &[last]);
    for (byte, word) in last.iter_mut().zip(state) {
        *byte = word.to_le_bytes()[0];
    }
    out.copy_from_slice(&last);
}

/// Writes the form of fio 3.41: the digest, and the second half of the last block of the padded
/// message.
pub(crate) fn sha512(data: &[u8], out: &mut [u8]) {
    let mut last = [0; WIDE_BLOCK];
    let (_, rest) = data.as_chunks::<WIDE_BLOCK>();
    if rest.len() < WIDE_BLOCK - 16 {
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 0x80;
    }
    last[WIDE_BLOCK - 16..].copy_from_slice(&(data.len() as u128 * 8).to_be_bytes());
    let half = WIDE_BLOCK / 2;
    out[..half].copy_from_slice(&Sha512::digest(data));
    out[half..].copy_from_slice(&last[half..]);
}

/// Writes the form of fio 3.33: the first 128 bytes of the payload, their beginning replaced by
/// what exceeds a multiple of 128 bytes; zeros where the payload is shorter.
pub(crate) fn sha512_of_3_33(data: &[u8], out: &mut [u8]) {
    let first = data.len().min(out.len());
    out[..first].copy_from_slice(&data[..first]);
    out[first..].fill(0);
    let rest = &data[data.len() / out.len() * out.len()..];
    out[..rest.len()].copy_from_slice(rest);
}

const BLOCK: usize = 64;
/// Block of SHA-512.
const WIDE_BLOCK: usize = 128;

/// Initial state of SHA-256, FIPS 180-4, section 5.3.3.
const INITIAL_STATE: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];
