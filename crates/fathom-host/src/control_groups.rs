//! Limits of this process's control groups (v1 and v2), and the throttling they caused.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_sys::files::DeviceNumber;
use fathom_sys::system;

/// One hierarchy: the group's folder and its ancestors'.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Controllers of a v1 hierarchy; empty for v2, which has all of them.
    controllers: Vec<String>,
    /// From the group to the root of the mount.
    folders: Vec<PathBuf>,
}

/// Control groups of this process, one per hierarchy.
#[derive(Clone, Debug, Default)]
pub struct ControlGroups(Vec<Hierarchy>);

/// Memory available to this process, and the source of the figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes; 0 if unknown.
    pub bytes: u64,
    /// The figure is a control group's limit, below the host's memory.
    pub is_of_group: bool,
}

impl MemoryLimit {
    /// Reads the memory of the host and the limits of the groups.
    pub fn detect() -> Self {
        Self::within(system::memory_bytes(), &ControlGroups::of_this_process())
    }

    fn within(machine: u64, groups: &ControlGroups) -> Self {
        match groups.memory_bytes() {
            Some(limit) if machine == 0 || limit < machine => Self {
                bytes: limit,
                is_of_group: true,
            },
            _ => Self {
                bytes: machine,
                is_of_group: false,
            },
        }
    }

    /// Returns the owner of the limit, for messages: `the machine's`, `the control group's`.
    pub const fn owner(self) -> &'static str {
        if self.is_of_group {
            "the control group's"
        } else {
            "the machine's"
        }
    }
}

/// CPU limit of a control group, and its effect so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuLimit {
    /// Quota of the tightest group, in processors.
    pub cpus: f64,
    /// Total time for which groups were throttled.
    pub throttled_us: u64,
    /// Number of periods in which they were.
    pub throttled_periods: u64,
}

impl ControlGroups {
    /// Reads the groups of this process.
    pub fn of_this_process() -> Self {
        let text = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name));
        let own = text("cgroup").unwrap_or_default();
        Self::parse(&own, &text("mountinfo").unwrap_or_default())
    }

    /// Combines `/proc/self/cgroup`, the groups, with `mountinfo`, the mounts of their hierarchies.
    fn parse(cgroup: &str, mountinfo: &str) -> Self {
        let hierarchies = mountinfo.lines().filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let left: Vec<&str> = left.split(' ').collect();
            let (root, point) = (*left.get(3)?, *left.get(4)?);
            let right: Vec<&str> = right.split(' ').collect();
            let (kind, options) = (*right.first()?, *right.get(2)?);
            let has = |controller: &str| options.split(',').any(|option| option == controller);
            let own = cgroup.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                let is_it = match kind {
                    "cgroup" => !controllers.is_empty() && controllers.split(',').all(has),
                    "cgroup2" => controllers.is_empty(),
                    _ => false,
                };
                is_it.then_some((controllers, path))
            })?;
            let controllers = own.0.split(',').filter(|name| !name.is_empty());
            Some(Hierarchy {
                controllers: controllers.map(str::to_owned).collect(),
                folders: folders(Path::new(point), root, own.1),
            })
        });
        Self(hierarchies.collect())
    }

    /// Lists the folders of groups with this controller; the flag is true for v2.
    fn with<'a>(&'a self, controller: &'a str) -> impl Iterator<Item = (&'a Path, bool)> {
        let own = self.0.iter().filter(move |hierarchy| {
            let names = &hierarchy.controllers;
            names.is_empty() || names.iter().any(|name| name == controller)
        });
        own.flat_map(|hierarchy| {
            let is_2 = hierarchy.controllers.is_empty();
            hierarchy
                .folders
                .iter()
                .map(move |folder| (&**folder, is_2))
        })
    }

    /// Returns the smallest memory limit, in bytes.
    pub fn memory_bytes(&self) -> Option<u64> {
        let limits = self.with("memory").flat_map(|(folder, is_2)| {
            let files: &[&str] = match is_2 {
                true => &["memory.max", "memory.high"],
                false => &["memory.limit_in_bytes"],
            };
            files.iter().filter_map(move |file| number(folder, file))
        });
        limits.filter(|&limit| limit < NO_LIMIT).min()
    }

    /// Returns the tightest CPU quota, if there is one.
    pub fn cpu_limit(&self) -> Option<CpuLimit> {
        let mut found: Option<CpuLimit> = None;
        for (folder, is_2) in self.with("cpu") {
            let (quota, period) = if is_2 {
                let text = read(folder, "cpu.max").unwrap_or_default();
                let mut words = text.split_whitespace().map(|word| word.parse().ok());
                (words.next().flatten(), words.next().flatten())
            } else {
                // A quota of −1 (no limit) does not parse as unsigned.
                let quota = number(folder, "cpu.cfs_quota_us");
                (quota, number(folder, "cpu.cfs_period_us"))
            };
            let (Some(quota), Some(period)) = (quota, period) else {
                continue;
            };
            let cpus = quota as f64 / u64::max(period, 1) as f64;
            let known = found.get_or_insert(CpuLimit {
                cpus,
                ..CpuLimit::default()
            });
            known.cpus = known.cpus.min(cpus);
            let (us, periods) = throttled(folder);
            known.throttled_us += us;
            known.throttled_periods += periods;
        }
        found
    }

    /// Returns the limits on I/O to any of these devices: `reads of 8:0 to 1048576 B/s`.
    pub fn io_limits(&self, devices: &[DeviceNumber]) -> Vec<String> {
        let mut found = Vec::new();
        let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
        let is_ours = |device: &str| names.iter().any(|name| name == device);
        for (folder, is_2) in self.with("blkio") {
            if is_2 {
                let text = read(folder, "io.max").unwrap_or_default();
                for line in text.lines() {
                    let mut words = line.split_whitespace();
                    let device = words.next().unwrap_or_default();
                    let limits = words.filter(|word| is_ours(device) && !word.ends_with("=max"));
                    found.extend(limits.map(|limit| format!("{device} {limit}")));
                }
            } else {
                for file in THROTTLES {
                    let text = read(folder, &format!("blkio.throttle.{file}")).unwrap_or_default();
                    let lines = text.lines().filter_map(|line| line.split_once(' '));
                    let ours = lines.filter(|(device, _)| is_ours(device));
                    found.extend(ours.map(|(device, limit)| format!("{device} {file}={limit}")));
                }
            }
        }
        found.dedup();
        found
    }
}

