//! Random plans on a storage with faults: no false alarm, and no fault that a read meets is missed.
//!
//! Each plan runs once without a fault and once with each kind. `FATHOM_VERIFY_PLANS` sets the
//! number of plans; a failure names the seed and the fault, and `check` runs that one alone.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test may panic, and its numbers are small"
)]

mod cut;
mod dry_runs;
mod oracle;
mod plan;

use fathom_block::{Faults, Faulty, SparseBytes};
use fathom_core::{Direction, Nanos, Tick};
use fathom_sim::{Constant, Direct, EngineSpec, FaultKind, InjectedFault, ModelFile, Simulation};
use fathom_workload::{JobActivity, JobError, VerifyMethod, Worker, WorkerConfig};

use oracle::{Content, Difference, Oracle, SECTOR};
use plan::{FAULTS, FILE_BYTES, Plan};

type Storage = Oracle<Direct<Faulty<Constant>>>;

/// Result of a plan: the error of each job, and the storage that knows the truth.
struct Played {
    errors: Vec<Option<JobError>>,
    storage: Storage,
}

fn play(plan: &Plan, short_reads: bool) -> Played {
    let mut ran = simulation(plan, storage_of(plan, short_reads))
        .run()
        .unwrap_or_else(|stuck| panic!("{stuck:?}: {plan:#?}"));
    let errors = ran.jobs.into_iter().map(|(results, _)| results.error);
    Played {
        errors: errors.collect(),
        storage: ran.storages.remove(0),
    }
}

/// Returns the storage of a plan, with its fault.
fn storage_of(plan: &Plan, short_reads: bool) -> Storage {
    let bytes = plan.files * FILE_BYTES + (64 << 10);
    let faults = Faults {
        stalled_ppm: plan.late_ppm,
        stalled_for: Nanos::from_micros(350),
        seed: plan.seed,
        ..Faults::default()
    };
    let device = Faulty::new(Constant::new(Nanos::from_micros(100)), faults);
    let short = |number| InjectedFault {
        number,
        direction: Direction::Read,
        kind: FaultKind::Short(512),
    };
    let short = match short_reads {
        true => (0..200).step_by(7).map(short).collect(),
        false => Vec::new(),
    };
    Oracle::new(Direct::new(device).with_faults(short), bytes, plan.fault)
}

/// Returns a simulation of a plan's jobs.
fn simulation(plan: &Plan, storage: Storage) -> Simulation<Storage> {
    let files = (0..plan.files).map(|number| ModelFile {
        storage: 0,
        base: number * FILE_BYTES,
        content: Some(SparseBytes::default()),
        earlier: Some(SparseBytes::default()),
    });
    let mut simulation = Simulation::new(vec![storage], files.collect());
    for job in &plan.jobs {
        let starts = Tick::ZERO + job.starts;
        add(&mut simulation, &job.config, &job.files, starts);
    }
    simulation
}

/// Adds a job on these files.
fn add(simulation: &mut Simulation<Storage>, config: &WorkerConfig, files: &[usize], starts: Tick) {
    let spec = EngineSpec {
        depth: config.depth,
        buffer_bytes: 1 << 16,
        synchronous: config.depth == 1,
        files: files.to_vec(),
    };
    let engine = simulation.engine(&spec);
    let worker = Worker::new(config.clone(), engine.capabilities(), Tick::ZERO);
    simulation.add(worker.expect("a job that makes sense"), engine, starts);
}

/// Returns the blocks of a read that differ and must be reported: their offsets on the storage.
fn missed_blocks(plan: &Plan, storage: &Storage, difference: &Difference) -> Vec<u64> {
    let read = storage.told[difference.read];
    let job = &plan.jobs[read.job.index()];
    let interval = u64::from(job.interval);
    let sectors = (interval / SECTOR) as usize;
    let truth = difference.truth.chunks_exact(sectors);
    let returned = difference.returned.chunks_exact(sectors);
    let blocks = (read.offset..)
        .step_by(job.interval as usize)
        .zip(truth.zip(returned));
    let differing = blocks.filter(|(_, (truth, returned))| truth != returned);
    differing
        .filter(|(offset, (truth, returned))| {
            must_find(plan, storage, difference.read, *offset, truth, returned)
        })
        .map(|(offset, _)| offset)
        .collect()
}

/// Returns whether a differing block is one whose only right content is known to the job.
fn must_find(
    plan: &Plan,
    storage: &Storage,
    read: usize,
    offset: u64,
    truth: &[Content],
    returned: &[Content],
) -> bool {
    let read = storage.told[read];
    let length = truth.len() as u64 * SECTOR;
    if !plan.uniform || plan.lacks_starts() {
        // A job knows its own blocks among others by what it reads back alone.
        return false;
    }
    let Content::Written { op, index } = truth[0] else {
        return false;
    };
    let whole = (index..)
        .zip(truth)
        .all(|(index, content)| *content == Content::Written { op, index });
    let own_grid = (index * SECTOR).is_multiple_of(length);
    let written = storage.told[op];
    let others = storage.told.iter().enumerate().any(|(number, other)| {
        let changes = other.direction != Direction::Read && number != op;
        changes
            && other.touches(offset, length)
            && (other.failed || other.is_beside(&written) || other.is_beside(&read))
    });
    let method = plan.jobs[0].config.verify.as_ref().unwrap().method;
    whole && own_grid && !others && !written.is_beside(&read) && shows(method, truth, returned)
}

