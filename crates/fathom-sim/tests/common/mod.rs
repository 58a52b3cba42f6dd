//! Job and device of which tests change single properties.
#![allow(dead_code, reason = "each test file uses its own part")]

use fathom_block::{Faults, Faulty, SparseBytes, Stall};
use fathom_core::{Nanos, Tick};
use fathom_sim::{
    Constant, Direct, EngineSpec, InjectedFault, ModelEngine, ModelFile, Ran, Simulation,
};
use fathom_workload::{Mix, ReplayFeed, Results, Worker, WorkerConfig, fixture};

/// Returns a job of sequential 4 KiB reads over 1 MiB at depth 1.
pub(crate) fn job() -> WorkerConfig {
    fixture::job(fixture::pattern(Mix::Read, false, 4096, 1 << 20))
}

/// Returns the same job at this depth.
pub(crate) fn deep_job(depth: u32) -> WorkerConfig {
    let mut config = job();
    config.depth = depth;
    config.batching.low = depth;
    config
}

/// Device of fixed latency with injected faults.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) latency: Nanos,
    pub(crate) stalls: Vec<Stall>,
    pub(crate) faults: Vec<InjectedFault>,
}

impl Rig {
    /// Returns the device as the jobs see it.
    fn storage(self) -> Direct<Faulty<Constant>> {
        let faults = Faults {
            stalls: self.stalls,
            ..Faults::default()
        };
        let device = Faulty::new(Constant::new(self.latency), faults);
        Direct::new(device).with_faults(self.faults)
    }
}

/// Returns a device of 100 µs per op.
pub(crate) fn device() -> Rig {
    Rig {
        latency: Nanos::from_micros(100),
        stalls: Vec::new(),
        faults: Vec::new(),
    }
}

/// Runs one job alone; a depth of 1 counts as synchronous.
#[track_caller]
pub(crate) fn run(config: WorkerConfig, device: Rig) -> Results {
    run_on(config, device, Vec::new()).0
}

/// Runs one job alone on files with content.
#[track_caller]
pub(crate) fn run_on(
    config: WorkerConfig,
    device: Rig,
    files: Vec<ModelFile>,
) -> (Results, ModelEngine, Vec<ModelFile>) {
    let mut ran = alone(config, device, files).run().expect("a job that ends");
    let Ran { files, .. } = ran;
    let (results, engine) = ran.jobs.remove(0);
    (results, engine, files)
}

/// Returns a simulation of one job, not yet started.
#[track_caller]
pub(crate) fn alone(
    config: WorkerConfig,
    device: Rig,
    files: Vec<ModelFile>,
) -> Simulation<Direct<Faulty<Constant>>> {
    alone_with(config, device, files, |_| {})
}

/// Returns a simulation of one job that `prepare` changes before it starts.
#[track_caller]
fn alone_with(
    config: WorkerConfig,
    device: Rig,
    mut files: Vec<ModelFile>,
    prepare: impl FnOnce(&mut Worker),
) -> Simulation<Direct<Faulty<Constant>>> {
    if files.is_empty() {
        files.push(ModelFile::default());
    }
    let spec = EngineSpec {
        depth: config.depth,
        buffer_bytes: 1 << 16,
        synchronous: config.depth == 1,
        files: vec![0; config.pattern.files.len()],
    };
    let mut simulation = Simulation::new(vec![device.storage()], files);
    let engine = simulation.engine(&spec);
    let worker = Worker::new(config, engine.capabilities(), Tick::ZERO);
    let mut worker = worker.expect("a job that makes sense");
    prepare(&mut worker);
    simulation.add(worker, engine, Tick::ZERO);
    simulation
}

/// Runs a replay of the ops of `feed`.
#[track_caller]
pub(crate) fn replay(
    config: WorkerConfig,
    device: Rig,
    feed: Box<dyn ReplayFeed>,
) -> (Results, ModelEngine) {
    let simulation = alone_with(config, device, Vec::new(), |worker| {
        worker.replay_from(feed)
    });
    simulation.run().expect("a job that ends").jobs.remove(0)
}

/// Returns a file that begins with `bytes`.
pub(crate) fn file_of(bytes: &[u8]) -> ModelFile {
    ModelFile {
        content: Some(SparseBytes::of(bytes)),
        ..ModelFile::default()
    }
}

/// Returns the contents of a file at `offset`.
#[track_caller]
pub(crate) fn bytes_of(file: &ModelFile, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let content = file.content.as_ref().expect("a file with content");
    content.read(offset, &mut bytes);
    bytes
}

/// Returns whole milliseconds.
pub(crate) fn ms(span: Nanos) -> u64 {
    span.get() / 1_000_000
}
