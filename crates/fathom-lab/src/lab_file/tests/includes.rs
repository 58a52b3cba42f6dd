//! Job files that include others.

use super::Files;
use crate::{LabPlan, Subject};

const LAB: &str = "[lab]\nname = \"inc\"\n[job]\nfile = \"job.fio\"\nbs = \"8k\"\n";
const JOB: &str = "[global]\ninclude sub/a.fio ; a comment\n[j]\nrw=randread\n";

fn files(a: &str) -> Files {
    Files::new(&[
        ("f/job.fio", JOB),
        ("f/sub/a.fio", a),
        ("f/sub/b.fio", "size=1m\n"),
    ])
}

#[test]
fn included_files_stand_beside_the_job_file_and_in_its_text() {
    let a = "iodepth=2\ninclude=b.fio\nfilename=x\n";
    let plan = LabPlan::parse("f/lab.toml", LAB, &[], &files(a)).expect("a lab");
    let Subject::Job(job) = &plan.subject else {
        panic!("{:?}", plan.subject);
    };
    let want = "[global]\niodepth=2\nsize=1m\nfilename=x\n[j]\nrw=randread\n";
    assert_eq!(job.text, want);
    assert_eq!(job.place_of(2), ("f/sub/a.fio", 1));
    assert_eq!(job.place_of(3), ("f/sub/b.fio", 1));
    assert_eq!(job.place_of(6), ("f/job.fio", 4));
    let run = plan.run_of(0, 0, 7).job.expect("a job");
    assert!(
        !run.contains("include") && run.contains("size=1m\n"),
        "{run}"
    );
}

#[track_caller]
fn refused(a: &str, want: &str) {
    let problems = LabPlan::parse("f/lab.toml", LAB, &[], &files(a)).unwrap_err();
    let told = problems
        .iter()
        .map(|one| format!("{}:{}: {}", one.origin.file, one.origin.line, one.message));
    let told = told.collect::<Vec<_>>().join("\n");
    assert!(told.contains(want), "{told}");
}

#[test]
fn problems_of_included_files_are_at_their_places() {
    refused(
        "size=1m\n\niodept=3\n",
        "f/sub/a.fio:3: unknown option `iodept`",
    );
    refused("include c.fio\n", "cannot read `c.fio`");
    refused("include a.fio\n", "includes itself");
    // It is there, though not beside the file that includes it.
    refused("include job.fio\n", "f/sub/a.fio:1: cannot read `job.fio`");
    refused("[x]\n", "an included file cannot contain sections");
}
