//! The calling thread: affinity, priorities, credentials and resource usage.
//!
//! Linux keeps all of these per thread; raw system calls are used where libc applies them to the
//! whole process.

mod schedule;
mod tasks;

use std::io;

pub use fathom_core::IoPriority;
use fathom_core::Nanos;

pub use schedule::{ScheduleTimes, ThreadSchedule};
pub use tasks::{KernelHelper, kernel_helpers, kernel_helpers_us, usage_of_task};

/// Returns the calling thread's id.
#[must_use]
pub fn id() -> u32 {
    // SAFETY: no preconditions; always succeeds.
    let id = unsafe { libc::gettid() };
    id.unsigned_abs()
}

/// Lists the CPUs in the calling thread's affinity mask, ascending.
///
/// # Errors
/// The error of `sched_getaffinity(2)`.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let numbers = (0_u32..).zip(affinity()?).flat_map(|(word, bits)| {
        (0..64)
            .filter(move |bit| bits >> bit & 1 == 1)
            .map(move |bit| word * 64 + bit)
    });
    Ok(numbers.collect())
}

/// Confines the calling thread to these CPUs.
///
/// # Errors
/// `EINVAL` if none of them is usable, or one has a number past 8191.
pub fn set_allowed_cpus(cpus: &[u32]) -> io::Result<()> {
    let mut words = [0; MASK_WORDS];
    for &cpu in cpus {
        *word_of(&mut words, cpu)? |= 1 << (cpu % 64);
    }
    set_affinity(&words)
}

/// Returns the CPU on which the calling thread runs at this moment.
#[must_use]
pub fn current_cpu() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::sched_getcpu() }.cast_unsigned()
}

/// Migrates the calling thread to another CPU of its affinity mask, which stays as it is. Returns
/// whether there is another.
///
/// # Errors
/// The error of `sched_getaffinity(2)` or `sched_setaffinity(2)`.
pub fn change_processor() -> io::Result<bool> {
    let here = current_cpu();
    let all = affinity()?;
    let mut others = all;
    *word_of(&mut others, here)? &= !(1 << (here % 64));
    if others == [0; MASK_WORDS] {
        return Ok(false);
    }
    set_affinity(&others)?;
    set_affinity(&all)?;
    Ok(true)
}

/// Returns the affinity mask of the calling thread.
fn affinity() -> io::Result<[u64; MASK_WORDS]> {
    let mut words = [0_u64; MASK_WORDS];
    let size = size_of_val(&words);
    // SAFETY: the raw call takes any size; it writes at most `size` bytes to the live array.
    let rc = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size, words.as_mut_ptr()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(words)
}

fn set_affinity(words: &[u64; MASK_WORDS]) -> io::Result<()> {
    let size = size_of_val(words);
    // SAFETY: the kernel reads `size` bytes from the live array.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size, words.as_ptr()) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns the word that holds a CPU's bit.
fn word_of(words: &mut [u64; MASK_WORDS], cpu: u32) -> io::Result<&mut u64> {
    let word = words.get_mut((cpu / 64) as usize);
    word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Names the calling thread; the kernel keeps the first 15 bytes.
///
/// # Errors
/// The error of `prctl(2)`.
pub fn set_name(name: &str) -> io::Result<()> {
    let mut bytes = [0_u8; NAME_BYTES];
    for (place, byte) in bytes.iter_mut().take(NAME_BYTES - 1).zip(name.bytes()) {
        *place = byte;
    }
    // SAFETY: the kernel reads a string of at most 16 bytes, of which the last is zero.
    let rc = unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
    zero_or_error(rc.into())
}

/// Makes the calling thread run as another user, irrevocably. Other threads are not affected,
/// unlike by libc's `setuid`.
///
/// # Errors
/// `EPERM` without privilege.
pub fn set_user(id: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    zero_or_error(unsafe { libc::syscall(libc::SYS_setresuid, id, id, id) })
}

/// Makes the calling thread run as another group; see [`set_user`].
///
/// # Errors
/// `EPERM` without privilege.
pub fn set_group(id: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    zero_or_error(unsafe { libc::syscall(libc::SYS_setresgid, id, id, id) })
}

/// Sets the calling thread's nice value, −20 (urgent) to 19.
///
/// # Errors
/// `EACCES` or `EPERM` when lowering it without privilege.
pub fn set_nice(value: i32) -> io::Result<()> {
    // SAFETY: plain integers; 0 is the calling thread.
    let rc = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) };
    zero_or_error(rc.into())
}

