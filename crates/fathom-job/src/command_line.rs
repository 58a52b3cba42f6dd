//! Parser of command lines: switches, job options, jobs started by `--name`, and job files.

mod outputs;
mod ranks;
mod views;

use std::sync::Arc;

use fathom_core::OutputFormat;

use crate::build::Builder;
use crate::clients::{ClientWords, Launched};
use crate::debug;
use crate::diagnostics::Severity;
use crate::file;
use crate::findings::Findings;
use crate::getopt::{CommandLine, Word};
use crate::help;
use crate::layer::{OptionLayer, WrittenOption};
use crate::problem::Problem;
use crate::rank;
use crate::rank_keywords::RankKeywords;
use crate::rank_place::{self, RankPlace};
use crate::reading;
use crate::shifted;
use crate::showcmd;
use crate::source::Spot;
use crate::substitute::substitute_rank;
use crate::switch_values;
use crate::switches::{Action, Argument, Switch, SwitchOrigin};
use crate::table::{Row, known};
use crate::vocabulary::Vocabulary;
use crate::{Dialect, Environment, Invocation, LogFull, RefusedInvocation, SelfTest};

/// Parses a command line, without the program name, and the job files it names.
///
/// Under the name `fio` the result is what fio would run, with notes about values that only fio
/// accepts. Under the name `fathom`, and with `FATHOM_STRICT=1` in the environment, such values are
/// errors. Parsing has no effect outside: nothing is created, opened for writing, or run.
///
/// # Errors
/// All errors at once, and the jobs without errors.
pub fn parse(
    args: &[String],
    dialect: Dialect,
    environment: &dyn Environment,
) -> Result<Invocation, Box<RefusedInvocation>> {
    let strict = environment
        .variable(STRICT)
        .is_some_and(|value| value == "1");
    let misread = match dialect {
        Dialect::Fio if !strict => Severity::Note,
        Dialect::Fio | Dialect::Fathom => Severity::Error,
    };
    shifted::read(&Request::new(args, dialect, misread, environment))
}

/// Parses a command line like [`parse`] under the name `fathom`, except that a text that only fio
/// accepts is a warning with fio's reading.
///
/// # Errors
/// All other errors.
pub fn parse_leniently(
    args: &[String],
    environment: &dyn Environment,
) -> Result<Invocation, Box<RefusedInvocation>> {
    let (dialect, misread) = (Dialect::Fathom, Severity::Warning);
    shifted::read(&Request::new(args, dialect, misread, environment))
}

/// A command line to parse, and the rules that apply.
pub(crate) struct Request<'a> {
    pub(crate) args: &'a [String],
    pub(crate) dialect: Dialect,
    /// Severity of a text that only fio accepts.
    pub(crate) misread: Severity,
    pub(crate) environment: &'a dyn Environment,
    /// Place of this rank.
    pub(crate) own: Arc<RankPlace>,
}

impl<'a> Request<'a> {
    fn new(
        args: &'a [String],
        dialect: Dialect,
        misread: Severity,
        environment: &'a dyn Environment,
    ) -> Self {
        let own = match dialect {
            Dialect::Fathom => rank_place::own(args, environment),
            // `--rank` is refused: only a launcher can tell.
            Dialect::Fio => rank_place::own(&[], environment),
        };
        Self {
            args,
            dialect,
            misread,
            environment,
            own: Arc::new(own),
        }
    }
}

/// Parses a command line in place of a rank, which may be another than this one.
pub(crate) fn read_in(
    request: &Request<'_>,
    place: &Arc<RankPlace>,
) -> Result<Invocation, Box<RefusedInvocation>> {
    let (own, place) = (Arc::clone(&request.own), Arc::clone(place));
    let mut reader = Reader {
        builder: Builder::new(request.environment, request.misread, own, place),
        dialect: request.dialect,
        layer: OptionLayer::default(),
        job: None,
        files: Vec::new(),
        show_command: false,
        has_rank: false,
        section_spots: Vec::new(),
        clients: ClientWords::new(request.args),
        instead: None,
    };
    if request.dialect == Dialect::Fathom {
        reader.builder.rank = Some(RankKeywords::of(&reader.builder.place));
    }
    if request.environment.ranks().is_some() {
        reader.builder.settings.rank = Some(request.own.rank);
    }
    reader.layer = reader.builder.inherit();
    let mut line = CommandLine::new(request.args, reader.builder.vocabulary);
    while let Some(word) = line.word(reader.layer.options.engine) {
        reader.word(word);
        if let Some(instead) = reader.instead.take() {
            return Ok(instead);
        }
    }
    reader.finish()
}

