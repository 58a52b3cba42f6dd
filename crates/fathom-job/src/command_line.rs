//! The command line as fio reads it: switches, options, jobs begun by `--name`, and job files.

use fathom_core::Nanos;

use crate::build::{Builder, Layer, Written};
use crate::diagnostics::{Diagnostics, Spot};
use crate::file;
use crate::getopt::{CommandLine, Word};
use crate::help;
use crate::plan::{EtaMode, OutputFormat};
use crate::problem::{Piece, Problem};
use crate::showcmd;
use crate::switches::{Action, Switch};
use crate::table::{self, known};
use crate::time::{Bare, time};
use crate::{Dialect, Invocation, Surroundings};

/// Reads a command line, without the program's name, and the job files it names.
///
/// # Errors
/// Everything that is wrong with it, all at once.
pub fn parse(
    args: &[String],
    dialect: Dialect,
    around: &dyn Surroundings,
) -> Result<Invocation, Diagnostics> {
    let mut reader = Reader {
        builder: Builder::new(around),
        dialect,
        layer: Layer::default(),
        job: None,
        files: Vec::new(),
        show_command: false,
        section_spots: Vec::new(),
        print: None,
    };
    let mut line = CommandLine::new(args);
    while let Some(word) = line.word(&reader.layer.options.ioengine) {
        reader.word(word);
        if let Some(text) = reader.print.take() {
            return Ok(Invocation::Print(text));
        }
    }
    reader.finish()
}

struct Reader<'a> {
    builder: Builder<'a>,
    dialect: Dialect,
    /// The job, or the globals, that options go to.
    layer: Layer,
    /// The job's name and the place of its `--name`; `None` while options are global.
    job: Option<(String, Spot)>,
    files: Vec<Spot>,
    show_command: bool,
    section_spots: Vec<Spot>,
    /// What to print instead of running anything.
    print: Option<String>,
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
            } => self.option(&full_name, name, value),
            Word::File(spot) => self.files.push(spot),
            Word::Bad(spot, problem) => self.builder.error(&spot, problem),
        }
    }

    fn option(&mut self, full_name: &str, name: Spot, value: Option<Spot>) {
        if let Some(value) = &value
            && let Some(problem) = glued(full_name, value.text())
        {
            return self.builder.error(&value.part(problem.at.clone()), problem);
        }
        let written = Written {
            name,
            value,
            replaced: None,
            full_name: Some(full_name.to_owned()),
        };
        if full_name == "name" {
            self.begin(&written);
        }
        self.builder.apply(&mut self.layer, written);
    }

    /// `--name`: ends the job or the globals before it.
    fn begin(&mut self, written: &Written) {
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
        let spot = value.as_ref().unwrap_or(name).clone();
        let text = value.as_ref().map(|value| value.text().to_owned());
        let text_or_empty = text.clone().unwrap_or_default();
        let settings = &mut self.builder.settings;
        let result = match switch.action {
            Action::Output => {
                settings.output = text;
                Ok(())
            }
            Action::Format => {
                formats(&text_or_empty).map(|formats| settings.formats.extend(formats))
            }
            Action::TerseVersion => terse_version(&text_or_empty),
            Action::Version => {
                self.print = Some(help::version(self.dialect));
                Ok(())
            }
            Action::Help => {
                self.print = Some(help::usage());
                Ok(())
            }
            Action::OptionHelp => {
                self.print = Some(help::option(text.as_deref()));
                Ok(())
            }
            Action::EngineHelp => help::engine(text.as_deref()).map(|text| self.print = Some(text)),
            Action::ShowCommand => {
                self.show_command = true;
                Ok(())
            }
            Action::ReadOnly => {
                settings.read_only = true;
                Ok(())
            }
            Action::Eta => eta(&text_or_empty).map(|mode| settings.eta = mode),
            Action::EtaInterval => {
                interval(&text_or_empty).map(|span| settings.eta_interval = Some(span))
            }
            Action::EtaNewline => time(Piece::whole(&text_or_empty), Bare::Seconds)
                .map(|span| settings.eta_newline = (!span.is_zero()).then_some(span)),
            Action::ParseOnly => {
                settings.parse_only = true;
                Ok(())
            }
            Action::Section if text_or_empty.starts_with("global") => Err(Problem::new(
                "bad-section",
                0..text_or_empty.len(),
                "`global` sections are no jobs: they cannot be run alone",
            )
            .fix("name a job's section")),
            Action::Section => {
                settings.sections.push(text_or_empty);
                self.section_spots.push(spot.clone());
                Ok(())
            }
            Action::WarningsFatal => {
                settings.warnings_fatal = true;
                Ok(())
            }
            Action::Ignored => Ok(()),
            Action::NotYet => Err(not_yet(switch, name)),
        };
        if let Err(problem) = result {
            let spot = match problem.code {
                "not-yet" if switch.action == Action::NotYet => name.clone(),
                _ => spot.part(problem.at.clone()),
            };
            self.builder.error(&spot, problem);
        }
    }

    fn finish(mut self) -> Result<Invocation, Diagnostics> {
        self.end();
        for (index, spot) in std::mem::take(&mut self.files).into_iter().enumerate() {
            if index > 0 {
                self.builder.globals = Layer::default();
                self.builder.wall = true;
            }
            let path = spot.text().to_owned();
            file::read(&mut self.builder, &path, &spot);
        }
        self.unmatched_sections();
        let settings = &self.builder.settings;
        let idle = settings.parse_only || self.show_command;
        if !self.builder.has_jobs() && !idle && !self.builder.diagnostics.has_errors() {
            self.builder.error_without_place(
                "no-jobs",
                "no jobs are defined".to_owned(),
                "name a job file, or begin a job with `--name`; `--help` shows how",
            );
        }
        let (plan, settings, diagnostics) = self.builder.finish();
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        Ok(if self.show_command {
            Invocation::Print(showcmd::text(&plan))
        } else {
            Invocation::Run {
                plan,
                settings,
                notes: diagnostics,
            }
        })
    }

    fn unmatched_sections(&mut self) {
        for spot in std::mem::take(&mut self.section_spots) {
            let name = spot.text();
            if !self.builder.sections_seen.iter().any(|seen| seen == name) {
                let why = format!("no job file has a section `{name}`");
                let problem = Problem::new("bad-section", 0..name.len(), why);
                let spot = spot.clone();
                self.builder
                    .error(&spot, problem.fix("name a section of the job file"));
            }
        }
    }
}

