//! `fathom table hdd-…`: modelled tables beside the published figures, and what is refused.

use std::path::Path;

use crate::common::{Folder, Run};
use serde_json::Value;

#[track_caller]
fn rows(arguments: &str) -> Vec<Value> {
    let run = Folder::new().fathom(&format!("table {arguments} --json"));
    let table = run.expect(0).json();
    table["rows"].as_array().unwrap().clone()
}

#[test]
fn the_tags_table_has_the_requested_and_the_published_columns() {
    let rows = rows("hdd-tags --numjobs 1,16");
    assert_eq!(rows.len(), 2);
    let names: Vec<&str> = rows[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let ours = ["numjobs", "plain_mib_s", "fair_mib_s"];
    assert_eq!(names[..3], ours);
    assert_eq!(
        names[3..5],
        ["plain_sequential_ratio", "fair_sequential_ratio"]
    );
    let others = names[5..].iter();
    for name in others {
        assert!(
            name.starts_with("published_") || name.ends_with("_error_percent"),
            "{name}"
        );
    }
    assert_eq!(rows[0]["numjobs"], 1);
    for (name, published) in [("plain", 64.8), ("fair", 65.6)] {
        let modelled = rows[1][format!("{name}_mib_s")].as_f64().unwrap();
        assert!(
            (modelled / published - 1.0).abs() < 0.25,
            "{name}: {modelled}"
        );
        assert_eq!(rows[1][format!("published_{name}_mib_s")], published);
        let ratio = &rows[0][format!("{name}_sequential_ratio")];
        assert!(ratio.as_f64().unwrap() >= 0.85, "{name}: {ratio}");
    }
}

#[test]
fn other_configurations_have_no_published_figures() {
    for asked in [
        "--rw randread",
        "--write-cache on",
        "--machine usb",
        "--machine array",
        "--machine ssd",
        "--nr-requests 256",
    ] {
        let rows = rows(&format!("hdd-tags --numjobs 8 {asked}"));
        assert!(rows[0]["plain_mib_s"].as_f64().unwrap() > 0.0, "{asked}");
        assert_eq!(rows[0]["published_plain_mib_s"], Value::Null, "{asked}");
    }
    let shown = |words: &str| Folder::new().fathom(words).expect(0).out;
    let without = shown("table hdd-tags --numjobs 1 --machine ssd");
    assert!(!without.contains("nr_requests"), "{without}");
    let rows = rows("hdd-tags --numjobs 8 --policy elastic,fair-roundrobin");
    assert!(rows[0]["fair_roundrobin_mib_s"].as_f64().unwrap() > 0.0);
    assert!(rows[0].get("plain_mib_s").is_none());
}

#[test]
fn tables_fit_the_width_and_have_formats_for_programs() {
    let folder = Folder::new();
    let show = |options: &str| {
        folder
            .fathom(&format!("table hdd-tags {options}"))
            .expect(0)
            .out
    };
    let text = show("");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        text.contains("plain, MiB/s") && !text.contains("mib_s"),
        "{text}"
    );
    let mut wide = folder.command(env!("CARGO_BIN_EXE_fathom"), "table hdd-tags");
    wide.env("COLUMNS", "200");
    let wide = Run::of(wide).expect(0).out;
    assert!(wide.lines().count() < text.lines().count(), "{wide}");
    let csv = show("--numjobs 1,2 --csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(
        lines[0].starts_with("numjobs,plain_mib_s,fair_mib_s,"),
        "{csv}"
    );
    let fields = lines.iter().map(|line| line.split(',').count());
    assert!(fields.eq([11; 3]), "{csv}");
    let markdown = show("--numjobs 1 --markdown");
    assert!(
        markdown.contains("| jobs | plain, MiB/s: modelled |"),
        "{markdown}"
    );
    check_refused("hdd-tags --csv --json", "cannot be used with");
}

#[test]
fn a_picture_is_drawn() {
    let folder = Folder::new();
    folder.fathom("table hdd-single --svg single.svg").expect(0);
    let picture = std::fs::read_to_string(folder.path().join("single.svg")).unwrap();
    assert!(picture.contains("<polyline"));
}

#[track_caller]
fn check_refused(arguments: &str, want: &str) {
    let run = Folder::new()
        .fathom(&format!("table {arguments}"))
        .expect(2);
    assert!(run.err.contains(want), "{arguments}: {}", run.err);
}

#[test]
fn invalid_options_are_refused() {
    check_refused("hdd-tags --numjobs 0", "--numjobs");
    check_refused("hdd-tags --numjobs 901", "--numjobs");
    check_refused("hdd-tags --nr-requests 0", "--nr-requests");
    check_refused("hdd-tags --machine floppy", "possible values: hdd");
    check_refused("hdd-tags --machine ssd --write-cache on", "always on");
    check_refused("hdd-tags --machine ssd --nr-requests 1", "no I/O scheduler");
    check_refused("hdd-tags --policy fair,fair", "duplicate policy");
    check_refused("hdd-tags data", "is modelled and takes no target");
    check_refused("hdd-single data", "is modelled and takes no target");
    check_refused("task-list /x", "is measured in memory and takes no target");
    check_refused("task-list --seconds 1", "--seconds does not apply");
    check_refused("hdd-seeks --seconds 1", "--seconds does not apply");
    check_refused("task-list --repeats 2", "--repeats does not apply");
    check_refused("task-list --cpu 0", "--cpu does not apply");
    check_refused("aio-submit --cpu 0 /x", "--cpu does not apply");
    check_refused("hdd-single --numjobs 3", "use it with hdd-tags");
    check_refused("uring-irq", "no target");
}

/// Modelled pictures are the same on every machine, and those of the gallery are up to date, but
/// for rules of the style sheet that they may not need.
#[test]
fn the_gallery_has_the_modelled_pictures_that_its_commands_draw() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let gallery = std::fs::read_to_string(docs.join("GALLERY.md")).unwrap();
    let commands = gallery
        .lines()
        .filter_map(|line| line.strip_prefix("fathom table hdd-"));
    let mut drawn = 0;
    for command in commands {
        let (words, picture) = command.split_once("--svg docs/").unwrap();
        let folder = Folder::new();
        let words = format!("table hdd-{words} --svg picture.svg");
        folder.fathom(&words).expect(0);
        let kept = std::fs::read_to_string(docs.join(picture)).unwrap();
        let now = folder.read("picture.svg");
        let shapes = |svg: &str| {
            svg.split_once("</style>")
                .map(|(_, shapes)| shapes.to_owned())
        };
        assert!(
            shapes(&now).is_some() && shapes(&now) == shapes(&kept),
            "{picture} is not what its command draws: run `cargo xtask gallery --modelled`"
        );
        drawn += 1;
    }
    assert_eq!(drawn, 3);
}
