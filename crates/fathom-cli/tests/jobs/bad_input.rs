//! Invalid plans: messages and exit codes under both names of the program.

use crate::common::Folder;

/// Command line, exit code as `fathom` and as `fio`, and a part of the message on either stream.
const CASES: &[(&str, i32, i32, &str)] = &[
    // fio ends with 0; as `fathom` the exit code reports the failure.
    ("--exec_prerun=false", 1, 0, "exec_prerun `false` failed"),
    // Groups whose jobs are all hidden, or were skipped.
    ("--stats=0", 0, 0, ""),
    ("--stats=0 --numjobs=3 --group_reporting", 0, 0, ""),
    (
        "--stats=0 --name=b --new_group --ioengine=null --size=1m",
        0,
        0,
        "b: (groupid=1, jobs=1)",
    ),
    (
        "--exec_prerun=false --numjobs=2 --group_reporting",
        1,
        0,
        "failed",
    ),
    ("--wait_for=a", 2, 1, "the job waits for itself"),
    ("--wait_for=nobody", 2, 1, "no job `nobody`"),
    (
        "--runtime=1 --steadystate=iops:5% --ss_dur=5",
        0,
        0,
        "steady state cannot be attained: it needs 5 s of samples, but the job runs for 1 s",
    ),
    (
        "--steadystate=iops:5% --ss_dur=4294967295",
        2,
        1,
        "a window of 4294967295 intervals, more than the 1000000 that reports can have",
    ),
    ("--numjobs=4097", 2, 1, "more than 4096 jobs"),
    ("--iodepth=0", 2, 1, "value out of range: 0"),
    ("--bs=2m", 2, 1, "exceeds the size"),
    ("cycle.fio", 2, 1, "includes itself"),
    ("empty.fio", 2, 1, "no sections"),
    ("globals.fio", 2, 1, "no jobs defined"),
    (".", 2, 1, "Is a directory"),
    ("/dev/zero", 2, 1, "not a text file"),
];

#[test]
fn nonsense_is_reported_with_the_exit_code_of_each_name() {
    let folder = Folder::new();
    folder.write("cycle.fio", "[a]\ninclude other.fio\n");
    folder.write("other.fio", "include cycle.fio\n");
    folder.write("empty.fio", "# nothing\n");
    folder.write("globals.fio", "[global]\nbs=4k\n");
    for (words, as_fathom, as_fio, said) in CASES {
        // A job file has its own jobs, or none.
        let words = match words.starts_with("--") {
            true => format!("--name=a --ioengine=null --size=1m {words}"),
            false => (*words).to_owned(),
        };
        let runs = [
            (folder.fathom(&format!("run {words}")), as_fathom),
            (folder.fio(&words), as_fio),
        ];
        for (run, code) in runs {
            let all = format!("{}{}", run.out, run.err);
            assert_eq!(run.code, Some(*code), "{words}: {all}");
            assert!(all.contains(said), "{words}: {all}");
        }
    }
}

#[test]
fn a_report_without_jobs_is_still_a_document() {
    let folder = Folder::new();
    let words = "--name=a --ioengine=null --size=1m --stats=0 --output-format=json";
    let run = folder.fio(words);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(json["jobs"].as_array().map(Vec::len), Some(0));
}
