//! `io_uring_enter(2)` as an inline system call.
//!
//! With speculation mitigations, the kernel returns with an empty return stack buffer, so every
//! function return after the call is mispredicted. libc's `syscall` adds one such return, and a
//! round trip of the error through thread-local `errno`.

use std::ffi::c_void;

/// Returns the number of entries the kernel took, or a negated errno.
///
/// # Safety
/// As for the call itself: `argument` is null or what `flags` announce, of `size` bytes, and
/// everything that the ring's entries name is alive.
#[inline(always)]
pub(super) unsafe fn io_uring_enter(
    fd: i32,
    submit: u32,
    min: u32,
    flags: u32,
    argument: *const c_void,
    size: usize,
) -> i32 {
    let result: i64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's calling convention: arguments in these six registers, the result in
    // rax; rcx and r11 are overwritten, the stack is not used. The caller vouches for the rest.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_io_uring_enter => result,
            in("rdi") fd,
            in("rsi") submit,
            in("rdx") min,
            in("r10") flags,
            in("r8") argument,
            in("r9") size,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let number = libc::SYS_io_uring_enter;
        // SAFETY: the caller vouches for it.
        let taken = unsafe { libc::syscall(number, fd, submit, min, flags, argument, size) };
        let error = || std::io::Error::last_os_error().raw_os_error();
        result = match taken {
            -1 => -i64::from(error().unwrap_or(libc::EIO)),
            taken => i64::from(taken),
        };
    }
    // Counts and errnos are small.
    i32::try_from(result).unwrap_or(-libc::EOVERFLOW)
}
