//! `fathom compare`: exit codes, sides, formats.

use crate::common::Folder;
use serde_json::{Value, json};

/// Writes runs with some bandwidths, an hour apart from others, as exported ones.
fn runs(folder: &Folder, name: &str, begun_ms: u64, values: &[f64]) {
    std::fs::create_dir_all(folder.path().join(name)).unwrap();
    for (at, value) in (0_u64..).zip(values) {
        let run = json!({
            "fathom_run": 1,
            "uuid": format!("{name}-{at}"),
            "begun_ms": begun_ms + at * 1000,
            "wall_ms": 1000,
            "plan": "[j]\nrw=write\n",
            "machine": {}, "subject": {}, "tags": {"side": name},
            "measures": [["", "write", "bw", value, null, null]],
        });
        folder.write(&format!("{name}/{at}.json"), format!("a note\n{run}\n"));
    }
}

const HOUR_MS: u64 = 3_600_000;

fn sides() -> Folder {
    let folder = Folder::new();
    runs(
        &folder,
        "before",
        HOUR_MS,
        &[100.0, 101.0, 99.0, 100.5, 98.5, 101.5],
    );
    runs(
        &folder,
        "after",
        2 * HOUR_MS,
        &[90.0, 91.0, 89.0, 90.5, 88.5, 91.5],
    );
    folder
}

#[test]
fn directories_are_compared_and_the_verdict_decides_the_exit_code() {
    let folder = sides();
    let words = "compare before after";
    let run = folder.fathom(words).expect(0);
    assert!(run.out.contains("unclear: not interleaved"), "{}", run.out);
    assert!(
        run.out.contains("59 min 54 s between the sides"),
        "{}",
        run.out
    );
    folder
        .fathom(&format!("{words} --fail-on unclear"))
        .expect(1);
    let run = folder.fathom(&format!("{words} --accept-drift")).expect(1);
    assert!(run.out.contains("worse"), "{}", run.out);
    folder
        .fathom(&format!("{words} --accept-drift --fail-on never"))
        .expect(0);
    folder
        .fathom("compare after before --accept-drift --fail-on unclear")
        .expect(0);
    let json: Value = folder
        .fathom(&format!("{words} --accept-drift --json"))
        .expect(1)
        .json();
    assert_eq!(json["metrics"][0]["verdict"], "worse");
    let markdown = folder.fathom(&format!("{words} --markdown")).expect(0).out;
    assert!(markdown.contains("| write.bw |"), "{markdown}");
}

#[test]
fn single_files_have_no_verdict() {
    let folder = sides();
    let run = folder.fathom("compare before/0.json after").expect(0);
    assert!(run.out.contains("no verdict: one run"), "{}", run.out);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = sides();
    for (words, want) in [
        ("compare nowhere after", "nowhere: No such file"),
        ("compare before/x.json after", "before/x.json"),
        (
            "compare before after --metric write.bandwidth",
            "no metric `bandwidth`",
        ),
        (
            "compare before after --metric write.clat_p99=1%",
            "known to 1.6 %",
        ),
        (
            "compare before after --metric write.bw --metric write.bw_mib_s=3%",
            "--metric write.bw_mib_s: `write.bw_mib_s` is `write.bw`, which is judged already",
        ),
        ("compare before after --tolerance 0", "above 0"),
        ("compare before before", "6 runs are on both sides"),
        (
            "compare before before/../before/2.json",
            "for independent: before-2",
        ),
        (
            "compare before after --metric read.bw --fail-on unclear",
            "no metric was compared: neither side has read.bw",
        ),
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains(want), "{words}: {}", run.err);
    }
}

#[cfg(feature = "history")]
#[test]
fn runs_of_the_history_are_sides_by_number_and_tag() {
    let folder = sides();
    folder.fathom("history import before after").expect(0);
    for words in [
        "compare 1-6 7-12",
        "compare tag:side=before tag:side=after",
        "compare 1-6 after",
    ] {
        folder.fathom(&format!("{words} --accept-drift")).expect(1);
    }
    for (words, want) in [
        ("compare 98 99", "98: no run 98 in the history"),
        ("compare tag:x after", "KEY=VALUE"),
        ("compare lab:none/plain after", "no runs"),
        ("compare 3-1 after", "a range"),
        ("compare 1-6 4-9", "3 runs are on both sides"),
        ("compare 1-6 before", "6 runs are on both sides"),
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains(want), "{words}: {}", run.err);
    }
}
