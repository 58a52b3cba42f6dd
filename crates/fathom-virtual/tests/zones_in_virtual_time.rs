//! `zonemode=zbd` on modelled zoned devices, which fail every write off the write pointer.

mod common;

use common::{on, try_on};
use fathom_record::{JobRecord, Record};
use fathom_virtual::MachineModel;

/// Returns a machine of 64 MiB in zones of 4 MiB, with these keys of the zones.
fn machine(keys: &str) -> String {
    format!(
        "[[device]]\nnames = [\"/dev/zoned\"]\nmodel = \"constant\"\ncapacity_gib = 0.0625\n\
         [device.constant]\nlatency_us = 20\n\
         [[device.layer]]\nkind = \"zoned\"\nzone_mib = 4\n{keys}\n"
    )
}

/// Runs a job on the device with these keys of its zones.
#[track_caller]
fn run(keys: &str, words: &str) -> Record {
    on(&machine(keys), &words_of(words))
}

fn words_of(words: &str) -> String {
    format!(
        "--filename=/dev/zoned --zonemode=zbd --direct=1 --ioengine=libaio --bs=64k --name=j \
         {words}"
    )
}

#[track_caller]
fn check(keys: &str, words: &str, reads: u64, writes: u64) {
    let record = run(keys, words);
    for job in &record.jobs {
        let ios = (job.directions.read.ios, job.directions.write.ios);
        let said = job.error_text.as_deref().unwrap_or_default();
        assert_eq!(
            (ios, job.error),
            ((reads, writes), 0),
            "{keys} {words}: {said}"
        );
    }
}

#[test]
fn writes_follow_the_pointers() {
    for keys in [
        "",
        "max_open = 1",
        "capacity_mib = 3\nmax_open = 3",
        "conventional = 2",
    ] {
        for depth in [1, 8] {
            // 16 zones of 64 blocks: a pass has 1024 writes, whatever their places.
            let words = format!("--rw=randwrite --iodepth={depth}");
            check(keys, &words, 0, 1024);
            check(keys, &format!("{words} --norandommap --loops=3"), 0, 3072);
        }
    }
    check("", "--rw=write --loops=2", 0, 2048);
    check("", "--rw=write --iodepth=4", 0, 1024);
    check("capacity_mib = 3", "--rw=write", 0, 768);
    check("", "--rw=randwrite --numjobs=8 --max_open_zones=2", 0, 1024);
    check(
        "",
        "--rw=randwrite --numjobs=4 --job_max_open_zones=1",
        0,
        1024,
    );
    check(
        "max_open = 4",
        "--rw=randwrite --numjobs=8 --offset_increment=2z --size=2z",
        0,
        128,
    );
}

#[test]
fn reads_stay_below_the_pointers() {
    // Nothing is written, and there is nothing to read.
    check("", "--rw=randread", 0, 0);
    check("", "--rw=read", 0, 0);
    check("", "--rw=randread --read_beyond_wp=1", 1024, 0);
    let record = run("", "--rw=randrw --number_ios=500");
    let job = &record.jobs[0];
    let (reads, writes) = (job.directions.read.ios, job.directions.write.ios);
    assert_eq!((reads + writes, job.error), (500, 0));
    assert!(reads > 200 && writes > 200, "{reads} {writes}");
}

#[test]
fn data_are_read_back_where_they_were_written() {
    for keys in ["", "capacity_mib = 3\nmax_open = 2"] {
        for rw in ["write", "randwrite"] {
            for depth in [1, 8] {
                let words = format!("--rw={rw} --verify=crc32c --iodepth={depth} --loops=2");
                let record = run(keys, &words);
                let job = &record.jobs[0];
                let (reads, writes) = (job.directions.read.ios, job.directions.write.ios);
                assert_eq!((reads, job.error), (writes, 0), "{keys} {words}");
                let blocks = if keys.is_empty() { 2048 } else { 1536 };
                assert_eq!(writes, blocks, "{keys} {words}");
            }
        }
    }
}

#[test]
fn small_rests_are_finished_or_written() {
    // 4 MiB hold 42 blocks of 96 KiB, and 64 KiB are left.
    check("", "--rw=write --bs=96k --size=1z", 0, 42);
    check(
        "",
        "--rw=write --bs=96k --size=1z --write_zone_remainder=1",
        0,
        43,
    );
}

