//! `fathom history`, and the runs that `fathom run` keeps there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{self, Folder, Run};
use serde_json::Value;

const MACHINE: &str = "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n";
const JOB: &str = "run --name=j --ioengine=null --size=1m --rw=read --bs=4k";

fn sql(folder: &Folder, query: &str) -> Value {
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), "history sql --json");
    command.arg(query);
    Run::of(command).expect(0).json()
}

#[test]
fn a_run_is_kept_with_its_tags_when_that_is_asked() {
    let folder = Folder::new();
    folder.fathom(JOB).expect(0);
    assert!(
        folder
            .fathom("history")
            .expect(2)
            .err
            .contains("there is no history")
    );
    let run = folder.fathom(&format!(
        "{JOB} --history --tag commit=1a2b --record r.json"
    ));
    assert!(run.expect(0).err.contains("fathom: history: run 1\n"));
    let list = folder.fathom("history").expect(0).out;
    assert!(
        list.contains("commit=1a2b") && list.contains("  j  "),
        "{list}"
    );
    let show = folder.fathom("history show 1").expect(0).out;
    assert!(
        show.contains("read.bw") && show.contains("rw=read"),
        "{show}"
    );
    let kept: Value = folder.fathom("history show 1 --record").expect(0).json();
    let written: Value = serde_json::from_str(&folder.read("r.json")).unwrap();
    // So short a run has one window; those of a long one are merged.
    assert_eq!(kept, written);
    let rows = sql(&folder, "SELECT state, role FROM run");
    assert_eq!(rows.to_string(), r#"[{"state":"done","role":"run"}]"#);
    assert!(
        folder
            .fathom("history show 2")
            .expect(2)
            .err
            .contains("no run 2")
    );
}

#[test]
fn the_variable_keeps_every_run_but_fios() {
    let folder = Folder::new();
    let with = |program: &str, words: &str| {
        let mut command = folder.command(program, words);
        command.env("FATHOM_HISTORY", folder.path().join("h.db"));
        Run::of(command)
    };
    let fathom = env!("CARGO_BIN_EXE_fathom");
    with(fathom, JOB).expect(0);
    folder.fio("--version").expect(0);
    let fio = folder.path().join("bin/fio");
    let job = JOB.strip_prefix("run ").unwrap();
    with(fio.to_str().unwrap(), job).expect(0);
    let list: Value = with(fathom, "history --json").expect(0).json();
    assert_eq!(list.as_array().unwrap().len(), 1);
    for option in ["--history", "--tag=a=b", "--record=x.json"] {
        let run = with(fio.to_str().unwrap(), &format!("{job} {option}")).expect(1);
        assert!(run.err.contains("an option of Fathom"), "{run:?}");
    }
    assert!(
        folder
            .fathom(&format!("{JOB} --tag a=b"))
            .expect(2)
            .err
            .contains("--history")
    );
}

#[test]
fn names_that_sqlite_knows_are_names_of_files() {
    let folder = Folder::new();
    for name in [":memory:", "file:a.db?mode=memory", "file:b.db"] {
        let with = |words: &str| {
            let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
            command.env("FATHOM_HISTORY", name);
            Run::of(command).expect(0)
        };
        with(JOB);
        let list: Value = with("history --json").json();
        assert_eq!(list.as_array().unwrap().len(), 1, "{name}");
        assert!(folder.names().contains(&name.to_owned()), "{name}");
    }
    folder.fathom(&format!("{JOB} --history")).expect(0);
    folder.fathom("history backup file:copy.db").expect(0);
    assert!(folder.names().contains(&"file:copy.db".to_owned()));
}

#[test]
fn runs_move_between_histories_once() {
    let folder = Folder::new();
    for _ in 0..2 {
        folder.fathom(&format!("{JOB} --history")).expect(0);
    }
    folder.fathom("history export --output runs.json").expect(0);
    folder.fathom("history backup copy.db").expect(0);
    assert!(
        folder
            .fathom("history backup copy.db")
            .expect(2)
            .err
            .contains("already")
    );
    let run = folder.fathom("history import runs.json").expect(0);
    assert!(
        run.err.contains("0 runs added; 2 were there already"),
        "{run:?}"
    );
    let mut other = folder.command(
        env!("CARGO_BIN_EXE_fathom"),
        "history import . --tag from=a",
    );
    other.env("FATHOM_HISTORY", folder.path().join("other.db"));
    assert!(Run::of(other).expect(0).err.contains("2 runs added"));
    let run = folder
        .fathom("history prune --older-than 0 --dry-run")
        .expect(0);
    assert!(run.err.contains("2 runs would be removed"), "{run:?}");
    folder.fathom("history prune --older-than 0").expect(0);
    assert_eq!(
        sql(&folder, "SELECT count(*) AS n FROM run").to_string(),
        r#"[{"n":0}]"#
    );
}

#[test]
fn a_history_that_cannot_be_written_stops_the_run_before_it_begins() {
    let folder = Folder::new();
    folder.write("h.db", "something else");
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), JOB);
    command.env("FATHOM_HISTORY", folder.path().join("h.db"));
    let run = Run::of(command).expect(2);
    assert!(
        run.out.is_empty() && run.err.contains("not a SQLite database"),
        "{run:?}"
    );
    assert_eq!(folder.read("h.db"), "something else");
}

