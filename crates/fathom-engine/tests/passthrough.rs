//! `io_uring_cmd` under the conformance suite, on the namespace whose character device the variable
//! `FATHOM_NVME` names; its data are lost. `FATHOM_NVME_OPTIONS` adds options of the engine, such
//! as `pi_act=0,md_per_io_size=64`.
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
use fathom_core::{EngineValues, Errno, FileIndex, OptionValue, TrimRange};
use fathom_engine::options::{
    FIXEDBUFS, FORCE_ASYNC, HIPRI, NONVECTORED, REGISTERFILES, SQTHREAD_POLL,
};
use fathom_engine::{EngineConfig, built_in, start};
use fathom_sys::nvme;

/// The cases write the same blocks.
static DEVICE: Mutex<()> = Mutex::new(());

/// Starts the engine on the namespace.
fn bench(variant: &str, depth: u32, values: &EngineValues) -> DeviceBench {
    let path = std::env::var("FATHOM_NVME").unwrap();
    let block = nvme::block_device_of(&fs::metadata(&path).unwrap()).unwrap();
    let options = with_variable(values.clone());
    DeviceBench::new("io_uring_cmd", &path, &block, (variant, depth), options)
}

/// Adds the options of the variable.
fn with_variable(mut values: EngineValues) -> EngineValues {
    let text = std::env::var("FATHOM_NVME_OPTIONS").unwrap_or_default();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=').unwrap();
        let info = built_in("io_uring_cmd").info;
        let option = info.option(name).unwrap();
        let value = value.parse().map_or_else(
            |_text| OptionValue::Text(value.replace('+', ",")),
            OptionValue::Number,
        );
        values.set(option.name, value);
    }
    values
}

fn each(case: impl Fn(&mut DeviceBench)) {
    if std::env::var_os("FATHOM_NVME").is_none() {
        println!("skipped: FATHOM_NVME names no device");
        return;
    }
    let _one_at_a_time = DEVICE.lock();
    let values = EngineValues::default;
    let mut variants = vec![
        ("plain", values()),
        ("fixedbufs", values().with(&FIXEDBUFS, 1)),
        ("registerfiles", values().with(&REGISTERFILES, 1)),
        ("vectored", values().with(&NONVECTORED, 0)),
        ("force_async", values().with(&FORCE_ASYNC, 3)),
        (
            "registered",
            values().with(&FIXEDBUFS, 1).with(&REGISTERFILES, 1),
        ),
        (
            "sqthread_poll",
            values().with(&SQTHREAD_POLL, 1).with(&REGISTERFILES, 1),
        ),
    ];
    if std::env::var_os("FATHOM_NVME_POLLED").is_some() {
        variants.push(("hipri", values().with(&HIPRI, 1)));
    }
    for (variant, values) in variants {
        let depths: &[u32] = if variant == "plain" { &[1, 16] } else { &[16] };
        for &depth in depths {
            let mut bench = bench(variant, depth, &values);
            case(&mut bench);
            assert_eq!(bench.in_flight(), 0, "{variant}");
        }
    }
}

conformance!(each);

#[test]
fn trims_and_syncs_are_queued_among_other_ops() {
    each(trims_and_syncs_are_queued);
}

#[test]
fn a_status_is_named() {
    each(|bench| {
        let mut op = bench.read(0, 0);
        op.offset = 1 << 50;
        let result = bench.run(op).result;
        assert_eq!(result, Errno::EREMOTEIO.result());
        let text = bench.engine.explain(Errno::EREMOTEIO).unwrap();
        assert_eq!(text, "LBA out of range (status 0h/80h)");
        assert_eq!(bench.engine.explain(Errno::EIO), None);
        let mut op = bench.read(0, 0);
        op.length = 100;
        assert_eq!(bench.run(op).result, Errno::EINVAL.result());
        let text = bench.engine.explain(Errno::EINVAL).unwrap();
        assert!(text.contains("whole number"), "{text}");
    });
}

#[test]
fn a_trim_of_several_ranges_discards_each() {
    each(|bench| {
        let path = std::env::var("FATHOM_NVME").unwrap();
        let options = with_variable(EngineValues::default());
        let config = EngineConfig {
            trim_ranges: 4,
            clock: bench.clock,
            ..device_bench::config("io_uring_cmd", &path, bench.depth(), options)
        };
        bench.engine = start(config).unwrap().boxed();
        bench.engine.open(FileIndex::new(0)).unwrap();
        let ranges = [9, 3, 12].map(|block| TrimRange {
            offset: block * u64::from(BLOCK),
            length: BLOCK,
        });
        let mut trim = bench.trim(0, 9);
        trim.length = 3 * BLOCK;
        bench.engine.set_ranges(trim.slot, &ranges);
        assert_eq!(bench.run(trim).result, 3 * BLOCK.cast_signed());
        for block in 0..BLOCKS {
            let stored = bench.stored(block);
            match [3, 9, 12].contains(&block) {
                true => assert!(stored.iter().all(|&byte| byte == 0), "{block}"),
                false => assert_eq!(stored, content(block), "{block}"),
            }
        }
    });
}
