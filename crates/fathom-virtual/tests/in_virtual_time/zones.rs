//! `zonemode=zbd` on modelled zoned devices, which fail every write off the write pointer.

use std::time::Duration;

use crate::common::{on, try_on};
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

/// Returns the duration of a pass of sequential writes, ms.
fn time_of(keys: &str, words: &str) -> f64 {
    let record = run(keys, &format!("--rw=write --bs=4k {words}"));
    let job = &record.jobs[0];
    assert_eq!((job.directions.write.ios, job.error), (16384, 0), "{words}");
    Duration::from_millis(job.runtime_ms).as_secs_f64()
}

#[test]
fn random_write_areas_take_several_writes() {
    for keys in [
        "area_kib = 64",
        "area_kib = 256\narea_granule_kib = 64\nmax_open = 3",
        "area_kib = 1024\nmax_areas = 2\ncapacity_mib = 3",
        // The last granule of a zone is cut.
        "area_kib = 96\narea_granule_kib = 96",
    ] {
        let writes = if keys.contains("capacity") { 768 } else { 1024 };
        // A random pass has as many writes as the range has blocks.
        for (words, writes) in [
            ("--rw=write", writes),
            ("--rw=randwrite", 1024),
            ("--rw=randwrite --numjobs=4", 1024),
        ] {
            for depth in [1, 8] {
                let words = format!("{words} --zrwa=1 --iodepth={depth}");
                check(keys, &words, 0, writes);
            }
        }
        check(
            keys,
            "--rw=write --loops=3 --zrwa=1 --iodepth=8",
            0,
            3 * writes,
        );
        check(
            keys,
            "--rw=write --zrwa=1 --iodepth=8 --verify=md5",
            writes,
            writes,
        );
        check(
            keys,
            "--rw=randwrite --zrwa=1 --iodepth=8 --verify=md5",
            writes,
            writes,
        );
    }
    let (without, with) = ("--iodepth=8", "--iodepth=8 --zrwa=1");
    let ratio = |keys| time_of(keys, without) / time_of(keys, with);
    let wide = ratio("area_kib = 1024");
    assert!(
        (7.0..=8.1).contains(&wide),
        "eight in flight: {wide} times as fast"
    );
    // Four fit, and two while the first two of four are awaited.
    let narrow = ratio("area_kib = 16");
    assert!((1.9..=4.1).contains(&narrow), "{narrow}");
}

