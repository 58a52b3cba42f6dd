//! Compressed logs, `--inflate-log` and `--bandwidth-log`, here and beside an installed fio.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, Run};

const WRITES: &str = "--name=job --ioengine=null --filesize=1000M --bs=128K --rw=write --iodepth=1";

#[test]
fn every_op_is_in_a_compressed_log_in_its_order() {
    let folder = Folder::new();
    let words = format!("run {WRITES} --write_bw_log=test --per_job_logs=0 --log_offset=1");
    for (more, name) in [
        ("--log_compression=10K", "test_bw.log"),
        (
            "--log_compression=10K --log_store_compressed=1",
            "test_bw.log.fz",
        ),
    ] {
        let words = format!("{words} {more} --log_full=wait --output=report");
        folder.fathom(&words).expect(0);
        let text = match name.ends_with("fz") {
            true => {
                folder
                    .fathom(&format!("run --inflate-log={name}"))
                    .expect(0)
                    .out
            }
            false => fs::read_to_string(folder.path().join(name)).unwrap(),
        };
        let offset = |line: &str| line.split(", ").nth(4).unwrap().parse::<u64>().unwrap();
        let got: Vec<_> = text.lines().map(offset).collect();
        let want: Vec<_> = (0..8000).map(|op| op * 128 * 1024).collect();
        assert!(got == want, "{name}: {} lines", got.len());
    }
}

#[test]
fn other_files_are_refused_by_inflate_log() {
    let folder = Folder::new();
    folder.write("text", "0, 1, 0, 4096, 0\n");
    folder.write("empty", "");
    let words = format!("{WRITES} --write_lat_log=x --log_store_compressed=1 --output=report");
    folder.fathom(&format!("run {words}")).expect(0);
    let whole = fs::read(folder.path().join("x_lat.1.log.fz")).unwrap();
    folder.write("cut", &whole[..whole.len() / 2]);
    for (name, lines, why) in [
        ("text", 0, "it is not a compressed log"),
        ("cut", 1, "it breaks off within a compressed stream"),
        ("nothing", 0, "No such file or directory"),
    ] {
        let run = folder
            .fathom(&format!("run --inflate-log={name}"))
            .expect(2);
        let said = format!("fathom: cannot inflate log: {name}: {why}");
        assert!(
            run.err.contains(&said) && run.err.contains("hint:"),
            "{run:?}"
        );
        // What was there of it is printed.
        assert_eq!(run.out.lines().count().min(1), lines, "{name}");
        folder.fio(&format!("--inflate-log={name}")).expect(1);
    }
    assert_eq!(folder.fathom("run --inflate-log=empty").expect(0).out, "");
    folder.fathom("run --inflate-log").expect(2);
}

#[test]
fn fio_inflates_ours_and_we_inflate_fios() {
    let version = Command::new("fio").arg("--version").output();
    // A link of that name may lead to Fathom.
    let is_fio = |version: &[u8]| !String::from_utf8_lossy(version).contains("-fathom-");
    if !version.is_ok_and(|version| is_fio(&version.stdout)) {
        println!("skipped: no fio");
        return;
    }
    let folder = Folder::new();
    for (number, more) in [
        "",
        "--log_offset=1",
        "--log_prio=1 --log_offset=1",
        "--log_avg_msec=20",
    ]
    .into_iter()
    .enumerate()
    {
        // A rate: fio's log then spans some windows. Threads: a job of fio that is a process has a
        // session of its own, which no time limit ends.
        let words = format!(
            "--name=t --thread --ioengine=null --rw=randrw --bs=4k --size=2m --rate_iops=3000 \
             --write_lat_log=w --write_bw_log=w --log_compression=1k --log_store_compressed=1 \
             {more}"
        );
        let mut both = vec![];
        for (who, inflater) in [("fio", "fathom"), ("fathom", "fio")] {
            let (run, inflate) = (own(who), own(inflater));
            let at = folder.path().join(format!("{who}{number}"));
            fs::create_dir(&at).unwrap();
            call(&at, &run, &format!("{words} --output=report"));
            for name in ["w_clat.1.log.fz", "w_lat.1.log.fz", "w_bw.1.log.fz"] {
                let there = call(&at, &inflate, &format!("--inflate-log={name}"));
                let here = call(&at, &run, &format!("--inflate-log={name}"));
                assert_eq!(there, here, "{who}, {more}: {name}");
                assert!(there.lines().count() > 5, "{who}, {more}: {name}: {there}");
                both.push((who, name, there.lines().next().unwrap().split(", ").count()));
            }
        }
        let (fios, ours) = both.split_at(3);
        for (fio, our) in fios.iter().zip(ours) {
            assert_eq!(fio.2, our.2, "columns of {}: {more}", fio.1);
        }
    }
}

/// Returns the command that takes fio's arguments.
fn own(name: &str) -> Vec<&str> {
    match name {
        "fio" => vec!["fio"],
        _ => vec![env!("CARGO_BIN_EXE_fathom"), "run"],
    }
}

#[track_caller]
fn call(folder: &Path, program: &[&str], words: &str) -> String {
    let once = || {
        let mut command = Command::new("timeout");
        command
            .args(["--signal=KILL", "30"])
            .args(program)
            .args(words.split_whitespace())
            .current_dir(folder);
        Run::of(command)
    };
    // fio 3.33 compresses logs in a thread, with which it deadlocks now and then.
    let mut runs = (0..3).map(|_| once());
    // Killed, `timeout` itself included, it has no code.
    let in_time = |run: &Run| program[0] != "fio" || run.code.is_some();
    runs.find(in_time).expect("fio ends").expect(0).out
}

#[test]
fn the_bandwidth_of_all_jobs_adds_up() {
    let folder = Folder::new();
    let words = "run --name=t --ioengine=null --rw=randrw --bs=4k --size=64m --rate_iops=4000 \
                 --numjobs=2 --time_based --runtime=1500ms --output-format=json --group_reporting";
    for (switch, prefix) in [("--bandwidth-log", "agg"), ("--bandwidth-log=all", "all")] {
        let json = folder.fathom(&format!("{words} {switch}")).expect(0).json();
        for direction in ["read", "write", "trim"] {
            let name = format!("{prefix}-{direction}_bw.log");
            let text = fs::read_to_string(folder.path().join(&name)).unwrap();
            let rows = text.lines().map(|line| {
                let columns = line
                    .split(", ")
                    .map(|column| column.parse::<u64>().unwrap());
                columns.collect::<Vec<_>>()
            });
            let (mut last, mut kib) = (0, 0.0);
            for row in rows {
                assert_eq!(row.len(), 5, "{name}");
                kib += (row[1] * (row[0] - last)) as f64 / 1000.0;
                last = row[0];
            }
            assert!(last >= 1500, "{name}: {text}");
            let moved = json["jobs"][0][direction]["io_kbytes"].as_f64().unwrap();
            // Each window's rate is rounded down, and its end to the millisecond. What was moved
            // after the last whole window, or reported after it, has no line.
            let most = moved + 4.0 + moved / 50.0;
            assert!((0.6 * moved..=most).contains(&kib), "{name}: {kib} {moved}");
            assert!(direction == "trim" || moved > 1000.0, "{name}: {moved}");
        }
    }
    let run = folder
        .fathom(&format!("{words} --bandwidth-log=no/such/place"))
        .expect(2);
    assert!(run.err.contains("no/such/place-read_bw.log"), "{}", run.err);
    let run = folder.fathom(&format!("{words} --latency-log=x")).expect(2);
    assert!(run.err.contains("write_lat_log=PREFIX"), "{}", run.err);
}
