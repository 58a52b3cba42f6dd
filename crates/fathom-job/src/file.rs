//! Reader of job files: turns sections into jobs.

use crate::build::Builder;
use crate::diagnostics::{Diagnostic, Severity};
use crate::findings::FindingClass;
use crate::includes::OpenFiles;
use crate::layer::{OptionLayer, WrittenOption};
use crate::lines::{self, Item};
use crate::problem::Problem;
use crate::source::Origin;
use crate::source::Spot;
use crate::substitute::{substitute, substitute_name};
use crate::suggest::closest;

/// Reads a job file (`-`: standard input) and adds its jobs.
pub(crate) fn read(builder: &mut Builder<'_>, path: &str, argument: &Spot) {
    let content = match path {
        "-" => builder.environment.read_stdin(),
        path => builder.environment.read_file(path),
    };
    let name = if path == "-" { "standard input" } else { path };
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(error) => {
            let why = format!("cannot read the job file `{path}`: {error}");
            let problem = Problem::new("no-file", 0..path.len(), why);
            let fix = "name an existing job file, or give job options";
            return builder.reporter.error(argument, problem.fix(fix));
        }
    };
    if let Some(problem) = unreadable(&bytes) {
        // fio takes a file without a section for one without jobs.
        if problem.reading.is_some() && builder.reporter.is_lenient() {
            return builder.reporter.error(argument, problem);
        }
        return builder.reporter.diagnostics.push(at_file(name, problem));
    }
    Reader::new(builder, name).read(&bytes);
}

/// Returns the problem of a file that cannot be a job file.
fn unreadable(bytes: &[u8]) -> Option<Problem> {
    let problem = |code, why: &str| Some(Problem::new(code, 0..0, why));
    if lines::is_binary(bytes) {
        return problem("binary-file", "not a text file: contains zero bytes");
    }
    if bytes.len() as u64 > JOB_FILE_BYTES_MAX {
        return problem("long-file", "the job file is longer than 64 MiB");
    }
    let mut items = lines::items("", bytes);
    match items.next() {
        None => problem("empty-file", "the job file has no sections")
            .map(|problem| problem.read_as("a file without jobs")),
        Some(_) => None,
    }
}

fn at_file(file: &str, problem: Problem) -> Diagnostic {
    let origin = Origin {
        file: file.to_owned(),
        line: 1,
        column: 1,
        spot: None,
    };
    Diagnostic::new(Severity::Error, problem.code, problem.why, origin, "")
        .with_hint("write sections with options, such as `[job]` and `rw=randread`")
}

/// The section being read.
struct Section {
    name: String,
    header: Spot,
    /// Set if `--section` excludes it.
    skipped: bool,
    options: Vec<WrittenOption>,
    /// Set once the error about too many options was reported.
    overfull: bool,
}

struct Reader<'b, 'a> {
    builder: &'b mut Builder<'a>,
    section: Option<Section>,
    open: OpenFiles,
    /// Set once the error about an option before the first section was reported.
    orphan_told: bool,
}

impl<'b, 'a> Reader<'b, 'a> {
    fn new(builder: &'b mut Builder<'a>, file: &str) -> Self {
        Self {
            builder,
            section: None,
            open: OpenFiles::new(file),
            orphan_told: false,
        }
    }

    fn read(mut self, bytes: &[u8]) {
        let file = self.open.job_file().to_owned();
        for item in lines::items(&file, bytes) {
            if let Item::Section {
                name,
                spot,
                problem,
            } = item
            {
                self.warn_of_misspelt_global();
                self.finish_section();
                if let Some(problem) = problem {
                    let place = spot.part(problem.at.clone());
                    self.builder.reporter.error(&place, problem);
                }
                self.begin_section(name, spot);
            } else {
                self.item(item);
            }
            if self.builder.has_too_many_jobs() {
                return;
            }
        }
        self.finish_section();
    }

    fn begin_section(&mut self, name: String, header: Spot) {
        let wanted = &self.builder.settings.sections;
        let global = name.starts_with("global");
        let skipped = !global && !wanted.is_empty() && !wanted.contains(&name);
        if !skipped && !global {
            self.builder.sections_seen.push(name.clone());
        }
        self.section = Some(Section {
            name,
            header,
            skipped,
            options: Vec::new(),
            overfull: false,
        });
    }

    /// Handles an item that belongs in a section.
    fn item(&mut self, item: Item) {
        match item {
            Item::Bad { spot, problem } => {
                // Following options belong to the unreadable section; they are not errors of their
                // own.
                self.orphan_told |= spot.line.text.trim_start().starts_with('[');
                self.builder.reporter.error(&spot, problem);
            }
            Item::Section { spot, .. } => {
                let why = "an included file cannot contain sections";
                let problem = Problem::new("section-included", 0..spot.range.len(), why);
                self.builder
                    .reporter
                    .error(&spot, problem.fix("include options only"));
            }
            Item::Option { name, .. } if self.section.is_none() => self.orphan(&name),
            Item::Include { file } if self.section.is_none() => self.orphan(&file),
            Item::Option { name, value } => self.option(name, value),
            Item::Include { file } => self.include(&file),
        }
    }

    fn orphan(&mut self, spot: &Spot) {
        if !std::mem::replace(&mut self.orphan_told, true) {
            let why = format!("`{}` appears before the first section", spot.text());
            let problem = Problem::new("before-section", 0..spot.range.len(), why);
            self.builder.reporter.error(
                spot,
                problem.fix("put it below `[global]` or a job's `[name]`"),
            );
        }
    }

