//! One run from start to finish.
//!
//! ```text
//! plan → translate → check → open logs → lay out → truncate logs → waves of jobs → record
//!                          └ nothing written before     └ earlier logs intact until here
//! ```
//!
//! The order follows from two promises: a plan that is rejected leaves nothing behind, and a run
//! that never starts keeps the logs of the previous one. State is local to the call, so one process
//! may run several plans at once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_core::{Storage, Tick};
use fathom_engine::Registry;
use fathom_host::block_tree::BlockTree;
use fathom_host::output_file::Stop;
use fathom_job::{Plan, Settings};
use fathom_log::{LogSummary, Logs, OpenLogs};
use fathom_record::{DeviceTraceRecord, HostRecord, JobRecord, Record, Warning};
use fathom_setup::check::TakenFiles;
use fathom_setup::check::scheduler::SchedulerChange;
use fathom_setup::collect;
use fathom_setup::debug_output;
use fathom_setup::lifecycle::Lifecycle;
use fathom_setup::outcome::JobOutcome;
use fathom_setup::status::{Meter, goals};
use fathom_setup::translate::JobSetup;
use fathom_setup::{Preflight, RunError, RunEvent, Session, Snapshot};
use fathom_sys::clock::Clock;
use fathom_sys::program_text;
use fathom_sys::system;
use fathom_sys::thread;

use crate::affinity::ThreadSettings;
use crate::agreed_start::{self, AgreedStart, Span};
use crate::bandwidth::{BandwidthLog, OpenBandwidthLog};
use crate::calibration::own_costs;
use crate::cgroup;
use crate::checked::{Checked, agree};
use crate::device_trace::DeviceTrace;
use crate::drive::{JobSpec, RunState};
use crate::ended_run::{EndedRun, blank, jobs, record};
use crate::engine_config::engine_config;
use crate::evidence::{Baseline, CLONES_ASKED};
use crate::file_locks::FileLocks;
use crate::hooks::Hooks;
use crate::idleness::IdleWatch;
use crate::launch::{Launch, Watched, run_all};
use crate::live::LiveLatencies;
use crate::merge;
use crate::mismatches::{SharedNames, VerifiedFiles};
use crate::peer_access::PeerAccess;
use crate::peer_times;
use crate::peers::{Alone, Peers};
use crate::prepare::{self, Leftovers};
use crate::recording::Recording;
use crate::tracing_engine::Trace;
use crate::verify_state::SavedStates;
use crate::verify_threads::VerifyThreads;

/// Runs a plan: checks all of it, lays out its files, runs its jobs and collects their results.
///
/// Blocks until the last job has ended. Each job has a thread; the calling thread watches them,
/// delivers events to `session`, and is the only one to call its closures. Errors of single jobs
/// are in their records, not in the result. A stopped run ([`Session::stops`]) still returns the
/// record of what it measured.
///
/// # Errors
/// Problems that prevent the whole plan from running. If the checks found them, nothing has been
/// created or written. An engine that is missing from `engines` is one of them.
pub fn run(
    plan: &Plan,
    settings: &Settings,
    engines: &Registry,
    session: &mut Session<'_>,
) -> Result<Record, RunError> {
    let finished = run_together(plan, settings, engines, session, &mut Alone)?;
    Ok(finished.record)
}

/// Result of [`run_together`].
#[derive(Debug)]
pub struct Finished {
    /// Record of this rank.
    pub record: Record,
    /// Files to remove once no other rank uses them; empty in a run alone, which has removed its
    /// own.
    pub leftovers: Leftovers,
    /// Paths of the logs. Some may be missing, and some may be pipes.
    pub logs: Vec<String>,
}

impl Finished {
    const fn new(record: Record, leftovers: Leftovers, logs: Vec<String>) -> Self {
        Self {
            record,
            leftovers,
            logs,
        }
    }
}

