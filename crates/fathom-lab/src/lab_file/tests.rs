//! Lab files that are read, and the runs that they describe.

mod includes;
mod judged;
mod modelled;
mod refusals;

use std::collections::BTreeMap;
use std::io;

use fathom_core::EngineInfo;
use fathom_engine::Registry;
use fathom_job::Environment;

use crate::{LabPlan, Subject, order};

/// Environment of files that are texts; others are those of the disk.
pub(crate) struct Files {
    registry: Registry,
    texts: BTreeMap<String, String>,
}

impl Files {
    pub(crate) fn new(texts: &[(&str, &str)]) -> Self {
        let texts = texts
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()));
        Self {
            registry: Registry::built_in().with(fathom_net::NVME_TCP),
            texts: texts.collect(),
        }
    }
}

impl Environment for Files {
    fn engines(&self) -> &[&'static EngineInfo] {
        self.registry.infos()
    }

    fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.texts.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => std::fs::read(path),
        }
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn cpus(&self) -> u32 {
        4
    }

    fn page_size(&self) -> u64 {
        4096
    }

    fn memory_mib(&self) -> u64 {
        4096
    }
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lab");

#[track_caller]
fn example(name: &str) -> LabPlan {
    example_with(name, &[])
}

#[track_caller]
fn example_with(name: &str, arguments: &[(&str, &str)]) -> LabPlan {
    let file = format!("{FOLDER}/{name}.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let arguments = arguments.iter();
    let arguments: Vec<_> = arguments
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    LabPlan::parse(&file, &text, &arguments, &Files::new(&[])).unwrap_or_else(|problems| {
        let told = problems.iter().map(|one| {
            let origin = &one.origin;
            let place = format!("{name}.toml:{}:{}", origin.line, origin.column);
            format!("{place}: {} | {}", one.message, one.hint)
        });
        panic!("{:#?}", told.collect::<Vec<_>>());
    })
}

#[test]
fn every_example_is_read() {
    for (name, arguments, cells, figures) in [
        ("hdd-tags", &[][..], 10, 14),
        ("hdd-single", &[], 7, 7),
        ("uring-irq", &[("DEV", "/dev/x")], 7, 56),
        ("log-entries", &[("DEV", "/dev/x")], 1, 12),
        ("aio-submit", &[("FOLDER", "/tmp"), ("MEMORY", "/m")], 9, 8),
        ("io-pacing", &[], 16, 32),
        ("snia-iops", &[("DEV", "/dev/x")], 56, 0),
        ("curve", &[], 7, 0),
        ("search", &[], 1, 0),
        ("ci-gate", &[("BEFORE", "/a"), ("AFTER", "/b")], 3, 0),
    ] {
        let plan = example_with(name, arguments);
        assert_eq!(plan.name, name);
        assert_eq!(plan.cells.len(), cells, "{name}");
        let published = plan.published.iter();
        let found: usize = published.map(|one| one.figures.len()).sum();
        assert_eq!(found, figures, "{name}");
        assert!(!plan.overview(&Files::new(&[]), &[]).is_empty());
    }
    let in_folder = std::fs::read_dir(FOLDER).unwrap();
    let names = in_folder.map(|entry| entry.unwrap().file_name());
    let files = names.filter(|name| name.to_string_lossy().ends_with(".toml"));
    assert_eq!(files.count(), 10);
}

#[test]
fn hdd_tags_is_read() {
    let plan = example("hdd-tags");
    assert_eq!(plan.cells.len(), 10);
    assert_eq!(plan.cells[7].label, "numjobs=128");
    assert_eq!(plan.comparisons(), 10);
    let names: Vec<&str> = plan.variants.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["plain", "fair"]);
    let text = plan.run_of(7, 1, 9);
    let job = text.job.unwrap();
    for line in ["randseed=9", "numjobs=128", "offset_increment=824m"] {
        assert!(job.lines().any(|known| known == line), "{line}: {job}");
    }
    assert!(text.machine.unwrap().text.contains("policy = \"fair\""));
    let published = &plan.published[0];
    assert_eq!(published.figure(9, 0, "write.bw_mib_s"), Some(31.8));
    assert!(matches!(plan.subject, Subject::Job(_)));
}

#[test]
fn orders_are_drawn_and_repeat() {
    let plan = example("hdd-tags");
    let first = order(&plan, 0);
    assert_eq!(first, order(&plan, 0));
    assert_ne!(first, order(&plan, 1));
    assert_eq!(first.len(), 20);
    for pair in first.chunks(2) {
        assert_eq!((pair[0].cell, pair[0].seed), (pair[1].cell, pair[1].seed));
        assert_ne!(pair[0].variant, pair[1].variant);
    }
    let alone = order(&plan.all_baseline(), 0);
    assert!(alone.chunks(2).all(|pair| pair[0].seed != pair[1].seed));
}

const SMALL: &str = r#"[lab]
name = "small"
[job]
ioengine = "null"
size = "1m"
rw = "read"
"#;

/// Parses a small lab file followed by these lines, and returns its problems as lines.
pub(crate) fn problems(text: &str) -> Vec<String> {
    problems_of(&format!("{SMALL}{text}"), &[])
}

pub(crate) fn problems_of(text: &str, arguments: &[(String, String)]) -> Vec<String> {
    let files = [
        (
            "f/m.toml",
            r#"[[device]]
names = ["*"]
model = "constant"
capacity_gib = 1
[device.constant]
latency_us = 100
[noise.neighbour]
every_s = 25
for_s = 1
times = 1.2
"#,
        ),
        (
            "f/p.csv",
            r#"# a list
iodepth,plain_mib_s
1,2
9,8
"#,
        ),
        (
            "f/a.fio",
            r#"[a]
ioengine=null
rw=read
size=1m
iodept=4
"#,
        ),
    ];
    let found = LabPlan::parse("f/lab.toml", text, arguments, &Files::new(&files));
    let found = found.err().unwrap_or_default().into_iter();
    found
        .map(|one| {
            let place = format!(
                "{}:{}:{}",
                one.origin.file, one.origin.line, one.origin.column
            );
            format!("{place}: {} | {}", one.message, one.hint)
        })
        .collect()
}

