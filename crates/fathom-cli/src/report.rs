//! What is said while a run goes on and when it is over, and on which stream.
//!
//! | | as `fathom` | as `fio` |
//! |---|---|---|
//! | report | standard output, or `--output` | the same |
//! | notes | standard error | text: before the report; JSON: under `"fathom"` only |
//! | errors | standard error | standard error, and `--output` |
//! | status line | standard error | standard output |

use std::io::{self, IsTerminal};

use anyhow::Result;
use fathom_core::{Nanos, OutputFormat};
use fathom_host::output_file::Stop;
use fathom_job::{Diagnostics, Dialect, EtaMode, Plan, Settings, Severity};
use fathom_record::{JobRecord, Record, Warning};
use fathom_run::Event;

use crate::output::{self, Data, Stream};
use crate::run_command::{name, rendered};
use crate::status::StatusLine;

/// The report in the making.
pub(crate) struct Report {
    dialect: Dialect,
    /// Formats to print, in this order.
    formats: Vec<OutputFormat>,
    /// Layout of the terse report.
    terse_version: u32,
    data: Data,
    /// Whether `data` is a file.
    to_file: bool,
    /// The first write that failed.
    failed: Option<anyhow::Error>,
    status: StatusLine,
    /// The parser's notes, for the record.
    warnings: Vec<Warning>,
    /// Set once there is something worth a file.
    has_record: bool,
}

impl Report {
    /// A report in the formats that the settings ask for.
    pub(crate) fn new(dialect: Dialect, settings: &Settings, data: Data) -> Self {
        let stream = match dialect {
            Dialect::Fio => Stream::Data,
            Dialect::Fathom => Stream::Error,
        };
        Self {
            dialect,
            formats: OutputFormat::to_print(&settings.formats),
            terse_version: settings.terse_version,
            to_file: settings.output.is_some(),
            data,
            failed: None,
            status: StatusLine::new(stream, settings.eta_newline),
            warnings: Vec::new(),
            has_record: false,
        }
    }

    /// Whether the report can be put where it is to go.
    pub(crate) fn check(&self) -> Result<()> {
        self.data.check()
    }

    /// From now on the wait for the reader of a pipe ends when `stop` says so.
    pub(crate) fn stop_when(&mut self, stop: &Stop) {
        self.data.stop_when(stop);
    }

    /// How often the status line is drawn; `None` for never.
    pub(crate) fn progress_interval(&self, settings: &Settings) -> Option<Nanos> {
        // fio draws on standard output, and not into a JSON document, whatever is asked.
        let (terminal, allowed) = match self.dialect {
            Dialect::Fio => (io::stdout().is_terminal(), self.has_text() || self.to_file),
            Dialect::Fathom => (io::stderr().is_terminal(), true),
        };
        let wanted = match settings.eta {
            EtaMode::Always => allowed,
            EtaMode::Never => false,
            EtaMode::Auto => allowed && terminal,
        };
        let interval = settings.eta_interval.unwrap_or(Nanos::from_secs(1));
        wanted.then(|| interval.max(SHORTEST_INTERVAL))
    }

    /// What the parser had to say.
    pub(crate) fn notes(&mut self, notes: &Diagnostics) {
        if !notes.is_empty() {
            self.note(&rendered(notes, self.dialect));
        }
        let worth_keeping = notes.iter().filter(|note| note.severity != Severity::Error);
        self.warnings = worth_keeping
            .map(|note| Warning {
                code: note.code.replace('-', "_"),
                job: String::new(),
                message: note.message.clone(),
                hint: note.hint.clone().unwrap_or_default(),
            })
            .collect();
    }

    /// The parser's notes, to be kept in the record.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Lines of `--debug`: part of the text under fio's name, where tools look for them.
    pub(crate) fn debug(&mut self, lines: &str) {
        match self.dialect {
            Dialect::Fio if self.has_text() && !self.has_document() => self.text(lines),
            _ => output::print(Stream::Error, lines),
        }
    }

    /// Something happened in the run; `signal` is the last one that came, if any did.
    pub(crate) fn hear(&mut self, plan: &Plan, event: &Event<'_>, signal: i32) {
        match event {
            Event::Planned(jobs) => self.headers(plan, jobs),
            Event::Warning(warning) => {
                let job = match warning.job.as_str() {
                    "" => String::new(),
                    job => format!("job `{job}`: "),
                };
                self.note(&told(self.dialect, &format!("warning: {job}"), warning));
            }
            // Not a part of the report: whoever reads JSON from standard output hears of it too.
            Event::Lost(warning) => {
                self.status.clear();
                let job = match warning.job.as_str() {
                    "" => String::new(),
                    job => format!("{job}: "),
                };
                output::print(Stream::Error, &told(self.dialect, &job, warning));
            }
            Event::Starting(jobs) => {
                let jobs = u32::try_from(*jobs).unwrap_or(u32::MAX);
                self.text(&fathom_report::starting_line(jobs, 0));
            }
            Event::LayingOut { job, files, bytes } => {
                let line = fathom_run::layout::announcement(job, *files, *bytes);
                self.text(&format!("{line}\n"));
            }
            Event::Debug(lines) => self.debug(lines),
            Event::Progress(snapshot) => self.status.draw(plan, snapshot),
            Event::Interim(record) => {
                self.status.clear();
                self.has_record = true;
                self.print(record);
                self.data.show();
            }
            Event::Stopping => {
                self.status.clear();
                match self.dialect {
                    // A trigger ends the jobs without a word, as in fio.
                    Dialect::Fio if signal == 0 => {}
                    Dialect::Fio => self.terminating(signal),
                    Dialect::Fathom => output::print(
                        Stream::Error,
                        "fathom: stopping; draining in-flight I/O (Ctrl-C again to abort without a \
                         report)\n",
                    ),
                }
            }
            Event::StillStopping(jobs) => {
                self.status.clear();
                output::print(Stream::Error, &still_stopping(plan, jobs));
            }
            _ => {}
        }
    }

