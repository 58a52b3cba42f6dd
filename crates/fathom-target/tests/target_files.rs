//! Target files: what the examples mean, and how each mistake is reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_core::{Geometry, Tick};
use fathom_host::target_kind::TargetKind;
use fathom_target::{AllowedHosts, Host, Obstacle, TargetPlan};

/// Host with the files that a test gives it.
struct Invented {
    files: BTreeMap<&'static str, TargetKind>,
    memory_bytes: u64,
}

impl Host for Invented {
    fn file(&self, path: &Path) -> Result<TargetKind, Obstacle> {
        if path == Path::new("/dev/mounted") {
            return Err(Obstacle {
                why: "/dev/mounted: will not be written: it is mounted".into(),
                hint: "choose another".into(),
            });
        }
        let kind = path.to_str().and_then(|path| self.files.get(path));
        Ok(kind.copied().unwrap_or(TargetKind::Missing))
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

fn host() -> Invented {
    let block = TargetKind::Block {
        bytes: 1 << 30,
        logical_block: 4096,
    };
    Invented {
        files: BTreeMap::from([
            ("data", TargetKind::Regular((1 << 20) + 100)),
            ("empty", TargetKind::Regular(0)),
            ("/dev/disk", block),
            ("/tmp", TargetKind::Directory),
        ]),
        memory_bytes: 16 << 30,
    }
}

fn parse(text: &str) -> Result<TargetPlan, String> {
    TargetPlan::parse("t.toml", text, &host()).map_err(|error| error.to_string())
}

/// Checks the places and texts of all problems, in order; each also has a hint.
#[track_caller]
fn check_refused(text: &str, want: &[&str]) {
    let found = parse(text).expect_err("the file is refused");
    let problems: Vec<&str> = found
        .lines()
        .filter(|line| line.starts_with("t.toml:"))
        .collect();
    assert_eq!(problems.len(), want.len(), "{text}\n{found}");
    for (problem, want) in problems.iter().zip(want) {
        assert!(problem.contains(want), "{want}\n{found}");
    }
    let hints = found.lines().filter(|line| line.starts_with("hint: "));
    assert_eq!(hints.count(), want.len(), "{found}");
}

const DEVICE: &str = "[[device]]\nname = 'd'\nkind = 'null'\nsize = '1G'\n";
const SUBSYSTEM: &str = "[[subsystem]]\nnqn = 'nqn.2026-01.org.example:a'\n";
const NAMESPACE: &str = "[[subsystem.namespace]]\ndevice = 'd'\n";

#[test]
fn a_small_file_has_defaults() {
    let plan = parse(&format!("{DEVICE}{SUBSYSTEM}{NAMESPACE}")).unwrap();
    assert_eq!(plan.listen, ["127.0.0.1:4420".parse().unwrap()]);
    assert_eq!((plan.threads, plan.buffers.count), (None, None));
    let [subsystem] = plan.subsystems.as_slice() else {
        panic!("{:?}", plan.subsystems);
    };
    assert_eq!(subsystem.hosts, AllowedHosts::Local);
    let [namespace] = subsystem.namespaces.as_slice() else {
        panic!("{:?}", subsystem.namespaces);
    };
    assert_eq!(namespace.nsid, 1);
    assert_eq!(namespace.device.describe(), "1 GiB null");
    let geometry = namespace.device.geometry();
    assert_eq!((geometry.bytes, geometry.block_bytes), (1 << 30, 512));
}

#[test]
fn the_examples_are_understood() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let plan = TargetPlan::parse(&name, &text, &host());
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        for namespace in plan.subsystems.iter().flat_map(|one| &one.namespaces) {
            let device = namespace.device.open(0, Tick::ZERO).unwrap();
            assert!(device.geometry().bytes >= namespace.device.geometry().bytes);
        }
        names.push(name);
    }
    names.sort_unstable();
    let want = [
        "faulty.toml",
        "layered.toml",
        "many-devices.toml",
        "paced.toml",
    ];
    assert_eq!(names, want);
}

