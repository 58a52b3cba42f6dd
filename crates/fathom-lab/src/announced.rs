//! Announcements of measurements that take a while.

use crate::counted::counted;
use crate::lab_plan::duration;

/// Returns what is said before the first run: number, length, and the least time of all, with
/// `overhead_s` of each run that is not measured.
pub(crate) fn announced(runs: u64, seconds: u64, overhead_s: u64) -> String {
    let all = runs.saturating_mul(seconds.saturating_add(overhead_s));
    format!(
        "{} of {seconds} s, at least {}; Ctrl-C ends with those that are done",
        counted(runs, "run"),
        duration(all.saturating_mul(1_000_000_000))
    )
}

#[cfg(test)]
mod tests {
    use super::announced;

    #[test]
    fn the_time_is_that_of_all_runs() {
        let end = "; Ctrl-C ends with those that are done";
        assert_eq!(
            announced(192, 2, 1),
            format!("192 runs of 2 s, at least 9 min 36 s{end}")
        );
        assert_eq!(
            announced(1, 5, 0),
            format!("1 run of 5 s, at least 5 s{end}")
        );
    }
}
