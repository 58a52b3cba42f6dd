//! Headers of commands: `struct sg_io_hdr` of <scsi/sg.h> (version 3), which the SCSI generic
//! driver and block devices take, and `struct sg_io_v4` of <linux/bsg.h>, which bsg devices take.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::{Cdb, NodeKind, SENSE_BYTES_MAX, ScsiData, ScsiOutcome};
use crate::errno::check;

/// `struct sg_io_hdr`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeaderV3 {
    interface: i32,
    direction: i32,
    pub(super) cdb_bytes: u8,
    sense_bytes_max: u8,
    vectors: u16,
    pub(super) data_bytes: u32,
    pub(super) data: usize,
    pub(super) cdb: usize,
    pub(super) sense: usize,
    timeout_ms: u32,
    flags: u32,
    /// Number of the command, which comes back with its completion: here the slot.
    pub(super) pack_id: i32,
    /// Comes back, too: here the slot's generation.
    pub(super) user: usize,
    pub(super) status: u8,
    masked_status: u8,
    message_status: u8,
    pub(super) sense_bytes: u8,
    host_status: u16,
    driver_status: u16,
    pub(super) residual: i32,
    duration_ms: u32,
    info: u32,
}

/// `struct sg_io_v4`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeaderV4 {
    guard: i32,
    protocol: u32,
    subprotocol: u32,
    request_len: u32,
    request: u64,
    request_tag: u64,
    request_attributes: u32,
    request_priority: u32,
    request_extra: u32,
    response_bytes_max: u32,
    response: u64,
    out_vectors: u32,
    out_bytes: u32,
    in_vectors: u32,
    in_bytes: u32,
    out_data: u64,
    in_data: u64,
    timeout_ms: u32,
    flags: u32,
    user: u64,
    spare_in: u32,
    driver_status: u32,
    transport_status: u32,
    device_status: u32,
    retry_delay: u32,
    info: u32,
    duration_ms: u32,
    response_bytes: u32,
    in_residual: i32,
    out_residual: i32,
    generated_tag: u64,
    spare_out: u32,
    padding: u32,
}

/// Addresses that a header names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) cdb: usize,
    pub(super) sense: usize,
    pub(super) data: usize,
}

/// Parts of a completed header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reply {
    status: u8,
    host: u16,
    driver: u16,
    residual: u32,
    sense_bytes: u8,
}

impl Reply {
    /// Returns the outcome, given the sense that the kernel has written.
    pub(super) fn outcome(self, sense: &[u8; SENSE_BYTES_MAX]) -> ScsiOutcome {
        let written = usize::from(self.sense_bytes).min(SENSE_BYTES_MAX);
        ScsiOutcome {
            host: self.host,
            driver: self.driver,
            ..ScsiOutcome::new(self.status, &sense[..written], self.residual)
        }
    }
}

impl HeaderV3 {
    /// Creates the header of a command.
    pub(super) fn new(cdb: &Cdb, data: ScsiData, addresses: Addresses) -> Self {
        let (direction, data_bytes) = match data {
            ScsiData::None => (DIRECTION_NONE, 0),
            ScsiData::In { length, .. } => (DIRECTION_IN, length),
            ScsiData::Out { length, .. } | ScsiData::Parameters { length } => {
                (DIRECTION_OUT, length)
            }
        };
        Self {
            interface: i32::from(b'S'),
            direction,
            cdb_bytes: cdb.length,
            sense_bytes_max: SENSE_BYTES,
            data_bytes,
            data: if data_bytes == 0 { 0 } else { addresses.data },
            cdb: addresses.cdb,
            sense: addresses.sense,
            timeout_ms: TIMEOUT_MS,
            ..Self::default()
        }
    }

    /// Asks for a transfer between the device and the pages themselves, where the driver allows it
    /// (its parameter `allow_dio`), rather than through a copy.
    pub(super) const fn direct(self) -> Self {
        Self {
            flags: FLAG_DIRECT_IO,
            ..self
        }
    }

    pub(super) fn reply(&self) -> Reply {
        Reply {
            status: self.status,
            host: self.host_status,
            driver: self.driver_status,
            // A driver that moves more than it was asked to reports a negative number.
            residual: u32::try_from(self.residual).unwrap_or(0),
            sense_bytes: self.sense_bytes,
        }
    }
}

impl HeaderV4 {
    /// Creates the header of a command.
    pub(super) fn new(cdb: &Cdb, data: ScsiData, addresses: Addresses) -> Self {
        let mut header = Self {
            guard: i32::from(b'Q'),
            request_len: cdb.length.into(),
            request: addresses.cdb as u64,
            response_bytes_max: SENSE_BYTES.into(),
            response: addresses.sense as u64,
            timeout_ms: TIMEOUT_MS,
            ..Self::default()
        };
        match data {
            ScsiData::None => {}
            ScsiData::In { length, .. } => {
                (header.in_bytes, header.in_data) = (length, addresses.data as u64);
            }
            ScsiData::Out { length, .. } | ScsiData::Parameters { length } => {
                (header.out_bytes, header.out_data) = (length, addresses.data as u64);
            }
        }
        header
    }

