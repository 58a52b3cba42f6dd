//! Reports and streams in which the note on fio's reading of a value appears.

use crate::common::{Folder, Run};

const WORDS: &str = "--name=t --ioengine=null --size=8*1 --bs=4q";

#[test]
fn notes_are_in_the_report_and_never_on_standard_error() {
    let folder = Folder::new();
    let text = folder.fio(WORDS).expect(0);
    let note = "note: `*1` needs parentheses to be evaluated: read as 8, as in fio";
    assert!(text.out.contains(note), "{text:#?}");
    assert_eq!(text.err, "");
    let json = folder
        .fio(&format!("{WORDS} --output-format=json"))
        .expect(0);
    assert_eq!(json.err, "");
    let json = json.json();
    assert_eq!(json["jobs"][0]["read"]["io_bytes"], 8);
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 2);
    let warnings = json["fathom"]["warnings"].as_array().unwrap();
    let codes: Vec<_> = warnings.iter().map(|warning| &warning["code"]).collect();
    assert!(codes.iter().any(|code| *code == "operator"), "{codes:?}");
    assert!(codes.iter().any(|code| *code == "bad_suffix"), "{codes:?}");
    let both = folder.fio(&format!("{WORDS} --output-format=normal,json"));
    assert!(both.expect(0).out.contains(note));
    let parsed = folder.fio(&format!("{WORDS} --parse-only")).expect(0);
    assert_eq!((parsed.out.as_str(), parsed.err.as_str()), ("", ""));
}

#[test]
fn the_environment_makes_it_an_error() {
    let folder = Folder::new();
    // Makes the link by which the program is called `fio`.
    let _version = folder.fio("--version");
    let link = folder.path().join("bin/fio");
    let strict = |value: &str| {
        let mut command = folder.command(link.to_str().unwrap(), WORDS);
        command.env("FATHOM_STRICT", value);
        Run::of(command)
    };
    let refused = strict("1").expect(1);
    for wanted in ["`q` is not a unit", "note: fio reads it as 8"] {
        assert!(refused.err.contains(wanted), "{refused:#?}");
    }
    strict("0").expect(0);
    let fathom = folder.fathom(&format!("run {WORDS}")).expect(2);
    assert!(
        fathom.err.contains("note: fio reads it as 4"),
        "{fathom:#?}"
    );
}

#[test]
fn lint_names_it_and_reads_on() {
    let folder = Folder::new();
    folder.write(
        "j.fio",
        "[t]\nioengine=null\nsize=8*1\nbs=4q\nrwmixread=70\n",
    );
    let run = folder.fathom("lint j.fio").expect(1);
    for wanted in ["[operator]", "[bad-suffix]", "rw=read` has one direction"] {
        assert!(run.out.contains(wanted), "no {wanted}: {run:#?}");
    }
}