/// Lists the folders of the group `path` up to the group `root`, which is mounted at `point`. If
/// `path` is outside `root` (a namespace), only the limits of `root` are visible.
fn folders(point: &Path, root: &str, path: &str) -> Vec<PathBuf> {
    let inside = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
    let groups = inside.ancestors().map(|group| point.join(group));
    groups.collect()
}

/// Returns the time for which a group was throttled, in µs, and the number of periods.
fn throttled(folder: &Path) -> (u64, u64) {
    let text = read(folder, "cpu.stat").unwrap_or_default();
    let of = |key: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
    };
    let in_ns = of("throttled_time ").map(|ns| ns / 1000);
    let us = of("throttled_usec ").or(in_ns);
    (us.unwrap_or(0), of("nr_throttled ").unwrap_or(0))
}

fn read(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok()
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    read(folder, file)?.trim().parse().ok()
}

/// In v1 "no limit" is the largest multiple of the page size; anything above this counts as none.
const NO_LIMIT: u64 = 1 << 62;

const THROTTLES: [&str; 4] = [
    "read_bps_device",
    "write_bps_device",
    "read_iops_device",
    "write_iops_device",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// ControlGroups in a folder that is removed when the test ends.
    struct FakeGroups(PathBuf);

    impl FakeGroups {
        fn new(name: &str) -> Self {
            let name = format!("fathom-limits-{}-{name}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn write(&self, file: &str, text: &str) -> &Self {
            let file = self.0.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
            self
        }

        fn groups(&self) -> ControlGroups {
            let at = self.0.display();
            let mountinfo = format!(
                "1 0 0:1 / {at}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                 2 0 0:2 / {at}/memory rw - cgroup cgroup rw,memory\n\
                 3 0 0:3 / {at}/blkio rw - cgroup cgroup rw,blkio\n\
                 4 0 0:4 /pod {at}/two rw - cgroup2 cgroup2 rw\n"
            );
            let cgroup = "3:cpu,cpuacct:/a\n2:memory:/a/b\n1:blkio:/\n0::/pod/c/d\n";
            ControlGroups::parse(cgroup, &mountinfo)
        }
    }

    impl Drop for FakeGroups {
        fn drop(&mut self) {
            let _gone_is_fine = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_smallest_limit_up_the_hierarchy_holds() {
        let fake = FakeGroups::new("memory");
        fake.write("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(fake.groups().memory_bytes(), None);
        fake.write("memory/a/memory.limit_in_bytes", "41943040\n");
        assert_eq!(fake.groups().memory_bytes(), Some(40 << 20));
        fake.write("two/c/d/memory.max", "max\n");
        fake.write("two/c/memory.max", "4096\n");
        assert_eq!(fake.groups().memory_bytes(), Some(4096));
        let memory = |machine| MemoryLimit::within(machine, &fake.groups());
        assert_eq!((memory(8192).bytes, memory(8192).is_of_group), (4096, true));
        assert_eq!(
            (memory(1024).bytes, memory(1024).is_of_group),
            (1024, false)
        );
    }

    #[test]
    fn processor_limits_are_of_both_versions() {
        let fake = FakeGroups::new("cpu");
        assert_eq!(fake.groups().cpu_limit(), None);
        fake.write("cpu/a/cpu.cfs_quota_us", "-1\n");
        assert_eq!(fake.groups().cpu_limit(), None);
        fake.write("cpu/cpu.cfs_quota_us", "150000\n");
        fake.write("cpu/cpu.cfs_period_us", "100000\n");
        fake.write(
            "cpu/cpu.stat",
            "nr_periods 3\nnr_throttled 2\nthrottled_time 7000\n",
        );
        let of = |cpus, throttled_us, throttled_periods| {
            Some(CpuLimit {
                cpus,
                throttled_us,
                throttled_periods,
            })
        };
        assert_eq!(fake.groups().cpu_limit(), of(1.5, 7, 2));
        fake.write("two/c/cpu.max", "50000 100000\n");
        fake.write(
            "two/c/cpu.stat",
            "usage_usec 9\nnr_throttled 1\nthrottled_usec 5\n",
        );
        fake.write("two/c/d/cpu.max", "max 100000\n");
        assert_eq!(fake.groups().cpu_limit(), of(0.5, 12, 3));
    }

    #[test]
    fn io_limits_of_the_runs_devices_are_told() {
        let fake = FakeGroups::new("io");
        fake.write(
            "blkio/blkio.throttle.read_bps_device",
            "8:0 1048576\n8:16 5\n",
        );
        fake.write(
            "two/c/io.max",
            "8:0 rbps=2097152 wbps=max riops=max wiops=120\n",
        );
        let number = |minor| DeviceNumber { major: 8, minor };
        let limits = fake.groups().io_limits(&[number(0)]);
        let want = [
            "8:0 read_bps_device=1048576",
            "8:0 rbps=2097152",
            "8:0 wiops=120",
        ];
        assert_eq!(limits, want);
        assert!(fake.groups().io_limits(&[number(1)]).is_empty());
    }
}
