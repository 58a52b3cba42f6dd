//! `fathom run --machine`: whole runs on modelled machines.

use std::process::{Command, Stdio};

use crate::common::{self, Folder};

const MACHINE: &str = r#"
[[device]]
names = ["/dev/modelled"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
"#;

const JOB: &str = "--name=j --ioengine=libaio --direct=1 --filename=/dev/modelled --rw=randread \
                   --bs=4k --iodepth=8 --number_ios=1000";

/// Creates a directory with this machine file.
fn with(machine: &str) -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", machine);
    folder
}

#[track_caller]
fn check_refused(machine: &str, job: &str, wants: &[&str]) {
    let folder = with(machine);
    let run = folder
        .fathom(&format!("run --machine m.toml {job}"))
        .expect(2);
    for want in wants {
        assert!(run.err.contains(want), "`{want}` is not in {}", run.err);
    }
    assert_eq!(folder.names(), ["m.toml"], "nothing was made");
}

#[test]
fn seeks_of_modelled_devices_are_reported_on_request() {
    let folder = with(MACHINE);
    let words = "run --machine m.toml --seeks --name=j --ioengine=psync --direct=1 --size=4m \
                 --filename=/dev/modelled --bs=4k";
    let seeks = |job: &str| {
        let words = format!("{words} {job} --output-format=json");
        let report = folder.fathom(&words).expect(0).json();
        report["fathom"]["modelled"]["devices"][0]["seeks"].clone()
    };
    let read = seeks("--rw=read");
    assert_eq!(
        (&read["dispatched"], &read["sequential"]),
        (&1024.into(), &1023.into())
    );
    assert_eq!(read["distances"]["count"], serde_json::json!([1023]));
    // From the end of each to the beginning of the next.
    let apart = seeks("--rw=read:8k --number_ios=100");
    assert_eq!(apart["sequential"], 0, "{apart}");
    let counts = serde_json::json!([0, 0, 0, 99]);
    assert_eq!(apart["distances"]["count"], counts);
    // Trims move no arm, as `fathom trace` has it.
    assert_eq!(seeks("--rw=trim --number_ios=100")["dispatched"], 0);
    // What went before the ramp was over is not counted: an op takes 100 µs.
    let ramped = seeks("--rw=read --ramp_time=10ms --time_based --runtime=10ms");
    assert!(
        (100..=102).contains(&ramped["dispatched"].as_u64().unwrap()),
        "{ramped}"
    );

    let text = folder.fathom(&format!("{words} --rw=read")).expect(0).out;
    let told = "\n/dev/modelled:\nseeks: 1024 dispatched, 0 merged, 100.0% sequential";
    assert!(text.contains(told), "{text}");
    let without = folder.fathom(&format!("{words} --rw=read").replace("--seeks ", ""));
    assert!(!without.expect(0).out.contains("seeks"));
    // For a real device, the kernel knows.
    let real = folder.fathom("run --seeks --name=j --ioengine=null --rw=read --size=1m");
    assert!(real.expect(2).err.contains("fathom trace"));
}

#[test]
fn a_modelled_device_is_measured_and_marked_as_modelled() {
    let folder = with(MACHINE);
    let words = format!("run --machine m.toml --output-format=json {JOB}");
    let report = folder.fathom(&words).expect(0).json();
    let modelled = &report["fathom"]["modelled"];
    assert_eq!(modelled["clock"], "modelled, virtual time");
    assert_eq!(modelled["devices"][0]["model"], "constant");
    assert!(report["fathom"]["machine"].is_null());
    let read = &report["jobs"][0]["read"];
    assert_eq!(read["total_ios"], 1000);
    assert_eq!(read["clat_ns"]["max"], 100_000);
    // 125 times eight at once.
    assert_eq!(report["jobs"][0]["job_runtime"], 13);

    let text = folder
        .fathom(&format!("run --machine m.toml {JOB}"))
        .expect(0);
    assert!(
        text.out.contains("modelled, virtual time: m.toml"),
        "{}",
        text.out
    );
    assert_eq!(folder.names(), ["m.toml"], "nothing was made");
}

