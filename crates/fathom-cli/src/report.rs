//! Output of a run, during it and after it, and the stream each part goes to.
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
use fathom_job::{Diagnostics, Dialect, Plan, Settings, Severity, ShowMode};
use fathom_record::{JobRecord, Record, Warning};
use fathom_setup::{RunError, RunEvent};

use crate::layout_bar::LayoutBar;
use crate::output::{self, Data, StandardStream};
use crate::status::StatusLine;
use crate::text_width::fitted_sentences;

/// Report of a run: prints events as they happen and the record at the end.
///
/// Create it with [`Report::new`] and [`check`](Self::check) its file before the run. Pass every
/// event to [`on_event`](Self::on_event), the record to [`print_record`](Self::print_record), and
/// end with [`finish`](Self::finish), which puts the file in place. A failed write does not stop
/// the run: the first one is kept and returned at the end.
pub(crate) struct Report {
    dialect: Dialect,
    /// Formats to print, in this order.
    formats: Vec<OutputFormat>,
    /// Layout of the terse report.
    terse_version: u32,
    /// Fewest reports that are followed by a summary.
    summary_from: usize,
    data: Data,
    /// `data` is a file, not standard output.
    to_file: bool,
    /// First write that failed.
    failed: Option<anyhow::Error>,
    status: StatusLine,
    /// Bar of a layout under way; `None` if none is wanted.
    layout: Option<LayoutBar>,
    /// Notes of the parser, for the record.
    warnings: Vec<Warning>,
    /// Texts to print in place of the record in these formats.
    documents: Vec<(OutputFormat, String)>,
    /// Control characters are written out in text.
    is_foreign: bool,
    /// A record was printed, so there is something to put into a file.
    has_record: bool,
    /// Messages of the warnings that were printed as notes, under fio's name.
    told: Vec<String>,
    /// Notes that wait for the line about the start of the jobs, below which fio prints its own;
    /// `None` after it.
    held_notes: Option<String>,
}

/// Breaks the lines of stalls and caveats in a text report.
fn with_fitted_sentences(
    mut text: String,
    record: &Record,
    fit: &dyn Fn(&str) -> String,
) -> String {
    let parts = [
        fathom_report::stall_lines(record),
        fathom_report::caveats(record),
    ];
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if let Some(at) = text.rfind(part.as_str()) {
            text.replace_range(at..at + part.len(), &fit(part));
        }
    }
    text
}

impl Report {
    /// Creates an empty report in the formats of the settings.
    pub(crate) fn new(dialect: Dialect, settings: &Settings, data: Data) -> Self {
        let stream = match dialect {
            Dialect::Fio => StandardStream::Data,
            Dialect::Fathom => StandardStream::Error,
        };
        Self {
            dialect,
            formats: OutputFormat::to_print(&settings.formats),
            terse_version: settings.terse_version,
            summary_from: summary_from(dialect, settings.summary),
            to_file: settings.output.is_some(),
            data,
            failed: None,
            status: StatusLine::new(stream, settings),
            layout: None,
            warnings: Vec::new(),
            documents: Vec::new(),
            is_foreign: false,
            has_record: false,
            told: Vec::new(),
            held_notes: Some(String::new()),
        }
    }

    /// Prints these texts in place of the record in their formats.
    pub(crate) fn replace(&mut self, documents: Vec<(OutputFormat, String)>) {
        self.documents = documents;
    }

    /// Writes out control characters in text reports and messages: those of a record that another
    /// user may have written could rule the terminal. JSON escapes them anyway. In a report on the
    /// user's own job, names keep the bytes that fio prints.
    pub(crate) fn write_out_controls(&mut self) {
        self.is_foreign = true;
    }

    /// Checks that the report's file can be written.
    pub(crate) fn check(&self) -> Result<()> {
        self.data.check()
    }

    /// Sets the condition on which to stop waiting for the reader of a pipe.
    pub(crate) fn stop_when(&mut self, stop: &Stop) {
        self.data.stop_when(stop);
    }

    /// Returns the interval at which the status line is drawn; `None` for never.
    pub(crate) fn progress_interval(&mut self, settings: &Settings) -> Option<Nanos> {
        // fio draws on standard output, but never into JSON, not even with `--eta=always`.
        let (terminal, allowed) = match self.dialect {
            Dialect::Fio => (io::stdout().is_terminal(), self.has_text() || self.to_file),
            Dialect::Fathom => (io::stderr().is_terminal(), true),
        };
        let wanted = match settings.eta {
            ShowMode::Always => allowed,
            ShowMode::Never => false,
            ShowMode::Auto => allowed && terminal,
        };
        let interval = settings.eta_interval.unwrap_or(Nanos::from_secs(1));
        // `--live` has the terminal for itself.
        let every = (wanted && !settings.live).then(|| interval.max(STATUS_INTERVAL_MIN));
        self.status.draw_every(every);
        every
    }

