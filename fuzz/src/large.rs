//! Worst cases of 1 MiB for the job language, which keep to the same limits.

use std::fmt::Write;

use crate::target::{Target, Verdict};
use crate::watchdog::Watchdog;

/// Length of an input.
const BYTES: usize = 1 << 20;

/// `head`, and `part` repeated up to 1 MiB.
fn filled(head: &str, part: &str) -> Vec<u8> {
    let mut text = String::from(head);
    text.push_str(&part.repeat((BYTES - head.len()) / part.len()));
    text.into_bytes()
}

/// `head`, and numbered parts up to 1 MiB.
fn counted(head: &str, part: impl Fn(usize) -> String) -> Vec<u8> {
    let mut text = String::from(head);
    for number in 0.. {
        let part = part(number);
        if text.len() + part.len() > BYTES {
            break;
        }
        text.push_str(&part);
    }
    text.into_bytes()
}

fn try_file(input: &[u8], watchdog: &Watchdog) -> Result<Verdict, String> {
    let target = Target::named("job-file").expect("a row of the table");
    target.try_with(input, watchdog)
}

#[test]
fn a_mebibyte_of_anything_keeps_to_the_limits() {
    let parts = [
        "[a]\n",
        "[global]\n",
        "[global]\nrw=read\n",
        "[",
        "]",
        "a\n",
        "=\n",
        "a=b\n",
        "(",
        "${N}",
        "include j.fio\n",
        "include x.fio\ninclude j.fio\n",
        "rw=read\n",
        "filename=a\n",
        "filename=a\nrw=read\n",
        "bs=4q\n",
        "4k/1:",
        "4k,",
        "a:",
        "1:",
        "0-3,",
        "EIO:",
        "\"a\"",
        "0xff",
        "%o",
        "-1",
        "é",
        "\0",
        "\r",
        "rwmixraed=1\n",
        "ioengine=rados\n",
        "wait_for=a\n[a]\nsize=1m\n",
    ];
    let lists = ["4k/1:", "a:", "1:", "(", "0-3,", "${N}"];
    let heads = [
        "",
        "[a]\n",
        "[a]\nbssplit=",
        "[a]\nbs=",
        "[a]\nfilename=",
        "[a]\nsize=",
        "[a]\nsize=(1",
        "[a]\ncpus_allowed=",
        "[a]\nignore_error=",
        "[a]\nbuffer_pattern=",
        "[a]\nverify_pattern=",
        "[a]\npercentile_list=",
        "[a]\nrandom_distribution=zoned:",
        "[a]\ncmdprio_bssplit=",
        "[",
        "[a]\ndescription=",
        "[a]\ndirectory=",
        "[a]\ninclude ",
        "[a]\nfilename_format=",
    ];
    let watchdog = Watchdog::start();
    let mut broken = String::new();
    for (index, head) in heads.iter().enumerate() {
        // All parts after the first two heads, lists after those that take lists.
        let parts = if index < 2 { &parts[..] } else { &lists[..] };
        for part in parts {
            if let Err(breach) = try_file(&filled(head, part), &watchdog) {
                let _ = writeln!(broken, "{head:?} and {part:?} again and again: {breach}");
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn a_hundred_thousand_sections_keep_to_the_limits() {
    let watchdog = Watchdog::start();
    for part in [
        |number| format!("[j{number}]\n"),
        |number| format!("[global{number}]\nbs=4k\nsize={number}\n"),
        |number| format!("[j{number}]\nbogus{number}=1\n"),
        |number| format!("[j]\nwait_for=j{number}\n"),
    ] {
        let text: String = (0..100_000).map(part).collect();
        let tried = try_file(text.as_bytes(), &watchdog);
        assert!(tried.is_ok(), "{}: {tried:?}", part(0));
    }
}

/// Sections share the names that they inherit.
#[test]
fn thousands_of_sections_with_thousands_of_files_keep_to_the_limits() {
    let watchdog = Watchdog::start();
    let names = format!("filename={}\n", "a:".repeat(4000)).repeat(8);
    let sections = "[j]\nrw=read\n".repeat(4096);
    let tried = try_file(format!("[global]\n{names}{sections}").as_bytes(), &watchdog);
    assert!(tried.is_ok(), "{tried:?}");
}

/// Each section inherits a longer list than the one before it.
#[test]
fn sections_that_add_to_what_they_inherit_keep_to_the_limits() {
    let watchdog = Watchdog::start();
    let names = format!("[global]\nfilename={}\n", "a:".repeat(4000));
    for text in [
        "[global]\nfilename=a\n[j]\n".repeat(4096),
        "[global]\nrw=read\n[j]\n".repeat(4096),
        names.clone() + &"[j]\nfilename=a\n".repeat(4096),
        names + &"[global]\nfilename=a\n[j]\n".repeat(4096),
    ] {
        let tried = try_file(text.as_bytes(), &watchdog);
        assert!(tried.is_ok(), "{}: {tried:?}", &text[text.len() - 60..]);
    }
}

#[test]
fn a_mebibyte_of_arguments_keeps_to_the_limits() {
    let watchdog = Watchdog::start();
    let parts: [fn(usize) -> String; 7] = [
        |_| "--name=a\n".into(),
        |number| format!("--name=a{number}\n--size=1m\n"),
        |_| "--bs\n4k\n".into(),
        |number| format!("--bogus{number}\n"),
        |number| format!("--section=a{number}\n"),
        |_| "j.fio\n".into(),
        |_| "-r".into(),
    ];
    let target = Target::named("command-line").expect("a row of the table");
    for part in parts {
        let tried = target.try_with(&counted("", part), &watchdog);
        assert!(tried.is_ok(), "{}: {tried:?}", part(0));
    }
}