/// Returns the calling thread's nice value.
///
/// # Errors
/// The error of `getpriority(2)`.
pub fn nice() -> io::Result<i32> {
    // The raw call returns 20 − nice, which unlike libc's −1 cannot be confused with an error.
    // SAFETY: plain integers; 0 is the calling thread.
    let rc = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    match i32::try_from(rc) {
        Ok(value @ 0..) => Ok(20 - value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets the calling thread run only when no other wants its processor (`SCHED_IDLE`), or undoes
/// that.
///
/// Unlike nice 19, the kernel treats a processor with nothing but such threads as idle: a thread
/// that wakes takes it at once.
///
/// # Errors
/// `EPERM` when undoing it without privilege.
pub fn set_idle(idle: bool) -> io::Result<()> {
    let policy = if idle {
        libc::SCHED_IDLE
    } else {
        libc::SCHED_OTHER
    };
    // SAFETY: all fields of this struct are integers, for which zero is valid.
    let param: libc::sched_param = unsafe { core::mem::zeroed() };
    // The raw call: musl's function refuses to change a thread.
    // SAFETY: the pointer lives across the call; 0 is the calling thread.
    zero_or_error(unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param)
    })
}

/// Returns whether the calling thread shares processors as threads usually do (`SCHED_OTHER`).
#[must_use]
pub fn is_time_shared() -> bool {
    // SAFETY: plain integers; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) == libc::SCHED_OTHER.into() }
}

/// Returns whether the calling thread yields to all others; see [`set_idle`].
#[must_use]
pub fn is_idle() -> bool {
    // SAFETY: plain integers; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) == libc::SCHED_IDLE.into() }
}

/// Sets the calling thread's I/O priority.
///
/// # Errors
/// `EPERM` for the real-time class without privilege, `EINVAL` for an invalid priority.
pub fn set_io_priority(priority: IoPriority) -> io::Result<()> {
    let value = libc::c_int::from(priority.to_raw());
    // SAFETY: plain integers; process 0 is the calling thread.
    let rc = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value) };
    zero_or_error(rc)
}

/// Returns the calling thread's I/O priority.
///
/// # Errors
/// The error of `ioprio_get(2)`.
pub fn io_priority() -> io::Result<IoPriority> {
    // SAFETY: plain integers; process 0 is the calling thread.
    let rc = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
    let value = u16::try_from(rc).map_err(|_negative| io::Error::last_os_error())?;
    Ok(IoPriority::from_raw(value))
}

/// Sets the calling thread's timer slack in ns; the default is 50,000.
///
/// # Errors
/// The error of `prctl(2)`.
pub fn set_timer_slack_ns(ns: u64) -> io::Result<()> {
    let ns = libc::c_ulong::from(ns.max(1));
    // SAFETY: plain integers.
    let rc = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns, 0, 0, 0) };
    zero_or_error(rc.into())
}

/// Returns the calling thread's timer slack, in ns.
///
/// # Errors
/// The error of `prctl(2)`.
pub fn timer_slack_ns() -> io::Result<u64> {
    // SAFETY: plain integers.
    let rc = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(rc).map_err(|_negative| io::Error::last_os_error())
}

/// Resource usage of a thread or process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// User time, µs.
    pub user_us: u64,
    /// System time, µs.
    pub system_us: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Major page faults, which waited for a device.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

impl Usage {
    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
            major_faults: self.major_faults + other.major_faults,
            minor_faults: self.minor_faults + other.minor_faults,
        }
    }

    /// Returns the usage between `earlier` and this.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }
}

/// Returns the usage of the calling thread.
#[must_use]
pub fn usage() -> Usage {
    usage_of(libc::RUSAGE_THREAD)
}