    fn reply(&self) -> Reply {
        let narrow = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        let residual = match self.out_bytes {
            0 => self.in_residual,
            _ => self.out_residual,
        };
        Reply {
            status: u8::try_from(self.device_status).unwrap_or(u8::MAX),
            host: narrow(self.transport_status),
            driver: narrow(self.driver_status),
            residual: u32::try_from(residual).unwrap_or(0),
            sense_bytes: u8::try_from(self.response_bytes).unwrap_or(SENSE_BYTES),
        }
    }
}

/// Sends a command and waits for it (`SG_IO`); counts the call.
///
/// # Errors
/// The error of `ioctl(2)`.
///
/// # Safety
/// The addresses must be of a command of `cdb`'s length, of [`SENSE_BYTES_MAX`] bytes for sense and
/// of the data's length, alive until this returns, and not borrowed elsewhere: the kernel writes
/// the sense, and the data of a command that reads.
pub(super) unsafe fn perform(
    device: &File,
    kind: NodeKind,
    cdb: &Cdb,
    data: ScsiData,
    addresses: Addresses,
    calls: Option<&mut u64>,
) -> io::Result<Reply> {
    if let Some(calls) = calls {
        *calls += 1;
    }
    let fd = device.as_raw_fd();
    match kind {
        NodeKind::Generic | NodeKind::Block => {
            let mut header = HeaderV3::new(cdb, data, addresses);
            // SAFETY: the header is alive and of the layout that its first field names; what it
            // names is as this function's caller promises.
            check(unsafe { libc::ioctl(fd, SG_IO, &raw mut header) })?;
            Ok(header.reply())
        }
        NodeKind::Bsg => {
            let mut header = HeaderV4::new(cdb, data, addresses);
            // SAFETY: as above.
            check(unsafe { libc::ioctl(fd, SG_IO, &raw mut header) })?;
            Ok(header.reply())
        }
    }
}

const DIRECTION_NONE: i32 = -1;
const DIRECTION_OUT: i32 = -2;
const DIRECTION_IN: i32 = -3;
const FLAG_DIRECT_IO: u32 = 1;
const SG_IO: libc::Ioctl = 0x2285;

/// As in the block layer's default for a disk that has to spin up.
const TIMEOUT_MS: u32 = 60_000;

/// [`SENSE_BYTES_MAX`] as the headers have it.
const SENSE_BYTES: u8 = 96;
const _: () = assert!(SENSE_BYTES as usize == SENSE_BYTES_MAX);

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn layouts_are_those_of_the_headers() {
        // As printed by a program in C that includes <scsi/sg.h> and <linux/bsg.h>.
        assert_eq!(size_of::<HeaderV3>(), 88);
        assert_eq!(offset_of!(HeaderV3, data_bytes), 12);
        assert_eq!(offset_of!(HeaderV3, sense), 32);
        assert_eq!(offset_of!(HeaderV3, pack_id), 48);
        assert_eq!(offset_of!(HeaderV3, user), 56);
        assert_eq!(offset_of!(HeaderV3, status), 64);
        assert_eq!(offset_of!(HeaderV3, residual), 72);
        assert_eq!(offset_of!(HeaderV3, info), 80);
        assert_eq!(size_of::<HeaderV4>(), 160);
        assert_eq!(offset_of!(HeaderV4, response), 48);
        assert_eq!(offset_of!(HeaderV4, out_data), 72);
        assert_eq!(offset_of!(HeaderV4, user), 96);
        assert_eq!(offset_of!(HeaderV4, device_status), 116);
        assert_eq!(offset_of!(HeaderV4, generated_tag), 144);
    }

    #[test]
    fn directions_have_their_lengths() {
        let cdb = Cdb::new([0; 10]);
        let addresses = Addresses {
            cdb: 1,
            sense: 2,
            data: 3,
        };
        for (data, direction, bytes, bytes_in, bytes_out) in [
            (ScsiData::None, -1, 0, 0, 0),
            (
                ScsiData::In {
                    offset: 0,
                    length: 8,
                },
                -3,
                8,
                8,
                0,
            ),
            (
                ScsiData::Out {
                    offset: 0,
                    length: 9,
                },
                -2,
                9,
                0,
                9,
            ),
            (ScsiData::Parameters { length: 24 }, -2, 24, 0, 24),
        ] {
            let third = HeaderV3::new(&cdb, data, addresses);
            assert_eq!((third.direction, third.data_bytes), (direction, bytes));
            assert_eq!(third.data, if bytes == 0 { 0 } else { 3 });
            let fourth = HeaderV4::new(&cdb, data, addresses);
            assert_eq!((fourth.in_bytes, fourth.out_bytes), (bytes_in, bytes_out));
        }
    }

    #[test]
    fn replies_of_both_are_alike() {
        let third = HeaderV3 {
            status: 2,
            host_status: 3,
            driver_status: 8,
            residual: 512,
            sense_bytes: 18,
            ..HeaderV3::default()
        };
        let fourth = HeaderV4 {
            device_status: 2,
            transport_status: 3,
            driver_status: 8,
            in_bytes: 4096,
            in_residual: 512,
            response_bytes: 18,
            ..HeaderV4::default()
        };
        assert_eq!(third.reply(), fourth.reply());
        let odd = HeaderV3 {
            residual: -1,
            ..HeaderV3::default()
        };
        assert_eq!(odd.reply().residual, 0);
    }
}