    /// Draws a bar on the terminal while files are laid out.
    pub(crate) fn show_layout(&mut self) {
        self.layout = Some(LayoutBar::default());
    }

    /// Prints the parser's notes and keeps them for the record.
    pub(crate) fn notes(&mut self, notes: &Diagnostics) {
        match self.dialect {
            _ if notes.is_empty() => {}
            Dialect::Fathom => self.note(&output::render(notes, self.dialect)),
            Dialect::Fio => {
                self.note(&notes.notes_as_fio());
                notes.iter().for_each(|note| self.tell(&note.message));
            }
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

    /// Takes the parser's notes, as warnings of the record.
    pub(crate) fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    /// Prints lines of `--debug`: under fio's name as part of the text, where tools expect them.
    pub(crate) fn debug(&mut self, lines: &str) {
        match self.dialect {
            Dialect::Fio if self.has_text() && !self.has_document() => self.text(lines),
            _ => output::print(StandardStream::Error, lines),
        }
    }

    /// Prints an event of the run; `signal` is the last signal received, 0 for none.
    pub(crate) fn on_event(&mut self, plan: &Plan, event: &RunEvent<'_>, signal: i32) {
        match event {
            RunEvent::Planned(jobs) => self.headers(plan, jobs),
            RunEvent::Warning(warning) => self.warn(warning),
            // Not part of the report: readers of JSON on standard output need to see it too.
            RunEvent::Lost(warning) => {
                self.status.clear();
                let job = match warning.job.as_str() {
                    "" => String::new(),
                    job => format!("{job}: "),
                };
                output::print(
                    StandardStream::Error,
                    &warning_text(self.dialect, &job, warning),
                );
            }
            RunEvent::AwaitingStart(left) => awaiting_start(*left),
            RunEvent::Starting(jobs) => {
                let jobs = u32::try_from(*jobs).unwrap_or(u32::MAX);
                self.text(&fathom_report::starting_line(jobs, 0));
                self.release_notes();
            }
            RunEvent::LayoutProgress(progress) => {
                if let Some(bar) = &mut self.layout {
                    bar.update(progress);
                }
            }
            RunEvent::LaidOut => {
                if let Some(bar) = &mut self.layout {
                    bar.clear();
                }
            }
            RunEvent::LayingOut { job, files, bytes } => {
                let line = fathom_run::layout::announcement(job, *files, *bytes);
                self.text(&format!("{line}\n"));
            }
            RunEvent::Debug(lines) => self.debug(lines),
            RunEvent::Progress(snapshot) => self.status.draw(plan, snapshot),
            RunEvent::Interim(record) => {
                self.status.clear();
                self.has_record = true;
                self.print(record);
                self.data.show();
            }
            RunEvent::Stopping => self.stopping(signal),
            RunEvent::StillStopping(jobs) => {
                self.status.clear();
                output::print(StandardStream::Error, &still_stopping(plan, jobs));
            }
            RunEvent::StillOpening(jobs) => {
                self.status.clear();
                output::print(StandardStream::Error, &still_opening(jobs));
            }
            _ => {}
        }
    }

    fn warn(&mut self, warning: &Warning) {
        match self.dialect {
            Dialect::Fathom => {
                let job = match warning.job.as_str() {
                    "" => String::new(),
                    job => format!("job `{job}`: "),
                };
                let whose = format!("warning: {job}");
                self.note(&warning_text(self.dialect, &whose, warning));
            }
            Dialect::Fio => {
                self.note(&fathom_report::note_as_fio(warning));
                self.tell(&warning.message);
            }
        }
    }

    /// Remembers a warning that was printed as a note, under fio's name.
    fn tell(&mut self, message: &str) {
        if !self.has_document() {
            self.told.push(message.to_owned());
        }
    }

    /// Prints that the run is stopping; `signal` is the last signal received, 0 for none.
    fn stopping(&mut self, signal: i32) {
        self.status.clear();
        match self.dialect {
            // A trigger ends the jobs silently, as in fio.
            Dialect::Fio if signal == 0 => {}
            Dialect::Fio => self.terminating(signal),
            Dialect::Fathom => output::print(
                StandardStream::Error,
                "fathom: stopping; draining in-flight I/O (Ctrl-C again to abort without a \
                 report)\n",
            ),
        }
    }

    /// Prints fio's line about a signal, under fio's name.
    pub(crate) fn terminating(&mut self, signal: i32) {
        if self.dialect == Dialect::Fio {
            self.text(&format!("\nfio: terminating on signal {signal}\n"));
        }
    }

    /// Prints the finished record, after the error of each failed job.
    pub(crate) fn print_record(&mut self, record: &Record) {
        self.has_record = true;
        self.status.clear();
        self.release_notes();
        for job in record.jobs.iter().filter(|job| job.error != 0) {
            self.job_error(job);
        }
        self.print(record);
        if fathom_report::report_count(record) >= self.summary_from {
            let summary = format!("\n{}", fathom_report::summary(record));
            match self.is_foreign {
                true => self.text(&output::printable_lines(&summary)),
                false => self.text(&summary),
            }
        }
    }

    /// Prints a record in every requested format.
    fn print(&mut self, record: &Record) {
        for format in self.formats.clone() {
            let text = match self.documents.iter().find(|(of, _)| *of == format) {
                Some((_, text)) => text.clone(),
                None if (self.dialect, format) == (Dialect::Fio, OutputFormat::Normal) => {
                    fathom_report::text_as_fio(record, &self.told)
                }
                None => fathom_report::render(record, format, self.terse_version),
            };
            let mut text = self.fitted(text, record, format);
            if self.is_foreign && !format.is_document() {
                text = output::printable_lines(&text);
            }
            self.data(&text);
        }
    }

    /// Breaks the stalls and caveats of a text report for the terminal; fio's part, which scripts
    /// read, stays as it is, and so does a report that goes to a file or a pipe.
    fn fitted(&self, text: String, record: &Record, format: OutputFormat) -> String {
        let is_seen = !self.to_file && io::stdout().is_terminal();
        match is_seen && format == OutputFormat::Normal {
            true => with_fitted_sentences(text, record, &fitted_sentences),
            false => text,
        }
    }

    fn has_text(&self) -> bool {
        self.formats.contains(&OutputFormat::Normal)
    }

    fn has_document(&self) -> bool {
        self.formats.iter().any(|format| format.is_document())
    }

    /// Prints the error that ended the run before there was a report.
    pub(crate) fn fail(&mut self, error: &RunError) {
        self.status.clear();
        self.release_notes();
        let name = self.dialect.program();
        let lines = error.problems.iter().map(|problem| {
            let hint = problem.hint.as_ref();
            let hint = hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
            format!("{name}: {problem}\n{hint}")
        });
        self.error(&output::printable_lines(&lines.collect::<String>()));
    }

    /// Prints everything that is wrong with the plan.
    pub(crate) fn refuse(&mut self, rendered: &str) {
        self.status.clear();
        self.release_notes();
        self.error(rendered);
    }

    /// Leaves the report's file as it is.
    pub(crate) fn spare_file(&mut self) {
        self.data.forget();
    }

    /// Puts the report's file in place. A refused run leaves none, except under fio's name, where
    /// the file holds the errors.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.release_notes();
        if self.dialect == Dialect::Fathom && !self.has_record {
            self.data.forget();
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.data.finish(),
        }
    }

    /// Prints a line for each section, and the version.
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
        let (pid, errno) = (job.pid, job.error);
        let lines = match (self.dialect, &job.fio_error) {
            (Dialect::Fathom, _) => format!("fathom: job `{}`: {text}\n", job.name),
            (Dialect::Fio, None) => format!("fio: pid={pid}, err={errno}, error={text}\n"),
            (Dialect::Fio, Some(found)) => format!(
                "{}fio: {text}\nfio: pid={pid}, err={errno}, {}\n",
                found.lines,
                found.text(errno)
            ),
        };
        self.error(&lines);
    }

