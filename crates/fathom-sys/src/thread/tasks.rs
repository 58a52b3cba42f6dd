//! The other threads of this process, as `/proc` tells of them.

use std::fs;

use crate::system::TICK_US;

/// A thread that the kernel runs for a ring of this process: `iou-wrk-N` or `iou-sqp-N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelHelper {
    /// Its own number.
    pub id: u32,
    /// The thread whose ring it serves, directly or through that ring's poller.
    pub owner: u32,
    /// Processor time it has used, µs; all of it in the kernel.
    pub system_us: u64,
}

/// The helpers that the kernel runs for this process's rings now.
///
/// A helper that has ended (idle for 5 s) is not seen any more, nor what it had used; it remains
/// in `process_usage`. One look costs a few µs for each thread of the process.
#[must_use]
pub fn kernel_helpers() -> Vec<KernelHelper> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let mut helpers: Vec<KernelHelper> = tasks
        .filter_map(|task| {
            let id: u32 = task.ok()?.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(format!("/proc/self/task/{id}/comm")).ok()?;
            let owner = owner_in_name(name.trim_end())?;
            let system_us = task_time_us(id)?;
            Some(KernelHelper {
                id,
                owner,
                system_us,
            })
        })
        .collect();
    // Workers of a polled ring belong to its poller; count them to the poller's owner.
    let direct = helpers.clone();
    for helper in &mut helpers {
        if let Some(poller) = direct.iter().find(|other| other.id == helper.owner) {
            helper.owner = poller.owner;
        }
    }
    helpers
}

/// Processor time that the kernel's helpers of one thread's rings have used so far, µs.
#[must_use]
pub fn kernel_helpers_us(owner: u32) -> u64 {
    let helpers = kernel_helpers();
    let own = helpers.iter().filter(|helper| helper.owner == owner);
    own.map(|helper| helper.system_us).sum()
}

fn owner_in_name(name: &str) -> Option<u32> {
    let number = name
        .strip_prefix("iou-wrk-")
        .or_else(|| name.strip_prefix("iou-sqp-"))?;
    number.parse().ok()
}

/// `schedstat` counts nanoseconds; `stat`, for kernels without it, hundredths of a second.
fn task_time_us(id: u32) -> Option<u64> {
    if let Ok(text) = fs::read_to_string(format!("/proc/self/task/{id}/schedstat")) {
        let ns: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
        return Some(ns / 1_000);
    }
    let text = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
    stat_time_us(&text)
}

/// User and system time are fields 14 and 15; a name in parentheses, which may hold spaces, is
/// field 2.
fn stat_time_us(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system).saturating_mul(TICK_US))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::id;

    #[test]
    fn helpers_are_known_by_their_names() {
        assert_eq!(owner_in_name("iou-wrk-123"), Some(123));
        assert_eq!(owner_in_name("iou-sqp-9"), Some(9));
        assert_eq!(owner_in_name("kworker/0:1"), None);
        assert_eq!(owner_in_name("iou-wrk-"), None);
    }

    #[test]
    fn a_name_with_spaces_does_not_shift_the_fields() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 30 12 0 0 20 0";
        assert_eq!(stat_time_us(stat), Some(420_000));
        assert_eq!(stat_time_us("7 (x) S 1"), None);
    }

    #[test]
    fn every_task_of_ours_has_a_time() {
        assert!(task_time_us(id()).is_some());
        let text = fs::read_to_string(format!("/proc/self/task/{}/stat", id())).unwrap();
        assert!(stat_time_us(&text).is_some());
    }
}
