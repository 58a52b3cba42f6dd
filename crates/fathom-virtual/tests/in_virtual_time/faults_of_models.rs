//! Faults in a machine file: each on every model, with and without a request queue.

use crate::common::on;
use fathom_record::JobRecord;

/// Name and machine file of each model.
const MODELS: [(&str, &str); 5] = [
    ("constant", "[device.constant]\nlatency_us = 100"),
    (
        "distribution",
        "[device.distribution.read]\nlatency_ns = [50_000, 90_000, 300_000]\ncount = [3, 5, 1]",
    ),
    ("hdd", HDD),
    ("ssd", SSD),
    ("array", ARRAY),
];

const HDD: &str = "[device.hdd]\nrpm = 7200\nouter_mb_per_s = 200\ninner_mb_per_s = 100\n\
                   settle_ms = 1\nseek_root_ms = 1\nseek_linear_ms = 1\nlooks_at = 8";
const SSD: &str = "[device.ssd]\nchannels = 2\ndies_per_channel = 2\npage_kib = 16\n\
                   pages_per_block = 64\nread_us = 40\nprogram_us = 200\nerase_us = 2000\n\
                   channel_mb_per_s = 800\nlink_mb_per_s = 3500\ncommand_us = 5\n\
                   buffer_kib = 1024\nspare_percent = 7";
const ARRAY: &str = "[device.array]\nmembers = 3\nchunk_kib = 64\nmodel = \"ssd\"\n\
                     [device.array.ssd]\nchannels = 1\ndies_per_channel = 2\npage_kib = 16\n\
                     pages_per_block = 64\nread_us = 40\nprogram_us = 200\nerase_us = 2000\n\
                     channel_mb_per_s = 800\nlink_mb_per_s = 3500\ncommand_us = 5\n\
                     buffer_kib = 1024\nspare_percent = 7";
const QUEUE: &str = "[device.queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 4";

/// Runs 2000 random reads of 64 KiB on a model with these faults and returns the job.
#[track_caller]
fn job(model: &str, tables: &str, words: &str) -> JobRecord {
    let text =
        format!("[[device]]\nnames = [\"*\"]\nmodel = \"{model}\"\ncapacity_gib = 1\n{tables}\n");
    let words = format!(
        "--name=j --filename=/dev/d --direct=1 --ioengine=libaio --iodepth=4 --rw=randread \
         --bs=64k --number_ios=2000 --norandommap {words}"
    );
    let record = on(&text, &words);
    record.jobs.into_iter().next().expect("one job")
}

/// Runs the job on each model, with and without a queue, without and with these faults.
fn on_each(faults: &str, words: &str, check: &dyn Fn(&str, &JobRecord, &JobRecord)) {
    for (model, tables) in MODELS {
        for queue in ["", QUEUE] {
            let well = job(model, &format!("{tables}\n{queue}"), words);
            let ill = job(model, &format!("{tables}\n{queue}\n{faults}"), words);
            check(&format!("{model} {queue}"), &well, &ill);
        }
    }
}

fn longest_ns(job: &JobRecord) -> u64 {
    let clat = job.directions.read.clat.as_ref().expect("clat is kept");
    clat.summary.max()
}

#[test]
fn a_stall_holds_up_all_that_is_in_flight() {
    let stall = "[[device.stall]]\nat_ms = 20\nfor_ms = 500";
    on_each(stall, "", &|what, well, ill| {
        let later = ill.runtime_ms - well.runtime_ms;
        assert!((499..=501).contains(&later), "{what}: {later} ms");
        assert!(longest_ns(ill) >= 500_000_000, "{what}");
        assert_eq!((ill.directions.read.ios, ill.error), (2000, 0), "{what}");
    });
}

#[test]
fn so_many_of_a_million_ops_fail() {
    let faults = "[device.faults]\nread_errors_ppm = 100_000\nerrno = 61";
    on_each(faults, "--ignore_error=ENODATA", &|what, well, ill| {
        assert!(
            well.tolerated.is_none_or(|tolerated| tolerated.total == 0),
            "{what}"
        );
        let tolerated = ill.tolerated.expect("some failed");
        assert!(
            (150..=250).contains(&tolerated.total),
            "{what}: {tolerated:?}"
        );
        assert_eq!(tolerated.first, 61, "{what}");
    });
    // Without leave to go on the first one ends the job.
    on_each(faults, "", &|what, _well, ill| {
        assert_eq!(ill.error, 61, "{what}")
    });
}

#[test]
fn short_transfers_are_gone_on_with() {
    let faults = "[device.faults]\nshort_ppm = 100_000";
    on_each(faults, "", &|what, well, ill| {
        assert_eq!(well.directions.read.short_ios, 0, "{what}");
        let short = ill.directions.read.short_ios;
        assert!((150..=300).contains(&short), "{what}: {short}");
        assert_eq!(ill.directions.read.bytes, 2000 << 16, "{what}");
    });
}

#[test]
fn a_lost_completion_ends_with_its_timeout() {
    let faults = "[device.faults]\nlost_ppm = 10_000\ntimeout_ms = 700";
    on_each(faults, "--ignore_error=ETIMEDOUT", &|what, _well, ill| {
        let tolerated = ill.tolerated.expect("some were lost");
        assert!((5..=40).contains(&tolerated.total), "{what}: {tolerated:?}");
        assert_eq!(tolerated.first, 110, "{what}");
        assert!(ill.runtime_ms >= 700, "{what}");
    });
}

#[test]
fn a_slow_die_slows_a_flash_drive_and_an_array_of_them() {
    for (model, tables, table) in [
        ("ssd", SSD, "device.ssd"),
        ("array", ARRAY, "device.array.ssd"),
    ] {
        let well = job(model, tables, "");
        let slow = format!("{tables}\n[{table}.slow_die]\ndie = 1\ntimes = 100");
        let ill = job(model, &slow, "");
        assert!(ill.runtime_ms > 5 * well.runtime_ms, "{model}");
    }
}
