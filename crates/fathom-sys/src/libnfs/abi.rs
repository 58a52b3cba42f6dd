//! Types and functions of libnfs 4.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::library::{LibraryName, functions};

/// The library's connection (`struct nfs_context`).
pub(super) enum Context {}

/// The library's open file (`struct nfsfh`).
pub(super) enum File {}

/// The library's URL (`struct nfs_url`), of which it may have more fields than these.
#[repr(C)]
pub(super) struct Url {
    pub(super) server: *mut c_char,
    pub(super) path: *mut c_char,
}

/// The library's callback (`nfs_cb`).
pub(super) type Callback = unsafe extern "C" fn(c_int, *mut Context, *mut c_void, *mut c_void);

functions! {
    /// Functions of libnfs 4.
    pub(super) struct Functions {
        fn nfs_init_context() -> *mut Context;
        fn nfs_destroy_context(*mut Context);
        fn nfs_get_error(*mut Context) -> *mut c_char;
        fn nfs_get_fd(*mut Context) -> c_int;
        fn nfs_which_events(*mut Context) -> c_int;
        fn nfs_service(*mut Context, c_int) -> c_int;
        fn nfs_set_autoreconnect(*mut Context, c_int);
        fn nfs_parse_url_dir(*mut Context, *const c_char) -> *mut Url;
        fn nfs_destroy_url(*mut Url);
        fn nfs_mount_async(
            *mut Context, *const c_char, *const c_char, Callback, *mut c_void
        ) -> c_int;
        fn nfs_get_readmax(*mut Context) -> u64;
        fn nfs_get_writemax(*mut Context) -> u64;
        fn nfs_open2_async(
            *mut Context, *const c_char, c_int, c_int, Callback, *mut c_void
        ) -> c_int;
        fn nfs_close_async(*mut Context, *mut File, Callback, *mut c_void) -> c_int;
        fn nfs_fstat64_async(*mut Context, *mut File, Callback, *mut c_void) -> c_int;
        fn nfs_pread_async(*mut Context, *mut File, u64, u64, Callback, *mut c_void) -> c_int;
        fn nfs_pwrite_async(
            *mut Context, *mut File, u64, u64, *const c_void, Callback, *mut c_void
        ) -> c_int;
        fn nfs_fsync_async(*mut Context, *mut File, Callback, *mut c_void) -> c_int;
    }
}

pub(super) const LIBRARY: LibraryName = LibraryName {
    stem: "libnfs.so",
    file: FILE,
    package: "libnfs13",
};

/// libnfs 4. Version 6 of the library has other arguments under the same names.
const FILE: &CStr = c"libnfs.so.13";

/// Words of the attributes (`struct nfs_stat_64`), and the one with the size.
pub(super) const STAT_WORDS: usize = 17;
pub(super) const STAT_SIZE: usize = 7;
