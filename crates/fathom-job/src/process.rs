//! Options of the thread that a job runs on: who it is, where its memory lies, what holds it back.

/// What is set on a job's thread beside its processors and priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessOptions {
    /// `uid`.
    pub uid: Option<u32>,
    /// `gid`.
    pub gid: Option<u32>,
    /// `comm`.
    pub comm: Option<String>,
    /// `lockmem`, bytes; 0 for none.
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
    /// `job_start_clock_id`: the kernel's number of a clock.
    pub job_start_clock_id: u32,
}

/// NUMA nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// All that there are.
    All,
    /// These, ascending.
    List(Vec<u32>),
}

/// `numa_mem_policy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// `default`.
    Default,
    /// `local`: from the node that the thread runs on.
    Local,
    /// `prefer:N`: from this node while it has any.
    Prefer(u32),
    /// `bind:LIST`: from no other nodes than these.
    Bind(Nodes),
    /// `interleave[:LIST]`: page by page from one after the other.
    Interleave(Nodes),
}

impl MemoryPolicy {
    /// The nodes that it names.
    #[must_use]
    pub fn nodes(&self) -> Option<Nodes> {
        match self {
            Self::Default | Self::Local => None,
            Self::Prefer(node) => Some(Nodes::List(vec![*node])),
            Self::Bind(nodes) | Self::Interleave(nodes) => Some(nodes.clone()),
        }
    }
}
