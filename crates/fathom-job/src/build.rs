//! Builds jobs from options as written: inheritance, order, and the place of every error.

use std::sync::Arc;

use crate::Environment;
use crate::check::{self, JobCheck};
use crate::diagnostics::{Diagnostics, Severity};
use crate::findings::Findings;
use crate::layer::{Accepted, Layer, Written};
use crate::plan::{Job, Plan, Settings, Typed};
use crate::problem::Problem;
use crate::refuse;
use crate::reporter::Reporter;
use crate::source::Spot;
use crate::table::{self, Row};

/// The plan as far as it has been read.
pub(crate) struct Builder<'a> {
    pub(crate) environment: &'a dyn Environment,
    pub(crate) reporter: Reporter,
    pub(crate) settings: Settings,
    /// Nothing will be run: only the command line and the values of options are looked at, as
    /// fio does for `--parse-only` and `--showcmd`.
    pub(crate) values_only: bool,
    /// What the job to come inherits.
    pub(crate) globals: Layer,
    /// The options of `globals` as typed.
    inherited: Arc<[Typed]>,
    /// The next job starts after all before it, as one of a second job file does.
    pub(crate) wall: bool,
    /// Where jobs say that they write or trim.
    pub(crate) changing: Vec<Spot>,
    /// Sections of `--section` that were seen.
    pub(crate) sections_seen: Vec<String>,
    pub(crate) plan: Plan,
    /// Jobs of the plan, by index, in which nothing is wrong, nor in what they inherit.
    sound: Vec<usize>,
    /// Jobs of the files before this one.
    jobs_before: usize,
    /// Errors when the last section was finished: those that came since are of the next.
    errors_before: usize,
    /// Something is wrong in what the jobs to come inherit.
    globals_refused: bool,
    clones: u64,
    /// Where there are more of them than threads can be, and how many jobs came before.
    too_many: Option<(Spot, usize)>,
    /// Some of them were not kept.
    left_out: bool,
    /// `lat_percentiles` of the group that is being reported as one.
    group_percentiles: Option<bool>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(environment: &'a dyn Environment, misread: Severity) -> Self {
        Self {
            environment,
            values_only: false,
            reporter: Reporter::new(misread),
            settings: Settings::default(),
            globals: Layer::default(),
            inherited: Arc::default(),
            wall: false,
            changing: Vec::new(),
            sections_seen: Vec::new(),
            plan: Plan::default(),
            sound: Vec::new(),
            jobs_before: 0,
            errors_before: 0,
            globals_refused: false,
            clones: 0,
            too_many: None,
            left_out: false,
            group_percentiles: None,
        }
    }

    /// A layer for a new job, on top of the globals.
    pub(crate) fn inherit(&self) -> Layer {
        Layer {
            options: self.globals.options.clone(),
            own: Vec::new(),
            name: None,
            engine_refused: self.globals.engine_refused,
        }
    }

    /// Applies a section's options: units first, names of files and engines' own options last.
    pub(crate) fn apply_sorted(&mut self, layer: &mut Layer, mut written: Vec<Written>) {
        written.sort_by_key(|written| table::find(written.option_name()).map_or(3, Row::rank));
        for written in written {
            self.apply(layer, written);
        }
    }

    /// Applies one option.
    pub(crate) fn apply(&mut self, layer: &mut Layer, written: Written) {
        let name = written.option_name();
        let row = match table::find(name) {
            Some(row) if row.belongs_to(&layer.options.ioengine) => row,
            Some(_) if layer.engine_refused => return,
            // An option of the plugin that was refused.
            None if layer.engine_refused && name.starts_with("spdk") => return,
            _ if self.reporter.diagnostics.is_full() => {
                return self.reporter.diagnostics.leave_out();
            }
            found => {
                let problem = refuse::option(name, found, &layer.options.ioengine);
                return self.reporter.error(&written.name, problem);
            }
        };
        let mut findings = Findings::new(self.reporter.is_lenient());
        let result = row.apply(&mut layer.options, written.text(), &mut findings);
        for (problem, weight) in findings.found {
            let spot = spot_of(&written, &problem);
            self.reporter.finding(&spot, problem, weight);
        }
        match result {
            Ok(()) => {
                if row.name == "name" {
                    layer.name = written.text().map(|text| text.trim().to_owned());
                }
                // From the end: a job file may have a great many lines of an option that adds.
                let same = |known: &Accepted| known.row.name == row.name;
                if !row.adds()
                    && let Some(at) = layer.own.iter().rposition(same)
                {
                    layer.own.remove(at);
                }
                layer.own.push(Accepted { row, written });
            }
            Err(problem) => {
                layer.engine_refused |= row.name == "ioengine";
                self.value_error(&written, problem);
            }
        }
    }

    fn value_error(&mut self, written: &Written, problem: Problem) {
        let spot = spot_of(written, &problem);
        self.reporter.error(&spot, problem);
    }

    /// Takes the options of a `[global]` section, or of the command line before the first job.
    pub(crate) fn finish_global(&mut self, layer: Layer) {
        let pairs = layer
            .typed()
            .into_iter()
            .map(|typed| (typed.name, typed.value));
        self.plan.global_options.extend(pairs);
        // What is said again replaces what was: there may be many such sections.
        let mut own = std::mem::take(&mut self.globals.own);
        own.retain(|known| {
            let mut later = layer.own.iter();
            known.row.adds() || !later.any(|later| later.row.name == known.row.name)
        });
        own.extend(layer.own);
        self.globals = Layer {
            options: layer.options,
            own,
            name: None,
            engine_refused: layer.engine_refused,
        };
        self.inherited = self.globals.typed().into();
        self.globals_refused |= self.has_new_errors();
    }

    /// Keeps the options of a job file without a job, which `--showcmd` prints all the same.
    fn keep_jobless(&mut self) {
        let at = self.plan.jobs.len();
        if at == self.jobs_before && !self.inherited.is_empty() {
            self.plan.jobless.push((at, Arc::clone(&self.inherited)));
        }
    }

    /// Begins a job file: the first one goes on from the command line, each other one inherits
    /// nothing and waits for the jobs before it.
    pub(crate) fn begin_job_file(&mut self, first: bool) {
        if !first {
            self.keep_jobless();
            self.globals = Layer::default();
            self.inherited = Arc::default();
            self.globals_refused = false;
            self.plan.global_options.clear();
            self.wall = true;
        }
        self.jobs_before = self.plan.jobs.len();
    }

    /// Whether anything was refused since the last section.
    fn has_new_errors(&mut self) -> bool {
        let errors = self.reporter.diagnostics.errors();
        std::mem::replace(&mut self.errors_before, errors) < errors
    }

    /// Takes a finished job.
    pub(crate) fn finish_job(&mut self, section: &str, header: &Spot, mut layer: Layer) {
        if std::mem::take(&mut self.wall) {
            layer.options.stonewall = true;
        }
        let own = std::mem::take(&mut layer.name);
        let name = own.unwrap_or_else(|| section.to_owned());
        self.clones += u64::from(layer.options.numjobs);
        // `--machine`, under which there may be more, may come later.
        if self.clones > THREADS_MAX && self.too_many.is_none() {
            let written = layer.find("numjobs").map(|written| &written.name);
            self.too_many = Some((written.unwrap_or(header).clone(), self.plan.jobs.len()));
        }
        // Clones take no memory here, sections do.
        if self.plan.jobs.len() >= SECTIONS_MAX && self.settings.machine.is_none() {
            self.left_out = true;
            return;
        }
        let check = JobCheck {
            reporter: &mut self.reporter,
            environment: self.environment,
            globals: &self.globals,
            earlier: &self.plan.jobs,
            name: &name,
            layer: &mut layer,
            header,
        };
        self.changing.extend(check.run());
        self.check_group(&layer, header);
        if !self.has_new_errors() && !self.globals_refused {
            self.sound.push(self.plan.jobs.len());
        }
        self.plan.jobs.push(Job {
            name,
            section: section.to_owned(),
            origin: header.origin(),
            typed: layer.typed(),
            inherited: Arc::clone(&self.inherited),
            options: layer.options,
        });
    }

    /// Jobs that are reported as one must have the same percentiles, as in fio.
    fn check_group(&mut self, layer: &Layer, header: &Spot) {
        let options = &layer.options;
        if options.stonewall || options.new_group {
            self.group_percentiles = None;
        }
        if !options.group_reporting {
            return;
        }
        let first = *self
            .group_percentiles
            .get_or_insert(options.lat_percentiles);
        if first != options.lat_percentiles {
            let written = layer.find("lat_percentiles");
            let spot = written.map_or(header, |written| &written.name).clone();
            let why = "jobs of one reporting group differ in `lat_percentiles`";
            let problem = Problem::new("bad-group", 0..spot.range.len(), why);
            self.reporter.job_error(
                &spot,
                problem.fix("use the same value for all of them, or start a `new_group`"),
            );
        }
    }

    /// Whether there are more jobs than can be, so that reading on makes no sense.
    pub(crate) const fn has_too_many_jobs(&self) -> bool {
        self.clones > self.jobs_max()
    }

    /// Threads are what fio's limit is of; in virtual time there is one.
    const fn jobs_max(&self) -> u64 {
        if self.settings.machine.is_some() {
            MODELLED_MAX
        } else {
            THREADS_MAX
        }
    }

    /// Refuses the jobs from the first one on that is too many.
    fn refuse_too_many_jobs(&mut self) {
        if !self.has_too_many_jobs() && !self.left_out {
            return;
        }
        let Some((spot, before)) = self.too_many.take() else {
            return;
        };
        self.plan.jobs.truncate(before);
        self.sound.retain(|index| *index < before);
        let why = if self.left_out && self.settings.machine.is_some() {
            format!("more than {SECTIONS_MAX} jobs before `--machine`, which must come first")
        } else {
            format!("more than {} jobs in total", self.jobs_max())
        };
        let problem = Problem::new("too-many-jobs", 0..spot.range.len(), why);
        self.reporter.job_error(&spot, problem);
    }

    /// The plan, of sound jobs only if anything was refused, and what there is to say.
    pub(crate) fn finish(mut self) -> (Plan, Settings, Diagnostics) {
        self.keep_jobless();
        self.refuse_too_many_jobs();
        if self.settings.read_only {
            for spot in std::mem::take(&mut self.changing) {
                let why = "the job writes or trims, which `--readonly` forbids";
                let problem = Problem::new("read-only", 0..spot.range.len(), why);
                self.reporter.error(
                    &spot,
                    problem.fix("make the job read only, or remove `--readonly`"),
                );
            }
        }
        if self.reporter.is_lenient() && self.values_only {
            self.reporter.diagnostics.pass_whole_jobs();
        } else if self.settings.warnings_fatal {
            let lenient = self.reporter.is_lenient();
            let diagnostics = &mut self.reporter.diagnostics;
            diagnostics.make_warnings_fatal(|code| is_fatal(code, lenient));
        }
        self.reporter.diagnostics.sort();
        if self.reporter.diagnostics.has_errors() {
            let jobs = std::mem::take(&mut self.plan.jobs);
            let sound = (0..).zip(jobs);
            let sound = sound.filter(|(index, _)| self.sound.contains(index));
            self.plan.jobs = sound.map(|(_, job)| job).collect();
        }
        (self.plan, self.settings, self.reporter.diagnostics)
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.plan.jobs.is_empty()
    }
}

/// Returns whether `--warnings-fatal` makes an error of this warning. Under fio's name these are the
/// warnings that fio has too; else all but the one that fio only notes.
fn is_fatal(code: &str, lenient: bool) -> bool {
    if lenient {
        check::FATAL_IN_FIO.contains(&code)
    } else {
        code != check::DEPTH_CAPPED
    }
}

/// Returns the place of a problem: in the value, or at the name of a bare option.
fn spot_of(written: &Written, problem: &Problem) -> Spot {
    match &written.value {
        Some(value) if written.replaced.is_none() => value.part(problem.at.clone()),
        Some(value) => value.clone(),
        None => written.name.clone(),
    }
}

/// fio's limit, of all clones together.
const THREADS_MAX: u64 = 4096;
/// So many sections, or `--name`s, are kept before it is known that time is virtual.
const SECTIONS_MAX: usize = 4096;
/// In virtual time a job is some 85 KiB of memory.
const MODELLED_MAX: u64 = 65_536;
