//! Merged traces (`merge_blktrace_file`), replayed by us and, where it is installed, by fio.

use crate::common::Folder;
use crate::common::sums::{by_fio, sums};
use serde_json::Value;

const READ: u32 = 1 << 16 | 1 << 20 | 1;
const WRITE: u32 = 1 << 17 | 1 << 20 | 1;

/// Returns a trace of `count` ops of 4 KiB, one every `every_us`, by turns of these actions.
fn trace(count: u64, every_us: u64, actions: &[u32], sector: u64) -> Vec<u8> {
    let mut log = Vec::new();
    for (op, action) in (0..count).zip(actions.iter().cycle()) {
        for word in [0x6561_7407_u32, 1] {
            log.extend(word.to_le_bytes());
        }
        log.extend((77_000_000 + op * every_us * 1_000).to_le_bytes());
        log.extend((sector + op * 8).to_le_bytes());
        for word in [4096, *action, 42, 8 << 20, 0, 0] {
            log.extend(word.to_le_bytes());
        }
    }
    log
}

/// Returns a folder with trace `a` of 20 reads and writes in 19 ms, and `b` of 10 reads in 27 ms.
fn traces() -> Folder {
    let folder = Folder::new();
    folder.write("a", trace(20, 1_000, &[READ, WRITE], 0));
    folder.write("b", trace(10, 3_000, &[READ], 1_000));
    folder
}

fn replay(folder: &Folder, words: &str) -> Value {
    let words = format!("run --name=r --output-format=json --replay_redirect=disk {words}");
    folder.fathom(&words).expect(0).json()
}

#[test]
fn a_merge_is_replayed_and_written() {
    let folder = traces();
    let merge = "--read_iolog=a:b --merge_blktrace_file=m";
    let ours = replay(&folder, merge);
    assert_eq!(sums(&ours), [(20, 20 * 4096), (10, 10 * 4096), (0, 0)]);
    assert!(ours["jobs"][0]["read"]["runtime"].as_u64() >= Some(27));
    // The file is the same replay again.
    assert_eq!(sums(&replay(&folder, "--read_iolog=m")), sums(&ours));
    let clones = replay(&folder, &format!("{merge} --numjobs=2 --group_reporting"));
    assert_eq!(sums(&clones)[0], (40, 40 * 4096));
    let Some(report) = by_fio(&folder, "--name=r --read_iolog=m --replay_redirect=disk") else {
        return;
    };
    assert_eq!(sums(&report), sums(&ours));
}

#[test]
fn traces_are_scaled_and_repeated() {
    let folder = traces();
    let lists = "--merge_blktrace_scalars=50:100 --merge_blktrace_iters=3:1";
    let merge = format!("--read_iolog=a:b --merge_blktrace_file=m {lists}");
    assert_eq!(sums(&replay(&folder, &merge))[1], (30, 30 * 4096));
    // Half of three times 19 ms.
    let merged = std::fs::read(folder.path().join("m")).unwrap();
    let last = &merged[merged.len() - 48..];
    let time = u64::from_le_bytes(last[8..16].try_into().unwrap());
    assert_eq!((merged.len() / 48, time), (70, 28_500_000));
}

#[test]
fn merging_alone_runs_no_job() {
    let folder = traces();
    for run in [
        folder
            .fathom("run --merge-blktrace-only --name=r --read_iolog=a:b --merge_blktrace_file=m"),
        folder.fio("--merge-blktrace-only --name=r --read_iolog=a:b --merge_blktrace_file=m"),
    ] {
        run.expect(0);
        assert_eq!(
            std::fs::read(folder.path().join("m")).unwrap().len(),
            30 * 48
        );
    }
    assert_eq!(folder.names(), ["a", "b", "bin", "m"]);
    let run = folder.fathom("run --merge-blktrace-only --name=r --read_iolog=a");
    assert!(
        run.expect(2)
            .err
            .contains("no job has `merge_blktrace_file`")
    );
}

