//! `fathom micro`, the whole program.

use crate::common::{Folder, Run};

#[track_caller]
fn check_rows(name: &str) {
    let words = format!("micro {name} --threads 1 --repeats 1 --json");
    let table = Folder::new().fathom(&words).expect(0).json();
    assert_eq!(table["table"], name);
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{table}");
    assert_eq!(rows[0]["threads"], 1);
}

#[test]
fn rows_are_data() {
    check_rows("task-list");
    check_rows("tags");
    check_rows("generation-map");
}

#[test]
fn experiments_are_listed() {
    let out = Folder::new().fathom("micro").expect(0).out;
    assert!(
        out.contains("task-list\n") && out.contains("tags\n"),
        "{out}"
    );
}

#[test]
fn the_list_takes_no_options() {
    for option in [
        "--json",
        "--csv",
        "--markdown",
        "--threads 1",
        "--repeats 3",
    ] {
        let run = Folder::new().fathom(&format!("micro {option}")).expect(2);
        let (name, _) = option.split_once(' ').unwrap_or((option, ""));
        let want = format!("fathom: micro: {name}: no benchmark to apply it to\nhint: ");
        assert!(run.err.starts_with(&want) && run.out.is_empty(), "{run:#?}");
    }
}

#[test]
fn unknown_benchmarks_are_refused() {
    let run = Folder::new().fathom("micro tag-list").expect(2);
    assert!(run.err.contains("tag-list") && run.out.is_empty());
    Folder::new().fathom("micro tags --threads 0").expect(2);
}

#[test]
fn threads_that_cannot_be_started_are_told() {
    let folder = Folder::new();
    for name in ["tags", "task-list"] {
        let words = format!("micro {name} --threads 2 --repeats 1");
        let mut command = folder.command(env!("CARGO_BIN_EXE_fathom"), &words);
        // More than an address space.
        command.env("RUST_MIN_STACK", (1_u64 << 60).to_string());
        let run = Run::of(command).expect(2);
        let want = "fathom: micro: cannot start 2 threads: ";
        assert!(run.err.starts_with(want), "{run:#?}");
        assert!(run.err.contains("hint: lower --threads"), "{run:#?}");
    }
}
