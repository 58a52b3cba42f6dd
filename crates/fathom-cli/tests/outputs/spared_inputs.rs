//! Outputs in the place of what a run is made from: refused, and nothing is replaced.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::Folder;

const MACHINE: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n";

#[test]
fn report_does_not_replace_a_job_file_by_another_name() {
    let folder = Folder::new();
    let job = folder.write("job.fio", "[t]\nioengine=null\nsize=64k\nrw=read\n");
    fs::hard_link(&job, folder.path().join("hard")).unwrap();
    symlink("job.fio", folder.path().join("soft")).unwrap();
    for name in ["job.fio", "hard", "soft"] {
        for option in ["--output", "--save-distribution"] {
            let run = folder
                .fathom(&format!("run job.fio {option}={name}"))
                .expect(2);
            assert!(run.err.contains("would replace the job file"), "{run:#?}");
        }
        let run = folder.fio(&format!("job.fio --output={name}")).expect(1);
        assert!(run.err.contains("would replace the job file"), "{run:#?}");
    }
    assert!(folder.read("job.fio").starts_with("[t]\nioengine"));
}

/// Runs a command under both names, and requires both to refuse it and to leave all files alone.
#[track_caller]
fn check_spared(folder: &Folder, words: &str, want: &str) {
    // Of the folder with the link to the program, nothing.
    let files = || {
        let names = folder.names().into_iter();
        let files =
            names.filter_map(|name| Some((fs::read(folder.path().join(&name)).ok()?, name)));
        files.collect::<Vec<_>>()
    };
    let before = files();
    let of_fathom = ["--record", "--metrics-file"];
    if !of_fathom.iter().any(|option| words.contains(option)) {
        let run = folder.fio(words).expect(1);
        assert!(run.err.contains(want), "{words}: {run:#?}");
        assert_eq!(files(), before, "{words}");
    }
    let run = folder.fathom(&format!("run {words}")).expect(2);
    assert!(run.err.contains(want), "{words}: {run:#?}");
    assert_eq!(files(), before, "{words}");
}

#[test]
fn outputs_replace_no_input_of_a_run() {
    let folder = Folder::new();
    folder.write("m.prom", MACHINE);
    symlink("m.prom", folder.path().join("soft.prom")).unwrap();
    folder.write("more.prom", "size=64k\nrw=read\n");
    folder.write("j.fio", "[j]\nfilename=/dev/d\ninclude more.prom\n");
    let options = [
        "--output",
        "--save-distribution",
        "--record",
        "--metrics-file",
    ];
    for option in options {
        for name in ["m.prom", "soft.prom"] {
            let words = format!("--machine m.prom {option}={name} j.fio");
            check_spared(&folder, &words, "would replace the machine file `m.prom`");
        }
        let words = format!("--machine m.prom {option}=more.prom j.fio");
        check_spared(&folder, &words, "would replace the job file `more.prom`");
    }
    folder.write("data.prom", vec![b'7'; 65_536]);
    for option in options {
        let words = format!("--name=a --filename=data.prom --rw=read {option}=data.prom");
        check_spared(&folder, &words, "data.prom: a job's data are in this file");
    }
    let broken = "--name=a --filename=data.prom --size=64k --output=data.prom --name=b --bs=4q";
    check_spared(&folder, broken, "data.prom: a job's data are in this file");
    folder.write(
        "ops.log",
        "fio version 2 iolog\n/dev/d add\n/dev/d open\n/dev/d read 0 4096\n/dev/d close\n",
    );
    let words = "--machine m.prom --name=a --read_iolog=ops.log --output=ops.log";
    check_spared(&folder, words, "ops.log: a job replays this log");
}

#[test]
fn logs_replace_no_input_of_a_run() {
    let folder = Folder::new();
    folder.write("m_lat.1.log", MACHINE);
    let modelled = "--machine m_lat.1.log --name=a --filename=/dev/d --size=64k";
    check_spared(
        &folder,
        &format!("{modelled} --write_lat_log=m"),
        "m_lat.1.log: this is the machine file",
    );
    check_spared(
        &folder,
        &format!("{modelled} --write_iolog=m_lat.1.log"),
        "m_lat.1.log: this is the machine file",
    );
    folder.write(
        "j_lat.1.log",
        "[j]\nioengine=null\nsize=64k\nwrite_lat_log=j\n",
    );
    check_spared(&folder, "j_lat.1.log", "j_lat.1.log: this is the job file");
    folder.write("agg-read_bw.log", "[j]\nioengine=null\nsize=64k\n");
    check_spared(
        &folder,
        "--bandwidth-log=agg agg-read_bw.log",
        "--bandwidth-log: agg-read_bw.log: this is the job file",
    );
}

#[test]
fn devices_may_be_data_and_output() {
    let folder = Folder::new();
    let words = "--name=a --ioengine=null --filename=/dev/null --size=64k --output=/dev/null";
    folder.fathom(&format!("run {words}")).expect(0);
    folder.fio(words).expect(0);
}
