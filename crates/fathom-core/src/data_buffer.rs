//! Buffers that move between a driver and its block devices.

use std::fmt;

/// Memory of one command's data, owned by one part of the program at a time.
///
/// A pool creates buffers of one size at its start and moves them as boxes. The bytes are aligned
/// to pages, as direct I/O wants them, and stay at their address while the buffer moves.
pub struct DataBuffer {
    /// A page more than is asked for, since safe code cannot ask for aligned memory.
    memory: Box<[u8]>,
    start: usize,
    length: usize,
}

impl DataBuffer {
    /// Creates a buffer of zeros.
    #[must_use]
    pub fn new(bytes: u32) -> Self {
        let length = bytes as usize;
        let memory = vec![0; length + PAGE].into_boxed_slice();
        let address = memory.as_ptr().addr();
        Self {
            start: address.next_multiple_of(PAGE) - address,
            memory,
            length,
        }
    }

    /// Returns the bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..][..self.length]
    }

    /// Returns the bytes, to be changed.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..][..self.length]
    }
}

impl PartialEq for DataBuffer {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for DataBuffer {}

impl fmt::Debug for DataBuffer {
    /// The size alone: the content fills screens.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataBuffer({} bytes)", self.length)
    }
}

/// Largest alignment that direct I/O asks for on common devices.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_stay_where_they_are() {
        for length in [1, 512, 4096, 131_072] {
            let mut buffer = Box::new(DataBuffer::new(length));
            let at = buffer.bytes().as_ptr().addr();
            assert!(at.is_multiple_of(PAGE), "{at:#x}");
            assert_eq!(buffer.bytes().len(), length as usize);
            buffer.bytes_mut().fill(7);
            let moved = buffer;
            assert_eq!(moved.bytes().as_ptr().addr(), at);
            assert!(moved.bytes().iter().all(|byte| *byte == 7));
        }
    }
}
