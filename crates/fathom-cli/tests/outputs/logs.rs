//! I/O logs on real files: names, contents, and failures to write them.

use std::process::{Command, Stdio};

use crate::common::Folder;

const NULL: &str = "--name=t --ioengine=null --rw=randread --bs=4k --iodepth=8";

/// Returns the lines of a file in the directory.
fn lines(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_job_that_waits_for_its_log_loses_nothing() {
    let folder = Folder::new();
    let words = format!("{NULL} --size=800m --write_lat_log=t --log_full=wait --write_bw_log=p");
    let run = folder
        .fathom(&format!("run {words} --output-format=json"))
        .expect(0);
    let json = run.json();
    let ios = json["jobs"][0]["read"]["total_ios"].as_u64().unwrap();
    assert_eq!(ios, 204_800);
    let names = ["p_bw.1.log", "t_clat.1.log", "t_lat.1.log", "t_slat.1.log"];
    assert_eq!(folder.names(), names);
    for name in names {
        let lines = lines(&folder, name);
        assert_eq!(lines.len() as u64, ios, "{name}");
        assert!(
            lines.iter().all(|line| line.split(", ").count() == 5),
            "{name}"
        );
    }
}

#[test]
fn dropped_lines_are_reported_in_three_places() {
    let folder = Folder::new();
    // No disk takes what this job logs; a second is enough.
    let words = format!(
        "run {NULL} --size=1g --norandommap --time_based --runtime=1 --write_lat_log=t \
         --write_bw_log=t --write_iops_log=t --log_offset=1 --output-format=json"
    );
    let run = folder.fathom(&words).expect(0);
    let json = run.json();
    let job = &json["jobs"][0];
    let log = &job["fathom"]["log"];
    let [kept, dropped] = ["lines_kept", "lines_dropped"].map(|key| log[key].as_u64().unwrap());
    let files = ["t_bw", "t_iops", "t_lat", "t_clat", "t_slat"];
    let in_files = files.map(|name| {
        let text = std::fs::read(folder.path().join(format!("{name}.1.log"))).unwrap();
        text.iter().filter(|&&byte| byte == b'\n').count() as u64
    });
    assert_eq!(kept, in_files.iter().sum::<u64>());
    assert_eq!(
        kept + dropped,
        5 * job["read"]["total_ios"].as_u64().unwrap()
    );
    let note = folder.path().join("t.dropped.json");
    if dropped == 0 {
        assert!(!note.exists());
        println!("skipped: a disk that takes {kept} lines in a second");
        return;
    }
    let note: serde_json::Value = serde_json::from_slice(&std::fs::read(note).unwrap()).unwrap();
    assert_eq!(note["dropped"][0]["job"], "t");
    assert_eq!(note["dropped"][0]["number"], 1);
    assert_eq!(note["dropped"][0]["lines_kept"], kept);
    assert_eq!(note["dropped"][0]["lines_dropped"], dropped);
    let said = format!("{dropped} of {} lines", kept + dropped);
    assert!(run.err.contains(&said), "{}", run.err);
    let warnings = json["fathom"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| {
        warning["code"] == "log_dropped" && warning["message"].as_str().unwrap().contains(&said)
    }));
}

#[test]
fn the_memory_of_logs_is_bounded_and_entries_have_a_range() {
    let folder = Folder::new();
    let words = format!("run {NULL} --size=64k --numjobs=64 --write_lat_log=t");
    let run = folder
        .fathom(&format!(
            "{words} --log_entries=1048576 --output-format=json"
        ))
        .expect(0);
    let json = run.json();
    let warnings = json["fathom"]["warnings"].as_array().unwrap();
    let bounded = warnings.iter().find(|w| w["code"] == "log_entries_bounded");
    let message = bounded.unwrap()["message"].as_str().unwrap();
    assert!(
        message.contains("1048576") && message.contains("64 MiB"),
        "{message}"
    );
    for entries in [0, 1023, 1_048_577] {
        let run = folder
            .fathom(&format!("{words} --log_entries={entries}"))
            .expect(2);
        assert!(run.err.contains("log_entries"), "{}", run.err);
        assert!(run.err.contains("hint: write at"), "{}", run.err);
    }
}

#[test]
fn a_log_that_cannot_be_written_is_found_before_anything_is_made() {
    let folder = Folder::new();
    let words = "run --name=t --filename=data --size=64k --rw=write --write_lat_log=there/not/x \
                 --write_bw_log=here";
    let run = folder.fathom(words).expect(2);
    assert!(run.err.contains("there/not/x_lat.1.log"), "{run:#?}");
    assert_eq!(folder.names(), Vec::<String>::new(), "nothing was made");
}

#[test]
fn a_log_in_a_file_of_data_is_refused() {
    let folder = Folder::new();
    folder.write("data", [7; 4096]);
    std::os::unix::fs::symlink("data", folder.path().join("l_bw.1.log")).unwrap();
    for data in ["data", "l_bw.1.log", "./l_bw.1.log"] {
        let words = format!("run --name=t --filename={data} --rw=read --write_bw_log=l");
        let run = folder.fathom(&words).expect(2);
        let want = "l_bw.1.log: a job's data are in this file";
        assert!(run.err.contains(want), "{data}: {}", run.err);
        assert_eq!(folder.read("data").as_bytes(), [7; 4096]);
    }
}

