//! Memory for the logs of a run: one bound for all jobs together, whatever they request.

use fathom_record::Warning;
use fathom_workload::{JobLog, LogEntry};

use super::plan::{JobLogs, LogPlan};
use super::writer::page_bytes;

/// Number and size of the chunks that the jobs' entries travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizing {
    pub(super) chunks: usize,
    /// Entries per chunk.
    pub(super) entries: usize,
    /// Entries requested, if the bound reduced them.
    requested: Option<usize>,
}

impl Sizing {
    pub(super) fn new(logs: &LogPlan) -> Self {
        let jobs: Vec<&JobLogs> = logs.jobs.iter().flatten().collect();
        let requested = jobs.iter().map(|job| job.entries as usize).max();
        let single_ops = jobs.iter().any(|job| job.config.ops);
        let pages = logs.files.len() * page_bytes(&logs.files);
        Self::of(jobs.len(), pages, requested.unwrap_or(1), single_ops)
    }

    fn of(jobs: usize, pages: usize, requested: usize, single_ops: bool) -> Self {
        let fixed = pages + jobs * JobLog::OWN_BYTES;
        let all = MEMORY_BYTES_MAX.saturating_sub(fixed) / size_of::<LogEntry>();
        // Two chunks per job: one being filled, one in transit. Two more are with the writer.
        let least = 2 * jobs.max(1) + 2;
        let entries = requested.min(all / least).max(CHUNK_ENTRIES_MIN);
        let most = (all / entries).max(1);
        let chunks = if single_ops {
            most
        } else {
            (4 * jobs.max(1) + 4).min(most)
        };
        Self {
            chunks,
            entries,
            requested: (entries < requested).then_some(requested),
        }
    }

    pub(super) fn warning(&self) -> Option<Warning> {
        let requested = self.requested?;
        Some(Warning {
            code: "log_entries_bounded".into(),
            job: String::new(),
            message: format!(
                "`log_entries={requested}` was reduced to {}: the logs of all jobs share {} MiB",
                self.entries,
                MEMORY_BYTES_MAX >> 20
            ),
            hint: "remove `log_entries`".into(),
        })
    }
}

/// Memory limit of all logs of a run, bytes: room for more than a second at 3 million ops per
/// second, and is small beside the files' own share of the page cache.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Smallest chunk, entries: the largest item of a log fits.
const CHUNK_ENTRIES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::writer::{PAGE_BYTES_MAX, page_bytes_of};
    use super::*;

    #[test]
    fn the_bound_holds_whatever_is_asked() {
        for (jobs, requested, bounded) in [
            (1, 1024, false),
            (1, 65_536, false),
            (1, 1_048_576, true),
            (512, 1024, false),
            (512, 65_536, true),
            (4096, 1024, true),
        ] {
            let pages = 3 * jobs * page_bytes_of(3 * jobs, PAGE_BYTES_MAX);
            let sizing = Sizing::of(jobs, pages, requested, true);
            let chunks = sizing.chunks * sizing.entries * size_of::<LogEntry>();
            assert!(
                chunks + pages + jobs * JobLog::OWN_BYTES <= MEMORY_BYTES_MAX,
                "{jobs} jobs: {sizing:?}"
            );
            assert!(sizing.chunks >= 2 * jobs + 2, "{jobs} jobs: {sizing:?}");
            assert_eq!(
                sizing.requested.is_some(),
                bounded,
                "{jobs} jobs, {requested}"
            );
        }
    }

    #[test]
    fn windows_take_little() {
        let sizing = Sizing::of(1, 3 * PAGE_BYTES_MAX, 1024, false);
        assert_eq!((sizing.chunks, sizing.entries), (8, 1024));
    }
}
