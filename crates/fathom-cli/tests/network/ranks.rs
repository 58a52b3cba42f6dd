//! Sections of some ranks, in place of others, their logs, and what a killed rank leaves.

use std::fs;
use std::process::Stdio;

use crate::common::Folder;
use serde_json::Value;

/// Job file of one writer: rank 0 writes, all read, the others read once more.
const SHARES: &str = "[global]\nioengine=null\nbs=4k\nsize=64k\n[w]\nrw=write\nranks=0\n\
                      [r]\nrw=read\nstonewall\n[others]\nrw=read\nranks=1-\n";

/// Returns name and ops of each job of a report.
fn jobs(report: &Value) -> Vec<(String, u64)> {
    let jobs = report["jobs"].as_array().unwrap().iter();
    let ops = |job: &Value, direction: &str| job[direction]["total_ios"].as_u64().unwrap();
    jobs.map(|job| {
        let name = job["jobname"].as_str().unwrap().to_owned();
        (name, ops(job, "read") + ops(job, "write"))
    })
    .collect()
}

#[test]
fn a_sum_replaces_no_record_of_a_rank() {
    let folder = Folder::new();
    folder.write("s.fio", SHARES);
    for rank in [0, 1] {
        let words = format!("run --rank={rank}/2 --record=out s.fio");
        folder.fathom(&words).expect(0);
    }
    let record = folder.path().join("out/rank-0000.json");
    let before = fs::read(&record).unwrap();
    std::os::unix::fs::symlink("out/rank-0000.json", folder.path().join("link")).unwrap();
    for from in ["out", "out/rank-0001.json out/rank-0000.json"] {
        for option in ["--output", "--record"] {
            for to in ["out/rank-0000.json", "link"] {
                let words = format!("merge {from} {option} {to}");
                let run = folder.fathom(&words).expect(2);
                let want = format!("{option} would replace `out/rank-0000.json`");
                assert!(run.err.contains(&want), "{words}: {run:#?}");
                assert_eq!(fs::read(&record).unwrap(), before, "{words}");
            }
        }
    }
}

#[test]
fn sections_may_be_of_some_ranks() {
    let folder = Folder::new();
    folder.write("s.fio", SHARES);
    for rank in [0, 1, 2] {
        let words = format!("run --rank={rank}/3 --record=out s.fio");
        folder.fathom(&words).expect(0);
    }
    let merge = "merge --output-format=json out";
    let sum = folder.fathom(merge).expect(0).json();
    let want = [("w", 16), ("r", 48), ("others", 32)];
    assert_eq!(jobs(&sum), want.map(|(name, ops)| (name.to_owned(), ops)));
    let groups = sum["jobs"].as_array().unwrap().iter();
    let groups: Vec<_> = groups.map(|job| job["groupid"].as_u64().unwrap()).collect();
    assert_eq!(groups, [0, 1, 1]);
    let hosts = sum["fathom"]["hosts"].as_array().unwrap();
    assert_eq!(hosts[0]["left_out"][0], "others");
    assert_eq!(hosts[2]["left_out"][0], "w");

    // A plan without the section is another plan.
    folder.write(
        "other.fio",
        SHARES.replace("[others]\nrw=read\nranks=1-\n", ""),
    );
    folder
        .fathom("run --rank=2/3 --record=odd other.fio")
        .expect(0);
    let words = "merge out/rank-0000.json out/rank-0001.json odd";
    let refused = folder.fathom(words).expect(2);
    assert!(
        refused
            .err
            .contains("another plan than that of rank 0: 1 jobs instead of 3")
    );
}

#[test]
fn records_of_others_do_not_rule_the_terminal() {
    let folder = Folder::new();
    for rank in [0, 1] {
        let job = "--name=victim --ioengine=null --size=64k";
        let words = format!("run --rank={rank}/2 --record=out {job}");
        folder.fathom(&words).expect(0);
        let name = format!("out/rank-000{rank}.json");
        let odd = folder
            .read(&name)
            .replace("victim", "\\u001b[2J\\u009bvictim");
        folder.write(&name, odd);
    }
    let seen = |words: &str, code: i32| {
        let run = folder.fathom(words).expect(code);
        let text = run.out + &run.err;
        let clean = text.replace('\n', "");
        assert!(!clean.contains(char::is_control), "{words}: {text:?}");
        text
    };
    for format in ["normal", "terse", "normal,terse"] {
        let text = seen(&format!("merge --output-format={format} out"), 0);
        assert!(text.contains("\\u{1b}[2J\\u{9b}victim"), "{text}");
    }
    // JSON keeps the name, escaped in its own way.
    let sum = folder.fathom("merge --output-format=json out").expect(0);
    let name = &sum.json()["jobs"][0]["jobname"];
    assert_eq!(name, "\u{1b}[2J\u{9b}victim");
    // Nor do names in a reason to refuse a record.
    let other = folder.read("out/rank-0001.json").replace("victim", "other");
    folder.write("out/rank-0001.json", other);
    assert!(seen("merge out", 2).contains("another plan"));
}

