//! Table of options of the job language: a job, and its expected result on a device that takes 100
//! µs for every op.

use std::ops::RangeInclusive;

use fathom_core::Nanos;
use fathom_record::{DirectionRecord, JobRecord};
use fathom_sim::Constant;
use fathom_virtual::simulate;

use crate::common::{plan, record};

/// Runs `--name=t --size=1m WORDS` and checks the results of the first job against the ranges.
#[track_caller]
fn check(words: &str, wants: &[(&str, RangeInclusive<u64>)]) {
    let words = format!("--name=t --size=1m {words}");
    check_all(
        &words,
        &wants
            .iter()
            .map(|(what, want)| (0, *what, want.clone()))
            .collect::<Vec<_>>(),
    );
}

/// Runs WORDS and checks the results of the jobs, by number, against the ranges.
#[track_caller]
fn check_all(words: &str, wants: &[(usize, &str, RangeInclusive<u64>)]) {
    let record = record(words);
    for (job, what, want) in wants {
        let got = figure(&record.jobs[*job], what);
        assert!(
            want.contains(&got),
            "{words}: job {job}: {what} is {got}, not in {want:?}"
        );
    }
}

fn figure(job: &JobRecord, what: &str) -> u64 {
    let (part, name) = what.split_once('.').unwrap_or(("job", what));
    match part {
        "read" => of_direction(&job.directions.read, name),
        "write" => of_direction(&job.directions.write, name),
        "trim" => of_direction(&job.directions.trim, name),
        _ => match name {
            "syncs" => job.sync.ios,
            "error" => u64::from(job.error),
            "tolerated" => job.tolerated.map_or(0, |tolerated| tolerated.total),
            "start_ms" => job.start_ms,
            "runtime_ms" => job.runtime_ms,
            "group" => u64::from(job.group_id),
            "depth" => (0..7)
                .rev()
                .find(|&bucket| job.depth_level[bucket] > 0)
                .map_or(0, |b| 1 << b),
            "submissions" => job.submissions,
            "reapings" => job.reapings,
            _ => panic!("no figure `{name}`"),
        },
    }
}

fn of_direction(direction: &DirectionRecord, name: &str) -> u64 {
    let latency = |latency: &Option<fathom_stats::Latency>| {
        latency
            .as_ref()
            .map_or(0, |latency| latency.summary.count())
    };
    match name {
        "ios" => direction.ios,
        "bytes" => direction.bytes,
        "ms" => direction.runtime_ms,
        "slats" => latency(&direction.slat),
        "clats" => latency(&direction.clat),
        "lats" => latency(&direction.lat),
        "resps" => latency(&direction.resp),
        "samples" => direction.bandwidth.count(),
        "clat_us" => direction
            .clat
            .as_ref()
            .map_or(0, |clat| clat.summary.max() / 1000),
        "slat_histogram" => u64::from(
            direction
                .slat
                .as_ref()
                .is_some_and(|l| l.histogram.is_some()),
        ),
        "lat_histogram" => u64::from(
            direction
                .lat
                .as_ref()
                .is_some_and(|l| l.histogram.is_some()),
        ),
        _ => panic!("no figure `{name}`"),
    }
}

/// Returns the range of one value.
const fn is(value: u64) -> RangeInclusive<u64> {
    value..=value
}

#[test]
fn rw() {
    check("--rw=read", &[("read.ios", is(256)), ("write.ios", is(0))]);
    check("--rw=write", &[("write.ios", is(256)), ("read.ios", is(0))]);
    check("--rw=trim", &[("trim.ios", is(256)), ("write.ios", is(0))]);
    check(
        "--rw=randread",
        &[("read.ios", is(256)), ("read.bytes", is(1 << 20))],
    );
    check("--rw=randwrite", &[("write.ios", is(256))]);
    check("--rw=randtrim", &[("trim.ios", is(256))]);
    check(
        "--rw=randwrite --sprandom=1 --spr_op=0.25",
        &[("write.ios", is(320))],
    );
    check(
        "--readwrite=trimwrite",
        &[("trim.ios", is(256)), ("write.ios", is(256))],
    );
    check("--rw=read:4k", &[("read.ios", is(256))]);
    check("--rw=randread:8 --norandommap", &[("read.ios", is(256))]);
}

