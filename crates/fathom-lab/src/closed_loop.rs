//! Closed-loop jobs on a modelled storage: each has one op in flight and issues the next when it
//! completes, as a psync job with random offsets does.

use fathom_core::{Direction, Nanos, OpKind, Slot, Tick, Xoshiro256, stream_seed};
use fathom_sim::{JobId, ModelledStorage, Request, StorageEvent, SubmitResult};

/// Load of the jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) jobs: u32,
    pub(crate) direction: Direction,
    /// Op size in bytes.
    pub(crate) block: u32,
    /// Distance between the starts of the jobs' regions, in bytes.
    pub(crate) stride: u64,
    /// Size of a job's region in bytes; regions overlap if it exceeds the distance.
    pub(crate) region: u64,
    /// Time before counting starts.
    pub(crate) ramp: Nanos,
    /// Time that is counted.
    pub(crate) runtime: Nanos,
}

/// Runs the jobs and returns the bytes they moved after the ramp.
pub(crate) fn closed_loop<S: ModelledStorage>(storage: &mut S, load: &Load) -> u64 {
    let jobs = (0..load.jobs).map(|number| LoopJob::new(number, load));
    let mut jobs: Vec<LoopJob> = jobs.collect();
    for job in start_order(load.jobs) {
        jobs[job].begin(storage, load, Tick::ZERO);
    }
    let (begin, end) = (
        Tick::ZERO + load.ramp,
        Tick::ZERO + load.ramp + load.runtime,
    );
    let mut bytes = 0;
    let mut events = Vec::new();
    while let Some(now) = storage.next().filter(|now| *now <= end) {
        storage.advance(now, &mut events);
        for event in events.drain(..) {
            match event {
                StorageEvent::Completed { job, result, .. } => {
                    if now >= begin {
                        bytes += u64::try_from(result).unwrap_or(0);
                    }
                    jobs[job.index()].begin(storage, load, now);
                }
                StorageEvent::Woken { job } => jobs[job.index()].submit(storage, now),
                StorageEvent::Faulty { .. } => {}
            }
        }
    }
    bytes
}

/// Returns the jobs in the order of their first ops.
///
/// Processes do not reach the queue in the order of their numbers. If they did, fair waiting would
/// keep that order for the whole run, and with it one long sweep over the disk.
fn start_order(jobs: u32) -> Vec<usize> {
    let mut random = Xoshiro256::new(stream_seed(SEED, u64::MAX));
    let mut order: Vec<usize> = (0..jobs as usize).collect();
    for last in (1..jobs).rev() {
        let other = random.below(u64::from(last) + 1);
        order.swap(last as usize, usize::try_from(other).unwrap_or(0));
    }
    order
}

/// Returns a rate in MiB/s.
#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
pub(crate) fn mib_per_second(bytes: u64, time: Nanos) -> f64 {
    bytes as f64 / f64::from(1 << 20) / (time.get() as f64 / 1e9)
}

struct LoopJob {
    id: JobId,
    random: Xoshiro256,
    request: Request,
}

impl LoopJob {
    fn new(number: u32, load: &Load) -> Self {
        Self {
            id: JobId::new(number),
            random: Xoshiro256::new(stream_seed(SEED, number.into())),
            request: Request {
                slot: Slot::new(0),
                kind: OpKind::Data(load.direction),
                offset: 0,
                length: load.block,
                priority: 0,
            },
        }
    }

    fn begin<S: ModelledStorage>(&mut self, storage: &mut S, load: &Load, now: Tick) {
        let block = u64::from(load.block);
        let place = self.random.below(load.region / block) * block;
        self.request.offset = u64::from(self.id.get()) * load.stride + place;
        self.submit(storage, now);
    }

    fn submit<S: ModelledStorage>(&mut self, storage: &mut S, now: Tick) {
        // Blocked: submitted again when woken.
        let (SubmitResult::Accepted | SubmitResult::Blocked) =
            storage.submit(self.id, &self.request, now);
    }
}

/// Arbitrary.
const SEED: u64 = 1;
