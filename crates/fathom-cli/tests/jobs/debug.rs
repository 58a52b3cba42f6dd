//! `--debug`: fio's lines where tools look for them, and none without the switch.

use crate::common::Folder;

const JOB: &str = "--name=x --ioengine=null --size=8k --rw=randread";

/// Returns the debug lines of a category, without category and process.
fn of_kind(kind: &str, text: &str) -> Vec<String> {
    let head = format!("{kind:<8} ");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&head));
    lines.map(|line| line[6..].to_owned()).collect()
}

#[test]
fn debug_reports_every_stage_of_an_op() {
    let folder = Folder::new();
    let run = folder.fio(&format!("--debug=io {JOB}"));
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(
        run.out.starts_with("fio: set debug option io\n"),
        "{}",
        run.out
    );
    let lines = of_kind("io", &run.out);
    let stages = ["fill", "prep", "queue", "complete"];
    for (line, stage) in lines.iter().zip(stages.iter().cycle()) {
        assert!(
            line.starts_with(&format!("{stage}: io_u 0x0: off=0x")),
            "{line}"
        );
        assert!(line.ends_with(",len=0x1000,ddir=0,file=x.0.0"), "{line}");
    }
    assert_eq!(lines.len(), 8);
    assert!(run.out.contains("\nx: (groupid=0, jobs=1): err= 0"));
}

#[test]
fn debug_writes_seeds_and_options_to_the_output_file() {
    let folder = Folder::new();
    let seeds = |words: &str| {
        let run = folder.fio(&format!("--debug=random,parse {JOB} --output=o {words}"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let text = std::fs::read_to_string(folder.path().join("o")).unwrap();
        assert!(of_kind("parse", &text).contains(&"handle_option=rw, ptr=randread".to_owned()));
        of_kind("random", &text)
    };
    let fixed = seeds("");
    assert_eq!(fixed[0], "FIO_RAND_NR_OFFS=1");
    assert!(fixed[1].starts_with("rand_seeds[0]="));
    assert_eq!(seeds("--randrepeat=1"), fixed);
    assert_ne!(seeds("--randrepeat=0"), seeds("--randrepeat=0"));
    assert_eq!(
        seeds("--randseed=12345 --randrepeat=0"),
        seeds("--randseed=12345")
    );
}

/// As in fio's own steady-state test, which has no job.
#[test]
fn debug_prints_the_steady_state_rule_without_a_run() {
    let folder = Folder::new();
    for (value, want) in [
        ("iops:10", "set steady state IOPS threshold to 10.000000"),
        ("iops:10%", "set steady state threshold to 10.000000%"),
        ("bw_slope:.1%", "set steady state threshold to 0.100000%"),
        ("bw:12", "set steady state BW threshold to 12"),
        ("bw:4k", "set steady state BW threshold to 4096"),
    ] {
        let run = folder.fio(&format!("--debug=parse --parse-only --ss={value}"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{value}");
        let lines = of_kind("parse", &run.out);
        assert!(lines.iter().any(|line| line == want), "{value}: {lines:?}");
    }
    let quiet = folder.fio("--parse-only --ss=iops:10");
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
}

#[test]
fn data_stay_clean() {
    let folder = Folder::new();
    let run = folder.fio(&format!("--debug=all {JOB} --output-format=json"));
    assert!(serde_json::from_str::<serde_json::Value>(&run.out).is_ok());
    assert!(
        run.err.starts_with("fio: set all debug options\n"),
        "{}",
        run.err
    );
    let run = folder.fathom(&format!("run --debug=io {JOB}"));
    assert_eq!(of_kind("io", &run.out), [""; 0]);
    assert_eq!(of_kind("io", &run.err).len(), 8);
    let run = folder.fio(JOB);
    assert_eq!(of_kind("io", &format!("{}{}", run.out, run.err)), [""; 0]);
}

#[test]
fn one_job_can_be_chosen_and_kinds_are_listed() {
    let folder = Folder::new();
    let run = folder.fio(&format!("--debug=io,job:2 {JOB} --numjobs=3"));
    assert_eq!(of_kind("io", &run.out).len(), 8, "{}", run.out);
    let run = folder.fio("--debug=help");
    assert_eq!(run.code, Some(0));
    assert!(
        run.out
            .starts_with("fio: dumping debug options:process,file,io,")
    );
    // fio notes it and goes on.
    let run = folder.fio(&format!("--debug=bogus {JOB}")).expect(0);
    let unknown = "unknown debug category `bogus`";
    assert!(run.out.contains(unknown), "{}", run.out);
    let run = folder.fathom(&format!("run --debug=bogus {JOB}")).expect(2);
    assert!(run.err.contains(unknown), "{}", run.err);
}