/// Runs a plan as [`run`] does, as one of several ranks that check it, lay out its files, and start
/// and end its waves together. An empty plan takes part, without jobs.
///
/// The caller reports to the other ranks how it ended, once the record is written, and polls until
/// it may leave.
///
/// # Errors
/// As of [`run`]; also if another rank refuses the plan, or is lost before the jobs begin. Then
/// this rank has created nothing, but for a rank lost after the layout.
pub fn run_together(
    plan: &Plan,
    settings: &Settings,
    engines: &Registry,
    session: &mut Session<'_>,
    peers: &mut dyn Peers,
) -> Result<Finished, RunError> {
    // A few hundred jobs, or their logs, exceed the usual soft limit of 1024 files.
    let _as_it_was = system::raise_open_files_limit();
    // Forwards stop requests to the log writer, which runs on a thread of its own.
    let stopped = Arc::new(AtomicBool::new(false));
    let peers = PeerAccess::new(peers);
    let stops = session.stops;
    let look = || {
        let own = stops();
        let asked = own + peers.look(own > 0);
        // Relaxed, here and below: the flag guards no other memory.
        stopped.fetch_or(asked > 0, Ordering::Relaxed);
        asked
    };
    let mut session = Session {
        tell: &mut *session.tell,
        stops: &look,
        progress: session.progress,
        report_every: session.report_every,
        reports_asked: session.reports_asked,
        jobs_fail_alone: session.jobs_fail_alone,
    };
    let seen = Arc::clone(&stopped);
    let stop = Stop::when(move || seen.load(Ordering::Relaxed));
    run_stoppable(plan, settings, engines, &mut session, stop, &peers)
}

fn run_stoppable(
    plan: &Plan,
    settings: &Settings,
    engines: &Registry,
    session: &mut Session<'_>,
    stop: Stop,
    peers: &PeerAccess<'_>,
) -> Result<Finished, RunError> {
    let checked = Checked::new(plan, settings, engines, session, peers.is_alone());
    let (checked, share) = agree(checked, peers, session.stops)?;
    let (clock, begun, agreed) = (checked.clock, checked.begun, checked.agreed);
    let mut preflight = checked.preflight;
    let mut warnings = preflight.take_warnings();
    warnings.extend(checked.failing);
    let setups = &preflight.setups;
    debug_output::tell_plan(plan, setups, &settings.debug, session);
    let planned = collect::planned(setups);
    announce(&planned, &warnings, session);
    let opened = Opened::new(plan, settings, setups, clock, session.stops)?;
    let paths = opened.paths();
    (session.tell)(RunEvent::Starting(setups.len()));
    let noted = prepare::prepare(&mut preflight.setups, &share, clock, session, peers)?;
    prepare::pre_read(&preflight.setups, session.stops);
    let runs_jobs = !plan.jobs.iter().all(|job| job.options.create_only);
    let (states, unkept) = begin_states(runs_jobs, &mut preflight, settings, session);
    let setups = &preflight.setups;
    agreed_start::approach(agreed, session, &clock);
    let groups = cgroup::Made::by(plan);
    let own_costs = runs_jobs.then(|| own_costs(setups, &clock));
    let baseline = Baseline::capture(setups, clock.now());
    let idle = settings.idle_profile;
    let idle = idle.map(|profile| IdleWatch::start(profile, &clock));
    let execution = Execution {
        plan,
        settings,
        engines,
        setups,
        clock,
        begun,
        baseline: &baseline,
        stop: &stop,
        agreed,
        peers,
    };
    let mut executed = match runs_jobs {
        true => execution.run(opened, session)?,
        false => Executed::none(setups),
    };
    states.save(setups, &mut executed.outcomes);
    let (finished, device_trace) = executed.end(setups, session, &clock);
    let idleness = idle.map(|watch| watch.finish());
    let evidence = baseline.finish(setups, clock.now());
    let (leftovers, kept) = unlink(setups, peers);
    groups.clear();
    let host = agreed_start::host((plan, settings), agreed, executed.span, &clock);
    let host = peer_times::add(host, peers.see().times());
    warnings.extend(noted.into_iter().chain(unkept).chain(kept));
    warnings.extend(checked.gtod.warning());
    warnings.extend(warnings_of_time(host.as_ref(), peers, &clock, session));
    warnings.extend(finished.warnings);
    let ended = EndedRun {
        planned,
        outcomes: executed.outcomes,
        evidence,
        lines: finished.lines,
        own_costs: own_costs.unwrap_or_default(),
        warnings,
        begun,
    };
    let record = Record {
        hosts: host.into_iter().collect(),
        idleness,
        device_trace,
        log_failed: finished.failed,
        ..record(plan, preflight, ended, &clock)
    };
    Ok(Finished::new(record, leftovers, paths))
}

