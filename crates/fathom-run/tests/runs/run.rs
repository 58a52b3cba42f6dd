//! Whole runs in this process: jobs that fail beside jobs that do not, groups, waves, two at once.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fathom_core::{EngineInfo, Nanos, Storage, Synchronous};
use fathom_engine::{Registration, Registry, built_in};
use fathom_job::{Plan, Settings};
use fathom_record::Record;
use fathom_run::run;
use fathom_setup::{ProblemKind, RunError, RunEvent, Session};
use fathom_sys::clock::sleep_until;

use fathom_setup::fixture;

/// Parses a command line of jobs with the built-in engines.
#[track_caller]
fn run_of(words: &str) -> (Plan, Settings) {
    fixture::run_of(words, Registry::built_in().infos())
}

/// Runs a command line and returns the result and the names of the events.
fn run_line(line: &str) -> (Result<Record, RunError>, Vec<&'static str>) {
    let (plan, settings) = run_of(line);
    let mut events = Vec::new();
    let mut session = Session {
        tell: &mut |event| {
            events.push(match event {
                RunEvent::Planned(_) => "planned",
                RunEvent::Starting(_) => "starting",
                RunEvent::LayingOut { .. } => "laying out",
                // How often it comes depends on the speed of the disk.
                RunEvent::LayoutProgress(_) => return,
                RunEvent::LaidOut => "laid out",
                RunEvent::Stopping => "stopping",
                _ => "other",
            });
        },
        stops: &|| 0,
        report_every: None,
        reports_asked: &|| 0,
        progress: None,
        jobs_fail_alone: false,
    };
    let record = run(&plan, &settings, &Registry::built_in(), &mut session);
    (record, events)
}

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fathom-run-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

fn reads(record: &Record) -> Vec<u64> {
    record
        .jobs
        .iter()
        .map(|job| job.directions.read.ios)
        .collect()
}

#[test]
fn a_job_that_cannot_open_its_file_holds_nobody_back() {
    let folder = Folder::new();
    let here = folder.0.display();
    // Files created on opening need their folder, which is not created.
    let line = format!(
        "--size=64k --rw=read --name=good --filename={here}/a --name=bad --create_on_open=1 \
         --filename={here}/missing/b --name=also_good --filename={here}/c"
    );
    let record = run_line(&line).0.expect("a record");
    let errors: Vec<_> = record.jobs.iter().map(|job| job.error).collect();
    assert_eq!(errors, [0, 2, 0]);
    assert_eq!(reads(&record), [16, 0, 16]);
    let text = record.jobs[1].error_text.clone().unwrap_or_default();
    assert!(text.contains("missing/b"), "{text}");
}

#[test]
fn a_wave_sees_what_the_wave_before_has_written() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let line = format!(
        "--size=64k --filename={} --verify=crc32c --name=w --rw=write --do_verify=0 --name=r \
         --rw=read --stonewall",
        data.display()
    );
    let record = run_line(&line).0.expect("a record");
    let errors: Vec<_> = record
        .jobs
        .iter()
        .map(|job| job.error_text.clone())
        .collect();
    assert_eq!(errors, [None, None]);
    assert_eq!(record.jobs[0].directions.write.ios, 16);
    assert_eq!(record.jobs[1].directions.read.ios, 16);
    assert_ne!(record.jobs[0].group_id, record.jobs[1].group_id);
    assert!(record.jobs[1].start_ms >= record.jobs[0].start_ms);
}

#[test]
fn events_come_in_order_and_nothing_is_made_on_refusal() {
    let folder = Folder::new();
    let line = format!(
        "--name=t --rw=read --size=64k --directory={}",
        folder.0.display()
    );
    let (record, events) = run_line(&line);
    assert!(record.is_ok());
    assert_eq!(events, ["planned", "starting", "laying out", "laid out"]);

    let line = format!(
        "{line} --name=u --size=64k --directory={} --filename=.",
        folder.0.display()
    );
    std::fs::remove_file(folder.0.join("t.0.0")).expect("laid out");
    let (record, events) = run_line(&line);
    let error = record.expect_err("a directory is no file");
    assert_eq!(error.problems[0].kind, ProblemKind::IsADirectory);
    assert!(events.is_empty());
    assert_eq!(std::fs::read_dir(&folder.0).expect("the folder").count(), 0);
}

#[test]
fn two_runs_go_on_in_one_process() {
    let line = "--name=t --ioengine=null --rw=randread --size=1m --iodepth=4";
    std::thread::scope(|scope| {
        let both = [
            scope.spawn(|| run_line(line)),
            scope.spawn(|| run_line(line)),
        ];
        for one in both {
            let (record, _) = one.join().expect("no panic");
            assert_eq!(reads(&record.expect("a record")), [256]);
        }
    });
}

#[test]
fn a_stop_before_the_start_gives_an_empty_record() {
    let (plan, settings) = run_of("--name=t --ioengine=null --size=1m");
    let mut stopping = 0;
    let mut session = Session {
        tell: &mut |event| stopping += u32::from(matches!(event, RunEvent::Stopping)),
        stops: &|| 1,
        report_every: None,
        reports_asked: &|| 0,
        progress: None,
        jobs_fail_alone: false,
    };
    let record = run(&plan, &settings, &Registry::built_in(), &mut session).expect("a record");
    assert_eq!(reads(&record), [0]);
    assert_eq!(stopping, 1);
}

/// The engine `null`, but it takes the job `far` two seconds to start it.
static FAR_INFO: EngineInfo = EngineInfo {
    synchronous: Synchronous::Never,
    storage: Storage::None,
    ..EngineInfo::new("far", "takes two seconds to start")
};

const FAR: Registration = Registration::new(&FAR_INFO, |config| {
    // Only on the job's thread: the checks before a run start each engine, too.
    if std::thread::current().name() == Some("far") {
        IS_OPENING.store(true, Ordering::Relaxed);
        sleep_until(&config.clock, config.clock.now() + Nanos::from_secs(2));
    }
    (built_in("null").start)(config)
});

/// The job `far` has begun to start its engine.
static IS_OPENING: AtomicBool = AtomicBool::new(false);

#[test]
fn jobs_that_have_not_opened_their_files_are_named_when_the_run_is_to_stop() {
    let registry = Registry::built_in().with(FAR);
    let line = "--name=near --ioengine=null --size=1m --name=far --ioengine=far --size=1m";
    let (plan, settings) = fixture::run_of(line, registry.infos());
    let mut events = Vec::new();
    let mut session = Session {
        tell: &mut |event| match event {
            RunEvent::Stopping => events.push("stopping".to_owned()),
            RunEvent::StillOpening(jobs) => events.push(jobs.join(", ")),
            RunEvent::StillStopping(jobs) => events.push(format!("draining {jobs:?}")),
            _ => {}
        },
        stops: &|| u32::from(IS_OPENING.load(Ordering::Relaxed)),
        report_every: None,
        reports_asked: &|| 0,
        progress: None,
        jobs_fail_alone: false,
    };
    let record = run(&plan, &settings, &registry, &mut session).expect("a record");
    assert_eq!(reads(&record), [0, 0]);
    assert_eq!(events, ["stopping", "far"]);
}

#[test]
fn five_hundred_clones_are_one_run() {
    let line = "--name=t --ioengine=null --rw=randread --size=64k --numjobs=512";
    let record = run_line(line).0.expect("a record");
    assert_eq!(reads(&record), vec![16; 512]);
    assert!(record.jobs.iter().all(|job| job.error == 0));
}
