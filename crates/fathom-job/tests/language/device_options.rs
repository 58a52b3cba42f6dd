//! Values of options on features of the device, accepted and refused.

use crate::world::{check, refuse};
use fathom_job::StreamChoice;

#[test]
fn atomic_writes() {
    let base = "--atomic=1 --direct=1 --rw=randwrite --ioengine=io_uring";
    check(&format!("{base} --bs=16k"), |o| o.device.atomic);
    check("--atomic=1 --rw=read", |o| o.device.atomic);
    check("--atomic=0 --rw=write", |o| !o.device.atomic);
    check("--block_error_percentiles=1", |o| o.device.block_errors);
    for engine in ["libaio", "pvsync2"] {
        check(&format!("{base} --ioengine={engine}"), |o| o.device.atomic);
    }
    for excluded in [
        "--ioengine=psync",
        "--direct=0",
        "--bs=12k",
        "--bsrange=4k-8k",
        "--bssplit=4k/50:8k/50",
        "--bs=8k --blockalign=4k",
        "--bs=8k --rw=write:4k",
    ] {
        refuse(&format!("{base} {excluded}"), "not-atomic");
    }
    check(&format!("{base} --bs=8k --rw=write:16k"), |o| {
        o.device.atomic
    });
}

#[test]
fn preconditioning() {
    check("--sprandom=1 --rw=randwrite --norandommap", |o| {
        let device = &o.device;
        device.sprandom && device.spr_num_regions == 100 && device.spr_op == 0.15
    });
    let given = "--sprandom=1 --rw=randwrite --spr_num_regions=2 --spr_op=1 --spr_cs=1m";
    check(given, |o| {
        let device = &o.device;
        (device.spr_num_regions, device.spr_op, device.spr_cs) == (2, 1.0, 1 << 20)
    });
    check("--sprandom=0 --rw=read", |o| !o.device.sprandom);
    for excluded in [
        "--rw=write",
        "--rw=randrw",
        "--rw=randwrite:8",
        "--bsrange=4k-8k",
        "--bs=8k --ba=4k",
        "--random_generator=tausworthe",
        "--random_distribution=zipf",
        "--percentage_random=50",
        "--zonemode=strided --zonesize=1m",
        "--norandommap=0",
    ] {
        let words = format!("--sprandom=1 --rw=randwrite {excluded}");
        refuse(&words, "not-preconditioning");
    }
    for share in ["0", "1.5", "-0.1", "0.1:0.2", "x"] {
        refuse(&format!("--spr_op={share}"), "bad-value");
    }
    refuse("--spr_num_regions=1", "out-of-range");
}

#[test]
fn write_streams() {
    let base = "--ioengine=io_uring --direct=1 --rw=write --dataplacement=fdp";
    check(base, |o| {
        o.device.has_streams() && o.device.placement.is_empty()
    });
    check(&format!("{base} --plids=0-2,5 --plid_select=random"), |o| {
        o.device.placement == [0, 1, 2, 5] && o.device.stream_choice == StreamChoice::Random
    });
    check("--ioengine=io_uring --fdp=1 --fdp_pli=3 --rw=read", |o| {
        o.device.has_streams() && o.device.placement == [3]
    });
    check(&format!("{base} --dataplacement=none"), |o| {
        !o.device.has_streams()
    });
    refuse(&format!("{base} --direct=0"), "no-streams");
    refuse("--ioengine=psync --fdp=1", "other-engine");
    // A section for all jobs may set them where they have no effect.
    check(
        "--ioengine=libaio --fdp=0 --dataplacement=none --plids=1 --plid_select=random",
        |o| !o.device.has_streams(),
    );
    for list in ["x", "3-1", "255", "1,,2", "-1"] {
        refuse(&format!("{base} --plids={list}"), "bad-value");
    }
    refuse(
        &format!("{base} --fdp=1 --dataplacement=none"),
        "contradiction",
    );
    refuse(&format!("{base} --plid_select=scheme"), "no-streams");
    let device = "--ioengine=io_uring_cmd --cmd_type=nvme --rw=write --fdp=1";
    let scheme = format!("{device} --plid_select=scheme");
    check(&format!("{scheme} --dp_scheme=file"), |o| {
        o.device.stream_choice == StreamChoice::Scheme && o.device.scheme.as_deref() == Some("file")
    });
    refuse(&scheme, "no-scheme");
}

#[test]
fn trims_of_several_ranges() {
    let base = "--ioengine=io_uring_cmd --cmd_type=nvme --num_range=8";
    for rw in ["trim", "randtrim"] {
        check(&format!("{base} --rw={rw}"), |o| o.trims.ranges == 8);
    }
    for rw in ["read", "randwrite", "rw", "trimwrite"] {
        refuse(&format!("{base} --rw={rw}"), "no-trim-ranges");
    }
    refuse("--ioengine=psync --rw=trim --num_range=2", "no-trim-ranges");
    for excluded in [
        "--zonemode=zbd",
        "--verify=crc32c",
        "--serialize_overlap=1 --iodepth=2",
        "--block_error_percentiles=1",
        "--read_iolog=log",
        "--write_iolog=log",
        "--io_submit_mode=offload",
        "--filename=/dev/ng0n1:/dev/ng1n1",
        "--bs=512m",
        "--bsrange=4k-1g",
    ] {
        refuse(&format!("{base} --rw=trim {excluded}"), "no-trim-ranges");
    }
    check(
        &format!(
            "{base} --rw=trim --filename=/dev/ng0n1:/dev/ng1n1 --file_service_type=sequential"
        ),
        |o| o.nrfiles == 2,
    );
    check("--ioengine=psync --num_range=1", |o| o.trims.ranges == 1);
}

#[test]
fn trims_of_written_blocks() {
    let base = "--rw=randwrite --verify=crc32c --trim_percentage=30";
    check(base, |o| {
        let trims = o.trims;
        (
            trims.percentage,
            trims.verify_zero,
            trims.backlog,
            trims.batch,
        ) == (30, true, 0, 0)
    });
    let given = "--trim_verify_zero=0 --trim_backlog=1k --trim_backlog_batch=8";
    check(&format!("{base} {given}"), |o| {
        let trims = o.trims;
        !trims.verify_zero && (trims.backlog, trims.batch) == (1024, 8)
    });
    check("--rw=read --trim_percentage=0 --trim_backlog=8", |_| true);
    for excluded in ["--rw=read", "--rw=randtrim", "--verify=0", "--do_verify=0"] {
        refuse(&format!("{base} {excluded}"), "no-blocks-to-trim");
    }
    refuse("--trim_percentage=101", "out-of-range");
}
