//! Validity statements where the storage, the share of it that a run may use, or the processors are
//! not what they seem: files in memory, loop devices over a page cache, limits of control groups,
//! other load. Mounts end with the mount namespace of each run, loop devices with the last process
//! that has them open, control groups and busy threads on drop.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::common::namespace::after;
use crate::common::{Folder, Run};
use fathom_sys::thread;
use serde_json::Value;

/// Runs the program in a mount namespace after a shell script and returns its report.
fn in_namespace(folder: &Folder, script: &str, words: &str) -> Option<Value> {
    let run = after(folder, script, &format!("--output-format=json {words}"))?;
    Some(run.expect(0).json())
}

/// Returns the statement of a check; fails with all statements if there is none.
#[track_caller]
fn statement<'a>(report: &'a Value, check: &str) -> &'a Value {
    let all = report["fathom"]["validity"].as_array().unwrap();
    let found = all.iter().find(|one| one["check"] == check);
    found.unwrap_or_else(|| panic!("nothing is said of {check}: {all:#?}"))
}

#[track_caller]
fn doubts(report: &Value, check: &str, words: &str) {
    let statement = statement(report, check);
    assert_eq!(statement["ok"], false, "{statement:#}");
    let sentence = statement["sentence"].as_str().unwrap();
    assert!(sentence.contains(words), "{sentence}");
}

/// Mounts a small tmpfs at `memory`.
const TMPFS: &str = "mkdir memory && mount -t tmpfs -o size=8m fathom memory";

/// Attaches a loop device over `image`, named by `$device`. Descriptor 3 keeps it for the program:
/// it is marked for detachment, and gone when the program ends.
const LOOP: &str = "device=$(losetup --find --show image) && exec 3<$device && \
                    losetup --detach $device";

#[test]
fn files_on_an_overlay_in_memory_are_on_no_device() {
    let folder = Folder::new();
    let script = format!(
        "{TMPFS} && mkdir memory/lower memory/upper memory/work point && mount -t overlay -o \
         lowerdir=memory/lower,upperdir=memory/upper,workdir=memory/work fathom point"
    );
    let words = "--filename=point/file --rw=randread --size=1m";
    let Some(report) = in_namespace(&folder, &script, words) else {
        return;
    };
    doubts(&report, "storage", "overlay on tmpfs");
}

#[test]
fn a_second_file_in_memory_is_reported() {
    let folder = Folder::new();
    let words = "--filename=file:memory/file --rw=randread --size=2m";
    let Some(report) = in_namespace(&folder, TMPFS, words) else {
        return;
    };
    // Where the folder itself is in memory, both are.
    let sentence = statement(&report, "storage")["sentence"].as_str().unwrap();
    assert!(sentence.contains("of 2 files are in memory") || sentence.starts_with("the files"));
    assert_eq!(statement(&report, "storage")["ok"], false);
}

#[test]
fn a_loop_device_over_a_cached_file_is_no_disk() {
    let folder = Folder::new();
    folder.write("image", vec![1; 4 << 20]);
    let words = "--filename=$device --rw=randread --direct=1";
    let Some(report) = in_namespace(&folder, LOOP, words) else {
        return;
    };
    doubts(&report, "storage", "even for direct I/O");
}

#[test]
fn a_loop_device_over_a_file_in_memory_is_no_disk() {
    let folder = Folder::new();
    let script = format!("{TMPFS} && truncate --size=4m memory/image && ln -s memory/image image");
    let script = format!("{script} && {LOOP}");
    let words = "--filename=$device --rw=randread";
    let Some(report) = in_namespace(&folder, &script, words) else {
        return;
    };
    doubts(&report, "storage", "in memory");
}

/// Control group, removed on drop.
struct Group(PathBuf);

impl Group {
    /// Creates a group with this controller, in the hierarchy of either version; `None`, with the
    /// reason printed, where that is not possible.
    fn new(hierarchy: &Path, name: &str) -> Option<Self> {
        let path = hierarchy.join(format!("fathom-validity-{name}-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                println!("skipped: {}: {error}", path.display());
                None
            }
        }
    }

    /// Creates a control group of version 1.
    fn first_version(controller: &str) -> Option<Self> {
        let hierarchy = Path::new("/sys/fs/cgroup").join(controller);
        if !hierarchy.join("tasks").exists() {
            println!("skipped: no control groups of version 1 for {controller}");
            return None;
        }
        Self::new(&hierarchy, controller)
    }

    /// Creates a control group of version 2, at whose root the controller must be enabled.
    fn second_version(controller: &str) -> Option<Self> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let gives = |root: &&Path| {
            let given = fs::read_to_string(root.join("cgroup.subtree_control"));
            given.is_ok_and(|given| given.split_whitespace().any(|one| one == controller))
        };
        let Some(root) = roots.iter().find(|root| gives(root)) else {
            println!("skipped: no control groups of version 2 for {controller}");
            return None;
        };
        Self::new(root, controller)
    }

    /// Sets a limit, or prints why it cannot be set.
    fn limit(&self, file: &str, value: &str) -> Option<()> {
        let written = fs::write(self.0.join(file), value);
        let said = |error: &std::io::Error| println!("skipped: {file}: {error}");
        written.inspect_err(said).ok()
    }

    /// Runs the program in the group.
    fn run(&self, folder: &Folder, words: &str) -> Run {
        let script = format!(
            "echo $$ > '{}' && exec '{}' run --output-format=json --name=t {words}",
            self.0.join("cgroup.procs").display(),
            env!("CARGO_BIN_EXE_fathom"),
        );
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).current_dir(folder.path());
        Run::of(command)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is empty: the program that was in it has been waited for.
        fs::remove_dir(&self.0).unwrap();
    }
}

