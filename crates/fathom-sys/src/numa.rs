//! NUMA: nodes, their CPUs, and the memory policy of the calling thread.

use std::fs;
use std::io;

/// Memory policy for new pages of the calling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumaPolicy {
    /// The system's default.
    Default,
    /// The node on which the thread runs.
    Local,
    /// This node, while it has free memory.
    Prefer(u32),
    /// Only these nodes.
    Bind(Vec<u32>),
    /// These nodes in turn (interleaved).
    Interleave(Vec<u32>),
}

/// Lists the nodes of this machine, ascending; empty if the kernel does not report them.
#[must_use]
pub fn nodes() -> Vec<u32> {
    let text = fs::read_to_string(format!("{NODES}/online")).unwrap_or_default();
    numbers(&text)
}

/// Lists the CPUs of a node, ascending; empty if it has none, or there is no such node.
#[must_use]
pub fn cpus_of(node: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("{NODES}/node{node}/cpulist")).unwrap_or_default();
    numbers(&text)
}

/// Sets the memory policy of the calling thread.
///
/// # Errors
/// `EINVAL` for nodes that do not exist or have no memory, `ENOSYS` for a kernel without NUMA.
pub fn set_policy(policy: &NumaPolicy) -> io::Result<()> {
    let (mode, nodes): (_, &[u32]) = match policy {
        NumaPolicy::Default => (libc::MPOL_DEFAULT, &[]),
        NumaPolicy::Local => (libc::MPOL_LOCAL, &[]),
        NumaPolicy::Prefer(node) => (libc::MPOL_PREFERRED, std::slice::from_ref(node)),
        NumaPolicy::Bind(nodes) => (libc::MPOL_BIND, nodes),
        NumaPolicy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, nodes),
    };
    let mut words = [0_u64; MASK_WORDS];
    for &node in nodes {
        let word = words.get_mut(node as usize / 64);
        *word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))? |= 1 << (node % 64);
    }
    // The kernel wants one bit more than there are, and a null mask if there are no nodes.
    let (mask, bits) = if nodes.is_empty() {
        (std::ptr::null(), 0)
    } else {
        (words.as_ptr(), MASK_WORDS * 64 + 1)
    };
    // SAFETY: the kernel reads the bits that it was told of, rounded down to words: all of a live
    // array, or nothing.
    let failed = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Parses a list of the kernel: `0-3,8`.
fn numbers(list: &str) -> Vec<u32> {
    let piece = |piece: &str| {
        let (low, high) = piece.split_once('-').unwrap_or((piece, piece));
        Some(low.parse::<u32>().ok()?..=high.parse().ok()?)
    };
    let pieces = list.trim().split(',').filter_map(piece);
    pieces.flatten().collect()
}

const NODES: &str = "/sys/devices/system/node";
/// 1024 nodes, the maximum of a Linux build.
const MASK_WORDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(numbers("0\n"), [0]);
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(numbers("\n"), [0_u32; 0]);
    }

    #[test]
    fn memory_can_be_bound_to_a_node() {
        let Some(&node) = nodes().first() else {
            println!("skipped: this kernel knows no nodes");
            return;
        };
        assert!(!cpus_of(node).is_empty());
        std::thread::spawn(move || {
            let all = [
                NumaPolicy::Bind(vec![node]),
                NumaPolicy::Prefer(node),
                NumaPolicy::Interleave(vec![node]),
                NumaPolicy::Local,
                NumaPolicy::Default,
            ];
            for policy in all {
                match set_policy(&policy).map_err(|error| error.raw_os_error()) {
                    Ok(()) => {}
                    Err(Some(libc::ENOSYS | libc::EPERM)) => println!("skipped: no policies here"),
                    Err(error) => panic!("{policy:?}: {error:?}"),
                }
            }
            assert!(set_policy(&NumaPolicy::Bind(vec![1023])).is_err());
        })
        .join()
        .unwrap();
    }
}
