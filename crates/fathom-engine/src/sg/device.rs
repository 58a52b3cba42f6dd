//! SCSI disks behind their nodes: what they are, and their capacity.

use std::fs;
use std::path::Path;

use fathom_core::{Direction, EngineError, EngineStep, Errno, RemoteFile};
use fathom_sys::files::FileKind;
use fathom_sys::scsi::{Cdb, NodeKind, Opening, ScsiNode};

use super::options::{Options, WriteMode};
use super::unmap::UnmapLimits;
use crate::scsi::blocks::{Capacity, decode_long, decode_short};
use crate::scsi::{cdb, outcome};

/// A disk that takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) capacity: Capacity,
    pub(super) unmaps: UnmapLimits,
    /// Stream of the job's writes.
    pub(super) stream: u16,
    /// The stream was opened for the job, which closes it.
    opened_stream: bool,
}

impl Device {
    /// Asks an opened disk for its capacity and, if the job `writes`, for what one UNMAP may have;
    /// opens a stream if the job's writes need one.
    pub(super) fn identify(
        path: &str,
        opening: &Opening,
        options: &Options,
        writes: bool,
    ) -> Result<Self, EngineError> {
        let mut own = Self {
            capacity: capacity(path, opening)?,
            unmaps: match writes {
                true => unmap_limits(path, opening),
                false => UnmapLimits::ONE_RANGE,
            },
            stream: options.stream,
            opened_stream: false,
        };
        if writes && options.write_mode == WriteMode::WriteStream && options.stream == 0 {
            let mut answer = [0; 8];
            let command = ("STREAM CONTROL (open)", cdb::open_stream());
            ask(path, opening, command, &mut answer)?;
            own.stream = u16::from_be_bytes([answer[4], answer[5]]);
            own.opened_stream = true;
        }
        Ok(own)
    }

    /// Closes the stream that was opened for the job.
    pub(super) fn release(&self, path: &str, opening: &Opening) -> Result<(), EngineError> {
        match self.opened_stream {
            true => {
                let close = cdb::close_stream(self.stream);
                ask(path, opening, ("STREAM CONTROL (close)", close), &mut [])
            }
            false => Ok(()),
        }
    }

    /// Returns whether another look found a disk of other blocks.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.capacity == other.capacity
    }

    #[cfg(test)]
    pub(super) const fn of_blocks(block_bytes: u32) -> Self {
        Self {
            capacity: Capacity {
                blocks: 1000,
                block_bytes,
            },
            unmaps: UnmapLimits::ONE_RANGE,
            stream: 7,
            opened_stream: false,
        }
    }
}

/// Looks a disk up before a run.
pub(super) fn look_up(path: &str) -> Result<RemoteFile, EngineError> {
    let kind = check_node(path)?.kind;
    let opening = open(path, kind, false, 1)?;
    let capacity = capacity(path, &opening)?;
    Ok(RemoteFile {
        bytes: capacity.bytes(),
        block_bytes: capacity.block_bytes,
        directions: &Direction::ALL,
    })
}

/// Opens a node.
pub(super) fn open(
    path: &str,
    kind: NodeKind,
    writes: bool,
    depth: u32,
) -> Result<Opening, EngineError> {
    Opening::open(Path::new(path), kind, writes, depth).map_err(|error| {
        let errno = Errno::of(&error);
        let hint = match errno {
            Some(Errno::EACCES | Errno::EPERM) => "run as root",
            Some(Errno::EBUSY) => "another program has it opened exclusively: end that",
            Some(Errno::EMFILE) => {
                "each 16 commands in flight take an open file: raise `ulimit -n`, or lower iodepth"
            }
            _ => "",
        };
        EngineError {
            step: EngineStep::Open,
            target: path.into(),
            errno,
            hint: hint.into(),
        }
    })
}

