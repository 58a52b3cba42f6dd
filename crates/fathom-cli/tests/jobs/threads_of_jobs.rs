//! Credentials and limits of a job's thread, as its own commands inherit them.

use std::os::unix::fs::PermissionsExt;

use crate::common::{Folder, Run};

/// Runs a job with these options whose prerun command is `look`, and returns what that printed, or
/// why the machine lacks the feature.
fn seen(options: &str, look: &str) -> Result<String, String> {
    let folder = Folder::new();
    let lines = options.replace(' ', "\n");
    let text = format!("[t]\nioengine=null\nsize=4k\n{lines}\nexec_prerun={look}\n");
    folder.write("t.fio", text);
    let run = folder.fathom("run t.fio --output-format=json");
    match run.code {
        Some(0) => Ok(std::fs::read_to_string(folder.path().join("t.prerun.txt")).unwrap()),
        _ => Err(format!("{}{}", run.out, run.err)),
    }
}

#[track_caller]
fn check(options: &str, look: &str, want: &str) {
    match seen(options, look) {
        Ok(seen) => assert!(seen.contains(want), "{options}: {seen}"),
        Err(why) => panic!("{options}: {why}"),
    }
}

/// Returns whether this test runs as root.
fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = status.lines().any(|line| line.starts_with("Uid:\t0"));
    if !root {
        println!("skipped: not root");
    }
    root
}

#[test]
fn comm_names_the_thread() {
    let threads = "cat /proc/$PPID/task/*/comm";
    check("comm=db-writer", threads, "db-writer\n");
    check("comm=a-name-of-twenty-one", threads, "a-name-of-twent\n");
}

#[test]
fn cpumask_is_a_bit_for_each_processor() {
    check(
        "cpumask=0x1",
        "grep Cpus_allowed_list /proc/self/status",
        "list:\t0\n",
    );
}

#[test]
fn lockmem_pins_memory_while_the_job_runs() {
    let look = "grep VmLck /proc/$PPID/status";
    match seen("lockmem=4m", look) {
        Ok(seen) => {
            let words = seen.split_whitespace().nth(1);
            let kib: u64 = words.and_then(|word| word.parse().ok()).unwrap();
            assert!(kib >= 4096, "{seen}");
        }
        Err(why) if why.contains("ulimit -l") => println!("skipped: {why}"),
        Err(why) => panic!("{why}"),
    }
    let too_much = seen("lockmem=1p", look).unwrap_err();
    assert!(
        too_much.contains("hint: set lockmem to at most "),
        "{too_much}"
    );
}

#[test]
fn numa_nodes_give_processors_and_memory() {
    if !std::path::Path::new("/sys/devices/system/node/node0").exists() {
        return println!("skipped: this kernel knows no nodes");
    }
    let cpus =
        "cat /sys/devices/system/node/node0/cpulist && grep Cpus_allowed_list /proc/self/status";
    let both = seen("numa_cpu_nodes=0", cpus).unwrap();
    let lines: Vec<&str> = both.lines().collect();
    assert!(lines[1].ends_with(lines[0]), "{both}");
    let policies = [
        ("bind:0", "bind:0"),
        ("prefer:0", "prefer:0"),
        ("interleave", "interleave:0"),
        ("local", "local"),
    ];
    for (asked, shown) in policies {
        let seen = seen(
            &format!("numa_mem_policy={asked}"),
            "head -3 /proc/self/numa_maps",
        );
        match seen {
            Ok(maps) if maps.contains("No such file") => println!("skipped: no numa_maps"),
            Ok(maps) => assert!(maps.contains(shown), "{asked}: {maps}"),
            Err(why) if why.contains("numa_mem_policy: ") => println!("skipped: no policies here"),
            Err(why) => panic!("{why}"),
        }
    }
    let missing = seen("numa_cpu_nodes=1023", "true").unwrap_err();
    assert!(missing.contains("no such NUMA node: 1023"), "{missing}");
}

#[test]
fn uid_and_gid_are_the_jobs_own() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let secret = folder.write("secret", vec![7; 4096]);
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let read = |words: &str| -> Run {
        folder.fathom(&format!(
            "run --output-format=json --filename=secret --bs=4k {words}"
        ))
    };
    read("--name=t").expect(0);
    // Every clone is that user, and a job beside it is not.
    let run = read("--name=t --uid=65534 --gid=65534 --numjobs=2 --name=own --filename=secret");
    let errors = run.json()["jobs"].as_array().unwrap().clone();
    let errors: Vec<_> = errors.iter().map(|job| job["error"].as_i64()).collect();
    assert_eq!(errors, [Some(13), Some(13), Some(0)], "{run:#?}");
    let gid = seen("gid=65534", "id -g").unwrap();
    assert_eq!(gid, "65534\n");
}

#[test]
fn missing_privileges_are_reported() {
    if is_root() {
        return println!("skipped: root may");
    }
    let why = seen("uid=0", "true").unwrap_err();
    assert!(why.contains("uid"), "{why}");
}

#[test]
fn a_cgroup_is_entered_and_removed() {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let has = mounts
        .lines()
        .any(|line| line.contains(" cgroup ") && line.contains("blkio"));
    let name = format!("fathom-test-{}", std::process::id());
    let options = format!("cgroup={name}");
    if !has {
        let why = seen(&options, "true").unwrap_err();
        return assert!(why.contains("not mounted"), "{why}");
    }
    if !is_root() {
        return;
    }
    check(&options, "cat /proc/self/cgroup", &name);
    let left = format!("/sys/fs/cgroup/blkio/{name}");
    assert!(!std::path::Path::new(&left).exists());
    check(&format!("{options} cgroup_nodelete=1"), "true", "");
    let folder = std::path::Path::new(&left);
    assert!(folder.exists() || !std::path::Path::new("/sys/fs/cgroup/blkio").exists());
    let _gone = std::fs::remove_dir(folder);
}

#[test]
fn job_start_is_of_the_clock_that_is_asked_for() {
    let folder = Folder::new();
    let start = |words: &str| {
        let job = "run --name=t --ioengine=null --size=4k --output-format=json";
        let run = folder.fathom(&format!("{job} {words}"));
        run.json()["jobs"][0]["job_start"].as_u64().unwrap()
    };
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let seconds = uptime.split('.').next().unwrap().parse::<u64>().unwrap();
    let monotonic = start("--job_start_clock_id=1") / 1000;
    assert!(
        (seconds.saturating_sub(2)..seconds + 60).contains(&monotonic),
        "{seconds} {monotonic}"
    );
    assert!(start("") > 1_700_000_000_000);
    let run = folder.fathom("run --name=t --ioengine=null --size=4k --job_start_clock_id=99");
    assert!(run.expect(2).err.contains("no such clock: 99"));
}
