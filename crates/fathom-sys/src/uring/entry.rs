//! Submission queue entries, assembled from whole words.
//!
//! A CPU cannot forward several narrow stores to a wide load: storing the fields one by one and
//! copying the entry with wide loads stalled for longer than all other work of `push`. The words
//! are therefore assembled in registers. A test compares them with the builders of the `io-uring`
//! crate.

use super::rings::EntryWords;

/// Fields of `struct io_uring_sqe` that are used here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fields {
    /// Opcode and `IOSQE_…` flags, from `head`.
    pub(super) head: u16,
    pub(super) priority: u16,
    /// A descriptor, or an index in the table of registered files.
    pub(super) file: i32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) length: u32,
    /// `rw_flags`, `fsync_flags`…
    pub(super) op_flags: u32,
    pub(super) user_data: u64,
    /// An index in the table of registered buffers.
    pub(super) buffer: u16,
    /// `write_stream`.
    pub(super) stream: u8,
}

impl Fields {
    #[inline(always)]
    pub(super) const fn entry(self) -> EntryWords {
        [
            pair_u32(
                pair_u16(self.head, self.priority),
                self.file.cast_unsigned(),
            ),
            self.offset,
            self.address,
            pair_u32(self.length, self.op_flags),
            self.user_data,
            pair_u32(
                pair_u16(self.buffer, 0),
                u32::from_ne_bytes([self.stream, 0, 0, 0]),
            ),
        ]
    }
}

/// Packs an opcode and its flags.
pub(super) const fn head(opcode: u8, flags: u8) -> u16 {
    u16::from_ne_bytes([opcode, flags])
}

/// Packs two adjacent fields in memory order.
#[inline]
pub(super) const fn pair_u16(first: u16, second: u16) -> u32 {
    if cfg!(target_endian = "little") {
        first as u32 | (second as u32) << 16
    } else {
        (first as u32) << 16 | second as u32
    }
}

#[inline]
pub(super) const fn pair_u32(first: u32, second: u32) -> u64 {
    if cfg!(target_endian = "little") {
        first as u64 | (second as u64) << 32
    } else {
        (first as u64) << 32 | second as u64
    }
}

#[cfg(test)]
mod tests {
    use std::mem::transmute;

    use io_uring::squeue::{self, Flags};
    use io_uring::{opcode, types};

    use super::*;

    #[track_caller]
    fn check(fields: Fields, built: squeue::Entry) {
        // SAFETY: it is `struct io_uring_sqe` alone (`repr(C)`): 64 bytes of integers.
        let built = unsafe { transmute::<squeue::Entry, [u64; 8]>(built) };
        assert_eq!(fields.entry(), built[..6], "{fields:?}");
        assert_eq!(built[6..], [0, 0], "words that are never written");
    }

    #[test]
    fn entries_are_those_of_the_builders() {
        let address = std::ptr::without_provenance_mut::<u8>(0x1234_5678_9abc);
        let vector = address.cast::<libc::iovec>();
        let fields = Fields {
            priority: 0x2003,
            file: 7,
            offset: 0x1122_3344_5566,
            address: 0x1234_5678_9abc,
            length: 4096,
            op_flags: 0x81,
            user_data: 0x0a0b_0c0d_0e0f,
            ..Fields::default()
        };
        let fd = types::Fd(7);
        macro_rules! built {
            ($op:expr) => {
                $op.offset(fields.offset)
                    .ioprio(fields.priority)
                    .rw_flags(fields.op_flags.cast_signed())
                    .build()
                    .user_data(fields.user_data)
            };
        }
        let with = |opcode, buffer| Fields {
            head: head(opcode, 0),
            buffer,
            ..fields
        };
        check(
            with(opcode::Read::CODE, 0),
            built!(opcode::Read::new(fd, address, 4096)),
        );
        check(
            with(opcode::Write::CODE, 0),
            built!(opcode::Write::new(fd, address, 4096)),
        );
        check(
            with(opcode::ReadFixed::CODE, 9),
            built!(opcode::ReadFixed::new(fd, address, 4096, 9)),
        );
        check(
            with(opcode::WriteFixed::CODE, 9),
            built!(opcode::WriteFixed::new(fd, address, 4096, 9)),
        );
        let one = Fields {
            length: 1,
            ..fields
        };
        check(
            Fields {
                head: head(opcode::Readv::CODE, 0),
                ..one
            },
            built!(opcode::Readv::new(fd, vector, 1)),
        );
        check(
            Fields {
                head: head(opcode::Writev::CODE, 0),
                ..one
            },
            built!(opcode::Writev::new(fd, vector, 1)),
        );
    }

    #[test]
    fn entries_without_data_are_those_of_the_builders() {
        let sync = Fields {
            head: head(
                opcode::Fsync::CODE,
                (Flags::FIXED_FILE | Flags::ASYNC).bits(),
            ),
            file: 3,
            op_flags: types::FsyncFlags::DATASYNC.bits(),
            user_data: 5,
            ..Fields::default()
        };
        let built = opcode::Fsync::new(types::Fd(3))
            .flags(types::FsyncFlags::DATASYNC)
            .build();
        check(
            sync,
            built.flags(Flags::FIXED_FILE | Flags::ASYNC).user_data(5),
        );
        let nop = Fields {
            head: head(opcode::Nop::CODE, 0),
            file: -1,
            user_data: 6,
            ..Fields::default()
        };
        check(nop, opcode::Nop::new().build().user_data(6));
    }
    #[test]
    fn the_stream_is_byte_44() {
        let fields = Fields {
            stream: 9,
            buffer: 0x0102,
            ..Fields::default()
        };
        let bytes: Vec<u8> = fields
            .entry()
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let set: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at] != 0).collect();
        assert_eq!((set, bytes[44]), (vec![40, 41, 44], 9));
    }
}