    /// Adds to the text report, if it is among the formats.
    fn text(&mut self, text: &str) {
        if self.has_text() {
            self.data(text);
        }
    }

    /// Prints a note: on standard error, or under fio's name within the text report.
    fn note(&mut self, text: &str) {
        match self.dialect {
            Dialect::Fathom => output::print(StandardStream::Error, text),
            Dialect::Fio if self.has_document() => {}
            Dialect::Fio => match &mut self.held_notes {
                Some(held) => held.push_str(text),
                None => self.text(text),
            },
        }
    }

    /// Prints the notes that were held, and holds no more.
    fn release_notes(&mut self) {
        if let Some(held) = self.held_notes.take() {
            self.text(&held);
        }
    }

    fn error(&mut self, text: &str) {
        match self.is_foreign {
            true => output::print(StandardStream::Error, &output::printable_lines(text)),
            false => output::print(StandardStream::Error, text),
        }
        if self.dialect == Dialect::Fio && self.to_file {
            self.data(text);
        }
    }

    fn data(&mut self, text: &str) {
        let result = self.data.add(text);
        self.failed = self.failed.take().or(result.err());
    }
}

/// Returns the fewest reports that are followed by a summary. Under fio's name tools read the
/// report, which ends as fio's does unless the summary is requested.
const fn summary_from(dialect: Dialect, wanted: ShowMode) -> usize {
    match (wanted, dialect) {
        (ShowMode::Always, _) => 1,
        (ShowMode::Never, _) | (ShowMode::Auto, Dialect::Fio) => usize::MAX,
        (ShowMode::Auto, Dialect::Fathom) => SUMMARY_REPORTS_MIN,
    }
}

