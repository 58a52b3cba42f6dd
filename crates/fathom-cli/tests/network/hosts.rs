//! Ranks of one plan, and the sum of their records.

use std::collections::BTreeMap;
use std::fs;

use crate::common::{Folder, Run};
use serde_json::Value;

/// Machine of ranks in virtual time, which give the same record wherever they run.
const MACHINE: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n";

const PLAN: &str = "--machine=m.toml --name=a --rw=randrw --size=4m --bs=4k";

/// Returns a folder with the records of these ranks of four.
fn ranks(ranks: &[u32]) -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    for rank in ranks {
        let words = format!("run --rank={rank}/4 --record=out {PLAN}");
        folder.fathom(&words).expect(0);
    }
    folder
}

#[test]
fn sums_are_those_of_all_ranks() {
    let folder = ranks(&[0, 1, 2, 3]);
    let of_rank = |rank: u32| {
        let plan = format!("run --rank={rank}/4 --record=again --output-format=json+ {PLAN}");
        folder.fathom(&plan).expect(0).json()
    };
    let all = [0, 1, 2, 3].map(of_rank);
    assert_ne!(all[0]["jobs"], all[1]["jobs"], "seeds differ by rank");
    let sum = folder
        .fathom("merge --output-format=json+ out")
        .expect(0)
        .json();
    let number = |value: &Value| value.as_u64().unwrap();
    for direction in ["read", "write"] {
        let parts = all.each_ref().map(|one| &one["jobs"][0][direction]);
        let sum = &sum["jobs"][0][direction];
        for key in ["total_ios", "io_bytes"] {
            let want: u64 = parts.iter().map(|one| number(&one[key])).sum();
            assert!(want > 100, "{key}");
            assert_eq!(number(&sum[key]), want, "{key}");
        }
        let mut want = BTreeMap::new();
        for part in parts {
            for (bin, count) in part["clat_ns"]["bins"].as_object().unwrap() {
                *want.entry(bin.clone()).or_insert(0) += number(count);
            }
        }
        let bins = sum["clat_ns"]["bins"].as_object().unwrap();
        let bins = bins.iter().map(|(bin, count)| (bin.clone(), number(count)));
        assert_eq!(bins.collect::<BTreeMap<_, _>>(), want);
    }
    let hosts = sum["fathom"]["hosts"].as_array().unwrap();
    let names: Vec<&str> = hosts
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["rank-0", "rank-1", "rank-2", "rank-3"]);
    assert_eq!(sum["fathom"]["together"]["share_percent"], 100.0);
}

#[test]
fn names_and_order_do_not_matter() {
    let folder = ranks(&[0, 1, 2, 3]);
    let merge = "merge --record=sum.json --output-format=json+,normal,terse";
    let want = folder.fathom(&format!("{merge} out")).expect(0).out;
    let record = folder.read("sum.json");
    for (rank, name) in [(3, "a.json"), (1, "b"), (0, "z.json"), (2, "c.json")] {
        fs::rename(
            folder.path().join(format!("out/rank-000{rank}.json")),
            folder.path().join(name),
        )
        .unwrap();
    }
    let again = folder
        .fathom(&format!("{merge} c.json z.json b a.json"))
        .expect(0)
        .out;
    assert_eq!(again, want);
    assert_eq!(folder.read("sum.json"), record);
}

#[test]
fn a_rank_that_is_off_is_marked() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    for rank in 0..4 {
        // 1000 IOPS, of rank 3 half as many.
        let words = "--rate_iops=(1000/($rank/3+1)) --time_based --runtime=1";
        let line = format!("run --rank={rank}/4 --record=out {PLAN}").replace("randrw", "read");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &line);
        command.args(words.split(' '));
        Run::of(command).expect(0);
    }
    let sum = folder
        .fathom("merge --output-format=json out")
        .expect(0)
        .json();
    let hosts = sum["fathom"]["hosts"].as_array().unwrap();
    let marks = hosts.iter().map(|host| host["results"][0]["mark"].as_str());
    assert_eq!(marks.collect::<Vec<_>>(), [None, None, None, Some("slow")]);
}

