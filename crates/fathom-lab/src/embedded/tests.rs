//! Embedded labs and the changes of their tables.

use std::path::Path;

use super::{EmbeddedLab, Measured, files};
use crate::lab::RunDone;
use crate::lab_file::tests::Files;
use crate::order::{Slot, order};

/// Returns a lab as if each run of one repeat had gone as `run` says, by cell and variant.
pub(crate) fn measured(
    lab: EmbeddedLab,
    run: &dyn Fn(usize, usize) -> Option<RunDone>,
) -> Measured {
    let slots = order(&lab.plan, 0).into_iter();
    let done = |slot: Slot| Some((slot, run(slot.cell, slot.variant)?));
    Measured {
        runs: slots.filter_map(done).collect(),
        failures: vec![None; lab.plan.cells.len()],
        plan: lab.plan,
        is_interrupted: false,
    }
}

pub(crate) fn read(name: &str, arguments: &[(&str, &str)]) -> EmbeddedLab {
    let arguments = arguments.iter().map(|(key, path)| (*key, Path::new(*path)));
    let arguments: Vec<_> = arguments.collect();
    EmbeddedLab::read(name, &arguments, &Files::new(&[])).unwrap()
}

#[test]
fn embedded_files_are_the_examples() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lab"));
    for (name, text) in files::FILES {
        let example = std::fs::read_to_string(folder.join(name));
        assert_eq!(example.unwrap(), text, "{name}");
    }
}

#[test]
fn options_of_a_table_change_the_lab() {
    let mut lab = read("uring-irq", &[("DEV", "/dev/x")]);
    lab.set("cpu", "3");
    lab.set("seconds", "9");
    assert_eq!(lab.plan.judge.repeats.max, 1);
    let run = lab.plan.run_of(6, 0, 1).peak.unwrap();
    for (key, value) in [
        ("cpu", "3"),
        ("seconds", "9"),
        ("depth", "64"),
        ("batch", "16"),
    ] {
        assert_eq!(run.value(key), Some(value), "{key}");
    }
    assert_eq!((lab.runs(), lab.seconds()), (7, 9));
    lab.repeat(3);
    assert_eq!(lab.runs(), 21);
    let slot = order(&lab.plan, 0)[0];
    assert!(
        lab.name_of(&slot).ends_with(" (1 of 3)"),
        "{}",
        lab.name_of(&slot)
    );
}

#[test]
fn what_is_missing_is_told() {
    let lab = read("uring-irq", &[("DEV", "/dev/x")]);
    let mut measured = measured(lab, &|cell, _| {
        (cell == 0).then(|| RunDone {
            disturbance: Some("CPU time was stolen".into()),
            ..RunDone::default()
        })
    });
    measured.failures[6] = Some("no io_uring".into());
    measured.is_interrupted = true;
    let notes = measured.notes();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(
        notes[0].starts_with("depth=64: not measured: no io_uring"),
        "{notes:?}"
    );
    assert_eq!(notes[1], "1 disturbed run, the first: CPU time was stolen");
}

#[test]
fn files_lie_in_the_folders_that_were_given() {
    let read = |folder: &str| {
        let arguments = [
            ("FOLDER", Path::new(folder)),
            ("MEMORY", Path::new("/dev/shm")),
        ];
        EmbeddedLab::read("aio-submit", &arguments, &Files::new(&[]))
    };
    for folder in ["/t/ft#1", "/t/a;b"] {
        let run = read(folder).unwrap().plan.run_of(0, 0, 1);
        let file = format!("{folder}/fathom-aio-submit");
        assert_eq!(run.file().as_deref(), Some(file.as_str()));
    }
    for folder in ["/t/a:b", "/t/a$ncpus", "/t/${HOME}"] {
        let why = read(folder).err().unwrap().to_string();
        assert!(why.contains(folder), "{why}");
    }
}