/// Returns the device under a directory, as control groups name it; `None` if there is none.
fn device(folder: &Folder) -> Option<String> {
    let raw = fs::metadata(folder.path()).unwrap().dev();
    let (major, minor) = (raw >> 8 & 0xfff, raw & 0xff | raw >> 12 & 0xf_ff00);
    let partition = format!("/sys/dev/block/{major}:{minor}/partition");
    let is_whole = Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists()
        && !Path::new(&partition).exists();
    if !is_whole {
        println!("skipped: {major}:{minor} is not a whole disk, and only those have limits");
    }
    is_whole.then(|| format!("{major}:{minor}"))
}

/// Far above what the run moves: the existence of the limit alone must be reported.
const BYTES_PER_SECOND: u64 = 1 << 30;

const BUSY: &str = "--ioengine=null --rw=read --size=1g --bs=512";
const DISK: &str = "--filename=file --rw=randread --size=1m --direct=1";
const GREEDY: &str = "--ioengine=null --rw=read --size=1g --bs=1m --iodepth=64";

#[test]
fn a_blkio_limit_is_reported() {
    let folder = Folder::new();
    let Some((device, group)) = device(&folder).zip(Group::first_version("blkio")) else {
        return;
    };
    let value = format!("{device} {BYTES_PER_SECOND}");
    if group
        .limit("blkio.throttle.read_bps_device", &value)
        .is_some()
    {
        let report = group.run(&folder, DISK).expect(0).json();
        doubts(&report, "io_limit", &device);
    }
}

#[test]
fn a_limit_of_io_is_told() {
    let folder = Folder::new();
    let Some((device, group)) = device(&folder).zip(Group::second_version("io")) else {
        return;
    };
    let value = format!("{device} rbps={BYTES_PER_SECOND}");
    if group.limit("io.max", &value).is_some() {
        let report = group.run(&folder, DISK).expect(0).json();
        doubts(&report, "io_limit", &device);
    }
}

#[test]
fn a_cpu_limit_is_reported_in_both_cgroup_versions() {
    let limits = [
        (Group::first_version("cpu"), "cpu.cfs_quota_us", "10000"),
        (Group::second_version("cpu"), "cpu.max", "10000 100000"),
    ];
    for (group, file, value) in limits {
        let folder = Folder::new();
        if let Some(group) = group
            && group.limit(file, value).is_some()
        {
            // Three seconds of the processor at most, and several periods of the limit at least.
            let report = group.run(&folder, BUSY).expect(0).json();
            doubts(&report, "cpu_limit", "limit of 0.1 CPUs");
        }
    }
}

#[test]
fn a_limit_of_memory_counts_for_buffers_and_the_working_set() {
    let limits = [
        (Group::first_version("memory"), "memory.limit_in_bytes"),
        (Group::second_version("memory"), "memory.max"),
    ];
    for (group, file) in limits {
        let folder = Folder::new();
        let Some(group) = group else { continue };
        if group.limit(file, &(40_u64 << 20).to_string()).is_none() {
            continue;
        }
        let refused = group.run(&folder, GREEDY).expect(2);
        assert!(
            refused
                .err
                .contains("more than the control group's 41943040 B"),
            "{refused:#?}"
        );
        let report = group.run(&folder, DISK).expect(0).json();
        let told = statement(&report, "working_set");
        assert_eq!(
            told["figures"]["memory_bytes"],
            f64::from(40 << 20),
            "{told:#}"
        );
    }
}

/// Keeps a CPU busy until it is dropped.
struct BusyLoops {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyLoops {
    /// Starts this many threads, on the CPUs of the calling one.
    fn start(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |stop: Arc<AtomicBool>| {
            move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = (0..count).map(|_| std::thread::spawn(spin(Arc::clone(&stop))));
        Self {
            threads: threads.collect(),
            stop,
        }
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_job_that_waits_for_its_processor_names_the_other_load() {
    // On a thread of its own: the loops and the program inherit its CPU.
    let run = std::thread::spawn(|| {
        let cpu = *thread::allowed_cpus().unwrap().last().unwrap();
        thread::set_allowed_cpus(&[cpu]).unwrap();
        let _loops = BusyLoops::start(3);
        let words = "run --name=t --ioengine=null --rw=read --size=1g --time_based --runtime=500ms \
                     --output-format=json";
        Folder::new().fathom(words).expect(0)
    });
    let report = run.join().unwrap().json();
    let scheduling = &report["jobs"][0]["fathom"]["scheduling"];
    if scheduling.is_null() {
        return println!("skipped: the kernel does not count waits");
    }
    assert!(scheduling["waited_ns"].as_u64() > Some(0), "{scheduling}");
    let processors = &report["fathom"]["processors"];
    assert_eq!(processors["cpus"], 1, "{processors}");
    assert!(processors["busy_us"].as_u64() > processors["own_us"].as_u64());
    doubts(&report, "contention", "for a processor");
    // A limit on the tests themselves would hold the program back as well.
    if processors["throttled_us"].as_u64().unwrap_or(0) == 0 {
        doubts(&report, "contention", ": other programs used");
    }
}
