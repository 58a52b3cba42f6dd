//! Who a job's thread is, where its memory comes from, and what holds it back.

use std::io;

use fathom_job::{MemoryPolicy, Nodes, Options};
use fathom_setup::outcome::Fault;
use fathom_sys::numa::{self, Policy};
use fathom_sys::pinned::Pinned;
use fathom_sys::{system, thread};

use crate::affinity::fault;
use crate::cgroup::Group;

/// What is set on a job's thread beside its processors and priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessSettings {
    /// The control group that it enters.
    group: Option<Group>,
    /// Where its memory comes from.
    policy: Option<Policy>,
    /// Bytes to pin; 0 for none.
    lockmem: u64,
    /// Its name.
    name: Option<String>,
    /// The group and the user that it runs as.
    gid: Option<u32>,
    uid: Option<u32>,
}

impl ProcessSettings {
    /// What the options ask for.
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

    /// Sets what needs rights that the job's user may not have; what is given is to be kept as long
    /// as the job runs.
    pub(crate) fn enter(&self) -> Result<Option<Pinned>, Fault> {
        if let Some(group) = &self.group {
            group.enter().map_err(|(path, error)| {
                let mut fault = fault(&format!("cgroup: {path}"), &error);
                if path.ends_with("blkio.weight") {
                    fault.hint = "this kernel shares disks out by other means: leave out \
                                  `cgroup_weight`"
                        .into();
                }
                fault
            })?;
        }
        if let Some(policy) = &self.policy {
            // A kernel without policies has one node, from which all memory comes anyway.
            match numa::set_policy(policy) {
                Err(error) if error.raw_os_error() != Some(ENOSYS) => {
                    return Err(fault("numa_mem_policy", &error));
                }
                Ok(()) | Err(_) => {}
            }
        }
        if let Some(name) = &self.name {
            thread::set_name(name).map_err(|error| fault("comm", &error))?;
        }
        match self.lockmem {
            0 => Ok(None),
            bytes => pin(bytes).map(Some),
        }
    }

    /// Becomes the job's group and user: the last thing before its files are opened.
    pub(crate) fn become_user(&self) -> Result<(), Fault> {
        let hint = |mut fault: Fault| {
            fault.hint = "only root may run jobs as others: leave out `uid` and `gid`".into();
            fault
        };
        if let Some(gid) = self.gid {
            thread::set_group(gid).map_err(|error| hint(fault("gid", &error)))?;
        }
        if let Some(uid) = self.uid {
            thread::set_user(uid).map_err(|error| hint(fault("uid", &error)))?;
        }
        Ok(())
    }
}

/// The processors of `numa_cpu_nodes`, if there are to be any.
pub(crate) fn cpus_of_nodes(options: &Options) -> Option<Vec<u32>> {
    let nodes = listed(options.process.numa_cpu_nodes.as_ref()?);
    Some(nodes.into_iter().flat_map(numa::cpus_of).collect())
}

fn listed(nodes: &Nodes) -> Vec<u32> {
    match nodes {
        Nodes::All => numa::nodes(),
        Nodes::List(list) => list.clone(),
    }
}

fn policy(asked: &MemoryPolicy) -> Policy {
    match asked {
        MemoryPolicy::Default => Policy::Default,
        MemoryPolicy::Local => Policy::Local,
        MemoryPolicy::Prefer(node) => Policy::Prefer(*node),
        MemoryPolicy::Bind(nodes) => Policy::Bind(listed(nodes)),
        MemoryPolicy::Interleave(nodes) => Policy::Interleave(listed(nodes)),
    }
}

/// Pins memory, if enough is left for everybody else.
fn pin(bytes: u64) -> Result<Pinned, Fault> {
    let free = system::memory_available_bytes().unwrap_or_else(system::memory_bytes);
    let most = free.saturating_sub(KEPT_FREE);
    if bytes > most {
        let error = io::Error::from_raw_os_error(ENOMEM);
        let mut fault = fault(&format!("lockmem: {} MiB", bytes >> 20), &error);
        fault.hint = format!("at most {} MiB can be pinned now", most >> 20);
        return Err(fault);
    }
    Pinned::new(bytes).map_err(|error| {
        let mut fault = fault(&format!("lockmem: {} MiB", bytes >> 20), &error);
        fault.hint = "raise `ulimit -l`, or run as root".into();
        fault
    })
}

/// What fio leaves to everybody else.
const KEPT_FREE: u64 = 128 << 20;
const ENOMEM: i32 = 12;
const ENOSYS: i32 = 38;
