//! No engine allocates while ops run.
#![expect(clippy::unwrap_used, reason = "the whole file is a test")]

use fathom_core::{Completion, Direction, FileIndex, Op, OpKind, Slot, Storage};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, Registry, built_in, start};
use fathom_sys::allocation_counter::{CountingAllocator, thread_allocations};
use fathom_sys::clock::Clock;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const DEPTH: u32 = 8;
const BLOCK: u32 = 4096;

#[test]
fn ops_run_without_the_heap() {
    let name = format!("engine-allocations-{}", std::process::id());
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let infos = Registry::built_in();
    let infos = infos.infos().iter();
    // Directories are the same code with another system call.
    let on_files = infos.filter(|info| {
        // Those on devices and on storage elsewhere have none here.
        let has_files = !matches!(info.storage, Storage::Device | Storage::Remote);
        info.performs_io() && has_files && info.name_work().is_none_or(|names| !names.directories)
    });
    for info in on_files {
        // Each time: an engine may remove it.
        std::fs::write(&path, [0; 64 * BLOCK as usize]).unwrap();
        let name = info.name;
        let config = EngineConfig {
            depth: DEPTH,
            buffer_bytes: BLOCK,
            files: vec![EngineFile {
                path: path.to_str().unwrap().into(),
                read: true,
                write: true,
                create: false,
                recreate: false,
                trims_reset_zones: false,
                bytes: 64 * u64::from(BLOCK),
                random: true,
            }],
            ..EngineConfig::new(built_in(name), Clock::monotonic())
        };
        match start(config) {
            // Starting a worker allocates, at a time of the pool's choice.
            Ok(AnyEngine::Offload(_)) => {}
            Ok(mut engine) => run(name, &mut engine),
            Err(error) => println!("skipped: {name}: {error}"),
        }
    }
    let _removed = std::fs::remove_file(&path);
}

/// Runs 10,000 reads and writes at full depth, reaping in parts.
fn run(name: &str, engine: &mut AnyEngine) {
    let engine = engine.as_dyn();
    engine.open(FileIndex::new(0)).unwrap();
    let mut out = [Completion::default(); 3];
    let mut free: Vec<u32> = (0..DEPTH).collect();
    let before = thread_allocations();
    for sequence in 0..10_000_u64 {
        let slot = free.pop().unwrap();
        let direction = [Direction::Read, Direction::Write][usize::from(sequence % 5 == 0)];
        engine.prepare(&Op {
            slot: Slot::new(slot),
            kind: OpKind::Data(direction),
            priority: 0,
            file: FileIndex::new(0),
            length: BLOCK,
            buffer_offset: 0,
            offset: sequence * 13 % 64 * u64::from(BLOCK),
            sequence,
        });
        engine.submit(u32::from(free.is_empty()));
        if free.is_empty() {
            let count = engine.reap(&mut out);
            free.extend(out[..count].iter().map(|completion| completion.slot.get()));
        }
    }
    assert_eq!(thread_allocations() - before, 0, "{name}");
}
