//! Whatever is typed, the parser answers.

mod world;

use fathom_job::{Dialect, parse};
use proptest::prelude::*;
use world::{World, file};

/// Pieces that job files and command lines are made of.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_]{1,12}=?[-0-9a-z.:,/%()*+^\"]{0,12}",
        prop::sample::select(vec![
            "[a]",
            "[global]",
            "[",
            "]",
            "include j.fio",
            "include ",
            "bs=",
            "size=(4*",
            "${",
            "${X}",
            "rw=randrw:8",
            "bssplit=4k/50:8k,4k",
            "ioengine=io_uring",
            "hipri",
            "numjobs=4096",
            "cpus_allowed=0-3",
            "percentile_list=1:2",
            "buffer_pattern=\"a",
            "filename=a\\:b:c",
            "verify_pattern=0x",
            "--",
            "-",
            "--name=x",
            "-rP",
            "--re",
            "--output-format=json",
            "--section=a",
            "--cmdhelp=bs",
            "--enghelp=libaio,",
            "--direct=1--rw=x",
            "name=é",
        ])
        .prop_map(str::to_owned),
        ".{0,16}",
    ]
}

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
