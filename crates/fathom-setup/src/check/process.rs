//! Options of a job's thread that this machine may not be able to grant.

use std::path::{Component, Path};

use fathom_host::probe;
use fathom_job::{MemoryPolicy, Nodes, Options};

use crate::error::Problem;

/// What is wrong with the options on this machine, each with the option's name.
pub(crate) fn check(options: &Options) -> Vec<(&'static str, Problem)> {
    let asked = &options.process;
    let memory_nodes = asked.numa_mem_policy.as_ref().and_then(MemoryPolicy::nodes);
    let lists = [
        ("numa_cpu_nodes", asked.numa_cpu_nodes.clone()),
        ("numa_mem_policy", memory_nodes),
    ];
    let there = probe::numa_nodes();
    let missing = lists.into_iter().filter_map(|(option, nodes)| {
        let nodes = numbers(&nodes?);
        let node = nodes.into_iter().find(|node| !there.contains(node))?;
        let message = format!("there is no NUMA node {node}: this machine has {there:?}");
        let problem = Problem::new("no_such_node", message).hint("name nodes that are there");
        Some((option, problem))
    });
    let mut problems: Vec<_> = missing.collect();
    problems.extend(cgroup(options).map(|problem| ("cgroup", problem)));
    let id = asked.job_start_clock_id;
    if probe::check_clock(id).is_err() {
        let message = format!("this kernel has no clock {id}");
        let problem = Problem::new("no_such_clock", message);
        problems.push((
            "job_start_clock_id",
            problem.hint("0 is CLOCK_REALTIME, 1 is CLOCK_MONOTONIC"),
        ));
    }
    problems
}

/// The numbers of the nodes.
fn numbers(nodes: &Nodes) -> Vec<u32> {
    match nodes {
        Nodes::All => probe::numa_nodes(),
        Nodes::List(list) => list.clone(),
    }
}

/// What is wrong with the options, without looking into the group.
fn cgroup(options: &Options) -> Option<Problem> {
    let name = options.process.cgroup.as_ref()?;
    let one = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !Path::new(name).components().all(one) {
        let message = format!("`{name}` is not the name of a control group");
        return Some(Problem::new("bad_cgroup", message).hint("write it as in `cgroup=low`"));
    }
    if probe::blkio_mount().is_none() {
        let message = "`cgroup` needs the blkio controller of version 1, which is not mounted";
        let hint = "mount it (`mount -t cgroup -o blkio none /sys/fs/cgroup/blkio`), or leave \
                    `cgroup` out";
        return Some(Problem::new("no_cgroups", message).hint(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["..", "../x", "/x", "", "a/../b"] {
            let mut options = Options::default();
            options.process.cgroup = Some(name.into());
            let problem = cgroup(&options).expect(name);
            assert_eq!(problem.code, "bad_cgroup", "{name}");
        }
    }
}
