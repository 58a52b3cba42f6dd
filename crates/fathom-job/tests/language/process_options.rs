//! Options of a job's thread, and options without effect.

use crate::world::{World, check, refuse};
use fathom_job::{MemoryPolicy, Nodes};

#[test]
fn who_a_thread_is() {
    check("--uid=1000 --gid=100", |o| {
        (o.process.uid, o.process.gid) == (Some(1000), Some(100))
    });
    check("--uid=4294967295", |o| o.process.uid.is_none());
    refuse("--uid=root", "not-a-number");
    check("--comm=x", |o| o.process.comm.as_deref() == Some("x"));
    check("--cpumask=0x5", |o| o.cpus_allowed == Some(vec![0, 2]));
    refuse("--cpumask=0", "bad-cpu");
    refuse("--cpumask=16", "bad-cpu");
}

#[test]
fn where_memory_comes_from() {
    let list = |nodes: &[u32]| Nodes::List(nodes.to_vec());
    check("--numa_cpu_nodes=0-1,3", |o| {
        o.process.numa_cpu_nodes == Some(list(&[0, 1, 3]))
    });
    check("--numa_cpu_nodes=all", |o| {
        o.process.numa_cpu_nodes == Some(Nodes::All)
    });
    for (value, want) in [
        ("!0,2", Nodes::Except(vec![0, 2])),
        ("!all", list(&[])),
        ("+all", Nodes::All),
        ("+1", list(&[1])),
    ] {
        check(&format!("--numa_cpu_nodes={value}"), |o| {
            o.process.numa_cpu_nodes == Some(want)
        });
    }
    refuse("--numa_cpu_nodes=!!0", "bad-nodes");
    refuse("--numa_cpu_nodes=a", "bad-nodes");
    refuse("--numa_cpu_nodes=2-1", "bad-nodes");
    for (value, want) in [
        ("default", MemoryPolicy::Default),
        ("local", MemoryPolicy::Local),
        ("prefer:1", MemoryPolicy::Prefer(1)),
        ("bind:0,2", MemoryPolicy::Bind(list(&[0, 2]))),
        ("interleave", MemoryPolicy::Interleave(Nodes::All)),
        ("interleave:1", MemoryPolicy::Interleave(list(&[1]))),
    ] {
        check(&format!("--numa_mem_policy={value}"), |o| {
            o.process.numa_mem_policy == Some(want)
        });
    }
    refuse("--numa_mem_policy=bind", "bad-nodes");
    refuse("--numa_mem_policy=prefer", "bad-nodes");
    refuse("--numa_mem_policy=prefer:0,1", "bad-nodes");
    refuse("--numa_mem_policy=local:0", "too-many-values");
    refuse("--numa_mem_policy=near", "bad-value");
    check("--lockmem=64m", |o| o.process.lockmem == 64 << 20);
}

#[test]
fn control_groups_and_clocks() {
    check(
        "--cgroup=low --cgroup_weight=200 --cgroup_nodelete=1",
        |o| {
            let process = &o.process;
            process.cgroup.as_deref() == Some("low")
                && process.cgroup_weight == Some(200)
                && process.cgroup_nodelete
        },
    );
    refuse("--cgroup=low --cgroup_weight=99", "out-of-range");
    refuse("--cgroup=low --cgroup_weight=1001", "out-of-range");
    check("--job_start_clock_id=1", |o| {
        o.process.job_start_clock_id == 1
    });
}

/// fio's own examples have `threads=1`.
#[test]
fn options_of_profiles_are_read_and_do_nothing() {
    for option in [
        "threads=1",
        "block=4k",
        "dir=/tmp",
        "numruns=2",
        "load=3",
        "test-duration=1h",
    ] {
        let notes = World::default().notes(&format!("--name=x --{option}"));
        assert!(
            notes.iter().any(|note| note.contains("ignored")),
            "{option}: {notes:?}"
        );
    }
}

#[test]
fn one_of_them_is_a_flag() {
    check("--prep", |_| true);
}

#[test]
fn what_needs_a_library_or_a_device_says_which() {
    for engine in ["rbd", "pmemblk", "cpp_null", "librpma_apm_client"] {
        refuse(&format!("--ioengine={engine}"), "not-in-fathom");
    }
    refuse("--clustername=ceph", "not-in-fathom");
    refuse("--gpu_dev_id=0", "not-in-fathom");
    refuse("--rwmixcycle=1", "not-any-more");
}

#[test]
fn what_needs_a_library_says_why_not_and_what_instead() {
    for (engine, library, instead) in [
        ("rbd", "librbd", "rbd map"),
        ("gfapi", "libgfapi", "directory"),
        ("libpmem", "libpmem", "ioengine=mmap"),
        ("libblkio", "libblkio", "ioengine=io_uring"),
        ("rados", "librados", "use one of"),
    ] {
        let line = format!("--name=x --ioengine={engine}");
        let text = format!("{:?}", World::default().parse(&line).unwrap_err());
        let why =
            format!("needs {library}, which Fathom does not support, whether it is installed");
        assert!(text.contains(&why) && text.contains(instead), "{text}");
    }
}
