//! The summary at the end of a run's text report.

use crate::common::Folder;

/// Returns the command line of a run with `count` jobs.
fn jobs(count: usize, more: &str) -> String {
    let job = |number| format!("--name=job{number} --ioengine=null --size=64k --rw=randread ");
    let jobs: String = (1..=count).map(job).collect();
    format!("{more} {jobs}")
}

#[test]
fn more_than_four_reports_have_a_summary() {
    let folder = Folder::new();
    let has_summary = |words: &str| {
        let out = folder.fathom(&format!("run {words}")).expect(0).out;
        out.contains("\njob ")
    };
    assert!(!has_summary(&jobs(4, "")));
    assert!(has_summary(&jobs(5, "")));
    assert!(has_summary(&jobs(1, "--summary")));
    assert!(!has_summary(&jobs(5, "--summary=never")));
    // Groups are one report each.
    let grouped = "--name=g --ioengine=null --size=64k --numjobs=8 --group_reporting";
    assert!(!has_summary(grouped));
    let out = folder.fathom(&format!("run {}", jobs(5, ""))).expect(0).out;
    let lines: Vec<&str> = out.lines().collect();
    let last = &lines[lines.len() - 6..];
    assert!(
        last[0].starts_with("job ") && last[5].starts_with("job5 "),
        "{out}"
    );
    assert!(last.iter().all(|line| line.chars().count() <= 80), "{out}");
}

#[test]
fn other_formats_and_the_name_fio_have_none_unasked() {
    let folder = Folder::new();
    let out = folder.fio(&jobs(5, "")).expect(0).out;
    assert!(!out.contains("\njob "), "{out}");
    let out = folder.fio(&jobs(5, "--summary=always")).expect(0).out;
    assert!(out.contains("\njob "), "{out}");
    let run = folder.fathom(&format!(
        "run {}",
        jobs(5, "--summary --output-format=json")
    ));
    assert_eq!(run.json()["jobs"].as_array().unwrap().len(), 5);
    let run = folder.fathom(&format!("run {}", jobs(1, "--summary=sometimes")));
    assert!(
        run.err
            .contains("`sometimes` is not a value of `--summary`"),
        "{}",
        run.err
    );
    run.expect(2);
}

#[test]
fn control_characters_of_names_are_written_out_in_lines_of_fathom() {
    let folder = Folder::new();
    folder.write("m.toml", crate::stalls::MACHINE);
    let text = "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/modelled\nrw=randwrite\n\
                time_based\nruntime=4\n[a\u{1b}[2Jb]\niodepth=32\n";
    folder.write("j.fio", text);
    let run = folder.fathom("run --machine m.toml --summary j.fio");
    let out = run.expect(0).out;
    let raw = "a\u{1b}[2Jb";
    let shown = "a\\u{1b}[2Jb";
    for line in out.lines() {
        let is_of_fio = line.contains("(g") || line.contains("(groupid=");
        assert!(is_of_fio || !line.contains('\u{1b}'), "{line:?}");
    }
    assert!(out.contains(raw), "fio's lines have the name as it is");
    assert!(out.contains(&format!("in job {shown} (write)")), "{out}");
    assert!(out.contains(&format!("\n{shown} ")), "{out}");
}
