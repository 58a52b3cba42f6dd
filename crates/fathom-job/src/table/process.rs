//! Options on the thread of a job: identity, placement, memory, control group.

use super::general::U32;
use super::read::{narrow, unknown_word};
use super::row::{EmptyValue, Row, ValueKind};
use crate::findings::Findings;
use crate::number;
use crate::plan::Options;
use crate::problem::{Piece, Problem};
use crate::process::{MemoryPolicy, Nodes};
use crate::reading::{self, EffectiveEntry};

pub(super) const ROWS: &[Row] = &[
    Row::new(
        "uid",
        "unchanged",
        "User ID to run the job as",
        "uid=65534",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.process.uid = Some(narrow(v)).filter(|id| *id != u32::MAX),
        },
    )
    .different(
        "applies to all clones, and if inherited from `[global]`; fio drops it in both cases",
    ),
    Row::new(
        "gid",
        "unchanged",
        "Group ID to run the job as",
        "gid=65534",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.process.gid = Some(narrow(v)).filter(|id| *id != u32::MAX),
        },
    )
    .different("as `uid`"),
    Row::new(
        "comm",
        "",
        "Name of the job's thread; the kernel keeps 15 bytes",
        "comm=db-writer",
        ValueKind::Text(|o, text| o.process.comm = Some(text.to_owned())),
    ),
    Row::new(
        "cpumask",
        "",
        "Bit mask of CPUs the job may run on",
        "cpumask=0x3",
        ValueKind::Special {
            form: "integer value (opt=100), one bit per CPU",
            read: cpumask,
        },
    )
    .numeric()
    .stricter("flags 0, with which the job fails at its start"),
    Row::new(
        "numa_cpu_nodes",
        "",
        "NUMA nodes whose CPUs the job may run on",
        "numa_cpu_nodes=0",
        ValueKind::Special {
            form: "list of nodes (opt=0-1,3), or all",
            read: |options, text, _| {
                options.process.numa_cpu_nodes = Some(nodes(Piece::new(text))?);
                Ok(())
            },
        },
    )
    .empty(EmptyValue::Means(NO_CPU, |o| {
        o.process.numa_cpu_nodes = Some(Nodes::List(Vec::new()));
    }))
    .different(
        "`+` counts from the first node of the machine; in libnuma, from the first one that the \
         process may use",
    ),
    Row::new(
        "numa_mem_policy",
        "",
        "NUMA policy of the job's memory",
        "numa_mem_policy=bind:0",
        ValueKind::Special {
            form: "default|local|prefer:N|bind:nodes|interleave[:nodes]",
            read: memory_policy,
        },
    )
    .empty(EmptyValue::RefusedWhenRun)
    .different(
        "as `numa_cpu_nodes`; a policy that the kernel refuses (`bind:!0` with one node) fails the \
         job, and fio runs it without the policy",
    ),
    Row::new(
        "lockmem",
        "0",
        "Memory to lock during the run, to shrink what is left for the page cache",
        "lockmem=64m",
        ValueKind::Int {
            min: 0,
            max: u64::MAX,
            set: |o, v| o.process.lockmem = v,
        },
    )
    .different("more than the free memory minus 128 MiB fails the job; fio locks less"),
    Row::new(
        "cgroup",
        "",
        "Control group of the job (blkio controller, cgroup v1)",
        "cgroup=low",
        ValueKind::Text(|o, text| o.process.cgroup = Some(text.to_owned())),
    ),
    Row::new(
        "cgroup_weight",
        "",
        "I/O weight of that control group",
        "cgroup_weight=500",
        ValueKind::Int {
            min: 100,
            max: 1000,
            set: |o, v| o.process.cgroup_weight = Some(narrow(v)),
        },
    ),
    Row::new(
        "cgroup_nodelete",
        "0",
        "Keep the control group after the job",
        "cgroup_nodelete=1",
        ValueKind::Bool(|o, v| o.process.cgroup_nodelete = v),
    ),
    Row::new(
        "job_start_clock_id",
        "0",
        "Clock of `job_start` in the report, as a clock_gettime(2) ID",
        "job_start_clock_id=1",
        ValueKind::Int {
            min: 0,
            max: U32,
            set: |o, v| o.process.job_start_clock_id = narrow(v),
        },
    ),
];

