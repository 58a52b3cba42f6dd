//! Callbacks of the library: each keeps the result of its call, and what the call returns.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use super::Transfer;
use super::abi::{Context, STAT_WORDS};
use crate::library::calls::Call;

/// Callback of a call that returns no data. With an error, the library passes a text or something
/// else, which depends on the call: its words are read from the context instead.
pub(super) unsafe extern "C" fn returned(
    result: c_int,
    _context: *mut Context,
    _data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    if let Some(call) = unsafe { Call::<Transfer>::of_callback(private) } {
        call.end(result);
    }
}

/// Callback of a read, which passes data.
pub(super) unsafe extern "C" fn read(
    result: c_int,
    _context: *mut Context,
    data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    let Some(call) = (unsafe { Call::<Transfer>::of_callback(private) }) else {
        return;
    };
    let bytes = usize::try_from(result).unwrap_or(0);
    // SAFETY: the library passes as many bytes as its result says, none with an error.
    unsafe { call.copy(data.cast_const().cast(), bytes) };
    call.end(result);
}

/// Callback of an open, which passes the file.
pub(super) unsafe extern "C" fn opened(
    result: c_int,
    _context: *mut Context,
    data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    let Some(call) = (unsafe { Call::<Transfer>::of_callback(private) }) else {
        return;
    };
    if result >= 0 {
        call.extra.borrow_mut().opened = NonNull::new(data.cast());
    }
    call.end(result);
}

/// Callback of a look-up, which passes the attributes of a file.
pub(super) unsafe extern "C" fn looked_up(
    result: c_int,
    _context: *mut Context,
    data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the address is that of a call of a table that outlives the context.
    let Some(call) = (unsafe { Call::<Transfer>::of_callback(private) }) else {
        return;
    };
    if result >= 0 {
        // SAFETY: the library passes its structure, which has this many words.
        unsafe { call.copy(data.cast_const().cast(), STAT_WORDS * 8) };
    }
    call.end(result);
}
