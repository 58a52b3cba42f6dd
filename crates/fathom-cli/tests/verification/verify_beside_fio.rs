//! Blocks that one program wrote are verified by the other: Fathom and the fio that is installed,
//! by every method that both have.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Run, each};
use fathom_checksum::CHECKSUMS;

/// A job of both programs, without its direction.
const JOB: &str = "--name=t --bs=4k --size=64k --filename=data";

/// Option by which Fathom writes headers that the installed fio knows; `None` without one.
fn header_of_fio() -> Option<&'static str> {
    let Ok(output) = Command::new(FIO).arg("--version").output() else {
        println!("skipped: no fio");
        return None;
    };
    match String::from_utf8_lossy(&output.stdout).trim() {
        "fio-3.33" => Some("--verify_header=fio-3.33"),
        "fio-3.42" => Some("--verify_header=fio-3.42"),
        other => {
            println!("skipped: the header of {other} is not known");
            None
        }
    }
}

/// Runs fio, for 20 seconds at most.
fn fio(folder: &Folder, words: &str) -> Run {
    let words = format!("20 {FIO} {words} --verify_state_save=0 --allow_file_create=1");
    Run::of(folder.command("timeout", &words))
}

/// Checks jobs with these options, some at a time.
fn check_all(jobs: &[String]) {
    if let Some(header) = header_of_fio() {
        each(jobs, |options| check(header, options));
    }
}

/// Has one program write and the other verify, in both directions, and both find damage.
fn check(header: &str, options: &str) {
    let folder = Folder::new();
    let words = |direction: &str| format!("{JOB} {options} --rw={direction}");
    let data = folder.path().join("data");
    let clear = || std::fs::remove_file(&data).unwrap();

    fio(&folder, &words("write")).expect(0);
    let ours = folder.fathom(&format!("run {}", words("read")));
    assert_eq!(ours.code, Some(0), "{options}: written by fio: {ours:#?}");
    if damage(&data, options) {
        let ours = folder.fathom(&format!("run {}", words("read")));
        assert_eq!(ours.code, Some(1), "{options}: damaged: {ours:#?}");
    }
    clear();

    folder
        .fathom(&format!("run {} {header}", words("randwrite")))
        .expect(0);
    let theirs = fio(&folder, &words("read"));
    assert_eq!(
        theirs.code,
        Some(0),
        "{options}: written by us: {theirs:#?}"
    );
    if damage(&data, options) {
        let theirs = fio(&folder, &words("read"));
        // fio's exit code does not report damage after the first interval of an op.
        let found = theirs.code != Some(0) || theirs.err.contains("verify failed");
        assert!(found, "{options}: damaged: {theirs:#?}");
    }
}

/// Changes a byte near the third block's end and returns true, unless the method does not cover it.
fn damage(data: &Path, options: &str) -> bool {
    if options.contains("verify=meta") || options.contains("verify=null") {
        return false;
    }
    let mut bytes = std::fs::read(data).unwrap();
    bytes[3 * 4096 - 9] ^= 0x20;
    std::fs::write(data, bytes).unwrap();
    true
}

#[test]
fn every_checksum_is_understood_by_both() {
    let intervals = "--verify_interval=512 --verify_pattern=0xdeadbeef";
    let methods = CHECKSUMS.iter().flat_map(|row| row.names()).chain(["meta"]);
    let mut jobs = vec!["--verify=null".to_owned()];
    for method in methods {
        jobs.push(format!("--verify={method}"));
        jobs.push(format!("--verify={method} {intervals}"));
    }
    check_all(&jobs);
}

#[test]
fn patterns_are_understood_by_both() {
    let mut jobs = Vec::new();
    for pattern in ["0xff", "0xdeadbeef", "\"abc\"-12", "0x1122%o", "%o"] {
        // Without a method: in a header.
        for method in ["--verify=pattern", "--verify=crc32c", "--size=64k"] {
            let job = format!("{method} --verify_pattern={pattern}");
            jobs.push(format!("{job} --verify_interval=1024"));
            jobs.push(job);
        }
    }
    check_all(&jobs);
}

#[test]
fn places_of_headers_are_understood_by_both() {
    let jobs = [
        "--verify=crc32c --verify_offset=100",
        "--verify=sha3-512 --verify_offset=3000",
        "--verify=meta --verify_offset=48",
        "--verify=md5 --verify_interval=256 --verify_offset=64",
        // Not a pattern with a header: fio 3.33 takes the header at its offset for the pattern's.
        "--verify=crc64 --verify_interval=3000",
    ];
    check_all(&jobs.map(str::to_owned));
}

/// Random payloads differ between the programs, and so do seeds; neither matters to a reader.
#[test]
fn seeds_do_not_matter() {
    let jobs = ["--randseed=7", "--randrepeat=0", "--verify_fatal=1"];
    check_all(&jobs.map(|options| format!("--verify=crc32c {options}")));
}

#[test]
fn mixed_sizes_are_understood_by_both() {
    let jobs = [
        "--verify=crc32c --bsrange=4k-16k --verify_interval=1024",
        "--verify=xxhash --bssplit=4k/50:8k/50",
    ];
    check_all(&jobs.map(str::to_owned));
}

/// All blocks are written, so it does not matter that each program draws them in its own order.
#[test]
fn each_verifies_without_writing_what_the_other_wrote() {
    let Some(header) = header_of_fio() else {
        return;
    };
    for rw in ["write", "randwrite"] {
        for options in [
            "--verify=crc32c",
            "--verify=md5 --verify_interval=512 --verify_pattern=0xdeadbeef",
            "--verify=pattern --verify_pattern=%o --loops=2",
        ] {
            check_only(&format!("{JOB} --rw={rw} {options}"), header);
        }
    }
}

/// Has one program write and the other verify by the same job with `verify_only`, in both
/// directions, and both find damage.
#[track_caller]
fn check_only(job: &str, header: &str) {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let ours = |words: &str| folder.fathom(&format!("run {job} {header} {words}")).code;
    let theirs = |words: &str| fio(&folder, &format!("{job} {words}")).code;
    for (write, verify) in [
        (&theirs as &dyn Fn(&str) -> _, &ours as &dyn Fn(&str) -> _),
        (&ours, &theirs),
    ] {
        assert_eq!(write(""), Some(0), "{job}");
        let intact = std::fs::read(&data).unwrap();
        assert_eq!(verify("--verify_only"), Some(0), "{job}");
        assert_eq!(std::fs::read(&data).unwrap(), intact, "{job}");
        let mut damaged = intact;
        damaged[3 * 4096 - 300] ^= 0x20;
        std::fs::write(&data, &damaged).unwrap();
        let found = verify("--verify_only");
        // fio's exit code does not report damage after the first interval of an op.
        assert!(
            found == Some(1) || job.contains("interval"),
            "{job}: {found:?}"
        );
        std::fs::remove_file(&data).unwrap();
    }
}

const FIO: &str = "/usr/bin/fio";