    /// fio's word on a signal.
    pub(crate) fn terminating(&mut self, signal: i32) {
        if self.dialect == Dialect::Fio {
            self.text(&format!("\nfio: terminating on signal {signal}\n"));
        }
    }

    /// The finished record.
    pub(crate) fn tell_record(&mut self, record: &Record) {
        self.has_record = true;
        self.status.clear();
        for job in record.jobs.iter().filter(|job| job.error != 0) {
            self.job_error(job);
        }
        self.print(record);
    }

    /// Prints a record in every requested format.
    fn print(&mut self, record: &Record) {
        for format in self.formats.clone() {
            let text = fathom_report::render(record, format, self.terse_version);
            self.data(&text);
        }
    }

    fn has_text(&self) -> bool {
        self.formats.contains(&OutputFormat::Normal)
    }

    fn has_document(&self) -> bool {
        self.formats.iter().any(|format| format.is_document())
    }

    /// Tells of what ended the run before it had anything to report.
    pub(crate) fn fail(&mut self, message: &str) {
        self.status.clear();
        let name = name(self.dialect);
        let lines = message
            .lines()
            .map(|line| match line.starts_with("hint: ") {
                true => format!("{line}\n"),
                false => format!("{name}: {line}\n"),
            });
        self.error(&lines.collect::<String>());
    }

    /// Tells of everything that is wrong with the plan.
    pub(crate) fn refuse(&mut self, rendered: &str) {
        self.status.clear();
        self.error(rendered);
    }

    /// Puts the report in place. A run that was refused has none; under fio's name its errors are
    /// one.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.dialect == Dialect::Fathom && !self.has_record {
            self.data.forget();
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.data.finish(),
        }
    }

    /// One line for each section, and the version.
    fn headers(&mut self, plan: &Plan, jobs: &[JobRecord]) {
        let mut first = 0;
        for section in &plan.jobs {
            let clones = section.options.numjobs.max(1);
            if let Some(job) = jobs.get(first) {
                self.text(&fathom_report::job_header(job, clones));
            }
            first += usize::try_from(clones).unwrap_or(usize::MAX);
        }
        match self.dialect {
            Dialect::Fio => self.text(&format!("{}\n", fathom_report::FIO_VERSION)),
            Dialect::Fathom => self.text(&format!("fathom {}\n", env!("CARGO_PKG_VERSION"))),
        }
    }

    fn job_error(&mut self, job: &JobRecord) {
        let text = job.error_text.as_deref().unwrap_or("failed");
        let line = match self.dialect {
            Dialect::Fathom => format!("fathom: job `{}`: {text}\n", job.name),
            Dialect::Fio => format!("fio: pid={}, err={}, error={text}\n", job.pid, job.error),
        };
        self.error(&line);
    }

    /// Text for people that is part of the report.
    fn text(&mut self, text: &str) {
        if self.has_text() {
            self.data(text);
        }
    }

    /// What is worth knowing.
    fn note(&mut self, text: &str) {
        match self.dialect {
            Dialect::Fathom => output::print(Stream::Error, text),
            Dialect::Fio if !self.has_document() => self.text(text),
            Dialect::Fio => {}
        }
    }

    fn error(&mut self, text: &str) {
        output::print(Stream::Error, text);
        if self.dialect == Dialect::Fio && self.to_file {
            self.data(text);
        }
    }

    fn data(&mut self, text: &str) {
        let result = self.data.add(text);
        self.failed = self.failed.take().or(result.err());
    }
}

/// What is to be known, and what helps where something does, each on a line.
fn told(dialect: Dialect, whose: &str, warning: &Warning) -> String {
    let hint = match warning.hint.as_str() {
        "" => String::new(),
        hint => format!("hint: {hint}\n"),
    };
    format!("{}: {whose}{}\n{hint}", name(dialect), warning.message)
}

/// Jobs that keep a run which is to stop, and what they wait for.
fn still_stopping(plan: &Plan, jobs: &[&str]) -> String {
    let mut names: Vec<String> = jobs.iter().map(|name| format!("`{name}`")).collect();
    // Clones share one name.
    names.dedup();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut whose = names.join(", ");
    if more > 0 {
        whose.push_str(&format!(" and {more} more"));
    }
    let of_those = || {
        plan.jobs
            .iter()
            .filter(|job| jobs.contains(&job.name.as_str()))
    };
    let has_command = of_those().any(|job| job.options.lifecycle.exec_postrun.is_some());
    let command = if has_command {
        ", or exec_postrun,"
    } else {
        ""
    };
    let mut text = format!("fathom: still waiting for the ops in flight{command} of {whose}\n");
    if of_those().any(|job| job.options.ioengine == "libaio") {
        text.push_str(
            "hint: to leave without a report takes as long with libaio: the kernel lets no process \
             go before its ops have completed\n",
        );
    }
    text
}

/// Jobs that are named in one line.
const NAMED: usize = 4;

/// As in fio.
const SHORTEST_INTERVAL: Nanos = Nanos::from_millis(250);
