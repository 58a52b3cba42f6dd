//! Verification of blocks that are written repeatedly, on real files.

use crate::common::Folder;
use serde_json::Value;

const ENGINES: [&str; 3] = ["psync", "libaio", "io_uring"];

fn ios(job: &Value, direction: &str) -> u64 {
    job[direction]["total_ios"].as_u64().unwrap()
}

/// Runs a job with `verify=crc32c` on each engine, which must succeed; returns the jobs.
#[track_caller]
fn check(words: &str, mut check: impl FnMut(&[Value])) {
    for engine in ENGINES {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --verify=crc32c --ioengine={engine} --output-format=json {words}"
        );
        let run = folder.fathom(&words);
        if let Some(why) = run.refused() {
            println!("skipped: {engine}: {why}");
            continue;
        }
        check(run.expect(0).json()["jobs"].as_array().unwrap());
    }
}

#[test]
fn overlapping_writes_give_no_false_alarm() {
    let overlaps = "--rw=randwrite --norandommap --size=256k --io_size=2m --iodepth=16";
    for sizes in ["--bs=4k", "--bsrange=4k-32k", "--bs=8k --blockalign=4k"] {
        check(&format!("{overlaps} {sizes}"), |jobs| {
            assert!(ios(&jobs[0], "read") > 0);
        });
    }
    check(
        "--rw=randrw --bs=4k --norandommap --size=256k --io_size=2m --iodepth=16",
        |_| {},
    );
    check(
        "--rw=randwrite --bs=4k --size=256k --loops=3 --iodepth=8",
        |jobs| {
            assert_eq!((ios(&jobs[0], "write"), ios(&jobs[0], "read")), (192, 192));
        },
    );
}

#[test]
fn jobs_on_one_file_verify_whichever_wrote_last() {
    let shared = "--filename=data --size=1m --bs=4k --iodepth=8 --numjobs=4";
    check(&format!("{shared} --rw=randwrite --norandommap"), |jobs| {
        assert!(jobs.iter().map(|job| ios(job, "read")).sum::<u64>() > 0);
    });
    check(&format!("{shared} --rw=randrw --verify_backlog=8"), |_| {});
    // What one writes in blocks of a pattern, the other reads by the sector.
    let pattern = "--verify=pattern_hdr --verify_pattern=0x0102030405 --verify_interval=512";
    let by_sector = format!("--name=u --filename=data --size=1m --bs=512 --rw=randrw {pattern}");
    check(
        &format!("{shared} --rw=randrw {pattern} {by_sector}"),
        |_| {},
    );
    // One of them does not verify.
    let other = "--name=u --filename=data --size=1m --bs=8k --rw=randwrite --verify=0";
    check(&format!("{shared} --rw=randwrite {other}"), |_| {});
}

#[test]
fn what_a_job_without_verification_damages_is_found_by_those_that_read() {
    for bytes in ["4k", "4"] {
        let common = "--filename=data --filesize=1m --stonewall";
        let verified = format!("--bs=4k --verify=crc32c {common}");
        let folder = Folder::new();
        let run = folder.fathom(&format!(
            "run --continue_on_error=verify --output-format=json --name=w --rw=write {verified} \
             --name=u --rw=randwrite --bs={bytes} --number_ios=1 {common} \
             --name=r --rw=read {verified} --name=o --rw=write --verify_only {verified}"
        ));
        let run = run.expect(1);
        let report = run.json();
        let errors = |job: usize| report["jobs"][job]["total_err"].as_u64();
        let all = [0, 1, 2, 3].map(errors);
        assert_eq!(all, [Some(0), Some(0), Some(1), Some(1)], "{}", run.err);
    }
}

#[test]
fn a_file_may_have_several_names() {
    let job = "--size=1m --bs=4k --rw=randwrite --norandommap --io_size=8m";
    check(
        &format!("{job} --filename=data --name=u {job} --filename=./data --verify=crc32c"),
        |jobs| assert!(jobs.iter().all(|job| ios(job, "read") > 0)),
    );
    check(
        "--size=1m --bs=4k --rw=randwrite --filename=data:./data",
        |_| {},
    );
}

#[test]
fn a_backlog_is_read_back_in_between() {
    let job = "--rw=randwrite --bs=4k --size=64k --iodepth=4";
    for batch in ["", "--verify_backlog_batch=2", "--verify_backlog_batch=8"] {
        check(&format!("{job} --verify_backlog=4 {batch}"), |jobs| {
            assert_eq!(
                (ios(&jobs[0], "write"), ios(&jobs[0], "read")),
                (16, 16),
                "{batch}"
            );
        });
    }
    check(&format!("{job} --verify_backlog=4 --do_verify=0"), |jobs| {
        assert_eq!(ios(&jobs[0], "read"), 0);
    });
    // Reads of the backlog count as ops, as in fio.
    for (loops, each) in [(1, 4), (2, 8)] {
        let limit = format!("--number_ios=8 --loops={loops}");
        check(
            &format!("{job} --iodepth=1 --verify_backlog=2 {limit}"),
            |jobs| {
                let ops = (ios(&jobs[0], "write"), ios(&jobs[0], "read"));
                assert_eq!(ops, (each, each));
            },
        );
    }
}

#[test]
fn a_time_based_job_verifies_its_backlog() {
    let job = "--rw=randwrite --bs=4k --size=256k --time_based --runtime=300ms";
    check(&format!("{job} --verify_backlog=16"), |jobs| {
        let (written, read) = (ios(&jobs[0], "write"), ios(&jobs[0], "read"));
        assert!(read > 0 && read <= written, "{read} of {written}");
    });
}

#[test]
fn a_map_beyond_its_limit_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let words = "run --name=t --rw=write --verify=crc32c --size=1m --verify_map_limit=1023";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("1024 B of memory"), "{}", run.err);
    assert!(run.err.contains("verify_map_limit"), "{}", run.err);
    assert!(folder.names().is_empty());
}
