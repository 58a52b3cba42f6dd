//! Reporting groups, and waves of jobs that start together.

use fathom_job::{Job, Numbering};

/// Position of one clone in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobPlace {
    /// Index of its section in the plan.
    pub section: usize,
    /// Sub-job number: 0 for the first clone.
    pub clone: u32,
    /// Thread number over the whole run, from 1.
    pub number: u32,
    /// Reporting group, from 0.
    pub group: u32,
    /// Wave: its jobs start together, once those of the previous wave have ended. A rank may have
    /// no job of a wave that others have.
    pub wave: u32,
}

/// Expands jobs into clones, in fio's order (0, N−1, …, 1), with the numbers of their sections.
pub fn places(jobs: &[Job]) -> Vec<JobPlace> {
    let mut places = Vec::new();
    for (section, job) in jobs.iter().enumerate() {
        let Numbering {
            first_thread,
            group,
            wave,
        } = job.numbering;
        for (number, clone) in (first_thread..).zip(clone_order(job.options.numjobs)) {
            places.push(JobPlace {
                section,
                clone,
                number,
                group,
                wave,
            });
        }
    }
    places
}

/// Returns sub-job numbers in the order in which clones are created.
fn clone_order(count: u32) -> impl Iterator<Item = u32> {
    std::iter::once(0).chain((1..count).rev())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_follow_fios_order() {
        let order = |count| clone_order(count).collect::<Vec<_>>();
        assert_eq!(order(1), [0]);
        assert_eq!(order(2), [0, 1]);
        assert_eq!(order(4), [0, 3, 2, 1]);
    }
}
