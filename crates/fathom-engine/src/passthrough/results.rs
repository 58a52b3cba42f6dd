//! Results of completed commands, and the reasons of failures.

use fathom_core::{Errno, FileIndex, Nanos, Slot};
use fathom_nvme::Status;

use super::namespace::Namespace;
use super::{CommandOp, Passthrough};

impl Passthrough {
    /// Returns the result of a completed command, given what the ring has of it.
    #[inline]
    pub(super) fn result(&mut self, slot: Slot, result: i32) -> i32 {
        let op = self.in_flight[slot.index()];
        match (result, op.checked) {
            (0, None) => op.length,
            (0, Some(file)) => self.check_read(slot, &op, file),
            (1.., _) if op.compares && is_compare_failure(result) => Errno::EILSEQ.result(),
            (1.., _) => self.failed(result),
            (..0, _) => {
                if let Some((errno, why)) = kept_from_controller(result, op.length) {
                    self.failure = Some((errno, why.into()));
                }
                result
            }
        }
    }

    /// Checks the protection information of what was read.
    fn check_read(&mut self, slot: Slot, op: &CommandOp, file: FileIndex) -> i32 {
        let Some(own) = &self.own_protection[file.index()] else {
            return op.length;
        };
        let length = op.length.unsigned_abs();
        let (data, metadata) = (self.ring).data_and_metadata(slot, op.buffer_offset, length);
        match own.check(op.first, data, metadata) {
            Ok(()) => op.length,
            Err((block, error)) => {
                let text = format!("{error} in block {block}, found by the host");
                self.failure = Some((Errno::EILSEQ, text));
                Errno::EILSEQ.result()
            }
        }
    }

    /// Returns the errno of a command that failed with a status, and keeps the status.
    #[cold]
    pub(super) fn failed(&mut self, status: i32) -> i32 {
        let status = Status::from_bits(u16::try_from(status).unwrap_or(u16::MAX));
        let errno = status.errno();
        self.failure = Some((errno, status.to_string()));
        // It may be the reason.
        self.look_at_formats();
        match self.reformatted {
            true => Errno::EIO.result(),
            false => errno.result(),
        }
    }

    /// Stops all ops if a namespace has been formatted to another block size.
    #[cold]
    pub(super) fn look_at_formats(&mut self) {
        self.look_at = self.clock.now() + LOOK_INTERVAL;
        let mut open = self.namespaces.iter().zip(&self.paths);
        let changed =
            open.find(|(namespace, _)| namespace.as_ref().is_some_and(Namespace::is_reformatted));
        if let Some((Some(namespace), path)) = changed {
            let bytes = namespace.format.block_bytes();
            self.failure = Some((
                Errno::EIO,
                format!("{path} no longer has blocks of {bytes} B: it was formatted under the job"),
            ));
            self.reformatted = true;
        }
    }
}

/// Returns whether a Compare has found other data.
fn is_compare_failure(status: i32) -> bool {
    let status = Status::from_bits(u16::try_from(status).unwrap_or(u16::MAX));
    status.type_and_code() == Status::COMPARE_FAILURE.type_and_code()
}

/// Interval between looks at the format of the namespaces, each a read of sysfs.
pub(super) const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// Returns the errno and the reason of a command of `bytes` bytes that the kernel has given up on,
/// or has refused.
#[cold]
fn kept_from_controller(result: i32, bytes: i32) -> Option<(Errno, &'static str)> {
    if result == Errno::EINTR.result() {
        let why = "the driver gave up on the command: the controller was reset, or is gone";
        return Some((Errno::EINTR, why));
    }
    let why = "the kernel refused the command: where it makes no block device of a namespace, it \
               may take 127.5 KiB at most; choose a smaller `bs`";
    let is_too_long = result == Errno::EINVAL.result() && bytes > DEFAULT_BYTES_MAX;
    is_too_long.then_some((Errno::EINVAL, why))
}

/// Longest request that a queue of the block layer takes, unless its driver says otherwise: 255
/// sectors. Linux 6.17 leaves it at that where it refuses the zones of a namespace.
const DEFAULT_BYTES_MAX: i32 = 255 * 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_kernel_keeps_has_a_reason() {
        let why = |errno: Errno, bytes| Some(kept_from_controller(errno.result(), bytes)?.1);
        let given_up = why(Errno::EINTR, 4096).expect("a reason");
        assert!(given_up.contains("reset"), "{given_up}");
        let too_long = why(Errno::EINVAL, 128 << 10).expect("a reason");
        assert!(too_long.contains("smaller `bs`"), "{too_long}");
        assert_eq!(why(Errno::EINVAL, 64 << 10), None);
        assert_eq!(why(Errno::EIO, 128 << 10), None);
    }
}
