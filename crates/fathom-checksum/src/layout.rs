//! Layouts of the header in front of a checksum.

/// Layout of the header of a verified block, named after the version of fio that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderLayout {
    /// fio 3.42: 48 bytes; the number of the write has 64 bits.
    #[default]
    Fio3_42,
    /// fio 3.33: 40 bytes; the number of the write has 16 bits.
    Fio3_33,
}

impl HeaderLayout {
    /// Returns the size of the header.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Fio3_42 => 48,
            Self::Fio3_33 => 40,
        }
    }
}
