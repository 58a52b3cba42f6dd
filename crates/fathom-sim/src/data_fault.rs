//! Faults of the data that an op moves. Its completion looks like any other.

use crate::files::ModelFile;

/// Fault of the data of one op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFault {
    /// Nothing is moved.
    Lost,
    /// Only the first bytes of a write, this many, reach the medium.
    Torn(u32),
    /// A write goes to a place this many bytes after its own, or before it.
    Misdirected(i64),
    /// The bit with this number in the op is inverted, on the medium or in what a read returns.
    Flipped(u64),
    /// A read returns what each byte was before its last write, as far as the file knows.
    Stale,
}

impl DataFault {
    /// Writes `bytes` to `file` with this fault.
    pub(crate) fn write(self, file: &mut ModelFile, offset: u64, bytes: &mut [u8]) {
        match self {
            Self::Lost => {}
            Self::Torn(torn) => {
                let length = bytes.len().min(torn as usize);
                file.write(offset, &bytes[..length]);
            }
            Self::Misdirected(shift) => {
                if let Some(offset) = offset.checked_add_signed(shift) {
                    file.write(offset, bytes);
                }
            }
            Self::Flipped(bit) => {
                flip(bytes, bit);
                file.write(offset, bytes);
                flip(bytes, bit);
            }
            Self::Stale => file.write(offset, bytes),
        }
    }

    /// Reads from `file` with this fault.
    pub(crate) fn read(self, file: &ModelFile, offset: u64, bytes: &mut [u8]) {
        let stale = file.earlier.as_ref().filter(|_| self == Self::Stale);
        match (self, stale.or(file.content.as_ref())) {
            (Self::Lost, _) | (_, None) => {}
            (_, Some(content)) => content.read(offset, bytes),
        }
        if let Self::Flipped(bit) = self {
            flip(bytes, bit);
        }
    }
}

/// Inverts a bit, if there is one of this number.
fn flip(bytes: &mut [u8], bit: u64) {
    let byte = usize::try_from(bit / 8)
        .ok()
        .and_then(|at| bytes.get_mut(at));
    if let Some(byte) = byte {
        *byte ^= 1 << (bit % 8);
    }
}