#[test]
fn a_mix_moves_the_size_once() {
    let both = record("--name=t --size=1m --rw=randrw");
    assert_eq!(
        both.jobs[0].directions.read.ios + both.jobs[0].directions.write.ios,
        256
    );
}

#[test]
fn rwmix() {
    let long = "--rw=randrw --time_based --runtime=2";
    check(
        &format!("{long} --rwmixread=80"),
        &[("read.ios", 15_600..=16_400)],
    );
    check(
        &format!("{long} --rwmixwrite=80"),
        &[("write.ios", 15_600..=16_400)],
    );
    check(&format!("{long} --rwmixread=100"), &[("write.ios", is(0))]);
}

#[test]
fn block_sizes() {
    check(
        "--rw=read --bs=8k",
        &[("read.ios", is(128)), ("read.bytes", is(1 << 20))],
    );
    check("--rw=read --blocksize=1k", &[("read.ios", is(1024))]);
    check("--rw=write --bs=4k,16k", &[("write.ios", is(64))]);
    check("--rw=write --bs=,16k", &[("write.ios", is(64))]);
    check("--rw=trim --bs=,,64k", &[("trim.ios", is(16))]);
    check(
        "--rw=read --bsrange=4k-16k",
        &[("read.bytes", is(1 << 20)), ("read.ios", 64..=256)],
    );
    check(
        "--rw=read --bssplit=4k/50:8k/50 --size=64m",
        &[("read.ios", 10_400..=11_500)],
    );
    check(
        "--rw=randread --bs=4k --blockalign=8k --io_size=1m",
        &[("read.ios", is(256))],
    );
}

#[test]
fn sizes_by_order_and_unaligned() {
    check(
        "--rw=randwrite --bs=4k,8k --bs_is_seq_rand=1 --norandommap",
        &[("write.ios", is(128))],
    );
    check(
        "--rw=write --bs=4k,8k --bs_is_seq_rand=1",
        &[("write.ios", is(256))],
    );
    check(
        "--rw=read --bsrange=1000-3000 --blocksize_unaligned --size=10m",
        &[
            ("read.bytes", 10_484_760..=10_485_760),
            ("read.ios", 4000..=5500),
        ],
    );
}

#[test]
fn pauses_and_rates() {
    // One op every millisecond, and a pause of ten after every tenth: made up for, or not.
    let rated = "--rw=read --rate_iops=1000 --thinktime=10ms --thinktime_blocks=10";
    check(
        &format!("{rated} --time_based --runtime=10"),
        &[("read.ios", 9_000..=10_010)],
    );
    check(
        &format!("{rated} --time_based --runtime=10 --rate_ignore_thinktime=1"),
        &[("read.ios", 4_950..=5_300)],
    );
    // Within one in a thousand of what was asked for.
    for (pace, ios) in [
        ("--rate_iops=7777", 77_770),
        ("--rate=13m", 33_280),
        ("--rate_iops=9000 --bsrange=4k-16k", 90_000),
    ] {
        check(
            &format!("--rw=randread {pace} --time_based --runtime=10"),
            &[("read.ios", ios - ios / 1000..=ios + ios / 1000)],
        );
    }
    check(
        "--rw=randread --rate_iops=5000 --rate_process=poisson --time_based --runtime=100",
        &[("read.ios", 496_000..=504_000)],
    );
}

#[test]
fn what_overlaps_waits() {
    // Sixteen writes of one block at a time: one by one, or all at once.
    let same = "--rw=randwrite:16 --rw_sequencer=identical --norandommap --iodepth=16 \
                --ioengine=libaio";
    check(same, &[("depth", is(16)), ("write.ms", 1..=3)]);
    check(
        &format!("{same} --serialize_overlap=1"),
        &[("write.ms", 10..=30), ("write.ios", is(256))],
    );
    check(
        "--rw=randwrite --iodepth=16 --ioengine=libaio --serialize_overlap=1",
        &[("depth", is(16)), ("write.ms", 1..=3)],
    );
}