#[test]
fn a_history_on_a_full_disk_stops_the_run_and_says_so() {
    let folder = Folder::new();
    let script = format!(
        "mkdir small && mount -t tmpfs -o size=1m small small && export \
         FATHOM_HISTORY=small/h.db && '{}' {JOB} && head -c 2m /dev/zero > small/fill || \
         test -s small/fill",
        env!("CARGO_BIN_EXE_fathom")
    );
    let words = JOB.trim_start_matches("run --name=j ");
    let Some(run) = common::namespace::after(&folder, &script, words) else {
        return;
    };
    let run = run.expect(2);
    assert!(run.out.is_empty(), "{run:?}");
    let text = "history: small/h.db: no space left on device\nhint: free some space";
    assert!(run.err.contains(text), "{run:?}");
}

#[test]
fn a_history_that_is_moved_meanwhile_does_not_take_the_run_with_it() {
    let folder = Folder::new();
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), JOB);
    command.env("FATHOM_HISTORY", folder.path().join("h.db"));
    command.arg("--exec_prerun=mv h.db moved.db");
    let run = Run::of(command).expect(2);
    let want = "h.db: moved, removed or replaced since it was opened; the record is in ";
    let (_, rest) = run.err.split_once(want).expect(&run.err);
    let record = rest.lines().next().unwrap();
    assert!(!run.err.contains("history: run"), "{run:?}");
    let saved = fs::read_to_string(folder.path().join(record)).unwrap();
    assert!(fathom_record::Record::is_in(&saved), "{saved}");
}

