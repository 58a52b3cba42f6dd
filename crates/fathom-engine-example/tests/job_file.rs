//! The engine from a job file to the record, and the job language's handling of its option.

mod host;

use fathom_engine::Registry;
use fathom_engine_example::ENGINE;
use fathom_job::Invocation;

use host::{Host, run_with};

const JOB: &str = "[slow]\nioengine=delay\ndelay_us=200\nrw=randread\nbs=4k\nsize=64k\niodepth=4\n";

#[test]
fn a_job_file_runs_on_the_engine_and_leaves_no_file() {
    let host = Host::with(JOB, ENGINE);
    let record = run_with(&host, &host.engines, "j.fio").expect("a record");
    let job = &record.jobs[0];
    assert_eq!((job.engine.as_str(), job.error), ("delay", 0));
    assert!(job.asynchronous);
    let reads = &job.directions.read;
    assert_eq!((reads.ios, reads.bytes), (16, 64 << 10));
    let clat = reads.clat.as_ref().expect("a latency");
    assert!(clat.summary.min() >= 200_000, "{clat:?}");
    assert!(!std::path::Path::new("slow.0.0").exists());
}

#[test]
fn workers_submit_to_it_like_to_any_other() {
    let host = Host::with(JOB, ENGINE);
    let words = "--name=x --ioengine=delay --delay_us=1 --rw=write --size=64k --iodepth=4 \
                 --io_submit_mode=offload";
    let record = run_with(&host, &host.engines, words).expect("a record");
    assert_eq!(record.jobs[0].directions.write.ios, 16);
}

#[test]
fn a_run_without_the_engine_refuses_the_plan() {
    let host = Host::with(JOB, ENGINE);
    let error = run_with(&host, &Registry::built_in(), "j.fio").expect_err("no such engine");
    assert!(error.to_string().contains("`delay`"), "{error}");
}

/// Checks the places and codes of the errors in a job file.
#[track_caller]
fn check_refused(job_file: &'static str, want: &[&str]) {
    let refusal = Host::with(job_file, ENGINE)
        .parse("j.fio")
        .expect_err(job_file);
    let errors = refusal.diagnostics.iter().map(|error| {
        let origin = &error.origin;
        format!("{}:{} {}", origin.line, origin.column, error.code)
    });
    assert_eq!(errors.collect::<Vec<_>>(), want, "{job_file}");
}

#[test]
fn its_option_is_checked_like_those_of_the_table() {
    let too_large = "[a]\nioengine=delay\nsize=1m\ndelay_us=1000001\n";
    check_refused(too_large, &["4:10 out-of-range"]);
    let no_number = "[a]\nioengine=delay\nsize=1m\ndelay_us=soon\n";
    check_refused(no_number, &["4:10 not-a-number"]);
    let other_engine = "[a]\nioengine=psync\nsize=1m\ndelay_us=1\n";
    check_refused(other_engine, &["4:1 other-engine"]);
    let misspelt = "[a]\nioengine=delay\nsize=1m\ndelay_ms=1\n";
    check_refused(misspelt, &["4:1 unknown-option"]);
}

/// Returns the output of a command line.
#[track_caller]
fn printed(words: &str) -> String {
    match Host::with(JOB, ENGINE).parse(words) {
        Ok(Invocation::Print(text)) => text,
        Ok(other) => panic!("{words}: {other:?}"),
        Err(refusal) => panic!("{words}: {}", refusal.diagnostics.render("fathom", false)),
    }
}

#[test]
fn help_lists_the_engine_and_its_option() {
    assert!(printed("--enghelp").contains("\tdelay\n"));
    assert!(printed("--enghelp=delay").contains("Time that each op takes"));
    let option = printed("--enghelp=delay,delay_us");
    assert!(option.contains("min=0, max=1000000"), "{option}");
    assert!(printed("--cmdhelp=delay_us").contains("engines: delay"));
    assert!(printed("--showcmd j.fio").contains("--delay_us=200"));
}