#[test]
fn what_has_no_random_write_area_is_refused() {
    let words = "--rw=write --zrwa=1";
    refuses("", words, "has no random write areas");
    refuses("area_kib = 32", words, "which have 32768");
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
    refuses("", "--rw=randtrim", "a trim resets a whole zone");
    refuses("", "--rw=trim --bs=4m,4m,2m", "have 4194304 bytes");
    let words = "--rw=write --verify=md5 --trim_percentage=10";
    refuses("", words, "which can only be reset whole");
    refuses(
        "capacity_mib = 1",
        "--rw=write --bs=2m",
        "buflen exceeds zone size",
    );
    // The longer zones before the range do not help.
    let words = "--rw=write --bs=2m --offset=2z";
    let keys = "capacity_mib = 1\nconventional = 2";
    refuses(keys, words, "from 8388608 to 67108864");
    let words = "--rw=write --ioengine=mmap";
    refuses("", words, "page cache, which engine `mmap` writes through");
    let words = "--rw=write --ioengine=null";
    refuses("", words, "needs a zoned block device: `null` opens none");
    refuses("", "--rw=write --direct=0", "page cache");
    refuses(
        "",
        "--rw=write --zonesize=1m",
        "job parameter zonesize 1048576 does not match disk zone size 4194304 of",
    );
    refuses(
        "",
        "--rw=write --zoneskip=1m",
        "is not a multiple of the device zone size",
    );
    refuses(
        "",
        "--rw=write --recover_zbd_write_error=1",
        "`recover_zbd_write_error` has no effect on a job that ends",
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
}

#[test]
fn options_of_zones_without_effect_are_noted() {
    let notes = |words: &str| {
        let record = run("", words);
        assert_eq!(record.jobs[0].error, 0, "{words}");
        record
            .warnings
            .iter()
            .map(|warning| warning.code.clone())
            .collect::<Vec<_>>()
    };
    let words = "--rw=write --verify=md5 --zone_reset_frequency=0.1 --zone_reset_threshold=0.1";
    assert_eq!(notes(words), ["resets_with_verify"]);
    let words = "--rw=read --job_max_open_zones=1 --read_beyond_wp=1";
    assert_eq!(notes(words), ["open_zones_without_writes"]);
    assert_eq!(
        notes("--rw=write --job_max_open_zones=1"),
        Vec::<String>::new()
    );
}

#[test]
fn random_writes_that_zones_cut_move_all_bytes() {
    for words in ["--verify=md5", "--iodepth=16", "--loops=2 --verify=md5"] {
        let words = format!("--rw=randwrite --bsrange=4k-64k --size=2z {words}");
        let record = run("", &words);
        let write = &record.jobs[0].directions.write;
        let passes = if words.contains("loops") { 2 } else { 1 };
        assert_eq!(
            (write.bytes, record.jobs[0].error),
            (passes * (8 << 20), 0),
            "{words}"
        );
    }
}

#[test]
fn what_a_reset_discards_is_not_read_back() {
    // The passes of such a job end with writes that are not read back yet.
    for seed in 0..8 {
        let words = format!(
            "--rw=randrw --rwmixwrite=25 --bsrange=4k-128k --iodepth=1 --verify=crc32c \
             --verify_backlog=2 --size=4z --time_based --runtime=100ms --randseed={seed}"
        );
        let record = run("", &words);
        let job = &record.jobs[0];
        assert_eq!(job.error, 0, "{:?}", job.error_text);
        assert!(job.zone_resets > Some(0) && job.directions.write.ios > 100);
    }
}

#[test]
fn zones_are_reset_at_a_share_of_the_range_and_counted() {
    // Half of a zone of 64 blocks, then a reset: the last half stays.
    let words =
        "--rw=write --size=1z --loops=2 --zone_reset_frequency=1 --zone_reset_threshold=0.5";
    let record = run("", words);
    let job = &record.jobs[0];
    assert_eq!((job.directions.write.ios, job.zone_resets), (128, Some(3)));
    // The capacity of the zone is less than the share: each pass writes it whole.
    let words =
        "--rw=write --size=1z --loops=2 --zone_reset_frequency=1 --zone_reset_threshold=0.8";
    let record = run("capacity_mib = 3", words);
    let job = &record.jobs[0];
    assert_eq!((job.directions.write.ios, job.zone_resets), (96, Some(1)));
    assert_eq!(
        run("", "--rw=trim --bs=4m --size=4z").jobs[0].zone_resets,
        Some(4)
    );
    assert_eq!(
        run("", "--rw=read --read_beyond_wp=1").jobs[0].zone_resets,
        None
    );
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
    assert!(
        said.contains("Specifying the zone size is mandatory"),
        "{said}"
    );
}

#[test]
fn emulated_zones_of_odd_sizes_are_refused() {
    let plain = "[[device]]\nnames = [\"/dev/zoned\"]\nmodel = \"constant\"\n\
                 capacity_gib = 1024\n[device.constant]\nlatency_us = 20\n";
    let machine = MachineModel::parse("machine", plain).expect("a machine");
    for (words, want) in [
        ("--zonesize=1", "zone size must be at least 512 bytes"),
        (
            "--zonesize=513",
            "`zonesize` is not a multiple of the 512 B",
        ),
        (
            "--zonesize=1m --zonecapacity=1",
            "`zonecapacity` is not a multiple of the 512 B",
        ),
        ("--zonesize=1m --zonecapacity=2m", "`zonecapacity` exceeds"),
        // Memory for the state of each would be gigabytes.
        (
            "--zonesize=64k",
            "would have 16777216 zones, more than 1048576",
        ),
    ] {
        let words = words_of(&format!("--rw=write {words}"));
        let refused = try_on(&machine, &words, &mut |_| {}, &|| 0).expect_err("refused");
        let said = refused.to_string();
        assert!(said.contains(want), "{words}: {said}");
    }
}

#[test]
fn a_write_beyond_the_device_limit_says_so() {
    let record = run(
        "max_open = 2",
        "--rw=randwrite --ignore_zone_limits=1 --max_open_zones=8",
    );
    let said = record.jobs[0].error_text.as_deref().unwrap_or_default();
    assert!(said.contains("lower `max_open_zones`"), "{said}");
}

/// Returns reads, writes and trims of each job.
#[track_caller]
fn counts(keys: &str, words: &str) -> Vec<(u64, u64, u64)> {
    let record = run(keys, words);
    let count = |job: &JobRecord| {
        assert_eq!(job.error, 0, "{keys} {words}: {:?}", job.error_text);
        let directions = &job.directions;
        (
            directions.read.ios,
            directions.write.ios,
            directions.trim.ios,
        )
    };
    record.jobs.iter().map(count).collect()
}

#[test]
fn trims_reset_zones() {
    let after = |rw: &str| {
        format!(
            "--rw=write --size=3z --max_open_zones=2 --name=t --stonewall --size=8z --bs=4m \
             --rw={rw}"
        )
    };
    for depth in [1, 8] {
        // In order, each zone; at random, those with data.
        let words = after(&format!("trim --iodepth={depth}"));
        assert_eq!(counts("", &words), [(0, 192, 0), (0, 0, 8)]);
        let words = after(&format!("randtrim --iodepth={depth}"));
        assert_eq!(counts("", &words), [(0, 192, 0), (0, 0, 3)]);
        // Zones without a pointer, and lost ones, are passed over.
        let words = after(&format!("trim --iodepth={depth}"));
        assert_eq!(counts("conventional = 2", &words)[1], (0, 0, 6));
        let words = format!("--rw=trimwrite --bs=4m --iodepth={depth}");
        let pairs = counts("max_open = 1", &words);
        assert_eq!(pairs[0].1, pairs[0].2, "{pairs:?}");
        assert!(pairs[0].1 >= 8, "{pairs:?}");
        let words = format!("--rw=randtrimwrite --bs=4m --loops=2 --iodepth={depth}");
        let pairs = counts("", &words);
        assert_eq!(pairs[0].1, pairs[0].2, "{pairs:?}");
    }
    assert_eq!(counts("", "--rw=randtrim --bs=4m"), [(0, 0, 0)]);
}

#[test]
fn trims_go_beside_other_jobs() {
    let words = "--rw=randrw --norandommap --iodepth=4 --time_based --runtime=1 --name=t --bs=4m \
                 --rw=randtrim --time_based --runtime=1 --rate_iops=200";
    let counts = counts("max_open = 3", words);
    assert!(counts[0].1 > 1000 && counts[1].2 > 100, "{counts:?}");
}

#[test]
fn gaps_pass_zones_over() {
    // Every second of 16 zones, twice: the second time round, they are reset.
    let wrote = |keys: &str, words: &str| counts(keys, words)[0].1;
    assert_eq!(wrote("", "--rw=write --zoneskip=1z --io_size=8z"), 512);
    assert_eq!(wrote("", "--rw=write --zoneskip=4m --iodepth=4"), 1024);
    let after = |skip: &str| {
        format!("--rw=write --io_size=4z --zoneskip={skip} --name=r --stonewall --rw=read")
    };
    // The reader finds data in four zones, wherever they are.
    for skip in ["1z", "3z", "0"] {
        assert_eq!(counts("", &after(skip))[1].0, 256, "{skip}");
    }
    // Zone 2 is the second that is written: it is lost when the writer comes to it.
    let words = "--rw=write --zoneskip=1z --io_size=2z --ignore_error=,EIO";
    let record = run("event_ms = 0\ngoes_offline = 2", words);
    assert!(record.jobs[0].tolerated.is_some());
    let record = run("event_ms = 0\ngoes_offline = 1", words);
    assert!(record.jobs[0].tolerated.is_none(), "zone 1 is in the gap");
}

#[test]
fn failed_writes_are_recovered_from() {
    let words = "--rw=write --size=1z --recover_zbd_write_error=1 --continue_on_error=write \
                 --time_based --runtime=100ms";
    let record = run("event_ms = 0.1\nreset_by_other = 0", words);
    let job = &record.jobs[0];
    let tolerated = job
        .tolerated
        .as_ref()
        .map_or(0, |tolerated| tolerated.total);
    assert_eq!(tolerated, 1, "{:?}", job.error_text);
    assert!(job.directions.write.ios > 1000);
}

/// Replays the ops of a log, and returns the writes, the trims and what was said.
fn replayed(name: &str, ops: &str, words: &str) -> (u64, u64, String) {
    let name = format!("fathom-zones-{name}-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text =
        format!("fio version 2 iolog\n/dev/zoned add\n/dev/zoned open\n{ops}/dev/zoned close\n");
    std::fs::write(&path, text).expect("a log");
    let all = format!(
        "--name=j --zonemode=zbd --direct=1 --ioengine=libaio --iodepth=4 --read_iolog={} {words}",
        path.display()
    );
    let record = on(&machine(""), &all);
    std::fs::remove_file(&path).expect("removed");
    let job = &record.jobs[0];
    let said = job.error_text.clone().unwrap_or_default();
    (job.directions.write.ios, job.directions.trim.ios, said)
}

#[test]
fn replays_stay_where_they_were_recorded() {
    let ops = "/dev/zoned write 4194304 65536\n/dev/zoned write 4259840 65536\n\
               /dev/zoned read 4194304 65536\n/dev/zoned trim 4194304 4194304\n\
               /dev/zoned write 4194304 4096\n";
    assert_eq!(replayed("good", ops, ""), (3, 1, String::new()));
    let ops = "/dev/zoned write 0 65536\n/dev/zoned write 262144 65536\n";
    let (writes, _, said) = replayed("off", ops, "");
    let named = "zone 0 at 0: the log writes at 262144, but its write pointer is at 65536";
    assert!(writes == 1 && said.contains(named), "{writes} {said}");
    let ops = "/dev/zoned trim 0 65536\n";
    let (_, _, said) = replayed("part", ops, "");
    assert!(
        said.contains("trims 0 to 65536, but a zone is reset whole"),
        "{said}"
    );
    let ops = "/dev/zoned write 0 4096\n/dev/zoned write 4194304 4096\n";
    let (_, _, said) = replayed("many", ops, "--max_open_zones=1");
    assert!(
        said.contains("beside the 1 zones that may be open"),
        "{said}"
    );
}