#[test]
fn processes_write_at_once_and_lose_nothing() {
    let folder = Folder::new();
    let words = format!("{JOB} --history --output-format=json");
    let start = || {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    // The first ones create the file together.
    let running: Vec<_> = (0..8).map(|_| start()).collect();
    for mut one in running {
        assert!(one.wait().unwrap().success());
    }
    let rows = sql(
        &folder,
        "SELECT count(*) AS n, count(DISTINCT uuid) AS u FROM run",
    );
    assert_eq!(rows.to_string(), r#"[{"n":8,"u":8}]"#);
}

#[test]
fn a_killed_process_leaves_whole_runs() {
    let folder = Folder::new();
    let record = folder.path().join("r.json");
    folder
        .fathom(&format!("{JOB} --history --record r.json"))
        .expect(0);
    let text = fs::read_to_string(record).unwrap();
    // A long import is killed at some moments; each run is in or it is not.
    let many: String = (0..400)
        .map(|at| text.replacen("\"elapsed_ms\":", &format!("\"elapsed_ms\":1{at}"), 1) + "\n")
        .collect();
    folder.write("many.json", many);
    for round in 0..8_u32 {
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), "history import many.json");
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // Grows from round to round, however fast the machine is: no moment is special.
        let wanted = i64::from(round) * 40;
        while child.try_wait().unwrap().is_none() {
            let rows = sql(&folder, "SELECT count(*) AS n FROM run");
            if rows[0]["n"].as_i64().unwrap() > wanted {
                break;
            }
        }
        let _ended = child.kill();
        child.wait().unwrap();
        let torn = "SELECT count(*) AS n FROM run LEFT JOIN record ON record.run = run.id
            WHERE state <> 'done' OR record.run IS NULL
            OR NOT EXISTS (SELECT 1 FROM measure WHERE measure.run = run.id)";
        assert_eq!(sql(&folder, torn)[0]["n"], 0);
        let checked = sql(&folder, "SELECT * FROM pragma_integrity_check");
        assert_eq!(checked[0]["integrity_check"], "ok");
    }
    let run = folder.fathom("history import many.json").expect(0);
    assert!(run.err.contains("runs added"), "{run:?}");
    assert_eq!(sql(&folder, "SELECT count(*) AS n FROM run")[0]["n"], 401);
}

#[test]
fn no_output_replaces_the_history() {
    let folder = Folder::new();
    folder.fathom(&format!("{JOB} --history")).expect(0);
    let history = folder.path().join("data/fathom/history.db");
    std::os::unix::fs::symlink(&history, folder.path().join("link")).unwrap();
    fs::hard_link(&history, folder.path().join("hard")).unwrap();
    folder.write("m.toml", MACHINE);
    let lab = "[lab]\nname = 'x'\nmachine = 'm.toml'\n[job]\nfilename = '/dev/x'\n\
               number_ios = 9\nrw = 'read'\n";
    folder.write("lab.toml", lab);
    for command in [
        &format!("{JOB} --record"),
        &format!("{JOB} --history --record"),
        &format!("{JOB} --output"),
        "report 1 --html",
        "lab lab.toml --html",
    ] {
        for name in ["data/fathom/history.db", "data/../link", "hard"] {
            let run = folder.fathom(&format!("{command} {name}")).expect(2);
            let why = "is an SQLite database: its data would be overwritten";
            assert!(run.err.contains(why), "{run:?}");
        }
    }
    let runs = sql(&folder, "SELECT count(*) AS n FROM run");
    assert_eq!(runs.to_string(), r#"[{"n":1}]"#);
    // A new history, which the run itself creates.
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), JOB);
    command
        .env("FATHOM_HISTORY", folder.path().join("new.db"))
        .args(["--record", "new.db"]);
    assert!(Run::of(command).expect(2).err.contains("is an SQLite"));
}

#[test]
fn a_modelled_run_is_as_old_as_its_record() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let job = "run --machine=m.toml --name=j --filename=/dev/x --ioengine=psync --number_ios=9 \
               --rw=read --direct=1 --startdelay=2 --history";
    folder.fathom(job).expect(0);
    let prune = "history prune --older-than 1 --dry-run";
    let run = folder.fathom(prune).expect(0);
    assert!(run.err.contains("0 runs would be removed"), "{run:?}");
}