#[test]
fn a_rank_may_have_nothing_to_do() {
    let folder = Folder::new();
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                   [device.constant]\nlatency_us = 100\n";
    folder.write("m.toml", machine);
    for (driver, out) in [
        ("--ioengine=null", "real"),
        ("--machine=m.toml", "modelled"),
    ] {
        for rank in [0, 1] {
            let job = format!("{driver} --name=a --size=64k --ranks=1");
            let words = format!("run --rank={rank}/2 --record={out} {job}");
            folder.fathom(&words).expect(0);
        }
        let sum = folder.fathom(&format!("merge --output-format=json {out}"));
        assert_eq!(jobs(&sum.expect(0).json()), [("a".to_owned(), 16)], "{out}");
        folder.fathom(&format!("merge {out}")).expect(0);
    }
    let nowhere = "--ioengine=null --name=a --size=64k --hosts=no-such-host";
    for rank in [0, 1] {
        let words = format!("run --rank={rank}/2 --record=none {nowhere}");
        folder.fathom(&words).expect(0);
    }
    let merged = folder.fathom("merge none").expect(0);
    assert!(
        merged.out.contains("no rank has these jobs: a"),
        "{}",
        merged.out
    );
}

/// Runs a section of an example of several hosts, with small files.
fn run_section(folder: &Folder, example: &str, section: &str, ranks: u32) {
    let job = example
        .replace("size=4g", "size=1m")
        .replace("bs=2m", "bs=64k");
    folder.write("example.fio", job);
    for rank in 0..ranks {
        let place = format!("--rank={rank}/{ranks} --record={section}");
        let words = format!("run {place} --section={section} example.fio");
        folder.fathom(&words).expect(0);
    }
}

#[test]
fn ranks_read_back_what_another_has_written() {
    let folder = Folder::new();
    let example = include_str!("../../../../examples/hosts/read-back.fio");
    run_section(&folder, example, "write", 3);
    assert!(folder.names().contains(&"read-back.2".to_owned()));
    let logged = example.replace("rank_shift=1", "rank_shift=1\nwrite_iolog=log.$rank");
    run_section(&folder, &logged, "read", 3);
    // In the place of the other, in all that names it.
    for rank in 0..3 {
        assert!(
            folder
                .read(&format!("log.{rank}"))
                .contains(&format!("read-back.{rank} "))
        );
    }
    let sum = folder.fathom("merge --output-format=json read").expect(0);
    assert_eq!(jobs(&sum.json()), [("read".to_owned(), 48)]);
    // Without its file, rank 0 finds nothing of rank 1 to read.
    fs::write(folder.path().join("read-back.1"), vec![7; 1 << 20]).unwrap();
    let words = "run --rank=0/3 --section=read example.fio";
    let found = folder.fathom(words).expect(1);
    assert!(found.err.contains("read-back.1"), "{}", found.err);
}

#[test]
fn one_rank_writes_and_all_read() {
    let folder = Folder::new();
    let example = include_str!("../../../../examples/hosts/one-writer.fio");
    run_section(&folder, example, "write", 3);
    run_section(&folder, example, "read", 3);
    for (section, ops) in [("write", 16), ("read", 48)] {
        let sum = folder.fathom(&format!("merge --output-format=json {section}"));
        assert_eq!(jobs(&sum.expect(0).json()), [(section.to_owned(), ops)]);
    }
}

