//! Syncs and trims that an engine cannot queue: in batches with other ops they are submitted alone,
//! and later ops wait for them.

use crate::common::{Folder, Run};
use serde_json::Value;

/// Asynchronous engines, and synchronous ones that offload workers make asynchronous.
const ENGINES: [&str; 5] = [
    "libaio",
    "io_uring",
    "psync --io_submit_mode=offload",
    "libaio --io_submit_mode=offload",
    "io_uring --io_submit_mode=offload --offload_kick=each",
];

/// Runs a job and returns its part of the report, or why the kernel lacks the engine. Kills a run
/// that does not end.
fn job(folder: &Folder, words: &str) -> Result<Value, String> {
    let words = format!(
        "-s KILL 60 {} run --name=t --filename=data --output-format=json {words}",
        env!("CARGO_BIN_EXE_fathom")
    );
    let run = Run::of(folder.command("timeout", &words));
    if let Some(why) = run.refused() {
        return Err(why.into());
    }
    Ok(run.expect(0).json()["jobs"][0].clone())
}

#[test]
fn trimmed_and_written_blocks_hold_data() {
    for engine in ENGINES {
        for rest in ["rw=trimwrite", "rw=randtrimwrite --iodepth_batch=8"] {
            let folder = Folder::new();
            // All ones: what a trim leaves is zeroes.
            folder.write("data", vec![0x11; 2 << 20]);
            let words = format!(
                "--ioengine={engine} --size=2m --bs=4k --iodepth=32 --buffer_pattern=0xff --{rest}"
            );
            let job = match job(&folder, &words) {
                Ok(job) => job,
                Err(why) => {
                    println!("skipped: {why}");
                    continue;
                }
            };
            assert_eq!(job["write"]["total_ios"], 512, "{words}");
            assert_eq!(job["trim"]["total_ios"], 512, "{words}");
            let data = std::fs::read(folder.path().join("data")).unwrap();
            let other = data.iter().filter(|byte| **byte != 0xff).count();
            assert_eq!(other, 0, "{words}: bytes that were not written last");
        }
    }
}

#[test]
fn a_sync_within_a_batch_does_not_deadlock() {
    for engine in ENGINES {
        for sync in ["fsync=3", "fdatasync=2", "sync_file_range=write:5"] {
            let folder = Folder::new();
            let words = format!(
                "--ioengine={engine} --rw=write --size=256k --bs=4k --iodepth=7 --iodepth_batch=4 \
                 --{sync}"
            );
            let job = match job(&folder, &words) {
                Ok(job) => job,
                Err(why) => {
                    println!("skipped: {why}");
                    continue;
                }
            };
            assert_eq!(job["write"]["total_ios"], 64, "{words}");
            assert!(job["sync"]["total_ios"].as_u64() >= Some(12), "{words}");
        }
    }
}
