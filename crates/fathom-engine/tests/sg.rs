//! `sg` under the conformance suite, on the SCSI disk whose node the variable `FATHOM_SG` names;
//! its data are lost. Trimmed blocks of the disk must read as zeros, as those of Linux's
//! scsi_debug do.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole file is a test, its helpers too"
)]

mod device_bench;

use std::fs;
use std::sync::Mutex;

use device_bench::{DeviceBench, trims_and_syncs_are_queued};
use fathom_conformance::{BLOCK, BLOCKS, Subject, conformance, content};
use fathom_core::{EngineError, EngineValues, Errno};
use fathom_engine::{AnyEngine, EngineConfig, EngineFile, built_in, start};
use fathom_sys::clock::Clock;
use fathom_sys::scsi::{NodeKind, ScsiNode};

/// The cases write the same blocks.
static DEVICE: Mutex<()> = Mutex::new(());

fn each(case: impl Fn(&mut DeviceBench)) {
    let Ok(path) = std::env::var("FATHOM_SG") else {
        println!("skipped: FATHOM_SG names no device");
        return;
    };
    let _one_at_a_time = DEVICE.lock();
    let node = ScsiNode::of(&fs::metadata(&path).unwrap()).unwrap();
    let block = node.block_name().unwrap();
    let depths: &[u32] = match node.kind {
        // The last takes several opened files.
        NodeKind::Generic => &[1, 16, 40],
        NodeKind::Block | NodeKind::Bsg => &[1],
    };
    for &depth in depths {
        let options = EngineValues::default();
        let mut bench = DeviceBench::new("sg", &path, &block, ("", depth), options);
        case(&mut bench);
        assert_eq!(bench.in_flight(), 0, "{}", bench.title());
    }
}

conformance!(each);

#[test]
fn trims_and_syncs_are_queued_among_other_ops() {
    each(trims_and_syncs_are_queued);
}

#[test]
fn trims_that_share_a_command_trim_their_blocks_alone() {
    each(|bench| {
        if bench.depth() < 8 {
            return;
        }
        let blocks = [3, 5, 12, 9, 1];
        for (slot, block) in (0..).zip(blocks) {
            bench.prepare(bench.trim(slot, block));
        }
        bench.prepare(bench.read(5, 6));
        bench.prepare(bench.trim(6, 14));
        bench.submit(0);
        bench.finish_all();
        bench.check(5, 6);
        for block in 0..BLOCKS {
            let is_trimmed = blocks.contains(&block) || block == 14;
            let want = match is_trimmed {
                true => vec![0; BLOCK as usize],
                false => content(block),
            };
            assert_eq!(bench.stored(block), want, "block {block}");
        }
    });
}

#[test]
fn a_failure_is_named() {
    each(|bench| {
        let mut op = bench.read(0, 0);
        op.offset = 1 << 40;
        assert_eq!(bench.run(op).result, Errno::EIO.result());
        let text = bench.engine.explain(Errno::EIO).unwrap();
        let want = "ILLEGAL REQUEST, LOGICAL BLOCK ADDRESS OUT OF RANGE";
        assert!(
            text.starts_with(want) && text.ends_with("(sense 5h/21h/00h)"),
            "{text}"
        );
        assert_eq!(bench.engine.explain(Errno::EINVAL), None);
        let mut op = bench.read(0, 0);
        op.length = 100;
        assert_eq!(bench.run(op).result, Errno::EINVAL.result());
        let text = bench.engine.explain(Errno::EINVAL).unwrap();
        assert!(text.contains("whole number"), "{text}");
    });
}

/// Returns an engine that reads a file.
fn started(path: &str, depth: u32) -> Result<AnyEngine, EngineError> {
    let file = EngineFile {
        path: path.into(),
        read: true,
        ..EngineFile::default()
    };
    start(EngineConfig {
        depth,
        files: vec![file],
        ..EngineConfig::new(built_in("sg"), Clock::monotonic())
    })
}

#[test]
fn other_files_are_refused() {
    for path in ["/dev/null", "/etc/passwd", "/dev/fathom-no-such-device"] {
        let error = started(path, 1).err().unwrap();
        assert!(error.hint.contains("/dev/sg0"), "{error:?}");
    }
}

#[test]
fn nodes_without_a_queue_take_one_op_at_a_time() {
    let Ok(path) = std::env::var("FATHOM_SG") else {
        println!("skipped: FATHOM_SG names no device");
        return;
    };
    let node = ScsiNode::of(&fs::metadata(&path).unwrap()).unwrap();
    for (depth, is_single) in [(1, true), (16, node.kind != NodeKind::Generic)] {
        let mut engine = started(&path, depth).unwrap();
        let is_synchronous = engine.as_dyn().capabilities().synchronous;
        assert_eq!(is_synchronous, is_single, "{path} at depth {depth}");
    }
}
