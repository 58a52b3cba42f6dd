//! Order of offsets and syncs, as seen in logs and records.

use fathom_core::Nanos;
use fathom_sim::Constant;
use fathom_virtual::simulate_logged;

use crate::common::{plan, record};

/// Runs a job of 12 reads of 4 KiB and returns their block numbers in order.
fn blocks(words: &str) -> Vec<u64> {
    let log = "--write_iops_log=x --log_offset=1 --per_job_logs=0";
    let words = format!("--name=t --rw=randread --size=48k {log} {words}");
    let ran = simulate_logged(&plan(&words), &Constant::new(Nanos::from_micros(100)));
    let (_, logs) = ran.expect("a run");
    let text = String::from_utf8(logs[0].1.clone()).expect("text");
    let offset = |line: &str| {
        line.split(',')
            .nth(4)
            .and_then(|o| o.trim().parse::<u64>().ok())
    };
    let offsets: Option<Vec<u64>> = text.lines().map(offset).collect();
    offsets
        .expect("offsets")
        .iter()
        .map(|offset| offset / 4096)
        .collect()
}

#[test]
fn blocks_come_in_the_order_that_is_given() {
    let sequence = "--random_distribution=sequence:2,0,1 --io_size=24k";
    assert_eq!(blocks(sequence), [2, 0, 1, 2, 0, 1]);
    assert_eq!(
        blocks(&format!("{sequence} --random_sequence_stride=1")),
        [2, 0, 1, 5, 3, 4]
    );
    // Round the end.
    assert_eq!(
        blocks("--random_distribution=sequence:11,13 --io_size=16k"),
        [11, 1, 11, 1]
    );
    // The last word counts.
    let plain = "--random_distribution=sequence:2 --random_distribution=random";
    let mut all = blocks(plain);
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
}

/// As in fio 3.33, each direction has its own position, and a pass ends when one of them reaches
/// the end, not after as many bytes as the range has.
#[test]
fn passes_of_a_sequential_mix_go_through_the_whole_range() {
    let check = |words: &str, ops: std::ops::RangeInclusive<usize>| {
        let offsets = blocks(&format!("--rw=rw --rwmixread=75 {words}"));
        assert!(ops.contains(&offsets.len()), "{words}: {offsets:?}");
        assert!(offsets.contains(&11), "{words}: {offsets:?}");
    };
    check("--loops=2", 24..=24);
    check("--loops=3 --io_size=60k", 45..=45);
    // Two passes of up to 23 ops are not enough for `io_size`, four are.
    check("--loops=2 --io_size=188k", 48..=80);
    check("--loops=2 --number_ios=10", 20..=20);
    check("--time_based --runtime=10ms", 99..=101);
    check("--time_based --runtime=10ms --iodepth=4", 99..=104);
}

#[test]
fn blocks_that_repeat_take_io_size_in_every_loop() {
    let count = |words: &str| blocks(words).len();
    assert_eq!(count("--norandommap --loops=2 --io_size=144k"), 72);
    assert_eq!(
        count("--random_distribution=zipf:1.2 --loops=2 --io_size=144k"),
        72
    );
    assert_eq!(count("--rw=read:4k --loops=2 --io_size=144k"), 72);
    assert_eq!(count("--loops=2 --io_size=144k"), 36);
}

/// Checks the numbers of writes and counted syncs.
#[track_caller]
fn check(words: &str, writes: u64, syncs: u64) {
    let record = record(&format!("--name=t --rw=write --size=64k {words}"));
    let job = &record.jobs[0];
    assert_eq!(
        (job.directions.write.ios, job.sync.ios),
        (writes, syncs),
        "{words}"
    );
}

/// As observed of fio 3.33.
#[test]
fn a_part_of_the_file_is_synced_after_so_many_writes_but_the_last() {
    check("--sync_file_range=write:4", 16, 3);
    check("--sync_file_range=wait_before,write,wait_after:5", 16, 3);
    check("--sync_file_range=write", 16, 15);
    check("--sync_file_range=write:0", 16, 0);
    check("--sync_file_range=write:17", 16, 0);
    // One at a time, the widest first.
    check("--sync_file_range=write:4 --fsync=2", 16, 7);
    check("--sync_file_range=write:2 --fdatasync=4", 16, 7);
    check("--sync_file_range=write:4 --rw=read", 0, 0);
}

#[test]
fn syncs_at_the_end_and_barriers_are_not_counted() {
    check("--end_syncfs=1", 16, 0);
    check("--end_syncfs=1 --end_fsync=1 --nrfiles=4", 16, 0);
    check("--write_barrier=4", 16, 0);
}

#[test]
fn syncs_at_the_end_are_not_counted_in_the_depths() {
    let check = |words: &str, want: u64| {
        let words = format!("--name=t --rw=write --size=64k --bs=4k {words}");
        for engine in ["psync", "libaio"] {
            let record = record(&format!("{words} --ioengine={engine}"));
            assert_eq!(
                record.jobs[0].depth_level,
                [want, 0, 0, 0, 0, 0, 0],
                "{words} {engine}"
            );
        }
    };
    check("--end_fsync=1", 16);
    check("--end_fsync=1 --fsync_on_close=1 --nrfiles=4", 16);
    check("--end_syncfs=1 --loops=2", 32);
    check("--fsync=1 --end_fsync=1", 31);
}

#[test]
fn a_pattern_may_hold_the_blocks_offset() {
    for pattern in ["%o", "0xff%o\"ab\"", "\"a\"%o%o"] {
        let record = record(&format!(
            "--name=t --rw=randwrite --size=64k --bs=4k --verify=pattern --verify_pattern={pattern}"
        ));
        let job = &record.jobs[0];
        assert_eq!((job.error, job.directions.read.ios), (0, 16), "{pattern}");
    }
}

/// The queue drains to `iodepth_low` during the read-back, too, and may become empty.
#[test]
fn a_queue_that_was_read_back_to_its_end_is_filled_again() {
    let words = "--name=t --rw=randwrite --size=64k --bs=4k --ioengine=libaio --verify=crc32c";
    let record = record(&format!("{words} --iodepth=7 --iodepth_low=3 --loops=2"));
    let job = &record.jobs[0];
    let ios = (job.directions.write.ios, job.directions.read.ios);
    assert_eq!((job.error, ios), (0, (32, 32)));
}

/// `zonemode=zbd` requires a zoned device.
#[test]
fn zones_of_a_device_are_refused_where_there_is_none() {
    let zoned = plan("--name=t --size=1m --zonemode=zbd --zonesize=64k --filename=x");
    let device = Constant::new(Nanos::from_micros(100));
    let refused = fathom_virtual::simulate(&zoned, &device).expect_err("no zones");
    let said = refused.to_string();
    assert!(
        said.contains("zoned block device") && said.contains('x'),
        "{said}"
    );
}
