//! Numbers of sections in a plan: threads, reporting groups and waves.

use crate::plan::Job;

/// Numbers of a section among all of its plan.
///
/// Sections that other ranks alone have are counted, so that a section has the same numbers on all
/// ranks: waves start together, and logs, seeds and records of a job are identified by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numbering {
    /// Thread number of its first clone, from 1.
    pub first_thread: u32,
    /// Reporting group, from 0.
    pub group: u32,
    /// Wave, from 0: its jobs start together, once those of the previous wave have ended.
    pub wave: u32,
}

/// Numbers the sections of a plan, which are complete and in order.
pub(crate) fn number(jobs: &mut [Job]) {
    let mut next = Numbering {
        first_thread: 1,
        ..Numbering::default()
    };
    for (index, job) in jobs.iter_mut().enumerate() {
        let options = &job.options;
        // The first has no predecessor to wait for.
        if index > 0 {
            next.group += u32::from(options.stonewall || options.new_group);
            next.wave += u32::from(options.stonewall);
        }
        job.numbering = next;
        next.first_thread = next.first_thread.saturating_add(options.numjobs);
    }
}
