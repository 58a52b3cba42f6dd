//! Writing, reading back, and the mismatches found.

use crate::common::{Rig, bytes_of, device, file_of, job, run_on};
use fathom_core::{Direction, Nanos};
use fathom_sim::{DataFault, FaultKind, InjectedFault, ModelEngine, ModelFile};
use fathom_workload::{
    BufferFill, Checksum, FileRange, MapMode, Mix, Results, SizeChoice, Think, Tolerate,
    VerifyConfig, VerifyMethod, WorkerConfig,
};

/// Returns the verification method of a checksum.
fn by(checksum: &str) -> VerifyMethod {
    VerifyMethod::Checksum(Checksum::find(checksum).expect(checksum))
}

fn verifying(method: VerifyMethod, random: bool, depth: u32) -> WorkerConfig {
    let mut config = job();
    config.pattern.mix = Mix::Write;
    config.pattern.random = random;
    config.pattern.files = vec![FileRange {
        offset: 4096,
        length: 64 << 10,
        file: 4096 + (64 << 10),
    }];
    config.bytes_per_pass = 64 << 10;
    config.depth = depth;
    config.batching.low = depth;
    config.verify = Some(VerifyConfig {
        pattern: Some(vec![1, 2, 3]),
        ..VerifyConfig::new(method)
    });
    config
}

fn on_a_file(config: WorkerConfig) -> (Results, ModelEngine, Vec<ModelFile>) {
    run_on(config, device(), vec![file(0)])
}

fn file(byte: u8) -> ModelFile {
    file_of(&[byte; 68 << 10])
}

#[test]
fn every_write_is_read_back_and_verified() {
    for method in [by("crc32c"), by("md5"), VerifyMethod::Pattern] {
        for (random, depth) in [(false, 1), (true, 1), (true, 8)] {
            let (results, ..) = on_a_file(verifying(method, random, depth));
            assert_eq!(results.error, None);
            assert_eq!(results.directions.write.ios, 16);
            assert_eq!(
                results.directions.read.ios, 16,
                "{method:?} {random} {depth}"
            );
        }
    }
}

#[test]
fn each_pass_is_read_back() {
    let mut config = verifying(by("crc32c"), true, 4);
    config.loops = 3;
    let (results, ..) = on_a_file(config);
    assert_eq!(
        (results.directions.write.ios, results.directions.read.ios),
        (48, 48)
    );
    assert_eq!(results.error, None);
}

#[test]
fn sizes_that_vary_are_read_back_as_they_were_written() {
    let mut config = verifying(by("crc32c"), true, 4);
    config.pattern.sizes.write = SizeChoice::Range {
        min: 4096,
        max: 20_480,
    };
    let (results, ..) = on_a_file(config);
    assert_eq!(results.error, None);
    let written = &results.directions.write;
    assert_eq!(
        (written.ios, written.bytes),
        (results.directions.read.ios, results.directions.read.bytes)
    );
}

#[test]
fn without_a_map_the_newest_write_of_each_block_is_read_back() {
    let mut config = verifying(by("crc32c"), true, 1);
    config.pattern.map = MapMode::Off;
    config.bytes_per_pass = 100 * 4096;
    let (results, ..) = on_a_file(config);
    assert_eq!(results.error, None);
    assert_eq!(results.directions.write.ios, 100);
    // With 100 writes on 16 blocks, hardly one is left out.
    assert!((12..=16).contains(&results.directions.read.ios));
}

#[test]
fn a_time_based_job_never_reads_back() {
    let mut config = verifying(by("crc32c"), true, 1);
    config.time_based = true;
    config.runtime = Some(Nanos::from_millis(20));
    let (results, ..) = on_a_file(config);
    assert_eq!(
        (results.directions.write.ios, results.directions.read.ios),
        (200, 0)
    );
}

/// Writes by a job of two passes over two thirds of their blocks each, and verifies by another run
/// of it that writes nothing.
#[track_caller]
fn verify_only(mix: Mix, vary: impl FnOnce(&mut WorkerConfig)) -> (Results, Results) {
    let mut config = verifying(by("crc32c"), true, 4);
    config.pattern.mix = mix;
    config.loops = 2;
    config.tolerate.verify = true;
    vary(&mut config);
    let (written, _, files) = on_a_file(config.clone());
    assert_eq!(written.mismatches.total, 0);
    let intact = bytes_of(&files[0], 0, 68 << 10);
    config.is_dry_run = true;
    let (verified, _, files) = run_on(config, device(), files);
    assert_eq!(bytes_of(&files[0], 0, 68 << 10), intact);
    assert_eq!(verified.directions.write.ios, 0);
    (written, verified)
}

#[test]
fn what_was_written_is_verified_by_a_run_that_writes_nothing() {
    let (written, verified) = verify_only(Mix::Write, |_| {});
    assert_eq!(
        (written.directions.write.ios, verified.directions.read.ios),
        (32, 16)
    );
    assert_eq!(verified.mismatches.total, 0);
    // Of a mix, each pass writes other blocks.
    let mix = Mix::ReadWrite { read: 50 };
    let (written, verified) = verify_only(mix, |_| {});
    let blocks = verified.directions.read.ios;
    assert!(
        blocks < written.directions.write.ios && blocks > 8,
        "{blocks}"
    );
    assert_eq!(verified.mismatches.total, 0);
    // Of files that were created again, only the last pass is left.
    let (_, last) = verify_only(mix, |config| config.recreate_each_pass = true);
    assert!(last.directions.read.ios < blocks);
    // Ops of all passes count, and those of readback do not.
    let (written, verified) = verify_only(Mix::Write, |config| {
        config.limits.ops = Some(10);
        config.think = Some(Think {
            time: Nanos::from_micros(10),
            spin: Nanos::ZERO,
            blocks: 1,
            count_issues: false,
            io_time: Nanos::ZERO,
            moves_schedule: false,
        });
    });
    let read = [&written, &verified].map(|results| results.directions.read.ios);
    assert_eq!((written.directions.write.ios, read), (10, [10, 10]));
}

