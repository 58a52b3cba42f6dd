//! Order of starts and ends of jobs, and the end of a job by itself, on devices that take 100 µs
//! for every op.

use fathom_record::{JobRecord, Record};

use crate::common::{on, record};

/// Returns the start of a job's measured ops, ms.
fn start(record: &Record, job: usize) -> u64 {
    record.jobs[job].start_ms
}

fn reads(job: &JobRecord) -> u64 {
    job.directions.read.ios
}

#[track_caller]
fn check_starts(words: &str, want: &[u64]) {
    let words = format!("--rw=read --size=4000k --time_based --runtime=1 {words}");
    let record = record(&words);
    let starts: Vec<_> = (0..record.jobs.len())
        .map(|job| start(&record, job))
        .collect();
    assert_eq!(starts, want, "{words}");
}

#[test]
fn jobs_start_after_those_that_they_wait_for() {
    check_starts("--name=a --name=b", &[0, 0]);
    check_starts("--name=a --name=b --wait_for=a", &[0, 1000]);
    check_starts(
        "--name=a --numjobs=2 --runtime=2 --name=b --runtime=1 --wait_for=a --name=c --name=d \
         --wait_for=b",
        &[0, 0, 2000, 0, 3000],
    );
    check_starts(
        "--name=a --name=b --stonewall --runtime=2 --name=c --wait_for=a --name=d --stonewall",
        &[0, 1000, 1000, 3000],
    );
}

#[test]
fn a_delay_counts_from_the_start_of_the_run() {
    check_starts("--name=a --startdelay=3", &[3000]);
    check_starts(
        "--name=a --name=b --stonewall --startdelay=500ms --name=c --stonewall --startdelay=5s",
        &[0, 1000, 5000],
    );
}

/// Runs jobs of 1 s, 3 s and 3 s, the last in a separate group, and one after a stonewall; returns
/// the reads of each, in thousands.
#[track_caller]
fn check_ends(words: &str, want: [u64; 4]) {
    let words = format!(
        "--rw=read --size=4000k --time_based --runtime=3 {words} --name=a --runtime=1 --name=b \
         --name=c --new_group --name=d --stonewall"
    );
    let record = record(&words);
    let got: Vec<_> = record.jobs.iter().map(|job| reads(job) / 1000).collect();
    assert_eq!(got, want, "{words}");
}

#[test]
fn jobs_end_with_those_that_say_so() {
    check_ends("", [10, 30, 30, 30]);
    check_ends("--exitall", [10, 10, 30, 30]);
    check_ends("--exitall --exit_what=stonewall", [10, 10, 10, 30]);
    check_ends("--exitall --exit_what=all", [10, 10, 10, 0]);
    check_ends("--exitall_on_error --exit_what=all", [10, 30, 30, 30]);
}

#[test]
fn an_error_ends_the_others_where_the_job_says_so() {
    let slow = "--rate_iops=100 --rate_iops_min=99 --thinktime=1s";
    let words = |slow_has: &str, other_has: &str| {
        format!(
            "--rw=read --size=4000k --time_based --runtime=9 --name=slow {slow} {slow_has} \
             --name=b {other_has}"
        )
    };
    let check = |words: String, want: u64| {
        let record = record(&words);
        assert_eq!(record.jobs[0].error, 5, "{words}");
        let ms = record.jobs[1].runtime_ms;
        // The rate is looked at after two seconds, and between two ops a second apart.
        assert!((want..=want + 1_100).contains(&ms), "{words}: {ms} ms");
    };
    check(words("", ""), 9_000);
    check(words("--exitall_on_error", ""), 2_000);
    check(words("", "--exitall_on_error"), 9_000);
}

/// Returns the reads of each job.
fn all_reads(record: &Record) -> Vec<u64> {
    record.jobs.iter().map(reads).collect()
}

/// As in fio 3.33, each pass moves `size`, and there are as many passes as `io_size` requires.
#[test]
fn io_size_over_several_passes() {
    let check = |words: &str, want: u64| {
        let record = record(&format!("--name=t --rw=read --size=64k {words}"));
        assert_eq!(reads(&record.jobs[0]), want, "{words}");
    };
    check("--io_size=96k", 24);
    check("--io_size=48k --loops=3", 36);
    check("--io_size=64k --loops=3", 48);
    check("--io_size=96k --loops=2", 32);
    check("--io_size=128k --loops=2", 32);
    check("--io_size=144k --loops=2", 48);
    check("--io_size=96k --loops=4", 64);
    check("--io_size=96k --loops=4 --time_based --runtime=1", 10_000);
}