#[test]
fn files_and_zones() {
    let four = "--rw=read --nrfiles=4";
    for service in [
        "random",
        "random:8",
        "roundrobin:3",
        "sequential",
        "zipf:1.2",
        "gauss",
    ] {
        check(
            &format!("{four} --file_service_type={service}"),
            &[("read.ios", is(256)), ("read.bytes", is(1 << 20))],
        );
    }
    check(&format!("{four} --openfiles=2"), &[("read.ios", is(256))]);
    let zones = "--rw=read --zonemode=strided --zonesize=64k";
    check(
        &format!("{zones} --zonerange=128k --zoneskip=1z"),
        &[("read.ios", is(256))],
    );
    // The last zone ends with the file, 16 KiB before it is done.
    check(
        "--rw=read --size=112k --zonemode=strided --zonesize=32k --zonerange=48k",
        &[("read.ios", is(20))],
    );
    check(&format!("{zones} --size=4z"), &[("read.ios", is(64))]);
    check(&format!("{zones} --io_size=2z"), &[("read.ios", is(32))]);
    let shares = "--rw=randread --random_distribution";
    check(
        &format!("{shares}=zoned:60/10:30/20:10/"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{shares}=zoned_abs:60/64k:40/512k,50/64k:50/1m"),
        &[("read.ios", is(256))],
    );
}

#[test]
fn sizes() {
    check("--rw=read --size=10k", &[("read.ios", is(2))]);
    check("--rw=read --io_size=512k", &[("read.ios", is(128))]);
    check("--rw=read --io_size=2m", &[("read.ios", is(512))]);
    check("--rw=read --filesize=256k", &[("read.ios", is(64))]);
    check("--rw=read --offset=64k", &[("read.ios", is(256))]);
    check("--rw=read --nrfiles=4", &[("read.ios", is(256))]);
    check("--rw=read --size=(1m+64k)", &[("read.ios", is(272))]);
    check(
        "--rw=read --kb_base=1000 --size=1000k",
        &[("read.ios", is(244))],
    );
}

#[test]
fn offset_increment_moves_each_clone() {
    let words = "--name=t --size=1m --rw=read --numjobs=3 --offset_increment=1m";
    check_all(words, &[(0, "read.ios", is(256)), (2, "read.ios", is(256))]);
}

#[test]
fn clones_groups_and_waves() {
    let words =
        "--size=1m --rw=read --name=a --numjobs=2 --name=b --stonewall --name=c --new_group";
    check_all(
        words,
        &[
            (0, "group", is(0)),
            (1, "group", is(0)),
            (2, "group", is(1)),
            (3, "group", is(2)),
            (1, "start_ms", is(0)),
            (2, "start_ms", 25..=26),
            (3, "start_ms", 25..=26),
        ],
    );
    let wait = "--size=1m --rw=read --name=a --name=b --wait_for_previous";
    check_all(wait, &[(1, "start_ms", 25..=26)]);
}

#[test]
fn times() {
    check(
        "--rw=read --runtime=10ms",
        &[("read.ios", is(100)), ("read.ms", is(10))],
    );
    check("--rw=read --runtime=100ms", &[("read.ios", is(256))]);
    check(
        "--rw=read --runtime=100ms --time_based",
        &[("read.ios", is(1000))],
    );
    check(
        "--rw=read --time_based=0 --runtime=100ms",
        &[("read.ios", is(256))],
    );
    check(
        "--rw=read --time_based --runtime=1 --ramp_time=500ms",
        &[("read.ms", is(1000))],
    );
    check(
        "--rw=read --startdelay=2",
        &[("start_ms", is(2000)), ("read.ms", 25..=26)],
    );
    check("--rw=read --loops=3", &[("read.ios", is(768))]);
}

#[test]
fn the_queue() {
    let deep = "--rw=randread --ioengine=libaio --iodepth=16";
    check(
        deep,
        &[
            ("depth", is(16)),
            ("read.ms", is(2)),
            ("read.slats", is(256)),
        ],
    );
    check(
        "--rw=randread --ioengine=psync --iodepth=16",
        &[("depth", is(1)), ("read.slats", is(0))],
    );
    // Completions are taken one at a time by default, so there is one place to fill at a time.
    let one = [("submissions", is(242))];
    check(&format!("{deep} --iodepth_batch=8"), &one);
    let reap = "--iodepth_batch_complete_max=16";
    check(
        &format!("{deep} {reap} --iodepth_batch=8"),
        &[("submissions", is(32))],
    );
    check(
        &format!("{deep} {reap} --iodepth_batch_submit=16"),
        &[("submissions", is(16))],
    );
    check(
        &format!("{deep} --iodepth_batch=16 --iodepth_batch_complete_max=16"),
        &[("reapings", is(16))],
    );
    check(
        &format!("{deep} --iodepth_batch_complete_min=8 --iodepth_batch_complete_max=8"),
        &[("reapings", is(32))],
    );
    check(&format!("{deep} --iodepth_low=1"), &[("read.ios", is(256))]);
}

#[test]
fn randomness() {
    let base = "--rw=randread --bs=4k";
    check(&format!("{base} --norandommap"), &[("read.ios", is(256))]);
    check(
        &format!("{base} --softrandommap=1"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --random_generator=lfsr"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --random_generator=tausworthe64"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --random_distribution=zipf:1.1"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --random_distribution=pareto:0.2"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --random_distribution=normal:10"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --percentage_random=50"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --randseed=7 --randrepeat=0"),
        &[("read.ios", is(256))],
    );
    check(
        &format!("{base} --allrandrepeat=1"),
        &[("read.ios", is(256))],
    );
}

#[test]
fn rates() {
    let long = "--time_based --runtime=5";
    check(
        &format!("--rw=read {long} --rate_iops=1000"),
        &[("read.ios", is(5000)), ("read.resps", is(5000))],
    );
    check(
        &format!("--rw=read {long} --rate=1m"),
        &[("read.bytes", is(5 << 20))],
    );
    check(
        &format!("--rw=randrw {long} --rate_iops=900,100"),
        &[("read.ios", 4_495..=4_505), ("write.ios", 495..=505)],
    );
    check(
        &format!("--rw=read {long} --rate_min=100m"),
        &[("error", is(5)), ("read.ms", is(3000))],
    );
    check(
        &format!("--rw=read {long} --rate_min=1m"),
        &[("error", is(0))],
    );
    check(&format!("--rw=read {long}"), &[("read.resps", is(0))]);
}

#[test]
fn thinktime() {
    check("--rw=read --thinktime=1ms", &[("read.ms", 280..=282)]);
    check("--rw=read --thinktime=1000", &[("read.ms", 280..=282)]);
    check(
        "--rw=read --thinktime=1ms --thinktime_blocks=4",
        &[("read.ms", 88..=90)],
    );
    check(
        "--rw=read --thinktime=1ms --thinktime_blocks=4 --thinktime_spin=1ms",
        &[("read.ms", 88..=90)],
    );
    check(
        "--rw=read --thinktime=1ms --thinktime_blocks=4 --thinktime_blocks_type=issue",
        &[("read.ms", 88..=90)],
    );
    check(
        "--rw=read --thinktime=5ms --thinktime_blocks=100000 --thinktime_iotime=10ms",
        &[("read.ms", 35..=36)],
    );
}

#[test]
fn syncs() {
    check("--rw=write --io_size=64k --fsync=4", &[("syncs", is(3))]);
    check(
        "--rw=write --io_size=64k --fdatasync=8",
        &[("syncs", is(1))],
    );
    check(
        "--rw=write --io_size=64k --end_fsync=1",
        &[("syncs", is(0)), ("write.ios", is(16))],
    );
    check(
        "--rw=write --io_size=64k --fsync_on_close=1",
        &[("syncs", is(0))],
    );
}

#[test]
fn what_is_measured() {
    let deep = "--rw=randread --ioengine=libaio --iodepth=4";
    check(
        deep,
        &[
            ("read.slats", is(256)),
            ("read.clats", is(256)),
            ("read.lats", is(256)),
        ],
    );
    check(
        &format!("{deep} --disable_slat=1"),
        &[("read.slats", is(0)), ("read.clats", is(256))],
    );
    check(
        &format!("{deep} --disable_clat=1"),
        &[("read.clats", is(0)), ("read.lats", is(256))],
    );
    check(
        &format!("{deep} --disable_lat=1"),
        &[("read.lats", is(0)), ("read.clats", is(256))],
    );
    check(
        &format!("{deep} --gtod_reduce=1 --time_based --runtime=2"),
        &[
            ("read.slats", is(0)),
            ("read.clats", is(0)),
            ("read.lats", is(0)),
            ("read.samples", is(4)),
        ],
    );
    check(
        &format!("{deep} --lat_percentiles=1"),
        &[("read.lat_histogram", is(1))],
    );
    check(
        &format!("{deep} --slat_percentiles=1"),
        &[("read.slat_histogram", is(1))],
    );
    check(
        &format!("{deep} --time_based --runtime=3"),
        &[("read.samples", 5..=6)],
    );
}

#[test]
fn percentiles_are_those_asked_for() {
    let record = record("--name=t --size=1m --rw=read --percentile_list=50:99:99.999");
    assert_eq!(record.jobs[0].display.percentiles, [50.0, 99.0, 99.999]);
    assert_eq!(record.jobs[0].display.percentile_precision, 3);
}

#[test]
fn verify_reads_back_what_was_written() {
    let checksums = fathom_workload::CHECKSUMS.iter().map(|row| row.name);
    for method in checksums.chain(["pattern --verify_pattern=0xdeadbeef"]) {
        let words = format!("--rw=randwrite --verify={method}");
        check(
            &words,
            &[
                ("write.ios", is(256)),
                ("read.ios", is(256)),
                ("error", is(0)),
            ],
        );
        check(&format!("{words} --do_verify=0"), &[("read.ios", is(0))]);
    }
    // What was never written fails: the model's files hold zeros.
    check("--rw=read --verify=crc32c", &[("error", is(84))]);
    check(
        "--rw=read --verify=crc32c --continue_on_error=verify",
        &[("error", is(0)), ("tolerated", is(256))],
    );
}

#[test]
fn group_reporting_is_marked() {
    let record = record("--group_reporting --size=1m --rw=read --name=a --numjobs=2");
    assert!(record.jobs.iter().all(|job| job.group_reporting));
}

#[test]
fn the_same_words_give_the_same_bytes() {
    let words = "--name=t --size=16m --rw=randrw --ioengine=libaio --iodepth=8 --rate_iops=5000";
    let print = || {
        record(words)
            .to_json()
            .expect("a record that can be written")
    };
    assert_eq!(print(), print());
}

#[test]
fn ops_of_gigabytes_move_all_their_bytes() {
    let words = |rw: &str, bs: &str| {
        format!("--name=t --filename=/dev/d --direct=1 --rw={rw} --bs={bs} --size=12g")
    };
    for bs in ["2g", "3g"] {
        let size = 12 << 30;
        check_all(&words("read", bs), &[(0, "read.bytes", size..=size)]);
        check_all(&words("write", bs), &[(0, "write.bytes", size..=size)]);
        check_all(&words("trim", bs), &[(0, "trim.bytes", size..=size)]);
    }
}

#[test]
fn an_offset_beyond_the_end_is_the_only_problem_of_its_job() {
    let device = Constant::new(Nanos::from_micros(100));
    let words = "--name=t --rw=read --size=1m --offset=2m --filesize=1m";
    let refused = simulate(&plan(words), &device).expect_err("nothing to read");
    assert_eq!(refused.problems.len(), 1, "{refused}");
    assert!(refused.to_string().contains("beyond the end"), "{refused}");
}