#[track_caller]
fn check(text: &str, want: &[&str]) {
    assert_eq!(problems(text), want, "{text}");
}

#[test]
fn a_small_file_has_one_cell_and_no_judgement() {
    check("", &[]);
    let plan = LabPlan::parse("l.toml", SMALL, &[], &Files::new(&[])).unwrap();
    assert_eq!((plan.cells.len(), plan.variants.len()), (1, 1));
    assert_eq!(plan.comparisons(), 0);
    assert_eq!(order(&plan, 3).len(), 1);
}

#[test]
fn an_overview_says_what_a_lab_does() {
    let plan = example("hdd-tags");
    let text = plan.overview(&Files::new(&[]), &[]);
    for want in [
        "runs      10 cells × 2 variants, 12 to 40 repeats: 240 to 800 runs",
        "cell      9: numjobs=512",
        "time      8 h 0 min to 1 d 2 h, in virtual time, which takes far less real time",
        "written   nothing: the machine is modelled",
        "compared  10; fewer than 9 repeats could prove nothing",
    ] {
        assert!(text.lines().any(|line| line == want), "{want}\n{text}");
    }
    assert!(
        text.contains("found     9 times out of 10 with 12 repeats: a change of "),
        "{text}"
    );
}

#[test]
fn an_overview_names_the_figures_that_are_shown() {
    let plan = |judge: &str| {
        let text = format!(
            "[lab]\nname = \"s\"\n[job]\nfilename = \"f\"\nsize = \"1m\"\nrw = \"read\"\n\
             [axes]\niodepth = [1, 2]\n{judge}"
        );
        LabPlan::parse("f/lab.toml", &text, &[], &Files::new(&[])).expect("a lab")
    };
    let shown = |judge: &str| plan(judge).overview(&Files::new(&[]), &[]);
    let text = shown("");
    let want = "shown     all.iops, all.bw, all.clat_p99; the file names no metric";
    assert!(text.lines().any(|line| line == want), "{text}");
    let text = shown("[judge]\nshow = [\"read.bw\", \"read.clat_p50\"]\n");
    let want = "shown     read.bw, read.clat_p50";
    assert!(text.lines().any(|line| line == want), "{text}");
}

#[test]
fn an_overview_bounds_what_is_written() {
    let text = r#"[lab]
name = "w"
writes = ["/dev/x"]
[job]
filename = "/dev/x"
rw = "randwrite"
size = "1m"
numjobs = 2
[run]
before = "echo before"
"#;
    let plan = LabPlan::parse("l.toml", text, &[], &Files::new(&[])).unwrap();
    let text = plan.overview(&Files::new(&[]), &[]);
    assert!(
        text.contains("written   /dev/x: at most 2 MiB in all\n"),
        "{text}"
    );
    assert!(text.contains("before    echo before\n"), "{text}");
}

#[test]
fn an_overview_says_what_is_judged_and_how_long_it_takes_at_least() {
    let text = r#"[lab]
name = "s"
[job]
filename = "f"
size = "1m"
rw = "read"
[variants]
many = { iodepth = 2 }
few = { iodepth = 1 }
[judge]
baseline = "many"
metrics = { "read.iops" = "2%" }
"#;
    let plan = LabPlan::parse("l.toml", text, &[], &Files::new(&[])).unwrap();
    let text = plan.overview(&Files::new(&[]), &[]);
    for want in [
        "judged    read.iops against baseline `many`; changes within ±2 % are ignored",
        "written   only files that do not exist yet, laid out once before they are read",
        "time      at least 0 s: jobs without a runtime take as long as their size needs",
    ] {
        assert!(text.lines().any(|line| line == want), "{want}\n{text}");
    }
}

#[test]
fn a_rehearsal_is_on_the_other_machine_alone() {
    let small = SMALL.replace("\"null\"", "\"psync\"\nfilename = \"x\"");
    let text = format!("{small}[run]\nbefore = \"rm x\"\n[variants]\na = {{ bs = \"8k\" }}\n");
    let files = Files::new(&[]);
    let plan = LabPlan::parse("l.toml", &text, &[], &files).unwrap();
    let machine = crate::MachineSource {
        path: "m.toml".into(),
        text: "[[device]]\nnames = [\"*\"]\nmodel = \"constant\"\ncapacity_gib = \
               1\n[device.constant]\nlatency_us = 100\n"
            .into(),
    };
    let plan = plan.rehearsed_on(machine.clone(), &files).unwrap();
    let run = plan.run_of(0, 0, 1);
    assert_eq!(run.machine, Some(machine.clone()));
    assert!(run.run.before.is_empty());
    let problems = example("hdd-tags")
        .rehearsed_on(machine, &files)
        .unwrap_err();
    assert!(problems[0].origin.line > 20, "{problems:?}");
}

#[test]
fn the_first_file_of_the_document_is_read() {
    let document = include_str!("../../../../docs/LAB.md");
    let text = document.split("```toml\n").nth(1).unwrap();
    let text = text.split("```").next().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../depth.toml");
    let plan = LabPlan::parse(file, text, &[], &Files::new(&[])).unwrap();
    assert_eq!((plan.cells.len(), plan.variants.len()), (3, 2));
}