struct Reader<'a> {
    builder: Builder<'a>,
    dialect: Dialect,
    /// The layer of the current job, or of the globals.
    layer: OptionLayer,
    /// Name of the current job and place of its `--name`; `None` while options are global.
    job: Option<(String, Spot)>,
    files: Vec<Spot>,
    show_command: bool,
    /// There is a `--rank`, which may be wrong.
    has_rank: bool,
    section_spots: Vec<Spot>,
    clients: ClientWords<'a>,
    /// The action to take instead of running jobs.
    instead: Option<Invocation>,
}

impl Reader<'_> {
    fn word(&mut self, word: Word) {
        match word {
            Word::Switch {
                switch,
                name,
                value,
            } => self.switch(switch, &name, value),
            Word::Option {
                full_name,
                name,
                value,
                problem,
            } => {
                if let Some(problem) = problem {
                    self.builder.reporter.error(&name, problem);
                }
                self.option(&full_name, name, value);
            }
            Word::File(spot) => {
                self.clients.add_file(&spot);
                if spot.text() != "-" {
                    let job_files = &mut self.builder.settings.job_files;
                    job_files.push(spot.text().to_owned());
                }
                self.files.push(spot);
            }
            Word::Bad(spot, problem) => self.builder.reporter.error(&spot, problem),
        }
    }

    fn option(&mut self, full_name: &str, name: Spot, value: Option<Spot>) {
        let row = self.builder.vocabulary.find_any(full_name);
        let numeric = row.is_some_and(|row| row.is_numeric());
        if let Some(value) = &value {
            self.builder.check_rank_text(value);
        }
        let rank = self.builder.rank.as_ref();
        let mut replaced = value
            .as_ref()
            .zip(rank)
            .and_then(|(value, rank)| substitute_rank(value.text(), numeric, rank));
        let of_any_rank = replaced.as_ref().and(value.as_ref());
        let of_any_rank = of_any_rank.map(|value| value.text().to_owned());
        if let Some(value) = &value
            && let Some(problem) = glued(self.builder.vocabulary, full_name, value.text())
        {
            replaced = glued_value(row, value.text(), problem.at.start);
            self.builder
                .reporter
                .error(&value.part(problem.at.clone()), problem);
        }
        let written = WrittenOption {
            name,
            value,
            of_any_rank,
            replaced,
            full_name: Some(full_name.to_owned()),
        };
        if full_name == "name" {
            self.begin(&written);
        }
        self.builder.apply(&mut self.layer, written);
    }

    /// Handles `--name`, which ends the job or the globals before it.
    fn begin(&mut self, written: &WrittenOption) {
        self.end();
        let text = written.text().unwrap_or_default().trim();
        self.layer = self.builder.inherit();
        let spot = written.value.as_ref().unwrap_or(&written.name);
        self.job = (!text.starts_with("global")).then(|| (text.to_owned(), spot.clone()));
    }

    fn end(&mut self) {
        let layer = std::mem::take(&mut self.layer);
        match self.job.take() {
            Some((name, spot)) => self.builder.finish_job(&name, &spot, layer),
            None => self.builder.finish_global(layer),
        }
    }

    fn switch(&mut self, switch: &Switch, name: &Spot, value: Option<Spot>) {
        let spot = value.as_ref().unwrap_or(name);
        let text = value.as_ref().map(Spot::text);
        let mut findings = Findings::new(self.builder.reporter.is_lenient());
        let done = match switch.action {
            Action::Client if text.is_some_and(|text| !text.is_empty()) => {
                self.clients.begin(name, spot);
                Ok(())
            }
            Action::RemoteConfig if text.is_some_and(|text| !text.is_empty()) => {
                self.clients.add_own_file(name, spot)
            }
            _ => self.act(switch, text, spot, &mut findings),
        };
        for (problem, class) in findings.found {
            let spot = spot.part(problem.at.clone());
            self.builder.reporter.finding(&spot, problem, class);
        }
        if let Err(problem) = done {
            let spot = match switch.action {
                Action::Refused(_) => name.clone(),
                _ => spot.part(problem.at.clone()),
            };
            self.builder.reporter.error(&spot, problem);
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a flat table, an arm for each switch"
    )]
    fn act(
        &mut self,
        switch: &Switch,
        text: Option<&str>,
        spot: &Spot,
        findings: &mut Findings,
    ) -> Result<(), Problem> {
        let fio_has_stopped =
            self.dialect == Dialect::Fio && self.builder.reporter.diagnostics.has_errors();
        let settings = &mut self.builder.settings;
        let given = text.unwrap_or_default();
        let names = || switch_values::names(given);
        if text == Some("") && matches!(switch.argument, Argument::Required(_)) {
            let why = format!("`--{}` needs a value", switch.name);
            return Err(Problem::new("no-value", 0..0, why));
        }
        match switch.action {
            // fio stops at the first error, so an output file named after it gets no errors.
            Action::Output if fio_has_stopped => {}
            Action::Output => settings.output = text.map(str::to_owned),
            // The last one is used, as in fio.
            Action::Format => settings.formats = switch_values::formats(given)?,
            Action::Minimal => settings.formats = vec![OutputFormat::Terse],
            Action::AppendTerse => {
                if settings.formats.is_empty() {
                    settings.formats.push(OutputFormat::Normal);
                }
                settings.formats.push(OutputFormat::Terse);
            }
            Action::TerseVersion => {
                settings.terse_version = switch_values::terse_version(given, findings)?
            }
            Action::AuxPath => settings.aux_path = text.map(str::to_owned),
            // fio's default prefix.
            Action::BandwidthLog => {
                let prefix = text.filter(|prefix| !prefix.is_empty()).unwrap_or("agg");
                settings.bandwidth_log = Some(prefix.to_owned());
            }
            Action::Version => self.instead = Some(Invocation::Print(help::version(self.dialect))),
            Action::Help => self.instead = Some(Invocation::Print(help::usage())),
            Action::OptionHelp => {
                self.instead = Some(help::option(text, self.builder.vocabulary));
            }
            Action::EngineHelp => {
                self.instead = Some(help::engine(text, self.builder.vocabulary)?);
            }
            Action::ShowCommand => self.show_command = true,
            Action::ReadOnly => settings.read_only = true,
            Action::NoExec => settings.no_exec = true,
            Action::Trigger => settings.trigger = text.map(str::to_owned),
            Action::TriggerFile => settings.trigger_file = text.map(str::to_owned),
            Action::TriggerTimeout => {
                settings.trigger_timeout = Some(switch_values::trigger_timeout(given, findings)?);
            }
            Action::Eta => settings.eta = switch_values::show("--eta", given, findings)?,
            Action::EtaInterval => {
                settings.eta_interval = Some(switch_values::interval(given, findings)?)
            }
            Action::EtaNewline => settings.eta_newline = switch_values::newline(given, findings)?,
            Action::EtaPercentiles => settings.eta_percentiles = true,
            Action::StatusInterval => {
                settings.status_interval = Some(switch_values::status_interval(given, findings)?);
            }
            Action::Debug => {
                if debug::read(given, &mut settings.debug, findings)?.is_none() {
                    let help = debug::help(self.dialect.program());
                    self.instead = Some(Invocation::Print(help));
                }
            }
            Action::ParseOnly => settings.parse_only = true,
            Action::MergeOnly => settings.merge_only = true,
            Action::Section => {
                settings.sections.push(switch_values::section(given)?);
                self.section_spots.push(spot.clone());
            }
            Action::WarningsFatal => settings.warnings_fatal = true,
            Action::IdleProfile => match switch_values::idle_profile(given)? {
                Some(profile) => settings.idle_profile = Some(profile),
                None => self.try_out(SelfTest::UnitOfWork),
            },
            Action::CpuClockTest => self.try_out(SelfTest::CpuClock),
            Action::ChecksumTest => self.try_out(SelfTest::Checksums(names())),
            Action::CopyTest => self.try_out(SelfTest::Copies(names())),
            Action::InflateLog => self.instead = Some(Invocation::InflateLog(given.to_owned())),
            Action::Machine => settings.machine = text.map(str::to_owned),
            Action::Seeks => settings.seeks = true,
            Action::Summary if given.is_empty() => settings.summary = crate::plan::ShowMode::Always,
            Action::Summary => {
                settings.summary = switch_values::show("--summary", given, findings)?
            }
            // Not an abbreviation that a script of fio's could mean.
            extension
                if extension.origin() == SwitchOrigin::FathomAlone
                    && self.dialect == Dialect::Fio =>
            {
                let name = switch.name;
                let why = format!("`--{name}` is an option of Fathom, not of fio");
                let problem = Problem::new("not-in-fio", 0..spot.range.len(), why);
                return Err(problem.fix(format!("run it as `fathom run --{name}`")));
            }
            Action::Trace => settings.trace = true,
            Action::SaveDistribution => settings.save_distribution = text.map(str::to_owned),
            Action::SaveRecord => settings.record = text.map(str::to_owned),
            Action::RecordEvery => {
                settings.record_every = Some(switch_values::record_every(given, findings)?);
            }
            Action::MetricsFile => {
                settings.metrics_file = Some(switch_values::metrics_file(given)?);
            }
            Action::History => settings.history = true,
            Action::Tag => settings.tags.push(switch_values::tag(given)?),
            Action::Live => settings.live = true,
            Action::Serve => settings.serve = Some(switch_values::address(given)?),
            Action::ServeAnyHost => settings.serve_any_host = true,
            Action::Rank => {
                self.has_rank = true;
                let rank = rank::rank(given, self.builder.environment)?;
                self.builder.check_rank(rank, given)?;
                self.builder.settings.rank = Some(rank);
            }
            Action::StartAt => settings.start_at = Some(rank::start_at(given)?),
            Action::StopTogether => settings.stop_together = true,
            Action::Refused(instead) => return Err(refused(switch, spot, instead)),
            // With a value they are not passed to this function.
            Action::Client | Action::RemoteConfig | Action::Ignored => {}
        }
        Ok(())
    }

    fn try_out(&mut self, test: SelfTest) {
        self.instead = Some(Invocation::SelfTest(test));
    }

    fn finish(mut self) -> Result<Invocation, Box<RefusedInvocation>> {
        self.end();
        let settings = &self.builder.settings;
        if !self.clients.is_empty() && !settings.parse_only && !self.show_command {
            return self.finish_clients();
        }
        self.alone_under_launcher();
        let mut standard_input_read = false;
        let files = std::mem::take(&mut self.files);
        for (index, spot) in files.iter().enumerate() {
            if spot.text() == "-" && std::mem::replace(&mut standard_input_read, true) {
                let problem = Problem::new("stdin-twice", 0..1, "standard input is already read");
                self.builder
                    .reporter
                    .error(spot, problem.fix("write `-` once"));
                continue;
            }
            self.builder.begin_job_file(index == 0);
            file::read(&mut self.builder, spot.text(), spot);
        }
        // Files are included by now.
        self.spare_inputs(&files);
        self.unmatched_sections(!files.is_empty());
        self.seeks_of_a_model();
        self.trace_of_a_kernel();
        self.views_of_a_run();
        self.start_of_a_model();
        self.records_of_a_run();
        let settings = &self.builder.settings;
        let idle = settings.parse_only || settings.merge_only || self.show_command;
        if !self.builder.has_jobs() && !idle && !self.builder.reporter.diagnostics.has_errors() {
            self.builder.reporter.error_without_place(
                "no-jobs",
                "no jobs defined".to_owned(),
                "name a job file, or start a job with `--name`; see `--help`",
            );
        }
        self.builder.values_only = idle;
        let (mut plan, settings, diagnostics) = self.builder.finish();
        if self.dialect == Dialect::Fio {
            // fio pauses a job instead of dropping log lines; readers of its logs rely on that.
            for job in &mut plan.jobs {
                let _given = job.options.logs.when_full.get_or_insert(LogFull::Wait);
            }
        }
        if diagnostics.has_errors() {
            return Err(Box::new(RefusedInvocation {
                diagnostics,
                sound: plan,
                settings,
            }));
        }
        Ok(if self.show_command {
            Invocation::Print(showcmd::text(&plan))
        } else {
            Invocation::Run {
                plan,
                settings: Box::new(settings),
                notes: diagnostics,
            }
        })
    }

    /// Returns the run on other hosts, or the errors of the command line; those of the job files
    /// are found when these are read for a host.
    fn finish_clients(mut self) -> Result<Invocation, Box<RefusedInvocation>> {
        let files = std::mem::take(&mut self.files);
        self.spare_inputs(&files);
        let is_rank = !self.has_rank && self.builder.environment.ranks().is_some();
        let clients = self.clients.finish(&self.builder.settings, is_rank);
        let clients = clients.map_err(|problem| {
            let fix = problem.fix.unwrap_or_default();
            let reporter = &mut self.builder.reporter;
            reporter.error_without_place(problem.code, problem.why, &fix);
        });
        let (sound, settings, diagnostics) = self.builder.finish();
        match clients {
            Ok(clients) if !diagnostics.has_errors() => Ok(Invocation::Clients(Box::new(clients))),
            _ => Err(Box::new(RefusedInvocation {
                diagnostics,
                sound,
                settings,
            })),
        }
    }

    /// Refuses to run the same jobs, on the same files, once in each process of a launcher.
    fn alone_under_launcher(&mut self) {
        let settings = &self.builder.settings;
        let is_run = !settings.parse_only && !settings.merge_only && !self.show_command;
        let is_rank = self.has_rank || settings.rank.is_some();
        if self.dialect == Dialect::Fio || is_rank || !is_run {
            return;
        }
        if let Some(Launched { variable, count }) = Launched::of(self.builder.environment) {
            self.builder.reporter.error_without_place(
                "launched-alone",
                format!(
                    "a launcher has started {count} processes (`{variable}`), and each would run \
                     all jobs by itself"
                ),
                "start `fathom-mpi run` instead, or add `--rank=auto`",
            );
        }
    }

    /// Refuses `--seeks` without `--machine`: for real devices the kernel's trace is better.
    fn seeks_of_a_model(&mut self) {
        let settings = &self.builder.settings;
        if settings.seeks && settings.machine.is_none() {
            self.builder.reporter.error_without_place(
                "seeks-without-machine",
                "`--seeks` works on modelled devices only, and `--machine` is not given".to_owned(),
                "for a real device, run `fathom trace DEVICE` as root alongside",
            );
        }
    }

    /// Refuses `--trace` with `--machine`: modelled devices have no kernel.
    fn trace_of_a_kernel(&mut self) {
        let settings = &self.builder.settings;
        if settings.trace && settings.machine.is_some() {
            self.builder.reporter.error_without_place(
                "trace-of-machine",
                "`--trace` reads the kernel's events, of which `--machine` has none".to_owned(),
                "remove one of them",
            );
        }
    }

    /// Reports sections that no job file has; without a job file fio ignores them.
    fn unmatched_sections(&mut self, has_job_files: bool) {
        for spot in std::mem::take(&mut self.section_spots) {
            let name = spot.text();
            if !self.builder.sections_seen.iter().any(|seen| seen == name) {
                let why = format!("no section `{name}` in any job file");
                let mut problem = Problem::new("bad-section", 0..name.len(), why);
                if !has_job_files {
                    problem = problem.read_as(reading::NOTHING);
                }
                let spot = spot.clone();
                self.builder
                    .reporter
                    .job_error(&spot, problem.fix("name an existing section"));
            }
        }
    }
}

