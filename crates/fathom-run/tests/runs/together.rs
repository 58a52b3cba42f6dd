//! Runs of several ranks in this process, which talk through memory: they start, end and stop
//! together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use fathom_core::{Direction, Nanos};
use fathom_engine::Registry;
use fathom_hosts::fixture::{MemoryLink, memory_links};
use fathom_hosts::{Checks, Event, Gate, Link as _, Ranks, RanksOptions, Wave};
use fathom_job::{Plan, Rank, Settings};
use fathom_record::{HostRecord, Record};
use fathom_run::{Finished, run_together};
use fathom_setup::{ProblemKind, RunError, RunEvent, Session, fixture};
use fathom_sys::clock::{Clock, sleep};

/// Folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("fathom-together-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn entries(&self) -> usize {
        std::fs::read_dir(&self.0).expect("the folder").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// Run of one rank.
struct Ended {
    result: Result<Finished, RunError>,
    /// Exit code of all.
    code: u8,
    /// Names of its layouts.
    layouts: usize,
}

impl Ended {
    #[track_caller]
    fn record(&self) -> &Record {
        &self.result.as_ref().expect("a record").record
    }

    #[track_caller]
    fn host(&self) -> &HostRecord {
        &self.record().hosts[0]
    }

    /// Returns the reads of each job.
    #[track_caller]
    fn reads(&self) -> Vec<u64> {
        let jobs = self.record().jobs.iter();
        jobs.map(|job| job.directions.read.ios).collect()
    }

    #[track_caller]
    fn refusal(&self) -> &RunError {
        self.result.as_ref().expect_err("a refusal")
    }
}

/// Run of several ranks: a command line each.
#[derive(Default)]
struct Together {
    stop_together: bool,
    /// Rank whose user asks to stop once its jobs have read something.
    stopped: Option<u32>,
    /// Events of rank 0.
    told: Arc<Mutex<Vec<Event>>>,
}

impl Together {
    fn run(&self, lines: &[String]) -> Vec<Ended> {
        let links = memory_links(u32::try_from(lines.len()).expect("a few"));
        std::thread::scope(|scope| {
            let both = lines.iter().zip(links);
            let threads: Vec<_> = both
                .map(|(line, link)| scope.spawn(|| self.run_rank(line, link)))
                .collect();
            let ended = threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"));
            ended.collect()
        })
    }

    fn ranks(&self, link: MemoryLink) -> Ranks<MemoryLink> {
        let clock = clock();
        let ahead = Nanos::new(u64::from(link.rank().get()) * AHEAD_NS.unsigned_abs());
        let told = Arc::clone(&self.told);
        let options = RanksOptions {
            clock: Box::new(move || clock.now() + ahead),
            wall_origin_ns: 1 << 60,
            host_ranks: 4,
            stop_together: self.stop_together,
            tell: Box::new(move |event| told.lock().expect("no panic").push(event.clone())),
        };
        Ranks::new(link, options).expect("a few ranks")
    }

    fn run_rank(&self, line: &str, link: MemoryLink) -> Ended {
        let mut ranks = self.ranks(link);
        let (rank, count) = ranks.place();
        let (mut plan, mut settings) = match line {
            "" => run_of("--name=none --ioengine=null --size=1m"),
            line => run_of(line),
        };
        if line.is_empty() {
            plan.jobs.clear();
        }
        settings.rank = Some(Rank {
            rank: rank.get(),
            ranks: count,
        });
        let (mut layouts, has_read) = (0, AtomicU32::new(0));
        let mut session = Session {
            tell: &mut |event| match event {
                RunEvent::LayingOut { .. } => layouts += 1,
                RunEvent::Progress(snapshot) => {
                    let reads = snapshot
                        .jobs
                        .iter()
                        .any(|job| job.bytes[Direction::Read] > 0);
                    has_read.fetch_or(u32::from(reads), Ordering::Relaxed);
                }
                _ => {}
            },
            stops: &|| match self.stopped == Some(rank.get()) {
                true => has_read.load(Ordering::Relaxed),
                false => 0,
            },
            report_every: None,
            reports_asked: &|| 0,
            progress: Some(Nanos::from_millis(10)),
            jobs_fail_alone: false,
        };
        let engines = Registry::built_in();
        let result = run_together(&plan, &settings, &engines, &mut session, &mut ranks);
        match &result {
            Ok(_) => ranks.through(0),
            Err(error) => ranks.failed(&error.to_string()),
        }
        Ended {
            result,
            code: leave(&mut ranks),
            layouts,
        }
    }
}

#[track_caller]
fn run_of(words: &str) -> (Plan, Settings) {
    fixture::run_of(words, Registry::built_in().infos())
}

/// Clock of all ranks, so that the truth is known.
fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(Clock::monotonic)
}