/// Removes the files of jobs with `unlink=1`, or returns them if other ranks may still use them;
/// with a warning for each one that is kept.
fn unlink(setups: &[JobSetup], peers: &PeerAccess<'_>) -> (Leftovers, Vec<Warning>) {
    let leftovers = Leftovers::of(setups);
    match peers.is_alone() {
        true => (Leftovers::default(), leftovers.remove()),
        false => (leftovers, Vec::new()),
    }
}

/// Returns the warnings about starts and clocks.
fn warnings_of_time(
    host: Option<&HostRecord>,
    peers: &PeerAccess<'_>,
    clock: &Clock,
    session: &mut Session<'_>,
) -> Vec<Warning> {
    let lost = peers.lost();
    if let Some(lost) = &lost {
        (session.tell)(RunEvent::Lost(lost));
    }
    let late = agreed_start::late(host);
    late.into_iter()
        .chain(lost)
        .chain(time_of_day_set(clock))
        .collect()
}

/// Jobs to run, and what they need.
struct Execution<'a, 'p> {
    plan: &'a Plan,
    settings: &'a Settings,
    engines: &'a Registry,
    setups: &'a [JobSetup],
    clock: Clock,
    begun: Tick,
    baseline: &'a Baseline,
    stop: &'a Stop,
    agreed: Option<AgreedStart>,
    peers: &'a PeerAccess<'p>,
}

/// Outcomes of jobs, and their logs, which may still be written.
struct Executed {
    logs: Option<Logs>,
    /// Failure of the aggregate bandwidth log.
    broken: Option<Warning>,
    outcomes: Vec<Option<JobOutcome>>,
    trace: Option<DeviceTrace>,
    span: Option<Span>,
}

impl Execution<'_, '_> {
    /// Starts the logs, and runs the jobs until the last has ended.
    fn run(&self, opened: Opened, session: &mut Session<'_>) -> Result<Executed, RunError> {
        let Self {
            plan,
            setups,
            clock,
            stop,
            ..
        } = *self;
        let trace = self
            .settings
            .trace
            .then(|| DeviceTrace::start(setups, &clock));
        let trace = trace.transpose()?;
        let (logs, bandwidth) = opened.begin(clock.now(), stop.clone())?;
        let launches = launches(
            (plan, setups),
            self.engines,
            clock,
            &logs,
            stop,
            self.settings,
        );
        let lifecycle = Lifecycle::new(plan, setups.iter().map(|setup| setup.place));
        let goals = goals(plan);
        let settings = self.settings;
        let shows = settings.eta_percentiles || settings.is_viewed();
        let groups = || setups.iter().map(|setup| setup.place.group);
        let live = || LiveLatencies::new(&groups().collect::<Vec<_>>());
        let disks = settings.is_viewed().then(|| self.baseline.disks());
        let shared = RunState {
            live: (shows && session.progress.is_some()).then(live),
            wakes_early: self.has_processors_for(setups.len()),
            jobs_before: plan.place.on_host as usize * setups.len(),
            agreed: self.agreed,
            keep_every: settings.keep_every(),
            ..RunState::new(clock)
        };
        let so_far = |outcomes: Vec<Option<JobOutcome>>, snapshot: &Snapshot| Record {
            hosts: self.host_so_far(&shared),
            jobs: jobs(setups, outcomes, &clock),
            disks: self.baseline.disks_so_far(clock.now()),
            eta_s: Meter::default().sample(&goals, snapshot).eta_s,
            ..blank(plan, self.begun, &clock)
        };
        let watched = Watched {
            so_far: &so_far,
            bandwidth,
            disks,
            peers: self.peers,
        };
        // Hosts start together; one that takes a page fault first would start later.
        if self.agreed.is_some() || !self.peers.is_alone() {
            program_text::populate();
        }
        let (outcomes, broken) = run_all(launches, lifecycle, &shared, session, watched);
        Ok(Executed {
            logs,
            broken,
            outcomes,
            trace,
            span: shared.origin.get().map(|&start| Span {
                start,
                end: clock.now(),
            }),
        })
    }

