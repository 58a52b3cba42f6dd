//! Layers that a machine file stacks over a model: times, sizes, places of faults, and mistakes.

use crate::common::on;
use fathom_block::LAYERS;
use fathom_record::JobRecord;
use fathom_sim::{MODELS, NOISE_KEYS};
use fathom_virtual::MachineModel;

const JOB: &str = "--name=j --filename=/dev/d --direct=1 --ioengine=libaio --rw=randread --bs=4k \
                   --number_ios=2000 --norandommap --ignore_error=EIO,EIO,EIO";

fn machine(layers: &str) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 4\n\
         [device.constant]\nlatency_us = 100\n{layers}\n"
    )
}

/// Runs a job with these options on a device of 100 µs with these layers, and returns it.
#[track_caller]
fn job(layers: &str, words: &str) -> JobRecord {
    let record = on(&machine(layers), &format!("{JOB} {words}"));
    record.jobs.into_iter().next().expect("one job")
}

fn latencies_ns(job: &JobRecord) -> (u64, u64) {
    let clat = job.directions.read.clat.as_ref().expect("clat is kept");
    (clat.summary.min(), clat.summary.max())
}

#[test]
fn delays_add_up_with_a_queue_and_without() {
    let delay = "[[device.layer]]\nkind = \"delay\"\nread_us = 1000\n";
    let queue = "[device.queue]\nscheduler = \"mq-deadline\"\nqueue_depth = 32\n";
    for queue in ["", queue] {
        for (layers, want) in [(1, 1_100_000), (3, 3_100_000)] {
            let job = job(&format!("{}{queue}", delay.repeat(layers)), "--iodepth=4");
            assert_eq!(latencies_ns(&job), (want, want), "{layers} {queue}");
        }
    }
}

#[test]
fn a_delay_follows_recorded_latencies() {
    let delay = "[[device.layer]]\nkind = \"delay\"\n\
                 [device.layer.read]\nlatency_ns = [5_000, 70_000]\ncount = [3, 1]\n";
    assert_eq!(latencies_ns(&job(delay, "")), (105_000, 170_000));
}

#[test]
fn a_bad_region_fails_alone() {
    let bad = "[[device.layer]]\nkind = \"fault\"\nread_errors_ppm = 1_000_000\n\
               from_gib = 1\nsize_gib = 1\n";
    for (place, want) in [("--offset=0 --size=1g", 0), ("--offset=1g --size=1g", 2000)] {
        let job = job(bad, place);
        let failed = job.tolerated.map_or(0, |tolerated| tolerated.total);
        assert_eq!(failed, want, "{place}");
    }
}

#[test]
fn a_part_is_as_large_as_it_is_cut() {
    let split = "[[device.layer]]\nkind = \"split\"\nfrom_gib = 1\nsize_gib = 2\n";
    let record = on(
        &machine(split),
        &format!("{JOB} --rw=read --bs=1m --number_ios=9999"),
    );
    assert_eq!(record.jobs[0].directions.read.bytes, 2 << 30);
    let modelled = record.modelled.expect("a simulation");
    assert_eq!(modelled.devices[0].capacity_bytes, 2 << 30);
    assert_eq!(modelled.devices[0].model, "constant + split");
    // The faults of the device below are where they were: in the second GiB of the part.
    let bad = format!("[device.faults]\nread_errors_ppm = 1_000_000\nfrom_gib = 2\n{split}");
    for (place, want) in [("--offset=0 --size=1g", 0), ("--offset=1g --size=1g", 2000)] {
        let job = job(&bad, place);
        let failed = job.tolerated.map_or(0, |tolerated| tolerated.total);
        assert_eq!(failed, want, "{place}");
    }
}

#[track_caller]
fn check_refused(layers: &str, want: &str) {
    let error = MachineModel::parse("m.toml", &machine(layers)).expect_err("a mistake");
    let text = error.to_string();
    assert!(text.contains(want), "{text}");
    for problem in &error.problems {
        assert!(problem.origin.line > 6 && problem.hint.is_some(), "{text}");
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    check_refused("[[device.layer]]\nread_us = 5", "has no `kind`");
    check_refused(
        "[[device.layer]]\nkind = \"dealy\"",
        "unknown layer `dealy`",
    );
    check_refused("[[device.layer]]\nkind = \"delay\"", "delays nothing");
    let delay = "[[device.layer]]\nkind = \"delay\"\nread_us = 5\n";
    check_refused(&format!("{delay}raed_us = 5"), "unknown key `raed_us`");
    check_refused(&format!("{delay}write_us = -1"), "`write_us` must be");
    check_refused(
        &format!("{delay}[device.layer.read]\nlatency_ns = [1]\ncount = [1]"),
        "one latency",
    );
    check_refused(
        "[[device.layer]]\nkind = \"fault\"\nlost_ppm = 0",
        "no fault",
    );
    let split = "[[device.layer]]\nkind = \"split\"\nfrom_gib = 3\nsize_gib = ";
    check_refused(&format!("{split}2"), "ends beyond");
    // The second part is cut from the first.
    check_refused(&format!("{split}1\n{split}1"), "ends beyond");
}

#[test]
fn a_mistake_in_zones_is_told_alone() {
    let zoned = "[[device.layer]]\nkind = \"zoned\"\nzone_mib = 64\n";
    let mistakes = [
        ("capacity_mib = 65", "exceeds the zone"),
        ("conventional = 1000", "more than the"),
        ("area_kib = 6", "multiple of its granule"),
        ("goes_read_only = 1000000", "there is no zone 1000000"),
        (
            "conventional = 3\nreset_by_other = 2",
            "zone 2 is conventional",
        ),
    ];
    for (mistake, want) in mistakes {
        let layers = format!("{zoned}{mistake}\nmax_open = 2\nmax_areas = 2\ngoes_offline = 3");
        let error = MachineModel::parse("m.toml", &machine(&layers)).expect_err("a mistake");
        assert!(error.to_string().contains(want), "{error}");
        assert_eq!(error.problems.len(), 1, "{error}");
    }
}

#[test]
fn every_model_layer_and_key_of_layers_and_noise_is_documented() {
    let text = include_str!("../../../../docs/MACHINE_FILES.md");
    let layers = LAYERS
        .iter()
        .flat_map(|row| row.keys.iter().chain([&row.name]));
    let noise = NOISE_KEYS.iter();
    for word in layers
        .chain(MODELS.iter().map(|row| &row.name))
        .chain(noise)
    {
        let code = [
            format!("`{word}`"),
            format!("\n{word} ="),
            format!("{word}]"),
        ];
        assert!(code.iter().any(|code| text.contains(code)), "{word}");
    }
}