#[test]
fn a_full_disk_ends_the_log_and_not_the_job() {
    let folder = Folder::new();
    let full = std::path::Path::new("/dev/full");
    std::os::unix::fs::symlink(full, folder.path().join("p_clat.1.log")).unwrap();
    let words = format!("run {NULL} --size=8m --write_lat_log=p --output-format=json");
    let run = folder.fathom(&words).expect(2);
    // It does not belong to a single job.
    let told = "fathom: the log p_clat.1.log is incomplete";
    assert!(run.err.contains(told), "{run:#?}");
    assert!(run.err.contains("dropped: a log broke off"), "{run:#?}");
    let json = run.json();
    let warnings = json["fathom"]["warnings"].as_array().unwrap();
    assert!(
        warnings
            .iter()
            .any(|warning| warning["code"] == "log_broken")
    );
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 2048);
    assert_eq!(lines(&folder, "p_lat.1.log").len(), 2048);
    let log = &json["jobs"][0]["fathom"]["log"];
    assert_eq!(
        log["lines_dropped"], 2048,
        "what had no room counts as dropped"
    );
    assert_eq!(log["lines_kept"], 2 * 2048);
    // fio ends with 0, and says nothing.
    let run = folder.fio(words.trim_start_matches("run ")).expect(0);
    assert!(run.err.contains("is incomplete"), "{run:#?}");
}

#[test]
fn a_disk_that_fills_up_ends_the_log_and_not_the_job() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("small")).unwrap();
    // So many ops that compressed logs are too large too, whatever the latencies are.
    // In a namespace of its own, so that nothing is left mounted whatever happens.
    let shell = format!(
        "mount -t tmpfs -o size=512k none small 2>&1 || exit 99; \
         {} run {NULL} --size=1600m --write_lat_log=small/t $0 --log_full=wait \
         --output-format=json --output=report.json; [ $? = 2 ] || exit 98; wc -c small/*.1.*",
        env!("CARGO_BIN_EXE_fathom")
    );
    for more in ["--log_avg_msec=0", "--log_store_compressed=1"] {
        let mut command = folder.command("unshare", "--mount sh -c");
        let Ok(ran) = command.args([&shell, more]).output() else {
            println!("skipped: no unshare");
            return;
        };
        let (out, err) = [&ran.stdout, &ran.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .into();
        if ran.status.code() == Some(99) || err.contains("unshare failed") {
            println!("skipped: nothing can be mounted here: {out}{err}");
            return;
        }
        assert!(ran.status.success(), "{more}: {out}{err}");
        assert!(
            err.contains("is incomplete: No space left on device"),
            "{more}: {err}"
        );
        let json = std::fs::read(folder.path().join("report.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let job = &json["jobs"][0];
        assert_eq!(job["read"]["total_ios"], 409_600, "{more}");
        let log = &job["fathom"]["log"];
        let [kept, dropped] = ["lines_kept", "lines_dropped"].map(|key| log[key].as_u64().unwrap());
        assert_eq!(kept + dropped, 3 * 409_600, "{more}");
        assert!(dropped > 0 && kept > 0, "{more}: {kept} {dropped}");
        assert!(
            err.contains(&format!("{dropped} of {} lines", kept + dropped)),
            "{more}: {err}"
        );
    }
}

#[test]
fn an_earlier_log_is_replaced_and_a_shared_one_appended_to() {
    let folder = Folder::new();
    folder.write("p_lat.1.log", "old\n");
    folder.write("p_lat.log", "old\n");
    folder.write("p.dropped.json", "{}");
    let words = format!("run {NULL} --size=64k --numjobs=2 --write_lat_log=p");
    folder.fathom(&words).expect(0);
    assert_eq!(lines(&folder, "p_lat.1.log").len(), 16);
    folder
        .fathom(&format!("{words} --per_job_logs=0"))
        .expect(0);
    assert_eq!(lines(&folder, "p_lat.log").len(), 33);
    assert!(!folder.path().join("p.dropped.json").exists());
}

#[test]
fn fio_plot_draws_our_logs() {
    let there = Command::new("fio-plot")
        .arg("--help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if there.is_err() {
        eprintln!("skipped: no fio-plot");
        return;
    }
    let folder = Folder::new();
    let prefix = "randread-iodepth-8-numjobs-1";
    let words = format!(
        "run {NULL} --size=1g --rate_iops=2000 --runtime=2 --time_based --log_avg_msec=100 \
         --write_lat_log={prefix} --write_bw_log={prefix} --write_iops_log={prefix} \
         --output-format=json --output=randread-8-1.json"
    );
    folder.fathom(&words).expect(0);
    let words = "-i . -T t -g -t bw iops lat -d 8 -n 1 -r randread -o drawn.png";
    let drawn = folder.command("fio-plot", words).output().unwrap();
    assert!(drawn.status.success(), "{drawn:?}");
    assert!(folder.path().join("drawn.png").exists(), "{drawn:?}");
}
