//! A cut of the power at a random op, and verification by the maps that are left.

use fathom_core::Tick;
use fathom_workload::{FileRange, Mix, WorkerConfig, fixture};

use crate::plan::{self, FILE_BYTES, Plan};
use crate::{add, check_job, plans, simulation, storage_of};

/// Returns a job that reads the files of the plan's first job, and checks what its map knows.
fn verifying(plan: &Plan) -> WorkerConfig {
    let written = &plan.jobs[0];
    let mut config = written.config.clone();
    // A mix of reads alone: a job that only reads would check what earlier runs wrote, too.
    let reads = Mix::ReadWrite { read: 100 };
    let unit = plan::unit(&config.pattern.sizes.write);
    config.pattern = fixture::pattern(reads, false, unit, VERIFIED_BYTES);
    let range = FileRange {
        file: FILE_BYTES,
        ..fixture::file(0, VERIFIED_BYTES)
    };
    config.pattern.files = vec![range; written.files.len()];
    config.bytes_per_pass = VERIFIED_BYTES * written.files.len() as u64;
    (config.loops, config.time_based, config.runtime) = (1, false, None);
    config.limits.ops = None;
    config.tolerate.verify = false;
    config
}

/// Cuts a plan, and verifies what it has left; returns whether there was an error.
#[track_caller]
fn check(seed: u64) -> bool {
    // In every other plan a write was lost before.
    let mut plan = plan::draw(seed, seed % 2 * LOST);
    for job in &mut plan.jobs {
        // What the jobs find themselves is the other test's.
        job.config.tolerate.verify = true;
    }
    let storage = storage_of(&plan, false).cut_after(20 + seed * 7919 % 400);
    let mut ran = simulation(&plan, storage).run().expect("jobs that end");

    let storage = ran.storages.remove(0).revived();
    let mut again = fathom_sim::Simulation::new(vec![storage], ran.files);
    // Later than anything before the cut.
    let starts = Tick::new(1 << 50);
    add(&mut again, &verifying(&plan), &plan.jobs[0].files, starts);
    let mut ran = again.run().expect("a job that ends");
    let error = ran.jobs.remove(0).0.error;
    let what = format!("seed {seed}, cut: {:?}", plan.fault);
    check_job(&plan, &ran.storages[0], 0, error.as_ref(), &what);
    error.is_some()
}

#[test]
fn after_a_cut_every_acknowledged_write_is_there_or_reported() {
    let found = (0..plans()).filter(|&seed| check(seed)).count() as u64;
    assert!(
        found * 100 > plans(),
        "{found}: too few lost writes are met"
    );
}

/// Bytes of each file that are verified: more than any job writes.
const VERIFIED_BYTES: u64 = FILE_BYTES / 2;
/// Number of the fault in a plan.
const LOST: u64 = 2;
