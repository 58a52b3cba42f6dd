//! Cost of an op in each engine by itself, without a workload: nanoseconds per op.
//!
//! ```sh
//! cargo run --release -p fathom-engine --example cost -- [FILE [DIRECT [ENGINE[:OPTION]...]]]
//! ```
//!
//! FILE is 64 MiB, made if it is missing; without one, a temporary file is used and removed.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a tool for engine developers"
)]

use fathom_core::{Completion, Direction, Engine, EngineValues, FileIndex, Op, OpKind, Slot};
use fathom_engine::options::{FIXEDBUFS, NONVECTORED, REGISTERFILES, SQTHREAD_POLL};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, Registry, built_in, start};
use fathom_sys::clock::Clock;

const BYTES: u64 = 64 << 20;
const BLOCK: u32 = 4096;
const DEPTH: u32 = 32;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kept = arguments.next();
    let direct = arguments.next().is_some_and(|word| word == "1");
    let mut chosen: Vec<String> = arguments.collect();
    if chosen.is_empty() {
        let registry = Registry::built_in();
        let names = registry.infos().iter().map(|info| info.name.to_owned());
        chosen = names.collect();
    }
    let path = kept.clone().unwrap_or_else(|| {
        let name = format!("fathom-cost-{}", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    });
    if std::fs::metadata(&path).map_or(0, |file| file.len()) < BYTES {
        std::fs::write(&path, vec![1_u8; usize::try_from(BYTES).unwrap()]).unwrap();
    }
    let clock = Clock::calibrated();
    for choice in &chosen {
        let (name, option) = choice.split_once(':').unwrap_or((choice, ""));
        let config = EngineConfig {
            depth: DEPTH,
            buffer_bytes: BLOCK,
            files: vec![EngineFile {
                path: path.clone(),
                read: true,
                write: false,
                create: false,
                recreate: false,
                trims_reset_zones: false,
                bytes: 0,
                random: true,
            }],
            direct,
            options: EngineValues::default()
                .with(&FIXEDBUFS, option.contains("fixed").into())
                .with(&REGISTERFILES, option.contains("fixed").into())
                .with(&SQTHREAD_POLL, option.contains("thread").into())
                .with(&NONVECTORED, (!option.contains("vectored")).into()),
            ..EngineConfig::new(built_in(name), clock)
        };
        let rounds = if name == "null" { 50_000_000 } else { 400_000 };
        for batch in [1, 16] {
            let cost = match start(config.clone()).unwrap() {
                AnyEngine::Null(engine) => measure(engine, batch, rounds, clock),
                AnyEngine::Sync(engine) => measure(engine, batch, rounds, clock),
                AnyEngine::Libaio(engine) => measure(engine, batch, rounds, clock),
                AnyEngine::Uring(engine) => measure(engine, batch, rounds, clock),
                AnyEngine::Passthrough(engine) => measure(engine, batch, rounds, clock),
                AnyEngine::Offload(engine) => measure(*engine, batch, rounds, clock),
                AnyEngine::Boxed(engine) => measure(engine, batch, rounds, clock),
            };
            println!("{choice:>20}  batch {batch:>2}  {cost:>10.1} ns/op");
        }
    }
    if kept.is_none() {
        std::fs::remove_file(&path).unwrap();
    }
}

/// Random reads with a full queue, `batch` ops handed over at once.
fn measure<E: Engine>(mut engine: E, batch: u32, ops: u64, clock: Clock) -> f64 {
    engine.open(FileIndex::new(0)).unwrap();
    let mut out = [Completion::default(); DEPTH as usize];
    let mut free: Vec<Slot> = (0..DEPTH).map(Slot::new).collect();
    let mut random = 1_u64;
    let (mut issued, mut done) = (0, 0);
    let begin = clock.now();
    while done < ops {
        let mut laid_down = 0;
        while laid_down < batch && issued < ops {
            let Some(slot) = free.pop() else { break };
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            engine.prepare(&Op {
                slot,
                kind: OpKind::Data(Direction::Read),
                priority: 0,
                file: FileIndex::new(0),
                length: BLOCK,
                buffer_offset: 0,
                offset: (random >> 33) % (BYTES / u64::from(BLOCK)) * u64::from(BLOCK),
                sequence: issued,
            });
            issued += 1;
            laid_down += 1;
        }
        let full = free.is_empty() || issued == ops;
        engine.submit(u32::from(full));
        let count = engine.reap(&mut out);
        for completion in &out[..count] {
            assert!(completion.result == BLOCK.cast_signed(), "{completion:?}");
            free.push(completion.slot);
        }
        done += count as u64;
    }
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let cost = (clock.now() - begin).get() as f64 / ops as f64;
    cost
}