/// Waits until this rank may leave.
fn leave(ranks: &mut Ranks<MemoryLink>) -> u8 {
    loop {
        ranks.poll(true);
        if ranks.is_all_through() {
            let code = ranks
                .conductor()
                .map_or(2, |conductor| conductor.worst_code());
            ranks.leave(code);
        }
        if let Some(code) = ranks.may_leave() {
            return code;
        }
        sleep(ranks.patience().min(Nanos::from_millis(50)));
    }
}

fn run(lines: &[&str]) -> Vec<Ended> {
    let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    Together::default().run(&lines)
}

/// Difference between the clocks of one rank and the next.
const AHEAD_NS: i64 = 100_000_000_000;

const NULL: &str = "--ioengine=null --rw=randread";
/// Ends only when it is told to.
const ENDLESS: &str = "--size=1m --time_based=1 --runtime=10h";

#[test]
fn waves_start_together_and_after_each_other() {
    let line = format!("{NULL} --size=1m --name=a --numjobs=2 --name=b --stonewall --name=c");
    // One rank has no job, as if all its sections were others'.
    let ended = run(&[&line, &line, "", &line]);
    assert!(ended.iter().all(|one| one.code == 0));
    assert!(ended[2].reads().is_empty());
    let hosts: Vec<&HostRecord> = [0, 1, 3].map(|rank| ended[rank].host()).to_vec();
    let mut agreed = Vec::new();
    let bounds = hosts.iter().filter_map(|host| host.clock.bound_ns);
    let slack = bounds.sum::<u64>() * 2 + 1_000;
    for (rank, host) in [0, 1, 3].into_iter().zip(&hosts) {
        assert_eq!(ended[rank].reads(), [256; 4]);
        assert_eq!(host.clock.compared, "messages");
        let off = host
            .clock
            .offset_ns
            .abs_diff(i64::try_from(rank).expect("a few") * AHEAD_NS);
        let bound = host.clock.bound_ns.expect("compared");
        // The drift of a clock against itself is 0; until it is known, the bound allows for it.
        assert!(off <= bound + 1_000, "rank {rank}: off by {off} of {bound}");
        let waves: Vec<u32> = host.waves.iter().map(|wave| wave.wave).collect();
        assert_eq!(waves, [0, 1]);
        let common = |ns: u64| ns.saturating_add_signed(-host.clock.offset_ns);
        agreed.push(
            host.waves
                .iter()
                .map(|wave| common(wave.agreed_ns))
                .collect::<Vec<_>>(),
        );
        for wave in &host.waves {
            assert!(
                wave.agreed_ns <= wave.start_ns + wave.bound_ns && wave.start_ns <= wave.end_ns
            );
        }
        let next = common(host.waves[1].agreed_ns);
        let ends = hosts.iter().map(|other| {
            other.waves[0]
                .end_ns
                .saturating_add_signed(-other.clock.offset_ns)
        });
        assert!(
            ends.max() <= Some(next + slack),
            "a wave starts beside another"
        );
    }
    for wave in 0..2 {
        let starts = agreed.iter().map(|starts| starts[wave]);
        let spread = starts.clone().max().expect("three") - starts.min().expect("three");
        assert!(spread <= slack, "wave {wave}: {spread} of {slack}");
    }
}

#[test]
fn a_refusal_on_one_host_leaves_no_file_on_any() {
    let folder = Folder::new();
    let here = folder.0.display();
    let good = format!("--name=t --rw=read --size=64k --directory={here}");
    let bad = format!("{good} --name=u --size=64k --filename=.");
    let together = Together::default();
    let ended = together.run(&[good.clone(), good, bad]);
    for one in &ended {
        assert_eq!((one.code, one.layouts), (2, 0));
    }
    assert_eq!(folder.entries(), 0);
    assert_eq!(
        ended[2].refusal().problems[0].kind,
        ProblemKind::IsADirectory
    );
    for one in &ended[..2] {
        assert_eq!(one.refusal().problems[0].kind, ProblemKind::OtherRank);
    }
    let told = together.told.lock().expect("no panic");
    let refusals = told.iter().find_map(|event| match event {
        Event::Refused { refusals, .. } => Some(refusals.clone()),
        _ => None,
    });
    let refusals = refusals.expect("told on rank 0");
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].reason.as_str().contains("`u`"), "{refusals:?}");
}

#[test]
fn a_file_of_all_is_laid_out_once_and_removed_at_last() {
    let folder = Folder::new();
    let data = folder.0.join("new/data");
    let line = format!(
        "--name=t --rw=read --size=1m --unlink=1 --filename={}",
        data.display()
    );
    let ended = run(&[&line, &line, &line]);
    let layouts: Vec<usize> = ended.iter().map(|one| one.layouts).collect();
    assert_eq!(layouts, [1, 0, 0]);
    for one in &ended {
        assert_eq!((one.code, one.reads()), (0, vec![256]));
        assert_eq!(one.record().jobs[0].error, 0);
    }
    assert!(data.exists(), "others may still use it");
    for one in ended {
        let finished = one.result.expect("a record");
        assert_eq!(finished.leftovers.remove().len(), 0);
    }
    assert!(!data.exists());
}

