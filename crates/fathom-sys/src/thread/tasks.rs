//! CPU time of this process's threads and kernel helpers, from `/proc`.

use std::fs;

use super::Usage;
use crate::system::TICK_US;

/// A kernel helper of a ring of this process: `iou-wrk-N` or `iou-sqp-N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelHelper {
    /// Thread id.
    pub id: u32,
    /// Thread whose ring it serves, directly or through that ring's SQPOLL thread.
    pub owner: u32,
    /// CPU time, µs, all of it system time.
    pub system_us: u64,
}

/// Lists the current kernel helpers of this process's rings.
///
/// A helper that has ended (idle for 5 s) is missing, with its CPU time, which remains in
/// `process_usage`. Costs a few µs per thread of the process.
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
    // Workers of an SQPOLL ring belong to its thread; attribute them to that thread's owner.
    let direct = helpers.clone();
    for helper in &mut helpers {
        if let Some(poller) = direct.iter().find(|other| other.id == helper.owner) {
            helper.owner = poller.owner;
        }
    }
    helpers
}

/// Returns the CPU time so far of the kernel helpers of these threads' rings, µs.
#[must_use]
pub fn kernel_helpers_us(owners: &[u32]) -> u64 {
    let helpers = kernel_helpers();
    let own = helpers
        .iter()
        .filter(|helper| owners.contains(&helper.owner));
    own.map(|helper| helper.system_us).sum()
}

/// Returns the usage of a thread of this process; zero if it has ended.
///
/// The sum of user and system time is exact. Their split has a resolution of 10 ms; the remainder
/// counts as system time, which dominates in threads that do I/O. Reads three files of `/proc`,
/// some ten microseconds.
#[must_use]
pub fn usage_of_task(id: u32) -> Usage {
    let read = |file| fs::read_to_string(format!("/proc/self/task/{id}/{file}"));
    let (Ok(stat), Ok(status)) = (read("stat"), read("status")) else {
        return Usage::default();
    };
    let schedstat = read("schedstat").ok();
    usage_in(&stat, &status, schedstat.as_deref()).unwrap_or_default()
}

fn usage_in(stat: &str, status: &str, schedstat: Option<&str>) -> Option<Usage> {
    let field = |number| stat_field(stat, number);
    let switches = |name: &str| {
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix(name));
        count.and_then(|count| count.trim().parse().ok())
    };
    let total_us = schedstat.and_then(schedstat_time_us);
    let user_us = field(USER_TIME)?.saturating_mul(TICK_US);
    let system_us = field(SYSTEM_TIME)?.saturating_mul(TICK_US);
    Some(Usage {
        user_us,
        system_us: total_us.map_or(system_us, |total| total.saturating_sub(user_us)),
        voluntary_switches: switches("voluntary_ctxt_switches:").unwrap_or(0),
        involuntary_switches: switches("nonvoluntary_ctxt_switches:").unwrap_or(0),
        major_faults: field(MAJOR_FAULTS)?,
        minor_faults: field(MINOR_FAULTS)?,
    })
}

fn owner_in_name(name: &str) -> Option<u32> {
    let number = name
        .strip_prefix("iou-wrk-")
        .or_else(|| name.strip_prefix("iou-sqp-"))?;
    number.parse().ok()
}

/// Reads the CPU time: `schedstat` has nanoseconds; `stat`, for kernels without it, units of 10 ms.
fn task_time_us(id: u32) -> Option<u64> {
    if let Ok(text) = fs::read_to_string(format!("/proc/self/task/{id}/schedstat")) {
        return schedstat_time_us(&text);
    }
    let text = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
    stat_time_us(&text)
}

fn schedstat_time_us(schedstat: &str) -> Option<u64> {
    let ns: u64 = schedstat.split_ascii_whitespace().next()?.parse().ok()?;
    Some(ns / 1_000)
}

fn stat_time_us(stat: &str) -> Option<u64> {
    let ticks = stat_field(stat, USER_TIME)? + stat_field(stat, SYSTEM_TIME)?;
    Some(ticks.saturating_mul(TICK_US))
}

/// Returns a field of `stat`, counted from 1. The second, a name in parentheses, may contain
/// spaces.
fn stat_field(stat: &str, number: usize) -> Option<u64> {
    let (_, from_third) = stat.rsplit_once(')')?;
    let mut fields = from_third.split_ascii_whitespace();
    fields.nth(number - 3)?.parse().ok()
}

/// Field numbers of `/proc/PID/task/TID/stat`, from proc(5).
const MINOR_FAULTS: usize = 10;
const MAJOR_FAULTS: usize = 12;
const USER_TIME: usize = 14;
const SYSTEM_TIME: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{id, usage};

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
    fn the_sum_of_times_is_exact_and_what_is_not_user_time_is_system_time() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 700 8 9 10 30 12 0 0 20 0";
        let status = "Name:\ta\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
        let exact = Usage {
            user_us: 300_000,
            system_us: 127_654,
            voluntary_switches: 5,
            involuntary_switches: 6,
            major_faults: 9,
            minor_faults: 700,
        };
        let schedstat = Some("427654321 1 2\n");
        assert_eq!(usage_in(stat, status, schedstat), Some(exact));
        let in_ticks = Usage {
            system_us: 120_000,
            ..exact
        };
        assert_eq!(usage_in(stat, status, None), Some(in_ticks));
        assert_eq!(usage_in("7 (x) S 1", status, schedstat), None);
    }

    #[test]
    fn what_another_thread_has_used_is_what_it_says_itself() {
        let used = std::thread::spawn(|| {
            let pages = vec![1_u8; 8 << 20];
            while usage().user_us + usage().system_us < 50_000 {
                std::hint::black_box(pages.iter().map(|&byte| u64::from(byte)).sum::<u64>());
            }
            (usage(), usage_of_task(id()))
        });
        let (own, asked) = used.join().unwrap();
        let total = |usage: Usage| usage.user_us + usage.system_us;
        assert!(total(own) <= total(asked), "{own:?}, {asked:?}");
        assert!(asked.minor_faults >= own.minor_faults);
        assert!(own.minor_faults > 0);
    }

    #[test]
    fn a_thread_that_is_not_there_has_used_nothing() {
        assert_eq!(usage_of_task(0), Usage::default());
    }

    #[test]
    fn every_task_of_ours_has_a_time() {
        assert!(task_time_us(id()).is_some());
        let text = fs::read_to_string(format!("/proc/self/task/{}/stat", id())).unwrap();
        assert!(stat_time_us(&text).is_some());
    }
}
