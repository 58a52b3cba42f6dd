//! Checks of a job's thread options against this machine: NUMA nodes, control groups, clocks.

use std::path::{Component, Path};

use fathom_host::probe;
use fathom_job::{MemoryPolicy, Nodes, Options};

use crate::error::RunProblem;
use crate::problem_kind::ProblemKind;

/// Returns the problems of the options on this machine, each with the option's name.
pub(crate) fn check(options: &Options) -> Vec<(&'static str, RunProblem)> {
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
        let list: Vec<String> = there.iter().map(u32::to_string).collect();
        let message = format!("no such NUMA node: {node}");
        let hint = format!("choose among {}", list.join(", "));
        let problem = RunProblem::new(ProblemKind::NoSuchNode, message).hint(hint);
        Some((option, problem))
    });
    let mut problems: Vec<_> = missing.collect();
    problems.extend(cgroup(options).map(|problem| ("cgroup", problem)));
    let id = asked.job_start_clock_id;
    if probe::check_clock(id).is_err() {
        let message = format!("no such clock: {id}");
        let problem = RunProblem::new(ProblemKind::NoSuchClock, message);
        problems.push((
            "job_start_clock_id",
            problem.hint("use 0 for CLOCK_REALTIME or 1 for CLOCK_MONOTONIC"),
        ));
    }
    problems
}

/// Returns the numbers of the nodes that are named.
fn numbers(nodes: &Nodes) -> Vec<u32> {
    match nodes {
        Nodes::All => probe::numa_nodes(),
        Nodes::List(list) | Nodes::Except(list) => list.clone(),
    }
}

/// Checks the name of the control group and the controller, but not the group itself.
fn cgroup(options: &Options) -> Option<RunProblem> {
    let name = options.process.cgroup.as_ref()?;
    let one = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !Path::new(name).components().all(one) {
        let message = format!("invalid control group name `{name}`");
        let hint = "use a relative path without `..`, such as `cgroup=low`";
        return Some(RunProblem::new(ProblemKind::BadCgroup, message).hint(hint));
    }
    if probe::blkio_mount().is_none() {
        let message = "`cgroup` needs the version 1 blkio controller, which is not mounted";
        let hint = "mount it (`mount -t cgroup -o blkio none /sys/fs/cgroup/blkio`), or remove \
                    `cgroup`";
        return Some(RunProblem::new(ProblemKind::NoCgroups, message).hint(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_controller_are_invalid() {
        for name in ["..", "../x", "/x", "", "a/../b"] {
            let mut options = Options::default();
            options.process.cgroup = Some(name.into());
            let problem = cgroup(&options).expect(name);
            assert_eq!(problem.kind, ProblemKind::BadCgroup, "{name}");
        }
    }
}
