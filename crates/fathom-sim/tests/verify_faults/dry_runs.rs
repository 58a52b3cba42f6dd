//! Verification by a later run that draws the same ops and does none of them (`verify_only`).

use fathom_core::{Direction, Tick, Xoshiro256};
use fathom_sim::{ModelFile, Simulation};
use fathom_workload::{JobActivity, Results, WorkerConfig};

use crate::oracle::Told;
use crate::plan::{self, FILE_BYTES, Plan};
use crate::{Storage, add, plans, simulation, storage_of};

/// Draws a plan of one job whose ops do not depend on times.
fn draw(seed: u64) -> Option<Plan> {
    let mut plan = plan::draw(seed, 0);
    plan.jobs.truncate(1);
    let config = &mut plan.jobs[0].config;
    config.generations = Vec::new();
    let counts_reads = config.limits.ops.is_some() && config.verify.as_ref()?.backlog.is_some();
    (!config.time_based && !counts_reads).then_some(plan)
}

/// Verifies what the job of a plan has left; returns the results, the storage, and the files.
fn verify(
    plan: &Plan,
    storage: Storage,
    files: Vec<ModelFile>,
) -> (Results, Storage, Vec<ModelFile>) {
    let mut again = Simulation::new(vec![storage], files);
    let config = WorkerConfig {
        is_dry_run: true,
        ..plan.jobs[0].config.clone()
    };
    add(&mut again, &config, &plan.jobs[0].files, Tick::new(1 << 50));
    let mut ran = again.run().expect("a job that ends");
    let results = ran.jobs.remove(0).0;
    let written = results.directions.write.ios + results.directions.trim.ios;
    assert_eq!(written, 0, "seed {}", plan.seed);
    (results, ran.storages.remove(0), ran.files)
}

/// Inverts a bit on the storage.
fn invert(files: &mut [ModelFile], place: u64, bit: u8) {
    let file = &mut files[(place / FILE_BYTES) as usize];
    let content = file.content.as_mut().unwrap();
    let mut byte = [0];
    content.read(place % FILE_BYTES, &mut byte);
    content.write(place % FILE_BYTES, &[byte[0] ^ (1 << bit)]);
}

/// Verifies a plan intact and with an inverted bit in a block that is read; returns whether the
/// bit was found, `None` if there is nothing to find.
#[track_caller]
fn check(seed: u64) -> Option<bool> {
    let plan = draw(seed)?;
    let storage = storage_of(&plan, false);
    let mut ran = simulation(&plan, storage).run().expect("a job that ends");
    let written = ran.jobs.remove(0).0;
    assert_eq!(written.error, None, "seed {seed}");
    let storage = ran.storages.remove(0);
    let done = storage.told.len();
    let (intact, storage, mut files) = verify(&plan, storage, ran.files);
    let job = &plan.jobs[0];
    assert_eq!(intact.error, None, "seed {seed}: {:#?}", job.config);

    let told = storage.told.clone();
    let (done, read) = told.split_at(done);
    let mut random = Xoshiro256::new(seed);
    let read: Told = *read.get(random.below(read.len().max(1) as u64) as usize)?;
    let interval = u64::from(job.interval);
    let place = read.offset + random.below(read.length);
    invert(&mut files, place, random.below(8) as u8);
    let (damaged, ..) = verify(&plan, storage, files);
    let block = place - (place - read.offset) % interval;
    let changes = |told: &&Told| told.direction != Direction::Read && told.touches(block, interval);
    match &damaged.error {
        Some(error) => {
            assert_eq!(
                error.activity,
                JobActivity::Verify,
                "seed {seed}: {error:?}"
            );
            let (file, at) = (job.files[error.file.index()] as u64, error.offset);
            let read = file * FILE_BYTES + at..file * FILE_BYTES + at + u64::from(error.length);
            assert!(read.contains(&place), "seed {seed}: {place}: {error:?}");
        }
        // Of several writes of a block it may be open which was the last.
        None => assert!(
            done.iter().filter(changes).count() > 1,
            "seed {seed}: {place}"
        ),
    }
    Some(damaged.error.is_some())
}

#[test]
fn what_a_job_left_is_verified_without_its_maps() {
    let found: Vec<bool> = (0..plans()).filter_map(check).collect();
    let count = found.iter().filter(|found| **found).count();
    assert!(count * 10 > found.len() * 7, "{count} of {}", found.len());
    assert!(found.len() as u64 * 2 > plans(), "{} plans", found.len());
}
