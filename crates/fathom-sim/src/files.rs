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
    /// Contents before the last write of each byte, if stale reads return them.
    pub earlier: Option<SparseBytes>,
}

impl ModelFile {
    /// Writes to the contents, if there are any.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.keep_earlier(offset, bytes.len());
        if let Some(content) = &mut self.content {
            content.write(offset, bytes);
        }
    }

    /// Clears a range of the contents, if there are any.
    pub(crate) fn discard(&mut self, offset: u64, length: usize) {
        self.keep_earlier(offset, length);
        if let Some(content) = &mut self.content {
            content.discard(offset, length);
        }
    }

    fn keep_earlier(&mut self, offset: u64, length: usize) {
        if let (Some(earlier), Some(content)) = (&mut self.earlier, &self.content) {
            let mut bytes = vec![0; length];
            content.read(offset, &mut bytes);
            earlier.write(offset, &bytes);
        }
    }
}
