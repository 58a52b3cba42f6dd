//! Identity, control group, NUMA policy and pinned memory of a job's thread.

use fathom_core::Errno;
use fathom_job::{MemoryPolicy, Nodes, Options};
use fathom_setup::outcome::JobFailure;
use fathom_sys::numa::{self, NumaPolicy};
use fathom_sys::pinned::Pinned;
use fathom_sys::{system, thread};

use crate::affinity::rejected;
use crate::cgroup::Group;

/// Settings of a job's thread other than its CPUs and priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessSettings {
    /// Control group to enter.
    group: Option<Group>,
    /// NUMA memory policy.
    policy: Option<NumaPolicy>,
    /// Bytes to pin; 0 for none.
    lockmem: u64,
    /// Thread name (`comm`).
    name: Option<String>,
    /// Group and user that the thread runs as.
    gid: Option<u32>,
    uid: Option<u32>,
}

impl ProcessSettings {
    /// Derives the settings from a job's options.
    pub(crate) fn new(options: &Options) -> Self {
        let asked = &options.process;
        Self {
            group: Group::of(options),
            policy: asked.numa_mem_policy.as_ref().map(policy),
            lockmem: asked.lockmem,
            name: asked.comm.clone(),
            gid: asked.gid,
            uid: asked.uid,
        }
    }

    /// Applies the settings that may need privileges, before [`become_user`](Self::become_user)
    /// drops them. Keep the returned memory until the job ends.
    pub(crate) fn enter(&self) -> Result<Option<Pinned>, JobFailure> {
        if let Some(group) = &self.group {
            group.enter().map_err(|(path, error)| {
                let failure = rejected(&format!("cgroup: {path}"), &error);
                if path.ends_with("blkio.weight") {
                    failure.hint("this kernel has no blkio weights; remove `cgroup_weight`")
                } else {
                    failure
                }
            })?;
        }
        if let Some(policy) = &self.policy {
            // ENOSYS: a kernel built without NUMA has one node, so every policy means the same.
            match numa::set_policy(policy) {
                Err(error) if Errno::of(&error) != Some(Errno::ENOSYS) => {
                    return Err(rejected("numa_mem_policy", &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        if let Some(name) = &self.name {
            thread::set_name(name).map_err(|error| rejected("comm", &error))?;
        }
        match self.lockmem {
            0 => Ok(None),
            bytes => pin(bytes).map(Some),
        }
    }

    /// Switches to the job's group and user, as the last step before its files are opened.
    pub(crate) fn become_user(&self) -> Result<(), JobFailure> {
        let hint = |failure: JobFailure| failure.hint("run as root, or remove `uid` and `gid`");
        if let Some(gid) = self.gid {
            thread::set_group(gid).map_err(|error| hint(rejected("gid", &error)))?;
        }
        if let Some(uid) = self.uid {
            thread::set_user(uid).map_err(|error| hint(rejected("uid", &error)))?;
        }
        Ok(())
    }
}

/// Returns the CPUs of `numa_cpu_nodes`; `None` if the option is not set.
pub(crate) fn cpus_of_nodes(options: &Options) -> Option<Vec<u32>> {
    let nodes = listed(options.process.numa_cpu_nodes.as_ref()?);
    Some(nodes.into_iter().flat_map(numa::cpus_of).collect())
}

fn listed(nodes: &Nodes) -> Vec<u32> {
    match nodes {
        Nodes::All => numa::nodes(),
        Nodes::List(list) => list.clone(),
        Nodes::Except(list) => {
            let all = numa::nodes().into_iter();
            all.filter(|node| !list.contains(node)).collect()
        }
    }
}

fn policy(asked: &MemoryPolicy) -> NumaPolicy {
    match asked {
        MemoryPolicy::Default => NumaPolicy::Default,
        MemoryPolicy::Local => NumaPolicy::Local,
        MemoryPolicy::Prefer(node) => NumaPolicy::Prefer(*node),
        MemoryPolicy::Bind(nodes) => NumaPolicy::Bind(listed(nodes)),
        MemoryPolicy::Interleave(nodes) => NumaPolicy::Interleave(listed(nodes)),
    }
}

/// Pins memory, unless that leaves too little for the rest of the system.
fn pin(bytes: u64) -> Result<Pinned, JobFailure> {
    let free = system::memory_available_bytes().unwrap_or_else(system::memory_bytes);
    let limit = free.saturating_sub(RESERVED_BYTES);
    let what = format!("lockmem: {} MiB", bytes >> 20);
    if bytes > limit {
        let failure = rejected(&what, &Errno::ENOMEM.into());
        return Err(failure.hint(format!("set lockmem to at most {}m", limit >> 20)));
    }
    Pinned::new(bytes)
        .map_err(|error| rejected(&what, &error).hint("raise `ulimit -l`, or run as root"))
}

/// Memory left for the rest of the system, the same as in fio.
const RESERVED_BYTES: u64 = 128 << 20;
