//! Jobs that share the tags of a modelled device's queue, by policy and number of jobs.

use crate::common::on;
use fathom_record::Record;

const POLICIES: [&str; 4] = ["plain", "fair", "fair-roundrobin", "elastic"];

/// Returns a machine of 100 µs per op with these limits on requests and commands.
fn machine(policy: &str, nr_requests: u32, queue_depth: u32) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\ncapacity_gib = 64\nmodel = \"constant\"\n\
         [device.constant]\nlatency_us = 100\n\
         [device.queue]\nscheduler = \"none\"\npolicy = \"{policy}\"\n\
         nr_requests = {nr_requests}\nqueue_depth = {queue_depth}\n"
    )
}

fn reads(record: &Record) -> Vec<u64> {
    let jobs = record.jobs.iter();
    jobs.map(|job| job.directions.read.ios).collect()
}

#[test]
fn four_jobs_share_one_tag() {
    let words = "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --time_based \
                 --runtime=2 --numjobs=4";
    for policy in POLICIES {
        for engine in ["psync", "libaio --iodepth=4", "io_uring --iodepth=1"] {
            let machine = machine(policy, 1, 1);
            let record = on(&machine, &format!("{words} --ioengine={engine}"));
            let each = reads(&record);
            // The tag is never idle, and each gets its share.
            assert!(
                (20_000..=20_016).contains(&each.iter().sum::<u64>()),
                "{policy}, {engine}: {each:?}"
            );
            assert!(
                each.iter().all(|ops| ops.abs_diff(5_000) <= 50),
                "{policy}, {engine}: {each:?}"
            );
        }
    }
}

/// As in Linux, `nr_requests` takes tags away from the device if there is no scheduler, and cannot
/// add any.
#[test]
fn without_a_scheduler_nr_requests_limits_the_tags_of_the_device() {
    let words = "--name=t --filename=/dev/m --direct=1 --rw=randread --bs=4k --time_based \
                 --runtime=1 --ioengine=io_uring --iodepth=200";
    let usual = machine("plain", 64, 128).replace("nr_requests = 64\n", "");
    for (machine, tags) in [
        (machine("plain", 1, 32), 1),
        (machine("plain", 8, 32), 8),
        (machine("plain", 64, 32), 32),
        (usual, 128),
    ] {
        let ops: u64 = reads(&on(&machine, words)).iter().sum();
        assert!(ops.abs_diff(10_000 * tags) <= 200, "{machine}: {ops} ops");
    }
}

/// With more jobs than a machine could have threads, each has its turn, and the device is never
/// idle.
#[test]
fn ten_thousand_jobs_end() {
    let words = "--machine=m --name=t --direct=1 --rw=randread --bs=4k --ioengine=psync \
                 --size=16k --numjobs=10000";
    for policy in ["plain", "fair"] {
        let record = on(&machine(policy, 64, 32), words);
        let each = reads(&record);
        assert_eq!(
            (each.len(), each.iter().all(|ops| *ops == 4)),
            (10_000, true)
        );
        // 40,000 ops of 100 µs, 32 at a time.
        assert_eq!(record.elapsed_ms, 125, "{policy}");
    }
}

/// Returns the bandwidth of the published test's hard disk under a policy, MiB/s.
fn published(policy: &str, jobs: u32) -> f64 {
    let file = include_str!("../../../../examples/machines/hdd.toml");
    let machine = file.replace("policy = \"plain\"", &format!("policy = \"{policy}\""));
    let record = on(
        &machine,
        &format!(
            "--name=t --filename=/dev/sdb --direct=1 --rw=randwrite --bs=1m --ioengine=psync \
             --offset_increment=206m --size=1g --time_based --runtime=60 --numjobs={jobs}"
        ),
    );
    let ops = record.jobs.iter().map(|job| job.directions.write.ios);
    #[expect(clippy::cast_precision_loss, reason = "some thousand ops and seconds")]
    let per_second = ops.sum::<u64>() as f64 / (record.elapsed_ms as f64 / 1000.0);
    per_second
}

#[test]
fn the_policy_of_a_machine_file_is_the_one_that_rules() {
    for policy in &POLICIES[1..] {
        let (few, plain) = (published(policy, 8), published("plain", 8));
        assert!(
            (few / plain - 1.0).abs() < 0.02,
            "{policy}: {few} and {plain}"
        );
    }
    let [plain, fair, turns, elastic] = POLICIES.map(|policy| published(policy, 512));
    assert!(fair > 1.6 * plain, "{plain} {fair}");
    assert!(turns > 1.3 * plain, "{plain} {turns}");
    assert!(elastic > 1.3 * plain, "{plain} {elastic}");
}
