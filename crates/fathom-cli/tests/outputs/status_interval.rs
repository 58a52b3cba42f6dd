//! `--status-interval`: complete reports while the jobs run, in every format.

use crate::common::Folder;
use serde_json::{Deserializer, Value};

/// Job of somewhat over a second at 100 IOPS, with three reports per second.
const JOB: &str = "--name=t --ioengine=null --rw=read --size=1g --rate_iops=100 --runtime=1200ms \
                   --time_based --status-interval=300ms --eta=never";

#[test]
fn json_comes_as_one_document_after_another() {
    let folder = Folder::new();
    for run in [
        folder.fio(&format!("{JOB} --output-format=json")),
        folder.fathom(&format!("run {JOB} --output-format=json")),
    ] {
        let run = run.expect(0);
        let documents: Result<Vec<Value>, _> =
            Deserializer::from_str(&run.out).into_iter().collect();
        let documents = documents.unwrap();
        // A busy machine may be late for one of them, not for most.
        assert!((3..=5).contains(&documents.len()), "{}", documents.len());
        let ios: Vec<u64> = documents
            .iter()
            .map(|d| number(d, "/jobs/0/read/total_ios"))
            .collect();
        assert!(
            ios.is_sorted() && ios[0] > 0 && ios[0] < ios[ios.len() - 1],
            "{ios:?}"
        );
        for document in &documents {
            let [ios, ms, clat] = ["total_ios", "runtime", "clat_ns/N"]
                .map(|key| number(document, &format!("/jobs/0/read/{key}")));
            assert_eq!(ios, clat);
            // A busy machine makes fewer of them.
            assert!(ios <= ms / 10 + 2, "{ios} ops in {ms} ms");
            assert_eq!(number(document, "/jobs/0/job_runtime"), ms);
        }
        let alone = run.out.lines().filter(|line| *line == "{").count();
        assert_eq!(alone, documents.len());
    }
}

#[test]
fn terse_lines_appear_as_jobs_report() {
    let folder = Folder::new();
    let run = folder
        .fio(&format!("{JOB} --minimal --terse-version=5"))
        .expect(0);
    let kib: Vec<u64> = run
        .out
        .lines()
        .map(|line| {
            assert!(line.starts_with("5;fio-3."), "{line}");
            line.split(';').nth(5).unwrap().parse().unwrap()
        })
        .collect();
    assert!((3..=5).contains(&kib.len()) && kib.is_sorted(), "{kib:?}");
}

#[test]
fn text_comes_block_by_block() {
    let folder = Folder::new();
    let run = folder.fio(JOB).expect(0);
    let count = |start: &str| {
        run.out
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    assert!(
        (3..=5).contains(&count("t: (groupid=0, jobs=1): err= 0")),
        "{run:#?}"
    );
    assert_eq!(count("t: (groupid=0"), count("Run status group 0"));
    assert_eq!(count("Starting"), 1);
}

#[test]
fn ended_and_waiting_jobs_are_in_an_interim_report() {
    let folder = Folder::new();
    let common = "--ioengine=null --rw=read --bs=4k --status-interval=300ms --eta=never \
                  --output-format=json --size=1g --rate_iops=100";
    let jobs = "--name=a --number_ios=5 --name=b --runtime=500ms --time_based \
                --name=c --stonewall --runtime=400ms --time_based";
    let run = folder.fio(&format!("{common} {jobs}")).expect(0);
    let mut documents = Deserializer::from_str(&run.out).into_iter::<Value>();
    let first = documents.next().unwrap().unwrap();
    let ios = |job: usize| number(&first, &format!("/jobs/{job}/read/total_ios"));
    assert_eq!((ios(0), ios(2)), (5, 0), "{first}");
    assert!((1..50).contains(&ios(1)), "{first}");
    let last = documents.last().unwrap().unwrap();
    assert!(number(&last, "/jobs/2/read/total_ios") >= 39, "{last}");
}

#[track_caller]
fn number(document: &Value, pointer: &str) -> u64 {
    document
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("{pointer}"))
}

/// Large blocks in memory: nearly all of the CPU time is the workers'.
#[test]
fn an_interim_report_includes_cpu_time_of_workers() {
    for engine in ["psync", "io_uring"] {
        let folder = Folder::new();
        let words = format!(
            "run --name=t --io_submit_mode=offload --ioengine={engine} --rw=read --bs=1m \
             --size=16m --iodepth=4 --filename=data --time_based --runtime=1300ms \
             --status-interval=500ms --eta=never --output-format=json"
        );
        let run = folder.fathom(&words);
        if run.err.contains("io_uring_setup") {
            println!("skipped: {}", run.err);
            continue;
        }
        let run = run.expect(0);
        let documents = Deserializer::from_str(&run.out).into_iter::<Value>();
        // Per byte, so that it does not matter what else the machine does meanwhile.
        let costs: Vec<f64> = documents
            .map(|document| {
                let job = &document.unwrap()["jobs"][0];
                let share = |key: &str| job[key].as_f64().unwrap_or(0.0);
                let ms = job["job_runtime"].as_f64().unwrap();
                let bytes = job["read"]["io_bytes"].as_f64().unwrap();
                (share("usr_cpu") + share("sys_cpu")) * ms / bytes.max(1.0)
            })
            .collect();
        let (last, earlier) = costs.split_last().unwrap();
        assert!(!earlier.is_empty() && *last > 0.0, "{engine}: {costs:?}");
        let told = |cost: &f64| *cost > last * 0.6;
        assert!(earlier.iter().all(told), "{engine}: {costs:?}");
    }
}
