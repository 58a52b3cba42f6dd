//! Workers whose ops fail, and a file that is closed under them.

use fathom_core::{Completion, Direction, Errno, FileIndex, Op, OpKind, Slot};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, Kick, built_in, start};
use fathom_sys::clock::Clock;

const BLOCK: u32 = 4096;

/// Creates an offloaded engine with these files open.
fn engine(name: &str, paths: &[&str]) -> AnyEngine {
    let file = |path: &&str| EngineFile {
        path: (*path).into(),
        read: true,
        ..EngineFile::default()
    };
    let config = EngineConfig {
        depth: 8,
        buffer_bytes: BLOCK,
        files: paths.iter().map(file).collect(),
        offload: Some(Kick::Batch),
        ..EngineConfig::new(built_in(name), Clock::monotonic())
    };
    let mut engine = start(config).unwrap();
    for file in 0..paths.len() {
        let file = FileIndex::new(u32::try_from(file).unwrap());
        engine.as_dyn().open(file).unwrap();
    }
    engine
}

fn read(slot: u32, file: u32, offset: u64) -> Op {
    Op {
        slot: Slot::new(slot),
        kind: OpKind::Data(Direction::Read),
        priority: 0,
        file: FileIndex::new(file),
        length: BLOCK,
        buffer_offset: 0,
        offset,
        sequence: slot.into(),
    }
}

/// Returns the results by slot once `count` ops have completed.
fn results(engine: &mut AnyEngine, count: usize) -> Vec<(u32, i32)> {
    let engine = engine.as_dyn();
    let mut results = Vec::new();
    let mut out = [Completion::default(); 3];
    while results.len() < count {
        engine.wait(1, None).unwrap();
        let reaped = engine.reap(&mut out);
        let own = out[..reaped].iter();
        results.extend(own.map(|one| (one.slot.get(), one.result)));
    }
    results.sort_unstable();
    results
}

/// Address 0 of a process's memory is unmapped, so reading it gives EIO.
#[test]
fn an_error_of_a_worker_is_its_ops_and_nobody_elses() {
    for name in ["psync", "sync", "vsync", "pvsync", "pvsync2"] {
        let mut engine = engine(name, &["/proc/self/mem", "/dev/zero"]);
        for slot in 0..8 {
            engine.as_dyn().prepare(&read(slot, slot % 2, 0));
        }
        engine.as_dyn().submit(0);
        let block = BLOCK.cast_signed();
        let want: Vec<_> = (0..8)
            .map(|slot| (slot, [Errno::EIO.result(), block][slot as usize % 2]))
            .collect();
        assert_eq!(results(&mut engine, 8), want, "{name}");
    }
}

#[test]
fn ops_complete_though_their_file_is_closed_under_them() {
    for name in ["psync", "libaio", "io_uring"] {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("offload-closed-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![7; 8 * BLOCK as usize]).unwrap();
        let mut engine = engine(name, &[path.to_str().unwrap()]);
        for slot in 0..4 {
            let op = read(slot, 0, u64::from(slot * BLOCK));
            engine.as_dyn().prepare(&op);
        }
        engine.as_dyn().submit(0);
        engine.as_dyn().close(FileIndex::new(0)).unwrap();
        let whole: Vec<_> = (0..4).map(|slot| (slot, BLOCK.cast_signed())).collect();
        assert_eq!(results(&mut engine, 4), whole, "{name}");
        // Ops after that fail, as there is no file.
        engine.as_dyn().prepare(&read(0, 0, 0));
        engine.as_dyn().submit(0);
        assert_eq!(
            results(&mut engine, 1),
            [(0, Errno::EBADF.result())],
            "{name}"
        );
        std::fs::remove_file(&path).unwrap();
    }
}
