//! Types and functions of libiscsi 1.19, whose interface has the version 7.

use std::ffi::{c_char, c_int, c_uchar, c_void};

use crate::library::{LibraryName, functions};

/// The library's session (`struct iscsi_context`).
pub(super) enum Context {}

/// The library's command (`struct scsi_task`), of which it has more fields than these.
#[repr(C)]
pub(super) struct Task {
    status: c_int,
    cdb_bytes: c_int,
    direction: c_int,
    expected_bytes: c_int,
    cdb: [c_uchar; 16],
    pub(super) residual_kind: c_int,
    pub(super) residual: usize,
    /// The library's own decoding of sense data (`struct scsi_sense`).
    sense: [u32; 4],
    /// Bytes at `data`. Of a command that ended with CHECK CONDITION: a length of two bytes, and
    /// sense data.
    pub(super) data_bytes: c_int,
    pub(super) data: *const c_uchar,
}

const _: () = {
    assert!(std::mem::offset_of!(Task, residual_kind) == 32);
    assert!(std::mem::offset_of!(Task, residual) == 40 || cfg!(target_pointer_width = "32"));
    assert!(std::mem::offset_of!(Task, data) == 72 || cfg!(target_pointer_width = "32"));
};

/// The library's callback (`iscsi_command_cb`).
pub(super) type Callback = unsafe extern "C" fn(*mut Context, c_int, *mut c_void, *mut c_void);

functions! {
    /// Functions of libiscsi 1.19.
    pub(super) struct Functions {
        fn iscsi_create_context(*const c_char) -> *mut Context;
        fn iscsi_destroy_context(*mut Context) -> c_int;
        fn iscsi_get_error(*mut Context) -> *const c_char;
        fn iscsi_get_fd(*mut Context) -> c_int;
        fn iscsi_which_events(*mut Context) -> c_int;
        fn iscsi_service(*mut Context, c_int) -> c_int;
        fn iscsi_set_noautoreconnect(*mut Context, c_int);
        fn iscsi_set_session_type(*mut Context, c_int) -> c_int;
        fn iscsi_set_header_digest(*mut Context, c_int) -> c_int;
        fn iscsi_set_isid_random(*mut Context, u32, u32) -> c_int;
        fn iscsi_set_targetname(*mut Context, *const c_char) -> c_int;
        fn iscsi_set_initiator_username_pwd(
            *mut Context, *const c_char, *const c_char
        ) -> c_int;
        fn iscsi_set_target_username_pwd(*mut Context, *const c_char, *const c_char) -> c_int;
        fn iscsi_get_target_address(*mut Context) -> *const c_char;
        fn iscsi_connect_async(*mut Context, *const c_char, Callback, *mut c_void) -> c_int;
        fn iscsi_login_async(*mut Context, Callback, *mut c_void) -> c_int;
        fn iscsi_logout_async(*mut Context, Callback, *mut c_void) -> c_int;
        fn iscsi_scsi_command_async(
            *mut Context, c_int, *mut Task, Callback, *mut c_void, *mut c_void
        ) -> c_int;
        fn scsi_create_task(c_int, *const c_uchar, c_int, c_int) -> *mut Task;
        fn scsi_free_scsi_task(*mut Task);
        fn scsi_task_add_data_in_buffer(*mut Task, c_int, *mut c_uchar) -> c_int;
        fn scsi_task_add_data_out_buffer(*mut Task, c_int, *mut c_uchar) -> c_int;
    }
}

pub(super) const LIBRARY: LibraryName = LibraryName {
    stem: "libiscsi.so",
    file: c"libiscsi.so.7",
    package: "libiscsi7",
};

/// `ISCSI_SESSION_NORMAL`.
pub(super) const SESSION_NORMAL: c_int = 2;
/// `ISCSI_HEADER_DIGEST_NONE_CRC32C`: the target decides.
pub(super) const DIGEST_OF_TARGET: c_int = 1;
/// `SCSI_XFER_NONE`, `_READ`, `_WRITE`.
pub(super) const MOVES_NOTHING: c_int = 0;
pub(super) const MOVES_IN: c_int = 1;
pub(super) const MOVES_OUT: c_int = 2;
/// `SCSI_RESIDUAL_UNDERFLOW`.
pub(super) const UNDERFLOW: c_int = 1;
/// `SCSI_STATUS_REDIRECT`: the target is at another address.
pub(super) const REDIRECT: c_int = 0x101;
/// `SCSI_STATUS_CANCELLED`: the library has given the command up with its connection.
pub(super) const CANCELLED: c_int = 0x0f00_0000;
