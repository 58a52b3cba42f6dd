//! A zram device: the fastest real block device available on every Linux machine.
//!
//! It is set up only if it is not in use, and reset in whatever way the benchmark ends: a shell
//! holds the other end of a pipe, and resets the device when the pipe closes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use super::{data, machine};

/// The zram device, reset on drop.
#[derive(Debug)]
pub(crate) struct Zram {
    guard: Child,
}

impl Zram {
    /// Returns the reason why the device cannot be used, if any.
    pub(crate) fn obstacle() -> Option<String> {
        let size = fs::read_to_string(format!("{FOLDER}/disksize")).ok();
        let root = machine::status_line("Uid").is_some_and(|ids| ids.starts_with('0'));
        let free = machine::available_mib().unwrap_or(0);
        obstacle(size.as_deref(), root, free)
    }

    /// Sets its size and fills it with random bytes.
    pub(crate) fn set_up() -> Result<Self> {
        // The shell first, so that the device is never set up without a process to reset it.
        let guard = Command::new("sh")
            .args(["-c", GUARD])
            .stdin(Stdio::piped())
            .spawn()
            .context("cannot start the shell that resets zram0")?;
        let zram = Self { guard };
        let size = format!("{FOLDER}/disksize");
        fs::write(&size, format!("{SIZE_MIB}M")).with_context(|| format!("cannot write {size}"))?;
        data::fill(zram.path(), SIZE_MIB)?;
        Ok(zram)
    }

    #[expect(
        clippy::unused_self,
        reason = "the path means something only while it is set up"
    )]
    pub(crate) fn path(&self) -> &Path {
        Path::new("/dev/zram0")
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // The shell prints its own errors; a drop cannot report any.
        let _ = self.guard.wait();
    }
}

fn obstacle(size: Option<&str>, root: bool, free_mib: u64) -> Option<String> {
    match size.map(str::trim) {
        None => Some("no /sys/block/zram0: `modprobe zram` makes it".into()),
        Some(_) if !root => Some("setting up zram0 needs root".into()),
        Some("0") if free_mib < NEEDED_MIB => Some(format!(
            "{free_mib} MiB of memory are free, zram0 needs {NEEDED_MIB}"
        )),
        Some("0") => None,
        Some(_) => Some("zram0 is in use".into()),
    }
}

const FOLDER: &str = "/sys/block/zram0";
const SIZE_MIB: u32 = 1024;
/// Memory needed, MiB: random bytes do not compress, and the programs need some too.
const NEEDED_MIB: u64 = 2048;
/// Script that resets the device. It ignores Ctrl-C, which reaches the shell too, because it must
/// outlive this process, and retries, because a killed program may hold the device for a moment.
const GUARD: &str = "trap '' INT TERM HUP
read -r _
for _ in 1 2 3 4 5 6 7 8 9 10; do
    { echo 1 > /sys/block/zram0/reset; } 2>/dev/null && exit
    sleep 0.5
done
echo 'bench: cannot reset zram0: echo 1 > /sys/block/zram0/reset' >&2";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unused_device_is_taken() {
        let words = |size, root, free| obstacle(size, root, free).unwrap_or_default();
        assert_eq!(words(Some("0\n"), true, 4096), "");
        assert!(words(Some("1073741824\n"), true, 4096).contains("in use"));
        assert!(words(Some("0\n"), false, 4096).contains("root"));
        assert!(words(Some("0\n"), true, 1024).contains("1024 MiB"));
        assert!(words(None, true, 4096).contains("modprobe"));
    }
}
