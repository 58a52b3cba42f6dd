//! `io_submit_mode=offload` makes no heap allocation for an op on any thread: alone in its file,
//! because the whole process is counted.

use fathom_core::{Completion, Direction, FileIndex, Op, OpKind, Slot};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, Kick, built_in, start};
use fathom_sys::allocation_counter::{CountingAllocator, allocations};
use fathom_sys::clock::Clock;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const DEPTH: u32 = 8;
const BLOCK: u32 = 4096;
const BLOCKS: u64 = 256;
/// Ops before counting, so that workers have started and opened their files.
const WARM_UP: u64 = 20_000;
const OPS: u64 = 100_000;
/// A busy machine starts more workers: some allocations for each thread and its engine, and at most
/// one thread per slot. One allocation per op would be 100,000.
const THREAD_ALLOCATIONS_MAX: u64 = DEPTH as u64 * 100;

#[test]
fn no_thread_allocates_for_ops() {
    let name = format!("fathom-alloc-workers-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let bytes = vec![7; usize::try_from(BLOCKS).expect("small") * BLOCK as usize];
    std::fs::write(&path, bytes).expect("a temporary file");
    for name in ["null", "psync", "pvsync2", "mmap", "libaio", "io_uring"] {
        for kick in [Kick::Batch, Kick::Each, Kick::Delayed, Kick::Reap] {
            let config = EngineConfig {
                depth: DEPTH,
                buffer_bytes: BLOCK,
                files: vec![EngineFile {
                    path: path.to_str().expect("a plain path").into(),
                    read: true,
                    write: true,
                    ..EngineFile::default()
                }],
                offload: Some(kick),
                ..EngineConfig::new(built_in(name), Clock::calibrated())
            };
            match start(config) {
                Ok(engine) => check(&format!("{name}, {kick:?}"), engine, kick),
                Err(error) => skipped(&format!("{name}: {error}")),
            }
        }
    }
    std::fs::remove_file(&path).expect("the temporary file");
}

/// Counts the allocations of the whole process while ops run, after the warm-up.
#[track_caller]
fn check(name: &str, mut engine: AnyEngine, kick: Kick) {
    // What wakes for each op is slow, and no different later.
    let ops = if kick == Kick::Batch { OPS } else { OPS / 10 };
    let engine = engine.as_dyn();
    engine.open(FileIndex::new(0)).expect("the file is there");
    let mut free: Vec<Slot> = (0..DEPTH).map(Slot::new).collect();
    run(engine, &mut free, WARM_UP);
    let before = allocations();
    run(engine, &mut free, ops);
    let made = allocations() - before;
    assert!(
        made <= THREAD_ALLOCATIONS_MAX,
        "{name}: {made} for {ops} ops"
    );
}

/// Runs reads and writes, submitted four at a time.
fn run(engine: &mut dyn fathom_core::Engine, free: &mut Vec<Slot>, ops: u64) {
    let mut out = [Completion::default(); DEPTH as usize];
    let (mut issued, mut done) = (0, 0);
    while done < ops {
        while issued < ops
            && let Some(slot) = free.pop()
        {
            let direction = [Direction::Read, Direction::Write][usize::from(issued % 5 == 0)];
            engine.prepare(&Op {
                slot,
                kind: OpKind::Data(direction),
                priority: 0,
                file: FileIndex::new(0),
                length: BLOCK,
                buffer_offset: 0,
                offset: issued * 13 % BLOCKS * u64::from(BLOCK),
                sequence: issued,
            });
            issued += 1;
            if issued % 4 == 0 {
                engine.submit(0);
            }
        }
        engine.submit(0);
        engine.wait(1, None).expect("completions");
        let count = engine.reap(&mut out);
        free.extend(out[..count].iter().map(|completion| completion.slot));
        done += count as u64;
    }
}

/// Prints why an engine was not tried.
#[expect(clippy::print_stdout, reason = "a test that did not run says so")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}
