//! Builds jobs from options as written: inheritance, order, and the place of every error.

use std::collections::HashSet;
use std::sync::Arc;

use crate::Environment;
use crate::check::JobCheck;
use crate::diagnostics::{Diagnostic, Diagnostics, Severity};
use crate::findings::{FindingClass, Findings};
use crate::layer::{Accepted, OptionLayer, WrittenOption};
use crate::numbering::{self, Numbering};
use crate::plan::{Job, Options, Plan, Settings, Typed};
use crate::problem::Problem;
use crate::rank::Rank;
use crate::rank_keywords::RankKeywords;
use crate::rank_place::RankPlace;
use crate::reading;
use crate::refuse;
use crate::reporter::Reporter;
use crate::source::Spot;
use crate::table::{self, Row};
use crate::vocabulary::Vocabulary;

/// Builds a [`Plan`] from options in the order they are read.
///
/// The readers of job files and command lines call it: [`Self::inherit`] starts the layer of a job,
/// [`Self::apply`] adds an option to it, and [`Self::finish_job`] or [`Self::finish_global`]
/// completes it. [`Self::finish`] returns the plan. Errors are reported as they are found and never
/// stop the building, so that one run shows all of them; the jobs of a plan with errors are those
/// without errors of their own.
///
/// Cost: each job owns a full copy of its options (some 2 KiB), while the options as typed in
/// `[global]` sections are shared. Clones (`numjobs`) are not expanded here.
pub(crate) struct Builder<'a> {
    pub(crate) environment: &'a dyn Environment,
    /// Keywords of ranks that values may contain; `None` where they are text, as in fio.
    pub(crate) rank: Option<RankKeywords>,
    /// Place of this rank.
    pub(crate) own: Arc<RankPlace>,
    /// Place that the keywords stand for, and in which the jobs work.
    pub(crate) place: Arc<RankPlace>,
    /// Options and engines that jobs can name.
    pub(crate) vocabulary: Vocabulary<'a>,
    pub(crate) reporter: Reporter,
    pub(crate) settings: Settings,
    /// Set if nothing will be run: only the command line and the values of options are checked, as
    /// fio does for `--parse-only` and `--showcmd`.
    pub(crate) values_only: bool,
    /// The layer that following jobs inherit.
    pub(crate) globals: OptionLayer,
    /// The options of `globals` as typed, made for the first job that inherits them.
    inherited: Option<Arc<[Typed]>>,
    /// Number of options in `globals` when replaced ones were last removed.
    globals_compacted: usize,
    /// Number of inherited options and file names that jobs have copies of.
    copies: usize,
    /// Set if the next job waits for all before it, as the first one of a further job file does.
    pub(crate) wall: bool,
    /// Places at which jobs say that they write or trim.
    pub(crate) changing: Vec<Spot>,
    /// Names of sections that were read and not skipped, for `--section`.
    pub(crate) sections_seen: Vec<String>,
    pub(crate) plan: Plan,
    /// Indices of jobs without errors, in what they inherit either.
    sound: Vec<usize>,
    /// Number of jobs from earlier job files.
    jobs_before: usize,
    /// Number of errors when the last section was finished; later ones belong to the next section.
    errors_before: usize,
    /// Set if there are errors in what following jobs inherit.
    globals_refused: bool,
    clones: u64,
    /// Place of the first clone beyond the limit of threads, and the number of jobs before it.
    too_many: Option<(Spot, usize)>,
    /// Set if some jobs were not kept.
    left_out: bool,
    /// `lat_percentiles` of the current reporting group.
    group_percentiles: Option<bool>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(
        environment: &'a dyn Environment,
        misread: Severity,
        own: Arc<RankPlace>,
        place: Arc<RankPlace>,
    ) -> Self {
        let vocabulary = Vocabulary::new(environment.engines());
        Self {
            environment,
            rank: None,
            vocabulary,
            values_only: false,
            reporter: Reporter::new(misread),
            settings: Settings::default(),
            globals: OptionLayer::of_engine(vocabulary.default_engine()),
            inherited: None,
            globals_compacted: 0,
            wall: false,
            changing: Vec::new(),
            sections_seen: Vec::new(),
            plan: Plan {
                place: RankPlace::clone(&own),
                ..Plan::default()
            },
            own,
            place,
            sound: Vec::new(),
            jobs_before: 0,
            errors_before: 0,
            globals_refused: false,
            clones: 0,
            too_many: None,
            copies: 0,
            left_out: false,
            group_percentiles: None,
        }
    }

    /// Refuses a rank that was not found in advance: values may have been expanded without it.
    pub(crate) fn check_rank(&self, rank: Rank, text: &str) -> Result<(), Problem> {
        let own = self.own.rank;
        if own == rank {
            return Ok(());
        }
        let refused = |why: String| Err(Problem::new("bad-rank", 0..text.len(), why));
        if self.environment.ranks().is_some() {
            let why = format!(
                "the launcher has started this as rank {} of {}",
                own.rank, own.ranks
            );
            return refused(why).map_err(|problem| problem.fix("remove `--rank`"));
        }
        let why = "the rank is given twice, or under a shortened name".to_owned();
        refused(why).map_err(|problem| problem.fix("write it once and in full: `--rank=3/16`"))
    }

    /// Warns of a keyword of ranks where it is text, as in fio.
    pub(crate) fn check_rank_text(&mut self, value: &Spot) {
        let Some(keyword) = RankKeywords::first_in(value.text()).filter(|_| self.rank.is_none())
        else {
            return;
        };
        let start = value.text().find(keyword).unwrap_or(0);
        let range = start..start + keyword.len();
        let why = format!("`{keyword}` is text here, as in fio");
        let problem = Problem::new("rank-is-text", range.clone(), why);
        let problem = problem.fix("run it as `fathom run`, where it is the place of this rank");
        let diagnostic = Diagnostic::at(Severity::Warning, &value.part(range), problem);
        self.reporter.diagnostics.push(diagnostic);
    }

    /// Returns a layer for a new job, on top of the globals.
    pub(crate) fn inherit(&self) -> OptionLayer {
        self.layer_of(self.globals.options.clone())
    }

    /// Returns the layer of a `[global]` section, to be passed to [`Self::finish_global`]. The
    /// inherited options are moved, not copied, because each such section may add a file name.
    pub(crate) fn extend_globals(&mut self) -> OptionLayer {
        let options = std::mem::take(&mut self.globals.options);
        self.layer_of(options)
    }

    fn layer_of(&self, options: Options) -> OptionLayer {
        OptionLayer {
            options,
            own: Vec::new(),
            name: None,
            engine_refused: self.globals.engine_refused,
        }
    }

    /// Applies the options of a section by rank: units first, file names and engine options last.
    pub(crate) fn apply_sorted(
        &mut self,
        layer: &mut OptionLayer,
        mut written: Vec<WrittenOption>,
    ) {
        let rank = |name: &str| table::find(name).map_or(3, Row::rank);
        written.sort_by_key(|written| rank(written.option_name()));
        for written in written {
            self.apply(layer, written);
        }
    }

    /// Applies one option.
    pub(crate) fn apply(&mut self, layer: &mut OptionLayer, written: WrittenOption) {
        let name = written.option_name();
        let engine = layer.options.engine;
        let row = match self.vocabulary.find(name, engine) {
            Some(row) if row.belongs_to(engine) => row,
            Some(_) if layer.engine_refused => return,
            // An option of a refused SPDK plugin.
            None if layer.engine_refused && name.starts_with("spdk") => return,
            _ if self.reporter.diagnostics.is_full() => {
                return self.reporter.diagnostics.leave_out();
            }
            Some(row) if engine.ignored_by_fio.contains(&row.name) => {
                let problem = refuse::option(name, Some(row), engine, self.vocabulary);
                let problem = problem.read_as(reading::NOTHING);
                self.reporter
                    .finding(&written.name, problem, FindingClass::Misread);
                row
            }
            found => {
                let problem = refuse::option(name, found, engine, self.vocabulary);
                return self.reporter.error(&written.name, problem);
            }
        };
        let mut findings = Findings::new(self.reporter.is_lenient());
        // An ignored one, too, must have a value that fio accepts.
        let mut unused;
        let options = match row.belongs_to(engine) {
            true => &mut layer.options,
            false => {
                unused = layer.options.clone();
                &mut unused
            }
        };
        let result = row.apply(options, written.text(), self.vocabulary, &mut findings);
        for (problem, class) in findings.found {
            let spot = spot_of(&written, &problem);
            self.reporter.finding(&spot, problem, class);
        }
        match result {
            Ok(()) => {
                if row.name == "name" {
                    layer.name = written.text().map(|text| text.trim().to_owned());
                }
                // From the end: a job file may repeat an option that adds many thousands of times.
                let same = |known: &Accepted| known.name == row.name;
                if !row.adds()
                    && let Some(at) = layer.own.iter().rposition(same)
                {
                    layer.own.remove(at);
                }
                layer.own.push(Accepted {
                    name: row.name,
                    adds: row.adds(),
                    is_secret: row.is_secret,
                    written,
                });
            }
            Err(problem) => {
                layer.engine_refused |= row.name == "ioengine";
                self.value_error(&written, problem);
            }
        }
    }

    fn value_error(&mut self, written: &WrittenOption, problem: Problem) {
        let spot = spot_of(written, &problem);
        self.reporter.error(&spot, problem);
    }

    /// Completes a `[global]` section, or the command line before the first job.
    pub(crate) fn finish_global(&mut self, layer: OptionLayer) {
        let pairs = layer
            .typed()
            .into_iter()
            .map(|typed| (typed.name, typed.value));
        self.plan.global_options.extend(pairs);
        self.globals.options = layer.options;
        self.globals.engine_refused = layer.engine_refused;
        self.globals.own.extend(layer.own);
        self.inherited = None;
        // Not for each section: that would take quadratic time.
        if self.globals.own.len() > 2 * self.globals_compacted + COMPACTED_MIN {
            self.compact_globals();
        }
        self.globals_refused |= self.has_new_errors();
    }

    /// Removes inherited options that a later one replaces.
    fn compact_globals(&mut self) {
        let mut said = HashSet::new();
        let own = &mut self.globals.own;
        own.reverse();
        own.retain(|known| known.adds || said.insert(known.name));
        own.reverse();
        self.globals_compacted = own.len();
    }

    /// Returns the options that jobs inherit, as typed.
    fn inherited(&mut self) -> Arc<[Typed]> {
        if self.inherited.is_none() {
            self.compact_globals();
        }
        let typed = || self.globals.typed().into();
        Arc::clone(self.inherited.get_or_insert_with(typed))
    }

    /// Keeps the options of a job file without jobs, which `--showcmd` prints as well.
    fn keep_jobless(&mut self) {
        let at = self.plan.jobs.len();
        if at == self.jobs_before && !self.globals.own.is_empty() {
            let inherited = self.inherited();
            self.plan.jobless.push((at, inherited));
        }
    }

    /// Starts a job file. The first continues from the command line; each further one inherits
    /// nothing and waits for the jobs before it.
    pub(crate) fn begin_job_file(&mut self, first: bool) {
        if !first {
            self.keep_jobless();
            self.globals = OptionLayer::of_engine(self.vocabulary.default_engine());
            self.inherited = None;
            self.globals_compacted = 0;
            self.globals_refused = false;
            self.plan.global_options.clear();
            self.wall = true;
        }
        self.jobs_before = self.plan.jobs.len();
    }

    /// Returns whether there were errors since the last section.
    fn has_new_errors(&mut self) -> bool {
        let errors = self.reporter.diagnostics.errors();
        std::mem::replace(&mut self.errors_before, errors) < errors
    }

    /// Completes a job: checks it and adds it to the plan.
    pub(crate) fn finish_job(&mut self, section: &str, header: &Spot, mut layer: OptionLayer) {
        if std::mem::take(&mut self.wall) {
            layer.options.stonewall = true;
        }
        let own = std::mem::take(&mut layer.name);
        let name = own.unwrap_or_else(|| section.to_owned());
        self.clones += u64::from(layer.options.numjobs);
        // Not an error yet: `--machine`, which raises the limit, may follow.
        if self.clones > THREADS_MAX && self.too_many.is_none() {
            let written = layer.find("numjobs").map(|written| &written.name);
            self.too_many = Some((written.unwrap_or(header).clone(), self.plan.jobs.len()));
        }
        // Clones are not expanded here; sections take memory.
        if self.plan.jobs.len() >= SECTIONS_MAX && self.settings.machine.is_none() {
            self.left_out = true;
            return;
        }
        if self.has_too_many_copies(&layer.options, header) {
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
            own: &self.own,
        };
        self.changing.extend(check.run());
        self.check_group(&layer, header);
        if !self.has_new_errors() && !self.globals_refused {
            self.sound.push(self.plan.jobs.len());
        }
        let inherited = self.inherited();
        self.plan.jobs.push(Job {
            name,
            section: section.to_owned(),
            origin: header.origin(),
            typed: layer.typed(),
            inherited,
            options: layer.options,
            numbering: Numbering::default(),
            place: Arc::clone(&self.place),
        });
    }

    /// Counts the inherited options and file names that a job cannot share with the one before it.
    /// Returns whether they exceed the limit, and reports that once.
    fn has_too_many_copies(&mut self, options: &Options, header: &Spot) -> bool {
        if self.copies > COPIES_MAX {
            return true;
        }
        let names = |options: &Options| options.filename.as_ref().map_or(0, |list| list.len());
        let inherited_names = names(&self.globals.options);
        if self.inherited.is_none() {
            self.copies += self.inherited().len() + inherited_names;
        }
        // Names are added to those inherited, never removed.
        if names(options) > inherited_names {
            self.copies += inherited_names;
        }
        let exceeds = self.copies > COPIES_MAX;
        if exceeds {
            let why = format!(
                "this job and earlier ones inherit more than {COPIES_MAX} options and file names \
                 that they cannot share"
            );
            let problem = Problem::new("many-options", 0..header.range.len(), why);
            let fix = "put what jobs have in common into one `[global]` section before them";
            self.reporter.error(header, problem.fix(fix));
        }
        exceeds
    }

    /// Jobs of a reporting group must agree on `lat_percentiles`, as in fio.
    fn check_group(&mut self, layer: &OptionLayer, header: &Spot) {
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

    /// Returns whether the limit of jobs is exceeded, so that reading on is pointless.
    pub(crate) const fn has_too_many_jobs(&self) -> bool {
        self.clones > self.jobs_max()
    }

    /// Returns the limit of clones. fio's limit is one of threads, and virtual time needs only one.
    const fn jobs_max(&self) -> u64 {
        if self.settings.machine.is_some() {
            MODELLED_MAX
        } else {
            THREADS_MAX
        }
    }

    /// Refuses the jobs beyond the limit.
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

    /// Returns the plan, reduced to jobs without errors if there were any, with settings and
    /// diagnostics.
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
            self.reporter.diagnostics.make_warnings_fatal(lenient);
        }
        self.reporter.diagnostics.sort();
        numbering::number(&mut self.plan.jobs);
        if self.reporter.diagnostics.has_errors() {
            let jobs = std::mem::take(&mut self.plan.jobs);
            let sound = (0..).zip(jobs);
            let sound = sound.filter(|(index, _)| self.sound.contains(index));
            self.plan.jobs = sound.map(|(_, job)| job).collect();
        }
        if !self.values_only {
            self.leave_out_others();
        }
        (self.plan, self.settings, self.reporter.diagnostics)
    }

    /// Removes the sections that other ranks alone have.
    fn leave_out_others(&mut self) {
        let (rank, host) = (self.own.rank.rank, &self.own.host);
        let mut others = Vec::new();
        self.plan.jobs.retain(|job| {
            let is_here = job.options.placement.includes(rank, host);
            if !is_here {
                others.push(job.name.clone());
            }
            is_here
        });
        self.plan.left_out = others;
    }

    pub(crate) fn has_jobs(&self) -> bool {
        !self.plan.jobs.is_empty()
    }
}

/// Returns the place of a problem: in the value, or at the name of a bare option.
fn spot_of(written: &WrittenOption, problem: &Problem) -> Spot {
    match &written.value {
        Some(value) if written.replaced.is_none() => value.part(problem.at.clone()),
        Some(value) => value.clone(),
        None => written.name.clone(),
    }
}

/// Below this number of inherited options, replaced ones are not worth removing.
const COMPACTED_MIN: usize = 64;

/// Limit of copied options and names, some 200 bytes each. Jobs share what they inherit until a
/// `[global]` section follows or a job adds a file name, so files written by hand stay far below.
const COPIES_MAX: usize = 1 << 17;

/// fio's limit of clones of all jobs together.
const THREADS_MAX: u64 = 4096;
/// Limit of sections before `--machine` is seen.
const SECTIONS_MAX: usize = 4096;
/// Limit of clones in virtual time, where each takes about 85 KiB of memory.
const MODELLED_MAX: u64 = 65_536;