/// Returns the processor time that the calling thread has used, to the nanosecond.
#[must_use]
pub fn processor_time() -> Nanos {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the struct is alive. The call cannot fail with this clock; if it did, the zeros would
    // stand.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Nanos::from_secs(seconds) + Nanos::new(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the usage of the process, including ended threads and kernel helpers.
#[must_use]
pub fn process_usage() -> Usage {
    usage_of(libc::RUSAGE_SELF)
}

fn usage_of(who: libc::c_int) -> Usage {
    // SAFETY: `rusage` is a plain C struct of integers, for which zeros are a value.
    let mut raw: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the struct lives through the call. It cannot fail with a valid `who`; if it did, the
    // zeros would stand.
    unsafe { libc::getrusage(who, &raw mut raw) };
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    let micros =
        |time: libc::timeval| count(time.tv_sec).saturating_mul(1_000_000) + count(time.tv_usec);
    Usage {
        user_us: micros(raw.ru_utime),
        system_us: micros(raw.ru_stime),
        voluntary_switches: count(raw.ru_nvcsw),
        involuntary_switches: count(raw.ru_nivcsw),
        major_faults: count(raw.ru_majflt),
        minor_faults: count(raw.ru_minflt),
    }
}

fn zero_or_error(rc: libc::c_long) -> io::Result<()> {
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// 8192 CPUs, the maximum of a Linux build.
const MASK_WORDS: usize = 128;
/// TASK_COMM_LEN of the kernel, including the terminating zero.
const NAME_BYTES: usize = 16;
/// <linux/ioprio.h>.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Runs a test in its own thread, with which its settings end.
    fn on_a_thread(test: impl FnOnce() + Send + 'static) {
        std::thread::spawn(test).join().unwrap();
    }

    #[test]
    fn a_thread_can_be_confined_to_one_processor() {
        on_a_thread(|| {
            let before = allowed_cpus().unwrap();
            let last = *before.last().unwrap();
            set_allowed_cpus(&[last]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [last]);
        });
    }

    #[test]
    fn a_thread_changes_its_processor_where_there_is_another() {
        on_a_thread(|| {
            let before = allowed_cpus().unwrap();
            assert_eq!(change_processor().unwrap(), before.len() > 1);
            assert_eq!(allowed_cpus().unwrap(), before);
            set_allowed_cpus(&before[..1]).unwrap();
            assert!(!change_processor().unwrap());
            assert_eq!(allowed_cpus().unwrap(), before[..1]);
        });
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        on_a_thread(|| {
            for cpu in [8191, 8192, u32::MAX] {
                let error = set_allowed_cpus(&[cpu]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{cpu}");
            }
        });
    }

    #[test]
    fn nice_is_the_threads_own() {
        let here = nice().unwrap();
        on_a_thread(|| {
            set_nice(19).unwrap();
            assert_eq!(nice().unwrap(), 19);
        });
        assert_eq!(nice().unwrap(), here);
    }

    #[test]
    fn the_idle_policy_is_the_threads_own() {
        on_a_thread(|| {
            set_idle(true).unwrap();
            assert!(is_idle() && !is_time_shared());
        });
        assert!(is_time_shared());
    }

    #[test]
    fn a_name_is_kept_as_far_as_the_kernel_keeps_it() {
        on_a_thread(|| {
            set_name("a-name-of-twenty-one").unwrap();
            let comm = fs::read_to_string(format!("/proc/self/task/{}/comm", id())).unwrap();
            assert_eq!(comm.trim_end(), "a-name-of-twent");
        });
    }

    #[test]
    fn a_user_is_the_threads_own() {
        let uid = |thread: u32| {
            let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
            line.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok())
        };
        let here = uid(id());
        on_a_thread(
            move || match set_group(65_534).and_then(|()| set_user(65_534)) {
                Ok(()) => assert_eq!(uid(id()), Some(65_534)),
                Err(error) => println!("skipped: {error}"),
            },
        );
        assert_eq!(uid(id()), here);
    }

    #[test]
    fn io_priority_is_kept() {
        on_a_thread(|| {
            let wanted = IoPriority {
                class: 2,
                level: 7,
                hint: 0,
            };
            set_io_priority(wanted).unwrap();
            assert_eq!(io_priority().unwrap(), wanted);
            let bad = IoPriority { class: 6, ..wanted };
            assert_eq!(
                set_io_priority(bad).unwrap_err().raw_os_error(),
                Some(libc::EINVAL)
            );
        });
    }

    #[test]
    fn timer_slack_is_kept() {
        on_a_thread(|| {
            set_timer_slack_ns(1).unwrap();
            assert_eq!(timer_slack_ns().unwrap(), 1);
        });
    }

    #[test]
    fn work_shows_in_the_usage() {
        on_a_thread(|| {
            let before = usage();
            let pages = vec![1_u8; 8 << 20];
            let mut used = Usage::default();
            while used.user_us + used.system_us < 1_000 {
                std::hint::black_box(pages.iter().map(|&byte| u64::from(byte)).sum::<u64>());
                used = usage().since(before);
            }
            assert!(usage().since(before).minor_faults > 0);
            assert!(process_usage().minor_faults >= usage().minor_faults);
        });
    }
}