/// Returns the problem of two options without a space between them: `--direct=1--ioengine=libaio`.
fn glued(vocabulary: Vocabulary<'_>, name: &str, value: &str) -> Option<Problem> {
    let (start, _) = value.match_indices("--").find(|(start, _)| {
        let rest = &value[start + 2..];
        let end = rest.find('=').unwrap_or(rest.len());
        *start > 0 && known::find(&rest[..end]).is_some()
    })?;
    let rest = &value[start..];
    let why = format!("`{rest}` follows the value of `--{name}` without a space");
    let problem =
        Problem::new("glued", start..value.len(), why).fix(format!("put a space before `{rest}`"));
    let read =
        glued_value(vocabulary.find_any(name), value, start).unwrap_or_else(|| value.to_owned());
    Some(problem.read_as(format!("`{name}={read}` alone")))
}

/// Returns the part of such a value that fio reads, if not all of it.
fn glued_value(row: Option<Row>, value: &str, start: usize) -> Option<String> {
    let row = row?;
    (row.is_numeric() || row.is_boolean()).then(|| value[..start].to_owned())
}

fn refused(switch: &Switch, name: &Spot, instead: &str) -> Problem {
    let why = format!("`--{}` exists in fio, but not in Fathom", switch.name);
    Problem::new("not-here", 0..name.range.len(), why).fix(instead)
}

/// Environment variable that makes texts that only fio accepts errors under the name `fio`, too.
const STRICT: &str = "FATHOM_STRICT";
