//! Callbacks of the library: each keeps the status of its call, and the outcome of a command.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::slice;

use super::Command;
use super::abi::{Context, Task, UNDERFLOW};
use crate::library::calls::Call;
use crate::scsi::ScsiOutcome;

/// Callback of a connection, a login and a logout. That of a connection comes again when the
/// connection is lost.
pub(super) unsafe extern "C" fn returned(
    _context: *mut Context,
    status: c_int,
    _data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    if let Some(call) = unsafe { Call::<Command>::of_callback(private) } {
        call.end(status);
    }
}

/// Callback of a command, which passes the command. It is freed later, by its owner.
pub(super) unsafe extern "C" fn executed(
    _context: *mut Context,
    status: c_int,
    _data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    let Some(call) = (unsafe { Call::<Command>::of_callback(private) }) else {
        return;
    };
    let task = call.extra.borrow().task;
    if let (Ok(status), Some(task)) = (u8::try_from(status), task) {
        // SAFETY: the command is freed after this.
        call.extra.borrow_mut().outcome = unsafe { outcome(status, task) };
    }
    call.end(status);
}

/// Copies the outcome of a command.
///
/// # Safety
/// The command has ended and is not freed.
unsafe fn outcome(status: u8, task: NonNull<Task>) -> ScsiOutcome {
    // SAFETY: as the caller promises.
    let task = unsafe { task.as_ref() };
    let bytes = usize::try_from(task.data_bytes).unwrap_or(0);
    let sense = match status {
        CHECK_CONDITION if !task.data.is_null() && bytes > LENGTH_BYTES => {
            // SAFETY: the library has this many bytes of the target's answer there.
            let answer = unsafe { slice::from_raw_parts(task.data, bytes) };
            &answer[LENGTH_BYTES..]
        }
        _ => &[],
    };
    let residual = match task.residual_kind {
        UNDERFLOW => u32::try_from(task.residual).unwrap_or(u32::MAX),
        _ => 0,
    };
    ScsiOutcome::new(status, sense, residual)
}

const CHECK_CONDITION: u8 = 2;
/// Length of the sense data, before them.
const LENGTH_BYTES: usize = 2;
