//! Recordings of jobs in virtual time: every op, at the time of its issue.

use fathom_core::Nanos;
use fathom_sim::Constant;
use fathom_virtual::simulate_logged;

use crate::common::{plan, record};

/// Runs WORDS on a device of 100 µs and returns the text of the only recording.
#[track_caller]
fn recorded(words: &str) -> String {
    let device = Constant::new(Nanos::from_micros(100));
    let (_, mut files) = simulate_logged(&plan(words), &device).expect(words);
    let (name, bytes) = files.pop().expect("a recording");
    assert!(name == "rec" && files.is_empty());
    String::from_utf8(bytes).expect("text")
}

#[test]
fn ops_have_the_time_of_their_issue() {
    let log = recorded(
        "--name=t --filename=/a --rw=write --size=16k --bs=4k --fdatasync=2 \
                        --startdelay=1 --write_iolog=rec",
    );
    let want = "fio version 3 iolog\n0 /a add\n0 /a open\n0 /a write 0 4096\n\
        100 /a write 4096 4096\n200 /a datasync 0 0\n300 /a write 8192 4096\n\
        400 /a write 12288 4096\n400 /a close\n";
    assert_eq!(log, want);
}

#[test]
fn a_replay_of_a_recording_is_the_job_again() {
    let job = "--name=t --filename=/a --rw=randrw --size=40m --bs=4k --ioengine=libaio --iodepth=8";
    let log = recorded(&format!("{job} --write_iolog=rec"));
    let ops = log.lines().filter(|line| line.ends_with(" 4096"));
    assert_eq!(ops.count(), 10_240);
    let path = std::env::temp_dir().join(format!("fathom-recorded-{}", std::process::id()));
    std::fs::write(&path, log).expect("a log");
    let again = format!(
        "--name=t --ioengine=libaio --iodepth=8 --read_iolog={}",
        path.display()
    );
    let (job, again) = (record(job), record(&again));
    let sums = |record: &fathom_record::Record| {
        let directions = &record.jobs[0].directions;
        [&directions.read, &directions.write].map(|one| (one.ios, one.bytes, one.runtime_ms))
    };
    assert_eq!(sums(&again), sums(&job));
    std::fs::remove_file(&path).expect("removed");
}

#[test]
fn recording_changes_no_result() {
    for depth in [1, 16] {
        let job = format!(
            "--name=t --filename=/a --rw=randrw --size=4m --ioengine=libaio --iodepth={depth}"
        );
        let device = Constant::new(Nanos::from_micros(100));
        let with = plan(&format!("{job} --write_iolog=rec"));
        let (mut with, _) = simulate_logged(&with, &device).expect("a run");
        let without = record(&job);
        with.jobs[0].options.clone_from(&without.jobs[0].options);
        assert_eq!(format!("{with:?}"), format!("{without:?}"));
    }
}
