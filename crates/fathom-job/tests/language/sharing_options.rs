//! Values of options on syncing, shared files, block sequences and engines, accepted and refused.

use crate::world::{check, refuse};
use fathom_engine::options::{HIPRI_PERCENTAGE, LIBAIO_VECTORED, NOWAIT, THP};
use fathom_job::{LockFile, OffloadKick, RangeSync, ZoneMode};

#[test]
fn syncs_of_parts() {
    for (value, flags, every) in [
        ("write", 2, 1),
        ("write:4", 2, 4),
        ("wait_before,write:8", 3, 8),
        ("wait_before,write,wait_after:1k", 7, 1024),
    ] {
        check(&format!("--sync_file_range={value}"), |o| {
            o.files.sync_range == Some(RangeSync { flags, every })
        });
    }
    check("--sync_file_range=write:0", |o| {
        o.files.sync_range.is_none()
    });
    refuse("--sync_file_range=bogus", "bad-value");
    refuse("--sync_file_range=:4", "bad-value");
    refuse("--sync_file_range=wait_before:8,write", "bad-value");
    refuse("--sync_file_range=write:4:4", "too-many-values");
    check("--write_barrier=4", |_| true);
    check("--end_syncfs=1", |o| o.files.end_syncfs);
    check("--unlink_each_loop=1", |o| o.files.unlink_each_loop);
}

#[test]
fn shared_files() {
    check("--lockfile=none", |o| o.files.lockfile == LockFile::None);
    check("--lockfile=exclusive", |o| {
        o.files.lockfile == LockFile::Exclusive
    });
    check("--lockfile=readwrite", |o| {
        o.files.lockfile == LockFile::ReadWrite
    });
    refuse("--lockfile=1", "bad-value");
}

#[test]
fn a_given_order() {
    check("--random_distribution=sequence:3,1k,0", |o| {
        o.random_sequence == Some(vec![3, 1024, 0])
    });
    check("--random_sequence_stride=1", |o| o.random_sequence_stride);
    refuse("--random_distribution=sequence:", "no-number");
    refuse("--random_distribution=sequence:1,,2", "no-number");
    refuse("--random_distribution=sequence", "bad-value");
    check(
        "--random_distribution=sequence:1 --random_distribution=zipf",
        |o| o.random_sequence.is_none(),
    );
}

#[test]
fn patterns_with_offsets() {
    check("--verify=pattern --verify_pattern=0xff%o", |o| {
        o.verify_pattern_offsets == [1] && o.verify_pattern.as_ref().is_some_and(|p| p.len() == 9)
    });
    refuse("--verify_pattern=%d", "bad-pattern");
    // As in fio.
    refuse("--buffer_pattern=%o", "bad-pattern");
}

#[test]
fn ramps_stalls_and_ranges() {
    check("--ramp_size=64m", |o| o.ramp_size == 64 << 20);
    refuse("--ramp_size=0", "out-of-range");
    refuse("--ramp_size=1m --ramp_time=1", "contradiction");
    check("--thinkcycles=1000", |o| o.thinkcycles == 1000);
    check("--num_range=1", |o| o.trims.ranges == 1);
    check("--num_range=0", |o| o.trims.ranges == 1);
    refuse("--num_range=257", "out-of-range");
    check("--io_submit_mode=inline", |o| !o.offload);
    check("--io_submit_mode=offload", |o| {
        o.offload && o.offload_kick == OffloadKick::Batch
    });
    check("--io_submit_mode=offload --offload_kick=reap", |o| {
        o.offload_kick == OffloadKick::Reap
    });
    refuse("--io_submit_mode=both", "bad-value");
    refuse("--offload_kick=often", "bad-value");
}

#[test]
fn zones_of_devices() {
    check("--zonemode=zbd", |o| o.zones.mode == ZoneMode::Zbd);
    for option in [
        "zonecapacity=1m",
        "read_beyond_wp=1",
        "max_open_zones=4096",
        "job_max_open_zones=1",
        "ignore_zone_limits=1",
        "zone_reset_threshold=0.5",
        "zone_reset_frequency=1",
        "recover_zbd_write_error=1",
        "write_zone_remainder=1",
    ] {
        check(&format!("--{option}"), |_| true);
    }
    refuse("--max_open_zones=4097", "out-of-range");
    refuse("--zone_reset_threshold=1.5", "out-of-range");
}

#[test]
fn engines_own() {
    for engine in ["io_uring", "libaio", "pvsync2"] {
        check(&format!("--ioengine={engine} --nowait=1"), |o| {
            o.engine_values.flag(&NOWAIT)
        });
    }
    refuse("--ioengine=psync --nowait=1", "other-engine");
    check("--ioengine=libaio --libaio_vectored=1", |o| {
        o.engine_values.flag(&LIBAIO_VECTORED)
    });
    check("--ioengine=pvsync2 --hipri --hipri_percentage=30", |o| {
        o.engine_values.number(&HIPRI_PERCENTAGE) == Some(30)
    });
    refuse("--ioengine=pvsync2 --hipri_percentage=101", "out-of-range");
    check("--ioengine=mmap --thp=1", |o| o.engine_values.flag(&THP));
    refuse("--ioengine=psync --thp=1", "other-engine");
}