#[test]
fn equal_runs_give_equal_bytes() {
    let faulty = format!(
        "{MACHINE}[device.faults]\nread_errors_ppm = 9000\nlost_ppm = 900\ntimeout_ms = 3\n\
         [device.queue]\nscheduler = \"mq-deadline\"\nnr_requests = 8\nqueue_depth = 4\n"
    );
    let folder = with(&faulty);
    for words in [
        "--output-format=json+ --numjobs=3",
        "--output-format=json,terse,normal --seeks",
        "--output-format=json --status-interval=1ms --numjobs=2 --group_reporting",
        "--output-format=json --write_lat_log=l --write_bw_log=l --log_avg_msec=1",
        "--output-format=json --rate_iops=5000 --rate_process=poisson --io_submit_mode=offload",
        "--output-format=json --verify=crc32c --rw=randwrite --size=4m",
    ] {
        let words = format!("run --machine m.toml {JOB} --continue_on_error=all {words}");
        let words = format!("{words} --ignore_error=ETIMEDOUT,ETIMEDOUT");
        let run = || {
            let run = folder.fathom(&words);
            let logs = folder
                .names()
                .into_iter()
                .filter(|name| name.ends_with(".log"));
            let read = |name| std::fs::read(folder.path().join(name)).unwrap();
            (run.code, run.out, logs.map(read).collect::<Vec<_>>())
        };
        let (first, again) = (run(), run());
        assert!(first.1.len() > 1000, "{words}: {first:?}");
        assert_eq!(first, again, "{words}");
    }
}

/// An interrupted run of three centuries of virtual time reports what it did.
#[test]
fn an_interrupted_long_run_ends_with_a_report() {
    let folder = with(MACHINE);
    let words = format!(
        "run --machine m.toml {JOB} --time_based --runtime=9000000000 --number_ios=0 --numjobs=9 \
         --output-format=json"
    );
    for signal in ["INT", "TERM"] {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let script = format!("sleep 0.3; kill -{signal} {}; date +%s%N", child.id());
        let killed = Command::new("sh").args(["-c", &script]).output().unwrap();
        let run = common::Run::from(child.wait_with_output().unwrap());
        let ended = Command::new("date").arg("+%s%N").output().unwrap();
        let [killed, ended] = [killed, ended].map(|output| -> u64 {
            String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        });
        println!("{signal}: ended after {} ms", (ended - killed) / 1_000_000);
        assert!(ended - killed < 3_000_000_000, "on a busy machine, too");
        let report = run.expect(2).json();
        let ios = report["jobs"][8]["read"]["total_ios"].as_u64().unwrap();
        assert!(ios > 100, "{ios}");
        assert!(
            report["fathom"]["warnings"]
                .to_string()
                .contains("interrupted")
        );
    }
}

#[test]
fn errors_in_machine_files_have_their_position() {
    let typo = MACHINE.replace("latency_us", "latencyus");
    let wants = [
        "m.toml:7:1: unknown key `latencyus`",
        "did you mean `latency_us`?",
    ];
    check_refused(&typo, JOB, &wants);
    let zero = MACHINE.replace("= 100", "= 0");
    check_refused(
        &zero,
        JOB,
        &["m.toml:7:14: `latency_us` must be a number from 0.001"],
    );
    let unknown = MACHINE.replace("model = \"constant\"", "model = \"tape\"");
    check_refused(
        &unknown,
        JOB,
        &["m.toml:4:9: unknown model `tape`", "hint: models: "],
    );
    check_refused(
        "[[device]\n",
        JOB,
        &["m.toml:1:", "not valid TOML", "hint: "],
    );
    check_refused("", JOB, &["the machine has no device"]);
}

/// Returns a machine file with one device of this model and these tables.
fn of(model: &str, tables: &str) -> String {
    format!(
        "[[device]]\nnames = [\"*\"]\nmodel = \"{model}\"\ncapacity_gib = 1\n{tables}\n\
         [device.constant]\nlatency_us = 1\n"
    )
}