#[test]
fn everything_wrong_is_reported_at_once() {
    check_refused(
        "threads = 0\nlisten = 'everywhere'\nbusy_pol = true\nbuffer_size = '100k'\n\
         [[device]]\nkind = 'tape'\n[[subsystem]]\nnqn = 'disk'\nserial = ''\n",
        &[
            "t.toml:1:11: `threads` must be a whole number from 1 to 1024",
            "t.toml:2:10: `listen` must be an IP address",
            "t.toml:3:1: unknown key `busy_pol` in a target file",
            "t.toml:4:15: `buffer_size` must be a power of two",
            "t.toml:5:1: `device` has no `name`",
            "t.toml:6:8: unknown device kind `tape`",
            "t.toml:7:1: the subsystem has no namespace",
            "t.toml:8:7: `disk` is not an NQN: it does not begin with `nqn.`",
            "t.toml:9:10: `serial` must be 1 to 20 printable ASCII characters",
        ],
    );
    check_refused("= 1", &["t.toml:1:1: not valid TOML"]);
    check_refused("", &["t.toml:1:1: the target has no subsystem"]);
}

#[test]
fn names_and_identifiers_are_unique() {
    let with_nsid = format!("{NAMESPACE}nsid = 1\n");
    check_refused(
        &format!("{DEVICE}{SUBSYSTEM}{with_nsid}{with_nsid}"),
        &[
            "t.toml:11:10: `d` is used by namespace 1 of `nqn.2026-01.org.example:a` already",
            "t.toml:12:8: another namespace of the subsystem has the identifier 1",
        ],
    );
    let second = DEVICE.replace("'d'", "'e'");
    let nguid = "nguid = '52f5e0a47f3b4e4e8e0a6a2b3c4d5e6f'\n";
    let other = NAMESPACE.replace("'d'", "'e'");
    check_refused(
        &format!("{DEVICE}{second}{SUBSYSTEM}{NAMESPACE}{nguid}{SUBSYSTEM}{other}{nguid}"),
        &[
            "another subsystem has this serial number",
            "t.toml:15:7: another subsystem has this NQN",
            "t.toml:18:9: another namespace has this identifier",
        ],
    );
    check_refused(
        &format!("{DEVICE}{DEVICE}{SUBSYSTEM}{NAMESPACE}"),
        &["t.toml:6:8: another device is called `d`"],
    );
}

#[test]
fn each_device_has_one_use() {
    let unknown = NAMESPACE.replace("'d'", "'x'");
    check_refused(
        &format!("{DEVICE}{SUBSYSTEM}{unknown}"),
        &[
            "t.toml:1:1: device `d` is used by no namespace or part",
            "t.toml:8:10: no device named `x`",
        ],
    );
    let part = "[[device]]\nname = 'p'\nkind = 'split'\nof = 'd'\nsize = '512M'\n";
    let again = part.replace("'p'", "'q'") + "from = '256M'\n";
    let spaces = "[[subsystem.namespace]]\ndevice = 'p'\n[[subsystem.namespace]]\ndevice = 'q'\n";
    check_refused(
        &format!("{DEVICE}{part}{again}{SUBSYSTEM}{spaces}"),
        &["t.toml:15:8: the part overlaps with `p`"],
    );
    let behind = again.replace("256M", "512M");
    assert!(parse(&format!("{DEVICE}{part}{behind}{SUBSYSTEM}{spaces}")).is_ok());
    let beyond = again.replace("256M", "600M");
    check_refused(
        &format!("{DEVICE}{part}{beyond}{SUBSYSTEM}{spaces}"),
        &["t.toml:14:8: the part ends beyond `d`"],
    );
    let early = format!(
        "{part}{DEVICE}{SUBSYSTEM}{}",
        NAMESPACE.replace("'d'", "'p'")
    );
    check_refused(
        &early,
        &[
            "t.toml:4:6: no device above is called `d`",
            "device `d` is used by no namespace or part",
        ],
    );
}

