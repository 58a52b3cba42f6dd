//! Description of the machine and the commit under test.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process;

/// Describes the machine in one line: CPU, memory, kernel.
pub(crate) fn describe() -> String {
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map_or_else(
            || "unknown memory".into(),
            |kib| format!("{} MiB of memory", kib >> 10),
        );
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cpu}, {cores} cores, {memory}, Linux {}", kernel.trim())
}

/// Returns file system type and device of a directory, from its innermost mount.
pub(crate) fn storage(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let nearest = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?, words.next()?))
        })
        .filter(|(_, mount, _)| folder.starts_with(mount))
        .max_by_key(|(_, mount, _)| mount.len());
    nearest.map_or_else(
        || "unknown".into(),
        |(device, _, kind)| format!("{kind} on {device}"),
    )
}

/// Returns the commit under test, with `+` if the tree has changes.
pub(crate) fn commit() -> Option<String> {
    let root = process::root().ok()?;
    let git = |args: &[&str]| process::capture(Command::new("git").args(args).current_dir(&root));
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).ok()?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]).ok()?;
    let mark = if changes.trim().is_empty() { "" } else { "+" };
    Some(format!("{}{mark}", commit.trim()))
}

/// Returns the value of a line in this process's status, such as `Uid`.
pub(crate) fn status_line(name: &str) -> Option<String> {
    field("/proc/self/status", name)
}

/// Returns the available memory, MiB.
pub(crate) fn available_mib() -> Option<u64> {
    let text = field("/proc/meminfo", "MemAvailable")?;
    let kib: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(kib >> 10)
}

/// Returns the cores in this process's affinity mask, ascending.
pub(crate) fn allowed_cores() -> Vec<u32> {
    status_line("Cpus_allowed_list").map_or_else(Vec::new, |list| cores(&list))
}

/// Parses a CPU list of the kernel (`0-3,8`); skips malformed parts.
fn cores(list: &str) -> Vec<u32> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse()) {
            cores.extend(first..=last);
        }
    }
    cores
}

/// Returns the value of the first `name : value` line of a file in /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_spelled_out() {
        assert_eq!(cores("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cores("3"), [3]);
        assert!(cores("").is_empty());
    }
}