/// Refuses a path that is not a node of a disk that takes commands, without opening it: merely
/// opening some devices has an effect.
pub(super) fn check_node(path: &str) -> Result<ScsiNode, EngineError> {
    let refuse = |errno, hint: String| EngineError {
        step: EngineStep::Open,
        target: path.into(),
        errno,
        hint,
    };
    let metadata =
        fs::metadata(path).map_err(|error| refuse(Errno::of(&error), NAME_DEVICE.into()))?;
    let Some(node) = ScsiNode::of(&metadata) else {
        let hint = match FileKind::of(&metadata) {
            FileKind::Block => "it is not a whole SCSI disk: name one, like /dev/sg0 or /dev/sda",
            _ => NAME_DEVICE,
        };
        return Err(refuse(Some(Errno::ENOTTY), hint.into()));
    };
    match node.device_type() {
        // Disks, write-once and optical disks, simplified disks, disks with zones.
        Some(0x00 | 0x04 | 0x07 | 0x0e | 0x14) => Ok(node),
        kind => {
            let kind = kind.map_or("unknown".into(), |kind| format!("{kind:02x}h"));
            let hint = format!("it is not a disk but of device type {kind}: name a disk");
            Err(refuse(Some(Errno::ENOTTY), hint))
        }
    }
}

/// Asks for the number of blocks, and their size.
fn capacity(path: &str, opening: &Opening) -> Result<Capacity, EngineError> {
    let mut short = [0; 8];
    let command = ("READ CAPACITY(10)", cdb::read_capacity_10());
    ask(path, opening, command, &mut short)?;
    let (last, block_bytes) = match decode_short(short) {
        Some(found) => found,
        None => {
            let mut long = [0; 32];
            let command = ("READ CAPACITY(16)", cdb::read_capacity_16());
            ask(path, opening, command, &mut long)?;
            decode_long(&long)
        }
    };
    Capacity::new(path, last, block_bytes)
}

/// Asks for the limits of an UNMAP; one range where the disk does not tell them.
fn unmap_limits(path: &str, opening: &Opening) -> UnmapLimits {
    let mut page = [0; 64];
    let command = ("INQUIRY", cdb::inquiry_page(BLOCK_LIMITS, 64));
    match ask(path, opening, command, &mut page) {
        Ok(()) => UnmapLimits::of_page(&page),
        Err(_no_page) => UnmapLimits::ONE_RANGE,
    }
}

/// Sends a command that asks the device, by its name for messages, and waits for the answer.
fn ask(
    path: &str,
    opening: &Opening,
    (name, cdb): (&'static str, Cdb),
    answer: &mut [u8],
) -> Result<(), EngineError> {
    let failed = |target: String, errno, hint: &str| EngineError {
        step: EngineStep::Call(name),
        target,
        errno,
        hint: hint.into(),
    };
    let mut tries = outcome::ATTENTIONS_MAX;
    loop {
        let outcome = opening.execute(&cdb, answer).map_err(|error| {
            let errno = Errno::of(&error);
            let hint = match errno {
                Some(Errno::EACCES | Errno::EPERM) => "run as root",
                _ => "",
            };
            failed(path.into(), errno, hint)
        })?;
        if outcome::is_unit_attention(&outcome) && tries > 0 {
            // Such as a reset before the run. Each report takes one off the device's list.
            tries -= 1;
            continue;
        }
        // Answers may be shorter than the room for them.
        return match outcome::failure(&outcome, 0) {
            Some(why) => Err(failed(format!("{path}: {why}"), None, "")),
            None => Ok(()),
        };
    }
}

/// Page of vital product data with the limits of commands.
const BLOCK_LIMITS: u8 = 0xb0;

const NAME_DEVICE: &str = "name a SCSI disk, like /dev/sg0 or /dev/sda";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_before_they_are_opened() {
        for path in ["/dev/null", "/dev/fathom-no-such-device", "/etc/passwd"] {
            let error = look_up(path).unwrap_err();
            assert_eq!(error.step, EngineStep::Open, "{path}");
            assert!(error.hint.contains("/dev/sg0"), "{path}: {error:?}");
        }
    }
}