#[test]
fn ranks_create_look_up_and_delete_files_step_by_step() {
    let folder = Folder::new();
    let example = include_str!("../../../../examples/hosts/mdtest-easy.fio")
        .replace("nrfiles=10000", "nrfiles=20")
        .replace("ioengine=filestat", "ioengine=filestat\nrank_shift=1");
    let steps = [
        ("make-directory", 1),
        ("create", 20),
        ("look-up", 20),
        ("delete", 20),
        ("remove-directory", 1),
    ];
    for (section, ops) in steps {
        run_section(&folder, &example, section, 2);
        let sum = folder.fathom(&format!("merge --output-format=json {section}"));
        assert_eq!(jobs(&sum.expect(0).json()), [(section.to_owned(), 2 * ops)]);
        let left = folder.path().join("mdtest-easy.0").exists();
        assert_eq!(left, section != "remove-directory");
    }
}

#[test]
fn names_of_logs_end_with_the_host() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --size=64k --write_bw_log=l --bandwidth-log=agg \
               --exec_prerun=true";
    let run = folder.fathom(&format!("run --rank=1/2 --output-format=json {job}"));
    let report = run.expect(0).json();
    let host = report["fathom"]["hosts"][0]["name"].as_str().unwrap();
    let names = folder.names();
    for name in ["l_bw.1.log", "agg-read_bw.log", "a.prerun.txt"] {
        let name = format!("{name}.{host}");
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // In virtual time names do not depend on the host.
    let machine = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                   [device.constant]\nlatency_us = 100\n";
    folder.write("m.toml", machine);
    folder
        .fathom("run --rank=1/2 --machine=m.toml --name=a --size=64k --write_bw_log=m")
        .expect(0);
    assert!(folder.names().contains(&"m_bw.1.log.rank-1".to_owned()));
    // A run alone has none of it.
    folder.fathom(&format!("run {job}")).expect(0);
    let names = folder.names();
    assert!(names.contains(&"l_bw.1.log".to_owned()), "{names:?}");
}

#[test]
fn a_killed_rank_leaves_what_it_had() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --rate_iops=1000 --size=1g --time_based";
    // One option for both: a second, and an hour.
    let job = format!("{job} --runtime=($rank*3600+1)");
    let words = "run --rank=0/2 --record=out";
    folder.fathom(&format!("{words} {job}")).expect(0);
    let words = "run --rank=1/2 --record=out --record-every=20ms";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &format!("{words} {job}"));
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let record = folder.path().join("out/rank-0001.json");
    let has_ops = || {
        let text = fs::read_to_string(&record).unwrap_or_default();
        let record = serde_json::from_str::<Value>(&text);
        let record = record.unwrap_or_default();
        record["jobs"][0]["directions"]["read"]["ios"].as_u64() > Some(0)
    };
    while !has_ops() {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on for an hour");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let merged = folder.fathom("merge out").expect(1);
    let told = "the records of 1 of 2 ranks (1) were written while their jobs ran";
    assert!(merged.out.contains(told), "{}", merged.out);
    assert!(merged.out.contains("  cut\n"), "{}", merged.out);
    let report = folder.fathom("merge --output-format=json out").expect(1);
    let hosts = &report.json()["fathom"]["hosts"];
    assert_eq!(
        (&hosts[0]["is_cut"], &hosts[1]["is_cut"]),
        (&Value::Null, &true.into())
    );
    assert!(hosts[1]["results"][0]["total_ios"].as_u64() > Some(0));
}

#[test]
fn a_rank_that_ends_replaces_what_it_had_so_far() {
    let folder = Folder::new();
    let job = "--name=a --ioengine=null --rate_iops=1000 --size=1g --time_based --runtime=200ms";
    let words = format!("run --rank=0/1 --record=out --record-every=10ms {job}");
    folder.fathom(&words).expect(0);
    let record: Value = serde_json::from_str(&folder.read("out/rank-0000.json")).unwrap();
    assert_eq!(record["hosts"][0]["is_cut"], Value::Null);
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 1);
}

#[test]
fn records_of_nothing_are_refused() {
    let folder = Folder::new();
    for (words, want) in [
        ("--record-every=1", "`--record-every` needs `--record`"),
        ("--record-every=x --record=r", "x"),
    ] {
        let run = folder.fathom(&format!("run {words} --name=a --ioengine=null --size=4k"));
        assert!(run.expect(2).err.contains(want), "{words}");
    }
    let refused = folder.fio("--record-every=1 --name=a --ioengine=null --size=4k");
    assert!(refused.err.contains("is an option of Fathom, not of fio"));
}