#[test]
fn number_ios_ends_a_job_after_so_many_ops() {
    let check = |words: &str, want: u64| {
        let record = record(&format!("--name=t --rw=read --size=16k {words}"));
        assert_eq!(reads(&record.jobs[0]), want, "{words}");
    };
    check("--number_ios=3", 3);
    check("--number_ios=9", 4);
    check("--number_ios=3 --loops=2", 6);
    check("--number_ios=9 --loops=2", 8);
    check("--number_ios=3 --bssplit=2k/50:4k/50", 3);
    check("--number_ios=3 --io_size=1m", 3);
    // As in fio, time goes before.
    check("--number_ios=3 --time_based --runtime=1", 10_000);
}

#[test]
fn number_ios_of_a_mix_counts_both_directions() {
    let mix = record("--name=t --rw=randrw --bs=4k,8k --size=1m --number_ios=50");
    let directions = &mix.jobs[0].directions;
    assert_eq!(directions.read.ios + directions.write.ios, 50);
}

#[test]
fn jobs_of_a_flow_take_turns_by_weight() {
    let flow = "--rw=read --size=4m --time_based --runtime=2 --name=a --flow=8 --name=b --flow=1";
    let ops = all_reads(&record(flow));
    assert!(ops[0].abs_diff(ops[1] * 8) < 100, "{ops:?}");
    assert!((19_900..=20_000).contains(&ops[0]), "{ops:?}");
    let other = format!("{flow} --flow_id=7");
    assert_eq!(all_reads(&record(&other)), [20_000, 20_000]);
    let three = format!("{flow} --name=c --flow=9 --flow_sleep=1000");
    let ops = all_reads(&record(&three));
    assert!(ops[2].abs_diff(ops[0] + ops[1]) < 100, "{ops:?}");
}

#[test]
fn jobs_of_a_flow_that_start_together_take_turns_from_the_first_op() {
    // The first of them is called first, and issues until something holds it back.
    let flow = "--rw=read --ioengine=libaio --iodepth=64 --size=4m --time_based --runtime=150us \
                --name=a --flow=1 --name=b --flow=7";
    let ops = all_reads(&record(flow));
    assert!(ops[0] > 0 && ops[1].abs_diff(ops[0] * 7) < 16, "{ops:?}");
}

#[test]
fn a_delayed_job_holds_its_flow_up_only_from_its_start_on() {
    let flow = "--rw=read --size=4m --time_based --runtime=2 --name=a --flow=1 --name=b --flow=1 \
                --startdelay=1";
    let ops = all_reads(&record(flow));
    assert!(ops[0] >= 15_000, "{ops:?}");
}

#[test]
fn who_is_alone_in_a_flow_waits_for_nobody() {
    let ends = "--rw=read --size=4m --name=a --flow=1 --io_size=4000k --name=b --flow=3 \
                --time_based --runtime=2";
    let ops = all_reads(&record(ends));
    assert_eq!(ops[0], 1_000);
    assert!((19_900..=20_000).contains(&ops[1]), "{ops:?}");
}

#[test]
fn an_op_that_takes_too_long_ends_the_job() {
    let check = |words: &str, error: u32, ops: u64| {
        let record = record(&format!("--name=t --rw=read --size=64k {words}"));
        let job = &record.jobs[0];
        assert_eq!((job.error, reads(job)), (error, ops), "{words}");
    };
    check("--max_latency=100", 0, 16);
    check("--max_latency=99", 110, 1);
    check("--max_latency=0", 0, 16);
    check("--max_latency=1s,1", 0, 16);
    check("--max_latency=,1", 0, 16);
    check("--max_latency=50,,1", 110, 1);
}

#[test]
fn a_latency_target_finds_a_depth() {
    let check = |words: &str, depth: u32, error: u32, ms: u64| {
        let record = record(&format!(
            "--name=t --ioengine=libaio --rw=randread --size=4m --time_based --runtime=20 \
             --iodepth=16 --latency_window=500ms {words}"
        ));
        let job = &record.jobs[0];
        let found = job.latency_target.expect("a search");
        assert_eq!((found.depth, job.error), (depth, error), "{words}");
        assert!(
            job.runtime_ms.abs_diff(ms) <= 1,
            "{words}: {} ms",
            job.runtime_ms
        );
    };
    check("--latency_target=100", 16, 0, 500);
    check("--latency_target=1ms --latency_run=1", 16, 0, 20_000);
    check("--latency_target=99", 1, 110, 0);
    check(
        "--latency_target=99 --latency_percentile=99.9",
        1,
        0,
        20_000,
    );
    check("--latency_target=99 --latency_percentile=0", 16, 0, 500);
}

