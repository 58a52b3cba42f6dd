//! SCSI disks behind their nodes: what they are, and their capacity.

use std::fs;
use std::path::Path;

use fathom_core::{Direction, EngineError, EngineStep, Errno, RemoteFile};
use fathom_sys::files::FileKind;
use fathom_sys::scsi::{Cdb, NodeKind, Opening, ScsiNode};

use super::cdb;
use super::options::{Options, WriteMode};
use super::outcome;
use super::sense::Sense;

/// A disk that takes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) block_bytes: u32,
    blocks: u64,
    /// Stream of the job's writes.
    pub(super) stream: u16,
    /// The stream was opened for the job, which closes it.
    opened_stream: bool,
}

impl Device {
    /// Asks an opened disk for its capacity, and opens a stream if the job's writes need one.
    pub(super) fn identify(
        path: &str,
        opening: &Opening,
        options: &Options,
        writes: bool,
    ) -> Result<Self, EngineError> {
        let (blocks, block_bytes) = capacity(path, opening)?;
        let mut own = Self {
            block_bytes,
            blocks,
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
    pub(super) const fn is_like(&self, other: &Self) -> bool {
        self.blocks == other.blocks && self.block_bytes == other.block_bytes
    }

    #[cfg(test)]
    pub(super) const fn of_blocks(block_bytes: u32) -> Self {
        Self {
            block_bytes,
            blocks: 1000,
            stream: 7,
            opened_stream: false,
        }
    }
}

/// Looks a disk up before a run.
pub(super) fn look_up(path: &str) -> Result<RemoteFile, EngineError> {
    let kind = check_node(path)?.kind;
    let opening = open(path, kind, false, 1)?;
    let (blocks, block_bytes) = capacity(path, &opening)?;
    Ok(RemoteFile {
        bytes: blocks.saturating_mul(block_bytes.into()),
        block_bytes,
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

/// Refuses a path that is no node of a disk that takes commands, without opening it: merely opening
/// some devices has an effect.
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
            FileKind::Block => "it is no whole SCSI disk: name one, like /dev/sg0 or /dev/sda",
            _ => NAME_DEVICE,
        };
        return Err(refuse(Some(Errno::ENOTTY), hint.into()));
    };
    match node.device_type() {
        // Disks, write-once and optical disks, simplified disks, disks with zones.
        Some(0x00 | 0x04 | 0x07 | 0x0e | 0x14) => Ok(node),
        kind => {
            let kind = kind.map_or("unknown".into(), |kind| format!("{kind:02x}h"));
            let hint = format!("it is no disk but of device type {kind}: name a disk");
            Err(refuse(Some(Errno::ENOTTY), hint))
        }
    }
}

/// Refuses a node that takes one command at a time for more of them.
pub(super) fn check_depth(path: &str, node: &ScsiNode, depth: u32) -> Result<(), EngineError> {
    if depth == 1 || node.kind == NodeKind::Generic {
        return Ok(());
    }
    let hint = match node.generic_name() {
        Some(name) => format!("{path} takes one command at a time: name /dev/{name}"),
        None => format!(
            "{path} takes one command at a time: load the kernel's module `sg` and name /dev/sg0, \
             or set iodepth=1"
        ),
    };
    Err(EngineError {
        step: EngineStep::Option("iodepth"),
        target: depth.to_string(),
        errno: None,
        hint,
    })
}

/// Returns the number of blocks, and their size.
fn capacity(path: &str, opening: &Opening) -> Result<(u64, u32), EngineError> {
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
    match (last.checked_add(1), block_bytes) {
        (Some(blocks), BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX) => Ok((blocks, block_bytes)),
        _ => Err(EngineError {
            step: EngineStep::Call("READ CAPACITY"),
            target: format!("{path}: last block {last}, {block_bytes} B per block"),
            errno: None,
            hint: "blocks of 256 B to 1 MiB are supported: format the disk".into(),
        }),
    }
}

/// Returns last block and block size; `None` if the number of blocks does not fit.
fn decode_short(answer: [u8; 8]) -> Option<(u64, u32)> {
    let [last, block_bytes] = words(answer);
    (last != u32::MAX).then_some((last.into(), block_bytes))
}

fn decode_long(answer: &[u8; 32]) -> (u64, u32) {
    let (last, rest) = answer.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let block_bytes = rest.first_chunk().copied().unwrap_or_default();
    (u64::from_be_bytes(*last), u32::from_be_bytes(block_bytes))
}

fn words(bytes: [u8; 8]) -> [u32; 2] {
    let both = u64::from_be_bytes(bytes);
    // Cannot be cut: the halves of 64 bits.
    [both >> 32, both & 0xffff_ffff].map(|half| u32::try_from(half).unwrap_or(0))
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
    let mut tries = ATTENTIONS_MAX;
    loop {
        let outcome = opening.execute(&cdb, answer).map_err(|error| {
            let errno = Errno::of(&error);
            let hint = match errno {
                Some(Errno::EACCES | Errno::EPERM) => "run as root",
                _ => "",
            };
            failed(path.into(), errno, hint)
        })?;
        let is_attention =
            Sense::decode(outcome.sense()).is_some_and(|sense| sense.is_unit_attention());
        if is_attention && tries > 0 {
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

const BLOCK_BYTES_MIN: u32 = 256;
const BLOCK_BYTES_MAX: u32 = 1 << 20;

/// More than a device keeps for one initiator: kinds of events, not events.
const ATTENTIONS_MAX: u32 = 32;

const NAME_DEVICE: &str = "name a SCSI disk, like /dev/sg0 or /dev/sda";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_decoded() {
        let short = [0, 0, 0xff, 0xff, 0, 0, 2, 0];
        assert_eq!(decode_short(short), Some((0xffff, 512)));
        assert_eq!(decode_short([0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]), None);
        let mut long = [0; 32];
        long[..12].copy_from_slice(&[0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0x10, 0]);
        assert_eq!(decode_long(&long), (0x01_0203_0405, 4096));
    }

    #[test]
    fn other_files_are_refused_before_they_are_opened() {
        for path in ["/dev/null", "/dev/fathom-no-such-device", "/etc/passwd"] {
            let error = look_up(path).unwrap_err();
            assert_eq!(error.step, EngineStep::Open, "{path}");
            assert!(error.hint.contains("/dev/sg0"), "{path}: {error:?}");
        }
    }
}