#[test]
fn impossible_devices_are_refused_with_a_hint() {
    for (machine, wants) in [
        (
            of("hdd", ""),
            [
                "m.toml:1:1: `device` has no table `hdd`",
                "add `[device.hdd]`",
            ],
        ),
        (
            of("hdd", ""),
            [
                "there is a table of `constant`, and the model is `hdd`",
                "hint: remove it, or write `model = \"constant\"`",
            ],
        ),
        (
            of(
                "array",
                "[device.array]\nmembers = 2\nchunk_kib = 6\nmodel = \"constant\"",
            ),
            [
                "m.toml:7:13: `chunk_kib` must be a multiple of 4",
                "that of the members is `[device.array.constant]`",
            ],
        ),
        (
            of(
                "array",
                "[device.array]\nmembers = 1\nchunk_kib = 4\nmodel = \"array\"",
            ),
            [
                "m.toml:6:11: `members` must be a whole number from 2 to 64",
                "m.toml:8:9: there is no `array` of this one",
            ],
        ),
        (
            of(
                "distribution",
                "[device.distribution.read]\nlatency_ns = [1, 2]\ncount = [1]",
            ),
            [
                "m.toml:7:9: 2 latencies and 1 counts: they must be as many",
                "hint: give each latency its count",
            ],
        ),
        (
            of("constant", "[[device.stall]]\nat_ms = 1\nfor_ms = 0"),
            [
                "m.toml:7:10: `for_ms` must be a number from 0.001",
                "hint: ",
            ],
        ),
        (
            of(
                "constant",
                "[device.queue]\nscheduler = \"cfq\"\nqueue_depth = 0",
            ),
            [
                "m.toml:6:13: `scheduler` must be one of: none, mq-deadline",
                "m.toml:7:15: `queue_depth` must be a whole number from 1",
            ],
        ),
    ] {
        check_refused(&machine, JOB, &wants);
    }
}

#[test]
fn counts_of_latencies_that_overflow_are_refused() {
    let counts = "[device.distribution.read]\nlatency_ns = [1, 2]\n\
                  count = [18446744073709551615, 1]";
    let wants = [
        "m.toml:7:9: the counts add up to more than 18446744073709551615",
        "hint: divide all of them by the same number",
    ];
    check_refused(&of("distribution", counts), JOB, &wants);
}

#[test]
fn unreadable_machine_files_are_refused() {
    let folder = with("\0");
    folder.write("other", [0xff, 0xfe]);
    for (file, want) in [
        (
            "nothere.toml",
            "cannot read machine file `nothere.toml`: No such file",
        ),
        (".", "cannot read machine file `.`: Is a directory"),
        ("other", "not UTF-8 text"),
        ("/dev/zero", "the file is too long"),
        ("m.toml", "m.toml:1:1: not valid TOML"),
    ] {
        let run = folder
            .fathom(&format!("run --machine {file} {JOB}"))
            .expect(2);
        assert!(
            run.err.contains(want) && run.err.contains("hint: "),
            "{}",
            run.err
        );
    }
}

#[test]
fn names_must_meet_from_both_sides() {
    let other = MACHINE.replace("/dev/modelled", "/dev/other");
    let wants = [
        "job `j`: m.toml has no model for `/dev/modelled`",
        "m.toml:3:10: no job uses `/dev/other`",
    ];
    check_refused(&other, JOB, &wants);
    // Each name once, however many jobs have it.
    let both = MACHINE.replace("\"/dev/modelled\"", "\"/dev/modelled\", \"/dev/other\"");
    let clones = format!("{JOB} --numjobs=3");
    check_refused(&both, &clones, &["remove it; the jobs use /dev/modelled\n"]);
    let files = MACHINE.replace("/dev/modelled", "*");
    let large = "--name=j --rw=read --direct=1 --size=2g";
    check_refused(
        &files,
        large,
        &["m.toml:2:1: the files on it take 2048 MiB"],
    );
    check_refused(
        &files,
        "--name=j --ioengine=null --size=1m",
        &["nothing to model"],
    );
}