#[test]
fn sizes_are_checked() {
    let check = |size: &str, want: &str| {
        let device = DEVICE.replace("'1G'", size);
        check_refused(&format!("{device}{SUBSYSTEM}{NAMESPACE}"), &[want]);
    };
    check("0", "t.toml:4:8: the size must be above 0");
    check("'1000'", "1000 B is not a whole number of blocks of 512 B");
    check("'1.5G'", "`size` must be a size such as");
    check("'15E'", "`size` must be a size such as");
    check("'9000P'", "no device is larger than 8 EiB");
    let memory = DEVICE.replace("null", "memory").replace("'1G'", "'17G'");
    check_refused(
        &format!("{memory}{SUBSYSTEM}{NAMESPACE}"),
        &["t.toml:4:8: 18253611008 B is more than this machine's memory"],
    );
    let half = memory.replace("'17G'", "'9G'");
    let halves = format!("{half}{}", half.replace("'d'", "'e'"));
    let both = format!("{NAMESPACE}{}", NAMESPACE.replace("'d'", "'e'"));
    check_refused(
        &format!("{halves}{SUBSYSTEM}{both}"),
        &["t.toml:1:1: memory devices of 19327352832 B"],
    );
}

#[test]
fn files_are_judged_before_they_are_opened() {
    let file = |path: &str, more: &str| {
        format!(
            "[[device]]\nname = 'd'\nkind = 'file'\npath = '{path}'\n{more}{SUBSYSTEM}{NAMESPACE}"
        )
    };
    let geometry = |text: &str| {
        let plan = parse(text).unwrap_or_else(|error| panic!("{error}"));
        plan.subsystems[0].namespaces[0].device.geometry()
    };
    let Geometry {
        bytes,
        block_bytes,
        read_only,
        ..
    } = geometry(&file("data", ""));
    assert_eq!((bytes, block_bytes, read_only), (1 << 20, 512, false));
    let Geometry {
        bytes,
        block_bytes,
        read_only,
        ..
    } = geometry(&file("/dev/disk", "read_only = true\n"));
    assert_eq!((bytes, block_bytes, read_only), (1 << 30, 4096, true));
    assert_eq!(geometry(&file("new", "size = '1M'\n")).bytes, 1 << 20);
    let check = |path, more, want: &str| check_refused(&file(path, more), &[want]);
    check(
        "/dev/mounted",
        "",
        "t.toml:4:8: /dev/mounted: will not be written: it is mounted",
    );
    check("/dev/mounted", "read_only = true\n", "it is mounted");
    check("new", "", "t.toml:4:8: new: no such file");
    check("new", "size = '1M'\nread_only = true\n", "no such file");
    check(
        "data",
        "size = '1M'\n",
        "data: it has 1048676 B, not 1048576 B",
    );
    check("empty", "", "empty: it is smaller than a block of 512 B");
    check("/tmp", "", "/tmp: neither a file nor a block device");
    check(
        "/dev/disk",
        "size = '1M'\n",
        "/dev/disk: the size of a block device is fixed",
    );
    check(
        "/dev/disk",
        "block_size = 512\n",
        "/dev/disk: its blocks have 4096 B",
    );
    check("data", "depth = 0\n", "`depth` must be a whole number");
}

#[test]
fn a_wrong_block_size_hides_no_other_key() {
    for kind in ["null", "memory"] {
        let device = DEVICE.replace("null", kind);
        check_refused(
            &format!("{device}block_size = '3k'\n{SUBSYSTEM}{NAMESPACE}"),
            &["t.toml:5:14: `block_size` must be 512, 1k, 2k or 4k"],
        );
    }
}

#[test]
fn hosts_are_listed_or_any() {
    let with = |keys: &str| format!("{DEVICE}{SUBSYSTEM}{keys}{NAMESPACE}");
    let hosts = |keys: &str| parse(&with(keys)).unwrap().subsystems[0].hosts.clone();
    let listed = AllowedHosts::Listed(vec!["nqn.2026-01.org.example:h".into()]);
    assert_eq!(
        hosts("allowed_hosts = ['nqn.2026-01.org.example:h']\n"),
        listed
    );
    assert_eq!(hosts("allow_any_host = true\n"), AllowedHosts::Any);
    check_refused(
        &with("allowed_hosts = ['nqn.2026-01.org.example:h', 'h']\nallow_any_host = true\n"),
        &[
            "t.toml:7:47: `h` is not an NQN",
            "t.toml:8:18: `allow_any_host` beside",
        ],
    );
    check_refused(
        &with("allowed_hosts = []\n"),
        &["t.toml:7:17: `allowed_hosts` must be"],
    );
}

