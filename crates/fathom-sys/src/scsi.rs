//! SCSI commands past the block layer: through the SCSI generic driver (`/dev/sg0`), the block
//! device of a disk (`/dev/sda`), or the block layer's own character device (`/dev/bsg/0:0:0:0`).

mod header;
mod node;
mod queue;

use std::fs::File;
use std::io;

use header::{Addresses, HeaderV3, HeaderV4};
pub use node::{NodeKind, ScsiNode};
pub use queue::{Opening, ScsiQueue};

/// SCSI command of up to 16 bytes, and its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScsiCommand {
    /// Command descriptor block.
    pub cdb: Cdb,
    /// Data to transfer. The device must transfer as many bytes: fewer are a residual, more are cut
    /// off by the kernel.
    pub data: ScsiData,
}

/// Command descriptor block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cdb {
    bytes: [u8; CDB_BYTES_MAX],
    length: u8,
}

impl Cdb {
    /// Creates a block of 6, 10, 12 or 16 bytes.
    #[must_use]
    pub const fn new<const LENGTH: usize>(block: [u8; LENGTH]) -> Self {
        const { assert!(matches!(LENGTH, 6 | 10 | 12 | 16)) }
        let mut bytes = [0; CDB_BYTES_MAX];
        let (head, _zeros) = bytes.split_at_mut(LENGTH);
        head.copy_from_slice(&block);
        Self {
            bytes,
            length: match LENGTH {
                6 => 6,
                10 => 10,
                12 => 12,
                _ => 16,
            },
        }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Place and direction of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScsiData {
    /// None.
    #[default]
    None,
    /// From the device to a part of the slot's buffer.
    In {
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// From a part of the slot's buffer to the device.
    Out {
        /// Offset in the buffer.
        offset: u32,
        /// Bytes.
        length: u32,
    },
    /// From the slot's parameter list to the device.
    Parameters {
        /// Bytes.
        length: u32,
    },
}

/// Outcome of a command that the kernel has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiOutcome {
    /// Status of the device, as in the standard: 0 GOOD, 2 CHECK CONDITION…
    pub status: u8,
    /// Status of the host adapter's driver (`DID_*` of Linux); 0: it has no complaint.
    pub host: u16,
    /// Status of the kernel's SCSI layer (`DRIVER_*` of Linux); 8 says that there is sense.
    pub driver: u16,
    /// Bytes that were not transferred.
    pub residual: u32,
    sense: [u8; SENSE_BYTES_MAX],
    sense_bytes: u8,
}

impl Default for ScsiOutcome {
    fn default() -> Self {
        Self::new(0, &[], 0)
    }
}

impl ScsiOutcome {
    /// Creates the outcome of a device's status, its sense data, of which 96 bytes are kept, and
    /// the number of bytes not transferred.
    #[must_use]
    pub fn new(status: u8, sense: &[u8], residual: u32) -> Self {
        let kept = &sense[..sense.len().min(SENSE_BYTES_MAX)];
        let mut own = Self {
            status,
            host: 0,
            driver: 0,
            residual,
            sense: [0; SENSE_BYTES_MAX],
            // Cannot be cut: at most 96.
            sense_bytes: u8::try_from(kept.len()).unwrap_or(0),
        };
        own.sense[..kept.len()].copy_from_slice(kept);
        own
    }

    /// Returns the sense data; empty if there are none.
    #[must_use]
    pub fn sense(&self) -> &[u8] {
        &self.sense[..usize::from(self.sense_bytes)]
    }
}

/// Sends one command that reads, such as READ CAPACITY, and waits for it. A signal may have it sent
/// again.
///
/// # Errors
/// The error of the request `SG_IO`: `EPERM` without the right to send commands, `ENOTTY` for
/// anything but a SCSI device.
pub fn execute(
    device: &File,
    kind: NodeKind,
    cdb: &Cdb,
    answer: &mut [u8],
) -> io::Result<ScsiOutcome> {
    let length = u32::try_from(answer.len()).unwrap_or(u32::MAX);
    let data = match length {
        0 => ScsiData::None,
        length => ScsiData::In { offset: 0, length },
    };
    let mut sense = [0; SENSE_BYTES_MAX];
    let addresses = Addresses {
        cdb: cdb.bytes.as_ptr().expose_provenance(),
        sense: sense.as_mut_ptr().expose_provenance(),
        data: answer.as_mut_ptr().expose_provenance(),
    };
    loop {
        // SAFETY: the addresses are of a command, of sense and of data that live until the call
        // returns, the latter two borrowed exclusively; the lengths are theirs. If a signal ends
        // the call early, the driver keeps the command and drops its data: it is not told to
        // transfer to these pages directly.
        let result = unsafe { header::perform(device, kind, cdb, data, addresses, None) };
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(reply) => return Ok(reply.outcome(&sense)),
        }
    }
}

/// Largest command descriptor block.
const CDB_BYTES_MAX: usize = 16;

/// The kernel's own limit (`SCSI_SENSE_BUFFERSIZE`).
const SENSE_BYTES_MAX: usize = 96;

const _: () = assert!(size_of::<HeaderV3>() <= 88 && size_of::<HeaderV4>() == 160);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_length() {
        assert_eq!(Cdb::new([0; 6]).as_bytes().len(), 6);
        let read = Cdb::new([0x28, 0, 0, 0, 0, 1, 0, 0, 8, 0]);
        assert_eq!(read.as_bytes(), [0x28, 0, 0, 0, 0, 1, 0, 0, 8, 0]);
    }

    #[test]
    fn long_sense_is_cut() {
        let outcome = ScsiOutcome::new(2, &[7; 252], 0);
        assert_eq!(outcome.sense(), [7; SENSE_BYTES_MAX]);
        assert_eq!(ScsiOutcome::default().sense(), []);
    }

    #[test]
    fn other_files_take_no_commands() {
        let file = File::open("/dev/null").unwrap();
        for kind in [NodeKind::Generic, NodeKind::Block, NodeKind::Bsg] {
            let error = execute(&file, kind, &Cdb::new([0; 6]), &mut []).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{kind:?}");
        }
    }
}
