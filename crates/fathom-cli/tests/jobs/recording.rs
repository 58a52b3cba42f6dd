//! Recordings of jobs (`write_iolog`): replayed by us and, where it is installed, by fio.

use crate::common::Folder;
use crate::common::sums::{by_fio, sums};
use serde_json::Value;

/// Job with reads, writes and syncs over two files, the same in each run.
const MIXED: &str = "--name=job --rw=randrw --size=128k --bs=4k,8k --nrfiles=2 --fsync=3 \
                     --fdatasync=2 --end_fsync=1 --ioengine=psync";

fn fathom(folder: &Folder, words: &str) -> Value {
    let words = format!("run --output-format=json {words}");
    folder.fathom(&words).expect(0).json()
}

/// Returns the ops of a recording: action, file, offset, length.
fn ops(log: &str) -> Vec<[String; 4]> {
    let lines = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let ops = lines.filter(|fields| fields.len() == 5 && fields[0] != "fio");
    ops.map(|op| [op[2], op[1], op[3], op[4]].map(str::to_owned))
        .collect()
}

#[test]
fn recordings_are_replayed_in_full() {
    let folder = Folder::new();
    let recorded = sums(&fathom(&folder, &format!("{MIXED} --write_iolog=log")));
    let log = folder.read("log");
    let syncs = ops(&log).iter().filter(|op| op[0] == "sync").count();
    let datasyncs = ops(&log).iter().filter(|op| op[0] == "datasync").count();
    assert!(syncs > 2 && datasyncs > 1, "{log}");
    assert_eq!(
        ops(&log).len() as u64,
        recorded[0].0 + recorded[1].0 + (syncs + datasyncs) as u64
    );
    let ours = fathom(&folder, "--name=r --read_iolog=log");
    assert_eq!(sums(&ours), recorded);
    if let Some(fio) = by_fio(&folder, "--name=r --read_iolog=log") {
        assert_eq!(sums(&fio), recorded);
    }
}

#[test]
fn recordings_of_fio_are_replayed_in_full() {
    let folder = Folder::new();
    let Some(recorded) = by_fio(&folder, &format!("{MIXED} --write_iolog=log")) else {
        return;
    };
    let ours = fathom(&folder, "--name=r --read_iolog=log");
    assert_eq!(sums(&ours), sums(&recorded));
}

#[test]
fn a_replay_has_the_order_of_the_job() {
    let folder = Folder::new();
    fathom(
        &folder,
        "--name=job --rw=randrw --size=256k --bsrange=512-8k --write_iolog=log",
    );
    fathom(
        &folder,
        "--name=r --read_iolog=log --write_lat_log=r --log_offset=1",
    );
    let recorded = ops(&folder.read("log"))
        .into_iter()
        .map(|[action, _, offset, length]| {
            let direction = if action == "read" { "0" } else { "1" };
            [direction.to_owned(), length, offset]
        });
    let log = folder.read("r_lat.1.log");
    let replayed = log.lines().map(|line| {
        let fields: Vec<_> = line.split(", ").collect();
        [fields[2], fields[3], fields[4]].map(str::to_owned)
    });
    let (recorded, replayed): (Vec<_>, Vec<_>) = (recorded.collect(), replayed.collect());
    assert!(recorded.len() > 32, "{recorded:?}");
    assert_eq!(replayed, recorded);
}

#[test]
fn trims_and_verification_are_recorded() {
    let folder = Folder::new();
    let job = "--name=t --filename=data --size=64k --bs=4k";
    fathom(
        &folder,
        &format!("{job} --rw=write --verify=crc32c --write_iolog=verified"),
    );
    let verified = ops(&folder.read("verified"));
    let count = |action: &str| verified.iter().filter(|op| op[0] == action).count();
    // As in fio 3.33.
    assert_eq!((count("write"), count("read")), (16, 16));
    fathom(
        &folder,
        &format!("{job} --rw=randtrim --write_iolog=trimmed"),
    );
    let trimmed = ops(&folder.read("trimmed"));
    assert_eq!(trimmed.iter().filter(|op| op[0] == "trim").count(), 16);
}