    /// Returns whether each of `jobs` jobs, on each of this host's ranks, has a processor of its
    /// own.
    fn has_processors_for(&self, jobs: usize) -> bool {
        let ranks = self.peers.see().place().host_ranks;
        let jobs = jobs.saturating_mul(usize::try_from(ranks).unwrap_or(usize::MAX));
        thread::allowed_cpus().is_ok_and(|cpus| jobs <= cpus.len())
    }

    /// Returns the entry of this host while its jobs run, if the run is one of several.
    fn host_so_far(&self, shared: &RunState) -> Vec<HostRecord> {
        let span = shared.origin.get().map(|&start| Span {
            start,
            end: self.clock.now(),
        });
        let ran = (self.plan, self.settings);
        let host = agreed_start::host(ran, self.agreed, span, &self.clock);
        let cut = host.map(|host| HostRecord {
            is_cut: true,
            ..host
        });
        cut.into_iter().collect()
    }
}

impl Executed {
    /// Returns what a run leaves whose jobs do not start (`create_only`).
    fn none(setups: &[JobSetup]) -> Self {
        Self {
            logs: None,
            broken: None,
            outcomes: setups.iter().map(|_| None).collect(),
            trace: None,
            span: None,
        }
    }

    /// Ends the logs, and the trace, which it joins with the ops of the jobs.
    fn end(
        &mut self,
        setups: &[JobSetup],
        session: &mut Session<'_>,
        clock: &Clock,
    ) -> (LogSummary, Option<DeviceTraceRecord>) {
        let outcomes = &self.outcomes;
        let mut finished = end_logs(
            self.logs.take(),
            self.broken.take(),
            outcomes,
            session,
            clock,
        );
        let Some(trace) = self.trace.take() else {
            return (finished, None);
        };
        let ended = trace.finish(setups, finished.ops.take(), outcomes, clock);
        for warning in &ended.warnings {
            (session.tell)(RunEvent::Lost(warning));
        }
        finished.warnings.extend(ended.warnings);
        (finished, ended.record)
    }
}

/// Begins the verify states of the jobs that are to run, and warns of those that cannot be kept.
fn begin_states(
    runs_jobs: bool,
    preflight: &mut Preflight,
    settings: &Settings,
    session: &mut Session<'_>,
) -> (SavedStates, Option<Warning>) {
    let (states, unkept) = match runs_jobs {
        true => SavedStates::begin(&mut preflight.setups, aux_path(settings)),
        false => Default::default(),
    };
    if let Some(warning) = &unkept {
        (session.tell)(RunEvent::Warning(warning));
    }
    (states, unkept)
}

/// Returns the folder of verify states and saved blocks; empty: the current one.
pub(crate) fn aux_path(settings: &Settings) -> &Path {
    Path::new(settings.aux_path.as_deref().unwrap_or_default())
}

/// Announces the planned jobs and the warnings that precede the results.
fn announce(planned: &[JobRecord], warnings: &[Warning], session: &mut Session<'_>) {
    (session.tell)(RunEvent::Planned(planned));
    for warning in warnings {
        (session.tell)(RunEvent::Warning(warning));
    }
}

/// Open logs, before the jobs start: those of single jobs, and the aggregate bandwidth log.
struct Opened {
    logs: Option<OpenLogs>,
    bandwidth: Option<OpenBandwidthLog>,
}

impl Opened {
    fn new(
        plan: &Plan,
        settings: &Settings,
        setups: &[JobSetup],
        clock: Clock,
        stops: &dyn Fn() -> u32,
    ) -> Result<Self, RunError> {
        let refused = |problems| RunError { problems };
        let taken = TakenFiles::data(setups).named(settings).recorded(setups);
        merge::check(setups, &taken)?;
        let problems = Recording::check(setups);
        if !problems.is_empty() {
            return Err(refused(problems));
        }
        let stop = || stops() > 0;
        let prefix = settings.bandwidth_log.as_deref();
        let suffix = plan.place.log_suffix();
        let bandwidth = prefix.map(|prefix| OpenBandwidthLog::open(prefix, &suffix, &taken, &stop));
        Ok(Self {
            bandwidth: bandwidth.transpose().map_err(refused)?,
            logs: OpenLogs::open(plan, setups, &taken, clock, &stop, settings.trace)
                .map_err(refused)?,
        })
    }

