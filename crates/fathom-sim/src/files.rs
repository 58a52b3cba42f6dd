//! Files on modelled devices: their location, and their contents if they matter.

use fathom_block::SparseBytes;

/// File of a simulation; jobs refer to it by number.
#[derive(Clone, Debug, Default)]
pub struct ModelFile {
    /// Number of the storage that holds it.
    pub storage: usize,
    /// Byte offset of its start on the storage.
    pub base: u64,
    /// Contents, if they matter (verification); without them reads leave the buffer unchanged.
    pub content: Option<SparseBytes>,
}