    fn option(&mut self, name: Spot, value: Option<Spot>) {
        if self.is_overfull(&name) {
            return;
        }
        let mut written = WrittenOption {
            name,
            value,
            replaced: None,
            of_any_rank: None,
            full_name: None,
        };
        self.replace_in_name(&mut written);
        self.replace_in_value(&mut written);
        if let Some(section) = &mut self.section {
            section.options.push(written);
        }
    }

    /// Replaces variables before the `=`, which may hold an entire option.
    fn replace_in_name(&mut self, written: &mut WrittenOption) {
        let value = written.value.as_ref().map(Spot::text);
        let Some(replaced) = substitute_name(written.name.text(), value, self.builder.environment)
        else {
            return;
        };
        self.warn_of_unset(&written.name, &replaced.unset);
        if replaced.name.is_empty() {
            return;
        }
        written.full_name = Some(replaced.name);
        if replaced.value.as_deref() != value {
            written.value.get_or_insert_with(|| written.name.clone());
            written.replaced = replaced.value;
        }
    }

    fn replace_in_value(&mut self, written: &mut WrittenOption) {
        let Some(spot) = &written.value else {
            return;
        };
        self.builder.check_rank_text(spot);
        let row = self.builder.vocabulary.find_any(written.option_name());
        let numeric = row.is_some_and(|row| row.is_numeric());
        let text = written.text().unwrap_or_default();
        let rank = self.builder.rank.as_ref();
        if let Some(replaced) = substitute(text, numeric, self.builder.environment, rank) {
            self.warn_of_unset(spot, &replaced.unset);
            written.replaced = Some(replaced.text);
            written.of_any_rank = replaced.of_any_rank;
        }
    }

    fn warn_of_unset(&mut self, spot: &Spot, unset: &[String]) {
        for variable in unset {
            let why =
                format!("the environment variable `{variable}` is not set and expands to nothing");
            let problem = Problem::new("unset-variable", 0..spot.range.len(), why);
            let diagnostic = Diagnostic::at(Severity::Warning, spot, problem);
            self.builder.reporter.diagnostics.push(diagnostic);
        }
    }

    /// Returns whether the section is full, and reports that once.
    fn is_overfull(&mut self, name: &Spot) -> bool {
        let Some(section) = &mut self.section else {
            return false;
        };
        let overfull = section.options.len() >= OPTIONS_MAX;
        if overfull && !std::mem::replace(&mut section.overfull, true) {
            let why = format!("the section has more than {OPTIONS_MAX} options");
            let problem = Problem::new("many-options", 0..name.range.len(), why);
            let fix = "list several names in one option, separated by colons";
            self.builder.reporter.error(name, problem.fix(fix));
        }
        overfull
    }

    fn include(&mut self, spot: &Spot) {
        let environment = self.builder.environment;
        let rank = self.builder.rank.as_ref();
        let replaced = substitute(spot.text(), false, environment, rank);
        let replaced = replaced.map(|replaced| replaced.text);
        let wanted = replaced.unwrap_or_else(|| spot.text().to_owned());
        let (path, bytes) = match self.open.open(&wanted, environment) {
            Ok(found) => found,
            Err(problem) => return self.builder.reporter.error(spot, problem),
        };
        let job_files = &mut self.builder.settings.job_files;
        if !job_files.contains(&path) {
            job_files.push(path.clone());
        }
        for item in lines::items(&path, &bytes) {
            self.item(item);
            if self.builder.reporter.diagnostics.is_full() {
                break;
            }
        }
        self.open.close();
    }

    /// Warns of a section before others whose name is nearly `global`, and which looks like no job:
    /// the jobs after it would silently run without its options.
    fn warn_of_misspelt_global(&mut self) {
        let Some(section) = &self.section else {
            return;
        };
        let name = section.name.as_str();
        let names_work = |option: &WrittenOption| WORK_OPTIONS.contains(&option.option_name());
        let is_near = name.eq_ignore_ascii_case("global")
            || (closest(name, ["global"]).is_some() && !section.options.iter().any(names_work));
        if name.starts_with("global") || !is_near {
            return;
        }
        let why = format!("`[{name}]` is a job: the jobs after it do not get its options");
        let at = 0..section.header.range.len();
        let problem = Problem::new("misspelt-global", at, why);
        let problem = problem.fix("did you mean `[global]`? if not, choose another name");
        let header = section.header.clone();
        self.builder
            .reporter
            .finding(&header, problem, FindingClass::Warning);
    }

    fn finish_section(&mut self) {
        let Some(section) = self.section.take() else {
            return;
        };
        if section.skipped {
            return;
        }
        let global = section.name.starts_with("global");
        let mut layer: OptionLayer = match global {
            true => self.builder.extend_globals(),
            false => self.builder.inherit(),
        };
        self.builder.apply_sorted(&mut layer, section.options);
        if global {
            self.builder.finish_global(layer);
        } else {
            self.builder
                .finish_job(&section.name, &section.header, layer);
        }
    }
}

/// Limit of the size of a job file; [`crate::Environment`] may stop reading there.
pub const JOB_FILE_BYTES_MAX: u64 = 64 << 20;

/// Limit of options per section. There are a few hundred options, and only `filename` adds when
/// repeated. A power of two: one more would double the memory of the section.
const OPTIONS_MAX: usize = 1 << 17;

/// Options that hardly any job goes without: what it does, and to what.
const WORK_OPTIONS: [&str; 6] = [
    "rw",
    "readwrite",
    "filename",
    "directory",
    "filename_format",
    "read_iolog",
];
