//! Command lines and the setups they translate to.

use fathom_core::Nanos;
use fathom_workload::{BufferFill, Checksum, MapMode, Mix, Pace, Sequencer, VerifyMethod};

use super::*;
use crate::fixture::FakeFiles;
use crate::plan_warning::PlanWarningKind;
use crate::testing::plan;

fn come_to(words: &str, files: &[(&'static str, TargetKind)]) -> Translation {
    translate(&plan(words), &FakeFiles::of(files), &mut || 42)
}

/// Returns the only clone of the only job, of 1 MiB by default.
fn one(words: &str) -> JobSetup {
    let mut translation = come_to(&format!("--name=t --size=1m {words}"), &[]);
    assert!(
        translation.problems.is_empty(),
        "{words}: {:?}",
        translation.problems
    );
    assert_eq!(translation.setups.len(), 1, "{words}");
    translation.setups.remove(0)
}

fn problem(words: &str) -> &'static str {
    let translation = come_to(words, &[]);
    assert_eq!(
        translation.problems.len(),
        1,
        "{words}: {:?}",
        translation.problems
    );
    translation.problems[0].kind.code()
}

/// The ops that are left out are those that the job does without `verify_only`.
#[test]
fn a_job_that_only_verifies_draws_the_same_and_changes_nothing() {
    for words in [
        "--rw=write --io_size=5m",
        "--rw=randwrite --bs=4k,8k --number_ios=20",
        "--rw=rw --loops=3",
        "--rw=randrw --bs=4k,16k --io_size=3m --loops=2",
        "--rw=randrw --bsrange=4k-16k,8k-8k --number_ios=20",
        "--rw=randtrimwrite --blockalign=512 --number_ios=20",
        "--rw=randrw:3 --percentage_random=50 --nrfiles=3",
        "--rw=randwrite --norandommap --io_size=3m --loops=2",
    ] {
        let words = format!("{words} --verify=md5");
        let (does, only) = (one(&words), one(&format!("{words} --verify_only")));
        let ops = |setup: &JobSetup| {
            let worker = &setup.worker;
            let ends = (worker.bytes_per_pass, worker.loops, worker.bytes_in_all);
            (
                format!("{:?}", worker.pattern),
                ends,
                worker.limits.ops,
                setup.buffer_bytes,
            )
        };
        assert_eq!(ops(&does), ops(&only), "{words}");
        assert!(
            only.worker.is_dry_run && only.worker.generations.is_empty(),
            "{words}"
        );
        let options = &only.job.options;
        assert!(
            !pattern::writes(options) && !only.files[0].may_write(options),
            "{words}"
        );
    }
    let worker = one("--rw=randrw --verify=md5 --verify_only --time_based --runtime=1").worker;
    assert!(!worker.time_based && worker.runtime.is_some());
    let worker = one("--rw=randwrite --verify=md5 --verify_only --flow=3").worker;
    assert!(worker.limits.flow.is_none());
}

#[test]
fn the_defaults() {
    let setup = one("");
    let worker = &setup.worker;
    assert_eq!(worker.pattern.mix, Mix::Read);
    assert!(!worker.pattern.random);
    assert_eq!(
        (worker.depth, worker.loops, worker.bytes_per_pass),
        (1, 1, 1 << 20)
    );
    assert_eq!(worker.runtime, None);
    assert!(worker.measure.slat && worker.measure.clat && worker.measure.lat);
    assert!(worker.measure.clat_histogram && !worker.measure.lat_histogram);
    assert_eq!(worker.measure.bandwidth_sample, Nanos::from_millis(500));
    assert_eq!(worker.measure.iops_sample, Nanos::from_millis(500));
    assert_eq!(worker.buffers.fill, BufferFill::Random);
    assert!(worker.buffers.scramble && !worker.buffers.refill && worker.invalidate);
    assert_eq!(setup.files.len(), 1);
    assert_eq!(setup.files[0].path, "t.0.0");
    assert_eq!((setup.files[0].bytes, setup.buffer_bytes), (1 << 20, 4096));
}

#[test]
fn files_without_room_for_an_op_are_told() {
    let codes = |files: &[(&'static str, TargetKind)]| {
        let words = "--name=t --rw=read --bs=8k --filename=a:b";
        let translation = come_to(words, files);
        assert!(translation.problems.is_empty());
        let told = translation.warnings.iter();
        told.map(|warning| warning.kind.code()).collect::<Vec<_>>()
    };
    let regular = |bytes| TargetKind::Regular(bytes);
    let (large, small) = (("a", regular(64 << 10)), ("b", regular(4096)));
    assert_eq!(codes(&[large, small]), ["files_too_small"]);
    assert_eq!(codes(&[large, ("b", regular(8192))]), [""; 0]);
    // None has room: the checks refuse the job.
    assert_eq!(codes(&[("a", regular(100)), small]), [""; 0]);
}

#[test]
fn zones_past_the_end_of_a_file_are_told() {
    let codes = |zones: &str| {
        let words = format!("--name=t --size=8m --rw=randread --random_distribution={zones}");
        let told = come_to(&words, &[]).warnings;
        let codes = told.iter().map(|warning| warning.kind.code());
        codes.collect::<Vec<_>>()
    };
    assert_eq!(codes("zoned_abs:50/4m:50/4m"), [""; 0]);
    assert_eq!(codes("zoned:60/10:40/90"), [""; 0]);
    assert_eq!(codes("zoned_abs:100/1g"), ["shares_beyond_file"]);
    assert_eq!(
        codes("zoned_abs:100/8m,50/8m:50/1k"),
        ["shares_beyond_file"]
    );
}

#[test]
fn an_op_on_a_name_is_a_file_whatever_its_length() {
    for sizes in ["--filesize=1k", "--filesize=64k", "--size=1k", "--size=1m"] {
        for (engine, bytes) in [("filestat", 20 * 4096), ("filecreate", 20 * 4096)] {
            let words = format!("--name=t --nrfiles=20 {sizes} --ioengine={engine}");
            let mut translation = come_to(&words, &[]);
            assert!(translation.problems.is_empty(), "{words}");
            let setup = translation.setups.remove(0);
            assert_eq!(setup.worker.bytes_per_pass, bytes, "{words}");
            assert!(setup.files.iter().all(|file| file.length == 4096));
        }
    }
}

#[test]
fn files_that_exist_are_not_created() {
    let exists = [("t.0.1", TargetKind::Regular(0))];
    for (engine, warned) in [("filecreate", true), ("filestat", false)] {
        let words = format!("--name=t --nrfiles=2 --filesize=4k --ioengine={engine}");
        let warnings = come_to(&words, &exists).warnings;
        let told = warnings
            .iter()
            .any(|w| w.kind == PlanWarningKind::FilesExist);
        assert_eq!(told, warned, "{engine}");
    }
}

#[test]
fn batching_follows_the_depth() {
    let cases = [
        // (options, submit, complete_min, complete_max, low)
        ("", (1, 1, 1, 32)),
        ("--iodepth_batch=0", (32, 1, 1, 32)),
        ("--iodepth_batch=64", (32, 1, 1, 32)),
        ("--iodepth_batch_complete_min=0", (1, 0, 1, 32)),
        ("--iodepth_batch_complete_min=8", (1, 8, 8, 32)),
        (
            "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=16",
            (1, 4, 16, 32),
        ),
        ("--iodepth_low=8", (1, 1, 1, 8)),
        // Completing a whole batch lets the engine gather the next.
        ("--ioengine=vsync --iodepth_batch=8", (8, 1, 32, 32)),
        ("--ioengine=sg --iodepth_batch=8", (1, 1, 1, 32)),
        (
            "--ioengine=sg --rw=randtrimwrite --iodepth_batch=8",
            (1, 1, 1, 32),
        ),
        ("--ioengine=sg --rw=trim --iodepth_batch=8", (8, 1, 8, 32)),
        (
            "--ioengine=sg --rw=trim --iodepth_batch=8 --iodepth_batch_complete_max=1",
            (8, 1, 8, 32),
        ),
        (
            "--ioengine=sg --rw=trim --iodepth_batch=8 --iodepth_batch_complete_min=12",
            (8, 12, 12, 32),
        ),
    ];
    for (options, expected) in cases {
        let batching = one(&format!("--ioengine=null --iodepth=32 {options}"))
            .worker
            .batching;
        let found = (
            batching.submit,
            batching.complete_min,
            batching.complete_max,
            batching.low,
        );
        assert_eq!(found, expected, "{options}");
    }
}

#[test]
fn a_synchronous_engine_has_a_depth_of_one() {
    let depth = |words: &str| one(words).worker.depth;
    assert_eq!(depth("--ioengine=psync --iodepth=8"), 1);
    assert_eq!(depth("--ioengine=null --iodepth=8"), 8);
    assert_eq!(depth("--ioengine=vsync --iodepth=8"), 8);
    assert_eq!(depth("--ioengine=libaio --iodepth=8"), 8);
}

#[test]
fn clones_have_names_numbers_and_seeds_of_their_own() {
    let translation = come_to("--name=x --size=1m --rw=randread --numjobs=4", &[]);
    let setups = &translation.setups;
    let paths: Vec<_> = setups
        .iter()
        .map(|setup| setup.files[0].path.as_str())
        .collect();
    assert_eq!(paths, ["x.0.0", "x.3.0", "x.2.0", "x.1.0"]);
    let numbers: Vec<_> = setups.iter().map(|setup| setup.place.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let mut seeds: Vec<_> = setups
        .iter()
        .map(|setup| setup.worker.pattern.seed)
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 4);
}

#[test]
fn a_device_of_the_jobs_name_is_its_file() {
    let disk = TargetKind::Block {
        bytes: 1 << 30,
        logical_block: 512,
    };
    let there = [
        ("/dev/a", disk),
        ("/dev/p", TargetKind::Stream),
        ("d", TargetKind::Directory),
    ];
    let path = |words: &str| {
        let mut setups = come_to(words, &there).setups;
        let setup = setups.pop().expect(words);
        setup.files[0].path.clone()
    };
    assert_eq!(path("--name=/dev/a"), "/dev/a");
    assert_eq!(path("--name=/dev/a --size=1m --numjobs=2"), "/dev/a");
    assert_eq!(path("--name=/dev/p --size=1m"), "/dev/p");
    assert_eq!(path("--name=/dev/a --size=1m --nrfiles=2"), "/dev/a.0.0");
    assert_eq!(path("--name=/dev/a --size=1m --filename=b"), "b");
    assert_eq!(
        path("--name=/dev/a --size=1m --ioengine=null"),
        "/dev/a.0.0"
    );
    assert_eq!(path("--name=d --size=1m"), "d.0.0");
}

#[test]
fn groups_and_waves() {
    let words = "--size=1m --name=a --numjobs=2 --name=b --new_group --name=c --stonewall \
                 --numjobs=2 --name=d";
    let places: Vec<_> = come_to(words, &[])
        .setups
        .iter()
        .map(|setup| setup.place)
        .collect();
    let found: Vec<_> = places
        .iter()
        .map(|place| (place.group, place.wave))
        .collect();
    assert_eq!(found, [(0, 0), (0, 0), (1, 0), (2, 1), (2, 1), (2, 1)]);
    // The first job has no predecessor to wait for.
    let first = come_to("--name=a --stonewall --size=1m", &[]).setups[0].place;
    assert_eq!((first.group, first.wave), (0, 0));
}

#[test]
fn seeds_repeat_unless_told_otherwise() {
    let seed = |words: &str| one(words).worker.pattern.seed;
    assert_eq!(seed(""), seed("--randseed=0x89"));
    assert_ne!(seed(""), seed("--randrepeat=0"));
    assert_ne!(seed(""), seed("--randseed=1"));
    assert_eq!(seed("--randseed=1"), seed("--randseed=1 --randrepeat=0"));
    // Ranks differ, unless they are told not to; a shifted section has the seed of the other.
    let rank = |rank: &str, words: &str| seed(&format!("--rank={rank} {words}"));
    assert_eq!(rank("0/3", ""), seed(""));
    assert_ne!(rank("1/3", ""), seed(""));
    assert_eq!(rank("1/3", "--allrandrepeat=1"), seed(""));
    assert_eq!(rank("1/3", "--rank_shift=1"), rank("2/3", ""));
    assert_eq!(rank("1/3", "--rank_shift=-1"), seed(""));
}

#[test]
fn a_job_without_a_size_takes_what_is_there_or_will_be() {
    let there = [("data", TargetKind::Regular(64 << 10))];
    let setup = &come_to("--name=t --filename=data", &there).setups[0];
    assert_eq!(setup.worker.bytes_per_pass, 64 << 10);
    assert_eq!(problem("--name=t --filename=data"), "no_size");
    let words = "--name=w --rw=write --size=1m --filename=data --name=r --stonewall \
                 --rw=read --filename=data";
    let plan = plan(words);
    // `size` is not inherited from one job to the next.
    assert!(plan.jobs[1].options.size.is_none());
    let made = translate(&plan, &FakeFiles::default(), &mut || 0);
    assert_eq!(made.setups[1].worker.bytes_per_pass, 1 << 20);
}

#[test]
fn patterns() {
    let mix = |words: &str| one(words).worker.pattern.mix;
    assert_eq!(
        mix("--rw=randrw --rwmixread=70"),
        Mix::ReadWrite { read: 70 }
    );
    assert_eq!(
        mix("--rw=randrw --rwmixwrite=70"),
        Mix::ReadWrite { read: 30 }
    );
    assert_eq!(mix("--rw=trimwrite"), Mix::TrimWrite);
    let sequencer = |words: &str| one(words).worker.pattern.sequencer;
    assert_eq!(sequencer("--rw=read:8k"), Sequencer::Skip(8192));
    assert_eq!(sequencer("--rw=randread:8"), Sequencer::Every(8));
    assert_eq!(
        sequencer("--rw=randread:8 --rw_sequencer=identical"),
        Sequencer::Repeat(8)
    );
    let zero = one("--rw=randread:0").worker.pattern;
    assert_eq!((zero.random, zero.sequencer), (false, Sequencer::None));
    let map = |words: &str| one(&format!("--rw=randread {words}")).worker.pattern.map;
    assert_eq!(map(""), MapMode::On);
    assert_eq!(map("--softrandommap=1"), MapMode::Soft);
    assert_eq!(map("--norandommap"), MapMode::Off);
    assert_eq!(map("--random_distribution=zipf:1.2"), MapMode::Off);
    assert_eq!(map("--blockalign=512"), MapMode::Off);
    assert_eq!(one("--bs=8k").worker.pattern.align.read, 8192);
    assert_eq!(one("--bs=4k,64k --rw=randrw").buffer_bytes, 64 << 10);
    assert_eq!(one("--bs=4k,64k --rw=randread").buffer_bytes, 4 << 10);
}

#[test]
fn paces() {
    let pace = |words: &str| {
        one(words)
            .worker
            .rate
            .map(|rate| rate.map(|rate| rate.pace))
    };
    assert_eq!(pace("--rate=1m,,2m").read, Some(Pace::Bytes(1 << 20)));
    assert_eq!(pace("--rate=1m,,2m").trim, Some(Pace::Bytes(2 << 20)));
    assert_eq!(pace("--rate_iops=,500").write, Some(Pace::Ops(500)));
    assert_eq!(pace("--rate_iops=0").read, None);
    let mut options = Options::default();
    options.rate.read = Some(1);
    options.rate_iops.read = Some(1);
    assert_eq!(pace::rates(&options).unwrap_err().kind.code(), "two_rates");
    let think = one("--thinktime=10 --thinktime_spin=20 --thinktime_blocks=0")
        .worker
        .think;
    let think = think.unwrap();
    assert_eq!(
        (think.time, think.spin),
        (Nanos::from_micros(10), Nanos::from_micros(10))
    );
    assert_eq!(think.blocks, 1);
    let blocks = |words: &str| {
        let words = format!("--thinktime=10 --thinktime_iotime=1 {words}");
        one(&words).worker.think.map(|think| think.blocks)
    };
    assert_eq!(blocks(""), Some(u32::MAX));
    assert_eq!(blocks("--thinktime_blocks=5"), Some(5));
    assert!(one("").worker.think.is_none());
}

#[test]
fn times() {
    let worker = one("--runtime=10 --time_based --ramp_time=2 --startdelay=3").worker;
    assert_eq!(worker.runtime, Some(Nanos::from_secs(10)));
    assert!(worker.time_based);
    assert_eq!(
        (worker.ramp, worker.start_delay),
        (Nanos::from_secs(2), Nanos::from_secs(3))
    );
    let ranged = one("--startdelay=3-5").worker.start_delay;
    assert!((Nanos::from_secs(3)..=Nanos::from_secs(5)).contains(&ranged));
    assert!(!one("--time_based").worker.time_based);
}

#[test]
fn what_is_not_measured() {
    let reduced = one("--gtod_reduce=1").worker.measure;
    assert!(!(reduced.slat || reduced.clat || reduced.lat));
    assert!(!reduced.clat_histogram);
    let measure = one("--disable_clat=1 --lat_percentiles=1").worker.measure;
    assert!(!measure.clat && !measure.clat_histogram && measure.lat_histogram);
}

#[test]
fn content() {
    let buffers = |words: &str| one(words).worker.buffers;
    assert_eq!(buffers("--zero_buffers").fill, BufferFill::Zero);
    assert!(!buffers("--zero_buffers").scramble);
    let pattern = buffers("--buffer_pattern=0xab --rw=write");
    assert_eq!(pattern.fill, BufferFill::Pattern(vec![0xab]));
    assert!(!pattern.refill && !pattern.scramble);
    assert!(buffers("--buffer_pattern=0xab --rw=randrw").refill);
    assert!(buffers("--refill_buffers").refill);
    let repeats = |words: &str| {
        let buffers = buffers(words);
        !buffers.refill && !buffers.scramble
    };
    assert!(repeats("--buffer_compress_percentage=0"));
    assert!(repeats(
        "--buffer_compress_percentage=0 --scramble_buffers=1"
    ));
    assert!(repeats(
        "--refill_buffers=0 --buffer_compress_percentage=50"
    ));
    assert!(repeats("--dedupe_percentage=0 --refill_buffers=0"));
    assert!(buffers("--buffer_compress_percentage=0 --refill_buffers").refill);
    assert!(buffers("--buffer_compress_percentage=50").refill);
    assert!(buffers("--refill_buffers=0 --dedupe_percentage=0").refill);
    assert!(buffers("--buffer_compress_chunk=1k").scramble);
    let zeros = buffers("--zero_buffers --buffer_compress_percentage=50");
    assert_eq!(zeros.fill, BufferFill::Random);
    assert!(buffers("--rw=write --verify=crc32c").refill);
    let verify = one("--rw=write --verify=md5 --do_verify=0")
        .worker
        .verify
        .unwrap();
    assert_eq!(
        (verify.method, verify.read_back),
        (
            VerifyMethod::Checksum(Checksum::find("md5").unwrap()),
            false
        )
    );
    let ranges = "--name=t --size=1m --rw=randwrite --verify=md5 --bsrange=96-128";
    assert_eq!(problem(ranges), "verify_blocks_too_small");
    let options = Options {
        verify: fathom_job::Verify::Pattern,
        ..Options::default()
    };
    assert_eq!(
        content::verify(&options, 1).unwrap_err().kind.code(),
        "no_verify_pattern"
    );
}

#[test]
fn syncs() {
    let every = |words: &str| {
        let sync = one(words).worker.sync;
        (sync.full_every, sync.data_every)
    };
    assert_eq!(every(""), (0, 0));
    assert_eq!(every("--fsync=4"), (4, 0));
    assert_eq!(every("--fdatasync=8 --fsync=3"), (3, 8));
    assert!(one("--end_fsync=1").worker.sync.at_end);
}

#[test]
fn a_number_of_ops_ends_the_job() {
    let worker = |words: &str| one(&format!("--bs=4k {words}")).worker;
    assert_eq!(worker("--number_ios=3").bytes_per_pass, 3 * 4096);
    assert_eq!(worker("--number_ios=1000").bytes_per_pass, 1 << 20);
    assert!(worker("--number_ios=3 --time_based --runtime=9").time_based);
    let ops = |words: &str| worker(words).limits.ops;
    assert_eq!(ops("--number_ios=3"), None);
    assert_eq!(ops("--number_ios=3 --time_based --runtime=9"), None);
    assert_eq!(ops("--number_ios=3 --bsrange=4k-8k"), Some(3));
    assert_eq!(ops("--number_ios=3 --loops=4"), Some(12));
    // More than the range holds takes another pass, with ops of its own.
    assert_eq!(ops("--number_ios=3 --io_size=3m"), Some(3));
    // Reads and trims between the writes count, too.
    let verified = "--number_ios=3 --rw=write --verify=md5";
    assert_eq!(ops(verified), None);
    assert_eq!(ops(&format!("{verified} --verify_backlog=2")), Some(3));
    assert_eq!(ops(&format!("{verified} --trim_percentage=9")), Some(3));
}

#[test]
fn samples_follow_the_windows_of_their_log() {
    let check = |words: &str, bandwidth: u64, iops: u64| {
        let plan = plan(&format!("--name=t --size=1m {words}"));
        let measure = content::measure(&plan.jobs[0].options);
        let want = [bandwidth, iops].map(Nanos::from_millis);
        assert_eq!(
            [measure.bandwidth_sample, measure.iops_sample],
            want,
            "{words}"
        );
    };
    check("--log_avg_msec=200", 500, 500);
    check("--log_avg_msec=200 --write_bw_log=l", 200, 500);
    check("--log_avg_msec=1000 --write_iops_log=l", 500, 1000);
    check("--write_iops_log=l", 500, 500);
    check("--bwavgtime=250", 250, 500);
    check(
        "--iopsavgtime=250 --write_iops_log=l --log_avg_msec=100",
        500,
        250,
    );
}

#[test]
fn preconditioning_writes_the_physical_capacity() {
    let base = "--sprandom=1 --rw=randwrite --size=40m --spr_num_regions=10";
    let bytes = |words: &str| one(&format!("{base} {words}")).worker.bytes_per_pass;
    assert_eq!(bytes("--spr_op=0.25"), 50 << 20);
    assert_eq!(bytes("--spr_op=1"), 80 << 20);
    assert_eq!(bytes("--spr_op=1 --io_size=8m"), 8 << 20);
    assert_eq!(bytes("--spr_op=0.25 --spr_cs=2m"), 50 << 20);
    for excluded in ["--spr_cs=6m", "--nrfiles=2"] {
        let words = format!("--name=t {base} {excluded}");
        assert_eq!(problem(&words), "contradiction");
    }
}