#[test]
fn thresholds_reset_zones() {
    // Half of the device is never exceeded by more than the writes between two resets.
    let words = "--rw=randwrite --norandommap --io_size=1g --zone_reset_threshold=0.5 \
                 --zone_reset_frequency=1";
    check("", words, 0, 16384);
}

/// Runs a job that must fail, and returns the message.
#[track_caller]
fn failure(keys: &str, words: &str) -> (u32, String) {
    let record = run(keys, words);
    let job: &JobRecord = &record.jobs[0];
    (job.error, job.error_text.clone().unwrap_or_default())
}

#[test]
fn zones_that_change_under_a_job_are_named() {
    let eio = 5;
    let one = "--rw=write --time_based --runtime=1 --size=1z";
    let (errno, said) = failure("event_ms = 0.1\nreset_by_other = 0", one);
    let named = said.contains("zone 0 at 0: written at ") && said.contains("is at 0 (empty)");
    assert!(errno == eio && named, "{errno} {said}");
    let (errno, said) = failure("event_ms = 0.1\ngoes_offline = 0", one);
    assert!(
        errno == eio && said.contains("zone 0 at 0 is offline"),
        "{errno} {said}"
    );
    let (errno, said) = failure("event_ms = 0.1\ngoes_read_only = 0", one);
    assert!(
        errno == eio && said.contains("zone 0 at 0 is read-only"),
        "{errno} {said}"
    );
    // The others go on: the write to the lost zone is a tolerated error, and it is left alone.
    let words = "--rw=randwrite --ignore_error=,EIO";
    let record = run("event_ms = 1\ngoes_offline = 1\ngoes_read_only = 5", words);
    let job = &record.jobs[0];
    assert_eq!(job.error, 0, "{:?}", job.error_text);
    let tolerated = job
        .tolerated
        .as_ref()
        .map_or(0, |tolerated| tolerated.total);
    assert!((1..=2).contains(&tolerated), "{tolerated}");
}

#[track_caller]
fn refuses(keys: &str, words: &str, want: &str) {
    let machine = MachineModel::parse("machine", &machine(keys)).expect("a machine");
    let refused = try_on(&machine, &words_of(words), &mut |_| {}, &|| 0).expect_err("refused");
    let said = refused.to_string();
    assert!(said.contains(want), "{words}: {said}");
}

#[test]
fn unsupported_and_contradictory_options_are_refused() {
    refuses("", "--rw=randtrim", "trims");
    refuses("", "--rw=write --direct=0", "page cache");
    refuses(
        "",
        "--rw=write --zonesize=1m",
        "`zonesize` is 1048576 bytes, but the zones of",
    );
    refuses("", "--rw=write --zoneskip=4m", "zoneskip");
    refuses(
        "",
        "--rw=write --recover_zbd_write_error=1",
        "recover_zbd_write_error",
    );
    refuses(
        "",
        "--rw=write --size=1m",
        "no whole zone of 4194304 bytes from 0 to 1048576",
    );
    refuses(
        "",
        "--rw=write --verify=md5 --numjobs=2",
        "needs zones of its own",
    );
    let words = "--rw=write --verify=md5 --zone_reset_frequency=0.1";
    refuses("", words, "discards data that `verify` reads back");
}

#[test]
fn devices_without_zones_get_emulated_ones() {
    let plain = "[[device]]\nnames = [\"/dev/zoned\"]\nmodel = \"constant\"\n\
                 capacity_gib = 0.0625\n[device.constant]\nlatency_us = 20\n";
    let words = words_of("--rw=randwrite --zonesize=4m --zonecapacity=3m --max_open_zones=2");
    let record = on(plain, &words);
    let job = &record.jobs[0];
    assert_eq!((job.directions.write.ios, job.error), (1024, 0));
    let machine = MachineModel::parse("machine", plain).expect("a machine");
    let refused = try_on(&machine, &words_of("--rw=write"), &mut |_| {}, &|| 0);
    let said = refused.expect_err("no zonesize").to_string();
    assert!(said.contains("no `zonesize` to emulate them"), "{said}");
}
