//! Hardware counters of the last-level cache (`perf_event_open(2)`).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// Counters of references to the last-level cache and of misses, by all threads that a process has
/// when they are opened.
#[derive(Debug)]
pub struct CacheCounters {
    references: Vec<File>,
    misses: Vec<File>,
}

/// Counts since the counters were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Accesses to the last-level cache.
    pub references: u64,
    /// Those that it did not serve.
    pub misses: u64,
}

impl CacheCounters {
    /// Opens the counters of a process, user and kernel mode.
    ///
    /// # Errors
    /// `ENOENT` or `EOPNOTSUPP` if the machine does not offer them, as most virtual machines;
    /// `EACCES` or `EPERM` if `kernel.perf_event_paranoid` forbids them.
    pub fn open(process: u32) -> io::Result<Self> {
        let mut counters = Self {
            references: Vec::new(),
            misses: Vec::new(),
        };
        for entry in std::fs::read_dir(format!("/proc/{process}/task"))? {
            let name = entry?.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            counters.references.push(counter(thread, REFERENCES)?);
            counters.misses.push(counter(thread, MISSES)?);
        }
        Ok(counters)
    }

    /// Reads the counts, sums over the threads.
    ///
    /// # Errors
    /// The error of reading a counter.
    pub fn counts(&self) -> io::Result<CacheCounts> {
        let sum = |counters: &[File]| -> io::Result<u64> {
            let mut sum = 0_u64;
            for mut counter in counters {
                let mut count = [0; 8];
                counter.read_exact(&mut count)?;
                sum = sum.wrapping_add(u64::from_ne_bytes(count));
            }
            Ok(sum)
        };
        Ok(CacheCounts {
            references: sum(&self.references)?,
            misses: sum(&self.misses)?,
        })
    }
}

/// Opens one counter of a thread.
fn counter(thread: i32, event: u64) -> io::Result<File> {
    let attributes = Attributes {
        kind: HARDWARE,
        size: SIZE,
        config: event,
        flags: EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    let (any_cpu, no_group) = (-1, -1);
    // SAFETY: the structure is alive, and as long as its size field says; the rest are integers.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    let descriptor = i32::try_from(descriptor).unwrap_or(-1);
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned the descriptor, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// `struct perf_event_attr` in its first version, which every kernel accepts.
#[derive(Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

const SIZE: u32 = 64;
const _: () = assert!(size_of::<Attributes>() == SIZE as usize);

const HARDWARE: u32 = 0;
const REFERENCES: u64 = 2;
const MISSES: u64 = 3;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_where_the_machine_has_them() {
        let counters = match CacheCounters::open(std::process::id()) {
            Ok(counters) => counters,
            Err(why) => return println!("skipped: no cache counters: {why}"),
        };
        let before = counters.counts().unwrap();
        let memory = vec![1_u8; 64 << 20];
        let sum: u64 = memory.iter().step_by(64).map(|&byte| u64::from(byte)).sum();
        assert_eq!(sum, 1 << 20);
        let after = counters.counts().unwrap();
        assert!(after.references > before.references, "{before:?} {after:?}");
        assert!(after.misses <= after.references, "{after:?}");
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        let error = CacheCounters::open(u32::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