#[test]
fn modelled_runs_that_cannot_be_kept_do_not_replace_each_other() {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    folder.fathom(&format!("{JOB} --history")).expect(0);
    for _ in 0..2 {
        // 40 KiB: enough for the index of the log and for the record, too little for the log.
        let limited = "ulimit -f 80; exec \"$0\" run --machine=m.toml --name=j \
                       --filename=/dev/x --ioengine=psync --number_ios=9 --rw=read --direct=1 \
                       --history";
        let mut command = folder.command("sh", "-c");
        command.arg(limited).arg(env!("CARGO_BIN_EXE_fathom"));
        let err = Run::of(command).expect(2).err;
        assert!(err.contains("the record is in"), "{err}");
    }
    let names = fs::read_dir(folder.path().join("data/fathom")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    let rescued = names.filter(|name| name.to_string_lossy().starts_with("fathom-run-"));
    assert_eq!(rescued.count(), 2);
}

#[test]
fn a_pipe_or_device_is_no_history() {
    let folder = Folder::new();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    let places = [(made.is_ok_and(|status| status.success()), pipe.as_path())];
    let places = places
        .into_iter()
        .filter_map(|(is_there, path)| is_there.then_some(path));
    for path in places.chain([Path::new("/dev/null"), Path::new("/")]) {
        for words in ["history", &format!("{JOB} --history")] {
            let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
            command.env("FATHOM_HISTORY", path);
            let run = Run::of(command);
            let want = format!("history: {}: not a regular file\nhint: set", path.display());
            assert!(run.expect(2).err.contains(&want), "{words}: {want}");
        }
    }
    assert!(!Path::new("/dev/null-journal").exists());
}

#[test]
fn a_limit_of_file_sizes_is_told() {
    let folder = Folder::new();
    folder.fathom(&format!("{JOB} --history")).expect(0);
    for words in ["history show 1", &format!("{JOB} --history")] {
        let limited = format!("ulimit -f 0; exec \"$0\" {words}");
        let mut command = folder.command("sh", "-c");
        command.arg(limited).arg(env!("CARGO_BIN_EXE_fathom"));
        let run = Run::of(command).expect(2);
        assert!(run.err.contains("fathom: history: "), "{words}: {run:#?}");
    }
}

#[test]
fn a_prune_creates_no_history() {
    let folder = Folder::new();
    for words in ["--dry-run", "", "--records-only"] {
        let run = folder.fathom(&format!("history prune --older-than 1 {words}"));
        let run = run.expect(2);
        assert!(run.err.contains("there is no history"), "{}", run.err);
    }
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn a_prune_without_space_for_a_copy_has_removed_the_runs() {
    let folder = Folder::new();
    // Random digits, so that the copy is large; those of a plan are not compressed.
    let mut digits = 1_u64;
    let plan = std::iter::repeat_with(|| {
        digits = digits
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{digits:x}")
    });
    let large = plan.take(60_000).collect::<String>();
    let now_ms = fathom_sys::clock::wall_ms();
    for (name, begun_ms, plan) in [("old", 1, "[j]"), ("new", now_ms, large.as_str())] {
        let run = serde_json::json!({
            "fathom_run": 1, "uuid": name, "begun_ms": begun_ms,
            "wall_ms": 1, "plan": plan, "machine": {}, "subject": {}, "tags": {}, "measures": [],
        });
        folder.write(&format!("{name}.json"), run.to_string());
    }
    folder.fathom("history import old.json new.json").expect(0);
    let program = env!("CARGO_BIN_EXE_fathom");
    let mut command = folder.command("sh", "-c");
    // Blocks of 512 B: less than the million of the plan.
    command.arg(format!(
        "ulimit -f 1000; exec {program} history prune --older-than 1"
    ));
    let run = Run::of(command).expect(0);
    assert!(run.err.contains("fathom: 1 runs removed\n"), "{}", run.err);
    let want = "their space could not be given back to the disk; later runs will reuse it";
    assert!(run.err.contains(want), "{}", run.err);
    let left = sql(&folder, "SELECT uuid FROM run");
    assert_eq!(left, serde_json::json!([{"uuid": "new"}]));
}

#[test]
fn a_name_with_a_line_feed_is_listed() {
    let folder = Folder::new();
    let words = "run --history --ioengine=null --size=4k --rw=read";
    let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), words);
    command.arg("--name=line\nfeed");
    Run::of(command).expect(0);
    let list = folder.fathom("history").expect(0).out;
    assert!(list.contains("line") && list.contains("feed"), "{list}");
    assert_eq!(list.lines().count(), 2, "{list}");
    let trend = folder.fathom("history trend read.iops").expect(0).out;
    assert!(trend.contains("feed), machine 1, 1 run\n"), "{trend}");
}
