//! Lines that programs look for in the output of fio, under its name.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::common::{Folder, Run};

/// Runs a job under fio's name, which fails.
fn failed(folder: &Folder, words: &str) -> Run {
    folder.fio(&format!("--name=a --size=1m {words}")).expect(1)
}

#[track_caller]
fn check(run: &Run, said: &[&str], function: &str, error: &str) {
    for line in said {
        assert!(run.err.lines().any(|one| one == *line), "{line}: {run:#?}");
    }
    let words = format!(" (func={function}, error={error}): pid=");
    assert!(run.out.contains(&words), "{words}: {run:#?}");
}

#[test]
fn failed_ops_have_the_words_of_fio() {
    let run = failed(&Folder::new(), "--rw=write --filename=/dev/full");
    let said = "fio: io_u error on file /dev/full: No space left on device: write offset=0, \
                buflen=4096";
    check(&run, &[said], "io_u error", "No space left on device");
}

#[test]
fn late_ops_have_the_words_of_fio() {
    let run = failed(&Folder::new(), "--rw=read --filename=x --max_latency=1us");
    let error = "Connection timed out";
    check(&run, &[], "max latency exceeded", error);
    let said = |line: &str| {
        line.starts_with("fio: latency of ")
            && line.ends_with(" nsec exceeds specified max (1000 nsec): x read 0 4096")
    };
    assert!(run.err.lines().any(said), "{run:#?}");
}

#[test]
fn mismatches_have_the_words_of_fio() {
    let folder = Folder::new();
    let place = "at file x offset 131072, length 65536 (requested block: offset=131072, \
                 length=65536)";
    for (method, said) in [
        (
            "pattern --verify_pattern=0x11",
            vec![
                "fio: got pattern '41', wanted '11'. Bad bits 2".to_owned(),
                "fio: bad pattern block offset 1000".to_owned(),
                format!("pattern: verify failed {place}"),
            ],
        ),
        ("crc32c", vec![format!("crc32c: verify failed {place}")]),
    ] {
        let words = format!("--bs=64k --filename=x --verify={method}");
        let write = format!("--name=a --size=1m --rw=write --do_verify=0 {words}");
        folder.fio(&write).expect(0);
        let file = File::options().write(true).open(folder.path().join("x"));
        file.unwrap().write_at(b"A", 131_072 + 1000).unwrap();
        let run = failed(&folder, &format!("--rw=read {words}"));
        let error = "Invalid or incomplete multibyte or wide character";
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        check(&run, &said, "io_u_sync_complete", error);
        let sums = ["       Expected CRC: ", "       Received CRC: "];
        let has = |sum: &&str| run.err.lines().any(|line| line.starts_with(sum));
        let count = sums.iter().filter(|sum| has(sum)).count();
        assert_eq!(count, if method == "crc32c" { 2 } else { 0 }, "{run:#?}");
    }
}

#[test]
fn notes_stand_before_the_jobs() {
    let folder = Folder::new();
    folder.write("x", vec![1; 65_536]);
    // A synchronous engine at a depth of 8: a note of fio's own, and checks that fail.
    let words = "--name=iops --ioengine=null --size=64k --rw=read --iodepth=8 --filename=x \
                 --rate_iops=1000 --bs=4q --bs=4k";
    let run = folder.fio(&words.replace("null", "psync")).expect(0);
    let lines: Vec<&str> = run.out.lines().collect();
    let of_job = lines
        .iter()
        .position(|line| line.starts_with("iops: (groupid="));
    let of_job = of_job.unwrap_or_else(|| panic!("{run:#?}"));
    let of_start = lines.iter().position(|line| *line == "Starting 1 thread");
    let notes = &lines[of_start.unwrap() + 1..of_job - 1];
    assert!(notes.len() > 2, "{run:#?}");
    assert!(
        notes.iter().all(|line| line.starts_with("note: ")),
        "{run:#?}"
    );
    let both = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will \
                be capped at 1";
    assert_eq!(
        notes.iter().filter(|line| **line == both).count(),
        1,
        "{run:#?}"
    );
    assert!(
        notes.iter().any(|line| line.contains("`q` is not a unit")),
        "{run:#?}"
    );
    assert!(!run.out.contains("What to know"), "{run:#?}");
    assert!(
        !lines[of_job..].iter().any(|line| line.contains("note: ")),
        "{run:#?}"
    );
    assert!(
        run.out.contains("resp (") && !run.out.contains("resp percentiles"),
        "{run:#?}"
    );
    assert_eq!(run.err, "");
    let run = folder
        .fathom(&format!("run {}", words.replace("--bs=4q ", "")))
        .expect(0);
    assert!(run.out.contains("resp percentiles"), "{run:#?}");
}

#[test]
fn jobs_whose_files_are_out_of_reach_fail_alone() {
    let folder = Folder::new();
    folder.write("there", vec![1; 65_536]);
    folder.write("short", vec![1; 4096]);
    for (words, errno) in [
        ("--rw=read --filename=there/x", 20),
        ("--rw=write --filename=there/x", 20),
        ("--readonly --rw=read --filename=missing", 2),
        ("--readonly --rw=read --filename=short", 5),
    ] {
        let (switch, words) = match words.strip_prefix("--readonly ") {
            Some(rest) => ("--readonly ", rest),
            None => ("", words),
        };
        let words = format!(
            "{switch}--output-format=json --size=64k --name=a {words} --name=b --rw=read \
             --filename=there"
        );
        let report = folder.fio(&words).expect(1).json();
        let jobs = &report["jobs"];
        assert_eq!(jobs[0]["error"], errno, "{words}: {report}");
        assert_eq!(jobs[1]["error"], 0, "{words}: {report}");
        assert_eq!(jobs[1]["read"]["total_ios"], 16, "{words}: {report}");
        assert!(!folder.path().join("missing").exists());
    }
}