/// Formats a warning, with its hint on a line of its own.
fn warning_text(dialect: Dialect, whose: &str, warning: &Warning) -> String {
    let hint = match warning.hint.as_str() {
        "" => String::new(),
        hint => format!("hint: {hint}\n"),
    };
    let text = format!("{}: {whose}{}\n{hint}", dialect.program(), warning.message);
    output::printable_lines(&text)
}

/// Prints the message about a run that waits for its start.
fn awaiting_start(left: Nanos) {
    let seconds = left.as_millis().div_ceil(1_000);
    let text = format!("fathom: waiting {seconds} s for the agreed start\n");
    output::print(StandardStream::Error, &text);
}

/// Lists the first few of these jobs, and counts the others.
fn named(jobs: &[&str]) -> String {
    let mut names: Vec<String> = jobs.iter().map(|name| format!("`{name}`")).collect();
    // Clones share a name.
    names.dedup();
    let more = names.len().saturating_sub(NAMED_JOBS_MAX);
    names.truncate(NAMED_JOBS_MAX);
    let mut whose = names.join(", ");
    if more > 0 {
        whose.push_str(&format!(" and {more} more"));
    }
    whose
}

/// Formats the message about jobs that delay the end of the run by opening their files.
fn still_opening(jobs: &[&str]) -> String {
    format!(
        "fathom: still opening files or connecting: {}\nhint: Ctrl-C again aborts; \
         `connect_timeout` limits how long a job waits for its server\n",
        named(jobs)
    )
}

/// Formats the message about jobs that delay the end of the run.
fn still_stopping(plan: &Plan, jobs: &[&str]) -> String {
    let whose = named(jobs);
    let of_those = || {
        plan.jobs
            .iter()
            .filter(|job| jobs.contains(&job.name.as_str()))
    };
    let has_command = of_those().any(|job| job.options.lifecycle.exec_postrun.is_some());
    let command = if has_command { " and exec_postrun" } else { "" };
    let mut text = format!("fathom: still draining in-flight I/O{command} of {whose}\n");
    if of_those().any(|job| job.options.engine.exit_waits_for_ops) {
        text.push_str(
            "hint: wait; with libaio an abort takes as long, because the kernel keeps the process \
             until its ops complete\n",
        );
    }
    text
}

/// Fewest reports that no longer fit a screen together, and so have a summary.
const SUMMARY_REPORTS_MIN: usize = 5;

/// Jobs named in one message.
const NAMED_JOBS_MAX: usize = 4;

/// Shortest interval of the status line, as in fio.
const STATUS_INTERVAL_MIN: Nanos = Nanos::from_millis(250);

#[cfg(test)]
mod tests {
    use fathom_record::StallRecord;

    use super::*;

    #[test]
    fn stalls_and_caveats_are_fitted_and_the_rest_is_not() {
        let stall = StallRecord {
            duration_ns: 90_000_000,
            ..StallRecord::default()
        };
        let job = JobRecord {
            name: "stall".into(),
            stalls: vec![stall],
            ..JobRecord::default()
        };
        let warning = Warning {
            message: "it is late".into(),
            ..Warning::default()
        };
        let record = Record {
            jobs: vec![job],
            warnings: vec![warning],
            ..Record::default()
        };
        let text = fathom_report::render(&record, OutputFormat::Normal, 0);
        let fitted = with_fitted_sentences(text.clone(), &record, &str::to_uppercase);
        let at = text.find("\nstall: 90 ms").expect("a line about the stall");
        assert_eq!(fitted[..at], text[..at]);
        assert_eq!(fitted[at..], text[at..].to_uppercase());
    }
}
