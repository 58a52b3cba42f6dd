//! No input makes the parser panic.

use crate::world::{World, file};
use fathom_engine::Registry;
use fathom_job::{Dialect, option_examples, parse};
use proptest::prelude::*;

/// Generates pieces of job files and command lines.
fn piece() -> impl Strategy<Value = String> {
    let words: Vec<&str> = option_examples(Registry::built_in().infos())
        .chain(PIECES.lines())
        .collect();
    prop_oneof![
        "[a-z_]{1,12}=?[-0-9a-z.:,/%()*+^\"]{0,12}",
        prop::sample::select(words).prop_map(str::to_owned),
        ".{0,16}",
    ]
}

/// The words of the fuzzer.
const PIECES: &str = include_str!("../../../../fuzz/pieces.txt");

proptest! {
    #[test]
    fn any_bytes_are_a_job_file_or_refused(bytes: Vec<u8>) {
        let world = World::default().with_file("j.fio", bytes);
        if let Err(errors) = world.parse("j.fio") {
            prop_assert!(errors.has_errors());
            prop_assert!(!errors.render("fio", true).is_empty());
        }
    }

    #[test]
    fn any_lines_are_a_job_file_or_refused(lines in prop::collection::vec(piece(), 0..20)) {
        if let Err(errors) = file(&lines.join("\n")).parse("j.fio") {
            prop_assert!(errors.has_errors());
            prop_assert!(!errors.render("fio", false).is_empty());
        }
    }

    #[test]
    fn any_arguments_are_a_command_line_or_refused(
        args in prop::collection::vec(piece(), 0..12),
        dashes in 0_usize..3,
    ) {
        let args: Vec<_> = args.iter().map(|arg| format!("{}{arg}", &"--"[..dashes])).collect();
        let world = file("[a]\n");
        if let Err(refusal) = parse(&args, Dialect::Fathom, &world) {
            let errors = refusal.diagnostics;
            prop_assert!(errors.has_errors());
            prop_assert!(!errors.render("fio", false).is_empty());
        }
    }
}