fn cpumask(options: &mut Options, text: &str, findings: &mut Findings) -> Result<(), Problem> {
    let kb_base = options.kb_base;
    let documented =
        |findings: &mut Findings| number::counted(Piece::new(text), kb_base, 0, U32, findings);
    let fio = || reading::integer(text, kb_base, (0, U32), EffectiveEntry::Last);
    let mask = findings.documented_or_fio(documented, fio)?.unwrap_or(0);
    if mask == 0 {
        let why = "a mask of 0 leaves the job no CPU";
        let problem = Problem::new("bad-cpu", 0..text.len(), why);
        let problem = problem.fix("set one bit per CPU, as in `cpumask=0x3`");
        findings.misread(problem, NO_CPU)?;
    }
    options.cpus_allowed = Some((0..32).filter(|cpu| mask >> cpu & 1 == 1).collect());
    Ok(())
}

/// Reads `0-1,3`, `all`, or `!` before either.
fn nodes(list: Piece<'_>) -> Result<Nodes, Problem> {
    let list = list.trim();
    if list.text.starts_with('!') {
        return Ok(match nodes(list.part(1..list.text.len()))? {
            Nodes::All => Nodes::List(Vec::new()),
            Nodes::List(nodes) => Nodes::Except(nodes),
            Nodes::Except(_) => return Err(bad_nodes(list)),
        });
    }
    if matches!(list.text, "all" | "+all") {
        return Ok(Nodes::All);
    }
    let mut nodes = Vec::new();
    for piece in list.split(&[',']) {
        let ends = piece.split(&['-']);
        let (low, high) = match ends.as_slice() {
            [only] => (node(*only)?, node(*only)?),
            [low, high] => (node(*low)?, node(*high)?),
            _ => return Err(bad_nodes(piece)),
        };
        if low > high {
            return Err(bad_nodes(piece));
        }
        nodes.extend(low..=high);
    }
    nodes.sort_unstable();
    nodes.dedup();
    Ok(Nodes::List(nodes))
}

fn node(piece: Piece<'_>) -> Result<u32, Problem> {
    let number = piece.text.trim().parse().ok();
    number
        .filter(|number| *number < NODES_MAX)
        .ok_or_else(|| bad_nodes(piece))
}

fn bad_nodes(piece: Piece<'_>) -> Problem {
    let why = format!("`{}` is not a list of NUMA nodes", piece.text);
    Problem::new("bad-nodes", piece.range(), why)
        .fix("write numbers and ranges, as in `0-1,3`, or `all`")
        .when_run()
}

fn memory_policy(options: &mut Options, text: &str, _: &mut Findings) -> Result<(), Problem> {
    let whole = Piece::new(text);
    let (word, list) = match text.split_once(':') {
        Some((word, _)) => (
            whole.part(0..word.len()),
            Some(whole.part(word.len() + 1..text.len())),
        ),
        None => (whole, None),
    };
    let needed = |what: &str| {
        let why = format!("`{}` needs {what}, as in fio", word.text);
        let problem = Problem::new("bad-nodes", whole.range(), why);
        problem.fix(format!("write `{}:0`", word.text)).when_run()
    };
    let policy = match (word.text, list) {
        ("default", None) => MemoryPolicy::Default,
        ("local", None) => MemoryPolicy::Local,
        ("default" | "local", Some(list)) => {
            let why = format!("`{}` takes no nodes", word.text);
            return Err(Problem::new("too-many-values", list.range(), why).when_run());
        }
        ("prefer", Some(list)) if list.text.starts_with('+') => return Err(bad_nodes(list)),
        ("prefer", Some(list)) => MemoryPolicy::Prefer(node(list)?),
        ("prefer", None) => return Err(needed("one node")),
        ("bind", Some(list)) => MemoryPolicy::Bind(nodes(list)?),
        ("bind", None) => return Err(needed("a list of nodes")),
        ("interleave", Some(list)) => MemoryPolicy::Interleave(nodes(list)?),
        ("interleave", None) => MemoryPolicy::Interleave(Nodes::All),
        _ => return Err(unknown_word("numa_mem_policy", word, &POLICIES, &[]).when_run()),
    };
    options.process.numa_mem_policy = Some(policy);
    Ok(())
}

const POLICIES: [&str; 5] = ["default", "local", "prefer", "bind", "interleave"];

/// fio's reading of a list or mask without a CPU.
pub(crate) const NO_CPU: &str = "a job that fails at its start";

/// The kernel's limit of NUMA nodes.
const NODES_MAX: u32 = 1024;