#[test]
fn what_cannot_be_merged_is_refused() {
    let folder = traces();
    folder.write("m", "earlier");
    folder.write(
        "text",
        "fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 4096\n",
    );
    folder.write("bad", [trace(2, 1, &[READ], 0), vec![1; 480]].concat());
    for (words, want) in [
        ("--read_iolog=a:text", "text: byte 0: not a binary blktrace"),
        (
            "--read_iolog=a:bad",
            "bad: byte 96: not a trace record: 0x01010101",
        ),
        ("--read_iolog=a:none", "cannot read none: No such file"),
        ("", "nothing to merge"),
        (
            "--read_iolog=a:b --merge_blktrace_iters=2",
            "has 1 values for 2 logs",
        ),
        (
            "--read_iolog=a:b --merge_blktrace_iters=2:0",
            "`0` is not a whole number from 1 on",
        ),
        (
            "--read_iolog=a:b --merge_blktrace_scalars=-5:1",
            "`-5` is not a percentage",
        ),
        (
            "--read_iolog=a:b --merge_blktrace_file=a",
            "one of the traces is in this file",
        ),
    ] {
        for only in ["", "--merge-blktrace-only"] {
            let job = "--name=r --size=4k --replay_redirect=disk --merge_blktrace_file=m";
            let words = format!("run {only} {job} {words}");
            let run = folder.fathom(&words).expect(2);
            assert!(run.err.contains(want), "{words}: {}", run.err);
        }
        assert_eq!(folder.read("m"), "earlier");
        assert_eq!(folder.names(), ["a", "b", "bad", "m", "text"]);
    }
}

#[test]
fn a_truncated_trace_is_merged_up_to_its_end() {
    let folder = traces();
    let whole = trace(3, 1_000, &[READ], 0);
    folder.write("cut", &whole[..100]);
    let words = "run --name=r --read_iolog=cut:b --merge_blktrace_file=m --replay_redirect=disk";
    let run = folder.fathom(words).expect(0);
    assert!(
        run.err.contains("cut: truncated: the record"),
        "{}",
        run.err
    );
    assert_eq!(
        std::fs::read(folder.path().join("m")).unwrap().len(),
        12 * 48
    );
}

#[test]
fn a_merge_into_a_file_of_data_is_refused() {
    let folder = traces();
    folder.write("disk", [7; 4096]);
    std::os::unix::fs::symlink("disk", folder.path().join("link")).unwrap();
    std::fs::hard_link(folder.path().join("disk"), folder.path().join("hard")).unwrap();
    let there = folder.path().join("new");
    for (merged, data) in [
        ("disk", "disk"),
        ("link", "disk"),
        ("hard", "disk"),
        ("./new", "new"),
        (there.to_str().unwrap(), "new"),
    ] {
        let words = format!(
            "run --name=r --read_iolog=a:b --merge_blktrace_file={merged} --replay_redirect={data}"
        );
        let run = folder.fathom(&words).expect(2);
        let want = format!("{merged}: a job's data are in this file");
        assert!(run.err.contains(&want), "{words}: {}", run.err);
        assert_eq!(folder.read("disk").as_bytes(), [7; 4096]);
        assert_eq!(folder.names(), ["a", "b", "disk", "hard", "link"]);
    }
}

#[test]
fn a_merge_into_the_job_file_is_refused() {
    let folder = traces();
    let text = "[r]\nread_iolog=a:b\nmerge_blktrace_file=j.fio\nreplay_redirect=new\n";
    folder.write("j.fio", text);
    for words in ["j.fio", "--merge-blktrace-only j.fio"] {
        for run in [
            folder.fathom(&format!("run {words}")).expect(2),
            folder.fio(words).expect(1),
        ] {
            let want = "j.fio: this is the job file";
            assert!(run.err.contains(want), "{words}: {}", run.err);
            assert_eq!(folder.read("j.fio"), text);
        }
    }
}