/// Behind one server an op takes 100 µs for each op in flight. An op that was issued at a greater
/// depth completes during the next window, and says nothing about it.
#[test]
fn a_latency_target_judges_each_depth_by_its_own_ops() {
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                   [device.constant]\nlatency_us = 100\n\
                   [device.queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 1\n\
                   nr_requests = 1024\n\
                   mq-deadline = { read_expire_ms = 0, fifo_batch = 1 }\n";
    let check = |words: &str, want: u32| {
        let words = format!(
            "--name=t --filename=/dev/m --direct=1 --ioengine=io_uring --iodepth=64 \
             --rw=randread --bs=4k --time_based --runtime=60 --latency_window=100ms {words}"
        );
        let record = on(machine, &words);
        let job = &record.jobs[0];
        let found = job.latency_target.expect("a search");
        let got = (found.depth, found.depth_met, job.error);
        assert_eq!(got, (want, Some(want), 0), "{words}");
    };
    for share in ["", "--latency_percentile=99"] {
        for (target, want) in [(550, 5), (1000, 10), (2500, 25), (3300, 33)] {
            check(&format!("--latency_target={target} {share}"), want);
        }
    }
}

/// Runs a job at 10,000 IOPS and returns its end time and whether it was steady.
#[track_caller]
fn check_steady(words: &str, ms: u64, attained: bool) {
    let words = format!("--rw=read --size=4m --time_based --runtime=20 {words}");
    let record = record(&words);
    for job in &record.jobs {
        let steady = job.steady_state.as_ref().expect("a watch");
        assert_eq!(steady.attained, attained, "{words}: {steady:?}");
        assert!(
            job.runtime_ms.abs_diff(ms) <= 1,
            "{words}: {} ms",
            job.runtime_ms
        );
    }
}

#[test]
fn a_job_that_is_steady_ends() {
    check_steady("--ss=iops:1% --ss_dur=3 --name=t", 3_000, true);
    check_steady(
        "--ss=bw:100k --ss_dur=4 --ss_interval=2 --name=t",
        4_000,
        true,
    );
    check_steady(
        "--ss=lat_slope:1% --ss_dur=3 --ss_ramp=2 --name=t",
        5_000,
        true,
    );
    check_steady(
        "--ss=iops_slope:1 --ss_dur=3 --ramp_time=1 --name=t",
        3_000,
        true,
    );
    // A second of work, a second of pause.
    let uneven = "--thinktime=1s --thinktime_blocks=10000 --name=t";
    check_steady(&format!("--ss=iops:10% --ss_dur=3 {uneven}"), 20_000, false);
    check_steady(
        &format!("--ss=iops:5% --ss_dur=8 --ss_interval=4 {uneven}"),
        8_000,
        true,
    );
    check_steady("--ss=iops:1% --ss_dur=30 --name=t", 20_000, false);
}

#[test]
fn a_group_is_steady_as_a_whole() {
    let group = "--ss=iops:1% --ss_dur=3 --group_reporting";
    check_steady(&format!("{group} --name=a --name=b"), 3_000, true);
    let record = record(&format!(
        "--rw=read --size=4m --time_based --runtime=20 {group} --name=a --name=b --startdelay=2"
    ));
    let steady = record.jobs[0].steady_state.as_ref().expect("a watch");
    let each = |rate: &u64| (19_999..=20_000).contains(rate);
    assert!(
        steady.ops_per_s.len() == 3 && steady.ops_per_s.iter().all(each),
        "{steady:?}"
    );
    assert_eq!(record.jobs[0].runtime_ms, 5_000);
    assert_eq!(record.jobs[1].runtime_ms, 3_000);
}

#[test]
fn a_window_longer_than_the_run_is_said() {
    let said = |words: &str| {
        let words = format!("--name=t --rw=read --size=4m --time_based --runtime=5 {words}");
        let mut warnings = record(&words).warnings.into_iter();
        warnings.any(|warning| warning.code == "steady_window_beyond_run")
    };
    assert!(said("--ss=iops:1% --ss_dur=6"));
    assert!(said("--ss=iops:1% --ss_dur=3 --ss_ramp=3"));
    assert!(!said("--ss=iops:1% --ss_dur=5"));
    assert!(!said("--ss=iops:1%"));
}
