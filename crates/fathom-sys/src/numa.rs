//! NUMA nodes: which there are, which processors they have, and from which of them the calling
//! thread's memory comes.

use std::fs;
use std::io;

/// Where new pages of the calling thread come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// As the system has it.
    Default,
    /// The node that the thread runs on.
    Local,
    /// This node, while it has any.
    Prefer(u32),
    /// These nodes and no others.
    Bind(Vec<u32>),
    /// These nodes, one after the other.
    Interleave(Vec<u32>),
}

/// The nodes of this machine, ascending; empty where the kernel does not say.
#[must_use]
pub fn nodes() -> Vec<u32> {
    let text = fs::read_to_string(format!("{NODES}/online")).unwrap_or_default();
    numbers(&text)
}

/// The processors of a node, ascending; empty if it has none, or there is no such node.
#[must_use]
pub fn cpus_of(node: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("{NODES}/node{node}/cpulist")).unwrap_or_default();
    numbers(&text)
}

/// Says where new pages of the calling thread come from.
///
/// # Errors
/// `EINVAL` for nodes that are not there or have no memory, `ENOSYS` where the kernel knows no
/// nodes.
pub fn set_policy(policy: &Policy) -> io::Result<()> {
    let (mode, nodes): (_, &[u32]) = match policy {
        Policy::Default => (libc::MPOL_DEFAULT, &[]),
        Policy::Local => (libc::MPOL_LOCAL, &[]),
        Policy::Prefer(node) => (libc::MPOL_PREFERRED, std::slice::from_ref(node)),
        Policy::Bind(nodes) => (libc::MPOL_BIND, nodes),
        Policy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, nodes),
    };
    let mut words = [0_u64; MASK_WORDS];
    for &node in nodes {
        let word = words.get_mut(node as usize / 64);
        *word.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))? |= 1 << (node % 64);
    }
    // The kernel wants a bit more than there are, and no mask at all where there are no nodes.
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

/// The numbers of a list as the kernel writes it: `0-3,8`.
fn numbers(list: &str) -> Vec<u32> {
    let piece = |piece: &str| {
        let (low, high) = piece.split_once('-').unwrap_or((piece, piece));
        Some(low.parse::<u32>().ok()?..=high.parse().ok()?)
    };
    let pieces = list.trim().split(',').filter_map(piece);
    pieces.flatten().collect()
}

const NODES: &str = "/sys/devices/system/node";
/// 1024 nodes, the most that a Linux kernel is built for.
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
                Policy::Bind(vec![node]),
                Policy::Prefer(node),
                Policy::Interleave(vec![node]),
                Policy::Local,
                Policy::Default,
            ];
            for policy in all {
                match set_policy(&policy).map_err(|error| error.raw_os_error()) {
                    Ok(()) => {}
                    Err(Some(libc::ENOSYS | libc::EPERM)) => println!("skipped: no policies here"),
                    Err(error) => panic!("{policy:?}: {error:?}"),
                }
            }
            assert!(set_policy(&Policy::Bind(vec![1023])).is_err());
        })
        .join()
        .unwrap();
    }
}