#[test]
fn an_earlier_log_is_whole_until_the_recording_is() {
    let folder = Folder::new();
    folder.write("log", "earlier");
    let job = "--name=t --filename=data --size=64k --bs=4k";
    let run = folder.fathom(&format!(
        "run {job} --rw=write --readonly --write_iolog=log"
    ));
    run.expect(2);
    assert_eq!(
        (folder.names(), folder.read("log").as_str()),
        (vec!["log".to_owned()], "earlier")
    );
    // A job that fails before its first op has not recorded anything.
    let fails = format!("run {job} --rw=read --exec_prerun=false --write_iolog=log");
    folder.fathom(&fails).expect(1);
    assert_eq!(folder.read("log"), "earlier");
    fathom(&folder, &format!("{job} --rw=write --write_iolog=log"));
    assert_eq!(folder.names(), ["data", "log", "t.prerun.txt"]);
    assert_eq!(ops(&folder.read("log")).len(), 16);
}

#[test]
fn a_recording_that_cannot_be_written_ends_the_job() {
    let folder = Folder::new();
    let endless = "--time_based --runtime=1000";
    for (rest, want) in [
        ("", "cannot write /dev/full: No space left on device"),
        (endless, "write_iolog: No space left on device"),
    ] {
        let words =
            format!("run --name=t --ioengine=null --size=1m {rest} --write_iolog=/dev/full");
        let run = folder.fathom(&words).expect(1);
        assert!(run.err.contains(want), "{}", run.err);
    }
    let run = folder.fathom("run --name=t --size=4k --rw=write --write_iolog=none/log");
    let run = run.expect(2);
    assert!(
        run.err.contains("none/log: No such file or directory"),
        "{}",
        run.err
    );
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn what_a_log_cannot_hold_is_refused() {
    let folder = Folder::new();
    let job = "--size=4k --rw=write --write_iolog=log";
    for (words, want) in [
        (
            format!("--name=a --numjobs=2 {job}"),
            "the clones of a job share one log",
        ),
        (
            format!("--name=a {job} --name=b {job}"),
            "two jobs record to one log",
        ),
        (
            format!("--name=a --filename=log {job}"),
            "a job's data are in this file",
        ),
        (
            format!("--name=a --filename=./log {job}"),
            "a job's data are in this file",
        ),
    ] {
        let run = folder.fathom(&format!("run {words}")).expect(2);
        assert!(run.err.contains(want), "{}", run.err);
    }
    folder.write("data", "content");
    std::os::unix::fs::symlink("data", folder.path().join("link")).unwrap();
    let words = "run --name=a --filename=data --rw=read --write_iolog=link";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("a job's data are in"), "{}", run.err);
    assert_eq!(folder.read("data"), "content");
    for name in ["data", "link"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    folder.write(
        "job.fio",
        "[a]\nfilename=two words\nrw=write\nsize=4k\nwrite_iolog=log\n",
    );
    let run = folder.fathom("run job.fio").expect(2);
    assert!(run.err.contains("a file name with blanks"), "{}", run.err);
    assert_eq!(folder.names(), ["job.fio"]);
}

#[test]
fn a_replay_is_not_recorded() {
    let folder = Folder::new();
    folder.write(
        "old",
        "fio version 3 iolog\n0 a add\n0 a open\n0 a write 0 512\n0 a close\n",
    );
    let run = folder
        .fathom("run --name=r --read_iolog=old --write_iolog=new")
        .expect(0);
    assert!(
        run.err
            .contains("without effect in a replay: `write_iolog`"),
        "{}",
        run.err
    );
    assert_eq!(folder.names(), ["a", "old"]);
}