/// Two options written as one: `--direct=1--ioengine=libaio`.
fn glued(name: &str, value: &str) -> Option<Problem> {
    let (start, _) = value.match_indices("--").find(|(start, _)| {
        let rest = &value[start + 2..];
        let end = rest.find('=').unwrap_or(rest.len());
        known::find(&rest[..end]).is_some()
    })?;
    let rest = &value[start..];
    let why = format!("`{rest}` is glued to the value of `--{name}`");
    let problem =
        Problem::new("glued", start..value.len(), why).fix(format!("put a blank before `{rest}`"));
    Some(match table::find(name) {
        Some(row) if row.is_numeric() => problem.fio(format!(
            "would read `{}` and drop the rest",
            &value[..start]
        )),
        _ => problem.fio("would take all of it for one value"),
    })
}

fn formats(text: &str) -> Result<Vec<OutputFormat>, Problem> {
    let format = |piece: Piece<'_>| match piece.text.trim() {
        "normal" => Ok(OutputFormat::Normal),
        "json" => Ok(OutputFormat::Json),
        "json+" => Ok(OutputFormat::JsonPlus),
        word @ ("terse" | "minimal" | "csv") => Err(Problem::new(
            "not-yet",
            piece.range(),
            format!("the format `{word}` is known to fio, not yet to fathom"),
        )
        .fix("use normal, json or json+")),
        word => Err(Problem::new(
            "bad-format",
            piece.range(),
            format!("there is no output format `{word}`"),
        )
        .fix("use normal, json or json+, several with commas between them")),
    };
    Piece::whole(text)
        .split(&[','])
        .into_iter()
        .map(format)
        .collect()
}

fn terse_version(text: &str) -> Result<(), Problem> {
    match text.trim() {
        "2" | "3" | "4" | "5" => Ok(()),
        _ => Err(Problem::new(
            "bad-value",
            0..text.len(),
            format!("there is no terse layout `{text}`"),
        )
        .fix("use 2, 3, 4 or 5")),
    }
}

fn eta(text: &str) -> Result<EtaMode, Problem> {
    match text {
        "always" => Ok(EtaMode::Always),
        "never" => Ok(EtaMode::Never),
        "auto" => Ok(EtaMode::Auto),
        _ => Err(Problem::new(
            "bad-value",
            0..text.len(),
            format!("`{text}` is not a time to show the status line"),
        )
        .fix("use always, never or auto")),
    }
}

fn interval(text: &str) -> Result<Nanos, Problem> {
    let span = time(Piece::whole(text), Bare::Seconds)?;
    if span < INTERVAL_MIN {
        return Err(Problem::new(
            "out-of-range",
            0..text.len(),
            format!("{span} is too short for the status line, as in fio"),
        )
        .fix("write at least `250ms`"));
    }
    Ok(span)
}

fn not_yet(switch: &Switch, name: &Spot) -> Problem {
    Problem::new(
        "not-yet",
        0..name.range.len(),
        format!("`--{}` is known to fio, not yet to fathom", switch.name),
    )
}

/// fio's limit.
const INTERVAL_MIN: Nanos = Nanos::from_millis(250);