#[test]
fn exitall_reaches_all() {
    let next = "--name=next --stonewall --size=1m";
    for (what, goes_on) in [("--exit_what=group", true), ("--exit_what=all", false)] {
        let endless = format!("{NULL} --exitall {what} --name=t {ENDLESS} {next} --time_based=0");
        let short = format!("{NULL} --exitall {what} --name=t --size=64k {next}");
        let ended = run(&[&endless, &short, &endless]);
        assert_eq!(ended[1].reads()[0], 16, "{what}");
        for one in &ended {
            assert_eq!(one.code, 0, "{what}");
            // The stop may reach a rank before it has begun.
            let last = one.host().waves.last();
            assert_eq!(last.is_some_and(|last| last.wave == 1), goes_on, "{what}");
        }
    }
}

#[test]
fn a_request_to_stop_reaches_all() {
    let line =
        format!("{NULL} --name=t {ENDLESS} --name=next --stonewall --size=1m --time_based=0");
    let together = Together {
        stopped: Some(1),
        ..Together::default()
    };
    let ended = together.run(&[line.clone(), line.clone(), line]);
    for one in &ended {
        assert!(one.reads()[0] > 0, "until then");
        assert_eq!((one.code, one.reads()[1]), (0, 0));
    }
}

#[test]
fn under_stop_together_the_first_ends_the_wave_of_all() {
    let next = "--name=next --stonewall --size=1m --time_based=0";
    let endless = format!("{NULL} --name=t {ENDLESS} {next}");
    let short = format!("{NULL} --name=t --size=64k {next}");
    let together = Together {
        stop_together: true,
        ..Together::default()
    };
    let ended = together.run(&[endless.clone(), short, endless]);
    assert_eq!(ended[1].reads()[0], 16);
    assert!(
        ended
            .iter()
            .all(|one| one.code == 0 && one.host().waves.len() == 2)
    );
}

#[test]
fn without_a_rank_the_wave_goes_on_and_no_other_starts() {
    let line = format!(
        "{NULL} --name=t --size=1m --time_based=1 --runtime=1 --name=next --stonewall --size=1m"
    );
    let together = Together::default();
    let mut links = memory_links(3);
    let lost = links.pop().expect("three");
    let ended: Vec<Ended> = std::thread::scope(|scope| {
        let threads: Vec<_> = links
            .into_iter()
            .map(|link| scope.spawn(|| together.run_rank(&line, link)))
            .collect();
        scope.spawn(|| dies_in_the_first_wave(together.ranks(lost)));
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        ended.collect()
    });
    for one in &ended {
        assert_eq!(one.code, 2);
        let reads = one.reads();
        assert!(reads[0] > 0 && reads[1] == 0, "{reads:?}");
        let runtime_ms = one.record().jobs[0].directions.read.runtime_ms;
        assert!(runtime_ms >= 999, "its wave ran to the end: {runtime_ms}");
        let warned = one
            .record()
            .warnings
            .iter()
            .any(|told| told.code == "rank_lost");
        assert!(warned);
    }
    let told = together.told.lock().expect("no panic");
    let lost = |event: &Event| matches!(event, Event::RankLost { rank, .. } if rank.get() == 2);
    assert_eq!(told.iter().filter(|event| lost(event)).count(), 1);
}

/// Takes part until the first wave has begun, and is gone then.
fn dies_in_the_first_wave(mut ranks: Ranks<MemoryLink>) {
    ranks.checked(Checks::new(&[], Vec::new()).expect("no files"));
    let wave = Wave::new(0);
    loop {
        ranks.poll(true);
        if ranks.verdict().is_some() {
            ranks.laid_out();
        }
        if ranks.files_ready() {
            ranks.ready(wave);
        }
        match ranks.gate(wave) {
            Gate::At(start) if ranks.now() >= start.at => return,
            Gate::Over(reason) => panic!("{reason:?}"),
            Gate::At(_) | Gate::Wait => {}
        }
        sleep(ranks.patience().min(Nanos::from_millis(50)));
    }
}

#[test]
fn a_start_time_and_ranks_that_talk_exclude_each_other() {
    let start = "--rank=0/2 --start-at=2099-01-01T00:00:00Z";
    let line = format!("{NULL} --name=t --size=1m");
    let ended = run(&[&format!("{start} {line}"), &line]);
    assert_eq!(ended[0].refusal().problems[0].kind, ProblemKind::StartTime);
    assert_eq!(ended[1].refusal().problems[0].kind, ProblemKind::OtherRank);
}