#[test]
fn beyond_this_machine_hosts_must_be_named() {
    let exposed = |listen: &str, keys: &str| {
        let text = format!("listen = {listen}\n{DEVICE}{SUBSYSTEM}{keys}{NAMESPACE}");
        let plan = parse(&text).unwrap();
        plan.check_exposure()
            .map_or_else(|error| error.problems.len(), |()| 0)
    };
    assert_eq!(exposed("['127.0.0.1:4420', '[::1]:4420']", ""), 0);
    assert_eq!(exposed("'0.0.0.0'", ""), 1);
    assert_eq!(exposed("['127.0.0.1', '[2001:db8::1]:4420']", ""), 1);
    assert_eq!(exposed("'0.0.0.0'", "allow_any_host = true\n"), 0);
    assert_eq!(
        exposed("'0.0.0.0'", "allowed_hosts = 'nqn.2026-01.org.example:h'\n"),
        0
    );
}

#[test]
fn pacing_is_one_of_the_policies() {
    let with =
        |top: &str, pacing: &str| format!("{top}[pacing]\n{pacing}{DEVICE}{SUBSYSTEM}{NAMESPACE}");
    let plan = parse(&with("buffers = 32\n", "policy = 'buffers'\n")).unwrap();
    assert_eq!(plan.buffers.count, Some(32));
    check_refused(
        &with("", "policy = 'buffers'\n"),
        &["t.toml:2:10: the pool has no limit"],
    );
    check_refused(
        &with("", "policy = 'wishes'\n"),
        &["unknown policy `wishes`"],
    );
    check_refused(&with("", ""), &["t.toml:1:1: `pacing` has no `policy`"]);
    check_refused(
        &with("buffers = 0\nbuffer_cache = -1\n", "policy = 'none'\n"),
        &["`buffers` must be", "`buffer_cache` must be"],
    );
}

#[test]
fn cpus_and_limits_fit() {
    let with = |top: &str| format!("{top}{DEVICE}{SUBSYSTEM}{NAMESPACE}");
    let plan = parse(&with("threads = 3\ncpus = '0-1,4'\n")).unwrap();
    assert_eq!(plan.cpus, [0, 1, 4]);
    assert_eq!(
        parse(&with("threads = 2\ncpus = [3, 5]\n")).unwrap().cpus,
        [3, 5]
    );
    assert_eq!(parse(&with("cpus = '0-1'\n")).unwrap().cpus, [0, 1]);
    check_refused(
        &with("threads = 1\ncpus = '0-1'\n"),
        &["t.toml:2:8: 2 CPUs for 1 threads"],
    );
    check_refused(&with("cpus = '1-0'\n"), &["`cpus` must be a list of CPUs"]);
    let limits = "[limits]\nqueue_entries = 64\nin_capsule_size = '8k'\n";
    let plan = parse(&with(limits)).unwrap();
    assert_eq!(plan.limits.queue_entries, Some(64));
    assert_eq!(plan.limits.in_capsule_bytes, Some(8192));
    assert_eq!(plan.limits.connections, None);
    check_refused(
        &with("[limits]\nqueue_entries = 2000\nqueues = 0\nin_capsule_size = '1k'\nx = 1\n"),
        &[
            "`queue_entries` must be",
            "`queues` must be",
            "`in_capsule_size` must be",
            "unknown key `x`",
        ],
    );
    check_refused(
        &with("buffer_size = '8k'\n[limits]\nin_capsule_size = '16k'\n"),
        &["t.toml:3:19: 16384 B in a capsule, and a buffer has 8192 B"],
    );
    // Hosts could not be told such a limit.
    check_refused(
        &with("buffer_size = '4k'\n"),
        &["`buffer_size` must be a power of two from 8k to 1m"],
    );
}
