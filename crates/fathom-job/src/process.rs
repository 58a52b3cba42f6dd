//! Options of a job's thread: identity, memory placement, resource limits.

/// Attributes of a job's thread, besides CPUs and priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOptions {
    /// `uid`.
    pub uid: Option<u32>,
    /// `gid`.
    pub gid: Option<u32>,
    /// `comm`.
    pub comm: Option<String>,
    /// `lockmem`, bytes; 0: none.
    pub lockmem: u64,
    /// `numa_cpu_nodes`.
    pub numa_cpu_nodes: Option<Nodes>,
    /// `numa_mem_policy`.
    pub numa_mem_policy: Option<MemoryPolicy>,
    /// `cgroup`.
    pub cgroup: Option<String>,
    /// `cgroup_weight`.
    pub cgroup_weight: Option<u32>,
    /// `cgroup_nodelete`.
    pub cgroup_nodelete: bool,
    /// `job_start_clock_id`: a clock_gettime(2) ID.
    pub job_start_clock_id: u32,
}

/// NUMA nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// All nodes.
    All,
    /// These, ascending.
    List(Vec<u32>),
    /// `!LIST`: all but these, ascending.
    Except(Vec<u32>),
}

/// `numa_mem_policy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// `default`.
    Default,
    /// `local`: the node of the thread's CPU.
    Local,
    /// `prefer:N`: this node while it has free memory.
    Prefer(u32),
    /// `bind:LIST`: only these nodes.
    Bind(Nodes),
    /// `interleave[:LIST]`: round-robin by page.
    Interleave(Nodes),
}

impl MemoryPolicy {
    /// Returns the nodes it names.
    #[must_use]
    pub fn nodes(&self) -> Option<Nodes> {
        match self {
            Self::Default | Self::Local => None,
            Self::Prefer(node) => Some(Nodes::List(vec![*node])),
            Self::Bind(nodes) | Self::Interleave(nodes) => Some(nodes.clone()),
        }
    }
}
