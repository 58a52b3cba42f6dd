//! Values of options on features of the device, accepted and refused.

mod world;

use world::{check, refuse};

#[test]
fn atomic_writes() {
    let base = "--atomic=1 --direct=1 --rw=randwrite --ioengine=io_uring";
    check(&format!("{base} --bs=16k"), |o| o.device.atomic);
    check("--atomic=1 --rw=read", |o| o.device.atomic);
    check("--atomic=0 --rw=write", |o| !o.device.atomic);
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