/// Returns whether a method can tell two blocks apart: a pattern is the same in all writes of a
/// block, but for the header.
fn shows(method: VerifyMethod, truth: &[Content], returned: &[Content]) -> bool {
    let foreign = |content: &Content| !matches!(content, Content::Written { .. });
    match method {
        VerifyMethod::Pattern => returned.iter().any(foreign),
        VerifyMethod::PatternHeader => truth[0] != returned[0] || returned.iter().any(foreign),
        _ => true,
    }
}

/// Returns the words of a report that name what a block holds.
fn names(
    plan: &Plan,
    storage: &Storage,
    offset: u64,
    returned: &[Content],
) -> &'static [&'static str] {
    let length = returned.len() as u64 * SECTOR;
    match returned[0] {
        Content::Initial | Content::Zeros => &["bad magic", "pattern"],
        Content::Damaged { .. } => &["bad", "verify failed"],
        Content::Written { op, index } => {
            let told = storage.told[op];
            let place = told.offset + index * SECTOR;
            let whole = (index..)
                .zip(returned)
                .all(|(index, content)| *content == Content::Written { op, index });
            // A pattern differs where the block that is there began elsewhere.
            let stamps = u64::from(plan.jobs[told.job.index()].interval);
            if !(index * SECTOR).is_multiple_of(stamps) || stamps != length {
                &[]
            } else if place != offset {
                &["bad header offset", "pattern"]
            } else if whole {
                &["outdated", "numberio", "seed", "pattern"]
            } else {
                &["verify failed", "numberio"]
            }
        }
    }
}

#[track_caller]
fn check(seed: u64, fault: u64) -> bool {
    let plan = plan::draw(seed, fault);
    let played = play(&plan, fault == 7);
    let what = format!("seed {seed}, fault {fault}: {:?}", plan.fault);
    let errors = played.errors.iter().enumerate();
    for (number, error) in errors.clone() {
        check_job(&plan, &played.storage, number, error.as_ref(), &what);
    }
    played.errors.iter().any(Option::is_some)
}

/// Checks that a job reports a fault that it has met, and nothing else.
fn check_job(plan: &Plan, storage: &Storage, number: usize, error: Option<&JobError>, what: &str) {
    let met = storage.differences.iter();
    let met = met.filter(|met| storage.told[met.read].job.index() == number);
    let met: Vec<_> = met.collect();
    let must = met.iter().flat_map(|met| missed_blocks(plan, storage, met));
    let must: Vec<u64> = must.collect();
    match error {
        Some(error) => {
            assert_eq!(error.activity, JobActivity::Verify, "{what}: {error:?}");
            check_named(plan, storage, number, error, &met, what);
        }
        None => assert!(must.is_empty(), "{what}: job {number} missed {must:?}"),
    }
}

/// Checks that a reported block differs, and that the report says how.
fn check_named(
    plan: &Plan,
    storage: &Storage,
    number: usize,
    error: &JobError,
    differences: &[&Difference],
    what: &str,
) {
    let job = &plan.jobs[number];
    let detail = error.detail.as_deref().unwrap_or_default();
    let at = detail
        .split(" at offset ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let at: u64 = at
        .and_then(|at| at.parse().ok())
        .unwrap_or_else(|| panic!("{detail}"));
    let block = job.files[error.file.index()] as u64 * FILE_BYTES + at;
    let sectors = (job.interval / 512) as usize;
    let mut said = Vec::new();
    for difference in differences {
        let read = storage.told[difference.read];
        let Some(from) = block.checked_sub(read.offset) else {
            continue;
        };
        let from = (from / SECTOR) as usize;
        let range = from..(from + sectors).min(difference.truth.len());
        if range.is_empty() || difference.truth[range.clone()] == difference.returned[range.clone()]
        {
            continue;
        }
        said.push(match difference.truth[from] {
            Content::Zeros => &["trim: verify failed"],
            _ => names(plan, storage, block, &difference.returned[range]),
        });
    }
    assert!(
        !said.is_empty(),
        "{what}: false alarm of job {number}: {detail}"
    );
    let is_named =
        |words: &&[&str]| words.is_empty() || words.iter().any(|word| detail.contains(word));
    assert!(said.iter().any(is_named), "{what}: {detail}, not {said:?}");
}

/// Returns the number of plans to play.
fn plans() -> u64 {
    let plans = std::env::var("FATHOM_VERIFY_PLANS").ok();
    plans.and_then(|plans| plans.parse().ok()).unwrap_or(300)
}

#[test]
fn no_false_alarm_and_no_miss() {
    let plans = plans();
    let mut found = [0u64; FAULTS as usize];
    for seed in 0..plans {
        for fault in 0..FAULTS {
            found[fault as usize] += u64::from(check(seed, fault));
        }
    }
    assert_eq!((found[0], found[7]), (0, 0), "without a fault of data");
    // The plans are not so tame that no fault is ever met.
    let met = |found: &u64| *found * 20 > plans;
    assert!(found[1..7].iter().all(met), "{found:?} of {plans}");
}