    /// Returns the paths of all logs.
    fn paths(&self) -> Vec<String> {
        let logs = self.logs.iter().flat_map(OpenLogs::paths);
        let bandwidth = self.bandwidth.iter().flat_map(OpenBandwidthLog::paths);
        logs.chain(bandwidth.map(str::to_owned)).collect()
    }

    /// Truncates the logs and starts them; times in the aggregate log count from `now`.
    fn begin(
        self,
        now: Tick,
        stop: Stop,
    ) -> Result<(Option<Logs>, Option<BandwidthLog>), RunError> {
        let bandwidth = self.bandwidth.map(|log| log.begin(now)).transpose()?;
        let logs = self.logs.map(|logs| logs.begin(stop)).transpose()?;
        Ok((logs, bandwidth))
    }
}

/// Waits until the logs are written and announces the warnings of logs and jobs.
fn end_logs(
    logs: Option<Logs>,
    broken: Option<Warning>,
    outcomes: &[Option<JobOutcome>],
    session: &mut Session<'_>,
    clock: &Clock,
) -> LogSummary {
    let look = || {
        let _seen_by_the_writer = (session.stops)();
    };
    let mut finished = logs.map_or_else(LogSummary::default, |logs| logs.finish(&look, clock));
    finished.failed |= broken.is_some();
    let warnings = &mut finished.warnings;
    warnings.extend(broken);
    let ended = outcomes.iter().flatten();
    for warning in ended.flat_map(|outcome| &outcome.warnings) {
        // Clones repeat each other's warnings.
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    for warning in warnings {
        (session.tell)(RunEvent::Lost(warning));
    }
    finished
}

/// Returns a warning if the time of day was set during a run that measures with it.
fn time_of_day_set(clock: &Clock) -> Option<Warning> {
    let steps = clock.steps();
    (steps > 0).then(|| Warning {
        code: "time_of_day_set".into(),
        job: String::new(),
        message: format!(
            "`clocksource=gettimeofday` uses the time of day, which was set during the run (steps: \
             {steps}); each step was compensated to within 100 ms"
        ),
        hint: "remove `clocksource`".into(),
    })
}

fn launches(
    (plan, setups): (&Plan, &[JobSetup]),
    engines: &Registry,
    clock: Clock,
    logs: &Option<Logs>,
    stop: &Stop,
    settings: &Settings,
) -> Vec<Launch> {
    let mut locks = FileLocks::default();
    let shared_names = SharedNames::of(setups);
    let suffix = plan.place.log_suffix();
    let each = setups.iter().enumerate().map(|(index, setup)| {
        let job = &setup.job;
        let engine = engines.find(job.options.engine.name);
        let engine = engine.expect("the plan was checked with these engines");
        let files = match engine.info.storage {
            Storage::None | Storage::Peer => 0,
            Storage::LocalFiles | Storage::Remote | Storage::Device => setup.files.len(),
        };
        Launch {
            name: setup.name.clone(),
            allow_mounted_write: job.options.allow_mounted_write,
            spec: JobSpec {
                worker: setup.worker.clone(),
                engine: engine_config(job, setup, engine, &mut locks, clock),
                thread: ThreadSettings {
                    scheduler: SchedulerChange::of(job, setup, &BlockTree::default()),
                    ..ThreadSettings::new(&job.options, setup.place.number)
                },
                files: u32::try_from(files).unwrap_or(u32::MAX),
                log: logs.as_ref().and_then(|logs| logs.job(index)),
                hooks: Hooks::of(job, setup.place.clone, &suffix),
                verified: VerifiedFiles::of(setup, aux_path(settings), &shared_names),
                trace: Trace::of(setup, &settings.debug),
                replay: setup.replay.clone(),
                recording: Recording::of(setup, stop),
                verify_threads: VerifyThreads::of(&job.options),
                early_end: setup.early_end.clone(),
                watches_processors: setup.place.clone < CLONES_ASKED,
            },
        }
    });
    each.collect()
}
