//! `fathom lint`: places, forms and exit codes. What each rule finds is tested beside the rules.

use crate::common::Folder;

const DOUBTFUL: &str = "[global]\nioengine=psync\nsize=1m\n\n[a]\nrw=randread\niodepth=8\n\n\
                        [b]\nrw=read\nrwmixread=70\n";

#[test]
fn each_finding_shows_its_line_what_will_happen_and_the_fix() {
    let folder = Folder::new();
    folder.write("j.fio", DOUBTFUL);
    let run = folder.fathom("lint j.fio");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let wanted = [
        "fathom: j.fio:3:6: warning: jobs `a` and `b`: reads are buffered, and the job's 1 MiB \
         fit",
        "[cached-reads]\n  |\n3 | size=1m\n  |      ^^\nhint: add `direct=1`",
        // The parser's own warnings are findings like any other.
        "fathom: j.fio:7:9: warning: both iodepth >= 1 and synchronous I/O engine",
        "fathom: j.fio:11:11: warning: job `b`: `rw=read` has one direction",
        "11 | rwmixread=70\n   |           ^^\nhint: use `rw=rw` for both",
    ];
    let mut rest = run.out.as_str();
    for part in wanted {
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("no {part}\n{}", run.out));
        rest = &rest[at..];
    }
    assert_eq!(folder.names(), ["j.fio"], "nothing is laid out");
}

#[test]
fn tools_get_the_findings_as_json() {
    let folder = Folder::new();
    folder.write("j.fio", DOUBTFUL);
    let run = folder.fathom("lint --json j.fio");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let found = &json["findings"][0];
    assert_eq!(found["rule"], "cached-reads");
    assert_eq!(found["jobs"], serde_json::json!(["a", "b"]));
    assert_eq!((&found["line"], &found["column"]), (&3.into(), &6.into()));
    assert_eq!(found["text"], "1m");
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(3));
}

#[test]
fn the_exit_code_distinguishes_findings_none_and_errors() {
    let folder = Folder::new();
    let sound = "--name=t --size=1m --rw=randread --direct=1";
    for (words, code) in [
        (sound, 0),
        ("--json --name=t --size=1m --rw=randread --direct=1", 0),
        ("--name=t --size=1m --direct=1 --rw=read --rwmixread=7", 1),
        // What cannot be run is found as well.
        ("--name=t --rw=read --direct=1 --filename=missing", 1),
        ("--name=t --bogus=1", 2),
        ("missing.fio", 2),
        ("", 2),
        ("--rules", 0),
    ] {
        let run = folder.fathom(&format!("lint {words}"));
        assert_eq!(run.code, Some(code), "{words}: {}{}", run.out, run.err);
    }
}
