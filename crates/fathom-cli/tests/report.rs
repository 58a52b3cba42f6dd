//! `fathom report`: pages of runs that were kept.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::Folder;

const MACHINE: &str = "[[device]]\nnames = [\"/dev/sdx\"]\nmodel = \"constant\"\ncapacity_gib = 1\n\
                       [device.constant]\nlatency_us = 100\n";

/// Returns a folder with the record of a modelled run.
fn recorded() -> Folder {
    let folder = Folder::new();
    folder.write("m.toml", MACHINE);
    let job = "--name=</script><script> --filename=/dev/sdx --rw=randread --bs=4k --iodepth=4 \
               --ioengine=libaio --time_based --runtime=2";
    folder
        .fathom(&format!("run --machine m.toml --record run.json {job}"))
        .expect(0);
    folder
}

#[test]
fn a_record_becomes_a_page() {
    let folder = recorded();
    folder.fathom("report run.json --html run.html").expect(0);
    let page = std::fs::read_to_string(folder.path().join("run.html")).unwrap();
    for text in [
        "default-src 'none'",
        "modelled on m.toml",
        "Latency by percentile",
        "Group 0, read",
        "[&lt;/script&gt;&lt;script&gt;]",
        "rw=randread",
        "40000",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(
        !page.contains("<script") && !page.contains("http:"),
        "{page}"
    );
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    // The same record gives the same page.
    folder.fathom("report run.json --html again.html").expect(0);
    let again = std::fs::read_to_string(folder.path().join("again.html")).unwrap();
    assert_eq!(page, again);
}

#[test]
fn what_has_no_page_is_refused() {
    let folder = recorded();
    folder.write("fio.json", "{\"fio version\": \"fio-3.33\", \"jobs\": []}");
    folder.write("later.json", "{\"version\": 99, \"jobs\": []}");
    for (words, why) in [
        ("report nowhere.json --html a.html", "nowhere.json"),
        ("report fio.json --html a.html", "has no job"),
        ("report later.json --html a.html", "later.json"),
        (
            "report run.json --html no/such/a.html",
            "--html: no/such/a.html",
        ),
    ] {
        let run = folder.fathom(words).expect(2);
        assert!(run.err.contains(why), "{words}: {}", run.err);
    }
    assert!(!folder.path().join("a.html").exists());
}
