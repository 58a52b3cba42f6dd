//! Properties of the machine, its kernel and the terminal, for reports.

use std::ffi::CStr;
use std::fs;
use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Result of `uname(2)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// `Linux`.
    pub name: String,
    /// `6.12.0-amd64`.
    pub release: String,
    /// Build of the kernel.
    pub version: String,
    /// `x86_64`.
    pub architecture: String,
    /// Host name.
    pub host: String,
}

/// Calls `uname(2)`; empty on failure.
#[must_use]
pub fn kernel() -> Kernel {
    // SAFETY: `utsname` is a plain C struct of characters, for which zeros are a value.
    let mut raw: libc::utsname = unsafe { mem::zeroed() };
    // SAFETY: the struct lives through the call. If it failed, the zeros would stand.
    unsafe { libc::uname(&raw mut raw) };
    Kernel {
        name: text(&raw.sysname),
        release: text(&raw.release),
        version: text(&raw.version),
        architecture: text(&raw.machine),
        host: text(&raw.nodename),
    }
}

fn text(field: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .map(|&character| character.to_ne_bytes()[0])
        .collect();
    let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_string_lossy);
    text.map(Into::into).unwrap_or_default()
}

/// Returns the page size.
#[must_use]
pub fn page_size() -> u64 {
    configured(libc::_SC_PAGESIZE).unwrap_or(4096)
}

/// Returns the number of CPUs online, at least 1. The process may be confined to fewer.
#[must_use]
pub fn cpus_online() -> u32 {
    let online = configured(libc::_SC_NPROCESSORS_ONLN);
    online
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(1)
        .max(1)
}

/// Returns the number of configured CPUs, online or not; at least 1.
#[must_use]
pub fn cpus_configured() -> u32 {
    let configured = configured(libc::_SC_NPROCESSORS_CONF);
    configured
        .and_then(|count| u32::try_from(count).ok())
        .unwrap_or(1)
        .max(1)
}

/// Returns the machine's memory, in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    configured(libc::_SC_PHYS_PAGES)
        .unwrap_or(0)
        .saturating_mul(page_size())
}

/// Returns the memory available without swapping, in bytes; `None` if the kernel does not report
/// it.
#[must_use]
pub fn memory_available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    kib_of(&text, "MemAvailable").map(|kib| kib.saturating_mul(1024))
}

fn kib_of(meminfo: &str, key: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn configured(name: libc::c_int) -> Option<u64> {
    // SAFETY: a plain integer; an unknown name gives −1.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok()
}

/// Returns the current frequency of the first CPU; `None` if the kernel does not report it.
#[must_use]
pub fn cpu_hz() -> Option<u64> {
    hz_in(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn hz_in(cpuinfo: &str) -> Option<u64> {
    let line = cpuinfo.lines().find(|line| line.starts_with("cpu MHz"))?;
    let (_, mhz) = line.split_once(':')?;
    let (whole, rest) = mhz.trim().split_once('.').unwrap_or((mhz.trim(), "0"));
    let millis: u64 = format!("{rest:0<3}").get(..3)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000_000 + millis * 1_000).filter(|&hz| hz > 0)
}

/// Returns the CPU model in the kernel's words; empty if unknown.
#[must_use]
pub fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    model_in(&text).unwrap_or_default()
}

fn model_in(cpuinfo: &str) -> Option<String> {
    let named = |wanted: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    // x86 and others; 32-bit ARM; RISC-V.
    named("model name")
        .or_else(|| named("Processor"))
        .or_else(|| named("uarch"))
}

/// Processor time since boot, summed over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// All of it, idle time included, µs.
    pub total_us: u64,
    /// Idle, waiting for I/O included, µs.
    pub idle_us: u64,
    /// Steal time, µs: taken by the hypervisor for other guests.
    pub stolen_us: u64,
}

impl CpuTimes {
    /// Returns the times between `earlier` and this.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            total_us: self.total_us.saturating_sub(earlier.total_us),
            idle_us: self.idle_us.saturating_sub(earlier.idle_us),
            stolen_us: self.stolen_us.saturating_sub(earlier.stolen_us),
        }
    }

    /// Returns the time in which the processors ran something.
    #[must_use]
    pub const fn busy_us(self) -> u64 {
        let unused = self.idle_us.saturating_add(self.stolen_us);
        self.total_us.saturating_sub(unused)
    }
}

/// Reads the CPU times since boot; `None` if /proc does not report them.
#[must_use]
pub fn cpu_times() -> Option<CpuTimes> {
    cpu_times_in(&fs::read_to_string("/proc/stat").ok()?)
}

/// Reads the CPU times of each CPU online, by number.
#[must_use]
pub fn cpu_times_each() -> Vec<(u32, CpuTimes)> {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let lines = stat.lines().filter_map(|line| {
        let number = line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()?;
        Some((number, times(line)?))
    });
    lines.collect()
}

/// Parses a `cpu` line: user, nice, system, idle, iowait, irq, softirq, steal, then guest times,
/// which the first two include.
fn cpu_times_in(stat: &str) -> Option<CpuTimes> {
    times(stat.lines().find(|line| line.starts_with("cpu "))?)
}

fn times(line: &str) -> Option<CpuTimes> {
    let ticks: Result<Vec<u64>, _> = line
        .split_ascii_whitespace()
        .skip(1)
        .take(8)
        .map(str::parse)
        .collect();
    let ticks = ticks.ok().filter(|ticks| ticks.len() >= 5)?;
    let us = |ticks: u64| ticks.saturating_mul(TICK_US);
    Some(CpuTimes {
        total_us: us(ticks.iter().sum()),
        idle_us: us(ticks[3] + ticks[4]),
        stolen_us: us(ticks.get(7).copied().unwrap_or(0)),
    })
}

/// Returns the limit of locked memory, in bytes; `None`: unlimited.
#[must_use]
pub fn locked_memory_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the struct lives through the call. It cannot fail with a valid resource.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Raises the soft limit of open files to the hard one and returns it.
///
/// # Errors
/// The error of `getrlimit(2)` or `setrlimit(2)`.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let mut limit = open_files()?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the struct lives through the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

/// Returns the soft limit of open files; `None` if it cannot be read.
#[must_use]
pub fn open_files_limit() -> Option<u64> {
    open_files().ok().map(|limit| limit.rlim_cur)
}

fn open_files() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the struct lives through the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } {
        0 => Ok(limit),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the width of the terminal at a descriptor; `None` if there is none, or it is unknown.
#[must_use]
pub fn terminal_width(output: impl AsFd) -> Option<u16> {
    let fd = output.as_fd();
    if !fd.is_terminal() {
        return None;
    }
    // SAFETY: `winsize` is a plain C struct of integers, for which zeros are a value.
    let mut window: libc::winsize = unsafe { mem::zeroed() };
    // SAFETY: the descriptor is open (`AsFd`), and TIOCGWINSZ writes one `winsize`, which lives
    // through the call.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut window) };
    (rc == 0 && window.ws_col > 0).then_some(window.ws_col)
}

/// Unit of the times in /proc. USER_HZ is 100 on every Linux architecture that Rust supports.
pub(crate) const TICK_US: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_rate_is_read_with_its_fraction() {
        let hz = |text| hz_in(&format!("processor\t: 0\ncpu MHz\t\t: {text}\n"));
        assert_eq!(hz("2899.998"), Some(2_899_998_000));
        assert_eq!(hz("3000"), Some(3_000_000_000));
        assert_eq!(hz("x"), None);
        assert_eq!(hz_in("processor : 0\n"), None);
    }

    #[test]
    fn this_machine_is_plausible() {
        assert_eq!(kernel().name, "Linux");
        assert!(
            kernel()
                .release
                .starts_with(|first: char| first.is_ascii_digit())
        );
        assert!(page_size().is_power_of_two());
        assert!(cpus_online() >= 1 && cpus_configured() >= cpus_online());
        assert!(memory_bytes() > 16 << 20);
        assert!(memory_available_bytes().unwrap() <= memory_bytes());
        let times = cpu_times().unwrap();
        assert!(times.idle_us + times.stolen_us <= times.total_us);
        assert!(raise_open_files_limit().unwrap() >= 256);
    }

    #[test]
    fn the_tick_is_what_the_kernel_says() {
        assert_eq!(configured(libc::_SC_CLK_TCK), Some(1_000_000 / TICK_US));
    }

    #[test]
    fn cpu_times_leave_guest_time_out() {
        let stat = "cpu  1 2 3 40 5 6 7 8 1000 1000\ncpu0 1 2 3 40 5 6 7 8 1000 1000\n";
        let times = cpu_times_in(stat).unwrap();
        assert_eq!(times.total_us, 72 * TICK_US);
        assert_eq!(times.idle_us, 45 * TICK_US);
        assert_eq!(times.stolen_us, 8 * TICK_US);
        assert_eq!(cpu_times_in("cpu  1 2"), None);
        assert_eq!(cpu_times_in(""), None);
    }

    #[test]
    fn a_model_is_found_by_its_key() {
        let text = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.00GHz\n";
        assert_eq!(model_in(text).as_deref(), Some("Some CPU @ 2.00GHz"));
        assert_eq!(model_in("processor : 0\n"), None);
    }

    #[test]
    fn a_key_is_not_taken_for_a_longer_one() {
        let text = "MemAvailableX: 7 kB\nMemAvailable:    123 kB\n";
        assert_eq!(kib_of(text, "MemAvailable"), Some(123));
        assert_eq!(kib_of(text, "Mem"), None);
    }

    #[test]
    fn a_file_is_no_terminal() {
        let file = fs::File::open("/dev/null").unwrap();
        assert_eq!(terminal_width(&file), None);
    }
}