#[test]
fn ranks_of_the_hard_example_write_and_read_each_byte_once() {
    let folder = Folder::new();
    let job =
        include_str!("../../../../examples/hosts/ior-hard.fio").replace("470080000", "940160");
    let job = job.replace("rw=write", "rw=write\nwrite_iolog=write.$rank");
    folder.write(
        "j.fio",
        job.replace("rw=read", "rw=read\nwrite_iolog=read.$rank"),
    );
    for rank in 0..3 {
        folder
            .fathom(&format!("run --rank={rank}/3 --record=out j.fio"))
            .expect(0);
    }
    for op in ["write", "read"] {
        let logs = (0..3).map(|rank| folder.read(&format!("{op}.{rank}")));
        let mut offsets: Vec<u64> = logs
            .flat_map(|log| {
                let ops = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
                let ops = ops.filter(|words| words.contains(&op));
                let offset = |words: Vec<&str>| words[words.len() - 2].parse().unwrap();
                ops.map(offset).collect::<Vec<u64>>()
            })
            .collect();
        offsets.sort_unstable();
        let want: Vec<u64> = (0..60).map(|segment| segment * 47_008).collect();
        assert_eq!(offsets, want, "{op}");
    }
    let data = folder.path().join("ior-hard");
    assert_eq!(fs::metadata(data).unwrap().len(), 60 * 47_008);
    let sum = folder
        .fathom("merge --output-format=json out")
        .expect(0)
        .json();
    assert_eq!(sum["jobs"][0]["write"]["total_ios"], 60);
}

#[test]
fn missing_ranks_are_a_failed_check() {
    let folder = ranks(&[0, 3]);
    let run = folder.fathom("merge out").expect(1);
    assert!(
        run.out.contains("2 of 4 ranks are missing (1-2)"),
        "{}",
        run.out
    );
    assert!(run.out.contains("\nHosts: 2 of 4\n"), "{}", run.out);
}

#[track_caller]
fn check_refused(folder: &Folder, words: &str, want: &str) {
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains(want), "{words}: {}", run.err);
    assert_eq!(run.out, "", "{words}");
}

#[test]
fn what_has_no_sum_is_refused_by_name() {
    let folder = ranks(&[0, 1]);
    let own = folder.read("out/rank-0001.json");
    folder.write("cut.json", &own[..own.len() / 2]);
    folder.write(
        "later.json",
        own.replacen("\"version\":3", "\"version\":4", 1),
    );
    folder.write("other.json", "[1, 2]");
    folder
        .fathom("run --record=alone.json --name=a --ioengine=null --size=4k")
        .expect(0);
    folder
        .fathom("run --rank=1/4 --record=real --name=a --ioengine=null --size=4k")
        .expect(0);
    let plan = PLAN.replace("bs=4k", "bs=8k");
    folder
        .fathom(&format!("run --rank=1/4 --record=odd {plan}"))
        .expect(0);
    fs::create_dir(folder.path().join("none")).unwrap();
    for (name, want) in [
        ("out/rank-0001.json", "rank 1 appears twice"),
        ("cut.json", "cut.json: a record that is cut short"),
        (
            "later.json",
            "of version 4: this program reads versions 1 to 3",
        ),
        ("other.json", "other.json: not a record of a run"),
        ("alone.json", "a run on one host, without a rank"),
        ("real", "modelled and measured runs have no sum"),
        (
            "odd",
            "another plan than that of rank 0: job `a`: `bs=8k` instead of `bs=4k`",
        ),
        ("none", "none: no record of a rank"),
        ("nowhere", "nowhere: No such file"),
        ("/dev/zero", "not a regular file"),
    ] {
        let ranks = match name.starts_with("out") {
            true => "out",
            false => "out/rank-0000.json",
        };
        check_refused(&folder, &format!("merge {ranks} {name}"), want);
    }
}

#[test]
fn places_and_starts_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let job = "--name=a --ioengine=null --size=4k";
    let refused =
        |words: &str, want: &str| check_refused(&folder, &format!("run {words} {job}"), want);
    refused(
        "--rank=4/4",
        "there is no rank 4 of 4: ranks are numbered from 0",
    );
    refused("--start-at=2020-01-01T00:00Z", "--start-at: that was ");
    refused(
        "--start-at=2500-01-01T00:00Z",
        "--start-at: that is a day ahead, or more",
    );
    refused("--start-at=17:30", "`17:30` is not a time in UTC");
    refused(
        "--machine=m.toml --start-at=17:30Z",
        "`--start-at` waits for a clock",
    );
    folder.write("file", "");
    refused("--rank=0/2 --record=file", "with --rank, name a folder");
    // A rank would wait for a reader of a pipe, and be lost.
    fs::create_dir(folder.path().join("pipes")).unwrap();
    let pipe = folder.path().join("pipes/rank-0000.json");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    refused("--rank=0/2 --record=pipes", "is a pipe or a device");
}