#[test]
fn the_reads_of_a_mix_are_not_checked() {
    let mut config = verifying(by("crc32c"), true, 1);
    config.pattern.mix = Mix::ReadWrite { read: 50 };
    let (results, ..) = on_a_file(config);
    assert_eq!(results.error, None);
    assert_eq!(results.directions.read.ios, 16);
}

/// Small reads of large writes: where a pattern begins in a block is known of those alone that are
/// read back.
#[test]
fn a_pattern_that_does_not_divide_the_interval_gives_no_false_alarm() {
    for method in [VerifyMethod::Pattern, VerifyMethod::PatternHeader] {
        for (offsets, interval) in [(vec![], Some(512)), (vec![3], Some(512)), (vec![3], None)] {
            for align in [512, 4096] {
                let mut config = verifying(method, true, 8);
                let pattern = &mut config.pattern;
                pattern.mix = Mix::ReadWrite { read: 50 };
                pattern.map = MapMode::Off;
                pattern.sizes.read = SizeChoice::Fixed(512);
                (pattern.align.read, pattern.align.write) = (512, align);
                config.bytes_per_pass = 256 << 10;
                config.loops = 2;
                let verify = config.verify.as_mut().expect("a job that verifies");
                verify.pattern = Some(b"abc12345678".to_vec());
                verify.interval = interval;
                verify.pattern_offsets.clone_from(&offsets);
                let (results, ..) = on_a_file(config);
                let what = format!("{method:?} {offsets:?} {interval:?} {align}");
                assert_eq!(results.error, None, "{what}");
                assert!(results.directions.read.ios > 128, "{what}");
            }
        }
    }
}

fn faulty(number: u64, kind: FaultKind) -> Rig {
    let fault = InjectedFault {
        number,
        direction: Direction::Write,
        kind,
    };
    Rig {
        faults: vec![fault],
        ..device()
    }
}

/// The second pass's write of one block is lost: the block holds the first pass's data, which are
/// valid by themselves.
#[test]
fn a_lost_write_over_an_older_one_is_found() {
    let mut config = verifying(by("crc32c"), false, 1);
    config.loops = 2;
    let (results, ..) = run_on(
        config,
        faulty(16 + 5, FaultKind::Data(DataFault::Lost)),
        vec![file(0)],
    );
    let error = results.error.expect("an error");
    assert_eq!(
        (error.errno.get(), error.activity.name(), error.offset),
        (84, "verify", 4096 + 5 * 4096)
    );
    let detail = error.detail.expect("the mismatch");
    // The ops before it: 16 writes, 16 reads, and 5 writes.
    assert!(
        detail.starts_with("verify: bad header numberio 5, wanted 37"),
        "{detail}"
    );
}

#[test]
fn the_rest_of_a_short_write_keeps_its_stamp() {
    let config = verifying(by("crc32c"), false, 1);
    let (results, ..) = run_on(config, faulty(3, FaultKind::Short(512)), vec![file(0)]);
    assert_eq!((results.error, results.directions.read.ios), (None, 16));
}

#[test]
fn a_failed_write_is_not_read_back() {
    let mut config = verifying(by("crc32c"), false, 1);
    config.tolerate = Tolerate {
        read: false,
        write: true,
        verify: false,
        ..Tolerate::default()
    };
    let (results, ..) = run_on(config, faulty(3, FaultKind::Error(5)), vec![file(0)]);
    assert_eq!((results.error, results.directions.read.ios), (None, 15));
}

#[test]
fn a_read_job_checks_what_it_reads() {
    let (_, _, files) = on_a_file(verifying(by("crc32c"), true, 1));
    let good = bytes_of(&files[0], 0, 68 << 10);
    let mut config = verifying(by("crc32c"), false, 4);
    config.pattern.mix = Mix::Read;
    let (results, ..) = run_on(config.clone(), device(), vec![file_of(&good)]);
    assert_eq!((results.error, results.directions.read.ios), (None, 16));

    let mut bad = good;
    bad[8192 + 1000] ^= 1;
    let (results, ..) = run_on(config.clone(), device(), vec![file_of(&bad)]);
    let error = results.error.expect("an error");
    assert_eq!(
        (error.errno.get(), error.activity.name(), error.offset),
        (84, "verify", 8192)
    );
    let detail = error.detail.expect("the mismatch");
    assert!(detail.starts_with("crc32c: verify failed"), "{detail}");

    config.tolerate.verify = true;
    let (results, ..) = run_on(config, device(), vec![file_of(&bad)]);
    assert_eq!((results.error, results.directions.read.ios), (None, 16));
    assert_eq!(results.tolerated.expect("one").total, 1);
}

#[test]
fn buffers_have_the_requested_contents() {
    let mut config = verifying(by("crc32c"), false, 1);
    config.verify = None;
    config.buffers.fill = BufferFill::Pattern(b"abc".to_vec());
    let (_, _, files) = on_a_file(config.clone());
    let written = bytes_of(&files[0], 4096, 4096);
    assert!(
        written
            .iter()
            .zip(b"abc".iter().cycle())
            .all(|(got, want)| got == want)
    );

    config.buffers.scramble = true;
    let (_, _, files) = on_a_file(config);
    assert_eq!(
        bytes_of(&files[0], 8192 + 512, 8),
        (8192u64 + 512).to_le_bytes()
    );
}
